"""What notebooks show of plans, quotes, releases, private data, schemas, budgets and ledgers: one function for each.

They read what these things say of themselves, and never data. Nobody imports this file: `exhibits` loads it when a
notebook asks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .display import Html, bar, error_bar, facts, paragraph, span, steps, table, text
from .display import card as framed
from .errors import LedgerError
from .plan import told_before

if TYPE_CHECKING:
    from .accounting.budget import Budget
    from .accounting.compare import Comparison
    from .ledger.ledger import Ledger
    from .plan import Plan
    from .private import Private
    from .release import Figure, Quote, Release
    from .schema import Schema

_ROWS_SHOWN = 20


def schema(of: Schema) -> Html:
    views = [table((f"{name} (view)", ""), [("query", text)]) for name, text in of.views.items()]
    return framed("", *(table((each.title, ""), each.columns.items()) for each in of.tables.values()), *views)


def budget(of: Budget) -> Html:
    promise = f"All that is paid from an account with this budget, however it is chosen, stays within {of}."
    rows = [(member.currency, f"{float(member.limit):.6g}") for member in of.members()]
    closing = "A release passes while one gauge has room for it." if len(rows) > 1 else ""
    return framed(f"Budget: {of}", paragraph(promise), table(("gauge", "limit"), rows, right=(1,)), note=closing)


def comparison(of: Comparison) -> Html:
    return framed(of.title, table(of.HEAD, of.cells(), right=(1, 2, 3)))


def plan(of: Plan[Any, Any]) -> Html:
    lines = [*told_before(of), ("hash", f"{of.hash[:16]}...")]
    return framed(f"Plan: {type(of).__name__}", steps(of.explain()), facts(lines))


def ledger(of: Ledger) -> str:
    from .report.accounts import page

    try:
        return page.ledger(of._store)
    except LedgerError as problem:  # closed, or not to be read: a notebook shows the words, not a traceback
        return framed("Ledger", paragraph(problem))


def private(of: Private) -> Html:
    closed = "The data is behind the door: it opens only for a plan that was paid for."
    lines = [("version", of.version), ("hides", of.hides)]
    lines += [("blocks", ", ".join(of.blocks))] if of.blocks else []
    return framed(f"Private: {of.name}", facts(lines), schema(of.schema), note=closed)


def quote(of: Quote) -> Html:
    lines: list[tuple[Any, Any]] = [*of.facts()]
    for words, (before, after) in zip(of.left, of.used.values(), strict=False):
        drawn = "" if before is None or after is None else bar(before, after - before)
        lines.append(("budget", Html(f"{text(words)}<br>{drawn}")))
    note = "Nothing was touched or charged. The limit is the guarantee; what is spent is a gauge."
    return framed(f"Quote: {of.verdict}", facts(lines), note=note)


def release(of: Release) -> Html:
    """Figures with their error bars, each group to a scale of its own, and tables as they show themselves."""
    figures, tables = of.groups()
    rows: list[tuple[Any, ...]] = []
    for group in figures:
        within = _span(group)
        rows += [(*figure.texts, _error_bar(figure, within)) for figure in group]
    parts = []
    if rows:
        parts.append(table(("", "value", "± at 95 %", ""), rows[:_ROWS_SHOWN], right=(1,)))
    if len(rows) > _ROWS_SHOWN:
        parts.append(paragraph(f"... and {len(rows) - _ROWS_SHOWN} more", quiet=True))
    parts += [framed(name, Html(answer._repr_html_())) for name, answer in tables]
    title = "Rehearsed on made-up rows: this says nothing about the data" if of.receipt is None else ""
    return framed(title, *parts, note=of.footnote + _paid(of))


def _paid(of: Release) -> str:
    if of.receipt is None:
        return ""
    return f"; receipt {of.receipt.id[:8]} on {', '.join(of.receipt.accounts)}; {of.receipt.grade} noise"


def _span(figures: list[Figure]) -> tuple[float, float] | None:
    """The scale of error bars. A number that stands alone is seen against 0."""
    points: list[tuple[float, float | None]] = [(float(f.value), f.error) for f in figures if _is_drawn(f)]
    return span([*points, (0.0, None)] if len(points) == 1 else points)


def _is_drawn(figure: Figure) -> bool:
    return figure.is_number and figure.error is not None and math.isfinite(figure.value)


def _error_bar(figure: Figure, within: tuple[float, float] | None) -> Html:
    return error_bar(float(figure.value), figure.error, within) if _is_drawn(figure) else Html("")
