"""Error against epsilon: aggregates of ten thousand made-up rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Schema, Unit, bounds, schema
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

ROWS, RUNS = 10_000, 60
EPSILONS = np.geomspace(0.02, 5, 9)


def _measured(query: Any, rows: Rows, read: Any, *, gaussian: bool) -> list[float]:
    """The root mean square error over runs, at each epsilon."""
    errors = []
    for epsilon in EPSILONS.tolist():
        plan: Any = (
            Gaussian(query=query, epsilon=epsilon, delta=1e-6) if gaussian else Laplace(query=query, epsilon=epsilon)
        )
        truth = read(query.finish(np.ldexp(query.steps(rows, plan.exponent).astype(float), plan.exponent)))
        run = Run(Noise(SeededBits(1)))
        off = [read(plan.finish(plan._run(rows, run))) - truth for _ in range(RUNS)]
        errors.append(float(np.sqrt(np.mean(np.square(off)))))
    return errors


def plot(axes: Any) -> None:
    rng = np.random.default_rng(1)
    age = np.clip(rng.normal(45, 18, ROWS), 0, 100)
    cost = rng.gamma(2, 60, ROWS) + 2 * age
    unit = Unit()
    table = Schema.of(age=schema.real(0, 100), cost=schema.real(0, 1000)).table()
    rows = Rows.read(table, {"age": age, "cost": cost}, unit)
    wide = {"age": (0, 100), "cost": (0, 1000)}
    curves = {
        "mean age (of 100)": (bounds.mean("age", 0, 100, unit), lambda v: v / 100),
        "deviation of age (of 50)": (bounds.standard_deviation("age", 0, 100, unit), lambda v: v / 50),
        "correlation (of 2)": (bounds.covariance(wide, unit, correlation=True), lambda v: v["age"]["cost"] / 2),
        "cost per year of age (of 10)": (bounds.ratio(("cost", 0, 1000), ("age", 0, 100), unit), lambda v: v / 10),
    }
    for place, (name, (query, read)) in enumerate(curves.items()):
        colour = f"C{place}"
        axes.plot(EPSILONS, _measured(query, rows, read, gaussian=False), color=colour, label=name)
        axes.plot(EPSILONS, _measured(query, rows, read, gaussian=True), color=colour, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="root mean square error, as a share of the range")
    axes.set_title(f"{ROWS:,} rows; Laplace (solid), Gaussian at delta = 1e-6 (dashed)", fontsize="medium")
    axes.legend(fontsize="small")
