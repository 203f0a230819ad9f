"""The privacy loss of each mechanism: atoms, and smooth pieces along a coordinate.

A mechanism is priced by a dominating pair of laws (P, Q); its loss is L = ln dP/dQ under P. On a smooth piece Q has the
density e^base(z) and the likelihood ratio is a mixture of exponentials that rises in z,
    w(z) = sum_i weights_i e^(rates_i z + offsets_i),
so that, between P = wQ and Q,
    forward    the loss is   ln w(z)  with density  e^base w      (removing a unit)
    backward   the loss is  -ln w(z)  with density  e^base        (adding one)
and every moment function is an integral of e^base w^a. Sampling a unit at a rate r replaces w by 1 - r + r w (Zhu,
Dong, Wang 2022, Theorem 11).

    Gaussian of multiplier 1/mu     base of N(0, 1),  w = e^(mu z - mu^2/2)
    Laplace                         atoms at +-epsilon; between, z is the loss itself, base -(z + epsilon)/2 - ln 4
    exponential mechanism           an epsilon-bounded-range mechanism has losses in [t - epsilon, t] for some t, so a
                                    curve below H(x) = max_t (e^eps - e^t)(1 - x e^-t)/(e^eps - 1)
                                    = (1 - sqrt(x e^-eps))^2 / (1 - e^-eps), which is the curve of the pair with
                                    Q-density e^((eps - z)/2) / (2 (e^eps - 1)) and loss z in [-eps, eps]
    randomised response, pure,      atoms
    discrete noise
Several coordinates: a Laplace pair of shift a + b dominates the product of shifts a and b, since the likelihood ratios
have the same mean and their tail functions cross once; so one coordinate that takes the whole L1 shift is worst. The
same holds for discrete Laplace noise. Discrete Gaussian noise is log-concave, so a longer shift dominates a shorter one
coordinate by coordinate; vectors that are not comparable share an envelope (shifts.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import UnsupportedEventError
from ..events import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    PermuteAndFlip,
    Poisson,
    Pure,
    PureEvent,
    RandomizedResponse,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)
from . import shifts

Floats = NDArray[np.float64]

_MOST_ATOMS = 1 << 20
_LONGEST = 1e6  # of a piece that is integrated, in units of loss: a mechanism so wide has next to no noise


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True)
class Piece:
    """A smooth stretch of z in one direction. base(z) = base[0] + base[1] z + base[2] z^2."""

    base: tuple[float, float, float]
    rates: Floats
    offsets: Floats
    weights: Floats
    low: float
    high: float
    forward: bool = True

    @property
    def steepest(self) -> float:
        """ln w rises at most so fast."""
        return float(self.rates.max())

    def log_base(self, z: Floats) -> Floats:
        return self.base[0] + (self.base[1] + self.base[2] * z) * z

    def log_ratio(self, z: Floats) -> Floats:
        """ln w(z), with small values to full relative accuracy."""
        exponent = np.outer(self.rates, z) + self.offsets[:, None]
        if self.rates.size == 1:
            return np.asarray(exponent[0] + math.log(self.weights[0]))
        top = exponent.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            excess = (self.weights[:, None] * np.expm1(exponent)).sum(axis=0)  # w - 1
            near = np.log1p(np.maximum(excess, -0.5))
            far = top + np.log((self.weights[:, None] * np.exp(exponent - top)).sum(axis=0))
        return np.asarray(np.where((excess > -0.5) & (top < 500), near, far))

    def slope(self, z: Floats, log_ratio: Floats) -> Floats:
        """d ln w / dz: the mean of the rates under the posterior of the mixture."""
        exponent = np.outer(self.rates, z) + self.offsets[:, None] - log_ratio
        return np.asarray(((self.weights * self.rates)[:, None] * np.exp(exponent)).sum(axis=0))

    def slope_spread(self, z: Floats, log_ratio: Floats, slope: Floats) -> Floats:
        """d^2 ln w / dz^2: the variance of the rates under that posterior."""
        exponent = np.outer(self.rates, z) + self.offsets[:, None] - log_ratio
        posterior = self.weights[:, None] * np.exp(exponent)
        return np.asarray((posterior * (self.rates[:, None] - slope) ** 2).sum(axis=0))

    def off_axis(self, z: Floats, log_ratio: Floats, height: float) -> NDArray[np.complex128]:
        """w(z + i height) / w(z)."""
        exponent = np.outer(self.rates, z) + self.offsets[:, None] - log_ratio
        turn = np.exp(1j * height * self.rates) * self.weights
        return np.asarray((turn[:, None] * np.exp(exponent)).sum(axis=0))

    def place(self, log_ratio: Floats) -> Floats:
        """Where ln w has these values, within the piece: from a table, then Newton. Cells are cut here: a small error
        costs a little accuracy of quadrature, nothing else."""
        count = 513 + int((self.high - self.low) * self.steepest)
        table = np.linspace(self.low, self.high, count)
        ratios = self.log_ratio(table)
        z = np.interp(log_ratio, ratios, table)
        cell = np.clip(np.searchsorted(ratios, log_ratio) - 1, 0, count - 2)
        for _ in range(3):
            at = self.log_ratio(z)
            with np.errstate(all="ignore"):
                step = (at - log_ratio) / self.slope(z, at)
            z = np.clip(z - np.where(np.isfinite(step), step, 0.0), table[cell], table[cell + 1])
        return np.asarray(z)

    def zero(self) -> float:
        """Where the loss is 0, to the last digit or so: ln w rises."""
        low, high = self.low, self.high
        for _ in range(7):  # the bracket shrinks by 512 each time
            z = np.linspace(low, high, 513)
            k = int(np.searchsorted(self.log_ratio(z) > 0, True))
            low, high = float(z[max(k - 1, 0)]), float(z[min(k, 512)])
        return high


@dataclass(frozen=True)
class Loss:
    """The law of one privacy loss under P: atoms, pieces, a mass at infinity, and a bound on what was cut off."""

    atoms: Floats = field(default_factory=_nothing)  # losses
    masses: Floats = field(default_factory=_nothing)  # their P-masses
    pieces: tuple[Piece, ...] = ()
    infinite: float = 0.0
    cut: float = 0.0

    @cached_property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest finite loss."""
        ends = [0.0, *self.atoms.tolist()]
        for piece in self.pieces:
            ratios = piece.log_ratio(np.array([piece.low, piece.high]))
            ends += (ratios if piece.forward else -ratios).tolist()
        return min(ends), max(ends)


