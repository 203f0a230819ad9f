"""`sfumato query`: pay, run, show."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ...office.answers import encoded
from ...office.asking import Order, QueryDocument
from ...office.asking import answered as answer
from ...office.desk import Paid
from ...office.documents import Agreement
from ...office.reading_public import PUBLIC, encoded_answer, read_public
from ...plain_text import printable
from ...project import Project, open_project
from ...query.above.above_rules import PublicOnlyError
from ..problems import CommandError
from ..screen import facts, say
from ..shell_words import in_shell
from ..telling import Outcome
from ..watching import Terminal
from .answers import format_of, show_answer, show_release
from .budgets import show_accounts
from .typed_query import TypedQuery


def answered(
    folder: Path,
    question: TypedQuery,
    *,
    account: str | None,
    note: str,
    key: str | None,
    out: Path | None,
    format: str | None,
    json: bool,
) -> Outcome:
    """Release a query of a project. All that can be refused is refused before it is paid."""
    text, options = question.text(), question.options()
    how = format_of(out, format, json=json)
    if how == "parquet" and out is None and sys.stdout.isatty():
        raise CommandError("Parquet is nothing to look at", "this is a terminal", "give --out FILE, or pipe it on")
    project = open_project(folder)
    try:
        plan = project.plan(text, **options)
    except PublicOnlyError:
        return _of_public(project, text, question, out, how)
    return answer_of(project, Order(plan, account, note, key, question.alpha, out, how))


def answer_of(project: Project, order: Order) -> Outcome:
    """Pay for one release, and show it as the order says."""
    out, how, alpha = order.out, order.format, order.alpha
    document, paid = answer(project, order, Agreement.to(order.plan), watch=Terminal())
    body = replace(document, notes=[in_shell(line) for line in document.notes])

    def show(console: Console) -> None:
        if out is None and how != "table":
            sys.stdout.flush()
            content = encoded(paid.release, how, alpha)
            if sys.stdout.isatty():  # a file or a pipe gets the keys as they are; a terminal would obey them
                content = printable(content.decode("utf-8"), lines=True).encode("utf-8")
            sys.stdout.buffer.write(content)
            return
        _show(console, body, paid, alpha)

    return Outcome(body, show)


def _of_public(project: Project, text: str, question: TypedQuery, out: Path | None, how: str) -> Outcome:
    """The answer to a query of public tables: no account is asked, and no receipt written."""
    document, answer = read_public(project, text, dialect=question.dialect, out=out, format=how)
    body = replace(document, notes=[in_shell(line) for line in document.notes])

    def show(console: Console) -> None:
        if out is None and how != "table":
            sys.stdout.flush()
            sys.stdout.buffer.write(encoded_answer(answer, how))
            return
        if out is None:
            show_answer(console, answer, question.alpha)
            console.print()
        facts(console, [("price", Text(PUBLIC, style="bold green")), *([("wrote", str(out))] if out else [])])

    return Outcome(body, show)


def _show(console: Console, body: QueryDocument, paid: Paid, alpha: float) -> None:
    if body.out is None:
        show_release(console, paid.release, alpha)
        console.print()
    price = Text(body.price, style="bold")
    if body.free:
        price.append(f"  {paid.why_free}", style="green")
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
