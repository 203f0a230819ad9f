"""Casts. Every one gives NULL where it fails, whether written CAST, TRY_CAST or ::."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sqlglot import exp

from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from ..intervals import INT64, Interval
from . import dates
from .operands import NAMES, Reader, Rule, as_real, flags, interval, nothing, reals, shown, typed_null, wholes

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
    found = read.read(node.this)
    if target in REALS:
        return _to_real(node, found)
    if target in WHOLES:
        return _to_whole(node, found, *WHOLES[target])
    if target in TEXTS:
        return _to_text(node, found)
    if target is T.BOOLEAN:
        return _to_flag(node, found)
    if target is T.DATE:
        return _to_date(node, found)
    if target in MOMENTS:
        return _to_moment(node, found)
    known = "DOUBLE, BIGINT, BOOLEAN, VARCHAR, DATE and TIMESTAMP"
    rule = f"Values are cast to {known} here, not to {to.sql(dialect='duckdb')}."
    decimal = isinstance(to, exp.DataType) and to.this is T.DECIMAL
    instead = f"ROUND({shown(node.this)}, 2)" if decimal else f"CAST({shown(node.this)} AS DOUBLE)"
    raise QueryError(rule, f"use {instead}", node)


def to_date(node: exp.Expression, read: Reader) -> Typed:
    """DATE(x)."""
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        return _written(node, node.this.name, date=True)
    return _to_date(node, read.read(node.this))


def _to_real(node: exp.Expression, found: Typed) -> Typed:
    """FLOAT and REAL too mean DOUBLE. NaN and infinities that a text spells are NULL."""
    kind = found.kind
    if nothing(kind):
        return typed_null("real", "DOUBLE")
    if kind.type == "real":
        return found
    if kind.type == "whole":
        return Typed(as_real(found), reals(interval(kind).floats()))
    if kind.type == "flag":
        return Typed(trees.cast(trees.cast(found.tree, "BIGINT"), "DOUBLE"), reals(Interval(Fraction(0), Fraction(1))))
    if kind.textual:
        return Typed(trees.finite(trees.read_or_null(_text(found), "DOUBLE")), Kind("real"))
    raise _refused(node, found, "a number")


def _to_whole(node: exp.Expression, found: Typed, sql: str, low: int, high: int) -> Typed:
    """Reals are rounded, half to even. What does not fit the type is NULL."""
    kind = found.kind
    if nothing(kind):
        return typed_null("whole", "BIGINT")
    if kind.type == "flag":
        return Typed(trees.cast(found.tree, "BIGINT"), wholes(Interval(Fraction(0), Fraction(1))))
    if kind.type not in ("real", "whole", "text", "key"):
        raise _refused(node, found, "a whole number")
    limits = (Fraction(low), Fraction(high))
    if kind.type == "whole" and kind.bounded and interval(kind).within(*limits) == interval(kind):
        return Typed(found.tree, Kind("whole", kind.lower, kind.upper, kind.values, nullable=kind.nullable))
    if kind.textual:
        tree = trees.read_or_null(_text(found), sql)
    else:
        tree = (trees.nearest_or_null if kind.type == "real" else trees.narrowed_or_null)(found.tree, sql)
    tree = tree if sql == "BIGINT" else trees.cast(tree, "BIGINT")
    if not kind.numeric or not interval(kind).bounded:
        return Typed(tree, Kind("whole"))
    bounds = interval(kind).monotone(round).within(*limits)
    assert bounds.lower is not None and bounds.upper is not None
    return Typed(tree, wholes(bounds) if bounds.lower <= bounds.upper else Kind("whole", values=()))


def _to_text(node: exp.Expression, found: Typed) -> Typed:
    kind = found.kind
    if nothing(kind):
        return typed_null("text", "VARCHAR")
    if kind.type == "span":
        raise _refused(node, found, "text")
    if kind.type == "text":
        return found
    values = kind.values
    if kind.type == "whole" and values is not None:
        values = tuple(str(each) for each in values)
    elif kind.type == "flag" and values is not None:
        values = tuple(str(each).lower() for each in values)
    else:
        values = None
    return Typed(trees.cast(found.tree, "VARCHAR"), Kind("text", values=values))


def _to_flag(node: exp.Expression, found: Typed) -> Typed:
    """A number is true where it is not 0."""
    kind = found.kind
    if nothing(kind):
        return typed_null("flag", "BOOLEAN")
    if kind.type == "flag":
        return found
    if kind.numeric:
        zero = trees.whole(0) if kind.type == "whole" else trees.real(0.0)
        return Typed(trees.binary(exp.NEQ, found.tree, zero), flags())
    if kind.textual:
        return Typed(trees.read_or_null(_text(found), "BOOLEAN"), flags())
    raise _refused(node, found, "a condition")


def _to_date(node: exp.Expression, found: Typed) -> Typed:
    kind = found.kind
    if nothing(kind):
        return typed_null("date", "DATE")
    if kind.type == "date":
        return found
    if kind.type == "moment":
        return Typed(trees.cast(found.tree, "DATE"), Kind("date"))
    if kind.textual:
        return Typed(trees.known_date(trees.read_or_null(_text(found), "DATE")), Kind("date"))
    raise _refused(node, found, "a date")


def _to_moment(node: exp.Expression, found: Typed) -> Typed:
    kind = found.kind
    if nothing(kind):
        return typed_null("moment", "TIMESTAMP")
    if kind.type == "moment":
        return found
    if kind.type == "date":
        return Typed(trees.cast(found.tree, "TIMESTAMP"), Kind("moment"))
    if kind.textual:
        return Typed(trees.known_moment(trees.read_or_null(_text(found), "TIMESTAMP")), Kind("moment"))
    raise _refused(node, found, "a timestamp")


def _written(node: exp.Expression, text: str, *, date: bool) -> Typed:
    """DATE '2024-01-31' and TIMESTAMP '2024-01-31 12:00:00', read now, so that a slip is not a column of NULLs."""
    if date:
        day = dates.parsed_date(text)
        if day is not None:
            return Typed(trees.date(day), Kind("date", values=(day,), nullable=False))
        raise QueryError("This is no date.", "write DATE '2024-01-31'", node)
    moment = dates.parsed_moment(text)
    if moment is not None:
        return Typed(trees.moment(moment), Kind("moment", values=(moment,), nullable=False))
    raise QueryError("This is no timestamp without a time zone.", "write TIMESTAMP '2024-01-31 12:00:00'", node)


def _text(found: Typed) -> exp.Expression:
    return trees.cast(found.tree, "VARCHAR") if found.kind.type == "key" else found.tree


def _refused(node: exp.Expression, found: Typed, target: str) -> QueryError:
    rule = f"This is {NAMES[found.kind.type]}, which cannot be made {target}."
    instead = "use DATE_DIFF('day', DATE '2020-01-01', d) for a number of days, or CAST(x AS VARCHAR) for its text"
    return QueryError(rule, instead, node)


RULES: dict[type[exp.Expression], Rule] = {exp.Cast: cast, exp.TryCast: cast, exp.Date: to_date}
