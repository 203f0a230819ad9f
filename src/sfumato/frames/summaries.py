"""Aggregates: what polars calls them, in SQL's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from ..query.kinds import Kind, Type
from .operators import no_pending
from .terms import AGGREGATE, EMPTY, PER_UNIT, RELEASED, STORED, Term, number, pending, unlike

_NOTHING: Final[Mapping[str, Any]] = {}
_QUANTILES = ("nearest", "linear", "lower", "higher", "midpoint", "equiprobable")


def _of_rows(
    node: exp.Expr,
    term: Term,
    type: Type,
    *,
    nullable: bool = True,
    lower: Any = None,
    meta: Mapping[str, Any] = _NOTHING,
) -> Term:
    """An aggregate of the rows that the term takes."""
    no_pending(term, "An aggregate")
    rows = any(isinstance(part, exp.Column | exp.Null) or STORED in part.meta for part in term.tree.walk())
    if not rows:
        raise unlike("polars takes a value that stands in the query as one row", "multiply it with len()")
    tree = node if term.where is None else exp.Filter(this=node, expression=exp.Where(this=term.where.copy()))
    plain = replace(term, where=None, dropped=False)
    return plain.of(pending(tree, AGGREGATE, meta), type, nullable=nullable, lower=lower)


def length(term: Term | None = None) -> Term:
    """Rows, whatever they hold."""
    if term is not None and term.dropped:
        return count(term)
    every = exp.Count(this=exp.Star(), big_int=True)
    return _of_rows(every, term or Term(exp.Null(), Kind("whole")), "whole", nullable=False, lower=0)


def count(term: Term) -> Term:
    return _of_rows(exp.Count(this=term.tree.copy(), big_int=True), term, "whole", nullable=False, lower=0)


def null_count(term: Term) -> Term:
    test = exp.Is(this=exp.Paren(this=term.tree.copy()), expression=exp.Null())
    test = exp.Is(this=term.tree.copy(), expression=exp.Null()) if isinstance(term.tree, exp.Column) else test
    return _of_rows(exp.CountIf(this=test), term, "whole", nullable=False, lower=0)


def total(term: Term) -> Term:
    """A sum; of conditions, how often they hold. Of no values it is 0 in polars, and NULL in SQL."""
    if term.kind.is_flag:
        return _of_rows(exp.CountIf(this=term.tree.copy()), term, "whole", nullable=False, lower=0)
    lower, type = (0 if term.positive else None), ("whole" if term.kind.is_whole else "real")
    node = exp.Sum(this=term.tree.copy())
    if not term.kind.nullable and term.where is None:
        return _of_rows(node, term, "whole" if type == "whole" else "real", nullable=False, lower=lower)
    return _of_rows(node, term, "whole" if type == "whole" else "real", nullable=False, lower=lower, meta={EMPTY: 0})


def different(term: Term) -> Term:
    """Different values. polars counts a missing one, too; SQL counts pairs of it with itself, where it is one."""
    column = term.tree.copy()
    if term.kind.nullable and not term.kind.unit and not term.dropped:
        column = exp.Tuple(expressions=[column, term.tree.copy()])
    node = exp.Count(this=exp.Distinct(expressions=[column]), big_int=True)
    return _of_rows(node, term, "whole", nullable=False, lower=0)


def mean(term: Term) -> Term:
    return _of_rows(exp.Avg(this=term.tree.copy()), term, "real", lower=0 if term.positive else None)


def middle(term: Term) -> Term:
    """The median. Per unit SQL's is the lower of two in the middle, and polars' lies halfway between them: between the
    lower one and the upper one, which is the lower one of the numbers turned around."""
    node = exp.Median(this=term.tree.copy())
    if term.kind.temporal:
        why = "The median of dates is not possible per unit", "write quantile(0.5, interpolation='equiprobable')"
        return _of_rows(node, term, term.kind.type, meta={RELEASED: why})

    def lower(x: exp.Expr) -> exp.Expr:
        half = exp.PercentileDisc(this=x, expression=number(0.5))
        return half if term.where is None else exp.Filter(this=half, expression=exp.Where(this=term.where.copy()))

    turned = exp.Neg(this=exp.Paren(this=term.tree.copy()))
    both = exp.Paren(this=exp.Sub(this=lower(term.tree.copy()), expression=lower(turned)))
    return _of_rows(node, term, "real", meta={PER_UNIT: exp.Paren(this=exp.Div(this=both, expression=number(2)))})


def _middle_type(term: Term) -> Type:
    return term.kind.type if term.kind.temporal else "real"


def end(node: type[exp.Expr], term: Term) -> Term:
    """MIN and MAX."""
    return _of_rows(node(this=term.tree.copy()), term, term.kind.type, lower=term.kind.lower)


def quantile(term: Term, share: Any, interpolation: str) -> Term:
    """Released quantiles are points of a tree of noisy counts, which lies between values anyway; per unit it is the one
    that SQL has."""
    if interpolation not in _QUANTILES:
        raise unlike(f"interpolation={interpolation!r} is nothing", f"write one of {', '.join(_QUANTILES)}")
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise unlike("A quantile is a number from 0 to 1", "write quantile(0.9), and one call for each")
    if interpolation == "equiprobable":
        node: exp.Expr = exp.PercentileDisc(this=term.tree.copy(), expression=number(share))
        return _of_rows(node, term, _middle_type(term))
    why = f"interpolation={interpolation!r} is not possible per unit", "write interpolation='equiprobable', or median()"
    node = exp.Quantile(this=term.tree.copy(), quantile=number(share))
    return _of_rows(node, term, _middle_type(term), meta={RELEASED: why})


def spread(term: Term, ddof: int, *, root: bool) -> Term:
    """VARIANCE and STDDEV."""
    nodes: dict[tuple[int, bool], type[exp.Expr]] = {
        (1, False): exp.Variance, (0, False): exp.VariancePop, (1, True): exp.Stddev, (0, True): exp.StddevPop,
    }  # fmt: skip
    if (ddof, root) not in nodes:
        raise unlike(f"ddof={ddof!r} is not possible", "write ddof=1 or ddof=0")
    return _of_rows(nodes[ddof, root](this=term.tree.copy()), term, "real", lower=0)


def together(nodes: dict[int, type[exp.Expr]], first: Term, second: Term, ddof: int) -> Term:
    """CORR and COVAR."""
    if ddof not in nodes:
        raise unlike(f"ddof={ddof!r} is not possible", "write ddof=1 or ddof=0")
    if second.where is not None or second.dropped:
        raise unlike("Of two columns the first one is filtered", "filter the frame, or the first of them")
    no_pending(second, "An aggregate")
    return _of_rows(nodes[ddof](this=first.tree.copy(), expression=second.tree.copy()), first, "real")


def holds(word: str, term: Term) -> Term:
    """any() and all(); of nothing, polars says False and True."""
    if not term.kind.is_flag:
        raise unlike("any() and all() are of conditions", "compare the column with something first")
    node = exp.Anonymous(this=word, expressions=[term.tree.copy()])
    return _of_rows(node, term, "flag", nullable=False, meta={EMPTY: word == "BOOL_AND"})


def bins(term: Term, edges: Sequence[Any]) -> Term:
    """HISTOGRAM."""
    listed = exp.Array(expressions=[number(edge) for edge in edges])
    return _of_rows(exp.Anonymous(this="HISTOGRAM", expressions=[term.tree.copy(), listed]), term, "whole")
