"""The sum of a clamped column."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .. import grid
from ..record import record
from ..rows import Rows
from .base import Numeric, Sensitivity, Vector
from .gather import average_rows, whole_vector


@record("sum/1")
@dataclass(frozen=True, kw_only=True)
class Sum(Numeric):
    """The sum of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    A unit contributes between min(0, lower) * per_unit and max(0, upper) * per_unit: 0 where it has no value.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        low, high = min(Fraction(0), self.lower), max(Fraction(0), self.upper)
        reach = self.per_unit * (high - low if self.unit.change == "replace" else max(-low, high))
        return Sensitivity(reach, reach**2, reach)

    @property
    def names(self) -> tuple[str]:
        return (f"sum of {self.column}",)

    @property
    def largest(self) -> Fraction:
        return max(abs(self.lower), abs(self.upper))

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series = rows[self.column]
        values = grid.quantise(series.values[series.valid], self.lower, self.upper, exponent)
        averages, _ = average_rows(values, rows, series.valid, self.per_unit)
        return whole_vector([grid.exact_sum(averages)])
