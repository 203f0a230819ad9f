"""Where values likely lie: what WHERE says of a column, how many rows a unit may have, and what follows from these.

Beside what is sure of an expression (`Kind.lower`, `Kind.upper`), the same rules tell what is likely: the expression is
read once more, with likely bounds in the place of sure ones, and only the bounds of that reading are used. They never
decide which engine expression is built, what is a public group, or whether something can overflow. They are what an
aggregate clamps its values to where nothing else is known, as bounds that somebody gives are: so a unit moves a sum by
no more than the limits say, whatever its rows hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from ... import times
from ..kinds import Kind, Likely, Typed
from .intervals import Interval

MOST = 2**20
"""A unit's rows are likely no more than this; where they are, their number counts as so many."""
USUAL = 2**14
"""What has such a generous limit is usually so much smaller: there its size is looked for."""
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}

COUNT = Likely(Fraction(0), Fraction(MOST), generous=True)


def trusted(operand: Typed) -> Typed:
    """The expression as if it surely lay where it likely does."""
    both = bounds(operand.kind)
    return replace(operand, kind=replace(operand.kind, likely=None, lower=both.lower, upper=both.upper))


def bounds(kind: Kind) -> Interval:
    """Where its values are, sure or likely."""
    sure, likely = Interval(kind.lower, kind.upper), kind.likely
    if likely is None:
        return sure
    both = sure.within(likely.lower, likely.upper)
    empty = both.lower is not None and both.upper is not None and both.lower > both.upper
    return sure if empty else both


def followed(sure: Kind, reading: Kind, operands: Iterable[Likely]) -> Likely | None:
    """What is likely of an expression: the bounds of its trusting reading, where they say more than the sure ones."""
    if not (sure.numeric or sure.temporal) or (reading.lower, reading.upper) in (
        (None, None), (sure.lower, sure.upper),
    ):  # fmt: skip
        return None
    return Likely(reading.lower, reading.upper, any(each.generous for each in operands))


def of_sum(kind: Kind) -> Likely | None:
    """Of the sum of a unit's values of this kind."""
    ends = bounds(kind)
    if ends.lower is None or ends.upper is None:
        return None
    many = 1 if kind.likely is not None and kind.likely.generous else MOST  # it counts a unit's rows already
    return Likely(min(ends.lower, Fraction(0)) * many, max(ends.upper, Fraction(0)) * many, generous=True)


def conditions(node: exp.Expr) -> Iterator[tuple[exp.Column, type[exp.Expr], exp.Expr]]:
    """Comparisons of a column with something else, which every row passes for which the condition holds."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from conditions(node.this)
        yield from conditions(node.expression)
    elif isinstance(node, exp.Between) and isinstance(column := node.this.unnest(), exp.Column):
        yield column, exp.GTE, node.args["low"]
        yield column, exp.LTE, node.args["high"]
    elif type(node) in _MIRRORED:
        one, other = node.this.unnest(), node.expression.unnest()
        if isinstance(one, exp.Column):
            yield one, type(node), other
        if isinstance(other, exp.Column):
            yield other, _MIRRORED[type(node)], one


def narrowed(kind: Kind, test: type[exp.Expr], constant: Kind) -> Kind:
    """A column where rows passed a comparison with a constant."""
    ends = _constant(kind, constant)
    if ends is None:
        return kind
    low, high = ends
    likely = kind.likely or Likely()
    before = Interval(likely.lower, likely.upper)
    after = before.within(
        None if test in (exp.LT, exp.LTE) else low,
        None if test in (exp.GT, exp.GTE) else high,
    )
    generous = likely.generous and after.upper == before.upper
    return replace(kind, likely=Likely(after.lower, after.upper, generous))


def _constant(kind: Kind, constant: Kind) -> tuple[Fraction | None, Fraction | None] | None:
    """The ends of what a column is compared with, as the column's own numbers."""
    if kind.numeric and constant.numeric:
        return constant.lower, constant.upper
    if not (kind.temporal and constant.temporal) or not constant.values or len(constant.values) != 1:
        return None
    number = times.days(constant.values[0]) if kind.is_date else times.microseconds(constant.values[0])
    if number is None:
        return None
    return Fraction(number), Fraction(number + (kind.is_date and constant.type == "moment"))
