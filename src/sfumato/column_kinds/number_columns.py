"""Columns of numbers within bounds: real ones, and whole ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..tensors import INT64
from . import block_reading
from .column_kind import AnyColumn, Chance, Read, SingleValue, drawn_whole, ends, plain, shown, whole_numbers

DIGITS = 15
"""So many decimal digits a double holds: different decimals of so many digits have different nearest doubles."""


class _Number(SingleValue):
    is_number = True
    has_bounds = True
    fills_nulls = True
    _adjective = ""

    def stand_in(self, column: AnyColumn) -> Any:
        low, high = ends(column)
        allowed = f"'drop' or a {self._adjective}number from {shown(low)} to {shown(high)}"
        number = checks.rational(plain(column.nulls), "nulls", allowed)
        if not low <= number <= high or (self.is_whole and number.denominator != 1):
            raise checks.refuse("nulls", column.nulls, allowed)
        return number


class RealKind(_Number):
    word = "real"
    has_decimals = True

    def bounds(self, column: AnyColumn) -> tuple[Fraction, Fraction]:
        return checks.interval(column.lower, column.upper)

    def decimals(self, column: AnyColumn) -> int:
        """A double tells decimals of up to 15 digits apart, so that none is lost on its way through any source."""
        places = checks.whole(column.decimals, "decimals", least=0, most=DIGITS)
        numbers = {"lower": column.lower, "upper": column.upper}
        for name, number in (numbers | ({} if column.drops_nulls else {"nulls": column.nulls})).items():
            assert number is not None
            steps = number * 10**places
            if steps.denominator != 1:
                raise checks.refuse(name, float(number), f"a number with {places} decimals, as decimals={places} says")
            if abs(steps) >= 10**DIGITS:
                allowed = f"a number of at most {DIGITS} digits with its {places} decimals"
                raise checks.refuse(name, float(number), allowed)
        return places

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        if column.decimals is None:
            return *block_reading.reals(cells), None
        return *block_reading.decimals(cells, column.decimals), None

    def code(self, column: AnyColumn, value: Any) -> float:
        return float(value)

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        low, high = map(float, ends(column))
        share = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        numbers = np.clip(low + share * (high - low), low, high)
        return numbers if column.decimals is None else np.round(numbers, column.decimals)

    def awkward(self, column: AnyColumn) -> list[Any]:
        low, high = map(float, ends(column))
        return [*_ODD_NUMBERS, low, high, 2 * low - high, 2 * high - low, 10**400, 5e-324, 1j]

    def extremes(self, column: AnyColumn) -> list[Any]:
        low, high = ends(column)
        beyond = float(high + 100 * (high - low + Fraction(1)))
        return [float(low), float(high), None, beyond, float("-inf")]

    def clean(self, column: AnyColumn) -> list[Any]:
        return [float(end) for end in ends(column)]

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        low, high = ends(column)
        return float(low) + chance.share() * float(high - low)


class WholeKind(_Number):
    word = "whole"
    is_whole = True
    _adjective = "whole "

    def bounds(self, column: AnyColumn) -> tuple[Fraction, Fraction]:
        return whole_bounds(column)

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        low, high = ends(column)
        return *block_reading.wholes(cells, int(low), int(high)), None

    def code(self, column: AnyColumn, value: Any) -> float:
        return int(value)

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        return whole_numbers(column, words)

    def awkward(self, column: AnyColumn) -> list[Any]:
        low, high = map(int, ends(column))
        return [*_ODD_NUMBERS, low, high, low - 1, high + 1, 2**64, float(low) + 0.5, 1j]

    def extremes(self, column: AnyColumn) -> list[Any]:
        low, high = ends(column)
        return [int(low), int(high), None, -(2**70), 2**70]

    def clean(self, column: AnyColumn) -> list[Any]:
        return [int(end) for end in ends(column)]

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        return drawn_whole(column, chance)


_ODD_NUMBERS = [float("nan"), None, float("inf"), float("-inf"), -0.0, "n/a"]


def whole_bounds(column: AnyColumn) -> tuple[Fraction, Fraction]:
    """Bounds that 64 bits hold."""
    low, high = checks.interval(column.lower, column.upper)
    for name, bound in (("lower", low), ("upper", high)):
        if bound.denominator != 1 or not INT64[0] <= bound <= INT64[1]:
            raise checks.refuse(name, getattr(column, name), "a whole number from -2**63 to 2**63 - 1")
    return low, high
