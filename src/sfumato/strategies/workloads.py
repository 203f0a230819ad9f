"""Workloads: the linear queries that people ask of a table's cells."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..checks import Exact
from ..questions import FINE, PRICE
from ..record import record
from .base import Floats, Workload

_RANGED = 256  # 32,896 ranges


@record("workload-cells/1")
@dataclass(frozen=True, kw_only=True)
class Cells(Workload):
    """Every cell by itself."""

    def answer(self, cells: Floats) -> Floats:
        return cells

    @property
    def answers(self) -> int:
        return self.cells

    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        return cells


@record("workload-prefixes/1")
@dataclass(frozen=True, kw_only=True)
class Prefixes(Workload):
    """All cells up to and including each."""

    def answer(self, cells: Floats) -> Floats:
        return np.cumsum(cells, axis=-1)

    @property
    def answers(self) -> int:
        return self.cells

    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f"<= {name}" for name in cells)


@record("workload-ranges/1")
@dataclass(frozen=True, kw_only=True)
class Ranges(Workload):
    """All cells from one to another, for every two: in the order (0, 0), (0, 1), ..., (0, n-1), (1, 1), ..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(self.cells, "cells", most=_RANGED)

    @property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(self.cells)

    def answer(self, cells: Floats) -> Floats:
        sums = np.concatenate([np.zeros((*cells.shape[:-1], 1)), np.cumsum(cells, axis=-1)], axis=-1)
        first, last = self._ends
        return np.asarray(sums[..., last + 1] - sums[..., first])

    @property
    def answers(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f"{cells[i]} to {cells[j]}" for i, j in zip(*self._ends, strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Intervals(Workload):
    """All cells from each of `firsts` to before the one of `afters` in its place."""

    firsts: NDArray[np.intp]
    afters: NDArray[np.intp]

    def answer(self, cells: Floats) -> Floats:
        sums = np.concatenate([np.zeros((*cells.shape[:-1], 1)), np.cumsum(cells, axis=-1)], axis=-1)
        return np.asarray(sums[..., self.afters] - sums[..., self.firsts])

    @property
    def answers(self) -> int:
        return int(self.firsts.size)

    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        ends = zip(self.firsts, self.afters, strict=True)
        return tuple(f"{cells[first]} to {cells[after - 1]}" for first, after in ends)


@record("workload-listed/1")
@dataclass(frozen=True, kw_only=True)
class Listed(Workload):
    """Any list of linear queries: a label and a weight on every cell for each."""

    labels: tuple[str, ...] = field(metadata=PRICE)
    weights: tuple[tuple[Exact, ...], ...] = field(metadata=FINE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.labels, Set | Mapping):
            raise checks.refuse("labels", "...", "a list: each label names the row of weights in its place")
        object.__setattr__(self, "labels", checks.distinct(self.labels, "labels"))
        object.__setattr__(self, "weights", _exact_rows(self.weights, len(self.labels), self.cells))
        if not self._weights.any():
            raise checks.refuse("weights", "...", "weights that are not all 0")

    @classmethod
    def of(cls, weights: Any, labels: Any = None) -> Listed:
        """From a matrix (a numpy array, or rows of numbers), one row for each query."""
        rows = tuple(weights) if hasattr(weights, "__iter__") else ()
        if not rows or not all(hasattr(row, "__len__") and len(row) for row in rows):
            raise checks.refuse("weights", "...", "at least one row, with a weight for every cell")
        named = tuple(f"query {place}" for place in range(1, len(rows) + 1)) if labels is None else labels
        return cls(cells=len(rows[0]), labels=named, weights=rows)

    @cached_property
    def _weights(self) -> Floats:
        return np.array([[float(weight) for weight in row] for row in self.weights]).reshape(-1, self.cells)

    @property
    def matrix(self) -> Floats:
        return self._weights

    def answer(self, cells: Floats) -> Floats:
        return np.asarray(cells @ self._weights.T)

    @property
    def answers(self) -> int:
        return len(self.labels)

    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.labels


def _exact_rows(weights: Any, count: int, cells: int) -> tuple[tuple[Any, ...], ...]:
    """Rows of exact numbers. A matrix often has few different numbers: each is read once."""
    allowed = "a row for each label, with a weight for every cell"
    try:
        rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in weights]
    except TypeError:
        raise checks.refuse("weights", "...", allowed) from None
    if len(rows) != count or any(len(row) != cells for row in rows):
        raise checks.refuse("weights", "...", allowed)
    fractions: dict[tuple[type, Any], Any] = {}

    def exactly(weight: Any) -> Any:
        key = (type(weight), weight)
        if key not in fractions:
            fractions[key] = checks.bound(weight, "weights")
        return fractions[key]

    try:
        return tuple(tuple(map(exactly, row)) for row in rows)
    except TypeError:  # a weight that has no hash is no number
        raise checks.refuse("weights", "...", allowed) from None
