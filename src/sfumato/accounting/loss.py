"""The privacy-loss random variable, to look at: L = ln(P(x)/Q(x)) of the answer x drawn from P.

P and Q are the mechanism's dominating pair (pairs.py), with the unit and without it; `direction="add"` exchanges them.
From the law of L all else follows: delta(epsilon) = E[(1 - e^(epsilon - L))+], and losses add up under composition.

A study tool in plain float64: values are accurate to many digits, but not rounded in any direction. Prices come from
`pld` and its companions.

On a smooth piece the density at a loss is that of z over the slope of the loss, and masses are Gauss-Legendre sums
along z. Composed events are put on a lattice and convolved by Fourier transform; their cumulants are sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft

from .. import checks
from ..errors import UnsupportedEventError
from ..events import Event
from ..exhibits import draw
from . import pairs
from .composition import reached
from .pairs import Floats, Loss, Piece
from .renyi_pairs import log_e2

Direction = Literal["remove", "add"]
Pieces = tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]

_CELLS = 1 << 17
_ORDER = 8  # cumulants that are kept
_TAIL = 1e-300  # cut off the laws: nothing that float64 could see
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_PANELS = 256, 1 << 15  # least and most
_NEWTON = 60


@dataclass(frozen=True)
class PrivacyLoss:
    """The law of the privacy loss: atoms, a continuous part, and perhaps a chance of an infinite loss."""

    atoms: Floats  # where
    masses: Floats  # how much
    infinite: float
    pieces: Pieces | None  # density, and mass below, of the rest
    range: tuple[float, float]  # of the finite losses
    cumulants: tuple[float, ...]  # given that the loss is finite

    def pdf(self, loss: ArrayLike) -> Any:
        """The density of the continuous part; atoms are in `atoms` and `masses`."""
        x = np.asarray(loss, dtype=np.float64)
        return self.pieces[0](x.reshape(-1)).reshape(x.shape)[()] if self.pieces else np.zeros(x.shape)[()]

    def cdf(self, loss: ArrayLike) -> Any:
        """P(L <= loss), atoms included."""
        x = np.asarray(loss, dtype=np.float64)
        flat = x.reshape(-1)
        order = np.argsort(self.atoms)
        steps = np.append(0.0, np.cumsum(self.masses[order]))
        share = steps[np.searchsorted(self.atoms[order], flat, side="right")]
        if self.pieces:
            share = share + self.pieces[1](flat)
        return np.clip(share, 0.0, 1.0).reshape(x.shape)[()]

    def quantile(self, probability: ArrayLike) -> Any:
        """The least loss with P(L <= loss) >= probability; infinite where only an infinite loss is left."""
        wanted = np.asarray(probability, dtype=np.float64)
        if not np.all((wanted >= 0) & (wanted <= 1)):
            raise checks.refuse("probability", probability, "numbers from 0 to 1")
        flat = wanted.reshape(-1)
        low, high = np.full(flat.shape, self.range[0]), np.full(flat.shape, self.range[1])
        for _ in range(70):
            middle = (low + high) / 2
            enough = self.cdf(middle) >= flat
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        high = np.where((flat > 1 - self.infinite) & (self.infinite > 0), np.inf, high)
        return high.reshape(wanted.shape)[()]

    @property
    def mean(self) -> float:
        return self._finite()[0]

    @property
    def variance(self) -> float:
        return self._finite()[1]

    def moments(self, count: int = 4) -> tuple[float, ...]:
        """E[L], E[L^2], ... about 0, from the cumulants: m_n = sum over j of C(n-1, j-1) k_j m_(n-j)."""
        finite = self._finite()
        checks.whole(count, "count", most=len(finite))
        raw = [1.0]
        for n in range(1, count + 1):
            raw.append(sum(math.comb(n - 1, j - 1) * finite[j - 1] * raw[n - j] for j in range(1, n + 1)))
        return tuple(raw[1:])

    def _finite(self) -> tuple[float, ...]:
        if self.infinite:
            raise UnsupportedEventError(
                f"the loss is infinite with probability {self.infinite:g}: it has no moments. Look at cdf or quantile."
            )
        return self.cumulants

    def plot(self, ax: Any = None) -> Any:
        """Density and atoms, on matplotlib axes; returns the axes."""
        return draw("sfumato.report.plot_loss:plot_loss", self, ax)


def privacy_loss(event: Event, *, direction: Direction = "remove") -> PrivacyLoss:
    """The law of an event's privacy loss: of answers given with the unit ("remove" it), or without it ("add" it).

    It is that of the pair which dominates all mechanisms of the event's kind; a selection, a sample of fixed size and
    shuffled reports may lose less.
    """
    checks.instance(event, Event, "event", "an event")
    way = checks.one_of(direction, "direction", get_args(Direction))
    laws = []
    for single, times in _singles(event).items():
        directions = pairs.directions(single, _TAIL)
        laws.append((_law(directions[-1 if way == "add" else 0]), times))
    return laws[0][0] if len(laws) == 1 and laws[0][1] == 1 else _composed(laws)


def _singles(event: Event) -> Counter[Event]:
    lists = reached(event, 1)
    if lists is None:
        raise UnsupportedEventError("a partition of unlike parts has no single privacy loss: look at the parts")
    counts: Counter[Event] = Counter()
    for leaf, times in lists[0].items():
        for single, count in pairs.singles(leaf):
            counts[single] += times * count
    return counts


class _Smooth:
    """The part of a law along one piece: panels of z, and how much lies below each of their edges, by loss."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.sign = piece, 1.0 if piece.forward else -1.0
        self.ends = np.sort(self.sign * piece.log_ratio(np.array([piece.low, piece.high])))
        # ln w of a mixture bends, and is singular at a distance of pi over the spread of its rates.
        length = (piece.high - piece.low) * max(1.0, 2 * float(np.ptp(piece.rates)))
        self.edges = np.linspace(piece.low, piece.high, 1 + min(max(_PANELS[0], math.ceil(length)), _PANELS[1]))
        half = np.diff(self.edges)[:, None] / 2
        z = self.edges[:-1, None] + half * (1 + _NODES)
        self.losses = self.sign * piece.log_ratio(z.ravel())
        masses = half * _WEIGHTS * self._density(z.ravel()).reshape(z.shape)
        self.masses = masses.ravel()
        sums = masses.sum(axis=1)
        self.below = np.append(0.0, np.cumsum(sums)) if piece.forward else np.append(np.cumsum(sums[::-1])[::-1], 0.0)

    def _density(self, z: Floats) -> Floats:
        """Of z, under P."""
        ratio = self.piece.log_ratio(z) if self.piece.forward else 0.0
        return np.asarray(np.exp(self.piece.log_base(z) + ratio))

    def _place(self, loss: Floats) -> Floats:
        """The z of a loss between the ends: Newton's steps, or halves where they leave the bracket."""
        piece = self.piece
        wanted = np.clip(self.sign * loss, *np.sort(self.sign * self.ends))
        low, high = np.full(loss.shape, piece.low), np.full(loss.shape, piece.high)
        z = piece.place(wanted)
        left = np.arange(z.size)  # still to be found
        for _ in range(_NEWTON):
            at, goal = z[left], wanted[left]
            ratio = piece.log_ratio(at)
            over = ratio > goal
            low[left], high[left] = np.where(over, low[left], at), np.where(over, at, high[left])
            slope = piece.slope(at, ratio)
            ahead = at + np.divide(goal - ratio, slope, out=np.full(at.shape, np.inf), where=slope > 1e-300)
            inside = (ahead >= low[left]) & (ahead <= high[left])
            z[left] = np.where(inside, ahead, (low[left] + high[left]) / 2)
            settled = (np.abs(goal - ratio) <= 1e-15 * np.abs(goal)) | (
                np.abs(z[left] - at) <= 1e-14 * (1 + np.abs(at))
            )
            left = left[~settled]
            if not left.size:
                break
        return z

    def density(self, loss: Floats) -> Floats:
        z = self._place(loss)
        slope = self.piece.slope(z, self.piece.log_ratio(z))
        inside = (loss >= self.ends[0]) & (loss <= self.ends[1]) & (slope > 0)
        return np.divide(self._density(z), slope, out=np.zeros(z.shape), where=inside)

    def mass_below(self, loss: Floats) -> Floats:
        z = self._place(loss)
        cell = np.clip(np.searchsorted(self.edges, z, side="right") - 1, 0, self.edges.size - 2)
        start = cell if self.piece.forward else cell + 1
        half = (z - self.edges[start])[:, None] / 2
        inside = self._density((self.edges[start][:, None] + half * (1 + _NODES)).ravel()).reshape(z.size, -1)
        mass = self.below[start] + (np.abs(half) * _WEIGHTS * inside).sum(axis=1)
        return np.where(loss < self.ends[0], 0.0, np.where(loss >= self.ends[1], self.below.max(), mass))


