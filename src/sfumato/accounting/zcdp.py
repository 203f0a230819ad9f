"""Zero-concentrated DP (Bun and Steinke 2016): rho of an event, and what rho means as (epsilon, delta)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from ..errors import UnsupportedEventError
from ..events import DiscreteGaussian, Event, Exponential, Gaussian, PureEvent, ZeroConcentrated
from ..exact import float_above, float_below
from . import brent
from .composition import total

_UP = 1 + 1e-12  # covers the rounding of a dozen float64 operations


def rho(event: Event) -> Fraction:
    """The rho of an event, exact."""
    return total(event, _one)


def _one(event: Event) -> Fraction:
    if isinstance(event, Exponential):
        return event.epsilon**2 / 8  # bounded range: Cesar and Rogers 2021, Lemma 3.4
    if isinstance(event, PureEvent):
        return event.epsilon**2 / 2  # Bun and Steinke 2016, Proposition 1.4
    if isinstance(event, Gaussian):
        return 1 / (2 * event.multiplier**2)
    if isinstance(event, DiscreteGaussian):
        return event.shift_squared / (2 * event.variance)  # Canonne, Kamath and Steinke 2020, Theorem 14
    if isinstance(event, ZeroConcentrated):
        return event.rho
    raise UnsupportedEventError(
        f"{type(event).__name__} has no zCDP price: it may fail with probability delta. Give the account an "
        "(epsilon, delta) budget instead."
    )


@lru_cache(maxsize=1024)
def epsilon(size: Fraction, delta: Fraction) -> Fraction:
    """The epsilon of rho-zCDP at delta: Canonne, Kamath and Steinke 2020, Proposition 12, at the best order.

    Every order alpha > 1 gives a valid epsilon, so the minimiser's accuracy cannot make it unsafe.
    """
    whole, log_delta = float_above(size), math.log(delta)

    def at(log_order: float) -> float:
        less = math.exp(log_order)  # alpha - 1
        order = 1 + less
        return order * whole + math.log1p(-1 / order) - (log_delta + math.log(order)) / less

    best, _ = brent.least(at, -30, 30, absolute=1e-10)
    value = at(best)
    return Fraction(max(0.0, value + abs(value) * (_UP - 1) + 1e-14))


@lru_cache(maxsize=1024)
def delta(size: Fraction, epsilon: Fraction) -> float:
    """The delta of rho-zCDP at epsilon >= 0: Canonne, Kamath and Steinke 2020, Proposition 12, the other way round.

    At order alpha, ln delta = (alpha - 1)(alpha rho - epsilon) - ln alpha + (alpha - 1) ln(1 - 1/alpha). Each order is
    valid, and so is total variation, sqrt(1 - e^-rho) at most (Bretagnolle and Huber 1979): it covers large deltas.
    """
    whole, limit = float_above(size), float_below(epsilon)

    def at(log_order: float) -> float:
        less = math.exp(log_order)
        order = 1 + less
        value = less * (order * whole - limit) - math.log(order) + less * math.log1p(-1 / order)
        return value + 1e-14 * (less * (order * whole + limit) + math.log(order) + 1)

    top = math.log((limit + 1) / whole + 2)  # convex in alpha; its slope rho (2 alpha - 1) - epsilon + ... is > 0 there
    best, _ = brent.least(at, -30, top, absolute=1e-9)
    log_variation = 0.5 * math.log(-math.expm1(-whole))
    return min(1.0, math.nextafter(math.exp(min(at(best), log_variation)) * _UP, 1))


@lru_cache(maxsize=1024)
def largest_rho(limit: Fraction, delta: Fraction) -> Fraction:
    """The largest rho whose epsilon at delta stays within `limit`, rounded down."""
    high = limit  # rho-zCDP at a delta below 1/2 has epsilon above rho
    low = Fraction(0)
    for _ in range(60):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if epsilon(middle, delta) <= limit else (low, middle)
    return low
