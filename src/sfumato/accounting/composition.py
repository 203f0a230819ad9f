"""Composition in any currency that adds up: what several events on the same data cost together."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product

from ..events import Event, Partition, Repeat, Sequence


def total(event: Event, price: Callable[[Event], Fraction]) -> Fraction:
    """The price of an event, given the price of a single mechanism.

    In sequence prices add. In parallel, over parts that no unit shares, the dearest part counts; under replace, where a
    unit may leave one part and enter another, the two dearest (McSherry 2009).
    """
    if isinstance(event, Sequence):
        return sum((total(part, price) for part in event.events), Fraction(0))
    if isinstance(event, Repeat):
        return event.times * total(event.event, price)
    if isinstance(event, Partition):
        return sum(heapq.nlargest(event.touched, (total(part, price) for part in event.events)), Fraction(0))
    return price(event)


def leaves(event: Event) -> Iterator[Event]:
    """The single mechanisms of an event, each once per place."""
    if isinstance(event, Sequence | Partition):
        for part in event.events:
            yield from leaves(part)
    elif isinstance(event, Repeat):
        yield from leaves(event.event)
    else:
        yield event


def mapped(event: Event, change: Callable[[Event, int], Event], times: int = 1) -> Event:
    """The event with every single mechanism changed, given how often it happens."""
    if isinstance(event, Sequence):
        return Sequence(tuple(mapped(part, change, times) for part in event.events))
    if isinstance(event, Partition):
        return Partition(event.column, tuple(mapped(part, change, times * event.touched) for part in event.events))
    if isinstance(event, Repeat):
        return Repeat(mapped(event.event, change, times * event.times), event.times)
    return change(event, times)


def reached(event: Event, most: int) -> list[Counter[Event]] | None:
    """All lists of single mechanisms, with how often each happens, that one unit's change may reach: a partition lets
    it reach one part, or two under replace. None if there are more than `most`."""
    if isinstance(event, Sequence):
        return _products([reached(part, most) for part in event.events], most)
    if isinstance(event, Repeat):
        lists = reached(event.event, most)  # a unit is in the same part every time
        return None if lists is None else [_times(each, event.times) for each in lists]
    if isinstance(event, Partition):
        parts = [reached(part, most) for part in event.events]
        chosen = combinations(parts, min(event.touched, len(parts)))
        return _distinct([_products(list(each), most) for each in chosen], most)
    return [Counter({event: 1})]


def _times(counts: Counter[Event], times: int) -> Counter[Event]:
    return Counter({leaf: count * times for leaf, count in counts.items()})


def _products(parts: list[list[Counter[Event]] | None], most: int) -> list[Counter[Event]] | None:
    totals: list[Counter[Event]] | None = [Counter()]
    for part in parts:
        if totals is None or part is None or len(totals) * len(part) > 4 * most:
            return None
        totals = _distinct([[a + b for a, b in product(totals, part)]], most)
    return totals


def _distinct(lists: list[list[Counter[Event]] | None], most: int) -> list[Counter[Event]] | None:
    distinct: dict[frozenset[tuple[Event, int]], Counter[Event]] = {}
    for group in lists:
        if group is None:
            return None
        distinct.update((frozenset(counts.items()), counts) for counts in group)
    return list(distinct.values()) if len(distinct) <= most else None
