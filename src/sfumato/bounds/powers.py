"""Rows per signed power of two: how large a column's values are, roughly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..grid import Integers
from ..record import record
from ..rows import Rows
from ..schema import Column
from .cell_counts import CellCounts

_EXPONENTS = 300


@record("powers/1")
@dataclass(frozen=True, kw_only=True)
class Powers(CellCounts):
    """How many rows fall into each bin (2^(e-1), 2^e], e = lowest, ..., highest, the same below zero, and zero itself.
    What is nearer to zero than the smallest bin, or beyond the largest, falls into that bin. With the default a unit
    counts once in all.
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

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        series = rows[self.column]
        return self._bins(series.values), series.valid

    def _bins(self, values: NDArray[Any]) -> Integers:
        floats = values.astype(np.float64)
        mantissa, power = np.frexp(np.abs(floats))
        power = np.where(mantissa == 0.5, power - 1, power)  # 2^e itself belongs to the bin that ends there
        power = np.where(np.isinf(floats), self.highest, power)
        distance = np.clip(power, self.lowest, self.highest) - self.lowest + 1
        return (self.each_side + np.sign(floats) * distance).astype(np.int64)
