"""The error of a mean with bounds that are found privately, beside bounds that are guessed: against epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Schema, Unit, bounds, schema
from sfumato.mechanisms import Laplace, private_bounds
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

ROWS, RUNS = 5000, 60
EPSILONS = np.geomspace(0.05, 2, 8)


def plot(axes: Any) -> None:
    """Incomes around 30 000; the guess allows for a hundred millions."""
    values = np.exp(10.2 + 0.5 * np.sin(np.arange(ROWS)) + 0.3 * np.cos(7.0 * np.arange(ROWS)))
    rows = Rows.read(Schema.of(x=schema.real(0, 10**8)).table(), {"x": values}, Unit())
    run, truth = Run(Noise(SeededBits(1))), values.mean()

    def mean(lower: float, upper: float, epsilon: float) -> float:
        plan = Laplace(query=bounds.mean("x", lower, upper, Unit()), epsilon=epsilon)
        return float(plan.finish(plan._run(rows, run)))

    def found(epsilon: float) -> float:
        """A fifth of epsilon for the bounds."""
        plan = private_bounds("x", Unit(), epsilon=epsilon / 5)
        interval = plan.finish(plan._run(rows, run))
        return mean(interval["lower"], interval["upper"], epsilon * 4 / 5)

    for label, ask in (
        ("bounds guessed wide, [0, 10^8]", lambda e: mean(0, 10**8, e)),
        ("bounds found with a fifth of epsilon", found),
        ("bounds known, [8192, 65536]", lambda e: mean(8192, 65536, e)),
    ):
        errors = [np.mean([abs(ask(float(e)) - truth) for _ in range(RUNS)]) / truth for e in EPSILONS]
        axes.plot(EPSILONS, errors, marker=".", label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="relative error of the mean")
    axes.legend()
