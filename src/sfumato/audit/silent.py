"""Noise of zero: what is left is the data's own part. Never for a release.

`audit.without_noise(plan, table)` runs a plan so on a table of your own, to test what the plan computes: an expected
answer can be written down. No Curator takes such noise: it makes its own, from secure bits, and refuses any other.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, record
from ..laws import Law
from ..noise import Noise, SeededBits
from ..noise.race import Kind
from ..plan import Plan, Run
from ..release import Release
from ..schema import Table


class Silent(Noise):
    """Coins and seats as always, and noise of zero."""

    def draw(self, law: Law, count: int) -> NDArray[Any]:
        return np.zeros(count, dtype=np.int64)


class Plain(Silent):
    """Noise of zero in selections and vectors too: the best score wins, the first of equal ones."""

    def select(self, scores: Any, *, scale: Fraction = Fraction(1), noise: Kind = "gumbel", weights: Any = None) -> int:
        return self.top(np.where(np.asarray(1 if weights is None else weights) > 0, scores, -np.inf), 1)[0]

    def top(self, scores: Any, count: int, *, scale: Fraction = Fraction(1)) -> list[int]:
        order: list[int] = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")[:count].tolist()
        return order

    def sup_norm(self, scale: float, count: int) -> NDArray[Any]:
        return np.zeros(count, dtype=np.int64)

    def euclidean(self, scale: float, count: int) -> NDArray[Any]:
        return np.zeros(count, dtype=np.int64)


def without_noise(plan: Plan[Any, Any], table: Any, *, schema: Table | None = None) -> Release:
    """What the plan answers on this table with noise of zero: for tests of pipelines, on made-up data.

    table   raw columns or a frame, such as {"age": [30.0, 41.0]}: the columns that the plan reads
    schema  how to read them, where the plan's own fields do not say it: `Schema.of(...).table()`

    Nothing is charged and nothing is private. A query that joins several private tables gets made-up rows in the
    others, as in audits. Coins (samples, randomised response) fall as a fixed seed has it.
    """
    from .arguments import one_table

    checks.instance(plan, Plan, "plan", "a plan")
    data = one_table(plan, table, schema)
    raw = plan._run(data, Run(Plain(SeededBits(0)), rehearsal=True, steps=plan.steps))
    return Release(plan, record.parse(record.canonical(raw)), None)
