"""Words that SQLite lacks, or means otherwise, as functions of Python that its library can call.

Its integers have 64 bits, and it has no NaN: a wider integer, and NaN, travel through it as bytes, which are nothing
else there. So sums are exact, and comparisons are made here, not by SQLite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

_NAN = b"nan"
_SPANS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1), "INT128": (-(2**127), 2**127 - 1)}


def decoded(cell: Any) -> Any:
    """A value of SQLite as it is meant."""
    if isinstance(cell, bytes):
        return math.nan if cell == _NAN else int(cell)
    return cell


def encoded(value: Any) -> Any:
    """A value as SQLite can hold it."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value).encode()
    return value


def _order(value: Any) -> tuple[int, Any]:
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _less(one: Any, other: Any) -> bool:
    return _order(one) < _order(other)


def _at_most(one: Any, other: Any) -> bool:
    return _order(one) <= _order(other)


def _least(*values: Any) -> Any:
    return min((value for value in values if value is not None), key=_order, default=None)


def _greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), key=_order, default=None)


def _quotient(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


def _whole_quotient(one: int, other: int) -> int:
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _remainder(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        return math.fmod(one, other)
    return one - other * _whole_quotient(one, other)


def _whole_part(number: float, round_it: Callable[[float], int]) -> float:
    """As a double, with the sign that it had where nothing is left."""
    return math.copysign(float(round_it(number)), number) if math.isfinite(number) else number


def _cast(value: Any, kind: str) -> Any:
    if kind == "DOUBLE":
        return float(value)
    if kind == "VARCHAR":
        return value if isinstance(value, str) else repr(value)
    if kind == "BOOLEAN":
        return bool(value)
    return _narrowed(round(value) if isinstance(value, float) else int(value), kind)


def _narrowed(value: int, kind: str) -> int | None:
    low, high = _SPANS[kind]
    return value if low <= value <= high else None


def _nearest(value: float, kind: str) -> int | None:
    return _narrowed(round(value), kind) if math.isfinite(value) else None


def _whole_or_null(value: float) -> int | None:
    return _nearest(value, "BIGINT") if math.isfinite(value) and value == math.trunc(value) else None


_NUMBER = re.compile(
    r"[ \t\n\v\f\r]*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)\s*", re.A | re.I
)


def _read(text: Any, kind: str) -> Any:
    if kind == "VARCHAR" or not isinstance(text, str):
        return text
    if kind == "BOOLEAN":
        return {"true": True, "false": False}.get(text.lower())
    if _NUMBER.fullmatch(text) is None:
        return None
    if kind == "DOUBLE":
        return float(text)
    return _narrowed(int(text), kind) if _is_digits(text) else _nearest(float(text), kind)


def _is_digits(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[0-9]+\s*", text, re.A) is not None


def _listed(text: str, listed: str, between: str) -> str | None:
    return text if text in listed.split(between) else None


class _ExactSum:
    """Integers of any width."""

    def __init__(self) -> None:
        self._sum: int | None = None

    def step(self, cell: Any) -> None:
        if cell is not None:
            self._sum = (self._sum or 0) + decoded(cell)

    def finalize(self) -> Any:
        return encoded(self._sum)


OF_VALUES: dict[str, Callable[..., Any]] = {
    "sum_of_two": lambda one, other: one + other,
    "difference": lambda one, other: one - other,
    "product": lambda one, other: one * other,
    "negative": lambda one: -one,
    "quotient": _quotient,
    "whole_quotient": _whole_quotient,
    "remainder": _remainder,
    "shifted_right": lambda one, bits: one >> bits,
    "bits_of_both": lambda one, other: one & other,
    "size": abs,
    "floor": lambda number: _whole_part(number, math.floor),
    "cut": lambda number: _whole_part(number, math.trunc),
    "root": math.sqrt,
    "is_finite": math.isfinite,
    "sign_bit": lambda number: math.copysign(1, number) < 0,
    "equal": lambda one, other: _order(one) == _order(other),
    "different": lambda one, other: _order(one) != _order(other),
    "less": _less,
    "at_most": _at_most,
    "greater": lambda one, other: _less(other, one),
    "at_least": lambda one, other: _at_most(other, one),
    "cast": _cast,
    "nearest": _nearest,
    "nearest_or_null": _nearest,
    "narrowed_or_null": _narrowed,
    "read_or_null": _read,
    "whole_or_null": _whole_or_null,
    "not_a_number": math.isnan,
    "is_digits": _is_digits,
    "listed_or_null": _listed,
    "repeated": lambda text, times: text * times,
    "lower": str.lower,
    "upper": str.upper,
    "holds": lambda text, part: part in text,
    "begins_with": str.startswith,
    "ends_on": str.endswith,
}
"""By word: what it gives of values that are not NULL. It is NULL where one is."""

OF_ANY: dict[str, Callable[..., Any]] = {"least_present": _least, "greatest_present": _greatest}


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*cells: Any) -> Any:
        return None if any(cell is None for cell in cells) else encoded(function(*map(decoded, cells)))

    return called


def _lenient(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *cells: encoded(function(*map(decoded, cells)))


def name_of(word: str) -> str:
    return f"word_{word}"


def register(opened: Any) -> Any:
    """Give a connection of SQLite these words."""
    for word, function in OF_VALUES.items():
        opened.create_function(name_of(word), -1, _strict(function), deterministic=True)
    for word, function in OF_ANY.items():
        opened.create_function(name_of(word), -1, _lenient(function), deterministic=True)
    opened.create_aggregate(name_of("exact_sum"), 1, _ExactSum)
    return opened
