"""Rows per signed power of two: how large a column's values are, roughly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .. import checks, schema
from ..grid import Integers
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Counting, Floats, Sensitivity, Vector
from .gather import group_sums, times_over

_EXPONENTS = 300


@record("powers/1")
@dataclass(frozen=True, kw_only=True)
class Powers(Counting):
    """How many rows fall into each bin (2^(e-1), 2^e], e = lowest, ..., highest, the same below zero, and zero itself.
    What is nearer to zero than the smallest bin, or beyond the largest, falls into that bin.

    A unit's counts are scaled down together where it has more than `per_unit` rows, so their L1 norm is at most that:
    with the default it counts once in all.
    """

    column: str
    lowest: int
    highest: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        lowest = checks.whole(self.lowest, "lowest", least=-_EXPONENTS, most=_EXPONENTS)
        highest = checks.whole(self.highest, "highest", least=lowest, most=_EXPONENTS)
        object.__setattr__(self, "lowest", lowest)
        object.__setattr__(self, "highest", highest)

    @property
    def sensitivity(self) -> Sensitivity:
        k, two = Fraction(self.per_unit), 2 if self.unit.change == "replace" else 1
        return Sensitivity(two * k, two * k * k, k)

    @property
    def columns(self) -> Mapping[str, Column]:
        end = Fraction(2) ** self.highest
        return {self.column: schema.real(-end, end)}

    @property
    def each_side(self) -> int:
        """The number of bins above zero, and below."""
        return self.highest - self.lowest + 1

    @property
    def names(self) -> tuple[float, ...]:
        """The end of each bin that is farther from zero, rising."""
        ends = [2.0**e for e in range(self.lowest, self.highest + 1)]
        return (*(-end for end in reversed(ends)), 0.0, *ends)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series, cells = rows[self.column], len(self.names)
        cell, units = self._bins(series.values[series.valid]), rows.units[series.valid]
        if rows.unit.column is None:
            return np.bincount(cell, minlength=cells).astype(np.int64) << -exponent
        pairs, rows_there = np.unique(units * np.int64(cells) + cell, return_counts=True)
        owner, where = pairs // cells, pairs % cells
        owned = np.bincount(units, minlength=rows.unit_count)[owner]
        share = rows_there.astype(np.int64) << -exponent
        return group_sums(times_over(share, np.minimum(owned, self.per_unit), owned), where, cells)

    def _bins(self, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Integers:
        floats = values.astype(np.float64)
        mantissa, power = np.frexp(np.abs(floats))
        power = np.where(mantissa == 0.5, power - 1, power)  # 2^e itself belongs to the bin that ends there
        power = np.where(np.isinf(floats), self.highest, power)
        distance = np.clip(power, self.lowest, self.highest) - self.lowest + 1
        return (self.each_side + np.sign(floats) * distance).astype(np.int64)

    def finish(self, noisy: Floats) -> dict[float, float]:
        return dict(zip(self.names, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> dict[float, float]:
        return dict.fromkeys(self.names, width)
