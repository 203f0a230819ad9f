"""Numbers in PostgreSQL, whose doubles raise where those of IEEE 754 are infinite, NaN or too small to be held.

Every expression here asks first, by steps that cannot raise: scaled by powers of two, which round nothing, a result is
seen to be out of range before it is computed. A CASE in a CASE keeps the order in which the server asks; what it folds
before a statement runs are constants, and a branch that they rule out is not folded.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .postgres_templates import written
from .templates import constant, operand

_INF, _NAN = "CAST('Infinity' AS DOUBLE PRECISION)", "CAST('NaN' AS DOUBLE PRECISION)"
SPANS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1), "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UTINYINT": (0, 2**8 - 1), "USMALLINT": (0, 2**16 - 1), "UINT": (0, 2**32 - 1),
    "INT128": (-(2**127), 2**127 - 1),
}  # fmt: skip
OWN = {
    "TINYINT": "SMALLINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT", "UTINYINT": "SMALLINT",
    "USMALLINT": "INT", "UINT": "BIGINT", "INT128": "DECIMAL", "DOUBLE": "DOUBLE", "DECIMAL": "DECIMAL",
    "BOOLEAN": "BOOLEAN", "VARCHAR": "TEXT", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
}  # fmt: skip
"""By type of the vocabulary: PostgreSQL's, as sqlglot calls it."""


def power_of_two(exponent: int) -> str:
    return f"CAST('{2.0**exponent!r}' AS DOUBLE PRECISION)"


_PLAIN = f"ABS(v_a) < {power_of_two(1022)} AND ABS(v_b) < {power_of_two(1022)}"
_HALVES = "(v_a * 0.5 + v_b * 0.5)"


def _sum(sign: str) -> str:
    halves = _HALVES.replace("+", sign)
    return (
        f"CASE WHEN {_PLAIN} THEN v_a {sign} v_b WHEN ABS(v_a) >= 1 AND ABS(v_b) >= 1 THEN CASE "
        f"WHEN ABS({halves}) >= {power_of_two(1023)} THEN {halves} * {_INF} ELSE v_a {sign} v_b END "
        f"ELSE v_a {sign} v_b END"
    )


