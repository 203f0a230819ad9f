"""The ratio of two clamped sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, grid, schema
from ..questions import COARSE
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Floats, PerUnit, Sensitivity, Vector
from .gather import average_rows, whole_vector


@record("ratio/1")
@dataclass(frozen=True, kw_only=True)
class Ratio(PerUnit):
    """The sum of one column over the sum of another (cost per visit), each value clamped to its own bounds.

    Only rows with a value in both columns count, so both sums are over the same rows. The denominator is never
    negative. Each sum is measured in its largest size, so a row brings a point of a box B inside [-1, 1]^2, and both
    coordinates deserve the same noise. A unit brings a point of per_unit * conv({0} and B), whose corners are 0 and
    those of B:
        add-remove, zero-out   each corner is 1 away from 0 in each coordinate at most: L1 2k, L2^2 2k^2, Linf k
        replace                between corners: the sides s, t of B, or a corner and 0: L1 k max(s + t, 2),
                               L2^2 k^2 max(s^2 + t^2, 2), Linf k max(s, t, 1)

    A noisy denominator that is less than one row may bring is read as that, so a ratio is always finite.
    """

    numerator: tuple[Any, ...] = field(metadata=COARSE)
    denominator: tuple[Any, ...] = field(metadata=COARSE)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("numerator", "denominator"):
            limits = getattr(self, name)
            if not isinstance(limits, tuple | list) or len(limits) != 3:
                raise checks.refuse(name, limits, "a column and its bounds, such as ('cost', 0, 1000)")
            column = checks.label(limits[0], f"{name}: column")
            ends = checks.interval(limits[1], limits[2], f"{name}: lower", f"{name}: upper")
            object.__setattr__(self, name, (column, *ends))
        if self.denominator[1] < 0:
            raise checks.refuse(
                "denominator: lower", self.denominator[1], "0 or more, so that the denominator cannot cancel out"
            )
        if self.numerator[0] == self.denominator[0]:
            raise checks.refuse("denominator: column", self.denominator[0], "another column than the numerator's")

    @property
    def _sides(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Both intervals, in the largest size of their values."""
        return tuple((low / _size(low, high), high / _size(low, high)) for low, high in self._ends)

    @property
    def _ends(self) -> tuple[tuple[Fraction, Fraction], ...]:
        return self.numerator[1:], self.denominator[1:]

    @property
    def sensitivity(self) -> Sensitivity:
        k, one = Fraction(self.per_unit), Fraction(1)
        if self.unit.change == "replace":
            s, t = (high - low for low, high in self._sides)
            return Sensitivity(k * max(s + t, 2 * one), k * k * max(s * s + t * t, 2 * one), k * max(s, t, one))
        return Sensitivity(2 * k, 2 * k * k, k)

    @property
    def combined(self) -> int:
        return 2

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: schema.real(low, high) for name, low, high in (self.numerator, self.denominator)}

    @property
    def names(self) -> tuple[str, str]:
        top, bottom = (
            f"sum of {name}, in {float(_size(*ends)):g}" for name, *ends in (self.numerator, self.denominator)
        )
        return top, bottom

    @property
    def largest(self) -> Fraction:
        return Fraction(1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        valid = rows[self.numerator[0]].valid & rows[self.denominator[0]].valid
        totals = []
        for (name, *ends), side in zip((self.numerator, self.denominator), self._sides, strict=True):
            with np.errstate(over="ignore"):
                shares = rows[name].values[valid].astype(np.float64) / float(_size(*ends))
            averages, _ = average_rows(grid.quantise(shares, *side, exponent), rows, valid, self.per_unit)
            totals.append(grid.exact_sum(averages))
        return whole_vector(totals)

    @property
    def _range(self) -> tuple[float, float]:
        """Where a ratio of such sums lies: anywhere, where a denominator may be 0."""
        (low, high), (least, most) = self._ends
        if least == 0:
            return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)
        return float(min(low / least, low / most)), float(max(high / least, high / most))

    def _parts(self, noisy: Floats) -> tuple[float, float]:
        (top, bottom) = (float(_size(*ends)) for ends in self._ends)
        return float(noisy[0]) * top, float(noisy[1]) * bottom

    def finish(self, noisy: Floats) -> float:
        over, under = self._parts(noisy)
        low, high = self._range
        return min(max(over / max(under, float(self.denominator[2])), low), high)

    def error(self, noisy: Floats, width: float) -> float | None:
        """From the ends between which the ratio lies; None where noise hides the denominator and no bounds help."""
        over, under = self._parts(noisy)
        top, bottom = (width * float(_size(*ends)) for ends in self._ends)
        low, high = self._range
        if under > bottom:
            least, most = over - top, over + top
            low = max(low, least / (under + bottom if least >= 0 else under - bottom))
            high = min(high, most / (under - bottom if most >= 0 else under + bottom))
        value = self.finish(noisy)
        bar = max(value - low, high - value, 0.0)
        return bar if math.isfinite(bar) else None


def _size(low: Fraction, high: Fraction) -> Fraction:
    return max(abs(low), abs(high))
