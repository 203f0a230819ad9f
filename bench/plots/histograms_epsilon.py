"""The error of a cumulative histogram against epsilon: cells measured alone, and in trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Unit, bounds
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.strategies import Identity

CELLS, DELTA = 1024, 1e-6
EPSILONS = np.round(np.logspace(-1, 1, 7), 3)


def plot(axes: Any) -> None:
    """Error bars at 95 % of the running total that is least exact."""
    cells = bounds.bins_between("x", 0, 1, CELLS, Unit())
    for noise, colour in (("laplace", "C0"), ("gaussian", "C1")):
        for line, words, strategy in ((":", "cells alone", Identity(cells=CELLS)), ("-", "tree", None)):
            query = bounds.cumulative(cells, noise=noise, strategy=strategy)
            plans = [
                Laplace(query=query, epsilon=float(epsilon))
                if noise == "laplace"
                else Gaussian(query=query, epsilon=float(epsilon), delta=DELTA)
                for epsilon in EPSILONS
            ]
            widths = [plan.expected_error(0.05) for plan in plans]
            axes.plot(EPSILONS, widths, line, color=colour, marker=".", label=f"{noise.capitalize()}, {words}")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="± at 95 % on the worst of 1,024 running totals")
    axes.legend()
