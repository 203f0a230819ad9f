"""How far the winner is from the best candidate, against epsilon: measured, beside what is promised."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import Schema, Unit, bounds, schema
from sfumato.mechanisms import Exponential, PermuteAndFlip, TopK
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows

NAMES = tuple(f"ward {i:02}" for i in range(20))
VOTES = np.round(np.geomspace(400, 100, len(NAMES))).astype(int)
EPSILONS = np.geomspace(0.01, 1, 9)
RUNS = 150


def plot(axes: Any) -> None:
    cells = np.repeat(NAMES, VOTES)
    rows = Rows.read(Schema.of(w=schema.category(NAMES)).table(), {"w": cells}, Unit())
    query, run = bounds.votes("w", NAMES, Unit()), Run(Noise(SeededBits(1)))
    for label, make in (
        ("permute-and-flip", lambda e: PermuteAndFlip(query=query, epsilon=e)),
        ("exponential", lambda e: Exponential(query=query, epsilon=e)),
        ("the fifth of TopK, k = 5", lambda e: TopK(query=query, epsilon=e, k=5)),
    ):
        errors = []
        for epsilon in EPSILONS:
            plan = make(float(epsilon))
            raws = [plan._run(rows, run) for _ in range(RUNS)]
            place = 4 if isinstance(plan, TopK) else 0
            won = VOTES[[raw[place] if isinstance(raw, list) else raw for raw in raws]]
            errors.append(np.maximum(VOTES[place] - won, 0).mean())
        axes.plot(EPSILONS, errors, marker=".", label=label)
    promised = [PermuteAndFlip(query=query, epsilon=float(e)).expected_error(0.05) for e in EPSILONS]
    axes.plot(EPSILONS, promised, color="grey", linestyle=":", label="promised at 95 %, one winner")
    axes.set(xscale="log", xlabel="epsilon", ylabel="votes behind the best (mean)", ylim=(0, 300))
    axes.legend()
