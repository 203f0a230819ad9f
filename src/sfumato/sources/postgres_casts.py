"""Casts in PostgreSQL that raise for no cell: each asks first whether the type holds the value, or the text writes one.

What a text writes is decided by patterns of ours. The server's own reading of texts takes more ('now', 'J2451187',
0x10), and means some of it by settings.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from .base import literal, needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .postgres_numbers import ROUNDED, SPANS, double, own_type, power_of_two, product_of, refusal
from .postgres_templates import written

_BLANKS = r"[ \t\n\v\f\r]*"
_MANTISSA = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_NUMBER = rf"^{_BLANKS}{_MANTISSA}([eE][+-]?[0-9]+)?{_BLANKS}$"
_WORDS = {"nan": "NaN", r"[+]?inf(inity)?": "Infinity", r"-inf(inity)?": "-Infinity"}
_PLAIN = rf"^{_BLANKS}[+-]?([0-9]{{1,200}}\.?[0-9]{{0,200}}|\.[0-9]{{1,200}})([eE][+-]?[0-9]{{1,2}})?{_BLANKS}$"
# The server's decimals have 131,072 digits before the point and 16,383 behind it.
_HELD = rf"CHAR_LENGTH(v_x) < 5000 AND v_x ~ '^[^eE]*([eE][+-]?0*[0-9]{{1,4}})?{_BLANKS}$'"
_SMALL = rf"[eE]-|^{_BLANKS}[+-]?[0.]*([eE]|{_BLANKS}$)|^{_BLANKS}[+-]?0*\.(0{{100}}){{4}}"
_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]*)?)?"
_ZONE = r"( ?(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?"
_MOMENT = rf"^{_BLANKS}{_DAY}(([ ]+|T){_CLOCK}{_ZONE})?{_BLANKS}$"
_SHORT = 18  # digits of a number of 64 bits
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
DIGITS = rf"(v_x ~ {literal(rf'^{_BLANKS}[+-]?[0-9]+{_BLANKS}$')})"
_EXACT = "CAST(CAST(v_x AS BIGINT) AS DECIMAL)"


def _wide() -> str:
    """A whole DOUBLE of less than 2^127 as a number of any width. What is 2^62 or more is a multiple of 2^10."""
    whens = [f"WHEN ABS(v_x) < {power_of_two(62)} THEN {_EXACT}"]
    for bits in range(10, 71, 10):
        part = _EXACT.replace("v_x", f"v_x * {power_of_two(-bits)}")
        whens.append(f"WHEN ABS(v_x) < {power_of_two(62 + bits)} THEN {part} * CAST({2**bits} AS DECIMAL)")
    return f"CASE {' '.join(whens)} END"


_WIDE = _wide()


def cast(node: Any) -> Any:
    """A cast that cannot fail, as PostgreSQL writes it."""
    exp = needed("sqlglot").exp
    x, to = node.this, type_of(node.to)
    kind, bare = kind_of(x), x.unnest()
    if isinstance(bare, exp.Neg) and isinstance(bare.this, exp.Literal) and to == "DOUBLE":
        return written("CAST(v_x AS DOUBLE PRECISION)", x=exp.Literal.string(f"-{bare.this.name}"))
    if isinstance(bare, exp.Literal) and to == "DOUBLE":
        return written("CAST(v_x AS DOUBLE PRECISION)", x=exp.Literal.string(bare.name))
    if to == "VARCHAR":
        return written('(CAST(v_x AS TEXT) COLLATE "C")', x=x)
    if kind == "BOOLEAN" and to != "BOOLEAN":
        x = written("CAST(v_x AS INT)", x=x)
    if to == "BOOLEAN" and kind in (*INTEGERS, "INT128", "DOUBLE", "DECIMAL"):
        return written("(v_x <> 0)", x=x)
    if to == "INT128" and kind == "DOUBLE":
        return nearest(x, node.to)
    return exp.Cast(this=x.copy() if x is node.this else x, to=own_type(node.to))


def nearest(x: Any, to: Any) -> Any:
    exp = needed("sqlglot").exp
    if type_of(to) == "INT128":
        return written(_WIDE.replace("v_x", "ROUND(v_x)"), x=double(x))
    return exp.Cast(this=double(x), to=own_type(to))


def nearest_or_null(x: Any, to: Any) -> Any:
    low, high = SPANS[type_of(to)]
    fits = f"ROUND(v_x) >= {power_of_two(63)} * -1 AND ROUND(v_x) < {power_of_two(63)}"
    if type_of(to) == "INT128":
        fits = f"ABS(v_x) < {power_of_two(127)}"
    elif type_of(to) != "BIGINT":
        fits = f"ROUND(v_x) BETWEEN {low} AND {high}"
    inner = written("v_x", x=double(x))
    number = _WIDE.replace("v_x", "ROUND(v_x)") if type_of(to) == "INT128" else f"CAST(v_x AS {own_type(to).sql()})"
    return written(f"CASE WHEN {fits} THEN {number} END", x=inner)


def narrowed_or_null(x: Any, to: Any) -> Any:
    if type_of(to) == "INT128":
        return written("CAST(v_x AS DECIMAL)", x=x)
    low, high = SPANS[type_of(to)]
    return written(f"CASE WHEN v_x BETWEEN {low} AND {high} THEN CAST(v_x AS {own_type(to).sql()}) END", x=x)


def whole_or_null(x: Any) -> Any:
    fits = f"TRUNC(v_x) = v_x AND v_x >= {-(2**63)} AND v_x < {2**63}"
    return written(f"CASE WHEN {fits} THEN CAST(v_x AS BIGINT) END", x=x)


def decimal_or_null(x: Any, to: Any) -> Any:
    """Of a DOUBLE as DuckDB reads one: what it writes in few digits is what it means, 1.005 as 1.01."""
    width, places = (int(size.name) for size in to.expressions)
    own = f"DECIMAL({width}, {places})"
    if kind_of(x) in (*INTEGERS, "INT128", "DECIMAL"):
        text = f"ROUND(CAST(v_x AS DECIMAL), {places})"
        return written(f"CASE WHEN ABS({text}) < {10 ** (width - places)} THEN CAST({text} AS {own}) END", x=x)
    if kind_of(x) not in (None, "DOUBLE"):
        raise refusal("decimal_or_null", "values of this type")
    scaled = product_of(x, needed("sqlglot").exp.Literal.number(repr(10.0**places))) if places else double(x)
    number = written("v_x + SIGN(v_x) * 1e-9" if places else ROUNDED, x=scaled)
    whole = (_EXACT if width <= _SHORT else _WIDE).replace("v_x", "ROUND(v_x)")
    unit = f"CAST('{Decimal(1).scaleb(-places):f}' AS DECIMAL)"
    return written(f"CASE WHEN ABS(v_x) < {10**width} THEN CAST(({whole}) * {unit} AS {own}) END", x=number)


def digits(x: Any) -> Any:
    return written(DIGITS, x=x)


_NUMBER_HELD = f"v_x ~ {literal(_NUMBER)} AND {_HELD}"


def _double() -> str:
    """Three ways: plain numbers are read at once, those with long exponents through decimals, and what decimals cannot
    hold is infinite or 0. No way asks the server whether it can read the text: it may ask so too late, of constants."""
    words = " ".join(
        f"WHEN v_x ~* {literal(f'^{_BLANKS}{word}{_BLANKS}$')} THEN CAST('{value}' AS DOUBLE PRECISION)"
        for word, value in _WORDS.items()
    )
    sign = f"CASE WHEN v_x ~ {literal(f'^{_BLANKS}-')} THEN CAST(-1 AS FLOAT8) ELSE CAST(1 AS FLOAT8) END"
    small = f"v_x ~ {literal(_SMALL)}"
    wide = (
        f"CASE WHEN ABS(CAST(v_x AS DECIMAL)) > 1.797693134862315807e308 THEN {sign} * CAST('Infinity' AS FLOAT8) "
        f"WHEN ABS(CAST(v_x AS DECIMAL)) < 2.4703282292062328e-324 THEN {sign} * CAST(0 AS FLOAT8) "
        "ELSE CAST(CAST(v_x AS DECIMAL) AS FLOAT8) END"
    )
    beyond = f"{sign} * CASE WHEN {small} THEN CAST(0 AS FLOAT8) ELSE CAST('Infinity' AS FLOAT8) END"
    return (
        f"CASE WHEN v_x ~ {literal(_PLAIN)} THEN CAST(v_x AS DOUBLE PRECISION) "
        f"WHEN {_NUMBER_HELD} THEN {wide} WHEN v_x ~ {literal(_NUMBER)} THEN {beyond} {words} END"
    )


_DOUBLE = _double()


def read_or_null(x: Any, to: Any) -> Any:
    """A text as the value that it writes, else NULL."""
    kind = type_of(to)
    if kind_of(x) not in (None, "VARCHAR"):
        x = written('(CAST(v_x AS TEXT) COLLATE "C")', x=x)
    if kind == "VARCHAR":
        return x
    if kind == "DOUBLE":
        return written(_DOUBLE, x=x)
    if kind in SPANS:
        low, high = SPANS[kind]
        number = written(f"CASE WHEN {_NUMBER_HELD} THEN ROUND(CAST(v_x AS DECIMAL)) END", x=x)
        return written(f"CASE WHEN v_x BETWEEN {low} AND {high} THEN CAST(v_x AS {own_type(to).sql()}) END", x=number)
    if kind == "BOOLEAN":
        true, false = (", ".join(map(literal, words)) for words in (_TRUE, _FALSE))
        return written(f"CASE WHEN LOWER(v_x) IN ({true}) THEN TRUE WHEN LOWER(v_x) IN ({false}) THEN FALSE END", x=x)
    if kind == "DATE":
        day = f"v_x ~ {literal(f'^{_BLANKS}{_DAY}{_BLANKS}$')} AND PG_INPUT_IS_VALID(v_x, 'date')"
        return written(f"CASE WHEN {day} THEN CAST(v_x AS DATE) END", x=x)
    if kind == "TIMESTAMP":
        return moment_or_null(x)
    raise refusal("read_or_null", "this type")


def moment_or_null(x: Any) -> Any:
    """Digits of a second behind the sixth are left out; the session's own zone is UTC."""
    short = written(r"REGEXP_REPLACE(v_x, '(\.[0-9]{6})[0-9]+', '\1')", x=x)
    fits = f"v_x ~ {literal(_MOMENT)} AND PG_INPUT_IS_VALID(v_x, 'timestamptz')"
    return written(f"CASE WHEN {fits} THEN TIMEZONE('UTC', CAST(v_x AS TIMESTAMPTZ)) END", x=short)


def time_or_null(x: Any, to: Any) -> Any:
    if type_of(to) == "DATE":
        return written("CAST(v_x AS DATE)", x=x)
    fits = "NOT ISFINITE(v_x) OR v_x BETWEEN CAST('4000-01-01 BC' AS DATE) AND CAST('200000-12-31' AS DATE)"
    return written(f"CASE WHEN {fits} THEN CAST(v_x AS TIMESTAMP) END", x=x)
