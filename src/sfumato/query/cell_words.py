"""Words about cells that cannot be read: the line in an answer, and what a check of them found.

A cell that is there and is not what the schema says (a word among numbers, a category that is not listed, a date of
another form) counts as missing. It is private to leave that silent, and only a paid count may tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..schema import Column, Table
from ..sources import Csv, Source
from ..sources.reading import flag_of
from ..units import Unit
from .expressions.functions.cells import asked
from .parsing import read_only

if TYPE_CHECKING:
    from .plan import Sql
    from .released.answer import Answer

_FALSE_ALARM = 0.001  # at most, for all columns of a check together
_NOTE = "cells that cannot be read count as missing: `sfumato describe --check` tells about how many, for a small price"
HELP = (
    "where many cells cannot be read, correct the column, or how its file is read (trim, decimal, thousands, dates, "
    "null and encoding of its source), and name the version of the data anew"
)


def checkable(table: Table, unit: Unit) -> list[str]:
    """The columns that can hold cells which cannot be read. Keys are read whatever they hold, and a row whose unit
    cannot be read is nobody's, and left out."""
    own = table.unit or unit.column
    return [
        name for name in table.columns if flag_of(table, name) is not None and name != own and not name.startswith("_")
    ]


def all_rows(names: list[str]) -> str:
    """What the number of rows is called beside these columns."""
    name, taken = "rows", {each.lower() for each in names}  # names of SQL differ by more than case
    while name in taken:
        name = f"all {name}"
    return name


def note(plan: Sql) -> list[str]:
    """What an answer says of such cells: a line where the query reads a column that may hold some, else none."""
    tree = read_only(plan.text)
    if asked(tree):
        return [HELP]
    private = [table for table in plan.schema.tables.values() if table.private]
    odd = {name.lower() for table in private for name in checkable(table, plan.unit)}
    return [_NOTE] if any(each.name.lower() in odd for each in tree.find_all(exp.Column)) else []


@dataclass(frozen=True)
class Finding:
    """What a check says of one column.

    cells  about how many cannot be read, with the half-width `error` of its error bar
    share  the same as a part of all rows that count, with the ends of an interval at the same confidence
    seen   are there such cells? False where noise may be all there is, with all columns taken together
    hints  what may help, where there are
    """

    column: str
    cells: float
    error: float
    share: float
    low: float
    high: float
    seen: bool
    hints: tuple[str, ...]


def findings(table: Table, unit: Unit, source: Source, answer: Answer, alpha: float = 0.05) -> list[Finding]:
    """The columns of a check, one by one, from the released answer alone."""
    names = checkable(table, unit)
    rows, *counts = answer.columns  # in the order of the names, which SQL writes in its own case
    total, spread = float(answer[rows][0]), float(answer.noise_width(rows, alpha / 2)[0])
    found = []
    for name, count in zip(names, counts, strict=True):
        cells, error = float(answer[count][0]), float(answer.noise_width(count, alpha)[0])
        wide = float(answer.noise_width(count, alpha / 2)[0])  # both bars hold at once, so the ratio does
        ends = _part(cells - wide, total + spread), _part(cells, total), _part(cells + wide, total - spread)
        seen = cells > float(answer.noise_width(count, _FALSE_ALARM / len(names))[0])
        helps = tuple(hints(table.columns[name], name, source)) if seen else ()
        found.append(Finding(name, cells, error, ends[1], ends[0], ends[2], seen, helps))
    return found


def _part(cells: float, rows: float) -> float:
    return min(max(cells / rows, 0.0), 1.0) if rows > 0 else 1.0


def left_out(source: Source) -> list[str]:
    """What no count of cells can tell: rows that are no text are in none of the numbers."""
    if not isinstance(source, Csv) or source.encoding != "utf-8":
        return []
    return [
        "rows that are not UTF-8 are left out of all numbers: if fewer rows count than should, try encoding: latin-1"
    ]


def hints(column: Column, name: str, source: Source) -> Iterator[str]:
    """What may help a column whose cells cannot be read; nothing that is said already."""
    kind = column.of_kind
    if kind.has_categories:
        if isinstance(source, Csv) and not source.trim:
            yield "trim: true, if blanks stand around the cells"
        yield "more of its values"
    elif kind.is_number:
        if isinstance(source, Csv) and (source.decimal, source.thousands) == (".", ""):
            yield 'decimal: "," and thousands: ".", if numbers are written like 1.234,5'
        yield "another kind of column, if its cells are no numbers"
    elif kind.is_time:
        forms: Any = () if not isinstance(source, Csv) else source.dates
        if isinstance(source, Csv) and not (forms.get(name) if isinstance(forms, Mapping) else forms):
            yield 'dates: "%d.%m.%Y", if they are written like 31.12.2026'
        else:
            yield "another form of dates"
    else:
        yield "a category, if its cells are other words than yes and no"
    if isinstance(source, Csv) and not source.null:
        yield 'null: "NA", or whatever stands where a cell is missing'
