"""How many ranks the worst of 9 or of 99 quantiles is off, against epsilon: one tree, and one selection for each."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import Schema, Unit, schema
from sfumato.mechanisms import Quantile, QuantileTree
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

ROWS, RUNS = 20_000, 3
EPSILONS = (0.05, 0.2, 0.5, 2.0)


def plot(axes: Any) -> None:
    """Costs that lie dense below 500 and thin out to 2,000."""
    values = np.sort(200 * -np.log1p(-(np.arange(ROWS) + 0.5) / ROWS)).clip(0, 2000)
    rows = Rows.read(Schema.of(x=schema.real(0, 2000)).table(), {"x": values}, Unit())
    run = Run(Noise(SeededBits(3)))
    ask: dict[str, Any] = {"column": "x", "lower": 0, "upper": 2000, "protects": Unit()}

    def worst(plan: Any) -> float:
        offs = []
        for _ in range(RUNS):
            answers = plan.finish(plan._run(rows, run))
            ranks = np.searchsorted(values, list(answers.values()))
            offs.append(np.abs(ranks - ROWS * np.array(list(answers))).max())
        return float(np.mean(offs))

    for count, colour in ((9, "C0"), (99, "C1")):
        q = tuple(Fraction(k, count + 1) for k in range(1, count + 1))
        one_by_one = [worst(Quantile(q=q, epsilon=e, step=2**-3, **ask)) for e in EPSILONS]
        axes.plot(EPSILONS, one_by_one, ":", color=colour, marker=".", label=f"{count} quantiles, one by one")
        tree = [worst(QuantileTree(q=q, epsilon=e, **ask)) for e in EPSILONS]
        axes.plot(EPSILONS, tree, "-", color=colour, marker=".", label=f"{count} quantiles, tree")
    gaussian = [worst(QuantileTree(q=q, epsilon=e, delta=1e-6, **ask)) for e in EPSILONS]
    axes.plot(EPSILONS, gaussian, "--", color="C2", marker=".", label="99 quantiles, tree, delta = 1e-6")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"worst error in ranks, of {ROWS:,}")
    axes.legend(fontsize=7)
