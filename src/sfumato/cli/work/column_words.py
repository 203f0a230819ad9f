"""Columns as people type them: `cost=real:0:5000`, `ward=category:east,north`, `note=out`, and bounds as `0 5000`."""

from __future__ import annotations

import re
from typing import Any, cast

from ... import schema
from ...errors import ArgumentError
from ..problems import CommandError
from .proposing import BOUNDED, KINDS, ColumnDraft, Kind

_FORM = "cost=real:0:5000, ward=category:east,north, day=date:2026-01-01:2026-12-31, patient=key or note=out"
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def column_given(name: str, words: str) -> ColumnDraft:
    """The column that "real:0:5000" or "category:east,north" says."""
    kind, _, rest = words.strip().partition(":")
    if kind not in KINDS:
        raise _refused(name, words, f"{kind!r} is no kind of column: there are {', '.join(KINDS)}")
    if kind == "category":
        values = listed(rest)
        return checked(ColumnDraft(name, "category", values=values)) if values else ColumnDraft(name, "category")
    if kind in BOUNDED and rest:
        return bounded(ColumnDraft(name, cast(Kind, kind)), rest)
    if rest:
        raise _refused(name, words, f"a {kind} column has neither bounds nor values")
    return ColumnDraft(name, cast(Kind, kind))


def bounded(column: ColumnDraft, text: str) -> ColumnDraft:
    """The column with the bounds that "0 5000", "0:5000", "0..5000" or "0 to 5000" says."""
    two = "write two dates" if column.kind in ("date", "moment") else "write two numbers, such as 0 5000"
    ends = re.split(r"\s+to\s+|\.\.|\s*,\s*|\s+", text.strip())
    if len(ends) != 2:
        ends = text.strip().split(":")
    if len(ends) != 2:
        raise _refused(column.name, text, "bounds are two values, the smaller first", two)
    if column.kind in ("real", "whole") and not all(_NUMBER.fullmatch(end) for end in ends):
        raise _refused(column.name, text, "bounds are two numbers, the smaller first", two)
    return checked(ColumnDraft(column.name, column.kind, ends[0], ends[1], unit=column.unit, why=column.why))


def listed(text: str) -> tuple[str, ...]:
    """The values of "east, north"; each once, in their order."""
    return tuple(dict.fromkeys(value for each in text.split(",") if (value := each.strip())))


def checked(column: ColumnDraft) -> ColumnDraft:
    """The same column, if a schema would take it."""
    make: Any = getattr(schema, column.kind)
    limits = (column.values,) if column.kind == "category" else (column.lower, column.upper)
    number = column.kind in ("real", "whole")
    try:
        make(*(_exact(end) if number else end for end in limits))
    except ArgumentError as error:
        raise _refused(column.name, " to ".join(map(str, limits)), error.cause, error.fix or "") from None
    return column


def _exact(end: Any) -> Any:
    return int(end) if re.fullmatch(r"[-+]?\d+", end) else float(end)


def _refused(name: str, text: str, why: str, fix: str = f"write it like {_FORM}") -> CommandError:
    return CommandError(f"{name}={text} is not understood", why.rstrip("."), fix)
