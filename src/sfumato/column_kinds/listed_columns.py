"""Columns of public values: one of the categories, or yes and no. A value is read as its place among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from . import block_reading
from .column_kind import AnyColumn, Chance, Read, SingleValue, plain


class _Listed(SingleValue):
    is_listed = True
    fills_nulls = True
    _in_words: str

    def values(self, column: AnyColumn) -> tuple[Any, ...]:
        """All that a cell may hold."""
        return column.categories

    def stand_in(self, column: AnyColumn) -> Any:
        value, values = plain(column.nulls), self.values(column)
        if type(value) is not type(values[0]) or value not in values:
            raise checks.refuse("nulls", column.nulls, f"'drop' or {self._in_words}")
        return value

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        return *block_reading.coded(cells, self.values(column)), None

    def code(self, column: AnyColumn, value: Any) -> float:
        return self.values(column).index(value)

    def allowed(self, column: AnyColumn) -> list[Any]:
        return [cell for cell in self.extremes(column) if cell is not None]


class CategoryKind(_Listed):
    word = "category"
    names_units = True
    has_categories = True
    _in_words = "one of the categories"

    def categories(self, column: AnyColumn) -> tuple[Any, ...]:
        return checks.distinct(column.categories, "categories")

    def arrow(self, column: AnyColumn, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        types = {str: arrow.large_string(), int: arrow.int64(), bool: arrow.bool_()}
        listed = arrow.array(column.categories, type=types[type(column.categories[0])])
        return listed.take(arrow.array(values, mask=hidden))

    def names(self, column: AnyColumn, count: int) -> NDArray[Any]:
        return np.asarray(column.categories[:count])

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        listed = np.fromiter(column.categories, dtype=object)
        return listed[(words % np.uint64(len(column.categories))).astype(np.int64)]

    def awkward(self, column: AnyColumn) -> list[Any]:
        first, strange = column.categories[0], "unknown"
        while strange in column.categories:
            strange += "?"
        return [None, strange, float("nan"), max(column.categories) + 1 if type(first) is int else b"\xff"]

    def extremes(self, column: AnyColumn) -> list[Any]:
        listed = list(column.categories)
        return [*dict.fromkeys([*listed[:3], listed[-1]]), None]

    def clean(self, column: AnyColumn) -> list[Any]:
        return list(column.categories)

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        return column.categories[chance.below(len(column.categories))]


class FlagKind(_Listed):
    word = "flag"
    _in_words = "True or False"

    def values(self, column: AnyColumn) -> tuple[Any, ...]:
        return False, True

    def arrow(self, column: AnyColumn, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        return super().arrow(column, values.astype(np.bool_), hidden, arrow)

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        return (words & np.uint64(1)).astype(bool)

    def awkward(self, column: AnyColumn) -> list[Any]:
        return [None, 2, float("nan"), "maybe"]

    def extremes(self, column: AnyColumn) -> list[Any]:
        return [True, False, None]

    def clean(self, column: AnyColumn) -> list[Any]:
        return [True, False]

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        return bool(chance.below(2))
