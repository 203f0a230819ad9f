"""Strategies for totals that are told while the data still comes: every measurement is made at a step, of the cells up
to that step, and the running total at a step is estimated from the measurements made so far.

The noise is one draw for each measurement, so all running totals together cost one release of the measurements. That
holds for data that come in answer to earlier totals, too: see mechanisms/continual.py.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from .base import Floats, Mixing, Reach, Strategy, Vector, Workload, row_norms
from .workloads import Cells, Prefixes

_DENSE = 2**22  # weights written out one by one


@dataclass(frozen=True, kw_only=True)
class Causal(Strategy):
    """A strategy whose measurements stand in the order in which they are made. A cell is what a step adds. No entry is
    negative."""

    @property
    @abstractmethod
    def measurements_by_step(self) -> Vector:
        """How many measurements are made up to and including each step."""

    @abstractmethod
    def latest(self, cells: Vector) -> Vector:
        """The measurements made at the step of the last of these cells, as `measure` gives them."""

    @abstractmethod
    def running(self, noisy: Floats) -> Floats:
        """The running total at each step, without bias, from measurements made up to it; for as many steps as there
        are measurements of. The last axis is the measurements."""

    @property
    @abstractmethod
    def running_mixing(self) -> Mixing:
        """The weights of the noisy measurements in the running totals."""

    @abstractmethod
    def spaced(self, times: int, apart: int) -> Reach:
        """How far `times` rows move the measurements at most, one to a cell, in cells at least `apart` apart."""

    @property
    def measurements(self) -> int:
        return int(self.measurements_by_step[-1])

    def estimate(self, noisy: Floats) -> Floats:
        return np.diff(self.running(noisy), axis=-1, prepend=0.0)

    def mixing(self, workload: Workload) -> Mixing:
        if isinstance(workload, Prefixes):
            return self.running_mixing
        if self.measurements * self.cells <= _DENSE:
            return row_norms(workload.answer(self.estimate(np.eye(self.measurements))).T)
        # w x = sum_t (w_t - w_(t+1)) (running total at t), and a norm of a sum is at most the sum of the norms.
        running = self.running_mixing
        if isinstance(workload, Cells):
            return Mixing(*(norm + np.append(0.0, norm[:-1]) for norm in running))
        change = np.abs(np.diff(workload.matrix, axis=1, append=0.0))
        return Mixing(*(change @ norm for norm in running))
