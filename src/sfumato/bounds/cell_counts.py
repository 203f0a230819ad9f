"""Rows per cell, where a row is in at most one of a public list of cells: what every kind of histogram shares."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import grid
from ..grid import Integers
from ..rows import Rows
from .base import Counting, Floats, Sensitivity, Vector
from .gather import group_sums, times_over

MOST_CELLS = 2**24


@dataclass(frozen=True, kw_only=True)
class CellCounts(Counting):
    """A unit's counts are scaled down together where it has more than `per_unit` rows, so their L1 norm is at most
    that, and so is their L2 norm. Exchanged for another unit's:

        |x - x'|_1 <= 2k,   |x - x'|_2^2 <= |x|_2^2 + |x'|_2^2 <= 2k^2 (counts are not negative),   |x - x'|_inf <= k
    """

    @abstractmethod
    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        """The cell of each row, and whether it is in any."""

    @property
    def exclusive(self) -> bool:
        return True

    @property
    def finer(self) -> int:
        """Rows are counted, but shares of them are rounded down unit by unit."""
        return grid.FINER_COUNTS if self.unit.column is None else grid.FINER_VALUES

    @property
    def sensitivity(self) -> Sensitivity:
        k, two = Fraction(self.per_unit), 2 if self.unit.change == "replace" else 1
        return Sensitivity(two * k, two * k * k, k)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        cells = self.size
        cell, valid = self.places(rows)
        if rows.unit.column is None:
            # Rows of no cell are counted in one more, which is left out.
            placed = cell if valid.all() else np.where(valid, cell, cells)
            counts = np.bincount(placed, minlength=cells + 1)[:cells]
            return counts.astype(np.int64, copy=False) << -exponent
        cell, units = cell[valid], rows.units[valid]
        pairs, weight = np.unique(units * np.int64(cells) + cell, return_counts=True)
        owner, where = pairs // cells, pairs % cells
        owned = np.bincount(units, minlength=rows.unit_count)[owner]
        share = weight.astype(np.int64) << -exponent
        scaled = times_over(share, np.minimum(owned, self.per_unit), owned)
        return group_sums(scaled, where, cells)

    def finish(self, noisy: Floats) -> dict[Any, float]:
        return dict(zip(self.names, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> dict[Any, float]:
        return dict.fromkeys(self.names, width)
