"""Numbers in Spark, whether its session raises on overflow (ANSI) or wraps around: neither can happen here.

Whole numbers are added by the try_ functions, which give NULL where nothing fits; doubles go by IEEE 754 in both. A
division asks for 0 first. FLOOR and CEIL of doubles are BIGINT there, and ROUND goes through decimal texts, so these
are made of RINT, which rounds halves to even and stays a double.
"""

from __future__ import annotations

from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .spark_templates import function, written
from .templates import constant, operand

SPANS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1), "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UTINYINT": (0, 2**8 - 1), "USMALLINT": (0, 2**16 - 1), "UINT": (0, 2**32 - 1),
}  # fmt: skip
WIDE = "DECIMAL(38, 0)"
OWN = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT", "UTINYINT": "SMALLINT",
    "USMALLINT": "INT", "UINT": "BIGINT", "INT128": WIDE, "DOUBLE": "DOUBLE", "DECIMAL": "DECIMAL",
    "BOOLEAN": "BOOLEAN", "VARCHAR": "STRING", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP_NTZ",
}  # fmt: skip
"""By type of the vocabulary: Spark's."""
_EXACT = ("INT128", "DECIMAL")
INFINITE = "CAST('Infinity' AS DOUBLE)"
FINITE = f"(ABS(v_x) < {INFINITE})"
NOT_A_NUMBER = "(v_x = CAST('NaN' AS DOUBLE))"
FLOOR = "CASE WHEN RINT(v_x) > v_x THEN RINT(v_x) - 1D ELSE RINT(v_x) END"
CEILING = "CASE WHEN RINT(v_x) < v_x THEN RINT(v_x) + 1D ELSE RINT(v_x) END"
CUT = f"CASE WHEN v_x < 0D THEN {CEILING} ELSE {FLOOR} END"
# RINT is off by 1/2 at most: where it went towards 0 from a half, or is there already, one more is right.
ROUNDED = "CASE WHEN ABS(v_x) - ABS(RINT(v_x)) >= 0.5D THEN RINT(v_x) + SIGN(v_x) ELSE RINT(v_x) END"
SIGN = "CASE WHEN v_x <> v_x OR ISNAN(v_x) THEN 0 WHEN v_x > 0 THEN 1 WHEN v_x < 0 THEN -1 WHEN v_x = 0 THEN 0 END"
SIGN_BIT = "(v_x < 0D OR (v_x = 0D AND POWER(v_x, -1D) < 0D))"
_TWOS = "RINT(LN(v_x) / LN(2D))"
_LOG = f"({_TWOS} + LN(v_x / POWER(2D, {_TWOS})) / LN(2D))"
BINARY_LOG = (
    f"CASE WHEN v_x >= {INFINITE} THEN v_x WHEN v_x >= 1E-290D THEN {_LOG} "
    f"WHEN v_x > 0D THEN {_LOG.replace('v_x', '(v_x * POWER(2D, 200D))')} - 200D END"
)
# Java's 1 to the power NaN is NaN, and so is -1 to that of infinity.
POWER = (
    f"CASE WHEN v_a = 1D AND v_b IS NOT NULL OR v_a = -1D AND ABS(v_b) = {INFINITE} THEN 1D ELSE POWER(v_a, v_b) END"
)


# ABS and a minus sign round a decimal to 34 digits there; a difference does not.
SIZE = "CASE WHEN v_x < 0 THEN 0 - v_x ELSE v_x END"
# Never with an exponent, as Spark writes a decimal below a millionth, but under ANSI. A minus sign is put before it.
_WHOLE = "CASE WHEN v_x < 0 THEN 0 - CEIL(v_x) ELSE FLOOR(v_x) END"
_ONE = "TRY_MOD(v_x, CAST(1 AS DECIMAL(1, 0)))"
_BELOW, _ABOVE = f"SUBSTRING(CAST({_ONE} - 1 AS STRING), 3)", f"SUBSTRING(CAST({_ONE} + 1 AS STRING), 2)"
_BEHIND = f"CASE WHEN v_x < 0 THEN {_BELOW} ELSE {_ABOVE} END"
DECIMAL_TEXT = f"CONCAT(CASE WHEN v_x < 0 THEN '-' ELSE '' END, CAST({_WHOLE} AS STRING), {_BEHIND})"


def refusal(word: str, of: str) -> PlanError:
    return PlanError(f"Spark has no word for {word!r} of {of}: the statement is not run there")


def double(node: Any) -> Any:
    """The number as a DOUBLE."""
    return node if kind_of(node) == "DOUBLE" else written("CAST(v_x AS DOUBLE)", x=node)


