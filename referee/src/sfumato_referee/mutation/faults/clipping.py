"""Faults of bounds: values, rows and units that count for more than was declared."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import grid
from sfumato.audit import seams, surface
from sfumato.bounds import base, cell_counts, counts, gather, means, sums

from ..mutant import Shelf, plans, plant, swap, swap_everywhere

FAULTS = Shelf("clipping")


@FAULTS.fault("values are not clamped", by=plans("sum below zero", "L2Noise"))
def not_clamped() -> None:
    def skip_clamp(_: Any) -> Any:
        def quantise(values: Any, lower: Any, upper: Any, exponent: int) -> Any:
            scaled = np.rint(np.ldexp(values.astype(np.float64), -exponent))
            return np.clip(scaled, -(2.0**62), 2.0**62).astype(np.int64)

        return quantise

    swap(grid, "quantise", skip_clamp)


@FAULTS.fault("values are clamped at twice the bounds", by=plans("sum below zero", "Laplace"))
def twice_the_bounds() -> None:
    swap(grid, "quantise", lambda one: lambda values, low, high, exponent: one(values, 2 * low, 2 * high, exponent))


@FAULTS.fault("a clamped copy, and the values themselves", by=plans("L2Noise"))
def clamped_copy() -> None:
    """In a mean the values are measured from the middle, clamped once more; here the second clamp goes nowhere."""

    def clamp_a_copy(_: Any) -> Any:
        def steps(self: Any, rows: Any, exponent: int) -> Any:
            series = rows[self.column]
            middle, half = surface.centre(self, exponent)
            values = np.rint(np.ldexp(series.values[series.valid].astype(np.float64), -exponent))
            values = np.clip(values, -(2.0**50), 2.0**50).astype(np.int64)
            np.clip(values - middle, -half, half)
            averages, counted = gather.average_rows(values - middle, rows, series.valid, self.per_unit)
            return gather.whole_vector([grid.exact_sum(averages), grid.exact_sum(counted) * half])

        return steps

    swap(means.Mean, "steps", clamp_a_copy)


@FAULTS.fault("only the upper bound makes the sensitivity", by=plans("sum below zero"))
def upper_only() -> None:
    def forget_lower_bound(_: Any) -> Any:
        def sensitivity(self: Any) -> base.Sensitivity:
            reach = self.per_unit * max(self.upper, Fraction(1))
            return base.Sensitivity(reach, reach**2, reach)

        return sensitivity

    swap(sums.Sum, "sensitivity", forget_lower_bound)


@FAULTS.fault("all rows of a unit count", by=plans("Laplace", "L2Noise"))
def all_rows() -> None:
    swap_everywhere(gather.average_rows, lambda one: lambda values, rows, valid, most: one(values, rows, valid, 2**30))


@FAULTS.fault("cells of a unit are not scaled down", by=plans("Geometric", "Gaussian of users"))
def all_cells() -> None:
    def count_all_cells(steps: Any) -> Any:
        return lambda self, rows, exponent: (
            steps(replace(self, per_unit=2**18), rows, exponent)
            if (rows.unit.column is not None)
            else steps(self, rows, exponent)
        )

    swap(cell_counts.CellCounts, "steps", count_all_cells)


@FAULTS.fault("replaced cells at the price of added ones", by=plans("Gaussian", "PermuteAndFlip"))
def one_side() -> None:
    def halve_sensitivity(_: Any) -> Any:
        def sensitivity(self: Any) -> base.Sensitivity:
            k = Fraction(self.per_unit)
            return base.Sensitivity(k, k * k, k)

        return sensitivity

    swap(cell_counts.CellCounts, "sensitivity", halve_sensitivity)


@FAULTS.fault("NaN is a number", by=plans("Laplace", "Quantile"))
def nan_passes() -> None:
    def let_nan_pass(_: Any) -> Any:
        return lambda cells: (cells.astype(np.float64), np.ones(len(cells), dtype=np.bool_))

    plant(seams.REALS, let_nan_pass)


@FAULTS.fault("a group counts as one", by=plans("sum of three at once"))
def group_of_one() -> None:
    plant(seams.GROUPED, lambda _: lambda self: self.sensitivity)


@FAULTS.fault("a count counts every row of a unit", by=plans("a count of users"))
def every_row() -> None:
    swap(
        counts.Count,
        "steps",
        lambda steps: (
            lambda self, rows, exponent: steps(
                replace(self, per_unit=2**18) if rows.unit.column is not None else self, rows, exponent
            )
        ),
    )
