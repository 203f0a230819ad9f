"""Where accounts stand, for the screen and for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from rich.console import Console
from rich.text import Text

from ...accounting.budget import Budget
from ...ledger import Ledger
from ...ledger.stores.base import Account
from ..documents import Part
from ..screen import bar, percent, say

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
    used      the part of it that is gone, by the gauge with most room
    before    the same before this release, or in a quote: now, where `used` is what would be gone after it
    fits      in a quote: has this account room for it?
    refusal   in a quote: what is asked, spent and left, where it has none
    delta     what releases take of the delta for themselves, counted once for all gauges; null where there is none
    """

    account: str
    level: str
    limit: Limit | None
    guarantee: str | None
    used: float | None
    before: float | None = None
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


def with_changes(
    now: Sequence[AccountDocument], changes: Mapping[str, tuple[float | None, float | None]]
) -> list[AccountDocument]:
    """The same, with what was gone before and is gone after; infinite where it does not fit."""
    found = []
    for each in now:
        before, after = changes.get(each.account, (each.used, each.used))
        fits = after is None or math.isfinite(after)
        used = each.used if after is None or not fits else after
        found.append(each.model_copy(update={"before": before, "used": used, "fits": fits}))
    return found


def show_accounts(
    console: Console, shown: Sequence[AccountDocument], *, label: str = "budget", now: bool = False
) -> None:
    """A bar for each, and what is left in words; in a quote, what is left `now`."""
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


def left_in_words(each: AccountDocument, *, brief: bool = False, now: bool = False) -> str:
    """What is left by the first gauge, the one that people add up in their heads while it is open; the bar is that of
    the roomiest."""
    if not each.gauges:
        return "no limit of its own"
    first, *others = each.gauges
    left = f"{first.left:.4g} of {first.limit:.4g} {first.currency} left{' now' if now else ''}"
    if not others:
        return left
    summed = first.currency == "epsilon"
    if brief:
        return f"plain sum: {left}" if summed else left
    return f"by the roomiest of {len(each.gauges)} gauges; {'as a plain sum' if summed else 'by the first'}, {left}"


def _in_words(each: AccountDocument, now: bool, brief: bool) -> Text:
    used = each.used if each.used is not None else 0.0
    state = " (closed)" if each.closed else " (locked)" if each.locked else ""
    if each.fits is False:
        return Text(f"{percent(each.before or 0.0)} spent; no room for this{state}", style="bold red")
    words = f"{percent(used)} spent"
    if each.before is not None and each.before != used:
        words = f"{percent(each.before)} → {words}"
    return Text.assemble(f"{words}{state}", (f"  {left_in_words(each, brief=brief, now=now)}", "dim"))


def limit_of(budget: Budget) -> Limit:
    if budget.rho is not None:
        return Limit(epsilon=None, delta=None, rho=float(budget.rho))
    return Limit(epsilon=float(budget.epsilon), delta=float(budget.delta), rho=None)


def gauges_of(account: Account) -> list[Gauge]:
    """Those that are open still."""
    return [] if account.filter is None else [_gauge(m.currency, m.spent, m.limit) for m in account.filter.open]


def _gauge(currency: str, spent: Fraction, limit: Fraction) -> Gauge:
    return Gauge(currency=currency, spent=float(spent), left=float(limit - spent), limit=float(limit))


def _document(account: Account, *, locked: bool) -> AccountDocument:
    filter_ = account.filter
    failing = None if filter_ is None else next((m for m in filter_.open if m.delta_limit), None)
    return AccountDocument(
        account=account.name,
        level=account.level,
        limit=None if filter_ is None else limit_of(filter_.budget),
        guarantee=None if filter_ is None else str(filter_.budget),
        used=None if filter_ is None else float(filter_.used),
        gauges=gauges_of(account),
        delta=None if failing is None else _gauge("delta", failing.delta_spent, failing.delta_limit),
        releases=0 if filter_ is None else filter_.count,
        locked=locked,
        closed=account.closed,
    )
