"""Windows: an aggregate, a rank, a running sum or a shift over the rows of `.over(...)`.

Rows have no order of their own, so whatever goes by one takes it from `order_by`. polars puts missing values first, SQL
last: the window says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from ..query.kinds import Type
from ..query.relations.window_frames import WHOLE_FRAME
from .operators import no_pending
from .terms import AGGREGATE, BY, EMPTY, PENDING, Term, literal, number, pending, pending_in, resolved, unlike

ORDERED = "ordered"  # goes by the order of `over`
RUNNING = "running"  # and takes the rows up to this one
WHOLE = "whole"  # and takes all rows, in that order
RANK = "rank"  # goes by its own values
_RANKS: dict[str, type[exp.Expr]] = {"min": exp.Rank, "dense": exp.DenseRank, "ordinal": exp.RowNumber}


def ordered(term: Term, descending: bool = False, nulls_last: bool = False) -> exp.Ordered:
    """One key of ORDER BY. Where nothing is missing it need not say where that would be."""
    first = term.kind.nullable and not nulls_last
    return exp.Ordered(this=term.tree.copy(), desc=descending or None, nulls_first=first)


def rank(term: Term, method: str, descending: bool) -> Term:
    if method not in _RANKS:
        raise unlike(f"rank({method!r}) is not among SQL's", "write rank('min'), rank('dense') or rank('ordinal')")
    no_pending(term, "A rank")
    by = ordered(term, descending, nulls_last=True)
    tree: exp.Expr = pending(_RANKS[method](), RANK, {BY: by})
    if term.kind.nullable:  # polars gives what is missing no rank
        there = exp.Not(this=exp.Is(this=term.tree.copy(), expression=exp.Null()))
        tree = exp.Case(ifs=[exp.If(this=there, true=tree)])
    return term.of(tree, "whole", lower=1)


def shifted(term: Term, places: int, missing: Term | None = None) -> Term:
    no_pending(term, "shift()")
    node: type[exp.Expr] = exp.Lag if places > 0 else exp.Lead
    offset = None if abs(places) == 1 else number(abs(places))
    if places == 0:
        return term
    parts = {} if missing is None else {"default": missing.tree.copy()}
    if missing is not None:
        offset = number(abs(places))
    tree = pending(node(this=term.tree.copy(), offset=offset, **parts), ORDERED)
    return term.of(tree, term.kind.type, nullable=True, lower=term.kind.lower)


def running(term: Term, node: type[exp.Expr], *, counted: bool = False) -> Term:
    """A cumulative aggregate; what is missing stays so, as in polars."""
    no_pending(term, "A running aggregate")
    total = node(this=term.tree.copy(), big_int=True) if counted else node(this=term.tree.copy())
    tree: exp.Expr = pending(total, RUNNING)
    if counted:
        return term.of(tree, "whole", nullable=False, lower=0)
    if term.kind.nullable:
        there = exp.Not(this=exp.Is(this=term.tree.copy(), expression=exp.Null()))
        tree = exp.Case(ifs=[exp.If(this=there, true=tree)])
    type: Type = "whole" if term.kind.is_flag else term.kind.type
    return term.of(tree, type, lower=0 if term.positive else None)


def at_end(term: Term, node: type[exp.Expr]) -> Term:
    """The first or the last row's value."""
    no_pending(term, "first()")
    tree = pending(node(this=term.tree.copy()), WHOLE if node is exp.LastValue else ORDERED)
    return term.of(tree, term.kind.type, lower=term.kind.lower)


def numbered(start: int) -> Term:
    """The number of a row, from `start` on."""
    tree: exp.Expr = pending(exp.RowNumber(), ORDERED)
    if start != 1:
        node = exp.Add if start > 1 else exp.Sub
        tree = node(this=tree, expression=number(abs(start - 1)))
    return literal(1).of(tree, "whole", nullable=False, lower=start)


def over(term: Term, partition: Sequence[Term], order: Sequence[exp.Ordered]) -> Term:
    """The term with its aggregates over the rows of a part."""
    if next(pending_in(term.tree), None) is None:
        raise unlike("over() follows something that looks at several rows", "write col('x').sum().over('y'), or rank()")
    parts = [no_pending(each, "over()").tree for each in partition]
    return replace(term, tree=resolved(term.tree, _window(parts, order)))


def everywhere(term: Term) -> Term:
    """The term with its aggregates over all rows, as polars takes them beside columns."""
    return replace(term, tree=resolved(term.tree, _window([], [])))


def _window(parts: Sequence[exp.Expr], order: Sequence[exp.Ordered]) -> Callable[[exp.Expr], exp.Expr]:
    def made_of(node: exp.Expr) -> exp.Expr:
        bare = node.copy()
        manner, empty, by = bare.meta.pop(PENDING), bare.meta.pop(EMPTY, None), bare.meta.pop(BY, None)
        if manner not in (AGGREGATE, RANK) and not order:
            raise unlike("Rows have no order of their own", "say which: .over('patient', order_by='day')")
        keys = [by, *(order if isinstance(bare, exp.RowNumber) else [])] if manner == RANK else [*order]
        window = exp.Window(this=bare, partition_by=[part.copy() for part in parts], over="OVER")
        if manner != AGGREGATE:
            window.set("order", exp.Order(expressions=[key.copy() for key in keys]))
        if manner == RUNNING:
            window.set("spec", _frame("CURRENT ROW", None))
        elif manner == WHOLE:
            window.set("spec", _frame("UNBOUNDED", "FOLLOWING"))
            assert WHOLE_FRAME in window.sql("duckdb")
        return window if empty is None else exp.Coalesce(this=window, expressions=[literal(empty).tree])

    return made_of


def _frame(end: str, side: str | None) -> exp.WindowSpec:
    spec = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end=end)
    if side is not None:
        spec.set("end_side", side)
    return spec
