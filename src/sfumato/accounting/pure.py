"""Pure DP: epsilon of an event, by exact addition."""

from __future__ import annotations

from fractions import Fraction

from ..errors import UnsupportedEventError
from ..events import Event, PureEvent
from .composition import total


def epsilon(event: Event) -> Fraction:
    """The epsilon of an event that has one at delta = 0."""
    return total(event, _one)


def _one(event: Event) -> Fraction:
    if isinstance(event, PureEvent):
        return event.epsilon
    raise UnsupportedEventError(
        f"{type(event).__name__} has no pure epsilon: it holds only with a delta above 0. Give the account an "
        "(epsilon, delta) or rho budget, or use Laplace noise."
    )
