"""One release: quoted, rehearsed, or paid, answered and written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import checks
from ..plan import Plan, price_text
from ..project.project import Project
from ..query import Sql, SqlWorkload, ranks
from ..query.finish import expected as half_widths
from ..query.words import counts_for
from ..release import Quote, Release
from .answers import columns_of, encoded, expected_errors, notes_of, rows_of
from .desk import Offer, Paid, at_desk, ready, rehearse
from .documents import AccountDocument, Agreement, Column, Document, Expected, Json, Number, ReceiptDocument
from .files import check_out, write_out
from .watch import SILENT, Watch


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
    rows: list[dict[str, Number | Json]]
    notes: list[str]
    receipt: ReceiptDocument
    budget: list[AccountDocument]
    alert: str | None
    out: str | None


@dataclass(frozen=True, kw_only=True)
class RehearseDocument(Document):
    """An answer on made-up rows: it says nothing about the data, and was free."""

    document: Literal["rehearse/1"] = "rehearse/1"
    project: str
    made_up: Literal[True] = True
    price: str
    hides: str
    alpha: float
    columns: list[Column]
    rows: list[dict[str, Number | Json]]
    notes: list[str]


@dataclass(frozen=True)
class Order:
    """A release that somebody asks for.

    format  of the file: csv, parquet or json
    """

    plan: Plan[Any, Any]
    account: str | None = None
    note: str = ""
    key: str | None = None
    alpha: float = 0.05
    out: Path | None = None
    format: str = "csv"


def quoted(
    project: Project, order: Order, *, explain: bool = False, gauges: bool = False, group_rows: Any = None
) -> tuple[QuoteDocument, Offer]:
    """Price a release. Charges nothing, reads no data."""
    plan = order.plan
    with at_desk(project, order.account, read_only=True) as desk:
        offer = desk.quote(plan, gauges=gauges)
    quote, query = offer.quote, plan if isinstance(plan, Sql) else None
    steps = [step for step in plan.explain() if not step.startswith("run, for ")] if explain else None
    document = QuoteDocument(
        project=project.name,
        price=quote.price,
        epsilon=epsilon_of(quote),
        delta=quote.delta,
        hides=plan.hides,
        plan=plan.hash,
        alpha=order.alpha,
        errors=expected(plan, order.alpha, group_rows),
        advised=query is not None and query.advises,
        limits=None if query is None or query.limits is None else counts_for(query, query.limits),
        due=quote.due,
        fits=quote.affordable,
        budget=offer.budget,
        steps=steps,
        statements=(plan.statements() if isinstance(plan, Sql | SqlWorkload) else {}) if explain else None,
    )
    return document, offer


def answered(
    project: Project, order: Order, agreement: Agreement, *, watch: Watch = SILENT
) -> tuple[QueryDocument, Paid]:
    """Pay for a release, run it, write it. All that can be refused is refused before it is paid."""
    if order.out is not None:
        check_out(order.out, project)
    paid = paid_for(project, order, agreement, watch=watch)
    if order.out is not None:
        write_out(order.out, encoded(paid.release, order.format, order.alpha))
    return _document(project, order, paid), paid


def paid_for(project: Project, order: Order, agreement: Agreement, *, watch: Watch = SILENT) -> Paid:
    """The same, and nothing is written."""
    ready(project, watch)
    with at_desk(project, order.account, watch=watch) as desk:
        return desk.release(order.plan, agreement, note=order.note, key=order.key, work="answering the query")


def rehearsed(
    project: Project, plan: Plan[Any, Any], *, alpha: float = 0.05, rows: int | None = None, watch: Watch = SILENT
) -> tuple[RehearseDocument, Release]:
    """Run a release on made-up rows. The ledger is not asked, and need not be there."""
    release = rehearse(project, plan, rows=rows, watch=watch)
    document = RehearseDocument(
        project=project.name,
        price=price_text(plan),
        hides=plan.hides,
        alpha=alpha,
        columns=columns_of(release, alpha),
        rows=rows_of(release, alpha),
        notes=notes_of(release),
    )
    return document, release


def epsilon_of(quote: Quote) -> float | None:
    """Its epsilon at its delta; a plan in rho names no delta, so it has none."""
    return None if price_text(quote.plan).startswith("rho") else quote.epsilon


def expected(plan: Plan[Any, Any], alpha: float, group_rows: Any = None) -> list[Expected]:
    """For every number of the answer: its half-width, or why that is not known yet; of a quantile in rows of rank, and
    in its own unit for values spread evenly in groups of so many rows."""
    if not isinstance(plan, Sql):
        return expected_errors(plan.expected_errors(alpha), plan.expected_error(alpha))
    widths, ranked = half_widths(plan, alpha), ranks.ranked(plan)
    keys = plan.front.outermost.keys
    errors = []
    for name, _ in plan.front.outermost.outputs:
        if name in ranked and name in widths:
            leaves, size = ranked[name], ranks.ROWS if group_rows is None else checks.positive(group_rows, "group_rows")
            about = ranks.width(leaves, widths[name], size)
            errors.append(Expected(column=f"{name}{ranks.RANK}", error=widths[name]))
            errors.append(Expected(column=name, error=about, why=ranks.assumed(leaves, size)))
        elif name in widths:
            errors.append(Expected(column=name, error=widths[name]))
        elif name not in keys:
            errors.append(Expected(column=name, error=None, why=_why_unknown(plan)))
    return errors


def _why_unknown(plan: Sql) -> str:
    if plan.advises:
        return "the adviser chooses the limits while it runs; with limits={'rows': ...} it is known beforehand"
    return "it depends on how many rows there are; the answer will say it"


def _document(project: Project, order: Order, paid: Paid) -> QueryDocument:
    release = paid.release
    return QueryDocument(
        project=project.name,
        price=price_text(order.plan),
        free=paid.free,
        hides=order.plan.hides,
        alpha=order.alpha,
        columns=columns_of(release, order.alpha),
        rows=rows_of(release, order.alpha),
        notes=notes_of(release),
        receipt=paid.receipt,
        budget=paid.budget,
        alert=paid.alert,
        out=None if order.out is None else str(order.out),
    )
