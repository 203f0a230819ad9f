"""What counts prove: exact bounds on a probability, and the epsilon that two of them leave possible.

Clopper, Pearson 1934. Every audit here judges by these alone, so that "with chance at most alpha" is a theorem for any
number of runs and any law, not an approximation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Claims = Mapping[float, float]
"""delta -> epsilon: what is claimed, at as many points as one likes."""


def at_least(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is below this with chance at most alpha."""
    hits = np.asarray(hits, dtype=np.float64)
    bound = special.betaincinv(np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1, alpha)
    return np.asarray(np.where(hits == 0, 0.0, bound))


def at_most(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is above this with chance at most alpha."""
    return np.asarray(1.0 - at_least(trials - np.asarray(hits, dtype=np.float64), trials, alpha))


def epsilon_lower_bound(
    hits: int, trials: int, other_hits: int, other_trials: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The least epsilon that fits an event seen `hits` times on one table and `other_hits` times on its neighbour; 0
    where that shows nothing. The true epsilon is below it with chance at most 1 - confidence."""
    alpha = (1 - confidence) / 2
    return float(shown(at_least(hits, trials, alpha), at_most(other_hits, other_trials, alpha), delta))


def shown(low: Any, high: Any, delta: float) -> Floats:
    """The epsilon that P(E) >= low and P'(E) <= high prove at delta."""
    return np.asarray(np.maximum(np.log(np.maximum(low - delta, 1e-300) / np.maximum(high, 1e-300)), 0.0))
