"""The variance of a clamped column, or its root."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .. import checks, exact
from ..record import record
from ..rows import Rows
from .base import Floats, Numeric, Sensitivity, Vector
from .gather import whole_vector
from .moments import BITS, centred, line_sums, one_step_more, products, share, to_steps, weights, wide_enough


@record("variance/1")
@dataclass(frozen=True, kw_only=True)
class Variance(Numeric):
    """The variance of a column's values (over their number), each clamped to [lower, upper]; NULLs count as absent.

    With h half the interval's width and y = (x - middle)/h, a row brings r(y) = (1, y, 2y^2 - 1): each coordinate lies
    in [-1, 1] and deserves about the same noise. A unit brings at most `per_unit` = k times the average of its rows,
    a point of k conv({0} and all r(y)). Norms are convex, so they and their differences are largest at the corners:
        add-remove, zero-out   |r(y)| at y = 1:  L1 3k,  L2^2 3 k^2,  Linf k
        replace                max over y, z of |r(y) - r(z)| (it is above |r(y)|): L1 25k/8, Linf 2k, and
                               L2^2 k^2 (71/16 + 1/sqrt 2)
    (replace: |y - z| and |2y^2 - 2z^2| = 2 |y - z| |y + z| grow as the larger of |y|, |z| goes to 1, so let y = 1.
    L1: (1 - z) + 2 (1 - z^2) is largest at z = -1/4. L2^2: (1 - z)^2 (1 + 4 (1 + z)^2) is largest where
    8z^2 + 8z + 1 = 0, at z = (1/sqrt 2 - 1)/2.)
    """

    root: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        wide_enough(self.lower, self.upper)
        checks.instance(self.root, bool, "root", "True for the standard deviation, False for the variance")

    @property
    def sensitivity(self) -> Sensitivity:
        k = Fraction(self.per_unit)
        if self.unit.change == "replace":
            half_root = Fraction(exact.sqrt_above(Fraction(1, 2)))
            return Sensitivity(Fraction(25, 8) * k, (Fraction(71, 16) + half_root) * k * k, 2 * k)
        return Sensitivity(3 * k, 3 * k * k, k)

    def in_steps(self, exponent: int) -> Sensitivity:
        return one_step_more(super().in_steps(exponent), 3)

    @property
    def combined(self) -> int:
        return 3

    @property
    def names(self) -> tuple[str, str, str]:
        half = f"half-widths of {self.column} from the middle"
        return ("count", f"sum of {half}", f"squares of {half}")

    @property
    def largest(self) -> Fraction:
        return Fraction(1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series = rows[self.column]
        y = centred(series.values[series.valid], self.lower, self.upper)[None]
        weight, bits = weights(rows, series.valid, self.per_unit)
        heavy = weight * y if bits else y
        count, (total,) = int(weight.sum()), line_sums(heavy)
        squares = 2 * int(products(heavy, y)[0, 0]) - (count << 2 * BITS)
        parts = ((count, bits), (total, bits + BITS), (squares, bits + 2 * BITS))
        return whole_vector([to_steps(value, fine, exponent) for value, fine in parts])

    @property
    def _most(self) -> float:
        """The largest variance that clamped values can have: half at each end."""
        return float(((self.upper - self.lower) / 2) ** 2)

    def _variance(self, noisy: Floats, width: float) -> tuple[float, float]:
        """The variance (1 + t)/2 - m^2 in squared half-widths, in [0, 1], and how far it may be off."""
        count, total, squares = map(float, noisy)
        m, off = share(total, count, width, width)
        t, t_off = share(squares, count, width, width)
        return min(max((1 + t) / 2 - m * m, 0.0), 1.0), min(t_off / 2 + off * min(2 * abs(m) + off, 1 + abs(m)), 1.0)

    def finish(self, noisy: Floats) -> float:
        value = self._most * self._variance(noisy, 0.0)[0]
        return math.sqrt(value) if self.root else value

    def error(self, noisy: Floats, width: float) -> float:
        value, off = self._variance(noisy, width)
        if not self.root:
            return self._most * off
        low, high = np.sqrt(max(value - off, 0.0)), np.sqrt(min(value + off, 1.0))
        return math.sqrt(self._most) * float(max(math.sqrt(value) - low, high - math.sqrt(value)))
