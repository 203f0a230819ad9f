"""Neighbouring tables for a pipeline, from a table's public description and the unit: sizes, and extremes.

A plan says itself which queries it holds; a pipeline does not. So it is tried where glue usually gives way: tables of
every small size and around round numbers (a size that is read, divided by or cut off shows there), and one unit with
extreme cells or too many rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import checks
from ...accounting.filters import Budget
from ...combine import reserve
from ...errors import ArgumentError
from ...schema import Table
from ...units import Codes, Unit
from ..neighbours import Columns, Person, Scene, blank, ordinary, scenes
from .column_forms import in_numpy
from .holding import odd_row

SIZES = (*range(16), 19, 24, 31, 49, 63, 99, 127, 255)
"""Units beside the one that changes: after each of these comes a number at which something may be rounded or full."""

_REMOVED = 8  # units of given rows that are left out, one after the other


@dataclass(frozen=True)
class Case:
    """Two neighbouring tables, as columns. Cases with the same `base` begin from the same table."""

    base: str
    before: Any
    after: Any
    words: str


def cases_of(table: Table, unit: Unit, *, awkward: bool = True) -> Iterator[Case]:
    """Pairs for a table and a unit. Not `awkward`: cells are what the schema says they are."""
    people = _ordinary_people(table, unit, max(SIZES) + 2)
    for size in SIZES:
        if table.rows is not None and size >= table.rows:  # how many there are at most is public
            break
        scene = _changed(unit, people[: size + 2])
        if scene.fits(table, unit):
            before, after = scene.columns(table, unit)
            yield Case(f"{size} units", before, after, f"an ordinary unit {_WORDS[unit.change]}; beside it {size}")
    stand_in = reserve(unit=unit, budget=Budget(epsilon=1))
    allowed = {name: [] if awkward else _allowed(table, name) for name in table.columns}
    for words, scene in scenes(stand_in, table):
        if awkward or _clean((*scene.others, *scene.before, *scene.after), allowed, unit.change == "zero-out"):
            before, after = scene.columns(table, unit)
            yield Case(repr((scene.others, scene.before)), before, after, words)


def odd_cases(table: Table, unit: Unit) -> Iterator[Case]:
    """Pairs in which the one that changes holds what frames and files hold by mistake: see holding.py."""
    people = _ordinary_people(table, unit, 5)
    for words, one in (
        ("cells that are no text, no moment and no number", odd_row(table, unit.column)),
        ("NULLs", dict.fromkeys(name for name in table.columns if name != unit.column)),
    ):
        scene = _changed(unit, [*people[:3], (one,), people[4]])
        if scene.fits(table, unit):
            before, after = scene.columns(table, unit)
            base = "3 units" if unit.change == "add-remove" else f"3 units and {words}"
            yield Case(base, before, after, f"a unit of {words} {_WORDS[unit.change]}; beside it 3")


def cases_from(data: Any, unit: Unit) -> Iterator[Case]:
    """Pairs from given rows: small beginnings of them, and the whole with one unit changed."""
    columns = columns_given(data)
    owners = _owners(columns, unit)
    names = list(dict.fromkeys(owner for owner in owners.flat if owner >= 0))
    for size in (size for size in SIZES if size < len(names)):
        yield _without(columns, owners, names[: size + 1], names[size], unit, f"the first {size} units")
    for one in names[:_REMOVED]:
        yield _without(columns, owners, names, one, unit, "all units")


_WORDS = {"add-remove": "added", "replace": "replaced by another", "zero-out": "zeroed out"}


def _without(columns: Columns, owners: Codes, units: list[Any], one: Any, unit: Unit, base: str) -> Case:
    """The rows of these units and of nobody else, and the same with one unit changed."""
    here = np.flatnonzero(np.isin(owners, [*units, -1]).all(axis=1)).tolist()
    theirs = set(np.flatnonzero((owners == one).any(axis=1)).tolist())
    fixed = unit.naming if unit.naming == unit.columns else [name for name in columns if name not in unit.columns]
    before = {name: [cells[place] for place in here] for name, cells in columns.items()}
    words = f"a unit {_WORDS[unit.change]}; beside it the rest of {base}"
    if unit.change == "add-remove":
        there = [place for place in here if place not in theirs]
        return Case(base, before, {name: [cells[place] for place in there] for name, cells in columns.items()}, words)
    after = {name: list(cells) for name, cells in before.items()}
    others = [place for place in here if place not in theirs]
    for row, place in enumerate(here):
        if place in theirs:
            for name, cells in after.items():
                if name in fixed:
                    continue
                other = columns[name][others[row % len(others)]] if others else None
                cells[row] = other if unit.change == "replace" else None
    return Case(base, before, after, words)


def _owners(columns: Columns, unit: Unit) -> Codes:
    for column in unit.columns:
        if column not in columns:
            raise ArgumentError(f"data has no column {column!r}, which names the unit.")
    return unit.owners(columns)


def columns_given(data: Any) -> Columns:
    """Rows of any kind as lists by column."""
    if not isinstance(data, Mapping) and not hasattr(data, "columns"):
        raise checks.refuse("data", type(data).__name__, "columns by name, or a frame; other tables as pairs=[(a, b)]")
    names = list(data) if isinstance(data, Mapping) else [str(name) for name in data.columns]
    try:
        columns = {name: list(data[name]) for name in names}
    except TypeError:  # a cell where a column is asked for
        raise checks.refuse("data", type(data).__name__, "columns by name, each a list of cells") from None
    if not columns or len({len(cells) for cells in columns.values()}) > 1:
        raise ArgumentError("data is not allowed: give at least one column, all of the same length.")
    return columns


def _ordinary_people(table: Table, unit: Unit, count: int) -> list[Person]:
    """Units of one clean row each."""
    columns = ordinary(table, count)
    names = [name for name in table.columns if name not in unit.naming]
    return [({name: _cell(columns[name], place) for name in names},) for place in range(count)]


def _cell(cells: Any, place: int) -> Any:
    cell = cells[place]
    return cell.tolist() if isinstance(cell, np.ndarray | np.generic) else cell


def _changed(unit: Unit, people: Sequence[Person]) -> Scene:
    *others, one, other = people
    group = unit.group
    if unit.change == "add-remove":
        return Scene(tuple(others), (), (one,) * group, place=len(others))
    to = other if unit.change == "replace" else blank(one, unit)
    return Scene(tuple(others), (one,) * group, (to,) * group)


def _allowed(table: Table, name: str) -> list[Any]:
    """The extremes of a column that lie within its description."""
    column = table.column(name)
    return column.of_kind.allowed(column)


def _clean(people: Iterable[Person], allowed: Mapping[str, list[Any]], blanks: bool) -> bool:
    """Is every cell within the schema? A zeroed-out unit is blank in any case."""
    cells = ((name, cell) for person in people for row in person for name, cell in row.items())
    return all(cell in allowed[name] or (blanks and cell is None) for name, cell in cells)


def typed(table: Table, columns: Columns, *, awkward: bool) -> dict[str, Any]:
    """Columns as a program would hold them: numbers, with nan for NULL, and objects. A fresh copy each time."""
    return {name: in_numpy(table.column(name), cells, awkward=awkward) for name, cells in columns.items()}


def like(data: Any, columns: Columns) -> dict[str, Any]:
    """Columns of the kinds that the given rows have. A fresh copy each time."""
    copied = {}
    for name, cells in columns.items():
        kind = np.asarray(data[name]).dtype
        try:
            copied[name] = np.array(cells, dtype=kind)
        except (TypeError, ValueError):  # a cell that is blank now
            copied[name] = _objects(copy.deepcopy(cells))
    return copied


def _objects(cells: list[Any]) -> Any:
    objects = np.empty(len(cells), dtype=object)
    objects[:] = cells
    return objects
