"""What a column becomes in a model, by its kind: numbers of a vector, a class, a number to be told.

`ENCODINGS` is the one table of it: a kind of column without a line here fails a test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..schema import Column

Numbers = NDArray[np.float32]
Usual = Literal["class", "number", "array"]


@dataclass(frozen=True)
class Part:
    """What one column becomes: the names of its numbers, and how they are written into their columns."""

    names: tuple[str, ...]
    write: Callable[[NDArray[Any], NDArray[np.bool_], Numbers], None]


@dataclass(frozen=True)
class Encoding:
    """What columns of a kind become.

    usual     what a target of it is, where nobody says; None where it is neither read nor told
    classes   the first class and how many there are; None where it has none
    ends      what a target of numbers lies between; None where it is no number
    scaled    its numbers, from the bounds to [-1, 1]; None where it is no number, and one-hot in a vector
    unscaled  may a model tell its numbers as they are?
    """

    usual: Usual | None
    classes: Callable[[Column], tuple[int, int]] | None = None
    ends: Callable[[Column], tuple[float, float]] | None = None
    scaled: Callable[[Column, NDArray[Any]], Numbers] | None = None
    unscaled: bool = True

    def part(self, name: str, column: Column, indicators: bool) -> Part:
        """The numbers of a vector that a column of this name becomes."""
        scaled = self.scaled
        if scaled is None:
            return Part(tuple(f"{name}={value}" for value in column.categories), _one_hot)

        def write(values: NDArray[Any], valid: NDArray[np.bool_], into: Numbers) -> None:
            into[:, 0] = np.where(valid, scaled(column, values), np.float32(0))
            if into.shape[1] == 2:
                into[:, 1] = ~valid

        with_nulls = indicators and column.drops_nulls
        return Part((name, f"{name} is NULL") if with_nulls else (name,), write)


def _one_hot(values: NDArray[Any], valid: NDArray[np.bool_], into: Numbers) -> None:
    into[np.flatnonzero(valid), values[valid]] = 1


def _to_one(column: Column, values: NDArray[Any]) -> Numbers:
    """From the bounds to [-1, 1]."""
    assert column.lower is not None and column.upper is not None
    middle, half = (column.lower + column.upper) / 2, (column.upper - column.lower) / 2
    clamped = np.clip(values.astype(np.float64), float(column.lower), float(column.upper))
    return np.clip((clamped - float(middle)) / float(half), -1, 1).astype(np.float32)


def _signs(column: Column, values: NDArray[Any]) -> Numbers:
    return (2 * values - 1).astype(np.float32)


def _bounds(column: Column) -> tuple[float, float]:
    assert column.lower is not None and column.upper is not None
    return float(column.lower), float(column.upper)


def _whole_classes(column: Column) -> tuple[int, int]:
    low, high = column.interval
    return int(low), int(high - low) + 1


_TIMES = Encoding("number", ends=_bounds, scaled=_to_one, unscaled=False)

ENCODINGS: dict[str, Encoding] = {
    "real": Encoding("number", ends=_bounds, scaled=_to_one),
    "whole": Encoding("number", _whole_classes, _bounds, _to_one),
    "category": Encoding("class", lambda column: (0, len(column.categories))),
    "flag": Encoding("class", lambda column: (0, 2), lambda column: (0.0, 1.0), _signs),
    "key": Encoding(None),
    "date": _TIMES,
    "moment": _TIMES,
    "tensor": Encoding("array"),
}


def encoding_of(column: Column) -> Encoding:
    return ENCODINGS[column.type]