_LARGE = (
    f"WHEN ABS(v_a) > 1 AND ABS(v_b) > 1 THEN CASE WHEN ABS((v_a * {power_of_two(-512)}) * "
    f"(v_b * {power_of_two(-512)})) >= 1 THEN (v_a * {_INF}) * v_b ELSE v_a * v_b END"
)
_TINY = power_of_two(-537)
_SMALL = (
    f"WHEN ABS(v_a) < 1 AND ABS(v_b) < 1 AND v_a <> 0 AND v_b <> 0 AND (ABS(v_a) < {_TINY} OR ABS(v_b) < {_TINY}) "
    f"THEN CASE WHEN ABS((v_a * {power_of_two(538)}) * (v_b * {power_of_two(538)})) <= 2 THEN (v_a * 0.0) * v_b "
    "ELSE v_a * v_b END"
)
_PRODUCT = f"CASE {_LARGE} {_SMALL} ELSE v_a * v_b END"
_SIGN_BIT = "(GET_BIT(FLOAT8SEND(v_x), 7) = 1)"
_BY_ZERO = (
    f"CASE WHEN v_a = 0 OR v_a = {_NAN} THEN {_NAN} "
    f"WHEN (v_a > 0) <> {_SIGN_BIT.replace('v_x', 'v_b')} THEN {_INF} ELSE -{_INF} END"
)
_QUOTIENT = (
    f"CASE WHEN v_b = 0 THEN {_BY_ZERO} WHEN ABS(v_b) < 1 AND ABS(v_a) > {power_of_two(-60)} THEN CASE "
    f"WHEN ABS(v_a) * 0.5 >= ABS(v_b) * {power_of_two(1023)} THEN (v_a * {_INF}) / v_b ELSE v_a / v_b END "
    f"WHEN ABS(v_a) < 1 AND ABS(v_b) > 1 THEN CASE "
    f"WHEN ABS(v_a) * {power_of_two(1000)} <= ABS(v_b) * {power_of_two(-75)} THEN (v_a * 0.0) / v_b "
    f"ELSE v_a / v_b END ELSE v_a / v_b END"
)
ROUNDED = "CASE WHEN ABS(v_x - TRUNC(v_x)) >= 0.5 THEN TRUNC(v_x) + SIGN(v_x) ELSE TRUNC(v_x) END"
NOT_A_NUMBER = f"(v_x = {_NAN})"
FINITE = f"(ABS(v_x) < {_INF})"
SIGN_BIT = _SIGN_BIT
ROOT = "CASE WHEN v_x >= 0 THEN SQRT(v_x) END"
NATURAL_LOG = "CASE WHEN v_x > 0 THEN LN(v_x) END"
DECIMAL_LOG = "CASE WHEN v_x > 0 THEN LOG(v_x) END"
EXPONENTIAL = (
    f"CASE WHEN v_x > 709.782712893384 THEN CASE WHEN v_x = {_NAN} THEN v_x ELSE {_INF} END "
    f"WHEN v_x < -745.13 THEN {power_of_two(0)} * 0.0 WHEN v_x < -708 THEN EXP(v_x + 100) * EXP(-100.0) "
    "ELSE EXP(v_x) END"
)
_EXPONENT = "(((GET_BYTE(FLOAT8SEND(v_x), 0) & 127) << 4) + (GET_BYTE(FLOAT8SEND(v_x), 1) >> 4) - 1023)"
_OF_NORMAL = (
    f"{_EXPONENT} + LN(v_x / POWER(CAST(2 AS DOUBLE PRECISION), {_EXPONENT})) / LN(CAST(2 AS DOUBLE PRECISION))"
)
BINARY_LOG = (
    f"CASE WHEN v_x >= {_INF} THEN v_x WHEN v_x >= {power_of_two(-1000)} THEN {_OF_NORMAL} "
    f"WHEN v_x > 0 THEN {_OF_NORMAL.replace('v_x', f'(v_x * {power_of_two(200)})')} - 200 END"
)
_ODD = "(ABS(v_b) < 9e15 AND TRUNC(v_b) = v_b AND TRUNC(v_b / 2) <> v_b / 2)"
_SIGNED = f"CASE WHEN {_SIGN_BIT.replace('v_x', 'v_a')} AND {_ODD} THEN CAST(-1 AS FLOAT8) ELSE CAST(1 AS FLOAT8) END"
# By the size of the logarithm of the result. Near the end of what doubles hold, the power is a product of two halves.
POWER = (
    "CASE WHEN v_a IS NULL OR v_b IS NULL THEN NULL WHEN v_b = 0 OR v_a = 1 THEN CAST(1 AS DOUBLE PRECISION) "
    f"WHEN v_a = {_NAN} OR v_b = {_NAN} THEN {_NAN} WHEN v_a = 0 AND v_b < 0 THEN {_SIGNED} * {_INF} "
    f"WHEN v_a = 0 OR ABS(v_a) = {_INF} OR ABS(v_b) = {_INF} THEN {_SIGNED} * POWER(ABS(v_a), v_b) "
    f"WHEN v_a < 0 AND TRUNC(v_b) <> v_b THEN {_NAN} "
    f"WHEN ABS(v_b) > 1e300 THEN CASE WHEN ABS(v_a) = 1 THEN CAST(1 AS DOUBLE PRECISION) "
    f"WHEN (ABS(v_a) > 1) = (v_b > 0) THEN {_INF} ELSE CAST(0 AS DOUBLE PRECISION) END "
    f"WHEN ABS(v_b) < 1e-300 THEN CAST(1 AS DOUBLE PRECISION) "
    f"WHEN v_b * LN(ABS(v_a)) > 1400 THEN {_SIGNED} * {_INF} "
    f"WHEN v_b * LN(ABS(v_a)) < -1400 THEN {_SIGNED} * 0.0 "
    f"WHEN ABS(v_b * LN(ABS(v_a))) > 700 THEN {_SIGNED} * v_p ELSE POWER(v_a, v_b) END"
)


def refusal(word: str, of: str) -> PlanError:
    return PlanError(f"PostgreSQL has no word for {word!r} of {of}: the statement is not run there")


