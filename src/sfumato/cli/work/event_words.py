"""An event in words, for the screen."""

from __future__ import annotations

from fractions import Fraction

from ...events import (
    Event,
    Gaussian,
    Partition,
    Poisson,
    PureEvent,
    RandomAllocation,
    Repeat,
    Sequence,
    ZeroConcentrated,
)

_MOST = 4  # parts of a list that are told one by one


def words(event: Event) -> str:
    """What happens, on one line where that is possible."""
    if isinstance(event, Repeat):
        return f"{event.times:,} times {words(event.event)}"
    if isinstance(event, Poisson):
        return f"{words(event.event)} on a sample of rate {_number(event.rate)}"
    if isinstance(event, RandomAllocation):
        return f"{words(event.event)}, each unit in {event.picks} of {event.steps:,} steps"
    if isinstance(event, Partition):
        return f"on the parts by {event.column!r}: {_several(event.events)}"
    if isinstance(event, Sequence):
        return _several(event.events)
    if isinstance(event, Gaussian):
        return f"Gaussian noise of {_number(event.multiplier)} times the sensitivity"
    if isinstance(event, ZeroConcentrated):
        return f"something of rho = {_number(event.rho)}"
    if isinstance(event, PureEvent):
        return f"{type(event).__name__} of epsilon = {_number(event.epsilon)}"
    return type(event).__name__


def _several(events: tuple[Event, ...]) -> str:
    parts = [words(each) for each in events[:_MOST]]
    return "; ".join([*parts, *([f"and {len(events) - _MOST} more"] if len(events) > _MOST else [])])


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"
