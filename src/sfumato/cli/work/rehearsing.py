"""`sfumato rehearse`: the whole way of a query, on rows that are made up from the schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ...office.asking import rehearsed as rehearse
from ...project import open_project
from ..screen import facts, say
from ..shell_words import in_shell
from ..telling import Outcome
from ..watching import Terminal
from .answers import show_release
from .typed_query import TypedQuery


def rehearsed(folder: Path, question: TypedQuery, *, rows: int | None) -> Outcome:
    """Run a query of a project on made-up rows. The ledger is not asked, and need not be there."""
    text, options = question.text(), question.options()
    project = open_project(folder)
    plan = project.plan(text, **options)
    document, release = rehearse(project, plan, alpha=question.alpha, rows=rows, watch=Terminal())
    body = replace(document, notes=[in_shell(line) for line in document.notes])

    def show(console: Console) -> None:
        say(console, "MADE-UP ROWS: this says nothing about the data", style="bold yellow")
        show_release(console, release, question.alpha)
        console.print()
        would = Text.assemble((body.price, "bold"), ("  would be the price; the rehearsal was free", "dim"))
        facts(console, [("price", would), ("hides", body.hides)])

    return Outcome(body, show)
