"""Columns of opaque names, such as user ids: equal or not, and nothing else. They are not public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from . import block_reading
from .column_kind import AnyColumn, Chance, Read, SingleValue

COMMON_KEYS = 3
"""How many keys half of all made-up rows share, in a column of keys that are no units."""


class KeyKind(SingleValue):
    """Opaque names: nobody lists them, and nothing stands in for one."""

    word = "key"
    is_public = False
    names_units = True
    takes_days = True

    def stand_in(self, column: AnyColumn) -> Any:
        raise checks.refuse("nulls", column.nulls, "'drop': no key stands in for an unknown one")

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        return block_reading.keys(cells)

    def code(self, column: AnyColumn, value: Any) -> float:
        raise NotImplementedError("a key's code depends on other rows, and means nothing")

    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        many = (words % np.uint64(max(len(words) // 3, 1))).astype(np.int64) + 1
        # Half of the rows share a few keys, as names do in real tables: so that some are more than a few people's.
        few = ((words >> np.uint64(1)) % np.uint64(COMMON_KEYS)).astype(np.int64) + 1
        return np.where(words >> np.uint64(63), np.minimum(few, many.max(initial=1)), many)

    def awkward(self, column: AnyColumn) -> list[Any]:
        return [None, float("nan")]

    def extremes(self, column: AnyColumn) -> list[Any]:
        return ["one", "two", None, 3]  # that a key occurs at all may be all that tells neighbours apart

    def allowed(self, column: AnyColumn) -> list[Any]:
        return ["one", "two", 3]

    def clean(self, column: AnyColumn) -> list[Any]:
        return ["one", "two", "3"]

    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        return f"key {chance.below(5)}"
