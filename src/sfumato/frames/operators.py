"""Arithmetic and comparisons that mean what polars says, in SQL's words.

`/` gives reals in both. `//` and `%` round down in polars, and towards 0 in SQL: the same where nothing is below 0, as
the schema may say; elsewhere the SQL is longer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sqlglot import exp

from ..query.kinds import Kind, Type
from .terms import Term, number, pending_in, unlike

COMPARISONS: dict[str, type[exp.Expr]] = {
    "==": exp.EQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
_PLAIN = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Func, exp.Cast, exp.Window, exp.Paren, exp.Interval)


def bracketed(tree: exp.Expr) -> exp.Expr:
    """An operand, in brackets where it is more than a word."""
    if isinstance(tree, _PLAIN) and not isinstance(tree, exp.And | exp.Or):
        return tree.copy()
    return exp.Paren(this=tree.copy())


def alone(term: Term, what: str) -> Term:
    """A term that nothing was filtered out of: else only an aggregate may follow."""
    if term.where is not None or term.dropped:
        raise unlike(
            "After filter() or drop_nulls() of an expression an aggregate follows",
            f"write {what} before it, or filter the frame",
        )
    return term


def both(node: type[exp.Expr], left: Term, right: Term, type: Type, **facts: Any) -> Term:
    """An operator of two operands, NULL where either is."""
    tree = node(this=bracketed(left.tree), expression=bracketed(right.tree))
    return left.of(tree, type, nullable=left.kind.nullable or right.kind.nullable, **facts)


def compare(sign: str, left: Term, right: Term) -> Term:
    left, right = alone(left, "comparisons"), alone(right, "comparisons")
    if left.kind.type == "span" or right.kind.type == "span":
        left, right = _days(left), _days(right)
    return both(COMPARISONS[sign], left, right, "flag")


def _days(term: Term) -> Term:
    """A length of time as a number of days, beside another one."""
    if term.kind.type != "span":
        raise unlike("A length of time is compared with another one", "compare it with a datetime.timedelta")
    if not isinstance(term.tree, exp.Interval):
        return term.of(term.tree, "whole")
    if term.tree.args["unit"].name != "DAY" or term.kind.lower is None:
        raise unlike("Dates differ by whole days", "compare with datetime.timedelta(days=...)")
    return Term(number(int(term.kind.lower)), Kind("whole", nullable=False))


def logic(node: type[exp.Expr], left: Term, right: Term) -> Term:
    left, right = alone(left, "conditions"), alone(right, "conditions")
    return both(node, left, right, "flag")


def arithmetic(sign: str, left: Term, right: Term) -> Term:
    """`+ - * / // %` and `**`, as polars has them."""
    left, right = alone(left, "arithmetic"), alone(right, "arithmetic")
    kinds = left.kind, right.kind
    if any(kind.temporal or kind.type == "span" for kind in kinds):
        return _of_times(sign, left, right)
    if any(kind.textual for kind in kinds):
        if sign != "+":
            raise unlike(f"Texts have no {sign}", "cast them to numbers first")
        return both(exp.DPipe, left, right, "text")
    type: Type = "real" if sign in ("/", "**") or any(kind.is_real for kind in kinds) else "whole"
    positive = 0 if left.positive and right.positive else None
    if sign == "+":
        return both(exp.Add, left, right, type, lower=positive)
    if sign == "-":
        return both(exp.Sub, left, right, type)
    if sign == "*":
        return both(exp.Mul, left, right, type, lower=positive)
    if sign == "/":
        return _divided(left, right)
    if sign == "**":
        tree = exp.Pow(this=left.tree.copy(), expression=right.tree.copy())
        return left.of(tree, "real", nullable=True, lower=positive)
    return _rounded_down(sign, left, right, type)


def _divided(left: Term, right: Term) -> Term:
    positive = 0 if left.positive and right.positive else None
    term = both(exp.Div, left, right, "real", lower=positive)
    return term if _sure(right) else left.of(term.tree, "real", nullable=True, lower=positive)


def _sure(divisor: Term) -> bool:
    """Is it a number in the query that is not 0?"""
    return divisor.kind.lower is not None and divisor.kind.lower == divisor.kind.upper != 0


def _rounded_down(sign: str, left: Term, right: Term, type: Type) -> Term:
    """`//` and `%`: SQL's where nothing is below 0, else made of them. By 0 they are NULL."""
    nullable = left.kind.nullable or right.kind.nullable or not _sure(right)
    simple = left.positive and _sure(right) and right.positive
    lower = 0 if right.positive and (sign == "%" or left.positive) else None
    if sign == "%":
        tree: exp.Expr = both(exp.Mod, left, right, type).tree if simple else _modulo(left, right)
    elif type == "real":
        tree = exp.Floor(this=both(exp.Div, left, right, "real").tree)
    elif simple:
        tree = both(exp.IntDiv, left, right, type).tree
    else:
        whole = exp.Paren(this=exp.Sub(this=bracketed(left.tree), expression=exp.Paren(this=_modulo(left, right))))
        tree = exp.IntDiv(this=whole, expression=bracketed(right.tree))
    return left.of(tree, type, nullable=nullable, lower=lower)


