"""Thresholdout: a holdout set that survives being asked again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import bounds, checks, events, exact, grid
from ..bounds import Bounded
from ..checks import Exact
from ..errors import ArgumentError, PlanError
from ..interactive import Conversation, Interactive, accept_query
from ..laws import RoundedLaplace
from ..plan import Run
from ..questions import ANY_ORDER, COARSE, PRICE
from ..record import record
from ..rows import Rows
from ..schema import Table
from ..units import Unit, rows_or_users
from .thresholds import Gate, GateConversation, GridQuestion, gate_of, in_steps, put_on_grid


@record("plan-thresholdout/1")
@dataclass(frozen=True, kw_only=True)
class Thresholdout(Interactive):
    """Does the holdout agree with the training set? A question is (query, training value), or a query of several
    numbers with as many training values, asked in their order. Where the two are within about `threshold`, the training
    value is the answer, and costs nothing; otherwise the holdout's value is, with noise. After `count` of those it is
    over.

    threshold    how much disagreement is let pass
    sensitivity  the most that one change of the unit moves any number asked; a query that moves further is refused
    tau          the scale of the noise, in the numbers' own units; or say epsilon, the price of the whole session:
                 epsilon = (2 + 3 count) sensitivity/tau
    questions    asked by `release`; in a session, as you go

    Guarantee: epsilon-DP for the holdout's unit, with questions chosen one after the other. (The training set is not
        protected.) So what is learnt from the answers generalises: it fits the holdout hardly better than fresh data.
    Needs: queries with a finite L-infinity sensitivity, such as means and shares of a public number of rows
        (`bounds.share`).
    Paper: Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015; as one sparse vector: Lyu, Su, Li 2017.

    Proof sketch: with s the sensitivity and t a training value, ||t - q(D)| - |t - q(D')|| <= |q(D) - q(D')| <= s, so
    the test "|t - q| - threshold is above the noise" is a sparse vector with values of sensitivity s (sparse_vector.py,
    not monotone): noise tau/2 on the threshold, once, costs 2 s/tau; noise tau on each question costs 2 s/tau for each
    of `count` crossings. A crossing shows the holdout's value with fresh Laplace noise of scale tau: s/tau each. What
    is answered otherwise is the training value, a function of the test's answer. (The paper draws a new threshold after
    each crossing, which costs more and is not needed.)
    """

    threshold: Exact = field(metadata=COARSE)
    sensitivity: Exact = field(metadata=PRICE)
    count: int = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)
    tau: Exact = field(default=None, metadata=PRICE)
    epsilon: Exact = field(default=None, metadata=PRICE)
    questions: tuple[Any, ...] = field(default=(), metadata=ANY_ORDER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", checks.positive(self.threshold, "threshold"))
        object.__setattr__(self, "sensitivity", checks.positive(self.sensitivity, "sensitivity"))
        object.__setattr__(self, "count", checks.whole(self.count, "count", most=10**6))
        rows_or_users(self.protects, "protects")
        if (self.tau is None) == (self.epsilon is None):
            raise ArgumentError("say how much noise in one way: tau, the scale of the noise, or epsilon, the price.")
        if self.tau is not None:
            object.__setattr__(self, "tau", checks.positive(self.tau, "tau"))
            checks.epsilon(1 / self._noise, "sensitivity / tau", warn=False)
            checks.epsilon(self._price / self._noise, "(2 + 3 count) sensitivity / tau")
        else:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
            checks.epsilon(1 / self._noise, "epsilon / (2 + 3 count)", warn=False)
        if not isinstance(self.questions, tuple | list):
            raise checks.refuse("questions", self.questions, "a list of (query, training value)")
        object.__setattr__(self, "questions", tuple(map(_plain, self.questions)))
        _ = self.gate  # noise out of range is refused now, not after the charge
        for question in self.questions:
            self._held(*_split(question))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def agenda(self) -> tuple[Any, ...]:
        return self.questions

    @property
    def _price(self) -> int:
        """In sensitivity/tau: 2 for the threshold, 2 for each crossing, 1 for each number shown."""
        return 2 + 3 * self.count

    @cached_property
    def _noise(self) -> Fraction:
        """tau, in sensitivities."""
        return Fraction(self.tau / self.sensitivity if self.epsilon is None else self._price / self.epsilon)

    @property
    def scale(self) -> float:
        """tau, in the numbers' own units."""
        return float(self._noise * self.sensitivity)

    @property
    def event(self) -> events.Event:
        tests = events.Pure(epsilon=(2 + 2 * self.count) / self._noise, relation=self.unit.change)
        single = events.Laplace(epsilon=1 / self._noise, relation=self.unit.change)
        return events.Sequence((tests, events.Repeat(single, self.count)))

    @cached_property
    def gate(self) -> Gate:
        return gate_of(threshold_scale=self._noise / 2, query_scale=self._noise, count=self.count)

    def answer_law(self, question: GridQuestion) -> RoundedLaplace:
        """The noise of a shown number, in steps of the question."""
        return RoundedLaplace(exact.float_above(question.reach * self._noise))

    def accept(self, question: Any, table: Table) -> HoldoutQuestion:
        query, training = _split(question)
        accept_query(query, self, table)
        return self._held(query, training)

    def _held(self, query: Any, training: Any) -> HoldoutQuestion:
        checks.instance(query, Bounded, "questions", "(query, training value), such as (bounds.share(...), 0.52)")
        if query.unit != self.unit:
            raise ArgumentError(f"the question protects [{query.unit}], the plan protects [{self.unit}].")
        if query.sensitivity.linf * self.unit.group > self.sensitivity:
            raise ArgumentError(
                f"one change of the unit moves the question by up to {query.linf:g}, more than the session's "
                f"sensitivity {float(self.sensitivity):g}."
            )
        on_grid = put_on_grid(
            query, self.threshold, finer=self.gate.finer, answer_scale=self._noise, reach=self.sensitivity
        )
        names = len(query.names)
        steps = in_steps(training, names, on_grid.exponent, "training value")
        return HoldoutQuestion(on_grid, np.broadcast_to(np.asarray(training, dtype=np.float64), (names,)), steps)

    def _begin(self, run: Run) -> Conversation:
        return _Holdout(self, run)

    def finish(self, raw: list[Any]) -> list[Any]:
        """A number, or an array of numbers, for each question."""
        return [answer["values"] for answer in raw]

    def latest(self, answers: list[Any]) -> Any:
        return answers[-1]["values"]

    def overfits(self, raw: list[Any]) -> list[Any]:
        """Which answers came from the holdout, because the training set did not agree with it."""
        return [answer["above"] for answer in raw]

    def error(self, raw: list[Any], alpha: float) -> list[Any]:
        """How far an answer may be from the holdout's own value."""
        return [_shaped(np.where(each["above"], *self._widths(alpha, each["step"])), each) for each in raw]

    def _widths(self, alpha: float, step: float) -> tuple[float, float]:
        """Of a shown number, and of a training value that passed; alpha is shared over the two ways to be wrong."""
        sensitivity = float(self.sensitivity) + 2 * step  # rounded up to the grid
        shown = float(self._noise) * sensitivity * -math.log(alpha / 2) + step
        return shown, float(self.threshold) + self.gate.width(alpha / 2, 1) * sensitivity + 2 * step

    def expected_error(self, alpha: float) -> float:
        """The wider of the two error bars."""
        return max(self._widths(alpha, 0.0))

    def explain(self) -> list[str]:
        return [
            f"put noise of scale {self.scale / 2:.4g} on the threshold {float(self.threshold):.4g}, once",
            f"compare how far holdout and training value differ, with noise of scale {self.scale:.4g} on each question",
            f"answer with the training value where they agree; otherwise, at most {self.count} times, with the "
            f"holdout's value and noise of scale {self.scale:.4g}",
        ]

    @classmethod
    def sample(cls) -> Thresholdout:
        unit = Unit(change="replace")
        old = bounds.share(bounds.count_where(unit, {"age": (65, None)}), 40)
        return cls(threshold=0.1, sensitivity=0.025, count=1, epsilon=1, protects=unit, questions=((old, 0.8),))


