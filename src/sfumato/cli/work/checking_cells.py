"""`sfumato describe --check`: about how many cells of each column cannot be read, paid for like any other release."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...office.asking import Order, paid_for
from ...office.desk import at_desk
from ...office.documents import AccountDocument, Agreement, ReceiptDocument
from ...plan import price_text
from ...project import Project, open_project
from ...query import Sql
from ...query.cell_words import HELP, checkable, findings, left_out
from ...query.finish import UNKNOWN
from ..documents import Document, Part
from ..problems import BUDGET, CommandError
from ..screen import columns, facts, percent, say
from ..shell_words import in_shell
from ..telling import Outcome
from ..watching import Terminal
from .budgets import show_accounts
from .numbers import exact

_ALPHA = 0.05
_WIDE = len("budget")


class CheckedColumn(Part):
    """A column.

    cells      about how many of its cells cannot be read, and so count as missing; `error` is the half-width
    share      the same as a part of the rows that count, from `low` to `high`
    seen       false where noise may be all there is
    hints      what may help
    """

    column: str
    cells: float
    error: float
    share: float
    low: float
    high: float
    seen: bool
    hints: list[str]


class CheckedTable(Part):
    """A private table. Before it is paid, `error` is all that is known: the half-width of every count.

    rows     about how many rows count
    receipt  null where nothing was paid: with --dry-run
    """

    table: str
    price: str
    free: bool
    error: float | None
    rows: float | None
    columns: list[CheckedColumn]
    notes: list[str]
    receipt: ReceiptDocument | None


class CheckDocument(Document):
    """About how many cells cannot be read. Each interval holds with probability 1 - alpha, by itself."""

    document: Literal["check/1"] = "check/1"
    project: str
    hides: str
    alpha: float
    tables: list[CheckedTable]
    fits: bool
    budget: list[AccountDocument]
    alert: str | None


def checked(folder: Path, *, table: str | None, epsilon: str | None, account: str | None, dry_run: bool) -> Outcome:
    """Count the cells that cannot be read, table by table; with dry_run only say what that would cost."""
    project = open_project(folder)
    spent = None if epsilon is None else exact(epsilon, "--epsilon")
    plans = {name: project.unreadable(name, epsilon=spent) for name in _tables(project, table)}
    body = CheckDocument(
        project=project.name, hides=project.hides, alpha=_ALPHA, tables=[], fits=True, budget=[], alert=None
    )  # fmt: skip
    for name, plan in plans.items():
        (_quote if dry_run else _release)(project, name, plan, account, body)
    return Outcome(body, lambda console: _show(console, body, dry_run=dry_run), 0 if body.fits else BUDGET)


def _tables(project: Project, table: str | None) -> list[str]:
    """The private tables that have something to check."""
    tables = project.schema.tables
    names = [name for name, each in tables.items() if each.private and checkable(each, project.unit)]
    if table is not None and table not in names:
        raise CommandError(
            f"--table {table[:40]} has nothing to check",
            f"private tables with other columns than keys are {', '.join(names) or 'none'}",
            "give one of them, or leave --table out for all",
        )
    if not names:
        raise CommandError(
            "there is nothing to check", "the private tables have keys alone, which are read as they are", "ask queries"
        )
    return names if table is None else [table]


def _quote(project: Project, name: str, plan: Sql, account: str | None, body: CheckDocument) -> None:
    with at_desk(project, account, read_only=True) as desk:
        offer = desk.quote(plan, repeats=True)
    quote = offer.quote
    body.budget = [replace(each, refusal=None) for each in offer.budget]
    body.fits = body.fits and quote.affordable
    error = max(plan.expected_errors(_ALPHA).values(), default=None)
    body.tables.append(
        CheckedTable(
            table=name,
            price=quote.price,
            free=quote.due is not None,
            error=error,
            rows=None,
            columns=[],
            notes=[],
            receipt=None,
        )
    )


def _release(project: Project, name: str, plan: Sql, account: str | None, body: CheckDocument) -> None:
    order = Order(plan, account, f"cells of {name} that cannot be read")
    paid = paid_for(project, order, Agreement.to(plan), watch=Terminal())
    answer, table = paid.release.value, project.schema.table(name)
    rows = answer.columns[0]
    cells = findings(table, project.unit, project.sources[name], answer, _ALPHA)
    body.tables.append(
        CheckedTable(
            table=name,
            price=price_text(plan),
            free=paid.free,
            error=float(answer.half_width(rows, _ALPHA)[0]),
            rows=float(answer[rows][0]),
            columns=[CheckedColumn(**asdict(each)) for each in cells],
            notes=_notes(answer, project.sources[name]),
            receipt=paid.receipt,
        )
    )
    body.budget, body.alert = paid.budget, paid.alert


def _notes(answer: Any, source: Any) -> list[str]:
    """What the answer says, without options that a check does not have; and what no count of cells can tell."""
    return [*(in_shell(note) for note in answer.notes if not note.startswith(UNKNOWN)), *left_out(source)]


def _show(console: Console, body: CheckDocument, *, dry_run: bool) -> None:
    for table in body.tables:
        if dry_run:
            lines: list[tuple[str, Any]] = [("table", Text(table.table, style="bold")), ("price", table.price)]
            lines += [] if table.error is None else [("error", f"± {table.error:,.4g} cells of each column at 95 %")]
            facts(console, lines)
        else:
            _show_table(console, table)
        console.print()
    facts(console, [("hides", body.hides)], wide=_WIDE)
    if not dry_run:
        free = "  answered before: free"
        names = len(body.tables) > 1
        facts(
            console,
            [("price", f"{each.price}{f' for {each.table}' * names}{free * each.free}") for each in body.tables],
            wide=_WIDE,
        )
    show_accounts(console, body.budget, label="budget", now=dry_run)
    if not body.fits:
        say(console, "does not fit the budget: give a smaller --epsilon", style="bold red")
    if body.alert is not None:
        say(console, body.alert, first=Text("alert   ", style="bold yellow"), style="yellow")


def _show_table(console: Console, table: CheckedTable) -> None:
    say(console, Text.assemble((table.table, "bold"), f"  about {table.rows:,.0f} rows count"))
    rows = [
        (
            f"  {each.column}",
            Text(f"{percent(each.share)}", style="bold yellow") if each.seen else Text("none seen", style="green"),
            f"{percent(each.low)} to {percent(each.high)}" if each.seen else f"at most {percent(each.high)}",
            f"{each.cells:,.0f} ± {each.error:,.0f}",
        )
        for each in table.columns
    ]
    columns(console, ("", "cannot be read", "at 95 %", "cells"), rows)
    for column in table.columns:
        if column.hints:
            say(console, f"{column.column}: {'; or '.join(column.hints)}", first="- try for ")
    for note in table.notes:
        if note != HELP or any(each.seen for each in table.columns):
            say(console, note, first="- ", style="dim")
