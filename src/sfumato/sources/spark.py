"""Spark, 4.0 or later: what each word of the vocabulary becomes there, in SQL of its own functions.

Nothing is registered there, no line of Python runs on a row, and nothing that a row holds can make it raise. Sums of 64
bits are decimals of 38 digits: 10^38 / 2^63 is more rows than there are. NaN is above all numbers and equal to itself,
-0.0 is 0.0 in comparisons and groups; LEAST and GREATEST pass over NULLs. What it means otherwise is in
`spark_numbers`, `spark_casts` and `spark_texts`. A sum beyond 38 digits, though within 127 bits, is NULL or an error:
statements keep their sums far below it (see `_sum`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from . import spark_casts as casts
from . import spark_numbers as numbers
from . import spark_texts as texts
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import as_is
from .spark_numbers import OWN, WIDE, refusal
from .spark_scopes import refuse_far_columns
from .spark_templates import Lowered, function, of, of_node, text_of, written
from .typed_engine import TypedEngine

_AS_IS = """
    equal different less at_most greater at_least same not_same between exists is_null both either not case branch
    first_present null_if joined lower upper reverse count minimum maximum rank dense_rank first_of last_of nth_of
    earlier later table_once
"""


def _sum(x: Any) -> Any:
    """Of as many digits as there are. What statements add up is below 2^63 where it is an integer of 64 bits. Sums of
    INT128 are of at most 2^63 and some bits each (weights times sums, cut parts of units): 10^38 holds 2^60 of them."""
    kind = kind_of(x)
    if kind == "DECIMAL":  # of 15 digits at most, with places of their own
        return written("SUM(v_x * CAST(1 AS DECIMAL(12, 0)))", x=x)
    if kind == "INT128" or kind in INTEGERS:
        return written(f"SUM(CAST(v_x AS {WIDE}))", x=x)
    raise refusal("exact_sum", "values that are no integers")


def _row_number(node: Any) -> Any:
    """ROW_NUMBER has 32 bits there, and would begin anew below zero."""
    exp = needed("sqlglot").exp
    window = node.parent
    if not isinstance(window, exp.Window):
        return node
    unbounded = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "CURRENT ROW"}
    window.set("spec", exp.WindowSpec(kind="ROWS", **unbounded))
    if window.args.get("order") is None:
        window.set("order", exp.Order(expressions=[exp.Ordered(this=written("CAST(NULL AS INT)"))]))
    return exp.Count(this=exp.Star(), big_int=True)


def _hash(*values: Any) -> Any:
    """A NULL leaves Spark's hash as it was, so whether there is one is a part of it."""
    exp = needed("sqlglot").exp
    present = [exp.Is(this=value.copy(), expression=exp.Null()) for value in values]
    parts = [part for pair in zip(values, present, strict=True) for part in pair]
    return written("(v_x & 9223372036854775807L)", x=function("XXHASH64", *parts))


def _value_at(x: Any, share: Any) -> Any:
    """Spark's own is a DOUBLE, and of numbers alone. The values of a group are sorted in memory instead: those of one
    unit, as this word is."""
    listed = function("SORT_ARRAY", function("COLLECT_LIST", x))
    place = f"GREATEST(CAST(CEIL(COUNT(v_x) * CAST({share.name} AS DECIMAL(20, 19))) AS INT), 1)"
    return written(f"TRY_ELEMENT_AT(v_l, {place})", l=listed, x=x)


def _several(name: str) -> Lowered:
    def lower(*values: Any) -> Any:
        return function(name, *values)

    return lower


@dataclass(frozen=True, eq=False)
class SparkEngine(TypedEngine):
    """Constants stand for themselves, whatever the session's settings make of signs in them."""

    computes_once: ClassVar[bool] = False

    def prepare(self, around: Any) -> None:
        refuse_far_columns(around)

    def settle(self, literal: Any) -> None:
        exp = needed("sqlglot").exp
        if literal.is_string:
            if (plain := text_of(literal.name)) != f"'{literal.name}'":
                literal.replace(exp.Cast(this=exp.HexString(this=plain[7:-12]), to=exp.DataType.build("TEXT")))
        elif kind_of(literal) == "DOUBLE" and not isinstance(literal.parent, exp.Cast):  # with an exponent
            literal.replace(exp.Cast(this=exp.Literal.string(literal.name), to=exp.DataType.build("DOUBLE")))


