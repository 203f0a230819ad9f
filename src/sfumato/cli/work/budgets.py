"""Where accounts stand, for the screen and for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ...accounting.balance import Balance, amount, failures_of
from ...accounting.budget import Budget
from ...ledger import Ledger
from ...ledger.stores.base import Account
from ...plan import Plan
from ..documents import Part
from ..screen import bar, say

_NARROW, _WIDE = 72, 100


class Limit(Part):
    """A budget: epsilon with delta, or rho."""

    epsilon: float | None
    delta: float | None
    rho: float | None


class Gauge(Part):
    """One currency of an account. The account accepts a release while one of its gauges has room."""

    currency: str
    spent: float
    left: float
    limit: float


class AccountDocument(Part):
    """An account.

    limit     what may be spent in all: the guarantee, `guarantee` in words; null for a folder
    amount    what everything so far amounts to: an epsilon at the account's delta, or a rho
    used      the part of the limit that is gone
    before    the same before this release, or in a quote: now, where `used` is what would be gone after it; and so
              `amount_before` beside `amount`
    room      how many more like this release fit after it; null where that was not asked
    fits      in a quote: has this account room for it?
    refusal   in a quote: what is asked, spent and left, where it has none
    delta     what releases take of the delta for themselves, counted once for all gauges; null where there is none
    """

    account: str
    level: str
    limit: Limit | None
    guarantee: str | None
    amount: float | None = None
    amount_before: float | None = None
    used: float | None
    before: float | None = None
    room: int | None = None
    fits: bool | None = None
    refusal: str | None = None
    gauges: list[Gauge]
    delta: Gauge | None = None
    releases: int
    locked: bool
    closed: bool


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
    found = {}
    for name in names:
        told = ledger.balance(name, plan)
        amount = None if told is None else told.spent if plan is None or not told.fits else told.after
        found[name] = Stand(ledger.used(name, plan), None if amount is None else float(amount))
    return found


def with_changes(
    now: Sequence[AccountDocument],
    before: Mapping[str, Stand],
    after: Mapping[str, Stand],
    room: Mapping[str, int | None] | None = None,
) -> list[AccountDocument]:
    """The same, with what was before and is after."""
    found = []
    for each in now:
        start, end = before[each.account], after[each.account]
        fits = end.used is None or math.isfinite(end.used)
        end = end if fits and end.used is not None else Stand(each.used, each.amount)
        update = {"before": start.used, "used": end.used, "amount_before": start.amount, "amount": end.amount}
        left = None if room is None or not fits else room.get(each.account)
        found.append(each.model_copy(update={**update, "fits": fits, "room": left}))
    return found


def room_for(ledger: Ledger, names: Iterable[str], plan: Plan[Any, Any], *, paid: bool) -> dict[str, int | None]:
    """How many more like the plan fit on each account, after this one: it is `paid`, or would be."""
    room: dict[str, int | None] = {}
    for name in names:
        told = ledger.balance(name, plan)
        room[name] = None if told is None else (told.room or 0) + (paid and bool(told.fits))
    return room


def show_accounts(
    console: Console, shown: Sequence[AccountDocument], *, label: str = "budget", now: bool = False
) -> None:
    """A bar for each, and what everything so far amounts to beside the limit; in a quote, what stands `now`."""
    wide = max((len(each.account) for each in shown), default=0)
    for number, each in enumerate(shown):
        head = Text(f"{label if number == 0 else '':{len(label)}}  ", style="dim")
        name = Text(f"{each.account:{wide}}  ") if len(shown) > 1 else Text(f"{each.account}  ")
        if each.used is None:
            say(console, Text("no limit of its own", style="dim"), first=Text.assemble(head, name))
            continue
        width = 20 if console.width >= _NARROW else 10
        before = each.before if each.before is not None else each.used
        drawn = bar(before, now=each.used if each.fits is not False else before, width=width)
        words = _in_words(each, now, brief=console.width < _WIDE and not console.soft_wrap)
        say(console, Text.assemble(drawn, "  ", words), first=Text.assemble(head, name))


def balance_of(each: AccountDocument, *, now: bool = False) -> Balance | None:
    """What everything so far amounts to, what this release makes or made of it, and how many more like it fit. In a
    quote, as it stands `now`."""
    if each.limit is None or each.used is None:
        return None
    word, most = ("rho", each.limit.rho) if each.limit.rho is not None else ("epsilon", each.limit.epsilon)
    assert most is not None
    # Twelve digits of a float, so that 0.4 is not told as a hair above.
    spent = each.amount or 0.0
    start = spent if each.before is None else each.amount_before or 0.0
    before, after = (Fraction(f"{size:.12g}") for size in (start, spent))
    told = Balance(word, after, Fraction(most), Fraction(each.limit.delta or 0), room=each.room)
    if each.before is None:
        return told
    if not now:
        return replace(told, was=before, fits=True)
    return replace(told, spent=before, after=after if before != after else None, fits=True)


def _in_words(each: AccountDocument, now: bool, brief: bool) -> Text:
    state = " (closed)" if each.closed else " (locked)" if each.locked else ""
    told = balance_of(each, now=now)
    text = "no limit of its own" if told is None else told.words(brief=brief)
    if each.fits is False:
        return Text(f"{text}{state}; no room for this", style="bold red")
    return Text(f"{text}{state}")


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
