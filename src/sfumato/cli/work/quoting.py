"""`sfumato quote`: the price, the error and the verdict, before anything is paid."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ... import checks
from ...plan import price_text
from ...project import open_project
from ...query import Sql, ranks
from ...query.finish import expected as half_widths
from ...query.words import counts_for
from ...release import Quote
from ..documents import Document, Part
from ..problems import BUDGET
from ..screen import facts, say
from ..telling import Outcome
from .asked import Asked
from .budgets import AccountDocument, accounts, room_for, show_accounts, stands, with_changes
from .shortage import raise_command, refused_in_words

_WIDE = len("verdict")


class Expected(Part):
    """The half-width of a column that is known before anything runs; null where it depends on the data, with `why`. Of
    a quantile in rows of rank, and about what that is in its own unit, where `why` is what that assumes. Of noise
    alone: what limits cut is not in it."""

    column: str
    error: float | None
    why: str | None = None


class QuoteDocument(Document):
    """What a query would cost.

    due       why nothing would be paid now (it was answered before, or paid as a part of a list); else null
    fits      would the ledger accept it now?
    steps, statements   with --explain: what is done, and the SQL that the engine runs, by what it is for
    """

    document: Literal["quote/1"] = "quote/1"
    project: str
    price: str
    epsilon: float | None
    delta: float
    hides: str
    plan: str
    alpha: float
    errors: list[Expected]
    advised: bool
    limits: str | None
    due: str | None
    fits: bool
    budget: list[AccountDocument]
    steps: list[str] | None = None
    statements: dict[str, str] | None = None


def quoted(folder: Path, asked: Asked, *, account: str | None, explain: bool, gauges: bool = False) -> Outcome:
    """Price a query of a project. Charges nothing, reads no data."""
    text, options = asked.text(), asked.options()
    project = open_project(folder)
    plan = project.plan(text, **options)
    with project.ledger(read_only=True) as ledger:
        curator = project.curator(ledger, account)
        quote = curator.quote(plan)
        room = None if quote.due is not None else room_for(ledger, quote.used, plan, paid=False)
        now = stands(ledger, quote.used)
        after = now if quote.due is not None else stands(ledger, quote.used, plan)
        budget = with_changes(accounts(ledger, quote.used), now, after, room)
        for number, each in enumerate(budget):
            if each.fits is False:
                why = refused_in_words(ledger, each.account, plan, gauges=gauges)
                budget[number] = each.model_copy(update={"refusal": "\n".join(why)})
        raising = [raise_command(ledger, each.account, plan) for each in budget if each.fits is False]
    body = QuoteDocument(
        project=project.name,
        price=quote.price,
        epsilon=epsilon_of(quote),
        delta=quote.delta,
        hides=plan.hides,
        plan=plan.hash,
        alpha=asked.alpha,
        errors=expected(plan, asked.alpha, options.get("group_rows")),
        advised=plan.advises,
        limits=None if plan.limits is None else counts_for(plan, plan.limits),
        due=quote.due,
        fits=quote.affordable,
        budget=budget,
        steps=[step for step in plan.explain() if not step.startswith("run, for ")] if explain else None,
        statements=plan.statements() if explain else None,
    )
    return Outcome(body, lambda console: _show(console, body, plan, raising, gauges=gauges), 0 if body.fits else BUDGET)


def epsilon_of(quote: Quote) -> float | None:
    """Its epsilon at its delta; a plan in rho names no delta, so it has none."""
    return None if price_text(quote.plan).startswith("rho") else quote.epsilon


def expected(plan: Sql, alpha: float, rows: Any = None) -> list[Expected]:
    """For every number of the answer: its half-width, or why that is not known yet; of a quantile in rows of rank, and
    in its own unit for values spread evenly in groups of so many rows."""
    known, ranked = half_widths(plan, alpha), ranks.ranked(plan)
    keys = plan.front.outermost.keys
    found = []
    for name, _ in plan.front.outermost.outputs:
        if name in ranked and name in known:
            leaves, size = ranked[name], ranks.ROWS if rows is None else checks.positive(rows, "group_rows")
            about = ranks.width(leaves, known[name], size)
            found.append(Expected(column=f"{name}{ranks.RANK}", error=known[name]))
            found.append(Expected(column=name, error=about, why=ranks.assumed(leaves, size)))
        elif name in known:
            found.append(Expected(column=name, error=known[name]))
        elif name not in keys:
            found.append(Expected(column=name, error=None, why=_why_unknown(plan)))
    return found


def _why_unknown(plan: Sql) -> str:
    if plan.advises:
        return "the adviser chooses the limits while it runs; with --limit rows=... it is known beforehand"
    return "it depends on how many rows there are; the answer will say it"


def _show(console: Console, body: QuoteDocument, plan: Sql, raising: list[str], *, gauges: bool) -> None:
    lines: list[tuple[str, Any]] = [("price", Text(body.price, style="bold")), ("hides", body.hides)]
    at = f"at {100 * (1 - body.alpha):.6g} %"
    for each in body.errors:
        if each.error is not None:
            about = ("", "") if each.why is None else (f" (about, {each.why})", "dim")
            width = f"{each.column} ± {each.error:,.4g} {at}{plan.error_words}"
            lines.append(("error", Text.assemble(width, about)))
        else:
            lines.append(("error", Text.assemble(f"{each.column}: not known yet", (f" ({each.why})", "dim"))))
    if body.advised:
        lines.append(("limits", f"chosen by the adviser, for {100 * float(plan.advice):.3g} % of the price"))
    elif body.limits is not None and plan.front.units:
        lines.append(("limits", body.limits))
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


def _gauges(each: AccountDocument) -> list[str]:
    """The ways of adding up that are open, and what is spent in each."""
    return [
        f"{gauge.currency}: {gauge.spent:.6g} of {gauge.limit:.6g} spent, {gauge.left:.6g} left"
        for gauge in [*each.gauges, *([] if each.delta is None else [each.delta])]
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
