"""`sfumato quote`: the price, the error and the verdict, before anything is paid."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ...office.asking import Order, QuoteDocument
from ...office.asking import quoted as quote
from ...office.documents import AccountDocument, Expected
from ...plan import Plan, price_text
from ...project import Project, open_project
from ...query import Sql, SqlWorkload
from ..problems import BUDGET
from ..screen import facts, say
from ..shell_words import in_shell
from ..telling import Outcome
from .budgets import show_accounts
from .raising import raise_command
from .typed_query import TypedQuery

_WIDE = len("verdict")


def quoted(folder: Path, question: TypedQuery, *, account: str | None, explain: bool, gauges: bool = False) -> Outcome:
    """Price a query of a project. Charges nothing, reads no data."""
    text, options = question.text(), question.options()
    project = open_project(folder)
    plan = project.plan(text, **options)
    order = Order(plan, account, alpha=question.alpha)
    return quote_of(project, order, explain=explain, gauges=gauges, group_rows=options.get("group_rows"))


def quote_of(project: Project, order: Order, *, explain: bool, gauges: bool, group_rows: Any = None) -> Outcome:
    """The price of one release, as people read it."""
    plan = order.plan
    document, offer = quote(project, order, explain=explain, gauges=gauges, group_rows=group_rows)
    body = replace(document, errors=[in_words(each) for each in document.errors])
    raising = [raise_command(name, budget) for name, budget in offer.short.items()]
    return Outcome(body, lambda console: _show(console, body, plan, raising, gauges=gauges), 0 if body.fits else BUDGET)


def in_words(error: Expected) -> Expected:
    """In the words of the shell."""
    return error if error.why is None else replace(error, why=in_shell(error.why))


def error_text(error: Expected, at: str) -> Text:
    """How exact a column will be, or why that is not known."""
    if error.error is None:
        return Text.assemble(f"{error.column}: not known yet", (f" ({error.why})", "dim"))
    about = ("", "") if error.why is None else (f" (about, {error.why})", "dim")
    return Text.assemble(f"{error.column} ± {error.error:,.4g} {at}", about)


def show_price(console: Console, plan: Plan[Any, Any]) -> None:
    """What somebody agrees to."""
    facts(console, [("price", Text(price_text(plan), style="bold")), ("hides", plan.hides)])


def _show(console: Console, body: QuoteDocument, plan: Plan[Any, Any], raising: list[str], *, gauges: bool) -> None:
    lines: list[tuple[str, Any]] = [("price", Text(body.price, style="bold")), ("hides", body.hides)]
    at = f"at {100 * (1 - body.alpha):.6g} %"
    lines += [("error", error_text(each, f"{at}{plan.error_words}")) for each in body.errors]
    if body.advised and isinstance(plan, Sql):
        lines.append(("limits", f"chosen by the adviser, for {100 * float(plan.advice):.3g} % of the price"))
    elif body.limits is not None and isinstance(plan, Sql) and plan.front.units:
        lines.append(("limits", body.limits))
    lines += [
        (name, in_shell(words)) for name, words in plan.expected_work().items() if isinstance(plan, Sql | SqlWorkload)
    ]
    facts(console, lines, wide=_WIDE)
    show_accounts(console, body.budget, label=f"{'budget':{_WIDE}}", now=True)
    for account in body.budget:
        why = [] if account.refusal is None else account.refusal.splitlines()
        for line in why or (_gauges(account) if gauges else []):
            say(console, line, first=" " * (_WIDE + 2), style="dim")
    if body.due is not None:
        facts(console, [("due now", Text(body.due, style="bold green"))])
    elif body.fits:
        facts(console, [("verdict", Text("fits the budget", style="bold green"))])
    else:
        facts(console, [("verdict", Text("does not fit the budget: ask for less, or raise it", style="bold red"))])
        for command in raising:
            say(console, command, first=" " * (_WIDE + 2), style="dim")
    if body.steps is not None and body.statements is not None:
        _show_steps(console, body.steps, body.statements)


def _gauges(account: AccountDocument) -> list[str]:
    """The ways of adding up that are open, and what is spent in each."""
    return [
        f"{gauge.currency}: {gauge.spent:.6g} of {gauge.limit:.6g} spent, {gauge.left:.6g} left"
        for gauge in [*account.gauges, *([] if account.delta is None else [account.delta])]
    ]


def _show_steps(console: Console, steps: list[str], statements: dict[str, str]) -> None:
    say(console, "")
    say(console, "What is done", style="bold")
    for number, step in enumerate(steps, 1):
        say(console, step, first=f"{number:>2}. ")
    for name, text in statements.items():
        say(console, "")
        say(console, f"The SQL that the engine runs, for {name}", style="bold")
        console.print(textwrap.indent(text, "  "), soft_wrap=True)
