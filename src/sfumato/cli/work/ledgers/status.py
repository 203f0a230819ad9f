"""`sfumato ledger status`: every account with its limit, which is the guarantee, and what is gone of it."""

from __future__ import annotations

from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ....ledger.reading import Overview, Statement
from ....ledger.reading.overview import Placed, unit_of
from ....ledger.stores.base import Account
from ....units import Unit
from ...documents import Document, Part
from ...screen import bar, columns, facts, percent, say
from ...telling import Outcome
from ..budgets import Gauge, Limit, gauges_of, limit_of
from .where import Where

_GUARANTEE = "A limit is the guarantee: all releases of an account together never exceed it. What is spent is a gauge."


class AccountPart(Part):
    """An account. `failures` are those on the data's side since the last unlock; `holds` are open."""

    account: str
    parent: str | None
    level: str
    hides: str | None
    limit: Limit | None
    used: float | None
    gauges: list[Gauge]
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


def status(where: Where, account: str | None) -> Outcome:
    """All accounts, or one of them with everything that is known of it."""
    with where.reading() as ledger:
        found = ledger.overview()
        told = None if account is None else ledger.statement(account)
    below = _below(found, account)
    known = {each.account.name: each.account for each in found.accounts}
    body = StatusDocument(
        entries=found.number,
        hash=found.hash,
        accounts=[_part(each, unit_of(known, each.account.name)) for each in below],
        statement=None if told is None else told.as_dict(),
    )

    def show(console: Console) -> None:
        if told is not None:
            _statement(console, told)
            if len(below) == 1:
                return
            console.print()
        _tree(console, below)
        say(console, f"{_GUARANTEE} As of entry {found.number}, hash {found.hash[:16]}...", style="dim")

    return Outcome(body, show)


def _below(found: Overview, account: str | None) -> tuple[Placed, ...]:
    """The account and all under it, its own depth 0."""
    if account is None:
        return found.accounts
    names = [each.account.name for each in found.accounts]
    start = names.index(account)
    top = found.accounts[start].depth
    inside = [found.accounts[start]._replace(depth=0)]
    for each in found.accounts[start + 1 :]:
        if each.depth <= top:
            break
        inside.append(each._replace(depth=each.depth - top))
    return tuple(inside)


def _part(placed: Placed, unit: Unit | None) -> AccountPart:
    account = placed.account
    filter_ = account.filter
    return AccountPart(
        account=account.name,
        parent=account.parent,
        level=account.level,
        hides=None if unit is None else str(unit),
        limit=None if filter_ is None else limit_of(filter_.budget),
        used=None if filter_ is None else float(filter_.used),
        gauges=gauges_of(account),
        releases=0 if filter_ is None else filter_.count,
        holds=len(account.held),
        failures=account.failures,
        locked=placed.locked,
        closed=account.closed,
    )


def _tree(console: Console, placed: tuple[Placed, ...]) -> None:
    if not placed:
        say(console, "There is no account yet: `sfumato ledger open` makes those of sfumato.yaml.")
        return
    rows = []
    for depth, account, locked in placed:
        name = Text("  " * depth + account.name, style="bold" if depth == 0 else "")
        rows.append((name, account.level, *_spent(account), Text(", ".join(_states(account, locked)), style="red")))
    columns(console, ("account", "level", "spent", "", "limit", ""), rows, right=(3,))


def _spent(account: Account) -> tuple[Any, Any, str]:
    if account.filter is None:
        return "", "", "none of its own"
    used = float(account.filter.used)
    return bar(used, width=12), percent(used), str(account.filter.budget)


def _states(account: Account, locked: bool) -> list[str]:
    words = [f"locked after {account.failures} failures"] if locked else []
    words += [f"{account.failures} failure(s)"] if account.failures and not locked else []
    words += [f"{len(account.held)} hold(s) open"] if account.held else []
    return [*words, *(["closed"] if account.closed else [])]


def _statement(console: Console, told: Statement) -> None:
    lines: list[tuple[str, Any]] = [("account", Text(told.account, style="bold"))]
    lines += [("level", told.level)] if told.level else []
    lines += [("part of", told.parent)] if told.parent else []
    lines.append(("guarantee", told.guarantee))
    lines.append(("releases", f"{told.releases}, as of entry {told.number}"))
    lines += [("failures", f"{told.failures}" + (", locked" if told.locked else ""))] if told.failures else []
    lines += [("holds", f"{told.holds} open")] if told.holds else []
    lines += [("closed", "nothing more is paid from it")] if told.is_closed else []
    for each in told.beside:
        figure = f"no figure: {each.reason}" if each.epsilon is None else f"epsilon = {each.epsilon:.4g}"
        figure += f", delta = {each.delta:.4g}" if each.epsilon is not None and each.delta else ""
        lines.append(("beside it", f"{figure} ({each.label})"))
    facts(console, lines)
    if told.standing:
        console.print()
        rows = [
            (
                each.currency,
                *(f"{float(n):.5g}" for n in (each.spent, each.left, each.limit)),
                bar(each.share, width=12),
            )
            for each in told.standing
        ]
        columns(console, ("gauge", "spent", "left", "limit", ""), rows, right=(1, 2, 3))
        if len(told.standing) > 1:
            say(console, "A release passes while one gauge has room: the account ends when all are full.", style="dim")
    if told.closed:
        say(console, f"Gauges that are closed: {', '.join(told.closed)}.", style="dim")