def _modulo(left: Term, right: Term) -> exp.Expr:
    """((a % b) + b) % b, which has the sign of b."""
    rest = exp.Paren(this=exp.Mod(this=bracketed(left.tree), expression=bracketed(right.tree)))
    above = exp.Paren(this=exp.Add(this=rest, expression=bracketed(right.tree)))
    return exp.Mod(this=above, expression=bracketed(right.tree))


def _of_times(sign: str, left: Term, right: Term) -> Term:
    kinds = left.kind.type, right.kind.type
    if sign == "-" and kinds == ("date", "date"):
        return both(exp.Sub, left, right, "span")
    if sign == "-" and left.kind.temporal and right.kind.temporal:
        raise unlike("A difference of moments is a Duration, which SQL has not", "take dt.date() of both, and subtract")
    moved = sign in ("+", "-") and left.kind.temporal and isinstance(right.tree, exp.Interval)
    if sign == "+" and right.kind.temporal and isinstance(left.tree, exp.Interval):
        left, right, moved = right, left, True
    if not moved:
        raise unlike(f"{kinds[0]} {sign} {kinds[1]} is nothing", "add a datetime.timedelta to a date or a moment")
    if left.kind.is_date and right.tree.args["unit"].name != "DAY":
        raise unlike("A date has no hours", "cast it to datetime first, or add whole days")
    return both(exp.Add if sign == "+" else exp.Sub, left, right, left.kind.type)


def negated(term: Term) -> Term:
    term = alone(term, "signs")
    return term.of(exp.Neg(this=bracketed(term.tree)), "real" if term.kind.is_real else "whole")


def opposite(term: Term) -> Term:
    term = alone(term, "conditions")
    if term.kind.is_whole:
        raise unlike("~ of a number turns its bits, which SQL here has not", "compare the number with something first")
    return term.of(exp.Not(this=bracketed(term.tree)), "flag")


def missing(term: Term, *, is_missing: bool) -> Term:
    term = alone(term, "is_null()")
    test = exp.Is(this=bracketed(term.tree), expression=exp.Null())
    return term.of(test if is_missing else exp.Not(this=test), "flag", nullable=False)


def among(term: Term, values: list[Term], *, nulls_equal: bool) -> Term:
    """IN. polars takes None among the values as nothing that is equal, and SQL as something unknown."""
    term = alone(term, "is_in()")
    listed = [value.tree for value in values if not isinstance(value.tree, exp.Null)]
    holds_null = len(listed) < len(values)
    test: exp.Expr = exp.In(this=bracketed(term.tree), expressions=listed)
    if not listed:
        whole = exp.Is(this=bracketed(term.tree), expression=exp.Null())
        none = exp.If(this=exp.Not(this=whole), true=exp.Boolean(this=False))
        test = exp.Case(ifs=[none]) if term.kind.nullable else exp.Boolean(this=False)
    if not nulls_equal:
        return term.of(test, "flag")
    return term.of(exp.Coalesce(this=test, expressions=[exp.Boolean(this=holds_null)]), "flag", nullable=False)


