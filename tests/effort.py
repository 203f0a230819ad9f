"""How much of a promise is tried: a small sample in `make test`, a larger one in `make test-all`."""

from __future__ import annotations

import os

ALL = os.environ.get("SFUMATO_EXAMPLES") == "fresh"
"""Set by `make test-all`."""


def tries(few: int, *, of: int) -> int:
    """How many seeds or examples to draw."""
    return of if ALL else few


LONG_TO_CHECK = {
    "PrivateMultiplicativeWeights", "Quantile", "NoisyMaxWithValue", "MWEM", "TopK", "L2Noise", "WeightedKeys",
    "Thresholdout", "Joint", "SmoothMedian", "ProposeTestRelease", "QuantileTree", "SqlSeries", "SqlStages",
    "SqlWorkload",
}  # fmt: skip
"""Plans that `check_plan` works on for some ten seconds each, in `make test-all`. Their own tests say most, too."""
