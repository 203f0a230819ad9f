"""DuckDB: what each word of the vocabulary becomes there. It has all of them.

SUM over integers is 128 bits wide; a cast of a DOUBLE to an integer rounds halves to even; TRY_CAST gives NULL; NaN is
above all numbers and equal to itself; texts are compared by their bytes; LEAST and GREATEST pass over NULLs; // and %
cut off towards 0. The suite over engines holds it to that.
"""

from __future__ import annotations

from typing import Any

from .base import needed
from .lowering import Engine, as_is, named
from .vocabulary import TYPES

_AS_IS = """
    sum_of_two difference product negative quotient whole_quotient remainder shifted_right bits_of_both size sign
    floor ceiling rounded root exponential power octaves cast equal different less at_most greater at_least same
    not_same between among exists is_null both either not case branch first_present null_if joined like
    like_any_case escaped lower upper reverse part_of_date start_of last_day interval count minimum maximum
    all_true any_true row_number rank dense_rank tile earlier later first_of last_of nth_of table_once
"""


def _sum(x: Any) -> Any:
    return needed("sqlglot").exp.Sum(this=x)


def _cast(x: Any, to: Any) -> Any:
    return needed("sqlglot").exp.Cast(this=x, to=to)


def _cast_or_null(x: Any, to: Any) -> Any:
    return needed("sqlglot").exp.TryCast(this=x, to=to, safe=True)


def _listed(text: Any, between: Any) -> Any:
    return named("UNNEST")(named("STRING_SPLIT")(text, between))


def _listed_wholes(text: Any, between: Any) -> Any:
    exp = needed("sqlglot").exp
    return named("UNNEST")(exp.Cast(this=named("STRING_SPLIT")(text, between), to=_type("BIGINT[]")))


def _one_listed(text: Any, listed: Any, between: Any) -> Any:
    """In the views of a session it is an enumeration instead (`duckdb_session`)."""
    exp = needed("sqlglot").exp
    parts = named("STRING_SPLIT")(listed, between)
    return exp.Case(ifs=[exp.If(this=named("LIST_CONTAINS")(parts, text), true=text.copy())])


def _digits(text: Any) -> Any:
    return named("REGEXP_FULL_MATCH")(text, needed("sqlglot").exp.Literal.string(r"\s*[+-]?[0-9]+\s*"))


def _moment(text: Any) -> Any:
    """With a time zone it counts in UTC, which is the session's own."""
    return _cast_or_null(_cast_or_null(text, _type("TIMESTAMPTZ")), _type("TIMESTAMP"))


def _whole(number: Any) -> Any:
    exp = needed("sqlglot").exp
    same = exp.EQ(this=named("TRUNC")(number), expression=number.copy())
    return exp.Case(ifs=[exp.If(this=same, true=_cast_or_null(number.copy(), _type("BIGINT")))])


def _type(name: str) -> Any:
    return needed("sqlglot").exp.DataType.build(name, dialect="duckdb")


DUCKDB = Engine(
    "DuckDB",
    "duckdb",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "exact_sum": _sum,
        "nearest": _cast,
        "nearest_or_null": _cast_or_null,
        "narrowed_or_null": _cast_or_null,
        "read_or_null": _cast_or_null,
        "decimal_or_null": _cast_or_null,
        "texts_of": _listed,
        "wholes_of": _listed_wholes,
        "cut": named("TRUNC"),
        "natural_log": named("LN"),
        "decimal_log": named("LOG10"),
        "binary_log": named("LOG2"),
        "is_finite": named("ISFINITE"),
        "sign_bit": named("SIGNBIT"),
        "least_present": named("LEAST"),
        "greatest_present": named("GREATEST"),
        "ordering_hash": named("HASH"),
        "characters": named("LENGTH"),
        "trimmed": named("TRIM"),
        "trimmed_before": named("LTRIM"),
        "trimmed_behind": named("RTRIM"),
        "part": named("SUBSTRING"),
        "first_characters": named("LEFT"),
        "last_characters": named("RIGHT"),
        "repeated": named("REPEAT"),
        "replaced": named("REPLACE"),
        "begins_with": named("STARTS_WITH"),
        "ends_on": named("ENDS_WITH"),
        "holds": named("CONTAINS"),
        "place_of": named("STRPOS"),
        "boundaries_between": named("DATE_DIFF"),
        "month_name": named("MONTHNAME"),
        "day_name": named("DAYNAME"),
        "value_at": named("QUANTILE_DISC"),
        "not_a_number": named("ISNAN"),
        "is_digits": _digits,
        "listed_or_null": _one_listed,
        "moment_or_null": _moment,
        "time_or_null": _cast_or_null,
        "whole_or_null": _whole,
    },
    {name: name for name in TYPES},
)
