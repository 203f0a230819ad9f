"""The aggregates of a group: functions of its multiset of rows, never of their order, and never raising."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from ...sources.vocabulary import call
from ..expressions import distinct_pairs, likely, trees
from ..expressions.functions.operands import as_whole
from ..kinds import Kind, Typed
from ..refusal import QueryError, typed_name
from . import totals
from .bases import steady

if TYPE_CHECKING:
    from .reading import Reading

SPREADS: dict[type[exp.Expression], tuple[bool, bool]] = {  # sample?, root?
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
ORDERED = ("real", "whole", "flag", "text", "date", "moment")
_KNOWN = "COUNT, SUM, AVG, MIN, MAX, MODE, VARIANCE, STDDEV, MEDIAN, QUANTILE_DISC, BOOL_AND, BOOL_OR, COUNT_IF"
_BY_ORDER = (exp.AnyValue, exp.First, exp.Last, exp.ArrayAgg, exp.GroupConcat, exp.ArgMax, exp.ArgMin)
COUNTED = Kind("whole", Fraction(0), nullable=False, likely=likely.COUNT)


def aggregate(node: exp.Expression, rows: Reading) -> Typed:
    """One aggregate over the rows of a group."""
    shown, condition = node, None
    if isinstance(node, exp.Filter):
        condition, node = rows.condition(node.expression.this), node.this
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this  # aggregates skip NULLs anyway
    if isinstance(node, exp.Count):
        return _count(node, rows, condition)
    if isinstance(node, exp.CountIf):
        truth = rows.condition(node.this)
        return Typed(totals.count(Typed(trees.when(_both(truth, condition), trees.whole(1)), COUNTED)), COUNTED)
    if isinstance(node, (exp.Quantile, exp.PercentileDisc, exp.PercentileCont, exp.Median, exp.WithinGroup)):
        return _quantile(node, rows, condition)
    if isinstance(node, _BY_ORDER):
        raise QueryError(
            f"{_word(node)} depends on the order in which the engine meets rows.",
            "use MIN, MAX or MEDIAN, or a window with ROW_NUMBER() and a filter",
            shown,
        )
    if isinstance(node.this, exp.Distinct):
        raise QueryError(
            f"{_word(node)}(DISTINCT ...) is not possible.", "make the rows distinct in a subquery first", shown
        )
    if not isinstance(node, (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, *SPREADS)):
        raise QueryError(f"{_word(node)} is not among the aggregates of a subquery.", f"use one of: {_KNOWN}", shown)
    return _of_one(node, _kept(rows.translate(node.this), condition), shown)


def _of_one(node: exp.Expression, x: Typed, shown: exp.Expression) -> Typed:
    if isinstance(node, (exp.Min, exp.Max)):
        if node.expressions:
            raise QueryError("MIN and MAX take one column.", "use LEAST or GREATEST for several", shown)
        return extreme(node, x, shown)
    if isinstance(node, (exp.LogicalAnd, exp.LogicalOr)):
        if x.kind.type != "flag":
            raise QueryError(f"{_word(node)} needs a condition.", "compare the column with something", shown)
        return Typed(type(node)(this=x.tree), Kind("flag", values=(False, True)))
    return number(node, x, shown)


def number(node: exp.Expression, x: Typed, shown: exp.Expression, over: totals.Over = totals.as_is) -> Typed:
    """SUM, AVG, VARIANCE and STDDEV; of flags, as of 1 and 0."""
    x = as_whole(x)
    if not x.kind.numeric:
        raise QueryError(
            f"{node.key.upper()} needs numbers, and this is {x.kind.type}.", "cast it, such as CAST(x AS DOUBLE)", shown
        )
    if isinstance(node, exp.Sum):
        return totals.total(x, over)
    if isinstance(node, exp.Avg):
        return totals.mean(x, over)
    sample, root = SPREADS[type(node)]
    return totals.variance(x, shown, sample=sample, root=root)


def extreme(node: exp.Expression, x: Typed, shown: exp.Expression, over: totals.Over = totals.as_is) -> Typed:
    """MIN or MAX."""
    _check_ordered(x, node.key.upper(), shown)
    return Typed(over(type(node)(this=steady(x.tree, x.kind))), x.kind.moved())


def _count(node: exp.Count, rows: Reading, condition: exp.Expression | None) -> Typed:
    inner = node.this
    if inner is None or isinstance(inner, exp.Star):
        one = trees.whole(1) if condition is None else trees.when(condition, trees.whole(1))
        return Typed(totals.count(Typed(one, COUNTED)), COUNTED)
    if isinstance(inner, exp.Distinct):
        x = _kept(distinct_pairs.counted(inner, rows.translate, steady), condition)
        counted: exp.Expression = exp.Distinct(expressions=[x.tree])
    elif node.expressions:
        raise QueryError("COUNT takes one column.", "write COUNT(DISTINCT (a, b)), or COUNT(*)", node)
    else:
        counted = _kept(rows.translate(inner), condition).tree
    return Typed(exp.Count(this=counted, big_int=True), COUNTED)


def _quantile(node: exp.Expression, rows: Reading, condition: exp.Expression | None) -> Typed:
    """A value that is there: interpolating between two would make a third."""
    inner, descending = node, False
    if isinstance(node, exp.WithinGroup):
        inner, ordered = node.this, node.expression.expressions[0]
        values, chance, descending = ordered.this, inner.this, bool(ordered.args.get("desc"))
    elif isinstance(node, exp.Median):
        values, chance = node.this, exp.Literal.number("0.5")
    else:
        values, chance = node.this, node.args.get("expression") or node.args.get("quantile")
    if isinstance(inner, exp.PercentileCont):
        raise QueryError(
            "A quantile between two values is not possible per unit.",
            "use QUANTILE_DISC(x, p), a value of the data",
            node,
        )
    if not isinstance(chance, exp.Literal) or chance.is_string or not 0 <= Fraction(chance.name) <= 1:
        raise QueryError("The share of a quantile is a number from 0 to 1.", "write it out, such as 0.9", node)
    x = _kept(rows.translate(values), condition)
    _check_ordered(x, "QUANTILE", node)
    share = 1 - Fraction(chance.name) if descending else Fraction(chance.name)
    tree = call("value_at", steady(x.tree, x.kind), trees.real(share))
    return Typed(tree, x.kind.moved())


def _check_ordered(x: Typed, word: str, node: exp.Expression) -> None:
    if x.kind.type not in ORDERED:
        raise QueryError(
            f"{word} needs values with an order, and this is a {x.kind.type}.", "cast it: CAST(x AS VARCHAR)", node
        )


def _word(node: exp.Expression) -> str:
    return typed_name(node) if isinstance(node, exp.Func) else node.key.upper()


def _kept(x: Typed, condition: exp.Expression | None) -> Typed:
    return x if condition is None else Typed(trees.when(condition.copy(), x.tree), replace(x.kind, nullable=True))


def _both(one: exp.Expression, other: exp.Expression | None) -> exp.Expression:
    return one if other is None else trees.binary(exp.And, one, other.copy())
