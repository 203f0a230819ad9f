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

from .. import checks

Floats = NDArray[np.float64]
Claims = Mapping[float, float]
"""delta -> epsilon: what is claimed, at as many points as one likes."""

_NEAR = 1 + 1e-9  # of alpha: how far the inverse may be off before it is sought anew
_HALVINGS = 100


def at_least(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is below this with chance at most alpha."""
    hits = np.asarray(hits, dtype=np.float64)
    seen = np.maximum(hits, 1)
    bound = special.betaincinv(seen, trials - seen + 1, alpha)
    wrong = ~(special.betainc(seen, trials - seen + 1, bound) <= alpha * _NEAR)
    if wrong.any():  # the library's search goes astray, for one at 1000 hits in 10^8 trials
        bound = np.where(wrong, _sought(seen, trials, alpha), bound)
    return np.asarray(np.where(hits == 0, 0.0, bound))


def _sought(hits: Floats, trials: int, alpha: float) -> Floats:
    """The largest probability, by halving, at which so many hits have a chance of at most alpha."""
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rare = special.betainc(hits, trials - hits + 1, middle) <= alpha
        low, high = np.where(rare, middle, low), np.where(rare, high, middle)
    return low


def at_most(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is above this with chance at most alpha."""
    return np.asarray(1.0 - at_least(trials - np.asarray(hits, dtype=np.float64), trials, alpha))


def epsilon_lower_bound(
    hits: int, trials: int, other_hits: int, other_trials: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The least epsilon that fits an event seen `hits` times on one table and `other_hits` times on its neighbour; 0
    where that shows nothing. The true epsilon is below it with chance at most 1 - confidence."""
    for name, seen, runs in (("hits", hits, trials), ("other_hits", other_hits, other_trials)):
        checks.whole(seen, name, least=0, most=checks.whole(runs, name.replace("hits", "trials")))
    delta, alpha = checked_delta(delta), (1 - checked_confidence(confidence)) / 2
    return float(shown(at_least(hits, trials, alpha), at_most(other_hits, other_trials, alpha), delta))


def shown(low: Any, high: Any, delta: float) -> Floats:
    """The epsilon that P(E) >= low and P'(E) <= high prove at delta."""
    return np.asarray(np.maximum(np.log(np.maximum(low - delta, 1e-300) / np.maximum(high, 1e-300)), 0.0))


def checked_confidence(confidence: float) -> float:
    """Refuse a confidence that is none."""
    if not isinstance(confidence, int | float) or isinstance(confidence, bool) or not 0 < confidence < 1:
        raise checks.refuse("confidence", confidence, "a number between 0 and 1, such as 0.95")
    return float(confidence)


def checked_delta(delta: float) -> float:
    """Refuse a delta that is none: below 0 it would prove more than there is."""
    if not isinstance(delta, int | float) or isinstance(delta, bool) or not 0 <= delta < 1:
        raise checks.refuse("delta", delta, "a number from 0 to below 1, such as 1e-5")
    return float(delta)
