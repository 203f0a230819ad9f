"""Frames of windows: ROWS by the number of rows, RANGE by how far apart values are.

The values that a RANGE counts in are put on a scale on which nothing overflows: days and microseconds since 1970, whole
numbers up to 2^62, floats up to 1e300. What lies beyond counts as lying there. Rows whose values are equal are in a
frame together or not at all, so nothing depends on which of them comes first.
"""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from ...sources.vocabulary import call
from ..expressions import trees
from ..expressions.functions.operands import constant
from ..kinds import Typed
from ..refusal import QueryError

if TYPE_CHECKING:
    from .reading import Reading

WHOLE_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_FARTHEST = 2**31 - 1
_WIDE, _WIDEST = 2**61, 2**62
_FAR = 1e300
_MICROSECONDS = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86_400 * 10**6}
_MICROSECONDS["week"] = 7 * _MICROSECONDS["day"]
_EPOCH = {"date": datetime.date(1970, 1, 1), "moment": datetime.datetime(1970, 1, 1)}
_DEFAULTS = (["UNBOUNDED", "CURRENT ROW"], ["UNBOUNDED", "NONE"])


def frame_of(node: exp.Expression) -> exp.WindowSpec | None:
    """The frame as it is written; None for SQL's own default, written out or not."""
    spec = node.args.get("spec")
    if spec is None:
        return None
    kind = str(spec.args.get("kind")).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise QueryError("Frames by GROUPS or EXCLUDE are not possible.", f"use ROWS, such as {WHOLE_FRAME}", node)
    assert isinstance(spec, exp.WindowSpec)
    plain = [str(spec.args.get(end)).upper() for end in ("start", "end")]
    return None if kind == "RANGE" and plain in _DEFAULTS else spec


def by_range(spec: exp.Expression | None) -> bool:
    return spec is not None and str(spec.args.get("kind")).upper() == "RANGE"


def framed(
    spec: exp.WindowSpec, node: exp.Expression, rows: Reading, order: list[exp.Ordered]
) -> tuple[exp.WindowSpec, list[exp.Ordered]]:
    """The frame for the engine, and the order of the rows that it is in."""
    frame = exp.WindowSpec(kind=str(spec.args["kind"]).upper())
    counted = [isinstance(spec.args.get(name), exp.Expression) for name in ("start", "end")]
    x = _key(node, rows) if by_range(spec) and any(counted) else None
    finer = x is not None and x.kind.is_date and any(_fine(spec.args.get(name)) for name in ("start", "end"))
    for name in ("start", "end"):
        end, side = spec.args.get(name), spec.args.get(f"{name}_side")
        if end is None:
            end, side = "CURRENT ROW", None
        if isinstance(end, exp.Expression):
            end = exp.Literal.number(count_of(end, 0, node)) if x is None else _distance(end, x, node, finer=finer)
        frame.set(name, end if isinstance(end, exp.Expression) else str(end).upper())
        frame.set(f"{name}_side", side.upper() if side else None)
    if x is not None:
        order = [order[0].copy()]
        order[0].set("this", _scaled(x, finer=finer))
    return frame, order


def _key(node: exp.Expression, rows: Reading) -> Typed:
    """What the rows are ordered by."""
    keys = node.args["order"].expressions if node.args.get("order") else []
    if len(keys) != 1:
        raise QueryError("A frame by RANGE counts in one ORDER BY column.", f"order by one, or use {WHOLE_FRAME}", node)
    x = rows.translate(keys[0].this)
    if not (x.kind.numeric or x.kind.temporal):
        raise QueryError(
            f"A frame by RANGE counts in numbers or dates, and this is {x.kind.type}.", f"use {WHOLE_FRAME}", node
        )
    return x


def _fine(end: object) -> bool:
    return isinstance(end, exp.Interval) and _unit(end) in ("second", "minute", "hour")


def _unit(span: exp.Interval) -> str:
    name = span.args["unit"].name.lower() if span.args.get("unit") is not None else ""
    return name.removesuffix("s")


def _distance(end: exp.Expression, x: Typed, node: exp.Expression, *, finer: bool) -> exp.Expression:
    """How far a frame reaches, on the scale of its values."""
    if x.kind.temporal:
        example = "RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW"
        span = end.unnest()
        if isinstance(span, exp.Interval):
            digits = span.this.name if isinstance(span.this, exp.Literal) else ""
            if not digits.isdigit() or _unit(span) not in _MICROSECONDS:
                raise QueryError("A frame reaches over whole days, weeks or hours.", f"write {example}", node)
            far = int(digits) * _MICROSECONDS[_unit(span)]
        elif x.kind.is_date:
            far = count_of(end, 0, node) * _MICROSECONDS["day"]
        else:
            raise QueryError("A frame of moments reaches over an interval.", f"write {example}", node)
        if x.kind.is_date and not finer:
            far //= _MICROSECONDS["day"]
        if far > _WIDE:
            raise QueryError("The frame is longer than all years.", f"write {example}", node)
        return exp.Literal.number(far)
    far_off = constant(end, "The end of a frame", "RANGE BETWEEN 10 PRECEDING AND CURRENT ROW")
    most = _WIDE if x.kind.is_whole else Fraction(10) ** 290
    if not 0 <= far_off <= most or (x.kind.is_whole and far_off.denominator != 1):
        raise QueryError("The end of a frame is a number from 0 on, whole for whole numbers.", "write 10", node)
    # Bare literals, as some engines take nothing else there; one with an exponent is a DOUBLE in all of them.
    return exp.Literal.number(int(far_off)) if x.kind.is_whole else trees.real(far_off).this.copy()


def _scaled(x: Typed, *, finer: bool) -> exp.Expression:
    """The values on a scale where adding a distance to one never overflows."""
    if x.kind.temporal:
        days = x.kind.is_date and not finer
        tree = trees.cast(x.tree, "TIMESTAMP") if x.kind.is_date and finer else x.tree
        start = trees.date(_EPOCH["date"]) if days else trees.moment(_EPOCH["moment"])  # type: ignore[arg-type]
        return call("boundaries_between", trees.text("day" if days else "microsecond"), start, tree)
    whole = x.kind.is_whole
    low, high = (trees.whole(sign * _WIDEST) if whole else trees.real(sign * _FAR) for sign in (-1, 1))
    if whole and x.kind.bounded and max(-(x.kind.lower or 0), x.kind.upper or 0) <= _WIDEST:
        return x.tree
    below, above = trees.binary(exp.LT, x.tree.copy(), low), trees.binary(exp.GT, x.tree.copy(), high)
    return trees.cases([(below, low.copy()), (above, high.copy())], x.tree.copy())


def count_of(node: exp.Expression | None, least: int, shown: exp.Expression) -> int:
    """A whole number that stands in the query."""
    digits = node.name if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else ""
    if digits and least <= int(digits) <= _FARTHEST:
        return int(digits)
    raise QueryError(f"A whole number from {least} on is needed here.", "write it out, such as 1", shown)
