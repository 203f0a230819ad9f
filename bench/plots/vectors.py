"""Noise on each of 100 numbers that one unit moves all at once, by at most 1 each, against epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit, bounds
from sfumato.mechanisms import Gaussian, L2Noise, Laplace, LInfinityNoise
from sfumato.rows import Rows

COUNT = 100
EPSILONS = np.geomspace(0.1, 10, 9)


def _everywhere(rows: Rows) -> Any:
    return np.full(COUNT, float(len(rows)))


def plot(axes: Any) -> None:
    labels = [f"number {place}" for place in range(COUNT)]
    query = bounds.declared(_everywhere, Unit(), reads={}, labels=labels, l1=COUNT, l2=COUNT**0.5, linf=1)
    for label, make in (
        ("Laplace", lambda e: Laplace(query=query, epsilon=e)),
        ("L2Noise", lambda e: L2Noise(query=query, epsilon=e)),
        ("LInfinityNoise", lambda e: LInfinityNoise(query=query, epsilon=e)),
        ("Gaussian, delta = 1e-6", lambda e: Gaussian(query=query, epsilon=e, delta=1e-6)),
    ):
        axes.plot(EPSILONS, [make(float(e)).expected_error(0.05) for e in EPSILONS], marker=".", label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="± at 95 % on each of 100 numbers")
    axes.legend()
