"""How far private medians are from the true one, against epsilon: measured on made-up costs of 10,000 people."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Schema, Unit, schema
from sfumato.mechanisms import ProposeTestRelease, Quantile, SmoothMedian
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

PEOPLE, RUNS, TOP = 10_001, 60, 2000
EPSILONS = np.geomspace(0.05, 2, 7)


def plot(axes: Any) -> None:
    unit = Unit(change="replace")
    values = -200 * np.log(1 - np.linspace(0, 1, PEOPLE, endpoint=False))  # an exponential law: median 139
    rows = Rows.read(Schema.of(cost=schema.real(0, TOP)).table(), {"cost": values}, unit)
    truth, run = float(np.sort(values)[PEOPLE // 2]), Run(Noise(SeededBits(1)))
    shared: dict[str, Any] = {"column": "cost", "lower": 0, "upper": TOP, "protects": unit}
    for label, make in (
        ("SmoothMedian", lambda e: SmoothMedian(epsilon=e, **shared)),
        ("ProposeTestRelease, bound 5", lambda e: ProposeTestRelease(epsilon=e, delta=1e-6, bound=5, **shared)),
        ("Quantile", lambda e: Quantile(q=0.5, epsilon=e, **shared)),
    ):
        errors = []
        for epsilon in EPSILONS:
            plan = make(float(epsilon))
            answers = [plan.finish(plan._run(rows, run)) for _ in range(RUNS)]
            given = np.array([answer for answer in answers if answer is not None], dtype=float)
            errors.append(np.quantile(np.abs(given - truth), 0.9) if given.size > RUNS / 2 else np.nan)
        axes.plot(EPSILONS, errors, marker=".", label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error that 90 % stay below (median 139)")
    axes.legend()
