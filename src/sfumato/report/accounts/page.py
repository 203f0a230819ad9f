"""What a notebook shows of statements and of a whole ledger: accounts with bars of what is spent."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ... import display
from ...ledger.balances import balances
from ...ledger.stores.base import Store
from .overview import overview

if TYPE_CHECKING:
    from .statement import Standing, Statement, Under

_ACCOUNTS = 50  # of a ledger, that are shown


def statement(told: Statement) -> str:
    """The guarantee in words, the one number with a bar, and the gauges for who opens them."""
    state = [each for each, so in (("locked", told.locked), ("closed", told.is_closed)) if so]
    facts: list[tuple[str, Any]] = [("guarantee", told.guarantee)]
    facts.append(("releases", f"{told.releases}, as of entry {told.number}"))
    if told.balance is not None:
        facts.append(("spent", display.Html(f"{display.text(told.balance)}<br>{display.bar(told.balance.used)}")))
        facts += [("delta", f"{told.balance.fine}")] if told.balance.fine else []
    facts += [("state", ", ".join(state))] if state else []
    facts += [("failures", told.failures)] if told.failures else []
    facts += [("holds", f"{told.holds} open")] if told.holds else []
    parts = [display.facts(facts)]
    gauges = _gauges("spent so far", told.standing, told.failures_delta)
    if told.closed:
        gauges.append(display.paragraph(f"gauges that are closed: {', '.join(told.closed)}", quiet=True))
    if gauges:
        passes = "A release passes while one gauge has room, and the delta: the account ends when all are full."
        parts.append(display.details("gauges", *gauges, display.paragraph(passes, quiet=True)))
    beside = [(_figure(each.epsilon, each.delta, each.reason), each.label) for each in told.beside]
    if beside:
        parts.append(display.table(("beside, not the guarantee", ""), beside))
    parts += _below("accounts below", told.children)
    if told.allocated is not None:
        more = " (more than this account's own limit, which holds)" if told.overcommitted else ""
        parts.append(display.paragraph(f"allocated in all: {told.allocated}{more}", quiet=True))
    parts += _below("blocks, each a budget for (unit, block)", told.blocks)
    parts += _gauges("the lifetime loss of a unit, over all blocks", told.lifetime)
    note = "The limit is the guarantee; what is spent is a gauge."
    return display.card(f"Account {told.account}" + (f" ({told.level})" if told.level else ""), *parts, note=note)


def ledger(store: Store) -> str:
    """Every account below the one it belongs to, with its limit and what is gone of it."""
    told = overview(store)
    rows = []
    shown = [each.account.name for each in told.accounts[:_ACCOUNTS]]
    told_now = balances(store, shown)
    for depth, account, locked in told.accounts[:_ACCOUNTS]:
        filter_, held = account.filter, len(account.held)
        limit = "no limit of its own" if filter_ is None else str(filter_.budget)
        now = told_now.get(account.name)
        used = "" if now is None else display.Html(f"{display.text(now)}<br>{display.bar(now.used)}")
        words = (("locked", locked), ("closed", account.closed), (f"{held} held", held))
        state = ", ".join(each for each, so in words if so)
        hides = account.unit or "fixed by the first release"
        rows.append((display.indented(account.name, depth), account.level, limit, used, hides, state))
    parts = [display.table(("account", "level", "limit: the guarantee", "spent", "hides", ""), rows)]
    if len(told.accounts) > len(rows):
        parts.append(display.paragraph(f"... and {len(told.accounts) - len(rows)} more accounts", quiet=True))
    return display.card("Ledger", *parts, note=f"{told.number} entries, the last one {told.hash[:16]}...")


def _gauges(
    title: str, standing: tuple[Standing, ...], failures: tuple[Fraction, Fraction] | None = None
) -> list[display.Html]:
    if not standing:
        return []
    sizes = [(each.currency, each.spent, each.limit) for each in standing]
    sizes += [] if failures is None else [("delta of the releases themselves", *failures)]
    rows = [
        (name, *(f"{float(size):.5g}" for size in (gone, most - gone, most)), display.bar(float(gone / most)))
        for name, gone, most in sizes
    ]
    return [display.table((title, "spent", "left", "limit", ""), rows, right=(1, 2, 3))]


def _below(title: str, accounts: tuple[Under, ...]) -> list[display.Html]:
    if not accounts:
        return []
    rows = [
        (
            each.name,
            each.limit or "no budget of its own",
            "" if each.share is None else display.bar(each.share),
            "closed" if each.closed else "",
        )
        for each in accounts
    ]
    return [display.table((title, "limit", "spent", ""), rows)]


def _figure(epsilon: float | None, delta: float | None, reason: str | None) -> str:
    if epsilon is None:
        return f"no figure: {reason}"
    return f"epsilon = {epsilon:.4g}" + (f", delta = {delta:.4g}" if delta else "")
