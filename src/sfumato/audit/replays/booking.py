"""Do the mechanisms that ran cost what was charged, and what was claimed?

Events are compared as they are: each that ran needs one that was charged. Where they are booked in another form (one
event for two halves), prices are compared, the cheap end of what ran with the dear end of what was booked, so that no
honest booking is called short.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from ... import events
from ...accounting import zcdp
from ...accounting.filters import Budget
from ...accounting.price import epsilon
from ...errors import ArgumentError, UnsupportedEventError
from ...events import Event
from .pipeline_runs import Ran
from .recording import OVERSPENT, TWICE, UNUSED, Finding

Claim = float | Fraction | Budget | Event | None

_ROUNDING = 1e-9
_DELTAS = (Fraction(0), Fraction(1, 10**6))
_MANY = 10**5


def check_claim(claim: Any) -> None:
    """Refuse a claim that is none, before anything runs."""
    if claim is None or isinstance(claim, Budget | Event):
        return
    if isinstance(claim, bool) or not isinstance(claim, int | float | Fraction) or not 0 <= claim < math.inf:
        raise ArgumentError("claim is not allowed: give an epsilon, a Budget or an event.")


def accounting(ran: Ran, claim: Claim) -> Iterator[Finding]:
    """What the books of one recorded run get wrong."""
    calls = [call for call in ran.tape.calls if call.ran and call.event is not None]
    foreign = [call for call in calls if "sensitivity" in call.public]
    spent = [call.event for call in foreign if call.event is not None]
    charged = list(ran.tape.charges)
    if foreign and charged:
        yield from _booked([call.name for call in foreign], spent, charged, ran.problem is not None)
    paid = charged if charged else spent  # a curator's calls are charged by its ledger
    if claim is not None:
        yield from _claimed(spent if foreign and _dearer(spent, paid) else paid, claim)


def _booked(names: list[str], spent: list[Event], charged: list[Event], failed: bool) -> Iterator[Finding]:
    ran, booked = Counter(_flat(spent)), Counter(_flat(charged))
    if not (ran - booked):
        unused = sum((booked - ran).values())
        if unused and not failed:
            yield Finding(UNUSED, "the books", f"{unused} of the charges paid for nothing that ran")
        return
    if not _dearer(spent, charged):
        return
    missing = next(iter(ran - booked))
    again = [name for name, event in zip(names, spent, strict=True) if event == missing]
    if booked[missing] and len(again) > booked[missing]:
        words = f"{again[-1]} ran {ran[missing]} times on {booked[missing]} charge(s) of {_told(missing)}"
        yield Finding(TWICE, f"the books: {again[-1]}", words)
    else:
        where = f"the books: {again[-1] if again else names[-1]}"
        yield Finding(OVERSPENT, where, f"{_told(missing)} ran, and nothing that was charged covers it")


def _claimed(spent: list[Event], claim: Claim) -> Iterator[Finding]:
    if not spent:
        return
    whole = spent[0] if len(spent) == 1 else events.Sequence(tuple(spent))
    if isinstance(claim, Event):
        if not (Counter(_flat(spent)) - Counter(_flat([claim]))) or not _dearer(spent, [claim]):
            return
        words = f"what ran costs more than the claimed {_told(claim)}"
    elif isinstance(claim, Budget) and claim.rho is not None:
        rho = float(zcdp.rho(whole))
        if rho <= float(claim.rho) * (1 + _ROUNDING):
            return
        words = f"what ran costs rho = {rho:.6g}, and rho = {float(claim.rho):.6g} is claimed"
    else:
        most, delta = (claim.epsilon, claim.delta) if isinstance(claim, Budget) else (claim, Fraction(0))
        assert most is not None and not isinstance(most, Budget | Event)
        try:
            least = epsilon(whole, delta=delta).lower
        except UnsupportedEventError:  # no epsilon at this delta
            words = f"what ran has no epsilon at delta = {float(delta):g}, and epsilon = {float(most):.6g} is claimed"
            yield Finding(OVERSPENT, "the claim", words)
            return
        if least <= float(most) * (1 + _ROUNDING):
            return
        words = f"what ran costs epsilon = {least:.6g} at least, and {float(most):.6g} is claimed"
    yield Finding(OVERSPENT, "the claim", words)


def _dearer(spent: list[Event], charged: list[Event]) -> bool:
    """Does what ran cost more than what was charged, for sure? Prices are compared where both have one."""
    for delta in _DELTAS:
        with suppress(UnsupportedEventError):
            ran, paid = (epsilon(events.Sequence(tuple(each)), delta=delta) for each in (spent, charged))
            return ran.lower > paid.upper * (1 + _ROUNDING)
    return False


def _flat(listed: list[Event]) -> Iterator[Event]:
    """Sequences and repetitions as their parts."""
    for event in listed:
        if isinstance(event, events.Sequence):
            yield from _flat(list(event.events))
        elif isinstance(event, events.Repeat) and event.times <= _MANY:
            yield from _flat([event.event] * event.times)
        else:
            yield event


def _told(event: Event) -> str:
    return str(event)
