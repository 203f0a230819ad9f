"""The error of a count over a range of cells, against the range's length: cells measured alone, and in trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit, bounds
from sfumato.mechanisms import Gaussian, Laplace

CELLS, EPSILON, DELTA = 1024, 1, 1e-6
LENGTHS = 2 ** np.arange(11)


def plot(axes: Any) -> None:
    """Standard deviations, averaged over where the range lies."""
    cells, one = bounds.bins_between("x", 0, 1, CELLS, Unit()), np.arange(CELLS)
    for noise, colour in (("laplace", "C0"), ("gaussian", "C1")):
        measured = bounds.hierarchical(cells, noise=noise)
        tree: Any = measured.strategy
        for query, line, words in (
            (cells, ":", "cells alone"),
            (measured, "-", f"tree of branching {tree.branching}"),
        ):
            plan: Any = Laplace(query=query, epsilon=EPSILON)
            if noise == "gaussian":
                plan = Gaussian(query=query, epsilon=EPSILON, delta=DELTA)
            errors = []
            for length in LENGTHS:
                starts = np.arange(0, CELLS - length + 1, 7)[:, None]
                ranges = ((one >= starts) & (one < starts + length)).astype(float)
                weights = ranges if query is cells else tree.weights(ranges)
                errors.append(plan.std * np.sqrt((weights**2).sum(axis=1).mean()))
            axes.plot(LENGTHS, errors, line, color=colour, marker=".", label=f"{noise.capitalize()}, {words}")
    axes.set(xscale="log", yscale="log", xlabel="cells in the range", ylabel="standard error of the count")
    axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
    axes.legend()