Directions = tuple[Loss, ...]
"""One law if both directions are alike, else forward (remove) and backward (add)."""

_NOTHING: Directions = (Loss(np.zeros(1), np.ones(1)),)


@dataclass(frozen=True)
class _Pair:
    """P against Q: atoms with their loss and the log of their Q-mass, and a smooth piece."""

    atoms: Floats = field(default_factory=_nothing)
    log_q: Floats = field(default_factory=_nothing)
    piece: Piece | None = None
    infinite: float = 0.0
    cut: float = 0.0
    symmetric: bool = True

    def sampled(self, exact: Fraction) -> _Pair:
        if self.infinite:
            raise UnsupportedEventError("sampling of an (epsilon, delta) event is not priced by privacy loss")
        rate, missing = float(exact), float(1 - exact)
        piece = self.piece
        if piece is not None:
            piece = replace(
                piece,
                rates=np.append(0.0, piece.rates),
                offsets=np.append(0.0, piece.offsets),
                weights=np.append(missing, rate * piece.weights),
            )
        gain = rate * np.expm1(np.minimum(self.atoms, 700.0))
        top = np.maximum(self.atoms, 0.0)
        far = top + np.log(missing * np.exp(-top) + rate * np.exp(self.atoms - top))
        atoms = np.where(np.abs(gain) < 0.5, np.log1p(np.maximum(gain, -0.5)), far)
        return replace(self, atoms=atoms, piece=piece, symmetric=False)

    def directions(self) -> Directions:
        forward = self._law(True)
        return (forward,) if self.symmetric else (forward, self._law(False))

    def _law(self, forward: bool) -> Loss:
        pieces = () if self.piece is None else (replace(self.piece, forward=forward),)
        log_mass = self.log_q + self.atoms if forward else self.log_q
        return Loss(self.atoms if forward else -self.atoms, np.exp(log_mass), pieces, self.infinite, self.cut)

    def one_sided(self) -> Directions:
        """Without replacement: the forward law where its loss is positive, mirrored, and nothing lost in between.

        Between data sets of one size the two directions are alike, and for x >= 1 the curve is that of forward
        (Balle, Barthe, Gaboardi 2018, Theorem 9; Zhu, Dong, Wang 2022, Proposition 30). A curve with H(x) = 1 - x +
        x H(1/x) has the law of positive losses l, with P-mass p, and of -l with P-mass p e^-l, and the rest at 0.
        """
        forward = self._law(True)
        up = forward.atoms > 0
        atoms, masses = forward.atoms[up], forward.masses[up]
        both = np.concatenate([atoms, -atoms]), np.concatenate([masses, masses * np.exp(-atoms)])
        pieces: tuple[Piece, ...] = ()
        inside = 0.0
        if self.piece is not None:
            upper = replace(self.piece, low=self.piece.zero(), forward=True)
            pieces = (upper, replace(upper, forward=False))
            inside = sum(_mass(piece) for piece in pieces)
        # Too much mass at 0 only raises the curve: the pair is used from above only, so the rest is rounded up.
        rest = max(1.0 - self.infinite - float(both[1].sum()) - inside, 0.0) + 1e-13
        return (Loss(np.append(both[0], 0.0), np.append(both[1], rest), pieces, self.infinite, 2 * self.cut),)


