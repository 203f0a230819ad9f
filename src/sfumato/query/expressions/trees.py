"""Engine expressions, made of words of the vocabulary and never of text. Everything built here is total."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ...sources.vocabulary import call
from .intervals import INT64

FIRST_DAY, LAST_DAY = datetime.date.min, datetime.date.max
"""Dates and moments lie in the years 1 to 9999, or are NULL. No date function of the engine fails there."""


TYPES = {
    "BIGINT": exp.DataType.Type.BIGINT,
    "INT128": exp.DataType.Type.INT128,
    "INT": exp.DataType.Type.INT,
    "SMALLINT": exp.DataType.Type.SMALLINT,
    "TINYINT": exp.DataType.Type.TINYINT,
    "UTINYINT": exp.DataType.Type.UTINYINT,
    "USMALLINT": exp.DataType.Type.USMALLINT,
    "UINT": exp.DataType.Type.UINT,
    "DOUBLE": exp.DataType.Type.DOUBLE,
    "BOOLEAN": exp.DataType.Type.BOOLEAN,
    "VARCHAR": exp.DataType.Type.VARCHAR,
    "DATE": exp.DataType.Type.DATE,
    "TIMESTAMP": exp.DataType.Type.TIMESTAMP,
}


def wrapped(tree: exp.Expression) -> exp.Expression:
    """The expression as an operand."""
    loose = isinstance(tree, (exp.Binary, exp.Unary, exp.Predicate, exp.Connector)) and not isinstance(tree, exp.Paren)
    return exp.Paren(this=tree) if loose else tree


def binary(node: type[exp.Expression], left: exp.Expression, right: exp.Expression, **more: Any) -> exp.Expression:
    return node(this=wrapped(left), expression=wrapped(right), **more)


def divided(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """The quotient of two DOUBLEs."""
    return binary(exp.Div, left, right, typed=False, safe=False)


def cast(tree: exp.Expression, to: str) -> exp.Expression:
    """A cast that cannot fail and rounds nothing: widening, narrowing what fits, or to text."""
    return exp.Cast(this=tree, to=_type(to))


def nearest(tree: exp.Expression, to: str) -> exp.Expression:
    """A DOUBLE as the nearest whole number, which the type holds."""
    return call("nearest", tree, _type(to))


def nearest_or_null(tree: exp.Expression, to: str) -> exp.Expression:
    """A DOUBLE as the nearest whole number; NULL where the type does not hold it."""
    return call("nearest_or_null", tree, _type(to))


def narrowed_or_null(tree: exp.Expression, to: str) -> exp.Expression:
    """A whole number in a narrower type; NULL where that does not hold it."""
    return call("narrowed_or_null", tree, _type(to))


def read_or_null(tree: exp.Expression, to: str) -> exp.Expression:
    """What a text or key writes; NULL where it writes nothing of the type."""
    return call("read_or_null", tree, _type(to))


def _type(name: str) -> exp.DataType:
    return exp.DataType(this=TYPES[name], nested=False)


def try_decimal(tree: exp.Expression, width: int, places: int) -> exp.Expression:
    """A number as a DECIMAL of so many digits; NULL where it does not fit."""
    return call("decimal_or_null", tree, _decimal(width, places))


def decimal(value: Fraction, width: int, places: int) -> exp.Expression:
    """A DECIMAL that stands in the query."""
    steps = value * 10**places
    if steps.denominator != 1 or abs(steps) >= 10**width:
        raise ValueError("not a decimal of this width")
    digits = str(abs(steps.numerator)).rjust(places + 1, "0")
    point = len(digits) - places
    written = digits[:point] + ("." + digits[point:] if places else "")
    return exp.Cast(this=text("-" * (steps < 0) + written), to=_decimal(width, places))


def _decimal(width: int, places: int) -> exp.DataType:
    sizes = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in (width, places)]
    return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=sizes, nested=False)


def null(to: str) -> exp.Expression:
    return cast(exp.Null(), to)


def text(value: str) -> exp.Expression:
    return exp.Literal.string(value)


def flag(value: bool) -> exp.Expression:
    return exp.Boolean(this=value)


def whole(value: int) -> exp.Expression:
    """A BIGINT. Bare literals are INTEGER, whose sums overflow."""
    if not INT64[0] <= value <= INT64[1]:
        raise ValueError("not a 64-bit integer")
    return cast(exp.Literal.number(value), "BIGINT")


def real(value: float | Fraction) -> exp.Expression:
    """A DOUBLE. Decimal literals are DECIMAL in some engines; with an exponent none is."""
    digits = repr(float(value))
    digits = digits if "e" in digits else digits + "e0"
    sign, digits = digits.startswith("-"), digits.removeprefix("-")
    literal: exp.Expression = exp.Literal(this=digits, is_string=False)
    return cast(exp.Neg(this=literal) if sign else literal, "DOUBLE")


def date(value: datetime.date) -> exp.Expression:
    return cast(text(value.isoformat()), "DATE")


def moment(value: datetime.datetime) -> exp.Expression:
    return cast(text(value.isoformat(sep=" ")), "TIMESTAMP")


def when(condition: exp.Expression, value: exp.Expression, otherwise: exp.Expression | None = None) -> exp.Expression:
    """The value where the condition holds, else `otherwise` or NULL."""
    return cases([(condition, value)], otherwise)


def cases(
    branches: Sequence[tuple[exp.Expression, exp.Expression]],
    otherwise: exp.Expression | None = None,
    subject: exp.Expression | None = None,
) -> exp.Expression:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(this=subject, ifs=ifs, default=otherwise)


def finite(tree: exp.Expression) -> exp.Expression:
    """A DOUBLE, NULL where it is NaN or infinite."""
    return when(call("is_finite", tree.copy()), tree)


def nonzero(tree: exp.Expression, zero: exp.Expression) -> exp.Expression:
    """A number, NULL where it is 0."""
    return exp.Nullif(this=tree, expression=zero)


def known_date(tree: exp.Expression) -> exp.Expression:
    """A DATE, NULL where it is outside the years 1 to 9999 (or infinite)."""
    return when(exp.Between(this=wrapped(tree.copy()), low=date(FIRST_DAY), high=date(LAST_DAY)), tree)


def known_moment(tree: exp.Expression) -> exp.Expression:
    """A TIMESTAMP, NULL where it is outside the years 1 to 9999 (or infinite)."""
    low, high = moment(datetime.datetime.min), moment(datetime.datetime.max)
    return when(exp.Between(this=wrapped(tree.copy()), low=low, high=high), tree)