def own_type(to: Any) -> Any:
    """The type as Spark calls it; a DECIMAL with its digits."""
    exp = needed("sqlglot").exp
    return to.copy() if type_of(to) == "DECIMAL" else exp.DataType.build(OWN[type_of(to)], dialect="spark")


def sum_of_two(node: Any) -> Any:
    return _added(node, "+", "TRY_ADD")


def difference(node: Any) -> Any:
    return _added(node, "-", "TRY_SUBTRACT")


def _added(node: Any, sign: str, name: str) -> Any:
    one, other = node.this, node.expression
    kinds = [kind_of(one), kind_of(other)]
    if "INTERVAL" in kinds:
        one, other = (
            side if kind == "INTERVAL" else written("CAST(v_x AS TIMESTAMP_NTZ)", x=side)
            for side, kind in zip((one, other), kinds, strict=True)
        )
        return function(name, one, other)
    if kinds == ["DATE", "DATE"]:
        return written("CAST(DATEDIFF(v_a, v_b) AS BIGINT)", a=one, b=other)
    if "DATE" in kinds:
        day, days = (one, other) if kinds[0] == "DATE" else (other, one)
        text = f"CASE WHEN v_n BETWEEN -3700000 AND 3700000 THEN DATE_ADD(v_d, CAST({sign}v_n AS INT)) END"
        return written(text, d=day, n=days)
    if kind_of(node) == "DOUBLE" or "TIMESTAMP" in kinds:
        return node
    return function(name, *_widened(one, other))


def _widened(one: Any, other: Any) -> tuple[Any, Any]:
    """Whole numbers are added and multiplied in 64 bits or more, as their types are inferred."""
    narrow = [kind_of(side) in INTEGERS and kind_of(side) != "BIGINT" for side in (one, other)]
    return (written("CAST(v_x AS BIGINT)", x=one), other) if all(narrow) else (one, other)


def product(node: Any) -> Any:
    if kind_of(node) == "DOUBLE":
        return node
    return function("TRY_MULTIPLY", *_widened(node.this, node.expression))


def negative(node: Any) -> Any:
    if kind_of(node.this) not in (*INTEGERS, "INT128") or isinstance(node.this, needed("sqlglot").exp.Literal):
        return node
    return written("TRY_SUBTRACT(0L, v_x)", x=node.this)


def size(node: Any) -> Any:
    if kind_of(node.this) == "INT128":
        return written(SIZE, x=node.this)
    if kind_of(node.this) not in INTEGERS:
        return function("ABS", node.this)
    return written("GREATEST(v_x, TRY_SUBTRACT(0L, v_x))", x=node.this)


def quotient(node: Any) -> Any:
    one, other = double(node.this), double(node.expression)
    if constant(node.expression):
        return function("TRY_DIVIDE", one, other)
    return written("CASE WHEN v_b = 0D THEN v_a * POWER(v_b, -1D) ELSE TRY_DIVIDE(v_a, v_b) END", a=one, b=other)


def whole_quotient(node: Any) -> Any:
    """DIV gives a BIGINT, also of decimals. Where a quotient may be wider it is computed digit by digit."""
    one, other = node.this, node.expression
    if kind_of(one) in INTEGERS:  # a wider divisor makes it no larger
        if constant(other):
            return written("v_a DIV v_b", a=one, b=other)
        narrow = kind_of(other) in INTEGERS
        text = "CASE WHEN v_b = -1 THEN TRY_SUBTRACT(0L, v_a) ELSE v_a DIV NULLIF(v_b, 0) END"
        return written(text if narrow else "v_a DIV NULLIF(v_b, 0)", a=one, b=other)
    return _long_division(one, other)


def _long_division(one: Any, other: Any) -> Any:
    """Of 38 digits by any number: in digits of 10^13, so that no step is wider than 38 digits. For a divisor beyond
    10^24 the quotient has less than 15 digits, and DIV gives it."""
    a, b = written(f"CAST(v_x AS {WIDE})", x=one), written(f"NULLIF(CAST(v_x AS {WIDE}), 0)", x=other)
    base, first = f"CAST(1{'0' * 13} AS {WIDE})", f"CAST(1{'0' * 26} AS {WIDE})"
    size = {"a": written(SIZE, x=a), "b": written(SIZE, x=b)}
    high = written(f"v_a DIV {first}", a=size["a"])
    middle = written(f"(v_a % {first}) DIV {base}", a=size["a"])
    low = written(f"v_a % {base}", a=size["a"])
    one_step = written(f"(v_h % v_b) * {base} + v_m", h=high, m=middle, b=size["b"])
    two_steps = written(f"(v_s % v_b) * {base} + v_l", s=one_step, l=low, b=size["b"])
    digits = written(
        f"(CAST(v_h DIV v_b AS {WIDE}) * {first} + CAST(v_s DIV v_b AS {WIDE}) * {base}) + CAST(v_t DIV v_b AS {WIDE})",
        h=high, s=one_step, t=two_steps, b=size["b"],
    )  # fmt: skip
    whole = written(
        f"CASE WHEN v_b > CAST(1{'0' * 24} AS {WIDE}) THEN CAST(v_a DIV v_b AS {WIDE}) ELSE CAST(v_q AS {WIDE}) END",
        q=digits, **size,
    )  # fmt: skip
    return written(f"CAST(CASE WHEN (v_a < 0) = (v_b < 0) THEN v_q ELSE 0 - v_q END AS {WIDE})", a=a, b=b, q=whole)


