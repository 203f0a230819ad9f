"""S1, synthetic data that copies a row: Stadler, Oprisanu, Troncoso, "Synthetic data - anonymisation groundhog day"
(2022). An outlier alone in its cell: is it in the made-up table, more often than the price allows?

MWEM is trained again and again on a table with and without the outlier; what it makes up is looked at for the outlier's
cell and for the most telling event of all that it releases. And everything that was drawn must be in the price: as many
selections and as many measurements as the event says, each with the noise that was sold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import bounds, events, strategies
from sfumato.accounting import pure
from sfumato.audit import surface, telling
from sfumato.audit.claims import claims_of
from sfumato.audit.stages import table_for
from sfumato.laws import Integers, Law
from sfumato.mechanisms.mwem import MWEM
from sfumato.noise import Bits, Noise, SecureBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.units import Unit

from .verdict import FALSE_ALARM, Verdict

RUNS = 4000
_CELLS = tuple(f"cell {i}" for i in range(8))
_ROW = Unit()
_COMMON = 30  # rows in each of the other cells but one


def library() -> MWEM:
    query = bounds.histogram("cell", _CELLS, _ROW)
    return MWEM(query=query, workload=strategies.Cells(cells=len(_CELLS)), rounds=2, epsilon=2, passes=2)


@dataclass(frozen=True, kw_only=True)
class CopiesRows(MWEM):
    """The planted bug: cells that are rarer than everybody expects are taken over as they are."""

    def _run(self, rows: Rows, run: Run) -> dict[str, Any]:
        raw = super()._run(rows, run)
        exact = self.query.steps(rows, 0).astype(np.float64)
        place = int(np.argmin(np.where(exact > 0, exact, np.inf)))
        return raw | {"picked": np.append(raw["picked"], place), "values": np.append(raw["values"], exact[place])}


@dataclass(frozen=True, kw_only=True)
class FreeChoice(MWEM):
    """The planted bug: what is measured is chosen by the data, and the choice is not paid for."""

    @property
    def event(self) -> events.Event:
        noisy = events.Laplace(epsilon=surface.round_epsilon(self), relation=self.unit.change)
        return events.Repeat(noisy, self.rounds + (self.total is None))


class _CountingNoise(Noise):
    """Adds up what the draws cost that a run really makes."""

    def __init__(self, bits: Bits, plan: MWEM) -> None:
        super().__init__(bits)
        self._plan, self.spent = plan, Fraction(0)

    def select(self, scores: Any, *, scale: Fraction = Fraction(1), **named: Any) -> int:
        self.spent += 2 * scale * surface.question_reach(self._plan)
        return super().select(scores, scale=scale, **named)

    def draw(self, law: Law, count: int) -> Integers:
        self.spent += count * surface.question_reach(self._plan) / Fraction(law.spread)
        return super().draw(law, count)


def attack(plan: MWEM | None = None, *, runs: int = RUNS) -> Verdict:
    plan = library() if plan is None else plan
    table = table_for(plan)
    common = [name for name in _CELLS[1:-1] for _ in range(_COMMON)]
    without, with_it = (Rows.read(table, {"cell": cells}, _ROW) for cells in (common, [*common, _CELLS[-1]]))
    bits = SecureBits()
    sides = [[_seen(plan, surface.run(plan, rows, Noise(bits))) for _ in range(runs)] for rows in (with_it, without)]
    copied = [float(np.mean([1.0 in each["values"] for each in side])) for side in sides]
    finding = telling.most_telling(*sides, claims=claims_of(plan), false_alarm=FALSE_ALARM)
    counting = _CountingNoise(bits, plan)
    surface.run(plan, with_it, counting)
    claimed = float(pure.epsilon(plan.event))
    unpaid = float(counting.spent) > claimed * (1 + 1e-6)
    words = (
        f"The outlier's count, as it is, is in {100 * copied[0]:.1f} % of {runs} releases, and in "
        f"{100 * copied[1]:.1f} % without it; {finding}; what is drawn costs "
        f"{float(counting.spent):.4g}, and {claimed:.4g} is paid."
    )
    figures = {
        "copied": copied[0], "copied without": copied[1], "epsilon at least": finding.epsilon,
        "claimed there": finding.claim, "drawn": float(counting.spent), "paid": claimed,
    }  # fmt: skip
    return Verdict("S1", finding.broken or unpaid, words, figures)


def _seen(plan: MWEM, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What is released, and the outlier's cell of the made-up table."""
    cell = float(plan.histogram(dict(raw))[-1])
    return {"cell": cell, "picked": list(map(int, raw["picked"])), "values": list(map(float, raw["values"]))}


def control(*, runs: int = 400) -> Verdict:
    """Both planted bugs must be found."""
    like = library()
    fields: dict[str, Any] = {"query": like.query, "workload": like.workload, "rounds": 2, "epsilon": 2, "passes": 2}
    verdicts = {kind.__name__: attack(kind(**fields), runs=runs) for kind in (CopiesRows, FreeChoice)}
    missed = [name for name, verdict in verdicts.items() if not verdict.broken]
    summary = "; ".join(f"{name}: {verdict.text}" for name, verdict in verdicts.items())
    return Verdict("S1", not missed, f"Not found: {', '.join(missed)}." if missed else summary)
