"""Data for attacks and lessons, the same in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..noise import SeededBits


class MadeUp:
    """Data for attacks, the same in every run: numbers from a seed, never noise."""

    def __init__(self, seed: int) -> None:
        self._bits = SeededBits(seed)

    def uniform(self, low: float, high: float, count: int) -> NDArray[np.float64]:
        return low + (high - low) * np.ldexp((self._bits.words(count) >> np.uint64(11)).astype(np.float64), -53)

    def below(self, end: int, count: int) -> NDArray[np.int64]:
        return (self._bits.words(count) % np.uint64(end)).astype(np.int64)

    def order(self, count: int) -> NDArray[np.int64]:
        return np.argsort(self._bits.words(count), kind="stable")
