"""`sfumato ledger status`: every account with its limit, which is the guarantee, and what is gone of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ....accounting.balance import Balance
from ....ledger.stores.base import Account
from ....office.budgets import delta_of, gauges_of, limit_of
from ....office.documents import Gauge, Limit
from ....report.accounts import Overview, Statement
from ....report.accounts.overview import Placed, unit_of
from ....units import Unit
from ...documents import Document, Part
from ...screen import bar, columns, facts, percent, say
from ...telling import Outcome
from .where import Where

_PASSES = "A release passes while one gauge has room, and delta: the account ends when all are full."
_GUARANTEE = "A limit is the guarantee: all releases of an account together never exceed it. What is spent is a gauge."


class AccountPart(Part):
    """An account. `amount` is what everything so far amounts to, an epsilon at the account's delta or a rho, `used`
    that over the limit, and `room` how many more like the last release fit. `failures` are those on the data's side
    since the last unlock; `holds` are open."""

    account: str
    parent: str | None
    level: str
    hides: str | None
    limit: Limit | None
    amount: float | None
    used: float | None
    room: int | None
    gauges: list[Gauge]
    delta: Gauge | None
    releases: int
    holds: int
    failures: int
    locked: bool
    closed: bool


class StatusDocument(Document):
    """`statement` is there where one account was asked for."""

    document: Literal["ledger-status/1"] = "ledger-status/1"
    entries: int
    hash: str
    accounts: list[AccountPart]
    statement: dict[str, Any] | None = None


def status(where: Where, account: str | None, *, gauges: bool = False) -> Outcome:
    """All accounts, or one of them with everything that is known of it."""
    with where.reading() as ledger:
        overview = ledger.overview()
        statement = None if account is None else ledger.statement(account)
        now = ledger.balances([each.account.name for each in _below(overview, account)])
    below = _below(overview, account)
    accounts = {each.account.name: each.account for each in overview.accounts}
    body = StatusDocument(
        entries=overview.number,
        hash=overview.hash,
        accounts=[_part(each, unit_of(accounts, each.account.name), now[each.account.name]) for each in below],
        statement=None if statement is None else statement.as_dict(),
    )

    def show(console: Console) -> None:
        if statement is not None:
            _statement(console, statement, gauges=gauges)
            if len(below) == 1:
                return
            console.print()
        _tree(console, below, now)
        if gauges and statement is None:
            _all_gauges(console, below)
        say(console, f"{_GUARANTEE} As of entry {overview.number}, hash {overview.hash[:16]}...", style="dim")

    return Outcome(body, show)


def _below(overview: Overview, account: str | None) -> tuple[Placed, ...]:
    """The account and all under it, its own depth 0."""
    if account is None:
        return overview.accounts
    names = [each.account.name for each in overview.accounts]
    start = names.index(account)
    top = overview.accounts[start].depth
    inside = [overview.accounts[start]._replace(depth=0)]
    for placed in overview.accounts[start + 1 :]:
        if placed.depth <= top:
            break
        inside.append(placed._replace(depth=placed.depth - top))
    return tuple(inside)


def _part(placed: Placed, unit: Unit | None, now: Balance | None) -> AccountPart:
    account = placed.account
    filter_ = account.filter
    return AccountPart(
        account=account.name,
        parent=account.parent,
        level=account.level,
        hides=None if unit is None else str(unit),
        limit=None if filter_ is None else limit_of(filter_.budget),
        amount=None if now is None else float(now.spent),
        used=None if now is None else now.used,
        room=None if now is None else now.room,
        gauges=gauges_of(account),
        delta=delta_of(account),
        releases=0 if filter_ is None else filter_.count,
        holds=len(account.held),
        failures=account.failures,
        locked=placed.locked,
        closed=account.closed,
    )


def _tree(console: Console, placed: tuple[Placed, ...], now: Mapping[str, Balance | None]) -> None:
    if not placed:
        say(console, "There is no account yet: `sfumato ledger open` makes those of sfumato.yaml.")
        return
    rows = []
    for depth, account, locked in placed:
        name = Text("  " * depth + account.name, style="bold" if depth == 0 else "")
        state = Text(", ".join(_states(account, locked)), style="red")
        rows.append((name, account.level, *_spent(now[account.name]), state))
    columns(console, ("account", "level", "spent", "", "delta", "room", ""), rows)


def _spent(now: Balance | None) -> tuple[Any, str, str, str]:
    """The bar, the one number beside the limit, the account's delta, and how many more fit."""
    if now is None:
        return "", "no limit of its own", "", ""
    delta = f"{float(now.delta):g}" if now.delta else ""
    if now.failed:
        delta += f" ({percent(float(now.failed / now.failures))} for unknown keys and the like is taken)"
    return bar(now.used, width=12), now.now, delta, now.more.removeprefix("; room ").removeprefix("; ")


def _all_gauges(console: Console, placed: tuple[Placed, ...]) -> None:
    """Each way of adding up of each account."""
    console.print()
    rows = [
        (each.account.name, gauge.currency, *(f"{n:.5g}" for n in (gauge.spent, gauge.left, gauge.limit)))
        for each in placed
        for gauge in [*gauges_of(each.account), delta_of(each.account)]
        if gauge is not None
    ]
    columns(console, ("account", "gauge", "spent", "left", "limit"), rows, right=(2, 3, 4))
    say(console, _PASSES, style="dim")


def _states(account: Account, locked: bool) -> list[str]:
    words = [f"locked after {account.failures} failures"] if locked else []
    words += [f"{account.failures} failure(s)"] if account.failures and not locked else []
    words += [f"{len(account.held)} hold(s) open"] if account.held else []
    return [*words, *(["closed"] if account.closed else [])]


def _statement(console: Console, statement: Statement, *, gauges: bool) -> None:
    lines: list[tuple[str, Any]] = [("account", Text(statement.account, style="bold"))]
    lines += [("level", statement.level)] if statement.level else []
    lines += [("part of", statement.parent)] if statement.parent else []
    lines.append(("guarantee", statement.guarantee))
    if statement.balance is not None:
        lines.append(("spent", Text.assemble(bar(statement.balance.used, width=12), f"  {statement.balance}")))
        lines += [("delta", f"{statement.balance.fine}")] if statement.balance.fine else []
    lines.append(("releases", f"{statement.releases}, as of entry {statement.number}"))
    lines += (
        [("failures", f"{statement.failures}" + (", locked" if statement.locked else ""))] if statement.failures else []
    )
    lines += [("holds", f"{statement.holds} open")] if statement.holds else []
    lines += [("closed", "nothing more is paid from it")] if statement.is_closed else []
    for other in statement.beside:
        figure = f"no figure: {other.reason}" if other.epsilon is None else f"epsilon = {other.epsilon:.4g}"
        figure += f", delta = {other.delta:.4g}" if other.epsilon is not None and other.delta else ""
        lines.append(("beside it", f"{figure} ({other.label})"))
    facts(console, lines)
    if not gauges:
        return
    if statement.standing:
        console.print()
        rows = [
            (
                each.currency,
                *(f"{float(n):.5g}" for n in (each.spent, each.left, each.limit)),
                bar(each.share, width=12),
            )
            for each in statement.standing
        ]
        columns(console, ("gauge", "spent", "left", "limit", ""), rows, right=(1, 2, 3))
        if len(statement.standing) > 1:
            say(console, _PASSES, style="dim")
    if statement.closed:
        say(console, f"Gauges that are closed: {', '.join(statement.closed)}.", style="dim")