SPARK = SparkEngine(
    "Spark",
    "spark",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "sum_of_two": numbers.sum_of_two,
        "difference": numbers.difference,
        "product": numbers.product,
        "negative": numbers.negative,
        "quotient": numbers.quotient,
        "whole_quotient": numbers.whole_quotient,
        "remainder": numbers.remainder,
        "shifted_right": numbers.shifted_right,
        "bits_of_both": numbers.bits_of_both,
        "size": numbers.size,
        "sign": of_node(numbers.SIGN),
        "floor": lambda node: written(numbers.FLOOR, x=numbers.double(node.this)),
        "ceiling": lambda node: written(numbers.CEILING, x=numbers.double(node.this)),
        "cut": lambda x: written(numbers.CUT, x=numbers.double(x)),
        "rounded": numbers.rounded,
        "root": lambda node: function("SQRT", numbers.double(node.this)),
        "exponential": lambda node: function("EXP", numbers.double(node.this)),
        "power": lambda node: numbers.power(node.this, node.expression),
        "natural_log": lambda x: function("LN", numbers.double(x)),
        "decimal_log": lambda x: function("LOG10", numbers.double(x)),
        "binary_log": lambda x: written(numbers.BINARY_LOG, x=numbers.double(x)),
        "octaves": lambda node: written(numbers.BINARY_LOG, x=numbers.double(node.expression)),
        "is_finite": of(numbers.FINITE),
        "sign_bit": of(numbers.SIGN_BIT),
        "not_a_number": of(numbers.NOT_A_NUMBER),
        "among": numbers.among,
        "cast": casts.cast,
        "nearest": casts.nearest,
        "nearest_or_null": casts.nearest_or_null,
        "narrowed_or_null": casts.narrowed_or_null,
        "read_or_null": casts.read_or_null,
        "decimal_or_null": casts.decimal_or_null,
        "whole_or_null": casts.whole_or_null,
        "is_digits": casts.digits,
        "moment_or_null": casts.moment_or_null,
        "time_or_null": casts.time_or_null,
        "least_present": _several("LEAST"),
        "greatest_present": _several("GREATEST"),
        "ordering_hash": _hash,
        "exact_sum": _sum,
        "all_true": of_node("BOOL_AND(v_x)"),
        "any_true": of_node("BOOL_OR(v_x)"),
        "value_at": _value_at,
        "row_number": _row_number,
        "tile": texts.moved,
        "like": texts.like,
        "like_any_case": texts.like,
        "escaped": texts.escaped,
        "characters": of("CAST(CHAR_LENGTH(v_x) AS BIGINT)"),
        "trimmed": texts.trimmed("BOTH"),
        "trimmed_before": texts.trimmed("LEADING"),
        "trimmed_behind": texts.trimmed("TRAILING"),
        "part": texts.part,
        "first_characters": texts.counted("LEFT"),
        "last_characters": texts.counted("RIGHT"),
        "repeated": texts.counted("REPEAT"),
        "replaced": _several("REPLACE"),
        "begins_with": _several("STARTSWITH"),
        "ends_on": _several("ENDSWITH"),
        "holds": _several("CONTAINS"),
        "place_of": of("CAST(INSTR(v_x, v_y) AS BIGINT)"),
        "texts_of": texts.listed,
        "wholes_of": texts.listed_wholes,
        "listed_or_null": texts.one_listed,
        "part_of_date": texts.part_of_date,
        "start_of": texts.start_of,
        "boundaries_between": texts.boundaries_between,
        "last_day": of_node("LAST_DAY(CAST(v_x AS DATE))"),
        "month_name": texts.name_of_part("MONTH(v_x)", texts.MONTH_NAMES),
        "day_name": texts.name_of_part("DAYOFWEEK(v_x)", texts.DAY_NAMES),
        "interval": texts.interval,
    },
    OWN,
)
