"""How people write cells into files: blanks around them, decimal commas, signs between thousands, dates of any form.

`reading` knows one way to write a number (1234.5) and one to write a date (2026-01-31). What is here turns another way
into that one, text into text, before a cell is read. Each expression is total, and a function of the one cell: no cell
decides how another is written, and nothing is guessed. What is not written as was said becomes NULL, never a number
that somebody may have meant: with points between thousands, 1.5 is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import checks
from ..schema import Column, Named
from .base import literal

BLANKS = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
PYTHON_BLANKS = " \t\n\v\f\r"
DECIMALS = (".", ",")
_THOUSANDS = "one character that stands between thousands, such as ',' or ' ', or '' for none"
_WIDE = "[ \\x{a0}\\x{202f}]"  # blanks that do not break look like others, and French writers use them
_DIGITS = {"d": "{1,2}", "m": "{1,2}", "Y": "{4}", "y": "{2}", "H": "{1,2}", "I": "{1,2}", "M": "{1,2}", "S": "{1,2}",
           "f": "{1,6}"}  # fmt: skip
_WORDS = {"b": "[A-Za-z]{3}", "B": "[A-Za-z]{3,9}", "p": "[AaPp][Mm]"}
_FORM = "a date as it is written, in the signs of strptime, such as '%d.%m.%Y' or '%m/%d/%y %H:%M'"
_FIRST = "TIMESTAMP '0001-01-01'"

Dates = tuple[str, ...] | Mapping[str, tuple[str, ...]]
"""Forms of dates: of the whole file, or by column."""


def check_signs(decimal: object, thousands: object) -> None:
    """Refuse signs that a number could not be told apart by."""
    checks.one_of(decimal, "decimal", DECIMALS)
    if thousands == "":
        return
    if not isinstance(thousands, str) or len(thousands) != 1 or thousands.isalnum() or thousands in '+-\r\n\0\t"\\':
        raise checks.refuse("thousands", thousands, _THOUSANDS)
    if thousands == decimal:
        raise checks.refuse("thousands", thousands, f"another sign than the decimal one, {decimal!r}")


def forms_of(given: Any) -> Dates:
    """The forms of a file's dates, or those of its columns by name; refuses what no date could be read by."""
    if isinstance(given, Mapping):
        return Named({checks.label(name, "dates"): _forms(each) for name, each in given.items()})
    return _forms(given)


def _forms(given: Any) -> tuple[str, ...]:
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Sequence):
        raise checks.refuse("dates", given, _FORM)
    for each in listed:
        if not isinstance(each, str) or not each.isascii() or not each.isprintable() or len(each) > 60:
            raise checks.refuse("dates", each, _FORM)
        signs = re.findall(r"%(.?)", each)
        if unknown := [sign for sign in signs if sign not in _DIGITS and sign not in _WORDS]:
            known = ", ".join(f"%{sign}" for sign in (*_DIGITS, *_WORDS))
            raise checks.refuse("dates", f"{each} with %{unknown[0]}", f"a form of these signs: {known}")
        if len(set(signs)) < len(signs) or not {"Y", "y"} & set(signs):
            raise checks.refuse("dates", each, f"{_FORM}: each sign once, and a year among them")
    return tuple(listed)


def forms_for(dates: Dates, column: str) -> tuple[str, ...]:
    """The forms that count for one column."""
    return dates.get(column, ()) if isinstance(dates, Mapping) else dates


def trimmed(text: str) -> str:
    """The text without blanks around it."""
    return f"trim({text}, {BLANKS})"


def there(raw: str, physical: str) -> str:
    """Is there a cell at all? Empty ones, blank ones and NULLs are none, and neither is nan in a column of numbers."""
    kind = physical.upper()
    if kind in ("DOUBLE", "FLOAT"):
        number = f"CAST({raw} AS DOUBLE)"
        return f"({raw} IS NOT NULL AND (isfinite({number}) OR isinf({number})))"
    if kind == "BLOB":
        return f"({raw} IS NOT NULL AND octet_length({raw}) > 0)"
    return f"({raw} IS NOT NULL AND {trimmed(raw)} <> '')" if kind == "VARCHAR" else f"({raw} IS NOT NULL)"


def plain_text(column: Column, text: str, *, decimal: str, thousands: str, dates: tuple[str, ...]) -> str:
    """The text of a cell of this column in the one way that `reading` knows; NULL where it is not written as said."""
    if column.of_kind.is_time:
        return _plain_date(text, dates) if dates else text
    numbers = column.of_kind.is_number or (bool(column.categories) and type(column.categories[0]) is int)
    return _plain_number(text, decimal, thousands) if numbers and (decimal != "." or thousands) else text


def _plain_number(text: str, decimal: str, thousands: str) -> str:
    """Signs between thousands count where they part groups of three digits, and nowhere else."""
    bare = trimmed(text)
    misplaced = [] if decimal == "." else [f"contains({bare}, '.')"]
    grouped = ""
    if thousands:
        between = literal(_WIDE if thousands == " " else f"[{re.escape(thousands)}]")
        misplaced.append(f"regexp_matches({bare}, {between})")
        digits = f"[+-]?[0-9]{{1,3}}({between[1:-1]}[0-9]{{3}})+([{decimal}][0-9]*)?([eE][+-]?[0-9]+)?"
        joined = _pointed(f"regexp_replace({bare}, {between}, '', 'g')", decimal)
        grouped = f"WHEN regexp_full_match({bare}, '{digits}') THEN {joined} "
    return f"CASE {grouped}WHEN {' OR '.join(misplaced)} THEN NULL ELSE {_pointed(bare, decimal)} END"


def _pointed(number: str, decimal: str) -> str:
    return number if decimal == "." else f"replace({number}, {literal(decimal)}, '.')"


def _plain_date(text: str, forms: tuple[str, ...]) -> str:
    """By the first form that the cell is a date in. The engine's own reader takes words such as epoch, years of two
    digits for four, and what follows a date, so the signs are compared first."""
    bare = trimmed(text)
    tries = (
        f"CASE WHEN regexp_full_match({bare}, {literal(_pattern(form))}) THEN try_strptime({bare}, {literal(form)}) END"
        for form in forms
    )
    moment = f"COALESCE({', '.join(tries)})"
    return f"CASE WHEN {moment} >= {_FIRST} THEN CAST({moment} AS VARCHAR) END"


def _pattern(form: str) -> str:
    """The signs that a cell of this form may hold."""
    parts = re.split(r"%(.)", form)
    return "".join(
        (f"[0-9]{_DIGITS[part]}" if part in _DIGITS else _WORDS[part]) if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    )
