"""How the cells of a CSV file are written, as people say it: by an example of a number and of a day.

Nothing here reads the file. What the delimiter, or blanks in the line of names, suggest is asked or told, never taken
for granted where it could turn one number into another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from ...sources import Csv
from ..problems import CommandError

_NUMBER = re.compile(r"1(?P<thousands>\D?)234(?P<decimal>\D)50?")
_DAY = (("2026", "%Y"), ("December", "%B"), ("Dec", "%b"), ("31", "%d"), ("12", "%m"), ("26", "%y"), ("23", "%H"),
        ("11", "%I"), ("59", "%M"), ("58", "%S"), ("PM", "%p"))  # fmt: skip
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
_SEMICOLONS = (
    "if its numbers have decimal commas, give --decimal , and if its days are written like 31.12.2026, --dates "
    "31.12.2026: what is not written as was said counts as missing"
)
_ENCODING = (
    "it is read as UTF-8, and rows that are not are left out: if an old spreadsheet wrote it, give --encoding latin-1"
)


def number_given(text: str) -> dict[str, str]:
    """1.234,5: what its signs say of all numbers."""
    signs = _NUMBER.fullmatch(text.strip())
    if signs is None:
        raise CommandError("no number", f"{text[:40]!r} is not 1234.5 in another form", "write it like 1.234,5")
    conventions = {name: sign for name, sign in signs.groupdict().items() if sign != {"decimal": "."}.get(name, "")}
    return checked(conventions)


def day_given(text: str) -> dict[str, str]:
    """31.12.2026, or the same in the signs of strptime; ISO 8601 needs no word."""
    form = text.strip()
    if "%" not in form:
        for example, sign in _DAY:
            form = form.replace(example, sign)
    return {} if form in _ISO else checked({"dates": form})


def checked(written: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what no source takes."""
    try:
        Csv("cells.csv", **written)
    except ArgumentError as error:
        raise CommandError("cells cannot be written so", error.cause, error.fix or "") from None
    return dict(written)


def suggestion(delimiter: str, written: Mapping[str, Any], *, unsaid: bool = False) -> tuple[str, ...]:
    """What to tell somebody who is not asked; unsaid: nobody has said the encoding, nor does the first line."""
    notes = ["blanks around cells are left away (trim: true); --no-trim keeps them"] if written.get("trim") else []
    if delimiter == ";":
        notes += [] if {"decimal", "dates"} & set(written) else [_SEMICOLONS]
        notes += [_ENCODING] if unsaid else []
    return tuple(notes)