def double(node: Any) -> Any:
    """The number as a DOUBLE."""
    return node if kind_of(node) == "DOUBLE" else written("CAST(v_x AS DOUBLE PRECISION)", x=node)


def own_type(to: Any) -> Any:
    """The type as PostgreSQL calls it; a DECIMAL with its digits."""
    exp = needed("sqlglot").exp
    if type_of(to) == "DECIMAL":
        return to.copy()
    return exp.DataType.build(OWN[type_of(to)], dialect="postgres" if type_of(to) != "DOUBLE" else None)


def _widened(node: Any) -> Any:
    """Whole numbers are added and multiplied in 64 bits or more: those of 32 raise where they overflow."""
    exp = needed("sqlglot").exp
    sides = [node.this, node.expression]
    if all(kind_of(side) in INTEGERS and kind_of(side) not in ("BIGINT",) for side in sides):
        node.set("this", exp.Cast(this=operand(node.this), to=exp.DataType.build("BIGINT")))
    return node


def sum_of_two(node: Any) -> Any:
    return _added(node, "+")


def difference(node: Any) -> Any:
    return _added(node, "-")


def _added(node: Any, sign: str) -> Any:
    kinds = [kind_of(node.this), kind_of(node.expression)]
    if kind_of(node) == "DOUBLE":
        constants = [number for number in (constant(node.this), constant(node.expression)) if number is not None]
        plain = any(abs(number) < 2.0**960 for number in constants)
        text = f"v_a {sign} v_b" if plain else _sum(sign)
        return written(text, a=double(node.this), b=double(node.expression))
    if kinds == ["DATE", "DATE"]:
        return written("CAST(v_a - v_b AS BIGINT)", a=node.this, b=node.expression)
    if "DATE" in kinds and "INTERVAL" not in kinds:
        day, days = (node.this, node.expression) if kinds[0] == "DATE" else (node.expression, node.this)
        text = f"CASE WHEN v_n BETWEEN -3700000 AND 3700000 THEN v_d {sign} CAST(v_n AS INT) END"
        return written(text, d=day, n=days)
    if kind_of(node) is None:
        raise refusal("sum_of_two", "values of unknown types")
    return _widened(node)


def product(node: Any) -> Any:
    if kind_of(node) is None:
        raise refusal("product", "values of unknown types")
    return product_of(node.this, node.expression) if kind_of(node) == "DOUBLE" else _widened(node)


def product_of(one: Any, other: Any) -> Any:
    """Of two DOUBLEs, to the bit."""
    for x, number in ((one, constant(other)), (other, constant(one))):
        if number is not None:
            return _by_constant("*", operator.mul, double(x), number)
    return written(_PRODUCT, a=double(one), b=double(other))


def quotient(node: Any) -> Any:
    number = constant(node.expression)
    if number:
        return _by_constant("/", operator.truediv, double(node.this), number)
    return written(_QUOTIENT, a=double(node.this), b=double(node.expression))


def _by_constant(sign: str, apply: Callable[[float, float], float], x: Any, number: float) -> Any:
    """By a constant it is known from where on the result is infinite, or too small to be held."""
    plain, minus = f"v_a {sign} CAST('{number!r}' AS DOUBLE PRECISION)", "-" * (number < 0)
    most, least = sys.float_info.max, 5e-324
    if math.isfinite(number) and math.isinf(apply(most, number)):
        end = (
            most if sign == "/" and abs(number) < 1e-300 else most / abs(number) if sign == "*" else most * abs(number)
        )
        while not math.isinf(apply(end, number)):
            end = math.nextafter(end, math.inf)
        while math.isinf(apply(math.nextafter(end, 0.0), number)):
            end = math.nextafter(end, 0.0) if sign == "*" or abs(number) >= 1e-300 else end / 2
        beyond = f"v_a * CAST('{minus}Infinity' AS DOUBLE PRECISION)"
        return written(f"CASE WHEN ABS(v_a) >= CAST('{end!r}' AS DOUBLE PRECISION) THEN {beyond} ELSE {plain} END", a=x)
    if number and math.isfinite(number) and apply(least, number) == 0:
        end = least
        while apply(end * 2, number) == 0:
            end *= 2
        step = end
        while step > 0:  # the largest whose result is 0, bit by bit
            end, step = (end + step if end + step > end and apply(end + step, number) == 0 else end), step / 2
        nothing = f"v_a * CAST('{minus}0.0' AS DOUBLE PRECISION)"
        return written(
            f"CASE WHEN ABS(v_a) <= CAST('{end!r}' AS DOUBLE PRECISION) THEN {nothing} ELSE {plain} END", a=x
        )
    return written(plain, a=x)


