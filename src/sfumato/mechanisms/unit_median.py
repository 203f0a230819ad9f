"""What the medians that look at the data's own sensitivity share: one value per unit, on a public grid."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from .. import checks, grid, questions, schema
from ..bounds.gather import average_rows
from ..checks import Exact
from ..errors import ArgumentError
from ..grid import Integers
from ..plan import Plan
from ..questions import CLIP, PRICE
from ..rows import Rows
from ..schema import Column
from ..units import Unit, rows_or_users
from .local_sensitivity import Around, around_median

R = TypeVar("R")

_FEWEST = 256  # steps in the interval


@dataclass(frozen=True, kw_only=True)
class UnitMedian(Plan[Rows, R], Generic[R]):
    """The median over the units of a column clamped to [lower, upper].

    A unit counts with one value, its average; without any value it counts as `lower`. Then replacing a unit replaces
    one of n numbers, and n is public.
    """

    column: str
    lower: Exact = field(metadata=CLIP)
    upper: Exact = field(metadata=CLIP)
    epsilon: Exact = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)

    family = "quantile"

    def _question(self) -> dict[str, Any]:
        """As a quantile asks for it."""
        return super()._question() | {"q": [questions.number(Fraction(1, 2))]}

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        low, high = checks.interval(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        rows_or_users(self.protects, "protects")
        if self.protects.change != "replace":
            raise ArgumentError(
                "protects is not allowed: this median counts how many changes away another answer lies, for a public "
                "number of units; give Unit(..., change='replace'), or take a median by the exponential mechanism."
            )
        if self.protects.group != 1:
            raise ArgumentError(
                "protects is not allowed: the proof is about one changed unit; give group=1, and for groups of g an "
                "epsilon g times smaller."
            )

    def _check_grid(self) -> None:
        """Refuse what the grid cannot tell apart; at birth, as after the charge it would be too late."""
        low, high = self._ends
        if self.exponent < self._finest or high - low < _FEWEST:
            raise ArgumentError(
                "the grid would be finer than 2^-43 of the largest bound: give bounds nearer to 0 (shift the column), "
                "or nearer to each other."
            )

    @property
    def _finest(self) -> int:
        return grid.finest(max(abs(self.lower), abs(self.upper)))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def needs_whole(self) -> bool:
        return True  # how many units there are is public; how many a part has is not

    @property
    def columns(self) -> dict[str, Column]:
        return {self.column: schema.real(self.lower, self.upper)}

    @property
    @abstractmethod
    def exponent(self) -> int:
        """The grid step is 2^exponent."""

    @cached_property
    def _ends(self) -> tuple[int, int]:
        return grid.ends(self.lower, self.upper, self.exponent)

    def _around(self, rows: Rows) -> Around:
        return around_median(self._values(rows), *self._ends)

    def _values(self, rows: Rows) -> Integers:
        """One number per unit, in steps."""
        series, low = rows[self.column], self._ends[0]
        quantised = grid.quantise(series.values[series.valid], self.lower, self.upper, self.exponent)
        if rows.unit.column is None:
            values = np.full(len(rows), low, dtype=np.int64)
            values[series.valid] = quantised
            return values
        average, counted = average_rows(quantised, rows, series.valid, 1)
        return np.where(counted > 0, average, low)

    def _real(self, steps: int) -> float:
        """Back to real numbers, inside the bounds."""
        return min(max(float(steps) * 2.0**self.exponent, float(self.lower)), float(self.upper))
