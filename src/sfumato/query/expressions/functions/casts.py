"""Casts. Every one gives NULL where it fails, whether written CAST, TRY_CAST or ::."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from ..decimals import WIDEST, Exact
from ..intervals import INT64, Interval
from .operands import (
    NAMES,
    Reader,
    Rule,
    as_real,
    flags,
    instant,
    interval,
    nothing,
    parsed_date,
    parsed_moment,
    reals,
    shown,
    typed_null,
    wholes,
)

T: Any = exp.DataType.Type
REALS = {T.DOUBLE, T.FLOAT}
WHOLES: dict[Any, tuple[str, int, int]] = {
    T.TINYINT: ("TINYINT", -(2**7), 2**7 - 1),
    T.SMALLINT: ("SMALLINT", -(2**15), 2**15 - 1),
    T.INT: ("INT", -(2**31), 2**31 - 1),
    T.BIGINT: ("BIGINT", *INT64),
    T.UTINYINT: ("UTINYINT", 0, 2**8 - 1),
    T.USMALLINT: ("USMALLINT", 0, 2**16 - 1),
    T.UINT: ("UINT", 0, 2**32 - 1),
}
TEXTS = {T.TEXT, T.VARCHAR, T.CHAR}
ZONED = {T.TIMESTAMPTZ, T.TIMESTAMPLTZ}
MOMENTS = {T.TIMESTAMP, T.TIMESTAMPNTZ, T.DATETIME}


def cast(node: exp.Cast, read: Reader) -> Typed:
    """CAST and TRY_CAST, which are the same here: NULL where it fails."""
    to = node.args["to"]
    target = to.this if isinstance(to, exp.DataType) and not to.expressions else None
    if isinstance(to, exp.DataType) and to.this in TEXTS:
        target = to.this  # VARCHAR(10) means VARCHAR, as in DuckDB
    if node.args.get("format") is not None or node.args.get("default") is not None:
        raise QueryError("A cast takes a value and a type.", "write CAST(x AS DATE)", node)
    if isinstance(node.this, exp.Literal) and node.this.is_string and target in {T.DATE} | MOMENTS:
        return _written(node, node.this.name, date=target is T.DATE)
    if isinstance(to, exp.DataType) and to.this is T.DECIMAL:
        return to_decimal(node, read.exact(node.this), *_sizes(node, to))
    if target in ZONED and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _instant(node, node.this.name)
    operand = read.read(node.this)
    if target in REALS:
        return _to_real(node, operand)
    if target in WHOLES:
        return _to_whole(node, operand, *WHOLES[target])
    if target in TEXTS:
        return _to_text(node, operand)
    if target is T.BOOLEAN:
        return _to_flag(node, operand)
    if target is T.DATE:
        return _to_date(node, operand)
    if target in MOMENTS:
        return to_moment(node, operand)
    if target in ZONED:
        return _to_zoned(node, operand)
    known = "DOUBLE, DECIMAL, BIGINT, BOOLEAN, VARCHAR, DATE and TIMESTAMP"
    rule = f"Values are cast to {known} here, not to {to.sql(dialect='duckdb')}."
    raise QueryError(rule, f"use CAST({shown(node.this)} AS DOUBLE)", node)


def _sizes(node: exp.Cast, to: exp.DataType) -> tuple[int, int]:
    """Digits and places of DECIMAL(p, s). Without a size it is DuckDB's DECIMAL(18, 3), with one number whole."""
    sizes = [each.name for each in to.expressions]
    if not all(each.isdigit() for each in sizes) or len(sizes) > 2:
        raise QueryError("DECIMAL has a number of digits and of places.", "write DECIMAL(15, 2)", node)
    width, places = (int(sizes[0]), int(sizes[1]) if len(sizes) == 2 else 0) if sizes else (18, 3)
    if not 1 <= width <= WIDEST or places > width:
        rule = f"DECIMAL has up to {WIDEST} digits here, and no more places than digits."
        raise QueryError(rule, f"write DECIMAL({min(max(width, 1), WIDEST)}, 2)", node)
    return width, places


