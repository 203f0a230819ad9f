"""Columns whose cells are arrays of one public shape: a record of their own, `schema.TensorColumn`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tensors
from .column_kind import Chance, ColumnKind, Read, Words


class TensorKind(ColumnKind):
    """Arrays of one public shape. Engines hold none."""

    word = "tensor"
    own_record = True
    is_array = True
    has_bounds = True

    def bounds(self, column: Any) -> tuple[Fraction, Fraction]:
        raise NotImplementedError("the record checks its own bounds")

    def raw(self, column: Any, cells: Any) -> tensors.Block:
        block = tensors.block(column, cells)
        len(block.cells)  # a single number is no column
        return block

    def read(self, column: Any, raw: Any) -> Read:
        return *tensors.read(column, raw), None

    def arrow(self, column: Any, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        raise NotImplementedError("engines hold no arrays")

    def made_up(self, column: Any, count: int, words: Words) -> NDArray[Any]:
        """Even numbers within the bounds, two out of each word where 32 bits suffice."""
        low, high = column.ends
        numbers = count * column.size
        span = int(high) - int(low) + 1
        if column.whole and span > 2**32:
            full = np.asarray(words(numbers), dtype=np.uint64)
            ahead = full if span == 2**64 else full % np.uint64(span)
            flat = (ahead + np.int64(low).view(np.uint64)).view(np.int64)  # modulo 2^64, so nothing overflows
            return flat.reshape(count, *column.shape)
        halves = np.asarray(words((numbers + 1) // 2), dtype=np.uint64).view(np.uint32)[:numbers]
        if column.whole:
            flat = ((halves.astype(np.uint64) * np.uint64(span)) >> np.uint64(32)).view(np.int64) + low
        else:
            share = (halves >> np.uint32(8)).astype(np.float64) * 2.0**-24
            flat = np.clip(float(low) + share * (float(high) - float(low)), low, high).astype(np.float32)
        return flat.reshape(count, *column.shape)

    def awkward(self, column: Any) -> list[Any]:
        low, high = (float(end) for end in column.ends)
        numbers = [float("nan"), float("inf"), float("-inf"), 2 * low - high, 2 * high - low, low, high]
        full = [np.full(column.shape, number) for number in numbers]
        partly = np.full(column.shape, high)
        partly.flat[0] = float("nan")
        return [*full, partly, None, "n/a", 0, np.zeros((*column.shape, 2)), [[], [1]], np.full(column.shape, 1j)]

    def extremes(self, column: Any) -> list[Any]:
        numbers = (*map(float, column.ends), float("inf"), float("nan"))
        return [*(np.full(column.shape, number).tolist() for number in numbers), None]

    def clean(self, column: Any) -> list[Any]:
        return [[float(end)] * column.size for end in (column.lower, column.upper)]

    def drawn(self, column: Any, chance: Chance) -> Any:
        words = chance.words(column.size) >> np.uint64(11)
        low, high = column.lower, column.upper
        numbers = float(low) + words.astype(np.float64) * 2.0**-53 * float(high - low)
        return (np.rint(numbers) if column.whole else numbers).reshape(column.shape).tolist()
