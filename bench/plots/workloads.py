"""Error against epsilon: 960 counting queries about ten yes-or-no columns of two thousand made-up rows."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

from sfumato import Schema, Unit, bounds, schema
from sfumato.mechanisms import MWEM, Laplace
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.strategies import Identity, Listed, expected_squared_error

COLUMNS, ROWS = 10, 2000
EPSILONS = np.geomspace(0.02, 4, 6)


def _asked() -> Listed:
    """Every combination of values of every three columns."""
    codes = np.arange(2**COLUMNS)
    bits = [codes >> place & 1 for place in range(COLUMNS)]
    rows = [
        np.logical_and.reduce([bits[column] == value for column, value in zip(columns, values, strict=True)])
        for columns in combinations(range(COLUMNS), 3)
        for values in product((0, 1), repeat=3)
    ]
    return Listed.of(np.array(rows, dtype=np.int64))


def plot(axes: Any) -> None:
    rng = np.random.default_rng(1)
    kind = rng.integers(3, size=ROWS)  # rows come in three kinds, so that columns go together
    chance = np.array([0.05, 0.5, 0.95])[kind][:, None] * np.linspace(0.3, 1, COLUMNS)
    code = (rng.random((ROWS, COLUMNS)) < chance) @ (1 << np.arange(COLUMNS))
    unit, names, asked = Unit(), tuple(range(2**COLUMNS)), _asked()
    rows = Rows.read(Schema.of(code=schema.category(names)).table(), {"code": code}, unit)
    cells = bounds.histogram("code", names, unit)
    truth = asked.answer(np.bincount(code, minlength=len(names)).astype(np.float64))

    def mwem(epsilon: float, rounds: int) -> float:
        plan, run = MWEM(query=cells, workload=asked, rounds=rounds, epsilon=epsilon), Run(Noise(SeededBits(1)))
        off = [asked.answer(plan.histogram(plan._run(rows, run))) - truth for _ in range(2)]
        return float(np.sqrt(np.mean(np.square(off))))

    flat = np.sqrt(expected_squared_error(Identity(cells=len(names)), asked, "laplace"))
    each = Laplace(query=bounds.count(unit), epsilon=1).std * len(list(combinations(range(COLUMNS), 3)))
    axes.plot(EPSILONS, each / EPSILONS, label="Laplace on every answer")
    axes.plot(EPSILONS, flat / EPSILONS, label="matrix mechanism, cells")
    for rounds in (6, 16):
        axes.plot(EPSILONS, [mwem(e, rounds) for e in EPSILONS.tolist()], label=f"MWEM, {rounds} rounds")
    uniform = np.sqrt(np.mean((ROWS / 8 - truth) ** 2))
    axes.axhline(uniform, color="grey", linestyle=":", label="a uniform guess")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="root mean square error, in rows")
    axes.set_title(f"{asked.answers} queries, {len(names)} cells, {ROWS:,} rows", fontsize="medium")
    axes.legend(fontsize="small")
