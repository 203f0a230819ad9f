"""Exact whole numbers out of an Arrow table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

Integers = NDArray[Any]
"""int64, or Python integers where some need more bits."""

_ROOM = 2**62  # noise still fits beside numbers of this size


def wholes(table: pyarrow.Table, place: int) -> Integers:
    """A column of whole numbers; NULL is 0. Engines give sums as decimals of 128 bits: low and high halves."""
    column = table.column(place).combine_chunks()
    if len(column) == 0:
        return np.zeros(0, dtype=np.int64)
    if column.null_count:
        column = column.fill_null(0)
    width, start, stop = column.type.bit_width, column.offset, column.offset + len(column)
    if width != 128:  # the cells as they lie there: Arrow's own way to numpy loads pandas
        word = f"{'u' if str(column.type).startswith('u') else ''}int{width}"
        return np.frombuffer(column.buffers()[1], dtype=word)[start:stop].astype(np.int64)
    halves = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)[start:stop]
    low, high = halves[:, 0], halves[:, 1]
    if (high == low >> 63).all() and ((low < _ROOM) & (low > -_ROOM)).all():
        return low.copy()
    return (high.astype(object) << 64) + low.view(np.uint64).astype(object)
