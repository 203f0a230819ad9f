"""Rows per category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, schema
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Counting, Floats, Sensitivity, Vector
from .gather import group_sums, recode, times_over


@record("histogram/1")
@dataclass(frozen=True, kw_only=True)
class Histogram(Counting):
    """Rows per category; rows of no listed category do not count.

    A unit's counts are scaled down together where it has more than `per_unit` rows, so their L1 norm is at most that.
    """

    column: str
    categories: tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        object.__setattr__(self, "categories", checks.distinct(self.categories, "categories", least=1))

    @property
    def sensitivity(self) -> Sensitivity:
        k, two = Fraction(self.per_unit), 2 if self.unit.change == "replace" else 1
        return Sensitivity(two * k, two * k * k, k)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.category(self.categories)}

    @property
    def names(self) -> tuple[Any, ...]:
        return self.categories

    def steps(self, rows: Rows, exponent: int) -> Vector:
        cells = len(self.categories)
        cell, valid = recode(rows, self.column, self.categories)
        cell, units = cell[valid], rows.units[valid]
        if rows.unit.column is None:
            return np.bincount(cell, minlength=cells).astype(np.int64) << -exponent
        pairs, weight = np.unique(units * np.int64(cells) + cell, return_counts=True)
        owner, where = pairs // cells, pairs % cells
        owned = np.bincount(units, minlength=rows.unit_count)[owner]
        share = weight.astype(np.int64) << -exponent
        scaled = times_over(share, np.minimum(owned, self.per_unit), owned)
        return group_sums(scaled, where, cells)

    def finish(self, noisy: Floats) -> dict[Any, float]:
        return dict(zip(self.categories, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> dict[Any, float]:
        return dict.fromkeys(self.categories, width)
