"""Where accounts stand: spent, left, held, and what would still fit. Nothing here writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..accounting.balance import Balance
from ..accounting.filters import Budget, Filter
from ..errors import BudgetError, UnsupportedEventError
from ..events import Event
from ..plan import Gauge, Plan, Receipt
from .balances import balance_of
from .desk import Desk
from .grants import past
from .stores.base import Account
from .tree import above, found


class Standing:
    """Reads accounts."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def spent(self, account: str) -> tuple[Gauge, ...]:
        filter_ = self._account(account).filter
        members = () if filter_ is None else filter_.open
        return tuple(Gauge(m.currency, m.spent, m.limit) for m in members if not m.required)

    def balance(self, account: str, plan: Plan[Any, Any] | None) -> Balance | None:
        return balance_of(self._account(account), None if plan is None else (plan.event, plan.delta))

    def left(self, account: str, plan: Plan[Any, Any] | None) -> str:
        return left_of(self._account(account), plan)

    def used(self, account: str, plan: Plan[Any, Any] | None) -> float | None:
        return used_of(self._account(account), plan)

    def refusal(self, account: str, plan: Plan[Any, Any], *, gauges: bool) -> str | None:
        state = self._account(account)
        if state.filter is None:
            return None
        try:
            state.filter.charge(plan.event, plan.delta, list(state.held.values()))
        except (BudgetError, UnsupportedEventError) as problem:
            return "\n".join(state.filter.gauges(plan.event, plan.delta)) if gauges else str(problem)
        return None

    def would_fit(self, account: str, budget: Budget, plan: Plan[Any, Any]) -> bool:
        with self._desk.reading() as book:
            state = found(book, account)
            releases = tuple(past(book, account)) if state.filter is not None else ()
        if state.filter is None:
            return True
        try:
            unused = state.filter.fresh and not state.held
            raised = Filter.of(budget) if unused else state.filter.raised(budget, releases)
            raised.charge(plan.event, plan.delta, list(state.held.values()))
        except (BudgetError, UnsupportedEventError):
            return False
        return True

    def held(self, account: str) -> tuple[Receipt, ...]:
        with self._desk.reading() as book:
            filed = [book.filed(id) for id in found(book, account).held]
        return tuple(one.receipt for one in filed if one is not None)

    def room(self, account: str) -> Room:
        self._account(account)
        return Room(self, account)

    def fits(self, account: str, event: Event, delta: Fraction) -> bool:
        with self._desk.reading() as book:
            own = found(book, account)
            path: list[Account] = [own, *above(book, own)]
        try:
            for state in path:
                if state.filter is not None:
                    state.filter.charge(event, delta, list(state.held.values()))
        except BudgetError:
            return False
        return not any(state.closed for state in path)

    def _account(self, name: str) -> Account:
        with self._desk.reading() as book:
            return found(book, name)


@dataclass(frozen=True)
class Room:
    """An account, to be asked whether an event would fit. Asking costs nothing."""

    _standing: Standing
    _account: str

    def fits(self, event: Event, delta: Fraction) -> bool:
        return self._standing.fits(self._account, event, delta)


def left_of(account: Account, plan: Plan[Any, Any] | None) -> str:
    """What everything so far amounts to beside the limit, in words; with a plan, what that would make of it."""
    balance = balance_of(account, None if plan is None else (plan.event, plan.delta))
    if balance is None:
        return "no limit of its own"
    text = f"{balance}" + (f", {len(account.held)} hold(s) open" if account.held else "")
    return text + (", closed" if account.closed else "")


def used_of(account: Account, plan: Plan[Any, Any] | None) -> float | None:
    """The part of the limit that is gone; with a plan, what would be gone after it (infinite where it does not fit)."""
    if account.filter is None:
        return None
    if plan is None:
        return float(account.filter.used)
    try:
        return float(account.filter.spend(plan.event, plan.delta, list(account.held.values())).used)
    except (BudgetError, UnsupportedEventError):
        return math.inf
