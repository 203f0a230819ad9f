"""What an event costs: the least of all sound prices, known from both sides.

    sf.epsilon(event, delta=1e-6)     sf.delta(event, epsilon=1)

What was fixed in advance is priced by its privacy loss (pld.py), which is tight. A mechanism without a
privacy-loss distribution (random allocation, tuning, anything known by rho alone) is priced by its own theorem at a
share of delta and then composed with the rest as an (epsilon, delta) event; or everything is priced by Rényi
divergence; the least counts. What no accountant can price is refused, with the reasons.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .. import checks, exact
from ..errors import UnsupportedEventError
from ..events import Event, Gaussian
from . import gdp, pure
from .composition import total
from .interval import ACCURACY, DELTA_ACCURACY, FLOOR, Interval


def epsilon(event: Event, *, delta: Any = 0, accuracy: float = ACCURACY) -> Interval:
    """The least epsilon at which the event is (epsilon, delta)-DP, from both sides; float() of it is the upper end.

    >>> from sfumato import epsilon, events
    >>> round(float(epsilon(events.Gaussian(multiplier=2), delta=1e-6)), 4)
    2.2541

    accuracy  the width that is aimed at, relative to epsilon (to 0.01 where it is less)
    """
    checks.instance(event, Event, "event", "an event, such as Gaussian(multiplier=1)")
    target = checks.delta(delta, zero=True)
    checks.positive(accuracy, "accuracy")
    return within(event, target, accuracy, FLOOR)


def within(event: Event, target: Fraction, accuracy: float, floor: float) -> Interval:
    """The same; epsilons below the floor are not told apart more finely than the floor."""
    if not target:
        sure = _sure(event)  # the worst losses add up, and are reached
        return Interval(exact.float_below(sure * (1 - Fraction(1, 10**13))), exact.decimal_above(sure))
    mu_squared = gaussian(event)
    if mu_squared is not None:
        least = gdp.least_epsilon(mu_squared, target)
        return Interval(gdp.epsilon_at_least(mu_squared, least, target), exact.decimal_above(least))
    from . import ways  # here, as it loads every accountant, and Gaussian noise needs none of them

    return ways.epsilon(event, target, accuracy, floor)


def _sure(event: Event) -> Fraction:
    try:
        return pure.epsilon(event)
    except UnsupportedEventError as problem:
        raise UnsupportedEventError(
            f"{type(event).__name__} has no epsilon at delta = 0: give a delta above 0, such as delta=1e-6, well below "
            "one over the number of people"
        ) from problem


def delta(event: Event, *, epsilon: Any, accuracy: float = DELTA_ACCURACY) -> Interval:
    """The least delta at which the event is (epsilon, delta)-DP, from both sides; float() of it is the upper end.

    >>> from sfumato import delta, events
    >>> round(float(delta(events.Gaussian(multiplier=2), epsilon=1)), 6)
    0.00683

    accuracy  the width that is aimed at, relative to delta
    """
    checks.instance(event, Event, "event", "an event, such as Gaussian(multiplier=1)")
    target = checks.bound(epsilon, "epsilon")
    if target < 0:
        raise checks.refuse("epsilon", epsilon, "a number that is not negative")
    checks.positive(accuracy, "accuracy")
    mu_squared = gaussian(event)
    if mu_squared is not None:
        return gdp.delta_within(mu_squared, target)
    from . import ways

    return ways.delta(event, target, accuracy)


def gaussian(event: Event) -> Fraction | None:
    """mu^2 of an event that is Gaussian noise throughout: its curve is certified, and nothing else is needed."""
    try:
        return total(event, _mu_squared)
    except UnsupportedEventError:
        return None


def _mu_squared(event: Event) -> Fraction:
    if isinstance(event, Gaussian):
        return 1 / event.multiplier**2
    raise UnsupportedEventError(f"{type(event).__name__} is not Gaussian noise alone")
