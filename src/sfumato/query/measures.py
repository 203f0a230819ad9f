"""What the engine adds up: whole numbers, one sum per group, whose size the price is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from .. import grid
from ..errors import ArgumentError
from ..sources.duckdb import DUCKDB
from ..sources.vocabulary import call
from .expressions import trees
from .expressions.likely import USUAL

WEIGHT_BITS = 12
"""A unit's weight is a whole number of 2^-12."""
_COARSEST = 4  # binary digits that the largest whole number keeps where noise is far wider than it
_FARTHEST = 2**52  # steps: no row adds more, so that no cast of it can fail; a unit that holds it has weight 0
_WIDEST = 35  # binary digits of the noise in steps of the finest grid: wider noise takes longer to draw exactly
LARGEST_SUM = 2**42
"""A unit's sum beyond this (in steps) has weight 0 anyway, so the engine holds it there."""


def stored_text(tree: exp.Expression) -> str:
    """What a measure is called after: answers that are stored hold it, so it is DuckDB's text whichever engine runs."""
    return DUCKDB.text(tree)


@dataclass(frozen=True)
class Measure:
    """A sum over the rows of a group.

    name    tells measures apart: equal names are one measure
    row     what a row adds: a DOUBLE or BIGINT expression, nothing where it is NULL; None where every row adds 1
    lower   the interval of what one row adds; it is clamped to it
    whole   are these whole numbers, whose sum needs no rounding?
    title   in plain words
    nullable  might a row be NULL?
    inside    is what a row adds known to lie in the interval, so that nothing needs to be clamped?
    counted_by  the measure that counts the rows which add something; empty where the sum stands for itself
    generous  is the interval far wider than what is usual (likely.py)?
    """

    name: str
    row: exp.Expression | None
    lower: Fraction
    upper: Fraction
    whole: bool
    title: str
    nullable: bool = True
    inside: bool = False
    counted_by: str = ""
    generous: bool = False

    @property
    def usual(self) -> Fraction:
        """About what a large row adds; where that is not known, so little that what rows hold is looked for near it."""
        return self.largest / USUAL if self.generous else self.largest

    @property
    def signed(self) -> bool:
        """May rows cancel one another?"""
        return self.lower < 0 < self.upper

    @property
    def largest(self) -> Fraction:
        """The size of the largest row."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def coarsest(self) -> int:
        """Whole numbers may be rounded to multiples of 2^coarsest where the noise is wide; counts are not rounded."""
        return 0 if self.row is None else max(grid.floor_log2(self.largest) - _COARSEST, 0)


@dataclass(frozen=True)
class Coordinate:
    """A measure with its part of the budget: how far a unit may move it, and how it is blurred.

    reach  a unit may move it by this much, in real units
    share  of the budget; all shares of a query add up to 1
    scale  of the noise, in real units (a standard deviation for Gaussian noise)
    bits   weighted sums are on a grid that is 2^bits times finer than the rows'
    """

    measure: Measure
    reach: Fraction
    share: Fraction
    scale: Fraction
    bits: int

    @cached_property
    def exponent(self) -> int:
        """Rows are rounded to whole multiples of 2^exponent."""
        exponent = grid.floor_log2(self.scale) + 1 + self.bits - _WIDEST
        return max(0, min(exponent, self.measure.coarsest)) if self.measure.whole else exponent

    @property
    def steps(self) -> Fraction:
        """The noise scale in steps of the grid that the weighted sum is on."""
        return grid.steps(self.scale, self.exponent) * 2**self.bits

    @property
    def ends(self) -> tuple[int, int]:
        """What one row adds, in steps: from the least to the most."""
        low, high = grid.ends(self.measure.lower, self.measure.upper, self.exponent)
        return max(min(low, _FARTHEST), -_FARTHEST), max(min(high, _FARTHEST), -_FARTHEST)

    def quantum(self) -> exp.Expression | None:
        """What one row adds, in steps, as an engine BIGINT that never raises. None: every row adds 1 step.

        It is a fixed function of the row, and sums of it are exact integers in any order. That is all that matters:
        what a unit counts for is measured on these integers, whatever bounds say.
        """
        if self.measure.row is None:
            return None
        low, high = self.ends
        row = self.measure.row
        scaled = trees.cast(row.copy(), "DOUBLE")
        if self.exponent:
            scaled = trees.binary(exp.Mul, scaled, trees.real(math.ldexp(1.0, -self.exponent)))
        to = "INT" if max(abs(low), abs(high)) < 2**31 else "BIGINT"  # engines add up narrow numbers faster
        if self.measure.inside:
            return trees.nearest_or_null(scaled, to)
        held = call("greatest_present", call("least_present", scaled, trees.real(high)), trees.real(low))
        number = trees.nearest(held, to)
        if not self.measure.nullable:
            return number
        # The least and greatest of those present pass over a NULL, which must stay one.
        return trees.when(exp.Not(this=exp.Is(this=trees.wrapped(row.copy()), expression=exp.Null())), number)


def weight_bits(scales: list[tuple[Measure, Fraction]]) -> int:
    """How fine weights may be: as fine as the noise on whole numbers can still be drawn."""
    widths = (grid.floor_log2(scale) + 1 - measure.coarsest for measure, scale in scales if measure.whole)
    widest = max(widths, default=0)
    if widest > _WIDEST - 4:
        raise ArgumentError(
            f"the noise would be over 2^{_WIDEST - 4} rows wide: give a larger epsilon, or smaller limits."
        )
    return min(WEIGHT_BITS, _WIDEST - widest)


def count_rows() -> Measure:
    return Measure("rows", None, Fraction(0), Fraction(1), True, "rows")


ROWS = count_rows()