def remainder(node: Any) -> Any:
    return function("TRY_MOD", node.this, node.expression)


def shifted_right(node: Any) -> Any:
    if kind_of(node.this) not in _EXACT:
        return written("SHIFTRIGHT(v_a, CAST(v_b AS INT))", a=node.this, b=node.expression)
    bits = constant(node.expression)
    if bits is None:
        raise refusal("shifted_right", "integers of 128 bits by a number that is no constant")
    power = written(f"CAST({2 ** int(bits)} AS {WIDE})")
    return _long_division(node.this, power)


def bits_of_both(node: Any) -> Any:
    if kind_of(node.this) not in _EXACT:
        return node
    mask = int(constant(node.expression) or 0)
    if mask <= 0 or mask & (mask + 1):
        raise refusal("bits_of_both", "integers of 128 bits")
    return written(f"CAST(TRY_MOD(v_a, CAST({mask + 1} AS {WIDE})) AS BIGINT)", a=node.this)


def rounded(node: Any) -> Any:
    """Of doubles, in doubles; of whole numbers in decimals; of decimals by the engine, halves away from 0."""
    places = int(constant(node.args["decimals"]) or 0) if node.args.get("decimals") else 0
    kind, x = kind_of(node), node.this
    if kind in INTEGERS:
        return x if places >= 0 else _tens(x, -places)
    if kind in _EXACT:
        return written(f"ROUND(v_x, {places})", x=x)
    if places == 0:
        return written(ROUNDED, x=double(x))
    power = f"{10.0 ** abs(places)!r}D"
    if places > 0:
        whole = written(ROUNDED, x=written(f"v_x * {power}", x=double(x)))
        return written(f"CASE WHEN ABS(v_x * {power}) = {INFINITE} THEN v_x ELSE v_w / {power} END", x=x, w=whole)
    return written(f"v_w * {power}", w=written(ROUNDED, x=written(f"v_x / {power}", x=double(x))))


def _tens(x: Any, places: int) -> Any:
    if places > 19:
        return written("v_x - v_x", x=x)
    power, half = 10**places, 10**places // 2
    moved = written(f"CAST(v_x AS DECIMAL(20, 0)) + CASE WHEN v_x < 0 THEN -{half} ELSE {half} END", x=x)
    text = f"v_m - v_m % CAST({power} AS DECIMAL(21, 0))"
    return written(f"CAST(LEAST(GREATEST({text}, {-(2**63)}), {2**63 - 1}) AS BIGINT)", m=moved)


def power(base: Any, exponent: Any) -> Any:
    return written(POWER, a=double(base), b=double(exponent))


def among(node: Any) -> Any:
    """A list of doubles is looked up by their bits, in which -0.0 is not 0.0. Tuples are compared by parts, so that a
    NULL is unknown and not another value."""
    exp = needed("sqlglot").exp
    listed = node.args.get("expressions")
    if kind_of(node.this) == "DOUBLE":
        node.set("this", exp.Paren(this=exp.Add(this=operand(node.this), expression=written("0D"))))
    if not (listed and isinstance(node.this.unnest(), exp.Tuple)):
        return node
    parts = node.this.unnest().expressions
    if len(listed) > _FEW:
        there = exp.and_(*(exp.Not(this=exp.Is(this=operand(part), expression=exp.Null())) for part in parts))
        return exp.Paren(this=exp.Case(ifs=[exp.If(this=there, true=node.copy())]))
    rows = (
        exp.and_(*(exp.EQ(this=operand(x), expression=operand(y)) for x, y in zip(parts, row.expressions, strict=True)))
        for row in (each.unnest() for each in listed)
    )
    return exp.Paren(this=exp.or_(*rows))


_FEW = 100
"""Rows of a list that are compared one by one."""
