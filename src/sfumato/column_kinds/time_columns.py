"""Columns of days, and of moments, within bounds: whole numbers of days or microseconds since 1970-01-01."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import checks, times
from . import block_reading
from .column_kind import AnyColumn, Chance, Read, SingleValue, drawn_whole, ends, whole_numbers


class _Time(SingleValue):
    is_time = True
    has_bounds = True
    _numpy: ClassVar[str]

    def bounds(self, column: AnyColumn) -> tuple[Fraction, Fraction]:
        low, high = (self._bound(getattr(column, name), name) for name in ("lower", "upper"))
        if low >= high:
            raise checks.refuse("lower", self.shown(low), f"a {self.word} before upper = {self.shown(high)!r}")
        return low, high

    def _bound(self, value: Any, name: str) -> Fraction:
        """A date, ISO text, or what it was turned into before."""
        number: Any = value
        if not isinstance(value, Fraction):
            try:
                number = self.counted(value)
            except ValueError:
                number = None
        least, most = times.least_and_most(self.word)
        if number is None or not least <= number <= most or int(number) != number:
            raise checks.refuse(name, value, "a date or its ISO text, such as '2026-01-31'")
        return Fraction(number)

    def counted(self, value: Any) -> int | None:
        """The number of a date, a moment or ISO text; None for what is none of these."""
        return times.microseconds(value)

    def stand_in(self, column: AnyColumn) -> Any:
        raise checks.refuse("nulls", column.nulls, "'drop' for dates and moments")

    def shown(self, end: Any) -> str:
        return times.shown(int(end), self.word)

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        low, high = ends(column)
        return *block_reading.moments(cells, self.word, int(low), int(high)), None

    def code(self, column: AnyColumn, value: Any) -> float:
        return int(value)

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        return whole_numbers(column, words).astype(self._numpy)

    def awkward(self, column: AnyColumn) -> list[Any]:
        return [None, "not a day", float("nan"), "0001-01-01", "9999-12-31", np.datetime64("NaT"), 10**30]

    def extremes(self, column: AnyColumn) -> list[Any]:
        return [*self.clean(column), None, "0001-01-01", "9999-12-31"]

    def clean(self, column: AnyColumn) -> list[Any]:
        return [self.shown(end) for end in ends(column)]

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        return self.shown(drawn_whole(column, chance))


class DateKind(_Time):
    word = "date"
    takes_days = True
    _numpy = "datetime64[D]"

    def counted(self, value: Any) -> int | None:
        return times.days(value)

    def arrow(self, column: AnyColumn, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        return arrow.array(values.astype(np.int32), mask=hidden, type=arrow.int32()).cast(arrow.date32())


class MomentKind(_Time):
    word = "moment"
    _numpy = "datetime64[us]"

    def arrow(self, column: AnyColumn, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        return arrow.array(values, mask=hidden, type=arrow.int64()).cast(arrow.timestamp("us"))
