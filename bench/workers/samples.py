"""The made-up columns and scores that libraries are timed on, the same for everybody."""

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=4)
def whole_numbers(rows: int, cells: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(cells, size=rows, dtype=np.int64)


@lru_cache(maxsize=4)
def real_numbers(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 200.0, size=rows).clip(0, 4096)


@lru_cache(maxsize=8)
def canary_scores(canaries: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores, those of canaries that are in so far above the others; and who is in."""
    dice = np.random.default_rng(seed)
    coins = dice.random(canaries) < 0.5
    return dice.normal(size=canaries) + apart * coins, coins
