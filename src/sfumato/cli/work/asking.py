"""`sfumato query`: pay, run, show."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from ...display import printable
from ...errors import BudgetError, PolicyError
from ...ledger import Ledger
from ...plan import Receipt, price_text
from ...project import Project, open_project
from ...query import Sql
from ...release import Release
from ...report.accounts import Entry
from ...sources.base import needed
from ..documents import Document, Part
from ..interrupts import held_back, stoppable
from ..problems import INTERRUPTED, CommandError
from ..progress import working
from ..screen import facts, say
from ..telling import Outcome, data_opens
from .answers import Column, Number, columns_of, encoded, format_of, notes_of, rows_of, show_answer
from .asked import Asked
from .budgets import AccountDocument, accounts, room_for, show_accounts, stands, with_changes
from .out_files import check_out, write_out
from .shortage import short_of


class ReceiptDocument(Part):
    """What was paid: `entry` is the ledger's, `hash` that of it and everything before it."""

    id: str
    entry: int | None
    hash: str | None
    accounts: list[str]
    data: str
    grade: str
    note: str


class QueryDocument(Document):
    """An answer.

    free   it was answered before (or paid for as a part of a list), so this time nothing was charged
    alpha  each interval holds with probability 1 - alpha, by itself
    out    the file that it was written to
    """

    document: Literal["query/1"] = "query/1"
    project: str
    price: str
    free: bool
    hides: str
    alpha: float
    columns: list[Column]
    rows: list[dict[str, Number | JsonValue]]
    notes: list[str]
    receipt: ReceiptDocument
    budget: list[AccountDocument]
    alert: str | None
    out: str | None


def answered(
    folder: Path,
    asked: Asked,
    *,
    account: str | None,
    note: str,
    key: str | None,
    out: Path | None,
    format: str | None,
    json: bool,
) -> Outcome:
    """Release a query of a project. All that can be refused is refused before it is paid."""
    text, options = asked.text(), asked.options()
    how = format_of(out, format, json=json)
    if how == "parquet" and out is None and sys.stdout.isatty():
        raise CommandError("Parquet is nothing to look at", "this is a terminal", "give --out FILE, or pipe it on")
    project = open_project(folder)
    if out is not None:
        check_out(out, project)
    plan = project.plan(text, **options)
    paid = pay(project, plan, account=account, note=note, key=key)
    release = paid.release
    body = _document(project, plan, release, asked, paid)
    answer = release.value
    if out is not None:
        write_out(out, encoded(answer, how, asked.alpha))
        body.out = str(out)

    def show(console: Console) -> None:
        if out is None and how != "table":
            sys.stdout.flush()
            content = encoded(answer, how, asked.alpha)
            if sys.stdout.isatty():  # a file or a pipe gets the keys as they are; a terminal would obey them
                content = printable(content.decode("utf-8"), lines=True).encode("utf-8")
            sys.stdout.buffer.write(content)
            return
        _show(console, body, answer, asked.alpha, paid.why_free)

    return Outcome(body, show)


@dataclass(frozen=True)
class Paid:
    """A release that was paid for, now or before, and where its accounts stand after it."""

    release: Release
    receipt: ReceiptDocument
    free: bool
    why_free: str
    budget: list[AccountDocument]
    alert: str | None


def pay(project: Project, plan: Sql, *, account: str | None, note: str, key: str | None = None) -> Paid:
    """Release a plan. What goes wrong before it is paid says so, and so does what is stopped by hand."""
    project.need_data()  # a release would pay, and then fail
    with held_back():  # before anything is paid: an engine that is interrupted while it loads takes the process down
        for name in ("duckdb", "pyarrow"):
            needed(name)
    with project.ledger() as ledger:
        curator = project.curator(ledger, account)
        path = ledger.path(curator.accounts, plan, data=project.private.address)
        before = stands(ledger, path)
        head = ledger.overview().number
        data_opens()
        try:
            with stoppable() as stopped, working("answering the query"):
                release = curator.release(plan, note=note, key=key)
        except PolicyError:
            raise
        except BudgetError as error:
            raise short_of(ledger, path, plan, error) from None
        except BaseException:
            if stopped():
                raise _interrupted(ledger, plan, head) from None
            raise
        assert release.receipt is not None
        entry = ledger.entry(release.receipt.id)
        in_part = entry is not None and entry.kind == "part"
        room = room_for(ledger, path, plan, paid=True)
        return Paid(
            release,
            receipt_document(release.receipt, entry),
            in_part or (entry is not None and entry.number <= head),
            "paid as a part of a list" if in_part else "answered before: free",
            with_changes(accounts(ledger, path), before, stands(ledger, path), room),
            project.alert(ledger),
        )


def _interrupted(ledger: Ledger, plan: Sql, head: int) -> CommandError:
    """Stopped by hand. Whether it was paid by then is the ledger's to say, and public."""
    receipts = (entry.fields.get("receipt") for entry in ledger.history(first=head + 1))
    paid = any(isinstance(each, Receipt) and each.plan_hash == plan.hash for each in receipts)
    if not paid:
        return CommandError("interrupted", "it was stopped by hand; nothing was charged", "ask again", INTERRUPTED)
    return CommandError(
        "interrupted",
        "it was stopped by hand after it was paid; the charge stays, since when it was stopped may tell of the data",
        "ask again: that is a new release, and pays again",
        INTERRUPTED,
    )


def receipt_document(receipt: Receipt, entry: Entry | None) -> ReceiptDocument:
    """A receipt, with its entry in the ledger."""
    return ReceiptDocument(
        id=receipt.id,
        entry=None if entry is None else entry.number,
        hash=None if entry is None else entry.hash,
        accounts=list(receipt.accounts),
        data=receipt.data,
        grade=receipt.grade,
        note=receipt.note,
    )


def _document(project: Project, plan: Sql, release: Release, asked: Asked, paid: Paid) -> QueryDocument:
    answer = release.value
    return QueryDocument(
        project=project.name,
        price=price_text(plan),
        free=paid.free,
        hides=plan.hides,
        alpha=asked.alpha,
        columns=columns_of(answer),
        rows=rows_of(answer, asked.alpha),
        notes=notes_of(answer),
        receipt=paid.receipt,
        budget=paid.budget,
        alert=paid.alert,
        out=None,
    )


def _show(console: Console, body: QueryDocument, answer: Any, alpha: float, free: str) -> None:
    if body.out is None:
        show_answer(console, answer, alpha)
        console.print()
    price = Text(body.price, style="bold")
    if body.free:
        price.append(f"  {free}", style="green")
    lines: list[tuple[str, Any]] = [("price", price), ("hides", body.hides)]
    if body.receipt.entry is not None and body.receipt.hash is not None:
        lines.append(("receipt", f"entry {body.receipt.entry} of the ledger, hash {body.receipt.hash[:16]}…"))
    else:
        lines.append(("receipt", body.receipt.id))
    if body.out is not None:
        rows = len(body.rows)
        lines.append(("wrote", f"{body.out} ({rows} row{'' if rows == 1 else 's'})"))
    wide = max(len(name) for name, _ in lines)
    facts(console, lines)
    show_accounts(console, body.budget, label=f"{'budget':{wide}}")
    if body.alert is not None:
        say(console, body.alert, first=Text(f"{'alert':{wide}}  ", style="bold yellow"), style="yellow")