def _law(loss: Loss) -> PrivacyLoss:
    seen = loss.masses > 0
    atoms, masses = loss.atoms[seen], loss.masses[seen]
    smooth = [_Smooth(piece) for piece in loss.pieces]
    cumulants = _cumulants(
        np.concatenate([atoms, *(each.losses for each in smooth)]),
        np.concatenate([masses, *(each.masses for each in smooth)]),
    )

    def density(at: Floats) -> Floats:
        return np.asarray(sum(each.density(at) for each in smooth))

    def below(at: Floats) -> Floats:
        return np.asarray(sum(each.mass_below(at) for each in smooth))

    return PrivacyLoss(atoms, masses, loss.infinite, (density, below) if smooth else None, loss.reach, cumulants)


def _cumulants(where: Floats, masses: Floats) -> tuple[float, ...]:
    """From central moments. E[e^-L] = 1, so the mean of small losses is that of L + e^-L - 1, which is positive."""
    masses = masses / masses.sum()
    small = np.abs(where).max() < 1
    mean = float((masses * (np.exp(log_e2(-where)) if small else where)).sum())
    central = [1.0, *(float((masses * (where - mean) ** n).sum()) for n in range(1, _ORDER + 1))]
    cumulants = [0.0]
    for n in range(2, _ORDER + 1):
        cumulants.append(
            central[n] - sum(math.comb(n - 1, j - 1) * cumulants[j - 1] * central[n - j] for j in range(1, n))
        )
    return (mean, *cumulants[1:])


