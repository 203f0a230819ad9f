"""Pure DP: epsilon of an event, by exact addition."""

from __future__ import annotations

import math
from fractions import Fraction

from ..errors import UnsupportedEventError
from ..events import Event, Poisson, PureEvent, Shuffled, WithoutReplacement
from .composition import total


def epsilon(event: Event) -> Fraction:
    """The epsilon of an event that has one at delta = 0."""
    return total(event, _one)


def _one(event: Event) -> Fraction:
    if isinstance(event, PureEvent):
        return event.epsilon
    if isinstance(event, Poisson | WithoutReplacement):
        rate = event.rate if isinstance(event, Poisson) else Fraction(event.sample, event.population)
        return sampled(epsilon(event.event), rate)
    if isinstance(event, Shuffled):  # whatever the others send, the own report is epsilon-DP
        return epsilon(event.event)
    raise UnsupportedEventError(
        f"{type(event).__name__} has no pure epsilon: it holds only with a delta above 0. Give the account an "
        "(epsilon, delta) or rho budget, or use Laplace noise."
    )


def sampled(size: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + rate (e^size - 1)), rounded up: Balle, Barthe and Gaboardi 2018, Theorems 8 and 9."""
    if rate == 1:
        return size
    if size > 500:
        return size + Fraction(math.log(rate) * (1 - 1e-14))
    return min(size, Fraction(math.log1p(float(rate) * math.expm1(float(size))) * (1 + 1e-14)))
