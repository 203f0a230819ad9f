"""The mean of a clamped column: a sum and a count that deserve the same noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .. import grid
from ..record import record
from ..rows import Rows
from .base import Floats, Numeric, Sensitivity, Vector
from .gather import average_rows, whole_vector


@record("mean/1")
@dataclass(frozen=True, kw_only=True)
class Mean(Numeric):
    """The mean of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    Two coordinates: the sum of the values measured from the middle of the interval, and the count in units of half the
    interval's width h, so that both deserve the same noise. With c <= k counted rows a unit brings (s, h c) with
    |s| <= h c:
        add-remove, zero-out   L1 2kh,  L2^2 2 k^2 h^2,  Linf kh
        replace                L1 2kh,  L2^2 4 k^2 h^2,  Linf 2kh
    (replace: |s - s'| + h|c - c'| <= h(c + c') + h|c - c'| = 2h max(c, c'), and (s - s')^2 + h^2 (c - c')^2 <=
    2 h^2 (c^2 + c'^2)).
    """

    def _centre(self, exponent: int) -> tuple[int, int]:
        """The middle and half the width, in steps; half is rounded down, so that no value exceeds it."""
        low, high = grid.ends(self.lower, self.upper, exponent)
        return (low + high) // 2, grid.ends(-self._half, self._half, exponent)[1]

    @property
    def _half(self) -> Fraction:
        return (self.upper - self.lower) / 2

    @property
    def _middle(self) -> Fraction:
        return (self.upper + self.lower) / 2

    @property
    def sensitivity(self) -> Sensitivity:
        reach = self.per_unit * self._half
        two = 2 if self.unit.change == "replace" else 1
        return Sensitivity(2 * reach, 2 * two * reach**2, two * reach)

    @property
    def combined(self) -> int:
        return 2

    @property
    def names(self) -> tuple[str, str]:
        return (f"sum of {self.column} from the middle", "count")

    @property
    def largest(self) -> Fraction:
        return max(abs(self.lower), abs(self.upper))

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series = rows[self.column]
        middle, half = self._centre(exponent)
        values = grid.quantise(series.values[series.valid], self.lower, self.upper, exponent)
        centred = np.clip(values - middle, -half, half)
        averages, counted = average_rows(centred, rows, series.valid, self.per_unit)
        return whole_vector([grid.exact_sum(averages), grid.exact_sum(counted) * half])

    def finish(self, noisy: Floats) -> float:
        total, weighted = map(float, noisy)
        if weighted <= 0:
            return float(self._middle)
        mean = float(self._middle) + float(self._half) * total / weighted
        return min(max(mean, float(self.lower)), float(self.upper))

    def error(self, noisy: Floats, width: float) -> float:
        """|S/N - (S - e)/(N - f)| <= (|e| + |S/N| |f|) / (N - |f|); nothing is known where noise hides the count."""
        total, weighted = map(float, noisy)
        whole = float(self.upper - self.lower)
        if weighted <= width:
            return whole
        return min(whole, float(self._half) * (width + abs(total / weighted) * width) / (weighted - width))