@dataclass(frozen=True)
class HoldoutQuestion:
    """An accepted question: on its grid, with its training values, also in steps."""

    on_grid: GridQuestion
    training: NDArray[np.float64]
    steps: Any


class _Holdout(GateConversation):
    def __init__(self, plan: Thresholdout, run: Run) -> None:
        super().__init__(plan.gate, run.noise)
        self._plan = plan

    def answer(self, rows: Rows, question: HoldoutQuestion) -> dict[str, Any]:
        on_grid = question.on_grid
        steps = on_grid.query.steps(rows, on_grid.exponent)
        above = self._above(on_grid, np.abs(steps - question.steps))
        shown = steps[: above.size][above]
        values = question.training[: above.size].copy()
        noisy = shown + self._noise.draw(self._plan.answer_law(on_grid), shown.size)
        values[above] = grid.to_float(noisy, on_grid.exponent)
        step = math.ldexp(1.0, on_grid.exponent)
        if on_grid.single:
            return {"above": bool(above[0]), "values": float(values[0]), "step": step}
        return {"above": above, "values": values, "step": step}


def _split(question: Any) -> tuple[Any, Any]:
    if not isinstance(question, tuple | list) or len(question) != 2:
        raise PlanError("a question is (query, training value)")
    return question[0], question[1]


def _plain(question: Any) -> Any:
    """A question in the form that survives JSON."""
    query, training = _split(question)
    if isinstance(training, np.ndarray | tuple | list):
        return query, tuple(float(checks.bound(each, "training value")) for each in training)
    return query, float(checks.bound(training, "training value"))


def _shaped(widths: NDArray[np.float64], answer: Any) -> Any:
    return float(widths) if isinstance(answer["above"], bool) else widths
