"""The chance that a key is kept, against the number of units that have it: from the plans themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit
from sfumato.mechanisms import OptimalKeys, ThresholdKeys, WeightedKeys

UNIT, PER_UNIT = Unit("user:person"), 8


def selections(epsilon: float = 1.0) -> dict[str, Any]:
    """By name: the chance that a key of n units is kept, where each of them has this one key."""
    fields: dict[str, Any] = {"column": "query", "protects": UNIT, "epsilon": epsilon, "delta": 1e-6}
    many = {**fields, "per_unit": PER_UNIT}
    return {
        "OptimalKeys, 1 key a unit": OptimalKeys(**fields).chances,
        "ThresholdKeys, 1 key a unit": ThresholdKeys(**fields).keep_chance,
        f"OptimalKeys, up to {PER_UNIT}": OptimalKeys(**many).chances,
        f"ThresholdKeys, Gaussian, up to {PER_UNIT}": ThresholdKeys(**many, noise="gaussian").keep_chance,
        f"WeightedKeys, up to {PER_UNIT}": WeightedKeys(**many).keep_chance,
    }


def plot(axes: Any) -> None:
    n = np.arange(1, 260)
    for label, chance in selections().items():
        axes.plot(n, [float(chance(int(each))) for each in n], label=label)
    axes.set(xscale="log", xlabel="units that have the key", ylabel="chance that it is kept")
    axes.set_title("epsilon = 1, delta = 1e-6", fontsize=9)
    axes.legend(fontsize=7)
