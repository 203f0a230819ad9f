"""Numbers in MariaDB, whose doubles are all finite, and whose arithmetic raises where a result is not.

There is no NaN: what would be one is NULL. What would be infinite is a number of 2^1022 or more in size, and everything
of that size counts as infinite. No expression here can raise: operands are cut to what keeps the result within that,
which changes no result of operands below 2^511 (about 10^154). Those beyond are cut to it before they are multiplied.
Whole numbers wider than 64 bits are DECIMAL, exactly.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .sql_texts import number_in, type_kept, with_number, writer

written = writer("mysql")

INFINITE = 2.0**1022
LARGEST = "1.7976931348623157e308"
SPANS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1), "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UTINYINT": (0, 2**8 - 1), "USMALLINT": (0, 2**16 - 1), "UINT": (0, 2**32 - 1),
    "INT128": (-(2**127), 2**127 - 1),
}  # fmt: skip
WIDE = "DECIMAL(39, 0)"
_WHOLE = "sfumato-whole"
"""Marks a DOUBLE that was a whole number."""
_DIGITS = "DECIMAL(65, 25)"


def double_text(number: float) -> str:
    """A DOUBLE as the server reads one; without an exponent it would be a DECIMAL."""
    if math.isnan(number):
        return "CAST(NULL AS DOUBLE)"
    if math.isinf(number):
        return f"{'-' * (number < 0)}{LARGEST}"
    shown = repr(number)
    return shown if "e" in shown else f"{shown}e0"


def refusal(word: str, of: str) -> PlanError:
    return PlanError(f"MariaDB has no word for {word!r} of {of}: the statement is not run there")


def within(operand: str, bound: float) -> str:
    """The operand, cut to this size; NULL stays NULL."""
    shown = double_text(bound)
    return f"LEAST(GREATEST({operand}, -{shown}), {shown})"


def double(node: Any) -> Any:
    if kind_of(node) == "DOUBLE":
        return node
    number = number_in(node)
    if number is not None:
        return type_kept(with_number(written(double_text(number)), number), "DOUBLE")
    return written("CAST(v_x AS DOUBLE)", x=node)


def _added(node: Any, sign: str) -> Any:
    kinds = [kind_of(node.this), kind_of(node.expression)]
    if "INTERVAL" in kinds:
        first, second = (node.this, node.expression) if kinds[1] == "INTERVAL" else (node.expression, node.this)
        return written(f"CAST(v_a {sign} v_b AS DATETIME(6))", a=first, b=second)
    if kind_of(node) == "DOUBLE":
        constants = [number for side in (node.this, node.expression) if (number := number_in(side)) is not None]
        if any(abs(number) < 2.0**960 for number in constants):
            return written(f"v_a {sign} v_b", a=double(node.this), b=double(node.expression))
        text = f"{within('v_a', INFINITE)} {sign} {within('v_b', INFINITE)}"
        return written(text, a=double(node.this), b=double(node.expression))
    if kinds == ["DATE", "DATE"]:
        return written("DATEDIFF(v_a, v_b)", a=node.this, b=node.expression)
    if "DATE" in kinds:
        day, days = (node.this, node.expression) if kinds[0] == "DATE" else (node.expression, node.this)
        text = f"CASE WHEN v_n BETWEEN -3700000 AND 3700000 THEN v_d {sign} INTERVAL v_n DAY END"
        return written(text, d=day, n=days)
    if kind_of(node) is None:
        raise refusal("sum_of_two", "values of unknown types")
    return written(f"v_a {sign} v_b", a=node.this, b=node.expression)


def sum_of_two(node: Any) -> Any:
    return _added(node, "+")


def difference(node: Any) -> Any:
    return _added(node, "-")


def negative(node: Any) -> Any:
    number = number_in(node.this)
    return with_number(written("-v_x", x=node.this), None if number is None else -number)


def product(node: Any) -> Any:
    if kind_of(node) is None:
        raise refusal("product", "values of unknown types")
    if kind_of(node) != "DOUBLE":
        return written("v_a * v_b", a=node.this, b=node.expression)
    return product_of(node.this, node.expression)


def product_of(one: Any, other: Any) -> Any:
    for x, number in ((one, number_in(other)), (other, number_in(one))):
        if number is not None:
            cut = "v_a" if abs(number) <= 1 else within("v_a", INFINITE / min(abs(number), INFINITE))
            return written(f"{cut} * {double_text(number)}", a=double(x))
    return written(f"{within('v_a', 2.0**511)} * {within('v_b', 2.0**511)}", a=double(one), b=double(other))


def quotient(node: Any) -> Any:
    """By 0 it is infinite, or NULL where 0 is divided; so it is where the divisor is too small to be told from 0."""
    number = number_in(node.expression)
    if number:
        cut = "v_a" if abs(number) >= 1 else within("v_a", INFINITE * abs(number))
        return written(f"{cut} / {double_text(number)}", a=double(node.this))
    if node.expression.unnest().meta.get(_WHOLE):  # it is 0, which gives NULL, or 1 and more
        return written(f"{within('v_a', INFINITE)} / v_b", a=double(node.this), b=node.expression)
    tiny = double_text(2.0**-511)
    text = (
        f"CASE WHEN ABS(v_b) >= {tiny} THEN {within('v_a', 2.0**511)} / v_b WHEN v_b < 0 "
        f"THEN SIGN(NULLIF(v_a, 0)) * -{double_text(INFINITE)} WHEN v_b >= 0 "
        f"THEN SIGN(NULLIF(v_a, 0)) * {double_text(INFINITE)} END"
    )
    return written(text, a=double(node.this), b=double(node.expression))


def whole_quotient(node: Any) -> Any:
    if kind_of(node) in INTEGERS:
        return written("v_a DIV NULLIF(v_b, 0)", a=node.this, b=node.expression)
    if kind_of(node) is None:
        raise refusal("whole_quotient", "values of unknown types")
    return written("TRUNCATE((v_a - MOD(v_a, v_b)) / v_b, 0)", a=_wide(node.this), b=_wide(node.expression))


def _wide(node: Any) -> Any:
    return node if kind_of(node) in ("INT128", "DECIMAL") else written(f"CAST(v_x AS {WIDE})", x=node)


def remainder(node: Any) -> Any:
    if kind_of(node) is None:
        raise refusal("remainder", "values of unknown types")
    return written("MOD(v_a, NULLIF(v_b, 0))", a=node.this, b=node.expression)


def shifted_right(node: Any) -> Any:
    if kind_of(node.this) != "INT128":
        return written("CAST(v_a >> v_b AS SIGNED)", a=node.this, b=node.expression)
    bits = number_in(node.expression)
    if bits is None:
        raise refusal("shifted_right", "integers of 128 bits by values")
    power = f"CAST({2 ** int(bits)} AS {WIDE})"
    return written(f"TRUNCATE((v_a - MOD(v_a, {power})) / {power}, 0)", a=node.this)


def bits_of_both(node: Any) -> Any:
    if kind_of(node.this) != "INT128":
        return written("CAST(v_a & v_b AS SIGNED)", a=node.this, b=node.expression)
    mask = int(number_in(node.expression) or 0)
    if mask <= 0 or mask & (mask + 1):
        raise refusal("bits_of_both", "integers of 128 bits")
    return written(f"CAST(MOD(v_a, CAST({mask + 1} AS {WIDE})) AS SIGNED)", a=node.this)


_ROUNDED = "TRUNCATE(v_x + SIGN(v_x) * 4.9999999999999994e-1, 0)"
"""What lies just below a half takes halves away from 0, and nothing else over the next whole number."""


def rounded(node: Any) -> Any:
    """Of doubles, in doubles; of decimals and whole numbers by the server, halves away from 0."""
    places = int(number_in(node.args["decimals"]) or 0) if node.args.get("decimals") else 0
    kind, x = kind_of(node), node.this
    if kind in INTEGERS:
        if places >= 0:
            return x
        low, high = SPANS["BIGINT"]
        text = f"CAST(LEAST(GREATEST(ROUND(CAST(v_x AS {WIDE}), {places}), {low}), {high}) AS SIGNED)"
        return written(text, x=x)
    if kind != "DOUBLE":
        return written(f"ROUND(v_x, {places})", x=x)
    if places == 0:
        return written(_ROUNDED, x=x)
    power = double_text(10.0 ** abs(places))
    if places > 0:
        whole = _ROUNDED.replace("v_x", f"(v_x * {power})")
        return written(
            f"CASE WHEN ABS(v_x) < {double_text(1e300 / 10.0**places)} THEN {whole} / {power} ELSE v_x END", x=x
        )
    whole = _ROUNDED.replace("v_x", f"(v_x / {power})")
    return written(f"CASE WHEN ABS(v_x) < 1e300 THEN {whole} * {power} ELSE v_x END", x=x)


ROOT = "SQRT(v_x)"  # of less than 0 it is NULL
EXPONENTIAL = f"CASE WHEN v_x < 7.08e2 THEN EXP(v_x) ELSE v_x * 0e0 + {LARGEST} END"
_WHOLE_LOG = "LEAST(ROUND(LOG2(v_x)), 1023e0)"
BINARY_LOG = f"CASE WHEN POW(2e0, {_WHOLE_LOG}) = v_x THEN {_WHOLE_LOG} ELSE LOG2(v_x) END"
FINITE = f"ABS(v_x) < {double_text(INFINITE)}"
_POWER = (
    "CASE WHEN v_a IS NULL OR v_b IS NULL THEN NULL WHEN v_b = 0 OR v_a = 1 THEN 1e0 "
    f"WHEN v_a = 0 THEN CASE WHEN v_b < 0 THEN {LARGEST} ELSE 0e0 END "
    "WHEN v_a < 0 AND TRUNCATE(v_b, 0) <> v_b THEN NULL "
    f"WHEN {within('v_b', 1e300)} * LN(ABS(v_a)) > 7.08e2 THEN "
    f"CASE WHEN v_a < 0 AND MOD(v_b, 2e0) <> 0 THEN -{LARGEST} ELSE {LARGEST} END "
    f"WHEN {within('v_b', 1e300)} * LN(ABS(v_a)) < -7.4e2 THEN 0e0 ELSE POW(v_a, v_b) END"
)


def power(node: Any) -> Any:
    return written(_POWER, a=double(node.this), b=double(node.expression))


def octaves(node: Any) -> Any:
    return written(BINARY_LOG, x=double(node.expression))


# A whole DOUBLE below 2^127 in three parts of 60 bits, each of which is exact.
_PART = f"CAST({2**60} AS {WIDE})"
_UNIT, _UNITS = double_text(2.0**60), double_text(2.0**120)
_HIGH = f"CAST(TRUNCATE(v_x / {_UNITS}, 0) AS SIGNED) * {_PART} * {_PART}"
_MIDDLE = f"CAST(MOD(TRUNCATE(v_x / {_UNIT}, 0), {_UNIT}) AS SIGNED) * {_PART}"
_WIDE_TEXT = f"CAST({_HIGH} + {_MIDDLE} + CAST(MOD(v_x, {_UNIT}) AS SIGNED) AS {WIDE})"


def own_type(to: Any) -> str:
    """The type as MariaDB calls it in a cast; there are no narrow integers there."""
    kind = type_of(to)
    if kind == "DECIMAL":
        sizes = [size.name for size in to.expressions] or ["38", "0"]
        return f"DECIMAL({', '.join(sizes)})"
    named = {"INT128": WIDE, "DOUBLE": "DOUBLE", "VARCHAR": "CHAR", "DATE": "DATE", "TIMESTAMP": "DATETIME(6)"}
    return named.get(kind, "SIGNED")


def cast(node: Any) -> Any:
    """A cast that cannot fail."""
    x, to = node.this, type_of(node.to)
    kind, number = kind_of(x), number_in(x)
    if isinstance(x.unnest(), needed("sqlglot").exp.Literal) and x.unnest().is_string and to == "DOUBLE":
        number = float(x.unnest().name)
    if to == "DOUBLE" and number is not None:
        return with_number(written(double_text(number)), number)
    if to == "DOUBLE" and kind == "DOUBLE":
        return x
    if to == "VARCHAR" and kind == "BOOLEAN":
        return written("CASE WHEN v_x THEN 'true' WHEN NOT v_x THEN 'false' END", x=x)
    if to == "VARCHAR" and kind == "TIMESTAMP":
        text = "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(CAST(v_x AS DATETIME(6)) AS CHAR)))"
        return written(text, x=x)
    if to == "BOOLEAN":
        return x if kind == "BOOLEAN" else written("(v_x <> 0)", x=x)
    if to == "INT128" and kind == "DOUBLE":
        return nearest(x, node.to)
    if to == "VARCHAR" and kind == "VARCHAR":
        return x
    exact = number if number is not None and to != "VARCHAR" else None
    cast_node = with_number(written(f"CAST(v_x AS {own_type(node.to)})", x=x), exact)
    if to == "DOUBLE" and kind in (*INTEGERS, "INT128"):
        cast_node.meta[_WHOLE] = True
    return cast_node


def nearest(x: Any, to: Any) -> Any:
    """ROUND takes halves of doubles to even."""
    if type_of(to) == "INT128":
        return written(_WIDE_TEXT.replace("v_x", "ROUND(v_x)"), x=double(x))
    return written("CAST(ROUND(v_x) AS SIGNED)", x=double(x))


def nearest_or_null(x: Any, to: Any) -> Any:
    low, high = SPANS[type_of(to)]
    fits = f"ROUND(v_x) BETWEEN {low} AND {high}"
    if type_of(to) == "BIGINT":
        fits = f"ROUND(v_x) >= -{double_text(2.0**63)} AND ROUND(v_x) < {double_text(2.0**63)}"
    if type_of(to) == "INT128":
        fits = f"ABS(v_x) < {double_text(2.0**127)}"
        return written(f"CASE WHEN {fits} THEN {_WIDE_TEXT.replace('v_x', 'ROUND(v_x)')} END", x=double(x))
    return written(f"CASE WHEN {fits} THEN CAST(ROUND(v_x) AS SIGNED) END", x=double(x))


def narrowed_or_null(x: Any, to: Any) -> Any:
    if type_of(to) == "INT128":
        return written(f"CAST(v_x AS {WIDE})", x=x)
    low, high = SPANS[type_of(to)]
    return written(f"CASE WHEN v_x BETWEEN {low} AND {high} THEN CAST(v_x AS SIGNED) END", x=x)


def whole_or_null(x: Any) -> Any:
    fits = f"TRUNCATE(v_x, 0) = v_x AND v_x >= {-(2**63)} AND v_x < {2**63}"
    return written(f"CASE WHEN {fits} THEN CAST(v_x AS SIGNED) END", x=x)


def decimal_or_null(x: Any, to: Any) -> Any:
    """Of a DOUBLE as DuckDB reads one: what it writes in few digits is what it means, 1.005 as 1.01."""
    width, places = (int(size.name) for size in to.expressions)
    if kind_of(x) not in (None, "DOUBLE", "DECIMAL", "INT128", *INTEGERS):
        raise refusal("decimal_or_null", "values of this type")
    number = f"ROUND(CAST(v_x AS {_DIGITS}), {places})"
    fits = f"ABS({number}) < {10 ** (width - places)}"
    return written(f"CASE WHEN {fits} THEN CAST({number} AS DECIMAL({width}, {places})) END", x=x)
