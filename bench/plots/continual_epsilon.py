"""The error of a running count of 1,024 steps against epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit, bounds
from sfumato.mechanisms import ContinualCount

HORIZON = 1024
EPSILONS = np.geomspace(0.1, 10, 7)


def plot(axes: Any) -> None:
    query = bounds.increments("step", HORIZON, Unit())
    for label, more in (
        ("tree, epsilon alone", {"strategy": "tree"}),
        ("square root, epsilon alone", {"strategy": "square-root"}),
        ("tree, delta = 1e-6", {"strategy": "tree", "delta": 1e-6}),
        ("square root, delta = 1e-6", {"strategy": "square-root", "delta": 1e-6}),
    ):
        plans = [ContinualCount(query=query, epsilon=float(e), **more) for e in EPSILONS]
        axes.plot(EPSILONS, [plan.expected_error(0.05) for plan in plans], marker=".", label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="± at 95 %, at the worst step")
    axes.legend()
