"""f-DP: the trade-off of an event, from below.

An attacker who is to tell two neighbours apart has a false-positive rate alpha and a false-negative rate beta. The
trade-off function f(alpha) is the least beta there is (Dong, Roth and Su 2022): convex, falling, and symmetric here,
since neighbours may be taken in either order. What is reported lies at or below it: no attacker does better.

  exact       pure and (epsilon, delta) events, randomized response, Laplace, Gaussians and their compositions
  otherwise   f(alpha) >= 1 - delta(epsilon) - e^epsilon alpha  and  f(alpha) >= e^-epsilon (1 - delta(epsilon) - alpha)
              for every epsilon (Proposition 2.13 there), with upper bounds of delta(epsilon) at some epsilons. Any
              choice of epsilons is a valid bound; more of them only lie closer.

Trade-offs compose through events: tradeoff(Sequence((a, b))).
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Several
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .. import checks, exact
from ..checks import Exact
from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Gaussian, Laplace, PermuteAndFlip, Pure, RandomizedResponse
from . import gdp, price, pure
from .composition import total

Floats = NDArray[np.float64]

_UP, _DOWN = 1 + 1e-12, 1 - 1e-12  # cover the rounding of a dozen float64 operations
_HAIR = 4e-15
_POINTS = 48
_LEAST_DELTAS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1)
_MOST_LINES = 120


class Smooth(Protocol):
    """A trade-off known in closed form, rounded down; its delta rounded up."""

    def beta(self, alpha: Floats) -> Floats: ...
    def delta(self, epsilon: float) -> float: ...
    def epsilon(self, delta: Fraction) -> float: ...
    def group(self, size: int) -> Smooth: ...


@dataclass(frozen=True)
class GaussianCurve:
    """G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)."""

    mu_squared: Fraction

    @property
    def mu(self) -> float:
        return exact.sqrt_above(self.mu_squared)

    def beta(self, alpha: Floats) -> Floats:
        z = -special.ndtri(alpha) - self.mu
        return np.asarray(special.ndtr(z - 1e-14 * (np.minimum(np.abs(z), 1e9) + self.mu + 1)) * _DOWN)

    def delta(self, epsilon: float) -> float:
        z = self.mu / 2 - epsilon / self.mu  # a difference, off by some roundings of its first term
        return min(gdp.delta(self.mu, epsilon) * _UP + 1e-13 * (1 + z * z) * float(special.ndtr(z)), 1.0)

    def epsilon(self, delta: Fraction) -> float:
        return exact.float_above(gdp.least_epsilon(self.mu_squared, delta))

    def group(self, size: int) -> GaussianCurve:
        return GaussianCurve(self.mu_squared * size**2)


@dataclass(frozen=True)
class LaplaceCurve:
    """Two Laplace laws of scale 1, epsilon apart: 1 - e^epsilon alpha, then e^-epsilon / (4 alpha), then the mirror."""

    size: Fraction

    def beta(self, alpha: Floats) -> Floats:
        size = exact.float_above(self.size)
        with np.errstate(divide="ignore", over="ignore"):
            log_alpha = np.log(alpha)
            steep = 1 - np.exp(np.minimum(size + log_alpha, 1.0))
            middle = np.exp(np.minimum(-size - log_alpha - math.log(4), 0.0))
        flat = math.exp(-size) * (1 - alpha)
        curve = np.where(size + log_alpha < -math.log(2), steep, np.where(alpha <= 0.5, middle, flat))
        return np.maximum(curve * _DOWN - 1e-13 * (curve > 0.4), 0.0)

    def delta(self, epsilon: float) -> float:
        return min(max(0.0, -math.expm1(min(epsilon - exact.float_above(self.size), 0.0) / 2) * _UP), 1.0)

    def epsilon(self, delta: Fraction) -> float:
        return max(exact.float_above(self.size) + 2 * math.log1p(-exact.float_below(delta)) * _DOWN + _HAIR, 0.0)

    def group(self, size: int) -> LaplaceCurve:
        return LaplaceCurve(self.size * size)


@dataclass(frozen=True)
class Tradeoff:
    """The least false-negative rate of any attacker at each false-positive rate; never above the truth."""

    event: Event
    epsilons: tuple[float, ...] = ()  # where delta(epsilon) is at most ...
    deltas: tuple[float, ...] = ()  # ... this; both empty for a smooth curve
    smooth: Smooth | None = None

    def __call__(self, alpha: ArrayLike) -> Any:
        """beta at alpha, rounded down: a float for a number, an array for an array."""
        alphas = np.asarray(alpha, dtype=np.float64)
        if not np.all((alphas >= 0) & (alphas <= 1)):
            raise checks.refuse("alpha", alpha, "rates from 0 to 1")
        flat = alphas.reshape(-1)
        beta = self._lines(flat) if self.smooth is None else self.smooth.beta(flat)
        beta = np.clip(beta, 0.0, 1 - flat).reshape(alphas.shape)
        return beta if alphas.ndim else float(beta)

    def _lines(self, alpha: Floats) -> Floats:
        size, own = np.array(self.epsilons)[:, None], np.array(self.deltas)[:, None]
        with np.errstate(divide="ignore"):
            rise = np.exp(np.minimum(size + np.log(alpha), 1.0))  # above e^0 the line is below 0 anyway
        steep = 1 - own - rise * _UP
        flat = np.exp(-size) * (1 - own - alpha) * _DOWN
        return np.asarray(np.maximum(np.maximum(steep, flat).max(axis=0) - _HAIR, 0.0))

    def power(self, fpr: ArrayLike) -> Any:
        """The best attacker's true-positive rate at a false-positive rate, rounded up."""
        return np.minimum(1 - np.asarray(self(fpr)) + _HAIR, 1.0)[()]

    def advantage(self) -> float:
        """The most that true-positive rate can exceed false-positive rate: the total variation distance."""
        return self.delta(epsilon=0)

    def delta(self, *, epsilon: Exact) -> float:
        """The least delta at epsilon that this curve promises, rounded up."""
        target = checks.rational(epsilon, "epsilon", "a number, not below 0")
        if target < 0:
            raise checks.refuse("epsilon", epsilon, "a number, not below 0")
        size = exact.float_below(target)
        if self.smooth is not None:
            return self.smooth.delta(size)
        nodes, values = self._knots()
        i = int(np.searchsorted(nodes, size, side="right"))
        if i == nodes.size:
            return float(values[-1])
        share = _share(size - nodes[i - 1], nodes[i] - nodes[i - 1]) * _DOWN
        return min(float(values[i - 1] + share * (values[i] - values[i - 1])) * _UP, 1.0)

    def epsilon(self, *, delta: Exact) -> float:
        """The least epsilon at delta that this curve promises, rounded up."""
        target = checks.delta(delta, zero=True)
        size = exact.float_below(target)
        if self.smooth is not None:
            if not size and isinstance(self.smooth, GaussianCurve):
                raise UnsupportedEventError("Gaussian noise has no epsilon at delta = 0: ask for a delta above 0")
            return self.smooth.epsilon(target)
        nodes, values = self._knots()
        if size < values[-1]:
            raise UnsupportedEventError(
                f"this trade-off curve is known down to delta = {values[-1]:.3g}: ask sf.epsilon(event, delta=...)"
            )
        i = int(np.flatnonzero(values <= size)[0])
        if i == 0:
            return max(float(nodes[0]), 0.0)
        share = (values[i - 1] - size) / (values[i - 1] - values[i])
        crossing = nodes[i] + math.log(share + (1 - share) * math.exp(nodes[i - 1] - nodes[i]))
        return float(min(max(crossing + 1e-12 * (1 + abs(nodes[i])), 0.0), nodes[i]))

    def _knots(self) -> tuple[Floats, Floats]:
        """delta at rising epsilons; between them a chord in e^epsilon lies above it (delta is convex there). The mirror
        of the first point comes first: delta(-e) = 1 - e^-e (1 - delta(e))."""
        nodes, values = np.array(self.epsilons), np.array(self.deltas)
        if nodes[0] <= 0:
            return nodes, values
        return np.append(-nodes[0], nodes), np.append(_mirrored(nodes[:1], values[:1]), values)

    def group(self, size: int) -> Tradeoff:
        """The trade-off for a group of `size` units, 1 - (1 - f) o ... o (1 - f) (Dong, Roth and Su, Theorem 2.14).

        1 - f is the least of some lines a + e^s alpha, so its iterate is the least of all their compositions; some of
        these lines are kept, which errs to the safe side.
        """
        size = checks.whole(size, "size", most=10**6)
        if size == 1:
            return self
        if self.smooth is not None:
            return replace(self, smooth=self.smooth.group(size))
        nodes, values = np.array(self.epsilons), np.array(self.deltas)
        one = (np.append(-nodes, nodes), np.append(_mirrored(nodes, values), values))
        done: tuple[Floats, Floats] | None = None
        for bit in bin(size)[2:]:
            if done is not None:
                done = _iterated(done, done)
            if bit == "1":
                done = one if done is None else _iterated(done, one)
        assert done is not None
        steep = done[0] >= 0
        return _polygon(self.event, done[0][steep], done[1][steep])