def to_decimal(node: exp.Expression, operand: Typed, width: int, places: int) -> Typed:
    """The nearest decimal of so many places; NULL where it has more digits than the type, so the type bounds it.

    A text is read as a DOUBLE first, which keeps 15 digits. Rounding never falls, so the ends of what is known round to
    ends; where an end lies between two decimals the outer one is taken, whichever the engine rounds to.
    """
    kind = operand.kind
    if nothing(kind):
        return typed_null("real", "DOUBLE")
    if kind.is_flag or kind.textual:
        operand = _to_real(node, operand)
    elif not kind.numeric:
        raise _refused(node, operand, "a decimal")
    step, most = Fraction(1, 10**places), Fraction(10**width - 1, 10**places)
    bounds = (
        interval(operand.kind) if not isinstance(operand, Exact) else Interval(operand.kind.lower, operand.kind.upper)
    )
    if operand.kind.places is not None and operand.kind.places <= places:
        bounds = Interval(operand.kind.lower, operand.kind.upper)  # nothing is rounded
    low = None if bounds.lower is None else math.floor(bounds.lower / step) * step
    high = None if bounds.upper is None else math.ceil(bounds.upper / step) * step
    ends = Interval(low, high).within(-most, most)
    assert ends.lower is not None and ends.upper is not None
    if ends.lower > ends.upper:
        return typed_null("real", "DOUBLE")
    fits = low is not None and high is not None and -most <= low and high <= most
    nullable = operand.kind.nullable or not fits
    exact = Kind("real", ends.lower, ends.upper, nullable=nullable, places=places)
    return Exact(trees.try_decimal(operand.tree, width, places), exact, width)


def zoned(node: exp.Cast) -> bool:
    """Is it a cast to a type with a time zone?"""
    to = node.args["to"]
    return isinstance(to, exp.DataType) and to.this in ZONED


def _to_zoned(node: exp.Expression, operand: Typed) -> Typed:
    """Moments are UTC here, so one with a time zone is the same moment."""
    if operand.kind.temporal or nothing(operand.kind):
        return to_moment(node, operand)
    rule = "Times are UTC here, and texts are read without a time zone."
    raise QueryError(rule, f"use CAST({shown(node.this)} AS TIMESTAMP)", node)


def _instant(node: exp.Expression, text: str) -> Typed:
    """TIMESTAMPTZ '2024-01-31 12:00:00+01': a moment that says how far it is from UTC."""
    moment = instant(text)
    if moment is not None:
        return Typed(trees.moment(moment), Kind("moment", values=(moment,), nullable=False))
    if parsed_moment(text) is None:
        rule, write = "This is no timestamp with a time zone.", "TIMESTAMPTZ '2024-01-31 12:00:00+00'"
        raise QueryError(rule, f"write {write}", node)
    rule = "Times are UTC here, and this text does not say of which zone it is."
    write = f"'{text}+00'" if ":" in text else f"'{text} 00:00:00+00'"
    raise QueryError(rule, f"write {write}", node.this, write=write)


def to_date(node: exp.Expression, read: Reader) -> Typed:
    """DATE(x)."""
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        return _written(node, node.this.name, date=True)
    return _to_date(node, read.read(node.this))


def _to_real(node: exp.Expression, operand: Typed) -> Typed:
    """FLOAT and REAL too mean DOUBLE. NaN and infinities that a text spells are NULL."""
    kind = operand.kind
    if nothing(kind):
        return typed_null("real", "DOUBLE")
    if kind.is_real:
        return operand
    if kind.is_whole:
        return Typed(as_real(operand), reals(interval(kind).floats()))
    if kind.is_flag:
        return Typed(
            trees.cast(trees.cast(operand.tree, "BIGINT"), "DOUBLE"), reals(Interval(Fraction(0), Fraction(1)))
        )
    if kind.textual:
        return Typed(trees.finite(trees.read_or_null(_text(operand), "DOUBLE")), Kind("real"))
    raise _refused(node, operand, "a number")


