"""Prices of what is not Gaussian noise alone: every way there is, and the least of what comes out."""

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
    Poisson,
    RandomAllocation,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)
from . import pld, renyi, tuning, zcdp
from .amplify import allocation, sampling, shuffle
from .composition import leaves, mapped
from .interval import Interval
from .sums import by_sums

Way = Callable[[], Interval]

_WIDE = 0.02


def epsilon(event: Event, target: Fraction, accuracy: float, floor: float) -> Interval:
    """The least epsilon at a delta above 0."""
    if type(event) in _THEOREMS:
        return _own(event, target)
    bounds = _least(event, _epsilons(event, target, accuracy, floor), lambda: pld.epsilon_at_least(event, target), 0.1)
    with suppress(UnsupportedEventError):  # exact sums are what ledgers compare, and may be less by a hair
        bounds = bounds.both(Interval(0.0, exact.decimal_above(by_sums(event, target))))
    return bounds


def delta(event: Event, target: Fraction, accuracy: float) -> Interval:
    """The least delta at an epsilon."""
    if isinstance(event, Shuffled):
        return shuffle.delta(event, target)
    if isinstance(event, RandomAllocation):
        return allocation.delta(event, target)
    return _least(event, _deltas(event, target, accuracy), lambda: pld.delta_at_least(event, target))


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
