"""The error of a running count against the number of its steps, for the same privacy of all steps together."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit, bounds
from sfumato.mechanisms import ContinualCount
from sfumato.strategies import StepTree

HORIZON = 1024


def plot(axes: Any) -> None:
    query = bounds.increments("step", HORIZON, Unit())
    steps = np.arange(1, HORIZON + 1)
    for label, strategy in (
        ("binary tree", StepTree(cells=HORIZON, refined=False)),
        ("binary tree, Honaker's estimates", StepTree(cells=HORIZON)),
        ("square root", "square-root"),
    ):
        plan = ContinualCount(query=query, strategy=strategy, epsilon=1, delta=1e-6)
        axes.plot(steps, plan.stds, linewidth=0.8, label=label)
    axes.set(xlabel="step of 1,024", ylabel="standard deviation of the total", ylim=(0, 68))
    axes.legend(title="epsilon = 1, delta = 1e-6")
