"""Numbers as people type them: 0.5, 1e-6, 256/60000. Exact, so that ten times 0.1 is one."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from ..problems import CommandError

_PART = re.compile(r"([0-9]{1,30})/([0-9]{1,30})")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")
_LARGEST = 10**300  # what is above fits into no float


Number = int | float | Fraction
"""Exact all the same: a float stands for the decimal that it prints as, and messages show it as it was typed."""


def exact(text: str, option: str) -> Number:
    """The number that was typed after an option."""
    typed = text.strip()
    if (part := _PART.fullmatch(typed)) and int(part[2]):
        return _plain(Fraction(int(part[1]), int(part[2])))
    if _DECIMAL.fullmatch(typed):
        number = Fraction(Decimal(typed))
        if abs(number) > _LARGEST:
            raise CommandError(f"{option} is too large", f"{text[:60]!r} was given", "give a smaller number")
        return _plain(number)
    raise CommandError(
        f"{option} is no number", f"{text[:60]!r} was given", "write it like 0.5, 1e-6, or as a part: 256/60000"
    )


def _plain(number: Fraction) -> Number:
    if number.denominator == 1:
        return number.numerator
    near = float(number)
    return near if Fraction(repr(near)) == number else number


def exact_or_none(text: str | None, option: str) -> Number | None:
    return None if text is None else exact(text, option)


def rates(text: str, option: str) -> tuple[float, ...]:
    """Several of them, with commas between."""
    return tuple(float(exact(each, option)) for each in text.split(","))