def _composed(laws: list[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
    """The law of the sum: on the atoms' own lattice if they have one, else on a fine one, scaled to the exact mean and
    variance."""
    infinite = -math.expm1(sum(times * math.log1p(-law.infinite) for law, times in laws))
    cumulants = tuple(sum(times * law.cumulants[n] for law, times in laws) for n in range(_ORDER))
    mean, spread = cumulants[0], math.sqrt(cumulants[1])
    reach = 12 * spread + max(float(np.abs(_ends(law, 1e-9)).max()) for law, _ in laws)
    step = _common_step([law for law, _ in laws], reach)
    exact = step is not None
    step = step or 2 * reach / _CELLS
    size = fft.next_fast_len(2 * math.ceil(reach / step) + 3, real=True)
    transform: Any = np.ones(size // 2 + 1, dtype=np.complex128)
    for law, times in laws:
        transform = transform * fft.rfft(_on_lattice(law, step, size)) ** times
    masses = np.maximum(fft.irfft(transform, size), 0.0)
    first = round(mean / step) - size // 2
    masses = np.roll(masses, -(first % size))
    where = step * (first + np.arange(size, dtype=np.float64))
    masses *= (1 - infinite) / masses.sum()
    if exact:
        seen = masses > 1e-15  # the rest is round-off of the transform
        where, masses = where[seen], masses[seen]
        return PrivacyLoss(where, masses, infinite, None, (float(where[0]), float(where[-1])), cumulants)
    share = masses / (1 - infinite)
    centre = float((share * where).sum())
    scale = spread / math.sqrt(max(float((share * (where - centre) ** 2).sum()), 1e-300))
    where, step = mean + (where - centre) * scale, step * scale
    edges, sums = np.append(where - step / 2, where[-1] + step / 2), np.append(0.0, np.cumsum(masses))

    def density(loss: Floats) -> Floats:
        return np.interp(loss, where, masses / step, left=0.0, right=0.0)

    def below(loss: Floats) -> Floats:
        return np.interp(loss, edges, sums)

    nothing = np.zeros(0)
    return PrivacyLoss(nothing, nothing, infinite, (density, below), (float(edges[0]), float(edges[-1])), cumulants)


def _ends(law: PrivacyLoss, tail: float) -> Floats:
    """Finite losses beyond which lies so little, each way."""
    return np.asarray(law.quantile(float(law.cdf(law.range[1])) * np.array([tail, 1 - tail])))


def _common_step(laws: list[PrivacyLoss], reach: float) -> float | None:
    """A step of which all losses are whole multiples, if there is one that is not too fine."""
    if any(law.pieces for law in laws):
        return None
    losses = np.abs(np.concatenate([law.atoms for law in laws]))
    least = float(losses[losses > 1e-12].min(initial=math.inf))
    for parts in (1, 2):  # losses at odd multiples of half a gap have their least at half the gap
        step = least / parts
        if 2 * reach / step < _CELLS and np.all(np.abs(losses / step - np.rint(losses / step)) < 1e-9):
            return step
    return None


def _on_lattice(law: PrivacyLoss, step: float, size: int) -> Floats:
    """Chances, given a finite loss, of the cells around the multiples of `step`, wrapped around."""
    mass = np.zeros(size)
    np.add.at(mass, np.rint(law.atoms / step).astype(np.int64) % size, law.masses)
    if law.pieces:
        low, high = (round(float(end) / step) for end in _ends(law, 2e-16))
        edges = step * (np.arange(low, high + 2, dtype=np.float64) - 0.5)
        np.add.at(mass, np.arange(low, high + 1) % size, np.diff(law.pieces[1](edges)))
    return np.asarray(mass / mass.sum())