def _mirrored(epsilons: Floats, deltas: Floats) -> Floats:
    """1 - e^-epsilon (1 - delta), rounded up."""
    return np.asarray((-np.expm1(-epsilons) + np.exp(-epsilons) * deltas) * _UP)


def _share(offset: float, width: float) -> float:
    """(e^offset - 1) / (e^width - 1), for 0 <= offset <= width, without overflow."""
    return math.exp(offset - width) * math.expm1(-offset) / math.expm1(-width) if width > 0 else 0.0


def _iterated(outer: tuple[Floats, Floats], inner: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """All compositions of lines, thinned to those that are lowest somewhere on a fine grid of alphas."""
    slopes = (outer[0][:, None] + inner[0][None, :]).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        heights = (outer[1][:, None] + np.exp(outer[0])[:, None] * inner[1][None, :] * _UP).reshape(-1)
    useful = np.flatnonzero(heights < 1)  # nan: infinity times 0, a line that no float64 alpha can see
    slopes, heights = slopes[useful], heights[useful]
    if slopes.size == 0:
        return np.zeros(1), np.ones(1)
    alphas = np.append(0.0, np.logspace(-18, 0, _MOST_LINES - 1))
    hull: set[int] = set()
    for alpha in alphas:
        with np.errstate(over="ignore", invalid="ignore"):
            hull.add(int(np.argmin(heights + (alpha * np.exp(np.minimum(slopes, 700.0)) if alpha else 0.0))))
    chosen = np.array(sorted(hull))
    return slopes[chosen], heights[chosen]


def _polygon(event: Event, epsilons: ArrayLike, deltas: ArrayLike) -> Tradeoff:
    """Points in order; a delta that holds at a smaller epsilon holds here too."""
    nodes, values = np.asarray(epsilons, dtype=np.float64), np.asarray(deltas, dtype=np.float64)
    if not nodes.size:
        nodes, values = np.zeros(1), np.ones(1)
    order = np.lexsort((values, nodes))
    nodes, first = np.unique(nodes[order], return_index=True)
    values = np.minimum.accumulate(np.minimum(values[order][first], 1.0))
    return Tradeoff(event, tuple(nodes.tolist()), tuple(values.tolist()))


@lru_cache(maxsize=256)
def tradeoff(event: Event) -> Tradeoff:
    """The trade-off function of an event, from below.

    >>> from sfumato import events, tradeoff
    >>> round(tradeoff(events.Gaussian(multiplier=2))(0.05), 4)
    0.8739
    """
    checks.instance(event, Event, "event", "an event")
    try:
        return Tradeoff(event, smooth=GaussianCurve(total(event, _mu_squared)))
    except UnsupportedEventError:
        pass
    if isinstance(event, Laplace):
        return Tradeoff(event, smooth=LaplaceCurve(event.epsilon))
    if isinstance(event, RandomizedResponse):
        size = exact.float_above(event.epsilon)
        keep = -math.expm1(-size) / (1 + (event.categories - 1) * math.exp(-size))  # p - q
        return _polygon(event, (0.0, size), (keep * _UP, 0.0))
    if isinstance(event, Pure | PermuteAndFlip):
        return _polygon(event, (exact.float_above(event.epsilon),), (0.0,))
    if isinstance(event, Approximate):
        return _polygon(event, (exact.float_above(event.epsilon),), (exact.float_above(event.delta),))
    return _from_curve(event)


def _mu_squared(event: Event) -> Fraction:
    if not isinstance(event, Gaussian):
        raise UnsupportedEventError(f"{type(event).__name__} is not Gaussian")
    return 1 / event.multiplier**2


def _from_curve(event: Event) -> Tradeoff:
    """By upper bounds of delta at epsilons from 0 to where delta is next to nothing."""
    last = _LEAST_DELTAS[-1]
    for least in _LEAST_DELTAS:  # an event with a delta of its own has no epsilon below it
        try:
            far = _upper_epsilon(event, least)
            break
        except UnsupportedEventError:
            if least == last:
                raise
    nodes = np.linspace(0.0, far, _POINTS)[:-1].tolist()
    nodes, values = [*nodes, far], [*_upper_deltas(event, nodes), least]
    with suppress(UnsupportedEventError):
        nodes, values = [*nodes, exact.float_above(pure.epsilon(event))], [*values, 0.0]
    return _polygon(event, nodes, values)


def _upper_epsilon(event: Event, delta: float) -> float:
    return float(price.epsilon(event, delta=delta))


def _upper_deltas(event: Event, epsilons: Several[float]) -> list[float]:
    return [float(price.delta(event, epsilon=each)) for each in epsilons]