def _mass(piece: Piece) -> float:
    """The P-mass of a piece, by Gauss-Legendre."""
    if not (piece.high - piece.low) * max(1.0, piece.steepest) <= _LONGEST:  # also where it is no number
        raise UnsupportedEventError("so little noise is not priced by privacy loss: price it by Renyi divergence")
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(piece.low, piece.high, 2 + int((piece.high - piece.low) * 4 * max(1.0, piece.steepest)))
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half + half * nodes).ravel()
    log_density = piece.log_base(z) + (piece.log_ratio(z) if piece.forward else 0.0)
    return float(np.sum((half * weights).ravel() * np.exp(log_density)))


def singles(event: Event) -> Iterator[tuple[Event, int]]:
    """What one leaf event stands for: itself, but for noise on several coordinates, which is one law per coordinate."""
    if isinstance(event, DiscreteGaussian):
        vectors = shifts.vectors(event.shift_squared, event.coordinates)
        if len(vectors) == 1:
            for shift in sorted(set(vectors[0])):
                yield replace(event, shift_squared=shift * shift, coordinates=1), vectors[0].count(shift)
            return
    yield event, 1


def is_attained(event: Event) -> bool:
    """Is the dominating pair that of a mechanism of this kind, so that its curve is a lower bound too?"""
    if isinstance(event, Poisson):
        return is_attained(event.event)
    several = isinstance(event, DiscreteGaussian) and len(shifts.vectors(event.shift_squared, event.coordinates)) > 1
    return not several and not isinstance(event, Exponential | PermuteAndFlip | WithoutReplacement | Shuffled)


def directions(event: Event, tail: float) -> Directions:
    """The dominating pair of one mechanism, each way; of each law at most `tail` of the P-mass is cut off."""
    if isinstance(event, WithoutReplacement):
        return _pair(event.event, tail / 2).sampled(Fraction(event.sample, event.population)).one_sided()
    return _pair(event, tail).directions()


def attained(event: Event, tail: float) -> Directions:
    """A pair that some mechanism of this kind attains.

    Two candidates with scores (d, -d)/2 that change places are chosen by the exponential mechanism as by randomised
    response at epsilon/2; of scores (0, 0) that become (d, -d), permute-and-flip makes (1/2, 1/2) against
    (1 - e^-eps/2, e^-eps/2). A sample
    without replacement, of data in which only the replaced unit counts, is a coin for that unit.
    """
    try:
        return _attained(event, tail).directions()
    except UnsupportedEventError:  # no pair is known: nothing is claimed
        return _NOTHING


def _attained(event: Event, tail: float) -> _Pair:
    if isinstance(event, Exponential):
        return _pair(Pure(epsilon=event.epsilon / 2), tail)
    if isinstance(event, PermuteAndFlip):
        size = float(event.epsilon)
        log_q = np.array([math.log1p(-math.exp(-size) / 2), -size - math.log(2)])
        return _Pair(-math.log(2) - log_q, log_q, symmetric=False)
    if isinstance(event, WithoutReplacement):
        return _attained(event.event, tail).sampled(Fraction(event.sample, event.population))
    if isinstance(event, Poisson):
        inner = _attained(event.event, tail)
        return inner if event.rate == 1 else inner.sampled(event.rate)
    if isinstance(event, DiscreteGaussian):  # along one axis, as far as it goes
        return _pair(replace(event, coordinates=1), tail)
    if isinstance(event, ZeroConcentrated):  # a Gaussian has this rho
        return _gaussian(np.array([math.sqrt(float(2 * event.rho)) * (1 - 1e-15)]), np.ones(1), tail)
    if isinstance(event, Shuffled):
        raise UnsupportedEventError("Shuffled has no pair that is attained")
    return _pair(event, tail)


