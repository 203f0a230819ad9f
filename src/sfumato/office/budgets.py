"""Where accounts stand before and after a release, and what that amounts to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from ..accounting.balance import Balance, amount, failures_of
from ..accounting.budget import Budget
from ..ledger import Ledger
from ..ledger.stores.base import Account
from ..plan import Plan
from .documents import AccountDocument, Gauge, Limit


def accounts(ledger: Ledger, names: Iterable[str] | None = None) -> list[AccountDocument]:
    """Where accounts stand now: those named, or all, each below the one that it belongs to."""
    wanted = None if names is None else set(names)
    placed = ledger.overview().accounts
    return [
        _document(each.account, locked=each.locked) for each in placed if wanted is None or each.account.name in wanted
    ]


class Stand(NamedTuple):
    """An account before or after a release: the part of its limit that is gone, infinite where the release does not
    fit, and what everything amounts to. Both None where it has no limit of its own."""

    used: float | None
    amount: float | None


def stands(ledger: Ledger, names: Iterable[str], plan: Plan[Any, Any] | None = None) -> dict[str, Stand]:
    """Where accounts stand, or would stand after a plan."""
    stands_of = {}
    for name in names:
        balance = ledger.balance(name, plan)
        amount = None if balance is None else balance.spent if plan is None or not balance.fits else balance.after
        stands_of[name] = Stand(ledger.used(name, plan), None if amount is None else float(amount))
    return stands_of


def with_changes(
    now: Sequence[AccountDocument],
    before: Mapping[str, Stand],
    after: Mapping[str, Stand],
    room: Mapping[str, int | None] | None = None,
) -> list[AccountDocument]:
    """The same, with what was before and is after."""
    changed = []
    for account in now:
        start, end = before[account.account], after[account.account]
        fits = end.used is None or math.isfinite(end.used)
        end = end if fits and end.used is not None else Stand(account.used, account.amount)
        left = None if room is None or not fits else room.get(account.account)
        change = replace(account, before=start.used, used=end.used, amount_before=start.amount, amount=end.amount)
        changed.append(replace(change, fits=fits, room=left))
    return changed


def room_for(ledger: Ledger, names: Iterable[str], plan: Plan[Any, Any], *, paid: bool) -> dict[str, int | None]:
    """How many more like the plan fit on each account, after this one: it is `paid`, or would be."""
    room: dict[str, int | None] = {}
    for name in names:
        balance = ledger.balance(name, plan)
        room[name] = None if balance is None else (balance.room or 0) + (paid and bool(balance.fits))
    return room


def balance_of(account: AccountDocument, *, now: bool = False) -> Balance | None:
    """What everything so far amounts to, what this release makes or made of it, and how many more like it fit. In a
    quote, as it stands `now`."""
    if account.limit is None or account.used is None:
        return None
    word, most = ("rho", account.limit.rho) if account.limit.rho is not None else ("epsilon", account.limit.epsilon)
    assert most is not None
    # Twelve digits of a float, so that 0.4 is not told as a hair above.
    spent = account.amount or 0.0
    start = spent if account.before is None else account.amount_before or 0.0
    before, after = (Fraction(f"{size:.12g}") for size in (start, spent))
    balance = Balance(word, after, Fraction(most), Fraction(account.limit.delta or 0), room=account.room)
    if account.before is None:
        return balance
    if not now:
        return replace(balance, was=before, fits=True)
    return replace(balance, spent=before, after=after if before != after else None, fits=True)


def limit_of(budget: Budget) -> Limit:
    if budget.rho is not None:
        return Limit(epsilon=None, delta=None, rho=float(budget.rho))
    return Limit(epsilon=float(budget.epsilon), delta=float(budget.delta), rho=None)


def gauges_of(account: Account) -> list[Gauge]:
    """Those that are open still."""
    members = () if account.filter is None else account.filter.open
    return [_gauge(m.currency, m.spent, m.limit) for m in members if not m.required]


def delta_of(account: Account) -> Gauge | None:
    """What releases took of the delta for what may fail by itself; None where there is none for that."""
    failing = None if account.filter is None else failures_of(account.filter)
    return None if failing is None else _gauge("delta", *failing)


def _gauge(currency: str, spent: Fraction, limit: Fraction) -> Gauge:
    return Gauge(currency=currency, spent=float(spent), left=float(limit - spent), limit=float(limit))


def _document(account: Account, *, locked: bool) -> AccountDocument:
    filter_ = account.filter
    return AccountDocument(
        account=account.name,
        level=account.level,
        limit=None if filter_ is None else limit_of(filter_.budget),
        guarantee=None if filter_ is None else str(filter_.budget),
        amount=None if filter_ is None else float(amount(filter_)),
        used=None if filter_ is None else float(filter_.used),
        gauges=gauges_of(account),
        delta=delta_of(account),
        releases=0 if filter_ is None else filter_.count,
        locked=locked,
        closed=account.closed,
    )
