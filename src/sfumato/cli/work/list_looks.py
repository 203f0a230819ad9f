"""`sfumato quote plan.yaml` and `sfumato rehearse plan.yaml`: a list of releases, before anything is paid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ...office.list_looks import QuotesDocument, quotes, rehearsals
from ...project import open_project
from ..problems import BUDGET, CommandError
from ..screen import facts, say
from ..shell_words import in_shell
from ..telling import Outcome
from ..watching import Terminal
from .answers import show_release
from .budgets import show_accounts
from .ordering import order_of
from .quoting import error_text, in_words
from .run_words import WORDS, show_price, show_verdict
from .typed_query import TypedQuery

_WIDE = len("verdict")
_ENDINGS = (".yaml", ".yml")


def list_of(question: TypedQuery) -> Path | None:
    """The list that was typed in place of a query; None where it is a query. All that options say, its file says."""
    words = (question.sql or "").split()
    if question.file is not None or len(words) != 1 or Path(words[0]).suffix.lower() not in _ENDINGS:
        return None
    if question != TypedQuery(sql=question.sql):
        raise CommandError(
            "that option is for queries", f"{words[0]} says it for each of its releases", f"write it in {words[0]}"
        )
    return Path(words[0])


def quoted_list(folder: Path, file: Path, *, account: str | None, more: bool) -> Outcome:
    """Price a list, and say how exact each of its answers would be; `more` is told of a query only."""
    if more:
        raise CommandError(
            "--explain and --gauges are for one query",
            f"{file.name} is a list",
            "give the query itself, or leave it out",
        )
    project = open_project(folder)
    order = order_of(project, file)
    if account is not None:
        order = replace(order, listed=replace(order.listed, account=account))
    document = quotes(project, order)
    releases = [replace(each, errors=list(map(in_words, each.errors))) for each in document.releases]
    body = replace(document, releases=releases)
    words = [plan.error_words for _, plan in order.plans]
    return Outcome(body, lambda console: _show(console, body, words), 0 if body.fits else BUDGET)


def rehearsed_list(folder: Path, file: Path, *, rows: int | None) -> Outcome:
    """Run each release of a list on made-up rows."""
    project = open_project(folder)
    order = order_of(project, file)
    document, results = rehearsals(project, order, rows=rows, watch=Terminal())
    releases = [
        replace(each, answer=replace(each.answer, notes=[in_shell(note) for note in each.answer.notes]))
        for each in document.releases
    ]
    body = replace(document, releases=releases)

    def show(console: Console) -> None:
        say(console, "MADE-UP ROWS: this says nothing about the data", style="bold yellow")
        for rehearsed, result in zip(body.releases, results, strict=True):
            console.print()
            say(console, rehearsed.name, style="bold")
            show_release(console, result, rehearsed.answer.alpha)
            would = Text.assemble((rehearsed.answer.price, "bold"), ("  would be the price alone", "dim"))
            facts(console, [("price", would), ("hides", rehearsed.answer.hides)])

    return Outcome(body, show)


def _show(console: Console, body: QuotesDocument, words: list[str]) -> None:
    for quoted, more in zip(body.releases, words, strict=True):
        status, style = WORDS[quoted.status]
        at = f"at {100 * (1 - quoted.alpha):.6g} %{more}"
        say(console, Text.assemble((quoted.name, "bold"), f"  {quoted.price} alone, ", (status, style)))
        lines: list[tuple[str, Any]] = [("  hides", quoted.hides)]
        facts(console, lines + [("  error", error_text(error, at)) for error in quoted.errors])
    console.print()
    show_price(console, body.price)
    show_accounts(console, body.budget, label=f"{'budget':{_WIDE}}", now=True)
    show_verdict(console, body.price, fits=body.fits)
    if body.alert is not None:
        say(console, body.alert, first=Text(f"{'alert':{_WIDE}}  ", style="bold yellow"), style="yellow")
