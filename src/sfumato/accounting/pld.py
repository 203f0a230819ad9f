"""Privacy-loss distributions: the tightest price of what was fixed in advance, known from both sides.

Not used by ledgers yet.

The loss of each mechanism is put on a lattice from above and from below (lattice.py), the losses are added up by
Fourier transform, and (epsilon, delta) is read off the sum. Every error is bounded and taken in the safe direction:

  discretisation   from above and below, O(step^2) on either side
  round-off        of the transforms, bounded from the sizes of the coefficients (`_round_off`)
  wrap-around      the transform is circular: what lies outside the window is bounded by Chernoff
  masses           the relative error assumed of the lattice masses (see lattice.py), once per composition

The lattice law is tilted before the transform, p_k e^(tilt k step) / M (an Esscher transform), and the sum is tilted
back: then small deltas lie where the transform has its digits, and errors are relative to delta.

Koskela, Jälkö, Honkela 2020 (Fourier accountant); Gopi, Lee, Wutschitz 2021; Doroshenko et al. 2022.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence as Several
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize

from ..errors import UnsupportedEventError
from ..events import Event, Partition, Repeat, Sequence
from .interval import Interval
from .lattice import Lattice
from .losses import ATOM_SLACK, Pair, pair

Floats = NDArray[np.float64]
Part = tuple[Lattice, int]  # a law and how many times

_UNIT = 2.0**-53
_OUTSIDE = 1e-11  # of the tilted law, beyond each end of the window
_ACCURACY = 5e-4
_MOST_POINTS = 1 << 18
_ROUNDS = 5


def epsilon(event: Event, delta: Fraction | float, *, accuracy: float = _ACCURACY) -> Interval:
    """The least epsilon at which the event is (epsilon, delta)-DP, from both sides.

    accuracy  the width that is aimed at, relative where epsilon is above 1
    """
    target = float(delta)
    parts = [(pair(single), times) for single, times in _singles(event).items()]
    step = _first_step(parts, target, accuracy)
    for _ in range(_ROUNDS):
        found, points = _both_directions(parts, step, target)
        wanted = accuracy * max(1.0, found.upper)
        if found.width <= wanted or points > _MOST_POINTS:  # sound all the same, only wider than asked
            break
        step *= min(max(0.8 * math.sqrt(wanted / found.width), 0.2), 0.7)
        step = _aligned(parts, step)
    return found


def _singles(event: Event, times: int = 1) -> Counter[Event]:
    """The single mechanisms of an event, with how often each happens."""
    if isinstance(event, Sequence):
        return sum((_singles(part, times) for part in event.events), Counter())
    if isinstance(event, Repeat):
        return _singles(event.event, times * event.times)
    if isinstance(event, Partition):
        if len(set(event.events)) > 1:
            raise UnsupportedEventError("a partition of unlike parts is not priced by privacy loss: price it by rho")
        return _singles(event.events[0], times * event.touched)
    return Counter({event: times})


def _both_directions(parts: Several[tuple[Pair, int]], step: float, delta: float) -> tuple[Interval, int]:
    """The worse of adding and removing a unit, and how many lattice points it took."""
    directions = [True] if all(one.symmetric for one, _ in parts) else [True, False]
    found = [_one_direction(parts, step, delta, remove) for remove in directions]
    worst = Interval(max(each.lower for each, _ in found), max(each.upper for each, _ in found))
    return worst, max(points for _, points in found)


def _one_direction(parts: Several[tuple[Pair, int]], step: float, delta: float, remove: bool) -> tuple[Interval, int]:
    count = sum(times for _, times in parts)
    cells = [(one.cells(step, 1e-5 * delta / count, remove=remove), times) for one, times in parts]
    above = [(each.upper(), times) for each, times in cells]
    tilt = _tilt(above, math.log(delta))
    whole = _compose(above, tilt)
    upper = whole.epsilon(delta, upper=True) + count * ATOM_SLACK * step
    points = max(whole.tilted.size, *(law.p.size for law, _ in above))
    below = [(each.lower(), times) for each, times in cells]
    if any(law.p.sum() <= 0 for law, _ in below):  # a step too coarse to see anything
        return Interval(0.0, upper), points
    lower = _compose(below, tilt).epsilon(delta, upper=False)
    return Interval(min(max(lower - count * ATOM_SLACK * step, 0.0), upper), upper), points


def _first_step(parts: Several[tuple[Pair, int]], delta: float, accuracy: float) -> float:
    """From the error of a lattice of step h, about T h^2 (1 + order)/4, with a normal guess of the order."""
    variance = sum(times * one.resolution**2 for one, times in parts)
    spread, reach = math.sqrt(variance), math.sqrt(-2 * math.log(delta))
    wanted = accuracy * max(1.0, variance / 2 + spread * reach)
    count = sum(times for _, times in parts)
    step = math.sqrt(4 * wanted / ((1 + reach / spread) * count))
    return _aligned(parts, min(step, min(one.resolution for one, _ in parts) / 3))


def _aligned(parts: Several[tuple[Pair, int]], step: float) -> float:
    """A step that divides the atoms of the first mechanism that has some: atoms on nodes are exact."""
    for one, _ in parts:
        if one.atoms and one.symmetric:
            atom = math.log(one.atoms[0][0] / one.atoms[0][1])
            alone = len(parts) == 1 and one.smooth is None
            return atom if alone else atom / math.ceil(atom / step)
    return step


@dataclass(frozen=True)
class _Composed:
    """The law of a sum of losses, tilted: the mass at loss e is tilted * exp(log_scale - tilt * e)."""

    step: float
    first: int
    tilted: Floats
    tilt: float
    log_scale: float
    infinite: float
    error: float  # on delta(e): error * exp(log_scale - tilt * e)
    relative: float

    def epsilon(self, delta: float, *, upper: bool) -> float:
        """Where the curve meets delta, on the safe side. Between nodes the curve is a chord in e^epsilon; the error
        term falls, so that of the left node serves for the cell."""
        losses, curve, error = self._curve()
        side = 1.0 if upper else -1.0
        curve = curve * (1 + side * self.relative) + self.infinite
        at_node = curve + side * error
        at_next = curve[1:] + side * error[:-1]
        over = np.flatnonzero(at_node > delta)
        if not over.size:
            return max(float(losses[0]), 0.0) if upper else 0.0
        k = int(over[-1])
        if k + 1 == losses.size:
            return math.inf if upper else max(float(losses[-1]), 0.0)
        if at_next[k] > delta:
            return max(float(losses[k + 1]), 0.0)
        share = float((at_node[k] - delta) / (at_node[k] - at_next[k]))
        return max(float(losses[k]) + math.log1p(share * math.expm1(self.step)), 0.0)

    def _curve(self) -> tuple[Floats, Floats, Floats]:
        """delta(e_k) = sum over j > k of (1 - e^(e_k - e_j)) c_j, by sums from the far end."""
        losses: Floats = self.step * (self.first + np.arange(self.tilted.size, dtype=np.float64))
        log_weight = np.minimum(self.log_scale - self.tilt * losses, 600.0)
        mass = self.tilted * np.exp(log_weight)
        decay = np.exp(-self.step * np.arange(losses.size))
        p = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            q = np.append(np.cumsum((mass * decay)[::-1])[::-1][1:], 0.0) / decay
            curve = np.nan_to_num(p - q, nan=0.0)
        return np.asarray(losses), np.maximum(curve, 0.0), np.asarray(self.error * np.exp(log_weight))


def _compose(parts: Several[Part], tilt: float) -> _Composed:
    """The law of the sum, in one circular transform."""
    step = parts[0][0].step
    moments = [_moments(law, tilt) for law, _ in parts]
    scale = sum(times * m[0] for (_, times), m in zip(parts, moments, strict=True))
    spread = math.sqrt(max(sum(times * m[1] for (_, times), m in zip(parts, moments, strict=True)), 1e-300))
    low, high = (_end(parts, tilt, scale, spread, sign) for sign in (-1, 1))
    first = max(math.floor(low / step) - 1, sum(times * law.first for law, times in parts))
    last = min(math.ceil(high / step) + 1, sum(times * (law.first + law.p.size - 1) for law, times in parts))
    size = fft.next_fast_len(max(last - first + 1, 2), real=True)
    log_product: Any = np.zeros(size // 2 + 1, dtype=np.complex128)
    doubt, log_cap = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    origin = 0
    for (law, times), (log_mass, _) in zip(parts, moments, strict=True):
        weights = law.p * np.exp(tilt * law.losses - log_mass)
        transform = fft.rfft(_wrapped(weights, size), size)
        magnitude = np.maximum(np.abs(transform), 1e-300)
        log_product += times * (np.log(magnitude) + 1j * np.angle(transform))
        off = _round_off(weights, size)
        doubt += times * (off / magnitude + 4 * _UNIT * (math.pi + np.abs(np.log(magnitude))))
        log_cap += times * np.log(magnitude + off)  # no coefficient can be larger than that, true or computed
        origin += times * law.first
    product = np.exp(log_product)
    sums = np.roll(fft.irfft(product, size), (origin - first) % size)
    wrong = np.minimum(np.abs(product) * np.expm1(np.minimum(doubt, 700.0)), 2 * np.exp(np.minimum(log_cap, 1.0)))
    worst = 2 * float(wrong.sum()) / size + 8 * math.log2(size) * _UNIT * float(np.sqrt(np.sum(sums * sums)))
    return _Composed(
        step,
        first,
        sums,
        tilt,
        scale,
        infinite=-math.expm1(sum(times * math.log1p(-law.infinite) for law, times in parts)),
        error=worst / -math.expm1(-tilt * step) + 2 * _OUTSIDE,  # a geometric sum over the nodes above
        relative=sum(times * law.slack for law, times in parts) + 1e-11,
    )


def _round_off(weights: Floats, size: int) -> float:
    """How far a coefficient of the transform may be off: in norm at most 8 log2(n) u sqrt(n) |w|."""
    return 8 * math.log2(size) * _UNIT * math.sqrt(size) * float(np.sqrt(np.sum(weights * weights)))


def _wrapped(weights: Floats, size: int) -> Floats:
    if weights.size <= size:
        return weights
    return np.asarray(np.pad(weights, (0, -weights.size % size)).reshape(-1, size).sum(axis=0))


def _log_mass(law: Lattice, tilt: float) -> float:
    exponent = tilt * law.losses
    top = float(exponent.max())
    return top + math.log(max(float(np.sum(law.p * np.exp(exponent - top))), 1e-300))


def _moments(law: Lattice, tilt: float) -> tuple[float, float]:
    """The log of the tilted mass, and the variance under the tilted law."""
    exponent = tilt * law.losses
    top = float(exponent.max())
    weights = law.p * np.exp(exponent - top)
    mass = max(float(weights.sum()), 1e-300)
    mean = float(np.sum(weights * law.losses)) / mass
    return top + math.log(mass), float(np.sum(weights * (law.losses - mean) ** 2)) / mass


def _tilt(parts: Several[Part], log_delta: float) -> float:
    """Most of the way to the Chernoff-optimal tilt: far enough for the digits, not so far that rare large losses
    widen the window. Any tilt is valid, so a thinned law will do."""
    parts = [(law.coarser(law.p.size >> 14).upper() if law.p.size > 1 << 15 else law, times) for law, times in parts]

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return (sum(times * _log_mass(law, tilt) for law, times in parts) - log_delta) / tilt

    spread = math.sqrt(max(sum(times * _moments(law, 0.0)[1] for law, times in parts), 1e-300))
    normal = math.log(math.sqrt(-2 * log_delta) / spread)  # the best tilt of a normal loss
    best = optimize.minimize_scalar(
        bound, bounds=(min(normal - 4, -2.0), normal + 1), method="bounded", options={"xatol": 0.05}
    )
    return 0.7 * math.exp(float(best.x))


def _end(parts: Several[Part], tilt: float, scale: float, spread: float, sign: int) -> float:
    """Where less than _OUTSIDE of the tilted law lies beyond, by Chernoff; any order gives a valid end."""

    def end(log_order: float) -> float:
        order = math.exp(log_order)
        excess = sum(times * _log_mass(law, tilt + sign * order) for law, times in parts) - scale
        return (excess - math.log(_OUTSIDE)) / order

    start = math.log(math.sqrt(-2 * math.log(_OUTSIDE)) / spread)
    best = optimize.minimize_scalar(end, bounds=(start - 8, start + 1), method="bounded", options={"xatol": 0.1})
    return sign * float(best.fun)