def between(term: Term, low: Term, high: Term, closed: str) -> Term:
    if closed == "both":
        tree = exp.Between(this=bracketed(term.tree), low=bracketed(low.tree), high=bracketed(high.tree))
        return alone(term, "is_between()").of(tree, "flag", nullable=any(t.kind.nullable for t in (term, low, high)))
    ends = {"left": (">=", "<"), "right": (">", "<="), "none": (">", "<")}
    if closed not in ends:
        raise unlike(f"closed={closed!r} is nothing", "write closed='both', 'left', 'right' or 'none'")
    return logic(exp.And, compare(ends[closed][0], term, low), compare(ends[closed][1], term, high))


def first_of(terms: list[Term]) -> Term:
    """COALESCE."""
    for term in terms:
        alone(term, "coalesce()")
    first, *others = terms
    kind = first.kind if not isinstance(first.tree, exp.Null) else others[0].kind if others else first.kind
    if kind.is_whole and any(term.kind.is_real for term in others):
        kind = Kind("real")
    tree = exp.Coalesce(this=first.tree.copy(), expressions=[term.tree.copy() for term in others])
    lower = min((t.kind.lower for t in terms if t.kind.lower is not None), default=None)
    lower = lower if all(t.kind.lower is not None for t in terms) else None
    return Term(tree, Kind(kind.type, lower, nullable=all(term.kind.nullable for term in terms)))


def extreme(terms: list[Term], node: type[exp.Expr]) -> Term:
    """GREATEST and LEAST without missing values, as in polars: SQL's are NULL where any operand is."""
    result = alone(terms[0], "max_horizontal()")
    for term in terms[1:]:
        alone(term, "max_horizontal()")
        type: Type = "real" if result.kind.is_real or term.kind.is_real else result.kind.type
        tree: exp.Expr = node(this=result.tree.copy(), expressions=[term.tree.copy()], ignore_nulls=True)
        nullable = result.kind.nullable and term.kind.nullable
        if result.kind.nullable or term.kind.nullable:
            tree = exp.Coalesce(this=tree, expressions=[result.tree.copy(), term.tree.copy()])
        result = Term(tree, Kind(type, nullable=nullable))
    return result


def clipped(term: Term, low: Term | None, high: Term | None) -> Term:
    """Held within bounds: LEAST(GREATEST(x, low), high), which bounds a sum."""
    tree, kind = alone(term, "clip()").tree, term.kind
    lower: Fraction | None = kind.lower
    if low is not None:
        tree, lower = exp.Greatest(this=tree.copy(), expressions=[low.tree.copy()], ignore_nulls=True), low.kind.lower
    if high is not None:
        tree = exp.Least(this=tree.copy(), expressions=[high.tree.copy()], ignore_nulls=True)
    real = any(t is not None and t.kind.is_real for t in (term, low, high))
    return Term(tree, Kind("real" if real else kind.type, lower, nullable=kind.nullable))


def function(term: Term, tree: exp.Expr, type: Type, *, lower: Any = None, total: bool = True) -> Term:
    """A function of one value; where not total, NULL for values that it has no answer for."""
    alone(term, "functions")
    return term.of(tree, type, nullable=term.kind.nullable or not total, lower=lower)


def no_pending(term: Term, where: str) -> Term:
    """A term of single rows."""
    if next(pending_in(term.tree), None) is not None:
        raise unlike(f"{where} takes no aggregate of an aggregate", "aggregate in one step, and again in the next one")
    return term
