"""How rows become contributions of units, exactly.

A unit may bring many rows, of which `per_unit` count. Its contribution is that of its average row, times min(rows,
per_unit): no row is thrown away, no order matters, and nothing is random. All arithmetic is on the grid, in whole
steps, with divisions rounded down inside the bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grid import Integers
from ..rows import Rows
from .base import Vector


def whole_vector(values: list[int]) -> Vector:
    """int64 where it is wide enough with room for noise, Python integers otherwise."""
    return np.array(values, dtype=np.int64 if all(abs(v) < 2**61 for v in values) else object)


def recode(rows: Rows, column: str, categories: tuple[Any, ...]) -> tuple[Integers, NDArray[np.bool_]]:
    """Codes among the plan's categories, from codes among the schema's."""
    series, own = rows[column], rows.table.column(column).categories or (False, True)
    if own == categories:
        return series.values, series.valid
    place = {value: index for index, value in enumerate(categories)}
    table = np.array([place.get(value, -1) for value in own], dtype=np.int64)
    codes = table[series.values]
    return np.maximum(codes, 0), series.valid & (codes >= 0)


def average_rows(values: Integers, all_rows: Rows, valid: NDArray[np.bool_], most: int) -> tuple[Integers, Integers]:
    """Each unit's average times min(its rows, most), rounded down, and that number of rows.

    Values have at most 44 bits and a unit below 2^31 rows: sums are kept as high * 2^24 + low so that they fit.
    """
    if all_rows.unit.column is None:
        return values, np.ones(values.size, dtype=np.int64)
    units, count = all_rows.units[valid], all_rows.unit_count
    rows = np.bincount(units, minlength=count).astype(np.int64)
    counted = np.minimum(rows, most)
    high, low = group_sums(values >> 24, units, count), group_sums(values & 0xFFFFFF, units, count)
    high, low = high + (low >> 24), low & 0xFFFFFF
    some = np.maximum(rows, 1)
    average, rest = high // some, high % some
    fine = (rest << 24) + low
    average, rest = (average << 24) + fine // some, fine % some
    return average * counted + rest * counted // some, counted


def times_over(values: Integers, times: Integers, over: Integers) -> Integers:
    """values * times // over, without overflow for times <= over."""
    return values // over * times + values % over * times // over


def group_sums(values: Integers, groups: Integers, count: int) -> Integers:
    """Exact int64 sums by group: sorted, then one pass."""
    sums = np.zeros(count, dtype=np.int64)
    if values.size:
        order = np.argsort(groups, kind="stable")
        ranked = groups[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        sums[ranked[starts]] = np.add.reduceat(values[order], starts)
    return sums
