"""How many rows the private median is away from the true one, against epsilon: measured, beside what is promised."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Schema, Unit, schema
from sfumato.mechanisms import Quantile
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

ROWS, RUNS = 2000, 60
EPSILONS = np.geomspace(0.01, 1, 8)


def plot(axes: Any) -> None:
    values = np.sort(np.rint(1000 * np.linspace(0.001, 0.999, ROWS) ** 3))  # whole numbers, crowded near zero
    rows = Rows.read(Schema.of(x=schema.whole(0, 1000)).table(), {"x": values}, Unit())
    run = Run(Noise(SeededBits(1)))
    for q, step, label in (
        (0.5, 1, "median, step 1"),
        (0.5, None, "median, default step"),
        (0.95, 1, "95 % quantile, step 1"),
    ):
        errors, promised = [], []
        for epsilon in EPSILONS:
            plan = Quantile(column="x", lower=0, upper=1000, q=q, epsilon=float(epsilon), protects=Unit(), step=step)
            answers = np.array([plan._run(rows, run)[0] for _ in range(RUNS)])
            low, high = np.searchsorted(values, answers), np.searchsorted(values, answers, side="right")
            errors.append(np.maximum(np.maximum(low - q * ROWS, q * ROWS - high), 0.5).mean())
            promised.append(plan.rank_error(0.05))
        (line,) = axes.plot(EPSILONS, errors, marker=".", label=label)
        axes.plot(EPSILONS, promised, color=line.get_color(), linestyle=":")
    axes.plot([], [], color="grey", linestyle=":", label="promised at 95 %")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"rank error in rows, of {ROWS} (mean)")
    axes.legend()
