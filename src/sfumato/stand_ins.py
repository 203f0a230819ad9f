"""Made-up cells of a column, from its public fields alone: clean ones, and what real tables hold beside them.

`column` is one of a schema: schema.py imports this module, so it is not named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = Callable[[int], NDArray[np.uint64]]
COMMON_KEYS = 3
"""How many keys half of all made-up rows share, in a column of keys that are no units."""


def drawn_words(words: Words, count: int) -> NDArray[np.uint64]:
    return np.asarray(words(count), dtype=np.uint64)


def distinct_values(column: Any, count: int) -> NDArray[Any]:
    return np.asarray(column.categories[:count]) if column.categories else np.arange(1, count + 1)


def plain_cells(column: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
    """Clean values, one per word; even enough for made-up rows (the bias of a remainder does not matter here)."""
    if column.type == "category":
        return _listed(column.categories)[(words % np.uint64(len(column.categories))).astype(np.int64)]
    if column.type == "flag":
        return (words & np.uint64(1)).astype(bool)
    if column.type == "key":
        many = (words % np.uint64(max(len(words) // 3, 1))).astype(np.int64) + 1
        # Half of the rows share a few keys, as names do in real tables: so that some are more than a few people's.
        few = ((words >> np.uint64(1)) % np.uint64(COMMON_KEYS)).astype(np.int64) + 1
        return np.where(words >> np.uint64(63), np.minimum(few, many.max(initial=1)), many)
    low, high = column.lower, column.upper
    assert low is not None and high is not None
    if column.type == "real":
        share = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        numbers = np.clip(float(low) + share * (float(high) - float(low)), float(low), float(high))
        return numbers if column.decimals is None else np.round(numbers, column.decimals)
    span = int(high - low) + 1  # up to 2**64, so Python's own integers
    numbers = np.array([int(low) + word % span for word in words.tolist()], dtype=np.int64)
    return (
        numbers
        if column.type == "whole"
        else numbers.astype("datetime64[D]" if column.type == "date" else "datetime64[us]")
    )


def arrays(column: Any, count: int, words: Words) -> NDArray[Any]:
    """Arrays of even numbers within the bounds, two out of each word where 32 bits suffice."""
    low, high = column.ends
    numbers = count * column.size
    span = int(high) - int(low) + 1
    if column.whole and span > 2**32:
        drawn = drawn_words(words, numbers)
        ahead = drawn if span == 2**64 else drawn % np.uint64(span)
        flat = (ahead + np.int64(low).view(np.uint64)).view(np.int64)  # modulo 2^64, so nothing overflows
        return flat.reshape(count, *column.shape)
    halves = drawn_words(words, (numbers + 1) // 2).view(np.uint32)[:numbers]
    if column.whole:
        flat = ((halves.astype(np.uint64) * np.uint64(span)) >> np.uint64(32)).view(np.int64) + low
    else:
        share = (halves >> np.uint32(8)).astype(np.float64) * 2.0**-24
        flat = np.clip(float(low) + share * (float(high) - float(low)), low, high).astype(np.float32)
    return flat.reshape(count, *column.shape)


def awkward_arrays(column: Any) -> list[Any]:
    """What real tables hold where an array should be."""
    low, high = (float(end) for end in column.ends)
    numbers = [float("nan"), float("inf"), float("-inf"), 2 * low - high, 2 * high - low, low, high]
    full = [np.full(column.shape, number) for number in numbers]
    partly = np.full(column.shape, high)
    partly.flat[0] = float("nan")
    return [*full, partly, None, "n/a", 0, np.zeros((*column.shape, 2)), [[], [1]], np.full(column.shape, 1j)]


def awkward_cells(column: Any) -> list[Any]:
    """What real tables hold where a value of this column should be."""
    nan, inf = float("nan"), float("inf")
    if column.type == "category":
        first, strange = column.categories[0], "unknown"
        while strange in column.categories:
            strange += "?"
        return [None, strange, nan, max(column.categories) + 1 if type(first) is int else b"\xff"]
    if column.type == "flag":
        return [None, 2, nan, "maybe"]
    if column.type == "key":
        return [None, nan]
    if column.type in ("date", "moment"):
        return [None, "not a day", nan, "0001-01-01", "9999-12-31", np.datetime64("NaT"), 10**30]
    low, high = column.interval
    common = [nan, None, inf, -inf, -0.0, "n/a"]
    if column.type == "whole":
        ends = [int(low), int(high), int(low) - 1, int(high) + 1]
        return [*common, *ends, 2**64, float(low) + 0.5, 1j]
    low_, high_ = float(low), float(high)
    return [*common, low_, high_, 2 * low_ - high_, 2 * high_ - low_, 10**400, 5e-324, 1j]


def mixed(values: NDArray[Any], awkward: list[Any], offset: int) -> NDArray[Any]:
    """At most every second row is awkward, at best every eighth; columns start at different rows."""
    step = max(2, min(8, len(values) // len(awkward)))
    mixed = _listed(values.tolist() if values.ndim == 1 else values)
    for turn, place in enumerate(range((offset + 1) % step, len(values), step)):
        mixed[place] = awkward[turn % len(awkward)]
    return mixed


def _listed(values: Iterable[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object)  # also of arrays: a cell each, whatever their shapes
