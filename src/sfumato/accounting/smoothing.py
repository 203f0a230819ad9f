"""What any event costs in mu^2, beside a Gaussian that is kept back for ever.

An account that keeps back a Gaussian of mu^2 = t may charge an event D the least b with

    D and the Gaussian of t, together, are no more than a Gaussian of t + b, but for a cut c:
    delta of (D, t) at epsilon  <=  c + (1 - c) delta of Gaussian t + b at epsilon,      for every epsilon >= 0.

By Blackwell's theorem that is the same as: who sees a Gaussian of t + b, or with chance c everything, can act out D and
hand back a Gaussian of t. So one large Gaussian is handed from release to release, and shrinks by b each time
(filters.proof.md, "A Gaussian that is kept back"). Without the one kept back, a small Laplace release would cost 1.57
epsilon^2, since its curve has a corner that no Gaussian has; beside it, the corner is smooth, and it costs hardly more
than epsilon^2, which is what many of them amount to. Trainings cost what their own curve says.

How it is proven for every epsilon. As functions of g = e^epsilon both sides fall and are convex. The left side is known
from above at some places, and lies below the chords between them. The right side lies above its tangents. On each
stretch the chord is compared with the two tangents at its ends, which meet once: three comparisons prove the stretch.
Beyond the last place the left side is at most c.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import exact
from ..errors import UnsupportedEventError
from ..events import (
    BestOf,
    Event,
    Gaussian,
    GaussianMixture,
    Partition,
    Poisson,
    PureEvent,
    RandomAllocation,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)
from . import gdp, pairs, price
from .lattice import LatticeCells

Floats = NDArray[np.float64]

_QUICK_PLACES, _PLACES, _SLOW_PLACES = 256, 48, 24  # more where the curve is quick to work out
_LOSSES = 64  # nodes between no loss and the largest
_MARGIN = 1e-8  # relative: what float64 may be off here, with room to spare
_FINE = 1e-5
_MOST = 1600.0  # mu^2 of which nothing is left to hide
_LIGHT = 1024  # of the cut, what events without heavy tails need
_HEAVY = (BestOf, GaussianMixture, Poisson, RandomAllocation, Shuffled, WithoutReplacement, ZeroConcentrated)


@lru_cache(maxsize=4096)
def mu_squared(event: Event, kept_back: Fraction, cut: Fraction) -> tuple[Fraction, Fraction]:
    """What the event costs in mu^2, rounded up, beside a Gaussian of multiplier `kept_back`, and its cut."""
    own = price.gaussian(event)
    if own is not None:
        return own, Fraction(0)
    chance = cut if _has(event, _HEAVY) else cut / _LIGHT
    places, above = _one_pure(event, kept_back, chance) or _any(event, kept_back, chance)
    curve = np.maximum((above - float(chance)) / (1 - float(chance)), 0.0) * (1 + _MARGIN)
    return _least(places, curve, float(1 / kept_back**2)), chance


def _one_pure(event: Event, kept_back: Fraction, chance: Fraction) -> tuple[Floats, Floats] | None:
    """The curve of (event, kept_back) from above, of one pure release beside Gaussians: the mean of the Gaussian curve
    over the losses of the release, which are few on a lattice. None for any other event."""
    parts = event.events if isinstance(event, Sequence) else (event,)
    others = [part for part in parts if not isinstance(part, Gaussian)]
    if len(others) != 1 or not isinstance(others[0], PureEvent):
        return None
    noise = sum((1 / part.multiplier**2 for part in parts if isinstance(part, Gaussian)), 1 / kept_back**2)
    size, mu = exact.float_above(others[0].epsilon), exact.sqrt_above(noise)
    if size > _MOST:
        raise UnsupportedEventError(f"{type(event).__name__} loses too much for a price in mu^2")
    places = np.linspace(0.0, size + float(gdp.least_epsilon(Fraction(mu) ** 2, chance)), _QUICK_PLACES + 1)
    above = np.zeros(places.size)
    for law in pairs.directions(others[0], 0.0):
        lattice = LatticeCells.of(law, size / _LOSSES)[1].upper()
        beside = _gaussian(mu, places[:, None] - lattice.losses[None, :])[0] @ lattice.p + lattice.infinite
        above = np.maximum(above, np.minimum(beside * (1 + _MARGIN), 1.0))
    above[-1] = min(above[-1], float(chance))  # the loss of the release is at most its epsilon
    return places, above


def _any(event: Event, kept_back: Fraction, chance: Fraction) -> tuple[Floats, Floats]:
    """The curve of (event, kept_back) from above, place by place, as the accountant knows it."""
    together = Sequence((event, Gaussian(multiplier=kept_back, relation=event.relation)))
    last = price.epsilon(together, delta=chance).upper
    if not math.isfinite(last) or last > _MOST:
        raise UnsupportedEventError(f"{type(event).__name__} loses too much for a price in mu^2")
    count = _SLOW_PLACES if _has(event, (ZeroConcentrated, BestOf)) else _PLACES
    places = np.linspace(0.0, last, count + 1) if last > 0 else np.zeros(1)
    deltas = [price.delta(together, epsilon=place).upper for place in places[:-1].tolist()]
    return places, np.array([*deltas, float(chance)])


def _has(event: Event, kinds: tuple[type[Event], ...]) -> bool:
    """Is one of these kinds somewhere in the event?"""
    if isinstance(event, Sequence | Partition):
        return any(_has(part, kinds) for part in event.events)
    if isinstance(event, Repeat):
        return _has(event.event, kinds)
    return isinstance(event, kinds)


def _least(places: Floats, curve: Floats, kept_back: float) -> Fraction:
    """The least b that is proven, rounded up."""
    high = max(kept_back, 1e-12) * 1e-3
    while not dominates(kept_back + high, places, curve):
        high *= 2
        if high > _MOST:
            raise UnsupportedEventError("its privacy loss has no Gaussian above it")
    low = high / 2
    while high - low > _FINE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if dominates(kept_back + middle, places, curve) else (middle, high)
    return Fraction(high * (1 + 1e-12))


def dominates(mu_squared: float, places: Floats, curve: Floats) -> bool:
    """Is the Gaussian of that mu^2 proven to lie above all chords of the curve, and above 0 beyond the last place?"""
    height, slope = _gaussian(math.sqrt(mu_squared), places)
    height = height * (1 - _MARGIN)
    if np.any(curve > height):
        return False
    if places.size == 1:
        return True
    # In units of the left end, g = e^(epsilon - its epsilon): tangents from both ends meet between them.
    step = np.expm1(np.diff(places))
    left, right = slope[:-1], slope[1:] * np.exp(-np.diff(places))
    fall = height[1:] - right * step  # the right tangent, seen at the left end
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = np.clip(np.where(left < right, (fall - height[:-1]) / (left - right), step), 0.0, step)
    tangent = np.maximum(height[:-1] + left * meet, fall + right * meet)
    chord = curve[:-1] + (curve[1:] - curve[:-1]) * meet / step
    return bool(np.all(chord <= tangent * (1 - _MARGIN) + np.where(chord <= 0, 1.0, 0.0)))


def _gaussian(mu: float, places: Floats) -> tuple[Floats, Floats]:
    """The Gaussian curve at these epsilons, and its slope there for g = 1 at each: -g Phi(-mu/2 - epsilon/mu)."""
    upper, lower = special.log_ndtr(mu / 2 - places / mu), special.log_ndtr(-mu / 2 - places / mu)
    return np.exp(upper) * -np.expm1(np.minimum(places + lower - upper, 0.0)), -np.exp(places + lower)