def _to_whole(node: exp.Expression, operand: Typed, sql: str, low: int, high: int) -> Typed:
    """Reals are rounded, half to even. What does not fit the type is NULL."""
    kind = operand.kind
    if nothing(kind):
        return typed_null("whole", "BIGINT")
    if kind.is_flag:
        return Typed(trees.cast(operand.tree, "BIGINT"), wholes(Interval(Fraction(0), Fraction(1))))
    if not (kind.numeric or kind.textual):
        raise _refused(node, operand, "a whole number")
    limits = (Fraction(low), Fraction(high))
    if kind.is_whole and kind.bounded and interval(kind).within(*limits) == interval(kind):
        return Typed(operand.tree, Kind("whole", kind.lower, kind.upper, kind.values, nullable=kind.nullable))
    if kind.textual:
        tree = trees.read_or_null(_text(operand), sql)
    else:
        tree = (trees.nearest_or_null if kind.is_real else trees.narrowed_or_null)(operand.tree, sql)
    tree = tree if sql == "BIGINT" else trees.cast(tree, "BIGINT")
    if not kind.numeric or not interval(kind).bounded:
        return Typed(tree, Kind("whole"))
    bounds = interval(kind).monotone(round).within(*limits)
    assert bounds.lower is not None and bounds.upper is not None
    return Typed(tree, wholes(bounds) if bounds.lower <= bounds.upper else Kind("whole", values=()))


def _to_text(node: exp.Expression, operand: Typed) -> Typed:
    kind = operand.kind
    if nothing(kind):
        return typed_null("text", "VARCHAR")
    if kind.type == "span":
        raise _refused(node, operand, "text")
    if kind.type == "text":
        return operand
    values = kind.values
    if kind.is_whole and values is not None:
        values = tuple(str(each) for each in values)
    elif kind.is_flag and values is not None:
        values = tuple(str(each).lower() for each in values)
    else:
        values = None
    return Typed(trees.cast(operand.tree, "VARCHAR"), Kind("text", values=values))


def _to_flag(node: exp.Expression, operand: Typed) -> Typed:
    """A number is true where it is not 0."""
    kind = operand.kind
    if nothing(kind):
        return typed_null("flag", "BOOLEAN")
    if kind.is_flag:
        return operand
    if kind.numeric:
        zero = trees.whole(0) if kind.is_whole else trees.real(0.0)
        return Typed(trees.binary(exp.NEQ, operand.tree, zero), flags())
    if kind.textual:
        return Typed(trees.read_or_null(_text(operand), "BOOLEAN"), flags())
    raise _refused(node, operand, "a condition")


def _to_date(node: exp.Expression, operand: Typed) -> Typed:
    kind = operand.kind
    if nothing(kind):
        return typed_null("date", "DATE")
    if kind.is_date:
        return operand
    if kind.type == "moment":
        return Typed(trees.cast(operand.tree, "DATE"), Kind("date"))
    if kind.textual:
        return Typed(trees.known_date(trees.read_or_null(_text(operand), "DATE")), Kind("date"))
    raise _refused(node, operand, "a date")


def to_moment(node: exp.Expression, operand: Typed) -> Typed:
    """A date as the moment that it begins, a text as what it says."""
    kind = operand.kind
    if nothing(kind):
        return typed_null("moment", "TIMESTAMP")
    if kind.type == "moment":
        return operand
    if kind.is_date:
        return Typed(trees.cast(operand.tree, "TIMESTAMP"), Kind("moment"))
    if kind.textual:
        return Typed(trees.known_moment(trees.read_or_null(_text(operand), "TIMESTAMP")), Kind("moment"))
    raise _refused(node, operand, "a timestamp")


def _written(node: exp.Expression, text: str, *, date: bool) -> Typed:
    """DATE '2024-01-31' and TIMESTAMP '2024-01-31 12:00:00', read now, so that a slip is not a column of NULLs."""
    if date:
        day = parsed_date(text)
        if day is not None:
            return Typed(trees.date(day), Kind("date", values=(day,), nullable=False))
        raise QueryError("This is no date.", "write DATE '2024-01-31'", node)
    moment = parsed_moment(text)
    if moment is not None:
        return Typed(trees.moment(moment), Kind("moment", values=(moment,), nullable=False))
    raise QueryError("This is no timestamp without a time zone.", "write TIMESTAMP '2024-01-31 12:00:00'", node)


def _text(operand: Typed) -> exp.Expression:
    return trees.cast(operand.tree, "VARCHAR") if operand.kind.type == "key" else operand.tree


def _refused(node: exp.Expression, operand: Typed, target: str) -> QueryError:
    rule = f"This is {NAMES[operand.kind.type]}, which cannot be made {target}."
    instead = "use DATE_DIFF('day', DATE '2020-01-01', d) for a number of days, or CAST(x AS VARCHAR) for its text"
    return QueryError(rule, instead, node)


RULES: dict[type[exp.Expression], Rule] = {
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Date: to_date,
}
