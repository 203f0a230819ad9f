"""How many units a key needs to be kept with a chance of 90 %, against epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.plots.keys import selections

EPSILONS = np.geomspace(0.1, 4, 9)


def needed(chance: Any, wanted: float = 0.9) -> int:
    low, high = 0, 1
    while chance(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return high


def plot(axes: Any) -> None:
    found = [{label: needed(chance) for label, chance in selections(float(e)).items()} for e in EPSILONS]
    for label in found[0]:
        axes.plot(EPSILONS, [each[label] for each in found], marker=".", label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="units for a chance of 90 %")
    axes.set_title("delta = 1e-6", fontsize=9)
    axes.legend(fontsize=7)
