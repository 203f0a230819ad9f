"""How near a threshold sparse vector can tell, against epsilon."""

from __future__ import annotations

from typing import Any

from sfumato import Unit
from sfumato.mechanisms import SparseVector

_EPSILONS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def plot(axes: Any) -> None:
    """The distance, in sensitivities, at which 1,000 questions are all told on the right side (95 %)."""
    for count, monotone, style in ((1, False, "-"), (1, True, "--"), (10, False, "-"), (10, True, "--")):
        plans = [SparseVector(epsilon=e, protects=Unit(), count=count, monotone=monotone) for e in _EPSILONS]
        label = f"count {count}" + (", monotone" if monotone else "")
        axes.plot(_EPSILONS, [plan.accuracy(0.05, 1000) for plan in plans], style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="distance from the threshold, in sensitivities")
    axes.set_title("Sparse vector: 1,000 questions told right, 95 %")
    axes.legend()
