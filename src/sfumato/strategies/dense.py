"""Any matrix of measurements, for small tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..record import record
from .base import Floats, Mixing, Reach, Strategy, Vector, Workload, exact_product, row_norms

_CELLS, _ENTRY = 4096, 2**30
_ROWS = 2**16
_SPLIT = 1e-7  # W that is this far from a mixture of A's rows, beside its own size, is not determined by them


@record("strategy-dense/1")
@dataclass(frozen=True, kw_only=True)
class Dense(Strategy):
    """A = `entries` / 2^precision, given row by row as whole numbers."""

    entries: tuple[tuple[int, ...], ...]
    precision: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(self.cells, "cells", most=_CELLS)
        object.__setattr__(self, "precision", checks.whole(self.precision, "precision", least=0, most=24))
        allowed = "at least one row (at most 2^16), with an entry for every cell"
        try:
            rows: tuple[tuple[Any, ...], ...] = tuple(tuple(row) for row in self.entries)
        except TypeError:
            raise checks.refuse("entries", "...", allowed) from None
        if not 1 <= len(rows) <= _ROWS or any(len(row) != self.cells for row in rows):
            raise checks.refuse("entries", "...", allowed)
        if any(isinstance(x, bool) or not isinstance(x, int | np.integer) for row in rows for x in row) or any(
            abs(int(x)) > _ENTRY for row in rows for x in row
        ):
            raise checks.refuse("entries", "...", "whole numbers of at most 2^30")
        object.__setattr__(self, "entries", tuple(tuple(map(int, row)) for row in rows))
        if not self._whole.any():
            raise checks.refuse("entries", "...", "entries that are not all 0")

    @classmethod
    def of(cls, matrix: Any, precision: int = 16) -> Dense:
        """The nearest matrix with entries in whole multiples of 2^-precision."""
        precision = checks.whole(precision, "precision", least=0, most=24)
        try:
            numbers = np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if numbers.ndim != 2 or not numbers.size or not np.all(np.abs(numbers) <= np.ldexp(float(_ENTRY), -precision)):
            raise checks.refuse("matrix", "...", "rows of finite numbers of at most 2^30 steps")
        entries = np.rint(np.ldexp(numbers, precision)).astype(np.int64)
        return cls(cells=entries.shape[1], entries=tuple(map(tuple, entries.tolist())), precision=precision)

    @property
    def bits(self) -> int:
        return self.precision

    @property
    def measurements(self) -> int:
        return len(self.entries)

    @cached_property
    def _whole(self) -> NDArray[np.int64]:
        return np.array(self.entries, dtype=np.int64).reshape(-1, self.cells)

    @property
    def _matrix(self) -> Floats:
        return np.ldexp(self._whole.astype(np.float64), -self.precision)

    def measure(self, cells: Vector) -> Vector:
        return exact_product(self._whole, cells)

    @cached_property
    def column_norms(self) -> Reach:
        size = np.abs(self._whole)
        return Reach(int(size.sum(axis=0).max()), max(_squares(size)), int(size.max()))

    @cached_property
    def column_gaps(self) -> Reach:
        columns = np.concatenate([self._whole, np.zeros((self.measurements, 1), dtype=np.int64)], axis=1)
        l1 = l2 = linf = 0
        for place in range(self.cells):  # one column against all later ones, and against nothing
            gap = np.abs(columns[:, place + 1 :] - columns[:, place, None])
            l1, linf = max(l1, int(gap.sum(axis=0).max())), max(linf, int(gap.max()))
            l2 = max(l2, *_squares(gap))
        return Reach(l1, l2, linf)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self._matrix), dtype=np.float64)

    def estimate(self, noisy: Floats) -> Floats:
        return np.asarray(noisy @ self._inverse.T)  # the last axis is the measurements

    def mixing(self, workload: Workload) -> Mixing:
        return row_norms(workload.answer(self._inverse.T).T)

    def determines(self, workload: Workload) -> bool:
        wanted, matrix = workload.matrix, self._matrix
        left = wanted - workload.answer(self._inverse.T).T @ matrix
        return bool(np.abs(left).max() <= _SPLIT * max(np.abs(wanted).max(), 1e-300))


def _squares(size: NDArray[np.int64]) -> list[int]:
    """The exact sums of squares of columns of numbers from 0 to 2^31, of at most 2^16 each: halves apart, so that every
    sum fits int64."""
    high, low = size >> 16, size & 0xFFFF
    sums = zip((high * high).sum(axis=0), (high * low).sum(axis=0), (low * low).sum(axis=0), strict=True)
    return [(int(h) << 32) + (int(m) << 17) + int(s) for h, m, s in sums]
