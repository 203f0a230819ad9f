"""What a workload asks the engine, in one statement: the exact cells, of which no unit counts for more than its limits.

A unit is limited in all of its rows together, however they are spread: |w x|_1 <= reach, over all cells (bounding.py,
with the norm that it has for Laplace noise). So every table is a table of the same weighted rows, and whatever is
measured of the cells, each unit moves it by a mixture of columns of its matrix that weigh no more than its reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot import exp

from ..bounding import Sums
from ..design import Design
from ..front import Front
from ..integers import Integers, wholes
from ..keys import label
from ..kinds import Kind, Typed
from ..measures import Coordinate
from ..running import Groups, rows_of
from ..statement_texts import filled
from .asked_tables import TableColumn

Columns = tuple[int, ...]
"""The places of some of the columns."""


def sums_of(front: Front, design: Design, number: Coordinate) -> Sums:
    """The statement of one measured number, for cells of all columns."""
    quantum = number.quantum()
    quanta = {} if quantum is None else {"q0": Typed(quantum, Kind("whole"))}
    rows = rows_of(front, design, quanta, Groups((), True))
    in_all = replace(design.blur, kind="laplace")
    return Sums(rows, len(front.keys), (number,), None, in_all, front.units, front.reading.single)


def cell_statement(sums: Sums, sets: Sequence[Columns]) -> exp.Query:
    """The cells of all columns; or those of several sets of columns, marked by the place of the set."""
    if len(sets) == 1:
        return sums.statement
    keys = range(sums.keys)
    marked = ", ".join(f"CASE WHEN t IN ({_places(sets, key)}) THEN k{key} END AS k{key}" for key in keys)
    names = ", ".join(f"k{key}" for key in keys)
    listed = " UNION ALL ".join(f"SELECT {place} AS t" for place in range(len(sets)))
    inner = f"SELECT t, {marked}, s0 FROM _rows CROSS JOIN ({listed}) AS _sets"
    text = f"SELECT t, {names}, exact_sum(s0) AS s0 FROM ({inner}) AS _marked GROUP BY t, {names}"
    return filled(text, sums.statement)


def _places(sets: Sequence[Columns], key: int) -> str:
    """The sets that have a column; none of them is one that is not there."""
    return ", ".join(str(place) for place, some in enumerate(sets) if key in some) or "-1"


def cells_of(table: Any, sets: Sequence[Columns], columns: Sequence[TableColumn]) -> Mapping[Columns, Integers]:
    """The exact cells of each set, as an array with an axis for each of its columns: 0 where there is no row."""
    first = len(sets) > 1
    numbers = wholes(table, len(columns) + first)
    codes = [_codes(table.column(column.place + first), column) for column in columns]
    mark = wholes(table, 0) if first else np.zeros(numbers.size, dtype=np.int64)
    cells_by_set: dict[Columns, Integers] = {}
    for place, some in enumerate(sets):
        shape = tuple(len(columns[key].values) for key in some)
        here = mark == place
        for key in some:
            here &= codes[key] >= 0
        cells = np.zeros(shape, dtype=numbers.dtype)
        at = tuple(codes[key][here] for key in some)
        if some:
            cells[at] = numbers[here]
        else:
            cells = numbers[here].sum(initial=0, keepdims=False) + np.zeros((), dtype=numbers.dtype)
        cells_by_set[some] = cells
    return cells_by_set


def _codes(column: Any, named: TableColumn) -> Integers:
    """The place of each value among the column's; -1 for none of them. Each different value is looked up once."""
    import pyarrow

    encoded = column.combine_chunks().dictionary_encode()
    place = {label(value): at for at, value in enumerate(named.values)}
    places = [place.get(label(value), -1) for value in encoded.dictionary.to_pylist()]
    index = wholes(pyarrow.table({"i": encoded.indices.fill_null(len(places))}), 0)
    return np.asarray(np.array([*places, -1], dtype=np.int64)[index])
