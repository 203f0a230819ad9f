"""Casts in Spark that raise for no cell, and mean the same under ANSI and without it.

What a text writes is decided by patterns of ours: Spark's own reading takes more (1d, 0x1p3, 2024), and its settings
may have a say in it. Java's \\z is the end of a text, where $ may stand before a last line break.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .spark_numbers import DECIMAL_TEXT, INFINITE, OWN, ROUNDED, SPANS, WIDE, double, own_type, refusal
from .spark_templates import text_of, written

_BLANKS = r"[ \t\n\x0B\f\r]*"
_NUMBER = rf"\A{_BLANKS}[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?{_BLANKS}\z"
_WORDS = {r"nan": "NaN", r"[+]?inf(inity)?": "Infinity", r"-inf(inity)?": "-Infinity"}
_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]*)?)?"
_ZONE = r"( ?(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?"
_MOMENT = rf"\A{_BLANKS}{_DAY}(([ ]+|T){_CLOCK}{_ZONE})?{_BLANKS}\z"
_SHORT = 18  # digits of a number of 64 bits
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
_WRITES_DAY = rf"\A{_BLANKS}{_DAY}{_BLANKS}\z"
_DIGITS = rf"\A{_BLANKS}[+-]?[0-9]+{_BLANKS}\z"


def _fits(pattern: str) -> str:
    return f"v_x RLIKE {text_of(pattern)}"


def _two_to(exponent: int) -> str:
    return f"{2.0**exponent!r}D"


def _wide() -> str:
    """A whole DOUBLE of less than 10^38 as a number of 38 digits, to the last one. Spark's own cast goes by the text of
    a double, which has 17. What is 2^62 or more is a multiple of 2^10."""
    part = f"CAST(CAST(v_x AS BIGINT) AS {WIDE})"
    whens = [f"WHEN ABS(v_x) < {_two_to(62)} THEN {part}"]
    for bits in range(10, 71, 10):
        scaled = part.replace("v_x", f"v_x * {_two_to(-bits)}")
        power = f"CAST({2**bits} AS {WIDE})"
        whens.append(
            f"WHEN ABS(v_x) < {1e38 if bits == 70 else 2.0 ** (62 + bits)!r}D THEN TRY_MULTIPLY({scaled}, {power})"
        )
    return f"CASE {' '.join(whens)} END"


_WIDE_OF = _wide()
_IN_64_BITS = f"RINT(v_x) >= -{_two_to(63)} AND RINT(v_x) < {_two_to(63)}"


def cast(node: Any) -> Any:
    """A cast that cannot fail, as Spark writes it."""
    exp = needed("sqlglot").exp
    x, to = node.this, type_of(node.to)
    kind, bare = kind_of(x), x.unnest()
    if isinstance(bare, exp.Neg) and isinstance(bare.this, exp.Literal) and to == "DOUBLE":
        return written("CAST(v_x AS DOUBLE)", x=exp.Literal.string(f"-{bare.this.name}"))
    if isinstance(bare, exp.Literal) and to == "DOUBLE":
        return written("CAST(v_x AS DOUBLE)", x=exp.Literal.string(bare.name))
    if to == "VARCHAR":
        return _text(x)
    if to == "BOOLEAN" and kind in (*INTEGERS, "INT128", "DOUBLE", "DECIMAL"):
        return written("(v_x <> 0)", x=x)
    if to == "INT128" and kind == "DOUBLE":
        return nearest_or_null(x, node.to)
    if kind == "DOUBLE" and to in SPANS:
        return nearest_or_null(x, node.to)
    own = exp.TryCast if kind in ("INT128", "DECIMAL", "BIGINT", None, "VARCHAR") and to != "DOUBLE" else exp.Cast
    if isinstance(bare, exp.Literal):
        own = exp.Cast
    return own(this=x.copy(), to=own_type(node.to))


def _text(x: Any) -> Any:
    if kind_of(x) == "DECIMAL":
        return written(DECIMAL_TEXT, x=x)
    return written("CAST(v_x AS STRING)", x=x)


def nearest(x: Any, to: Any) -> Any:
    return nearest_or_null(x, to)


def nearest_or_null(x: Any, to: Any) -> Any:
    """TRY_CAST takes 2^63 for the largest of 64 bits, so the ends are asked for first."""
    if type_of(to) == "INT128":
        return written(_WIDE_OF.replace("v_x", "RINT(v_x)"), x=double(x))
    fits = _IN_64_BITS
    if type_of(to) != "BIGINT":
        low, high = SPANS[type_of(to)]
        fits = f"RINT(v_x) BETWEEN {low}D AND {high}D"
    return written(f"CASE WHEN {fits} THEN CAST(RINT(v_x) AS {OWN[type_of(to)]}) END", x=double(x))


def narrowed_or_null(x: Any, to: Any) -> Any:
    if type_of(to) == "INT128":
        return written(f"CAST(v_x AS {WIDE})", x=x)
    low, high = SPANS[type_of(to)]
    return written(f"CASE WHEN v_x BETWEEN {low} AND {high} THEN TRY_CAST(v_x AS {OWN[type_of(to)]}) END", x=x)


def whole_or_null(x: Any) -> Any:
    """Of a DOUBLE or a decimal: which of them need not be known."""
    fits = f"TRY_MOD(v_x, 1) = 0 AND v_x >= {-(2**63)} AND v_x < {2**63}"
    return written(f"CASE WHEN {fits} THEN TRY_CAST(v_x AS BIGINT) END", x=x)


def decimal_or_null(x: Any, to: Any) -> Any:
    """Of a DOUBLE as DuckDB reads one: what it writes in few digits is what it means, 1.005 as 1.01."""
    width, places = (int(size.name) for size in to.expressions)
    own = f"DECIMAL({width}, {places})"
    if kind_of(x) in (*INTEGERS, "INT128", "DECIMAL"):
        return written(f"TRY_CAST(v_x AS {own})", x=x)
    if kind_of(x) not in (None, "DOUBLE"):
        raise refusal("decimal_or_null", "values of this type")
    if width > _SHORT or width + places + 1 > 38:
        return written(f"CASE WHEN ABS(v_x) < {INFINITE} THEN TRY_CAST(v_x AS {own}) END", x=double(x))
    scaled = written(f"v_x * {10.0**places!r}D", x=double(x)) if places else double(x)
    number = written("v_x + SIGN(v_x) * 1E-9D" if places else ROUNDED, x=scaled)
    whole = f"CAST(CAST(RINT(v_x) AS BIGINT) AS DECIMAL({width}, 0))"
    unit = f"CAST('{Decimal(1).scaleb(-places):f}' AS DECIMAL({max(places, 1)}, {places}))"
    product = f"{whole} * {unit}" if places else whole
    return written(f"CASE WHEN ABS(RINT(v_x)) < {10**width}D THEN CAST({product} AS {own}) END", x=number)


def digits(x: Any) -> Any:
    return written(f"({_fits(_DIGITS)})", x=x)


def _double() -> str:
    patterns = {rf"(?i)\A{_BLANKS}{word}{_BLANKS}\z": value for word, value in _WORDS.items()}
    words = " ".join(f"WHEN {_fits(pattern)} THEN CAST('{value}' AS DOUBLE)" for pattern, value in patterns.items())
    return f"CASE WHEN {_fits(_NUMBER)} THEN TRY_CAST(v_x AS DOUBLE) {words} END"


_DOUBLE = _double()


def read_or_null(x: Any, to: Any) -> Any:
    """A text as the value that it writes, else NULL."""
    kind = type_of(to)
    if kind_of(x) not in (None, "VARCHAR"):
        x = _text(x)
    if kind == "VARCHAR":
        return x
    if kind == "DOUBLE":
        return written(_DOUBLE, x=x)
    if kind in SPANS or kind == "INT128":
        number = written(f"CASE WHEN {_fits(_NUMBER)} THEN TRY_CAST(v_x AS {WIDE}) END", x=x)
        return number if kind == "INT128" else narrowed_or_null(number, to)
    if kind == "BOOLEAN":
        true, false = (", ".join(map(text_of, words)) for words in (_TRUE, _FALSE))
        return written(f"CASE WHEN LOWER(v_x) IN ({true}) THEN TRUE WHEN LOWER(v_x) IN ({false}) THEN FALSE END", x=x)
    if kind == "DATE":
        return written(f"CASE WHEN {_fits(_WRITES_DAY)} THEN TRY_CAST(v_x AS DATE) END", x=x)
    if kind == "TIMESTAMP":
        return moment_or_null(x)
    raise refusal("read_or_null", "this type")


def moment_or_null(x: Any) -> Any:
    """Digits of a second behind the sixth are left out by Spark; the session's own zone is UTC."""
    moment = "CAST(TRY_CAST(v_x AS TIMESTAMP_LTZ) AS TIMESTAMP_NTZ)"
    return written(f"CASE WHEN {_fits(_MOMENT)} THEN {moment} END", x=x)


_DAYS = 106_000_000  # on both sides of 1970, in microseconds of 64 bits


def time_or_null(x: Any, to: Any) -> Any:
    if type_of(to) == "DATE":
        return written("CAST(v_x AS DATE)", x=x)
    return written(f"CASE WHEN UNIX_DATE(v_x) BETWEEN -{_DAYS} AND {_DAYS} THEN CAST(v_x AS TIMESTAMP_NTZ) END", x=x)
