"""Prices are worked out before the ledger is locked: whoever is slow to price keeps nobody waiting.

What an event costs an account depends on which members it has, and on what is held there: on nothing that a spend
moves. So a transaction that meets a price which this process has not worked out yet leaves at once, with nothing
written; it is worked out while nobody waits, and the transaction begins again. It reads the accounts anew then, and
where their members or holds have changed meanwhile, the price is another one, and it leaves again. What is compared and
committed is always computed inside, from what is stored; outside, prices are only remembered (accounting/members.py).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from ..accounting.filters import HeldSteps, Hold
from ..errors import LedgerError, SfumatoError
from .stores.base import Account

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_WORKED_OUT: dict[Hashable, None] = {}
_MOST = 4096  # as many as the prices that are remembered
_ATTEMPTS = 100  # each fails only because members or holds of an account were changed meanwhile
_THREAD = threading.local()


class UnpricedError(Exception):
    """Something has to be priced before the ledger is asked again."""

    def __init__(self, terms: Hashable, price: Callable[[], object]) -> None:
        super().__init__("a price is not worked out yet")
        self._terms, self._price = terms, price

    def work_out(self) -> None:
        with suppress(SfumatoError):  # what it refuses is refused inside, in the words of that moment
            self._price()
        if len(_WORKED_OUT) >= _MOST:
            _WORKED_OUT.clear()
        _WORKED_OUT[self._terms] = None


def outside(terms: Hashable, price: Callable[[], object]) -> None:
    """Leave the transaction, unless this was worked out before."""
    if terms not in _WORKED_OUT:
        raise UnpricedError(terms, price)


def priced_as(accounts: Mapping[str, Account]) -> Hashable:
    """What prices on these accounts depend on. Numbers that a spend moves are not among it."""
    return tuple(
        [
            (
                account.filter.fresh and account.filter.budget,
                tuple([member.terms for member in account.filter.open]),
                tuple([_of_hold(hold) for hold in account.held.values()]),
            )
            for account in accounts.values()
            if account.filter is not None
        ]
    )


def _of_hold(hold: Hold | HeldSteps) -> Hashable:
    return hold.event, tuple([(event, delta) for event, delta, _ in getattr(hold, "drawn", ())])


def priced_before(act: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Begin again, from outside of the transaction, after each price that was missing. What is called within such an
    act leaves that to the outermost: theirs is the transaction."""

    @functools.wraps(act)
    def again(self: S, /, *arguments: P.args, **named: P.kwargs) -> T:
        if getattr(_THREAD, "begun", False):
            return act(self, *arguments, **named)
        _THREAD.begun = True
        try:
            for _ in range(_ATTEMPTS):
                try:
                    return act(self, *arguments, **named)
                except UnpricedError as missing:
                    missing.work_out()
        finally:
            _THREAD.begun = False
        raise LedgerError("the accounts change faster than this can be priced: nothing was charged; try again")

    return again
