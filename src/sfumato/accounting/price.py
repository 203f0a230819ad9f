"""What an event costs: the least of all sound prices, known from both sides.

    sf.epsilon(event, delta=1e-6)     sf.delta(event, epsilon=1)

What was fixed in advance is priced by its privacy loss (pld.py), which is tight. A mechanism without a
privacy-loss distribution (random allocation, tuning, anything known by rho alone) is priced by its own theorem at a
share of delta and then composed with the rest as an (epsilon, delta) event; or everything is priced by Rényi
divergence; the least counts. What no accountant can price is refused, with the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from .. import checks, exact
from ..errors import UnsupportedEventError
from ..events import (
    Approximate,
    BestOf,
    Event,
    Gaussian,
    Poisson,
    RandomAllocation,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)
from . import gdp, pld, pure, renyi, tuning, zcdp
from .amplify import allocation, sampling, shuffle
from .composition import leaves, mapped, total
from .interval import Interval
from .sums import by_sums

Way = Callable[[], Interval]

_WIDE = 0.02


def epsilon(event: Event, *, delta: Any = 0, accuracy: float = pld.ACCURACY) -> Interval:
    """The least epsilon at which the event is (epsilon, delta)-DP, from both sides; float() of it is the upper end.

    >>> from sfumato import epsilon, events
    >>> round(float(epsilon(events.Gaussian(multiplier=2), delta=1e-6)), 4)
    2.2541

    accuracy  the width that is aimed at, relative to epsilon (to 0.01 where it is less)
    """
    checks.instance(event, Event, "event", "an event, such as Gaussian(multiplier=1)")
    target = checks.delta(delta, zero=True)
    checks.positive(accuracy, "accuracy")
    return within(event, target, accuracy, pld.FLOOR)


def within(event: Event, target: Fraction, accuracy: float, floor: float) -> Interval:
    """The same; epsilons below the floor are not told apart more finely than the floor."""
    if not target:
        sure = _sure(event)  # the worst losses add up, and are reached
        return Interval(exact.float_below(sure * (1 - Fraction(1, 10**13))), exact.decimal_above(sure))
    if type(event) in _THEOREMS:
        return _own(event, target)
    mu_squared = gaussian(event)
    if mu_squared is not None:
        least = gdp.least_epsilon(mu_squared, target)
        return Interval(gdp.epsilon_at_least(mu_squared, least, target), exact.decimal_above(least))
    bounds = _least(event, _epsilons(event, target, accuracy, floor), lambda: pld.epsilon_at_least(event, target), 0.1)
    with suppress(UnsupportedEventError):  # exact sums are what ledgers compare, and may be less by a hair
        bounds = bounds.both(Interval(0.0, exact.decimal_above(by_sums(event, target))))
    return bounds


def _sure(event: Event) -> Fraction:
    try:
        return pure.epsilon(event)
    except UnsupportedEventError as problem:
        raise UnsupportedEventError(
            f"{type(event).__name__} has no epsilon at delta = 0: give a delta above 0, such as delta=1e-6, well below "
            "one over the number of people"
        ) from problem


def delta(event: Event, *, epsilon: Any, accuracy: float = pld.DELTA_ACCURACY) -> Interval:
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
    if isinstance(event, Shuffled):
        return shuffle.delta(event, target)
    if isinstance(event, RandomAllocation):
        return allocation.delta(event, target)
    mu_squared = gaussian(event)
    if mu_squared is not None:
        return gdp.delta_within(mu_squared, target)
    return _least(event, _deltas(event, target, accuracy), lambda: pld.delta_at_least(event, target))


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


def _least(event: Event, ways: Iterator[Way], at_least: Callable[[], float], floor: float = 0.0) -> Interval:
    """The least upper end; the first way is the tight one, and the others are tried where it fails or is wide (beside
    its own size, or beside the floor)."""
    intervals: list[Interval] = []
    reasons: list[str] = []
    for way in ways:
        try:
            intervals.append(way())
        except UnsupportedEventError as problem:
            reasons.append(str(problem).rstrip("."))
            continue
        if len(intervals) == 1 and not reasons and intervals[0].width <= _WIDE * max(intervals[0].upper, floor):
            return intervals[0]
    if not intervals:
        raise UnsupportedEventError(
            f"no accountant prices {type(event).__name__}: " + "; ".join(dict.fromkeys(reasons))
        )
    upper = min(each.upper for each in intervals)
    lower = max(each.lower for each in intervals)
    if reasons:
        with suppress(UnsupportedEventError):
            lower = max(lower, at_least())
    return Interval(min(lower, upper), upper)


def _epsilons(event: Event, target: Fraction, accuracy: float, floor: float) -> Iterator[Way]:
    yield lambda: pld.epsilon(event, target, accuracy=accuracy, floor=floor)
    yield lambda: Interval(0.0, renyi.epsilon(event, target))
    yield lambda: Interval(0.0, pld.epsilon(_by_parts(event, target), target).upper)
    yield lambda: Interval(0.0, exact.float_above(by_sums(event, target)))


def _deltas(event: Event, target: Fraction, accuracy: float) -> Iterator[Way]:
    yield lambda: pld.delta(event, target, accuracy=accuracy)
    yield lambda: Interval(0.0, renyi.delta(event, target))
    yield lambda: Interval(0.0, _where(lambda share: by_sums(event, share), target, 1e-4))
    yield lambda: Interval(
        0.0, _where(lambda share: Fraction(pld.epsilon(_by_parts(event, share), share).upper), target, 0.01)
    )


def _where(price: Callable[[Fraction], Fraction], target: Fraction, accuracy: float) -> float:
    """The least delta at which a price is within epsilon, to so much, relative; any that is serves."""
    price(Fraction(1, 2))
    low, high = math.log(1e-100), 0.0
    while high - low > accuracy:
        middle = (low + high) / 2
        try:
            fits = price(Fraction(math.exp(middle))) <= target
        except UnsupportedEventError:  # needs a larger delta
            fits = False
        low, high = (low, middle) if fits else (middle, high)
    return math.exp(high)


def _by_parts(event: Event, target: Fraction) -> Event:
    """The event with every mechanism that has no privacy-loss distribution as (epsilon, delta), of half of delta in
    all."""
    count = sum(_own_price(leaf) for leaf in leaves(event))
    if not count:
        raise UnsupportedEventError("its parts have no other price")

    def change(leaf: Event, times: int) -> Event:
        if not _own_price(leaf):
            return leaf
        share = target / (2 * count * times)
        least = _own(leaf, share).upper
        size = Fraction(max(least, 1e-9)) if least else Fraction(0)
        if size > checks.EPSILON_RANGE[1]:
            raise UnsupportedEventError(f"{type(leaf).__name__} alone costs more than epsilon = 10000")
        return Approximate(epsilon=size, delta=share, relation=leaf.relation)

    return mapped(event, change)


def _own(event: Event, target: Fraction) -> Interval:
    """The price of one mechanism by its own theorem."""
    if isinstance(event, Poisson | WithoutReplacement):
        return Interval(0.0, sampling.epsilon(event, target))
    return _THEOREMS[type(event)](event, target)


def _own_price(event: Event) -> bool:
    if isinstance(event, Poisson | WithoutReplacement):
        return isinstance(event.event, Approximate) or _own_price(event.event)
    return isinstance(event, RandomAllocation | BestOf | ZeroConcentrated)


_THEOREMS: dict[type[Event], Callable[[Any, Fraction], Interval]] = {
    Shuffled: shuffle.epsilon,
    RandomAllocation: allocation.epsilon,
    BestOf: lambda event, target: Interval(0.0, tuning.epsilon(event, target)),
    ZeroConcentrated: lambda event, target: Interval(
        pld.epsilon_at_least(event, target), exact.float_above(zcdp.epsilon(event.rho, target))
    ),
}
