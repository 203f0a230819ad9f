"""How often an event still fits an account, without asking as often."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from .. import kinds, record
from ..accounting import balance
from ..accounting.filters import Filter, Holds, Member, backed
from ..errors import ArgumentError, BudgetError, UnsupportedEventError
from ..events import Event
from ..plan import Plan
from ..units import Unit
from .stores.base import Account

WINDOW = timedelta(days=30)  # over which a forecast looks back, unless told otherwise

MOST = balance.MANY
_BITS = 512  # as members keep their totals


def times(account: Account, event: Event, delta: Fraction) -> int:
    """How many times in a row the account would accept it.

    The first one may settle the members of a fresh account, so it is spent in earnest. After that the totals grow by
    the same amounts until a member closes: that stretch is leapt over, and the next spend is in earnest again. An
    account has at most a dozen members, so this ends soon.
    """
    filter_, holds, count = account.filter, tuple(account.held.values()), 0
    if filter_ is None:
        return MOST
    while count < MOST:
        try:
            filter_ = filter_.spend(event, delta, holds)
        except BudgetError:
            return count
        steps = _stretch(filter_, event, delta, holds)
        filter_, count = _leap(filter_, event, delta, steps), count + 1 + steps
    return MOST


def _stretch(filter_: Filter, event: Event, delta: Fraction, holds: Holds) -> int:
    """The largest number of spends after which all members are still open."""

    def fits(steps: int) -> bool:
        members = _leap(filter_, event, delta, steps).open
        inside = all(m.spent <= m.limit and m.delta_spent <= m.delta_limit for m in members)
        return inside and (not holds or backed(members, holds))

    if any(member.charge(event, delta) is None for member in filter_.open) or not fits(1):
        return 0
    low, high = 1, 2
    while high < MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _leap(filter_: Filter, event: Event, delta: Fraction, steps: int) -> Filter:
    """The filter after so many spends that close no member. Unless failures are counted apart, all members count the
    largest that one sees."""
    if not steps:
        return filter_
    seen = [member.failure(event, delta) for member in filter_.open]
    seen = seen if filter_.open[-1].apart else [max(seen)] * len(seen)
    members = tuple(
        _after(member, event, delta, failed, steps) for member, failed in zip(filter_.open, seen, strict=True)
    )
    return replace(filter_, open=members, count=filter_.count + steps)


def _after(member: Member, event: Event, delta: Fraction, failed: Fraction, steps: int) -> Member:
    return replace(
        member,
        spent=_sum(member.spent, member.price(event, delta), steps),
        delta_spent=_sum(member.delta_spent, failed, steps),
    )


def _sum(start: Fraction, step: Fraction, steps: int) -> Fraction:
    """start + steps * step, as a member would add it up: exact while denominators are short, else in multiples of
    2^-512, rounded up."""
    if math.lcm(start.denominator, step.denominator).bit_length() <= _BITS:
        return start + steps * step
    unit = 1 << _BITS
    return Fraction(math.ceil(start * unit) + steps * math.ceil(step * unit), unit)


def narrowest_counts(unit: Unit, within: float, alpha: float) -> Iterator[tuple[str, Plan[Any, Any]]]:
    """Counts whose error stays within that with confidence 1 - alpha, each with as much noise as that allows: by every
    registered mechanism that is asked for a count by its noise. Those with an epsilon of their own come first."""
    kinds.load()
    counts = []
    for cls in record.kinds(Plan).values():  # type: ignore[type-abstract]
        plan = _noisiest(partial(cls.counting, unit), within, alpha)
        if type(plan) is cls:  # and not what it only inherits
            counts.append((cls.__name__, plan))
    return iter(sorted(counts, key=lambda named: (not _has_epsilon(named[1]), named[0])))


def _has_epsilon(plan: Plan[Any, Any]) -> bool:
    try:
        return plan.price() > 0
    except UnsupportedEventError:
        return False


def _noisiest(make: Callable[[Fraction], Plan[Any, Any] | None], within: float, alpha: float) -> Plan[Any, Any] | None:
    """By halving on the noise, to a thousandth; the last one that is narrow enough."""
    low, high, best = math.log(1e-4), math.log(1e9), None
    while high - low > 1e-4:
        middle = (low + high) / 2
        plan, wide = None, False
        try:
            plan = make(Fraction(f"{math.exp(middle):.6e}"))
            if plan is None:
                return None
            wide = (plan.expected_error(alpha) or math.inf) > within
        except ArgumentError:
            wide = middle > 0  # no plan at the ends of the range: too much noise, or too little
        best = plan if plan is not None and not wide else best
        low, high = (low, middle) if wide else (middle, high)
    return best