def whole_quotient(node: Any) -> Any:
    if kind_of(node) in INTEGERS:
        return written("v_a / NULLIF(v_b, 0)", a=node.this, b=node.expression)
    if kind_of(node) is None:
        raise refusal("whole_quotient", "values of unknown types")
    return written("DIV(v_a, NULLIF(v_b, 0))", a=_wide(node.this), b=_wide(node.expression))


def _wide(node: Any) -> Any:
    return node if kind_of(node) in ("INT128", "DECIMAL") else written("CAST(v_x AS DECIMAL)", x=node)


def remainder(node: Any) -> Any:
    if kind_of(node) in (None, "DOUBLE"):
        raise refusal("remainder", "doubles")
    return written("v_a % NULLIF(v_b, 0)", a=node.this, b=node.expression)


def shifted_right(node: Any) -> Any:
    if kind_of(node.this) == "INT128":
        power = f"CAST({2 ** int(node.expression.name)} AS DECIMAL)" if node.expression.is_int else "POWER(2.0, v_b)"
        return written(f"TRUNC(DIV(v_a, {power}))", a=node.this, b=node.expression)
    return written("CAST(v_a AS BIGINT) >> CAST(v_b AS INT)", a=node.this, b=node.expression)


def bits_of_both(node: Any) -> Any:
    if kind_of(node.this) != "INT128":
        return node
    mask = int(constant(node.expression) or 0)
    if mask <= 0 or mask & (mask + 1):
        raise refusal("bits_of_both", "integers of 128 bits")
    return written(f"CAST(v_a % CAST({mask + 1} AS DECIMAL) AS BIGINT)", a=node.this)


def rounded(node: Any) -> Any:
    """Of doubles, in doubles; of decimals and whole numbers by the server, halves away from 0."""
    places = int(constant(node.args["decimals"]) or 0) if node.args.get("decimals") else 0
    kind, x = kind_of(node), node.this
    if kind in INTEGERS:
        if places >= 0:
            return x
        text = f"ROUND(CAST(v_x AS DECIMAL), {places})"
        return written(f"CAST(LEAST(GREATEST({text}, {-(2**63)}), {2**63 - 1}) AS BIGINT)", x=x)
    if kind != "DOUBLE":
        return written(f"ROUND(v_x, {places})", x=x)
    if places == 0:
        return written(ROUNDED, x=x)
    power = f"CAST('{10.0 ** abs(places)!r}' AS DOUBLE PRECISION)"
    if places > 0:
        large = f"WHEN ABS(v_x) > 1 THEN CASE WHEN ABS(v_x) * 0.5 >= {2.0**1022.999 / 10.0**places!r} THEN v_x "
        whole = ROUNDED.replace("v_x", f"(v_x * {power})")
        return written(f"CASE {large} ELSE ({whole}) / {power} END ELSE ({whole}) / {power} END", x=x)
    part = written(f"CASE WHEN ABS(v_x) < 1 THEN v_x * 0.0 ELSE v_x / {power} END", x=x)
    return written(
        f"CASE WHEN ABS(v_x) > {1e300 / 10.0**-places!r} THEN v_x * {power} ELSE ({ROUNDED}) * {power} END", x=part
    )


def power(base: Any, exponent: Any) -> Any:
    base, exponent = double(base), double(exponent)
    half = written("CASE WHEN v_a <> 0 THEN POWER(ABS(v_a), v_b * 0.5) END", a=base, b=exponent)
    return written(POWER, a=base, b=exponent, p=written(_PRODUCT.replace("v_b", "v_a"), a=half))
