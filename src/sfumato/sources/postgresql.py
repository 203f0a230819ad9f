"""PostgreSQL, 16 or later: what each word of the vocabulary becomes there, in plain SQL.

Nothing is created in the server, and nothing that a row holds can make it raise. Sums of 64 bits are numeric, which is
as wide as they need; a cast of a double to an integer rounds halves to even; NaN is above all numbers and equal to
itself; LEAST and GREATEST pass over NULLs. What it means otherwise (casts of texts, doubles that overflow, LIKE,
collations, truth values) is in `postgres_numbers`, `postgres_casts` and `postgres_texts`. Doubles have no remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import postgres_casts as casts
from . import postgres_numbers as numbers
from . import postgres_texts as texts
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import as_is
from .postgres_numbers import OWN, refusal
from .postgres_templates import written
from .postgres_texts import of, of_node
from .typed_engine import ServerEngine

_AS_IS = """
    negative size floor ceiling equal different less at_most greater at_least same not_same between among exists is_null
    both either not branch first_present null_if joined lower upper reverse count all_true any_true row_number
    rank dense_rank first_of last_of table_once
"""


def _sum(x: Any) -> Any:
    """Of 64 bits, so that the server adds in more."""
    narrow = kind_of(x) in INTEGERS and kind_of(x) not in ("BIGINT", "UINT")
    if kind_of(x) is None or kind_of(x) == "DOUBLE":
        raise refusal("exact_sum", "values that are no integers")
    return written("SUM(CAST(v_x AS BIGINT))" if narrow else "SUM(v_x)", x=x)


def _extreme(function: str, of_flags: str) -> Callable[[Any], Any]:
    def lower(node: Any) -> Any:
        return written(f"{of_flags if kind_of(node.this) == 'BOOLEAN' else function}(v_x)", x=node.this)

    return lower


def _value_at(x: Any, share: Any) -> Any:
    return written("PERCENTILE_DISC(CAST(v_y AS DOUBLE PRECISION)) WITHIN GROUP (ORDER BY v_x)", x=x, y=share)


def _hash(*values: Any) -> Any:
    listed = {f"h{place}": value for place, value in enumerate(values)}
    row = ", ".join(f"v_{name}" for name in listed)
    return written(f"(CAST(HASH_RECORD_EXTENDED(ROW({row}), 0) AS DECIMAL) + 9223372036854775808)", **listed)


_is_finite = of(numbers.FINITE)


def _case(node: Any) -> Any:
    """A value that is tested and then taken stands twice in the tree, and so do the values within it. The server would
    compute it as often; here it stands once."""
    exp = needed("sqlglot").exp
    if node.this is not None or len(node.args["ifs"]) != 1 or node.args.get("default") is not None:
        return node
    condition, value = node.args["ifs"][0].this, node.args["ifs"][0].args["true"]
    test = condition.unnest()
    is_test = isinstance(test, exp.LT) and test.expression == _is_finite(exp.null()).unnest().expression
    if is_test and isinstance(test.this, exp.Abs) and test.this.this.unnest() == value.unnest():
        return written(f"CASE WHEN {numbers.FINITE} THEN v_x END", x=value)
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and inner.this.unnest() == value.unnest():
        return value
    return node


def _several(function: str) -> Callable[..., Any]:
    def lower(*values: Any) -> Any:
        exp = needed("sqlglot").exp
        return exp.Anonymous(this=function, expressions=[value.copy() for value in values])

    return lower


@dataclass(frozen=True, eq=False)
class PostgresEngine(ServerEngine):
    """The words of PostgreSQL."""

    def settle(self, literal: Any) -> None:
        """Constants whose type the server would guess, or whose collation is that of its database."""
        exp = needed("sqlglot").exp
        parts = exp.Alias | exp.If | exp.Case | exp.Tuple | exp.Select | exp.Coalesce
        if literal.is_string and isinstance(literal.parent, parts):
            literal.replace(written('(CAST(v_x AS TEXT) COLLATE "C")', x=literal))
        elif kind_of(literal) == "DOUBLE" and not isinstance(literal.parent, exp.Cast):  # with an exponent
            literal.replace(written("CAST(v_x AS DOUBLE PRECISION)", x=exp.Literal.string(literal.name)))


POSTGRES = PostgresEngine(
    "PostgreSQL",
    "postgres",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "sum_of_two": numbers.sum_of_two,
        "difference": numbers.difference,
        "product": numbers.product,
        "quotient": numbers.quotient,
        "whole_quotient": numbers.whole_quotient,
        "remainder": numbers.remainder,
        "shifted_right": numbers.shifted_right,
        "bits_of_both": numbers.bits_of_both,
        "sign": of_node("CAST(SIGN(v_x) AS INT)"),
        "cut": of("TRUNC(v_x)"),
        "rounded": numbers.rounded,
        "root": of_node(numbers.ROOT),
        "exponential": of_node(numbers.EXPONENTIAL),
        "power": lambda node: numbers.power(node.this, node.expression),
        "natural_log": of(numbers.NATURAL_LOG),
        "decimal_log": of(numbers.DECIMAL_LOG),
        "binary_log": of(numbers.BINARY_LOG),
        "octaves": lambda node: written(numbers.BINARY_LOG, x=numbers.double(node.expression)),
        "case": _case,
        "is_finite": _is_finite,
        "sign_bit": of(numbers.SIGN_BIT),
        "not_a_number": of(numbers.NOT_A_NUMBER),
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
        "minimum": _extreme("MIN", "BOOL_AND"),
        "maximum": _extreme("MAX", "BOOL_OR"),
        "value_at": _value_at,
        "earlier": texts.moved,
        "later": texts.moved,
        "tile": texts.moved,
        "nth_of": texts.moved,
        "like": texts.like,
        "like_any_case": texts.like,
        "escaped": texts.escaped,
        "characters": of("CAST(CHAR_LENGTH(v_x) AS BIGINT)"),
        "trimmed": texts.trimmed("BTRIM"),
        "trimmed_before": texts.trimmed("LTRIM"),
        "trimmed_behind": texts.trimmed("RTRIM"),
        "part": texts.part,
        "first_characters": texts.counted("LEFT"),
        "last_characters": texts.counted("RIGHT"),
        "repeated": texts.counted("REPEAT"),
        "replaced": of("REPLACE(v_x, v_y, v_z)", "x", "y", "z"),
        "begins_with": of("STARTS_WITH(v_x, v_y)"),
        "ends_on": of("STARTS_WITH(REVERSE(v_x), REVERSE(v_y))"),
        "holds": of("(STRPOS(v_x, v_y) > 0)"),
        "place_of": of("CAST(STRPOS(v_x, v_y) AS BIGINT)"),
        "texts_of": texts.listed,
        "wholes_of": texts.listed_wholes,
        "listed_or_null": texts.one_listed,
        "part_of_date": texts.part_of_date,
        "start_of": texts.start_of,
        "boundaries_between": texts.boundaries_between,
        "last_day": of_node(
            "CAST(DATE_TRUNC('month', CAST(v_x AS TIMESTAMP)) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"
        ),
        "month_name": of("(TO_CHAR(CAST(v_x AS TIMESTAMP), 'FMMonth') COLLATE \"C\")"),
        "day_name": of("(TO_CHAR(CAST(v_x AS TIMESTAMP), 'FMDay') COLLATE \"C\")"),
        "interval": texts.interval,
    },
    OWN,
)
