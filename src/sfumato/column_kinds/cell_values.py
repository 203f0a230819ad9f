"""What one cell means: the number, truth, text or key that it holds, or nothing.

Whatever a cell is, it is read by itself, so that no row changes how another is read. A function here may raise on a
stranger's object; `block_reading.cell_by_cell`, which calls them, takes that for a NULL.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np

from .. import times
from ..tensors import INT64

Number = int | float | Fraction | Decimal

YES = frozenset({"true", "t", "yes", "y", "1"})
NO = frozenset({"false", "f", "no", "n", "0"})
_BYTES = (bytes, bytearray)
_HALVES = re.compile("[\ud800-\udfff]")  # of characters
_TEXT = (str, *_BYTES)
_WHOLE = (int, np.bool_, Integral)
_LONG, _SMALL, _LARGE = 10**39, Fraction(1, 10**400), 10**400  # of numbers that are keys


def text_of(cell: Any) -> str | None:
    """Plain text of text or bytes; None for other cells, and for what no UTF-8 can hold: no file, engine or ledger
    could take it, and whether a release fails must not depend on a row."""
    if isinstance(cell, str):
        text = str.__str__(cell)
        return text if text.isascii() or not _HALVES.search(text) else None
    try:
        return bytes(cell).decode() if isinstance(cell, _BYTES) else None
    except UnicodeDecodeError:
        return None


def number_of(cell: Any) -> Number | None:
    """The number a cell holds, exactly; None for nan and for what is no number. Text counts if all of it is one."""
    if isinstance(cell, float):
        return None if cell != cell else cell
    if isinstance(cell, _TEXT):
        return _parsed(text_of(cell) or "")
    if isinstance(cell, np.timedelta64):  # numpy files it under whole numbers
        return None
    if isinstance(cell, _WHOLE):
        return int(cell)
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else cell
    if isinstance(cell, Rational):
        return Fraction(cell)
    return number_of(float(cell)) if isinstance(cell, Real) else None


def _parsed(text: str) -> Number | None:
    if "_" in text:  # Python reads 1_000 as a number, databases do not
        return None
    if text.strip().lstrip("+-").isdecimal() and len(text) <= 400:  # exact; a longer one saturates anyway
        return int(text)
    return number_of(float(text))


def real_of(cell: Any) -> float | None:
    number = number_of(cell)
    if number is None:
        return None
    try:
        return float(number) + 0.0
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def whole_of(cell: Any, low: int, high: int) -> int | None:
    number = number_of(cell)
    if number is None:
        return None
    # Clamped first: int(Decimal("1e999999999")) would fill the memory.
    return low if number <= low else high if number >= high else round(number)


def flag_of(cell: Any) -> bool | None:
    text = text_of(cell)
    if text is not None:
        word = text.strip().lower()
        return True if word in YES else False if word in NO else None
    number = number_of(cell)
    return bool(number) if number in (0, 1) else None


def name_of(cell: Any) -> str | None:
    """A text category. A whole number stands for its digits: frames hold 12 as 12, 12.0 or '12' as it suits them."""
    text = text_of(cell)
    if text is not None or isinstance(cell, bool | np.bool_):
        return text
    number = number_of(cell)
    if number is None or not INT64[0] <= number <= INT64[1] or number != int(number):
        return None
    return str(int(number))


def code_of(codes: dict[Any, int], cell: Any) -> int | None:
    token = token_of(cell)
    return None if token is None else codes.setdefault(token, len(codes))


def token_of(cell: Any) -> Any:
    """What makes two keys equal, and what they are called: an int, a float or a text; None for no key. 12, 12.0 and
    '12' are one key: a person split in two would be hidden half as well."""
    text = text_of(cell)
    if text is not None:
        # Only the plain digits of a number, so that different texts always stay different keys.
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) < 40 and str(int(text)) == text
        return int(text) if plain else text
    if cell is None or isinstance(cell, np.ndarray):
        return None
    number = number_of(cell)
    if number is not None:
        return _plain(number)
    # Every NULL of every maker (nan, NaT, NA) differs from itself or refuses to say.
    if cell != cell:
        return None
    if isinstance(cell, complex | np.complexfloating):
        return str(complex(cell) + 0)
    return times.written(cell) or text_of(str(cell))


def _plain(number: Number) -> int | float | str:
    """One value of all equal numbers: whole as int, else float, else text. Whole numbers of 40 digits or more are text,
    as such texts are no numbers to `token_of`; what is too long to write is told by its hash, the same for equals."""
    if isinstance(number, float):
        if not number.is_integer():
            return float(number) if math.isfinite(number) else str(float(number))
        number = int(number)
    if isinstance(number, int) and -_LONG < number < _LONG:
        return number
    if number in (math.inf, -math.inf):
        return str(float(number))
    size: Any = abs(number)
    if size and not _SMALL < size < _LARGE:
        return f"number {hash(number)}"
    exact = Fraction(number)
    if exact.denominator == 1:
        return int(exact) if abs(exact) < _LONG else str(int(exact))
    near = float(exact) if abs(exact) < 10**300 else math.inf
    if near == exact:
        return near
    if (digits := _decimal(exact)) is not None:
        return digits
    return str(exact) if exact.denominator.bit_length() < 4000 else f"number {hash(exact)}"


def _decimal(exact: Fraction) -> str | None:
    """All digits of a number that has finitely many, up to 400, as engines write decimals; None for others."""
    places = max(exact.denominator.bit_length(), 1)
    if places > 400 or 10**places % exact.denominator:
        return None
    sign, digits = "-" * (exact < 0), str(abs(exact.numerator) * (10**places // exact.denominator)).zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}".rstrip("0")


def label_of(cell: Any) -> int | float | str:
    """A label for a cell that numpy holds and that is a key."""
    label: int | float | str = token_of(cell)
    return label
