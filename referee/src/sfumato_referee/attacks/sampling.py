"""Many outcomes of one plan at once, through the plan's own code: what an attack needs a few hundred thousand of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit import surface
from sfumato.bounds import Bounded, Sensitivity
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.mechanisms.thresholds import ABOVE, NOT_ASKED, Answers
from sfumato.noise import Bits, Noise
from sfumato.plan import Plan, Run
from sfumato.rows import Rows
from sfumato.schema import Column

from ..mutants import NoisyMaxWithItsValue

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Tiled(Bounded):
    """A query's vector, written down `times` over. Its sensitivity is that of one copy: each is a release by itself."""

    query: Bounded
    times: int

    @property
    def sensitivity(self) -> Sensitivity:
        return self.query.sensitivity

    def in_steps(self, exponent: int) -> Sensitivity:
        return self.query.in_steps(exponent)

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.query.columns

    @property
    def names(self) -> tuple[Any, ...]:
        return self.query.names * self.times

    @property
    def largest(self) -> Fraction:
        return self.query.largest

    @property
    def whole(self) -> bool:
        return self.query.whole

    @property
    def coarsest(self) -> int | None:
        return self.query.coarsest

    def steps(self, rows: Rows, exponent: int) -> NDArray[Any]:
        return np.tile(self.query.steps(rows, exponent), self.times)


def many(plan: Plan[Any, Any], rows: Rows, count: int, bits: Bits) -> Any:
    """`count` raw outcomes: a matrix with a row for each where noise is added to a vector, else a list."""
    run = Run(Noise(bits))
    if isinstance(plan, Additive):
        tiled = replace(plan, query=_Tiled(unit=plan.unit, query=plan.query, times=count))
        return surface.run(tiled, rows, run).reshape(count, -1)
    if isinstance(plan, NoisyMaxWithItsValue):
        return surface.runs(plan, rows, run, count)
    return [surface.run(plan, rows, run) for _ in range(count)]


def conversations(plan: SparseVector, rows: Rows, trials: int, bits: Bits) -> tuple[Answers, Floats]:
    """What the plan's own questions are told in so many conversations, and what noisy values a crossing would show.

    The same steps as in one conversation, on all at once: one noisy threshold each, fresh noise on every question, and
    after the last crossing nothing is asked.
    """
    gate, noise = plan.gate, Noise(bits)
    threshold = gate.begin(noise, trials)
    left = np.full(trials, gate.count, dtype=np.int64)
    verdicts, shown = [], []
    for question in surface.questions(plan, rows.table):
        values = question.in_units(question.query.steps(rows, question.exponent), gate.finer)
        noisy = gate.noisy(values, trials, noise)
        answers = gate.compare(noisy, threshold, left)
        left = left - np.sum(answers == ABOVE, axis=1)
        verdicts.append(answers)
        shown.append(np.where(answers == ABOVE, noisy / gate.finer, 0.0))
    return np.concatenate(verdicts, axis=1), np.concatenate(shown, axis=1)


__all__ = ["ABOVE", "NOT_ASKED", "conversations", "many"]
