"""Measure every cell by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..record import record
from .base import Floats, Mixing, Reach, Strategy, Vector, Workload, row_norms
from .workloads import Cells, Prefixes


@record("strategy-identity/1")
@dataclass(frozen=True, kw_only=True)
class Identity(Strategy):
    """A = I: best for the cells themselves."""

    @property
    def measurements(self) -> int:
        return self.cells

    def measure(self, cells: Vector) -> Vector:
        return cells

    @property
    def column_norms(self) -> Reach:
        return Reach(1, 1, 1)

    @property
    def column_gaps(self) -> Reach:
        return Reach(2, 2, 1) if self.cells > 1 else Reach(1, 1, 1)

    def estimate(self, noisy: Floats) -> Floats:
        return noisy

    def mixing(self, workload: Workload) -> Mixing:
        one, summed = np.ones(self.cells), np.arange(1.0, self.cells + 1)
        if isinstance(workload, Cells):
            return Mixing(one, one, one)
        if isinstance(workload, Prefixes):
            return Mixing(summed, np.sqrt(summed), one)
        return row_norms(workload.answer(np.eye(self.cells)).T)
