"""Running totals by a square root of the prefix matrix: the least error known, and one measurement a step.

The prefix matrix P (ones on and below the diagonal) is the power series 1/(1 - x) in the matrix that shifts by one
step. Its square root is (1 - x)^(-1/2) = sum c_k x^k with c_k = C(2k, k)/4^k: 1, 1/2, 3/8, 5/16, 35/128, ... Measuring
C x, the root, and answering C (C x + noise) is unbiased, and the largest error is |c|_2^2 times the noise of one count:
about 1.07 + ln(cells)/pi in standard deviations, where the plain binary tree has about log2(cells).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..record import record
from .base import Floats, Mixing, Reach, Vector, in_parts
from .causal import Causal
from .convolve import convolve, convolve_exactly, inverse_series

BITS = 20
_MOST = 2**20


@lru_cache(maxsize=8)
def _answers(strategy: Toeplitz) -> Floats:
    """The weights b of the measurements in the running totals: prefix sums of the inverse series of c."""
    return np.cumsum(inverse_series(np.ldexp(strategy.weights.astype(np.float64), -BITS), strategy.cells))


@dataclass(frozen=True, kw_only=True)
class Toeplitz(Causal):
    """Measurement t is sum_j c_j (what step t - j added), with weights c that are not negative and never rise.

    Weights are whole multiples of 2^-20, and totals are estimated by the inverse of these very weights.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(self.cells, "cells", most=_MOST)

    @property
    def bits(self) -> int:
        return BITS

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many of the weights there are."""

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """2^bits c, rounded to the nearest: rounding keeps them from rising."""
        k = np.arange(1.0, self._width)
        root = np.cumprod(np.append(1.0, 1 - 0.5 / k))  # one after the other, so the same on every machine
        return np.rint(np.ldexp(root, BITS)).astype(np.int64)

    @cached_property
    def measurements_by_step(self) -> Vector:
        return np.arange(1, self.cells + 1)

    def measure(self, cells: Vector) -> Vector:
        return convolve_exactly(self.weights, cells)

    def latest(self, cells: Vector) -> Vector:
        back, recent = self.weights[: cells.size], cells[::-1][: self._width]
        return in_parts(lambda some: np.array([np.dot(back, some)]), int(back.sum()), recent)

    @cached_property
    def _answers(self) -> Floats:
        return _answers(self)

    def running(self, noisy: Floats) -> Floats:
        return convolve(self._answers, np.asarray(noisy, dtype=np.float64))

    @cached_property
    def running_mixing(self) -> Mixing:
        size = np.abs(self._answers)
        return Mixing(np.cumsum(size), np.sqrt(np.cumsum(size * size)), np.maximum.accumulate(size))

    @property
    def column_norms(self) -> Reach:
        # Below 2^20 weights of at most 2^20: sums of squares fit int64. The first column is the longest.
        return Reach(int(self.weights.sum()), int(np.dot(self.weights, self.weights)), int(self.weights[0]))

    @cached_property
    def column_gaps(self) -> Reach:
        """Of columns that are `lag` apart the first pair differs most, as later ones are cut off.

        |c_0 - c_lag|^2 = |c_0|^2 + |c_lag|^2 - 2 <c_0, c_lag>. As weights never rise, the absolute difference is c_k
        above the second column's start, and c_(k - lag) - c_k below it. A lag of `cells` is no second column at all.
        """
        c = np.append(self.weights, np.zeros(self.cells - self._width, dtype=np.int64))
        squares, sums = (np.append(0, np.cumsum(each)) for each in (c * c, c))
        products = convolve_exactly(c, c[::-1].copy())[::-1]  # <c_0, c_lag> for each lag
        lag = np.arange(1, self.cells + 1)
        l2 = squares[-1] + squares[self.cells - lag] - 2 * np.append(products[1:], 0)
        l1 = 2 * sums[lag] + sums[self.cells - lag] - sums[-1]
        return Reach(int(l1.max()), int(l2.max()), int(c[0]))

    def spaced(self, times: int, apart: int) -> Reach:
        """The rows' columns are never negative and shrink with their place and with their distance, so that the worst
        places are 0, apart, 2 apart, ... (Kalinin, Lampert 2024): each product of two columns, each sum and each entry
        is largest there."""
        places = min(times, -(-self.cells // apart))
        # Sums of weights that are `apart` from each other, of at most `places` of them.
        padded = np.zeros(-(-self.cells // apart) * apart, dtype=np.int64)
        padded[: self._width] = self.weights
        sums = padded.reshape(-1, apart).cumsum(axis=0)
        sums[places:] -= sums[:-places].copy()
        moved = sums.ravel()[: self.cells].astype(object)
        return Reach(int(moved.sum()), int(np.dot(moved, moved)), int(moved.max()))


@record("strategy-square-root/1")
@dataclass(frozen=True, kw_only=True)
class SquareRoot(Toeplitz):
    """The square root of the prefix matrix, whole (Fichtenberger, Henzinger, Upadhyay 2023; Henzinger, Upadhyay,
    Upadhyay 2023)."""

    @property
    def _width(self) -> int:
        return self.cells


@record("strategy-banded/1")
@dataclass(frozen=True, kw_only=True)
class Banded(Toeplitz):
    """The first `bands` weights of the square root only (Kalinin, Lampert 2024). Rows of one unit that are at least
    `bands` steps apart then move different measurements: k of them move sqrt(k) times as far as one."""

    bands: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bands", checks.whole(self.bands, "bands", most=self.cells))

    @property
    def _width(self) -> int:
        return self.bands
