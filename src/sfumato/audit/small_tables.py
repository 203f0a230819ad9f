"""Pairs of small tables for exact verification: a few telling ones, or all there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, islice
from typing import Any

from ..plan import Plan
from . import neighbours
from .stages import table_for

_PAIRS = 400


def few_pairs(plan: Plan[Any, Any]) -> Iterator[neighbours.Pair]:
    """The simple and extreme ones."""
    return islice(neighbours.pairs(plan), _PAIRS)


def all_pairs(plan: Plan[Any, Any], rows: int) -> Iterator[neighbours.Pair]:
    """Every pair of neighbouring tables of up to so many units of one row each, beside the changed one in the order of
    their values. Columns with a list of values have all of them and NULL; others their extremes."""
    table, unit = table_for(plan), plan.unit
    cells = {name: _values(column) for name, column in table.columns.items() if name not in unit.naming}
    kinds: list[neighbours.Person] = [(row,) for row in _rows(cells)]
    group = unit.group
    changes: list[tuple[tuple[neighbours.Person, ...], tuple[neighbours.Person, ...]]]
    for size in range(rows + 1):
        for beside in combinations_with_replacement(kinds, size):
            if unit.change == "add-remove":
                changes = [((), (kind,) * group) for kind in kinds if size + group <= rows]
            elif unit.change == "replace":
                changes = [((a,) * group, (b,) * group) for a, b in combinations(kinds, 2) if size + group <= rows]
            else:
                changes = [((kind,) * group, ()) for kind in kinds if size + group <= rows]
            for before, target in changes:
                after = neighbours.became(before, target, unit)
                others = " and ".join(_told(each) for each in beside) or "nothing"
                gone, come = (", ".join(map(_told, side)) or "nobody" for side in (before, after))
                scene = neighbours.Scene(beside, before, after)
                yield neighbours.pair_of(plan, table, scene, f"{gone} becomes {come}; beside it {others}")


def _told(person: neighbours.Person) -> str:
    return "[" + ", ".join(f"{name}={cell!r}" for name, cell in person[0].items()) + "]"


def _values(column: Any) -> list[Any]:
    return [*column.categories, None] if column.categories else column.of_kind.extremes(column)


def _rows(cells: dict[str, list[Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{}]
    for name, values in cells.items():
        rows = [{**row, name: value} for row in rows for value in values]
    return rows
