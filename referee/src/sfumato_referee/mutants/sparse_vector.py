"""The sparse vectors that were published and are wrong: Lyu, Su, Li, "Understanding the sparse vector technique for
differential privacy" (2017), algorithms 3 to 6, and one that goes on after its last crossing.

Each claims what SparseVector claims. `figure 1` of the paper lists where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit import surface
from sfumato.interactive import Conversation
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.mechanisms.thresholds import ABOVE, Gate, GateConversation, GridQuestion, gate_of
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.runs import Bulk

_ENDLESS = 2**40
_NO_NOISE = DiscreteLaplace(2.0**-12)  # 0, but for one time in e^4096


@dataclass(frozen=True, kw_only=True)
class NoisyValueShown(SparseVector):
    """Algorithm 3 (Roth's lecture notes 2011): a crossing shows the value with the noise of its own comparison. So the
    value tells how high the noisy threshold was at most, and every "below" before it tells more than it should."""

    @cached_property
    def gate(self) -> Gate:
        return gate_of(threshold_scale=2 / self.epsilon, query_scale=2 * self.count / self.epsilon, count=self.count)

    def _begin(self, run: Run) -> Conversation:
        return _Showing(self.gate, run.noise)

    @property
    def bulk(self) -> Bulk:
        return "fresh"

    def _runs(self, rows: Rows, run: Run, count: int) -> NDArray[np.float64]:
        """So many conversations, one a row: what each question was told, then the values that crossings showed."""
        gate = self.gate
        threshold, left = gate.begin(run.noise, count), np.full(count, gate.count, dtype=np.int64)
        verdicts, shown = [], []
        for question in surface.questions(self, rows.table):
            values = question.in_units(question.query.steps(rows, question.exponent), gate.finer)
            noisy = gate.noisy(values, count, run.noise)
            answers = gate.compare(noisy, threshold, left)
            left = left - np.sum(answers == ABOVE, axis=1)
            verdicts.append(answers)
            shown.append(np.where(answers == ABOVE, noisy / gate.finer, 0.0))
        return np.concatenate([*verdicts, *shown], axis=1).astype(np.float64)


class _Showing(GateConversation):
    def answer(self, rows: Rows, question: GridQuestion) -> dict[str, Any]:
        gate, noise, threshold, left = surface.conversation(self)
        values = question.in_units(question.query.steps(rows, question.exponent), gate.finer)
        noisy = gate.noisy(values, 1, noise)
        above = bool(gate.compare(noisy, threshold, left)[0, 0] == ABOVE)
        left -= above
        return {"above": above, "noisy": float(noisy[0, 0] / gate.finer) if above else 0.0}


@dataclass(frozen=True, kw_only=True)
class NoiseWithoutCount(SparseVector):
    """Algorithm 4 (Lee, Clifton 2014): the noise on a question is for one crossing, whatever `count` is, and not
    doubled. It is (1 + 6 count)/4 epsilon-DP."""

    @cached_property
    def gate(self) -> Gate:
        return gate_of(threshold_scale=4 / self.epsilon, query_scale=4 / (3 * self.epsilon), count=self.count)


@dataclass(frozen=True, kw_only=True)
class NoQueryNoise(SparseVector):
    """Algorithm 5 (Stoddard, Chen, Machanavajjhala 2014): noise on the threshold only, and no end. Not private."""

    @cached_property
    def gate(self) -> Gate:
        right = gate_of(threshold_scale=2 / self.epsilon, query_scale=2 / self.epsilon, count=_ENDLESS)
        return replace(right, query_law=_NO_NOISE)


@dataclass(frozen=True, kw_only=True)
class NeverEnding(SparseVector):
    """Algorithm 6 (Chen, Xiao, Zhang, Xu 2015): noise on a question for one crossing, not doubled, and no end. Not
    private."""

    @cached_property
    def gate(self) -> Gate:
        return gate_of(threshold_scale=2 / self.epsilon, query_scale=2 / self.epsilon, count=_ENDLESS)


@dataclass(frozen=True, kw_only=True)
class Resuming(SparseVector):
    """The right noise for `count` crossings, and then it goes on with the same threshold."""

    @cached_property
    def gate(self) -> Gate:
        return replace(super().gate, count=_ENDLESS)