def _pair(event: Event, tail: float) -> _Pair:
    if isinstance(event, Shuffled):
        from .amplify import shuffle  # which prices by privacy loss too

        p, q, outside = shuffle.pair(event, outside=Fraction(max(tail, 1e-99)))
        common = (p > 0) & (q > 0)
        lost = float(p[~common].sum()) + max(outside, 0.0)
        if not common.any() or lost >= 1:
            raise UnsupportedEventError("Shuffled reports of so large an epsilon are not priced by privacy loss")
        # Masses are good to 1e-10, relative (binomial.py); the pair is used from above only, so all are rounded up.
        log_other = np.log(q[common]) + 2e-10
        return _Pair(np.log(p[common]) + 6e-10 - log_other, log_other, cut=lost)
    if isinstance(event, Poisson):
        inner = _pair(event.event, tail)
        return inner if event.rate == 1 else inner.sampled(event.rate)
    if isinstance(event, Gaussian):
        return _gaussian(np.array([float(1 / event.multiplier)]), np.ones(1), tail)
    if isinstance(event, GaussianMixture):
        means = np.array([float(s) for s in event.shifts])
        return _gaussian(means, np.array([float(w) for w in event.weights]), tail)
    if isinstance(event, Exponential):
        size = float(event.epsilon)
        start = -size / 2 - math.log(2) - math.log(-math.expm1(-size))
        return _Pair(piece=_line((start, -0.5, 0.0), size))
    if isinstance(event, Laplace):
        size = float(event.epsilon)
        middle = _line((-size / 2 - math.log(4), -0.5, 0.0), size)
        return _Pair(np.array([size, -size]), np.array([-size, 0.0]) - math.log(2), middle)
    if isinstance(event, DiscreteLaplace):
        return _discrete_laplace(float(event.epsilon), event.shift)
    if isinstance(event, DiscreteGaussian):
        vectors = shifts.vectors(event.shift_squared, event.coordinates)
        losses, log_q = shifts.dominating(float(event.variance), vectors, tail)
        return _Pair(losses, log_q, cut=tail)
    if isinstance(event, RandomizedResponse):
        size, others = float(event.epsilon), event.categories - 1
        log_p = -math.log1p(others * math.exp(-size))
        log_q = np.array([log_p - size, log_p, log_p - size + math.log(max(others - 1, 1))])
        return _Pair(np.array([size, -size, 0.0])[: 1 + others], log_q[: 1 + others])
    if isinstance(event, PureEvent | Approximate):
        delta = float(event.delta) if isinstance(event, Approximate) else 0.0
        size = float(event.epsilon)
        if not size:  # nothing is learned, or everything
            return _Pair(np.zeros(1), np.array([math.log1p(-delta)]), infinite=delta)
        log_p = math.log1p(-delta) - math.log1p(math.exp(-size))
        return _Pair(np.array([size, -size]), np.array([log_p - size, log_p]), infinite=delta)
    raise UnsupportedEventError(f"{type(event).__name__} has no privacy-loss distribution here: price it by rho")


def _gaussian(means: Floats, weights: Floats, tail: float) -> _Pair:
    """sum weights_i N(means_i, 1) against N(0, 1)."""
    reach = -float(special.ndtri(max(tail / 2, 1e-300)))
    piece = Piece(
        (-0.5 * math.log(2 * math.pi), 0.0, -0.5),
        means,
        -means * means / 2,
        weights,
        -reach,
        float(means.max()) + reach,
    )
    return _Pair(piece=piece, cut=tail, symmetric=means.size == 1)


def _line(base: tuple[float, float, float], size: float) -> Piece:
    """A stretch on which z is the loss itself."""
    return Piece(base, np.ones(1), np.zeros(1), np.ones(1), -size, size)


def _discrete_laplace(size: float, shift: int) -> _Pair:
    if shift > _MOST_ATOMS:
        raise UnsupportedEventError("DiscreteLaplace with so large a shift has too many atoms: price it by epsilon")
    k = np.arange(shift + 1, dtype=np.float64)
    per = size / shift
    log_q = math.log(math.tanh(per / 2)) - per * k
    whole = -math.log1p(math.exp(-per))  # of a tail with its first point, relative to the law's own mass there
    log_q[0], log_q[-1] = whole, whole - size
    return _Pair(per * (2 * k - shift), log_q)
