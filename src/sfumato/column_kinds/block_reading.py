"""Whole columns of raw cells as numbers: arrays that numpy holds as one block, everything else cell by cell.

Each function takes the cells as numpy holds them, and gives a value for every one and which of them are values at all.
None of them raises, whatever a cell holds, and none lets a cell change how another is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tensors, times
from .cell_values import code_of, flag_of, name_of, number_of, real_of, text_of, token_of, whole_of

Cells = tuple[NDArray[Any], NDArray[np.bool_]]

_SPARSE = 2**20  # whole-number categories that lie further apart are searched, not tabled
_USUAL = 2**20  # up to so many rows share one array that says that all of them are there


def reals(cells: NDArray[Any]) -> Cells:
    if cells.dtype.kind not in "biuf":
        return cell_by_cell(cells, real_of, np.float64)
    values = cells.astype(np.float64)
    values += 0.0  # -0.0 becomes 0.0
    return values, ~np.isnan(values)


def decimals(cells: NDArray[Any], places: int) -> Cells:
    """Rounded half away from 0, as engines round: k / 10^places is the double nearest to that decimal. What is too
    large for that stays as it is; bounds are nearer."""
    values, valid = reals(cells)
    steps = np.trunc(np.abs(values) * 10.0**places + 0.5)
    near = np.copysign(steps / 10.0**places, values) + 0.0
    return np.where(steps < 2.0**52, near, values), valid


def wholes(cells: NDArray[Any], low: int, high: int) -> Cells:
    """Clamped to the bounds, then rounded to even; as the bounds are whole, a block may round first."""
    if cells.dtype.kind not in "biuf":
        return cell_by_cell(cells, partial(whole_of, low=low, high=high), np.int64)
    values, valid = tensors.rounded(cells)
    clamped = np.clip(values, np.int64(low), np.int64(high))
    return clamped, _all_there(len(cells)) if valid is None else valid


def moments(cells: NDArray[Any], word: str, low: int, high: int) -> Cells:
    """Days (of a "date") or microseconds since 1970-01-01, clamped to the bounds."""
    if cells.dtype.kind == "M":
        valid = ~np.isnat(cells)
        return np.clip(times.counted(np.where(valid, cells, np.zeros(1, cells.dtype)), word), low, high), valid
    read = times.days if word == "date" else times.microseconds

    def clamped(cell: Any) -> int | None:
        number = read(text_of(cell) or cell)
        return None if number is None else min(max(number, low), high)

    return cell_by_cell(cells, clamped, np.int64)


def coded(cells: NDArray[Any], values: tuple[Any, ...]) -> Cells:
    """Places among public values: whole numbers are looked up, each different cell of another plain array is read
    once."""
    kind = cells.dtype.kind
    if kind in "iu" or (kind == "b" and type(values[0]) is not str):
        return _looked_up(cells, values)
    read = place_of(values)
    if kind not in "bfUS":
        return cell_by_cell(cells, read, np.int64)
    different, place = np.unique(cells, return_inverse=True)
    codes, valid = cell_by_cell(different, read, np.int64)
    return codes[place.reshape(-1)], valid[place.reshape(-1)]


def place_of(values: tuple[Any, ...]) -> Callable[[Any], int | None]:
    if values == (False, True) and type(values[0]) is bool:
        return flag_of  # whose numbers are the places
    places = {value: place for place, value in enumerate(values)}
    cast = {str: name_of, int: number_of, bool: flag_of}[type(values[0])]
    return lambda cell: places.get(cast(cell))


def _looked_up(cells: NDArray[Any], values: tuple[Any, ...]) -> Cells:
    """The place of each whole number. Differences are taken modulo 2^64, where they are small for known numbers only,
    so nothing wraps unseen."""
    unsigned = cells.dtype.kind == "u"
    wide = cells.astype(np.uint64 if unsigned else np.int64, copy=False)
    numbers, places, dense = _lookup(values, unsigned)
    if not numbers.size:
        return np.zeros(len(wide), dtype=np.int64), np.zeros(len(wide), dtype=np.bool_)
    if dense is None:
        place = np.minimum(np.searchsorted(numbers, wide), numbers.size - 1)
        return places[place], numbers[place] == wide
    ahead = wide.view(np.uint64) - numbers[:1].view(np.uint64)
    valid = ahead < np.uint64(dense)
    codes = (ahead if valid.all() else np.where(valid, ahead, np.uint64(0))).view(np.int64)
    if places.size:
        codes = places[codes]
        valid &= codes >= 0
    return codes, valid


@lru_cache(maxsize=8)
def _lookup(values: tuple[Any, ...], unsigned: bool) -> tuple[NDArray[Any], NDArray[np.int64], int | None]:
    """The whole numbers that these values are, rising, and the place of each. Where they lie close
    together, the places are of all numbers from the first on (-1: unknown), how many of those there are comes with it,
    and no places mean 0, 1, 2, ..."""
    if type(values[0]) is str:  # a whole number stands for its digits
        tokens = ((token_of(text), place) for place, text in enumerate(values))
        by_number = {number: place for number, place in tokens if type(number) is int and number <= tensors.INT64[1]}
    else:
        by_number = {int(value): place for place, value in enumerate(values)}
    low, high = (0, 2**64 - 1) if unsigned else tensors.INT64
    rising = sorted(number for number in by_number if low <= number <= high)
    numbers = np.array(rising, dtype=np.uint64 if unsigned else np.int64)
    places = np.array([by_number[number] for number in rising], dtype=np.int64)
    span = rising[-1] - rising[0] + 1 if rising else 0
    if span > max(_SPARSE, 4 * len(rising)):
        return numbers, places, None
    table = np.full(span, -1, dtype=np.int64)
    table[(numbers - numbers[:1]).astype(np.int64)] = places
    return numbers, np.zeros(0, dtype=np.int64) if np.array_equal(table, np.arange(span)) else table, span


def keys(cells: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[Any]]:
    """By cell: its code and whether it names somebody; and the names that the codes stand for."""
    kind = cells.dtype.kind
    if kind not in "biufcmMUS":
        codes: dict[Any, int] = {}
        values, valid = cell_by_cell(cells, lambda cell: code_of(codes, cell), np.int64)
        return values, valid, np.fromiter(codes, dtype=object, count=len(codes))
    if kind in "fc":  # long doubles whose labels are the same are the same key
        cells = cells.astype(np.float64 if kind == "f" else np.complex128, copy=False)
    valid = np.ones(len(cells), dtype=np.bool_)
    if kind == "M":
        valid = times.in_calendar(cells)
    elif kind in "fcm":
        valid = ~(np.isnat(cells) if kind == "m" else np.isnan(cells))
    different, place = np.unique(cells, return_inverse=True)
    place = place.reshape(-1).astype(np.int64, copy=False)
    if kind in "US":
        valid = np.fromiter((text_of(cell) is not None for cell in different.tolist()), np.bool_, len(different))[place]
    return place, valid, different


def cell_by_cell(cells: NDArray[Any], read: Callable[[Any], Any], dtype: type[Any]) -> Cells:
    """The slow way. A cell that cannot be read is NULL; numbers of time have no place on a number line."""
    values, valid = np.zeros(len(cells), dtype=dtype), np.zeros(len(cells), dtype=np.bool_)
    if cells.dtype.kind in "mMc":
        return values, valid
    for place, cell in enumerate(cells.tolist()):
        try:
            value = read(cell)
            if value is not None:
                values[place] = value
                valid[place] = True
        except Exception:
            valid[place] = False
    return values, valid


@lru_cache(maxsize=1)
def _usual() -> NDArray[np.bool_]:
    there = np.ones(_USUAL, dtype=np.bool_)
    there.flags.writeable = False
    return there


def _all_there(count: int) -> NDArray[np.bool_]:
    return _usual()[:count] if count <= _USUAL else np.ones(count, dtype=np.bool_)
