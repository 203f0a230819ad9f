"""Composition in any currency that adds up: what several events on the same data cost together."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction

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
