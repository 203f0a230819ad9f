"""Sparse vector: which of many questions lie above a threshold, paid for by those that do."""

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
from ..bounds.base import Counting
from ..checks import Exact
from ..errors import ArgumentError, PlanError
from ..interactive import Conversation, Interactive, accept_query
from ..laws import RoundedLaplace
from ..noise import Noise
from ..plan import Run
from ..questions import ANY_ORDER, COARSE, PRICE
from ..record import record
from ..rows import Rows
from ..runs import Bulk, sizes
from ..schema import Table
from ..units import Unit, rows_or_users
from .thresholds import Gate, GateConversation, GridQuestion, gate_of, put_on_grid

_ROOT_BITS = 20


@record("plan-sparse-vector/1")
@dataclass(frozen=True, kw_only=True)
class SparseVector(Interactive):
    """Ask as many questions as you like whether they lie above a threshold; `count` of them may be answered "above",
    then it is over. With `answers_epsilon` each of those also gets a number, with noise of its own.

    A question is a bounded query, or (query, threshold). Its numbers are asked one after the other, each in its own
    sensitivity: one number a question, or a whole histogram at once.

    Guarantee: epsilon-DP, for questions chosen one after the other; with numbers, and count releases of Laplace noise,
        answers_epsilon/count each.
    Needs: queries with a finite L-infinity sensitivity, which they carry. `monotone=True` halves the noise and takes
        only counts and histograms under add-remove or zero-out.
    Paper: Lyu, Su, Li 2017 (algorithm 7); Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Dwork, Roth 2014.

    Proof sketch. Values are in sensitivities (thresholds.py: neighbours differ by at most 1, in whole steps). rho has
    scale 1/eps1 and is drawn once, nu_i has scale 2 count/eps2 and is fresh; "above" is u_i + nu_i >= rho. Given
    rho = z the answers are independent, and questions depend on answers alone, so
        P(a) = sum_z P(rho = z) prod_below P(nu_i < z - u_i) prod_above P(nu_i >= z - u_i).
    On the neighbour put z + 1 for z. P(rho = z) <= e^eps1 P(rho = z + 1). Below: u'_i <= u_i + 1, so nu_i < z - u_i
    implies nu_i < z + 1 - u'_i, and the factor does not fall, however many there are. Above: z + 1 - u'_i exceeds
    z - u_i by at most 2, so the factor falls by at most e^(2 eps2 / (2 count)), and there are at most `count` of them.
    Together e^(eps1 + eps2). Monotone: scale count/eps2 suffices. Where all u'_i >= u_i, the same shift moves
    z - u_i by at most 1; where all u'_i <= u_i no shift of z is needed: below cannot fall, above moves by at most 1.
    (So all questions must rise together when a unit joins: counts do.) In a group some may join while others leave,
    which is a chain of single changes: each moves values by at most 1/group and costs epsilon/group.
    eps1 : eps2 = 1 : (2 count)^(2/3), or count^(2/3), which makes the noise of the comparison least. Numbers: the
    noise of the comparison is never shown; each number is a Laplace release, at most `count` of them, and interactive
    mechanisms compose like others (Vadhan, Wang 2021; Vadhan, Zhang 2023).
    """

    epsilon: Exact = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)
    threshold: Exact = field(default=Fraction(0), metadata=COARSE)
    count: int = field(default=1, metadata=PRICE)
    questions: tuple[Any, ...] = field(default=(), metadata=ANY_ORDER)
    answers_epsilon: Exact = field(default=None, metadata=PRICE)
    monotone: bool = field(default=False, metadata=PRICE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        rows_or_users(self.protects, "protects")
        object.__setattr__(self, "threshold", checks.bound(self.threshold, "threshold"))
        object.__setattr__(self, "count", checks.whole(self.count, "count", most=10**6))
        if self.answers_epsilon is not None:
            object.__setattr__(self, "answers_epsilon", checks.epsilon(self.answers_epsilon, "answers_epsilon"))
            checks.epsilon(self.answers_epsilon / self.count, "answers_epsilon / count", warn=False)
        if not isinstance(self.monotone, bool):
            raise checks.refuse("monotone", self.monotone, "True or False")
        if self.monotone and self.unit.change == "replace":
            raise checks.refuse("monotone", True, "False: one count rises and another falls where a unit is replaced")
        if not isinstance(self.questions, tuple | list):
            raise checks.refuse("questions", self.questions, "a list of queries, or of (query, threshold)")
        object.__setattr__(self, "questions", tuple(map(_plain, self.questions)))
        _ = self.gate  # noise out of range is refused now, not after the charge
        for question in self.questions:
            self._asked(*self._split(question))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def agenda(self) -> tuple[Any, ...]:
        return self.questions

    @property
    def event(self) -> events.Event:
        tests = events.Pure(epsilon=self.epsilon, relation=self.unit.change)
        if self.answers_epsilon is None:
            return tests
        single = events.Laplace(epsilon=self.answers_epsilon / self.count, relation=self.unit.change)
        return events.Sequence((tests, events.Repeat(single, self.count)))

    @cached_property
    def shares(self) -> tuple[Fraction, Fraction]:
        """eps1 for the threshold, eps2 for the questions; together epsilon."""
        ratio = Fraction(_cube_root((self._moves * self.count) ** 2 << 3 * _ROOT_BITS), 1 << _ROOT_BITS)
        first = self.epsilon / (1 + ratio)
        return first, self.epsilon - first

    @property
    def _moves(self) -> int:
        """By how many sensitivities a comparison moves, at most."""
        return 1 if self.monotone else 2

    @cached_property
    def gate(self) -> Gate:
        first, second = self.shares
        return gate_of(
            threshold_scale=1 / first,
            query_scale=self._moves * self.count / second,
            count=self.count,
            parts=self._parts,
        )

    @property
    def _parts(self) -> int:
        """Of a group, one by one, only where that is how the proof goes."""
        return self.unit.group if self.monotone else 1

    @property
    def _answer_scale(self) -> Fraction | None:
        """The noise of a number, in sensitivities."""
        return None if self.answers_epsilon is None else self.count / self.answers_epsilon

    def answer_law(self, question: GridQuestion) -> RoundedLaplace | None:
        """The noise of a number, in steps of the question."""
        scale = self._answer_scale
        return None if scale is None else RoundedLaplace(exact.float_above(question.reach * scale))

    def accept(self, question: Any, table: Table) -> GridQuestion:
        query, threshold = self._split(question)
        accept_query(query, self, table)
        return self._asked(query, threshold)

    def _split(self, question: Any) -> tuple[Any, Any]:
        if isinstance(question, tuple | list):
            if len(question) != 2:
                raise PlanError("a question is a bounded query, or (query, threshold)")
            return question[0], question[1]
        return question, self.threshold

    def _asked(self, query: Any, threshold: Any) -> GridQuestion:
        checks.instance(query, Bounded, "questions", "bounded queries, such as bounds.count(unit)")
        if query.unit != self.unit:
            raise ArgumentError(f"the question protects [{query.unit}], the plan protects [{self.unit}].")
        if self.monotone and not (isinstance(query, Counting) and query.monotone):
            raise ArgumentError("with monotone=True only counts and histograms are asked: they rise together.")
        return put_on_grid(query, threshold, finer=self.gate.finer, answer_scale=self._answer_scale, parts=self._parts)

    def _begin(self, run: Run) -> Conversation:
        return _Watch(self, run)

    @property
    def bulk(self) -> Bulk:
        """Where it only says above or below, by the code that all of them share."""
        kind: Any = type(self)
        shared = kind._begin is SparseVector._begin and kind._run is SparseVector._run
        return "fresh" if shared and self.answers_epsilon is None else "no"

    def _runs(self, rows: Rows, run: Run, count: int) -> Any:
        if self.bulk == "no":
            return super()._runs(rows, run, count)
        return np.concatenate([self._conversations(rows, run.noise, size) for size in sizes(count)])

    def _conversations(self, rows: Rows, noise: Noise, trials: int) -> NDArray[np.float64]:
        """What its own questions are told in so many conversations at once: one noisy threshold each, fresh noise on
        every question, and after the last crossing nothing is asked."""
        gate = self.gate
        threshold, left = gate.begin(noise, trials), np.full(trials, gate.count, dtype=np.int64)
        verdicts = []
        for question in self._accepted(rows.table):
            values = question.in_units(question.query.steps(rows, question.exponent), gate.finer)
            answers = gate.compare(gate.noisy(values, trials, noise), threshold, left)
            left = left - np.sum(answers == 1, axis=1)
            verdicts.append(answers)
        return np.concatenate(verdicts, axis=1).astype(np.float64)

    def finish(self, raw: list[Any]) -> list[Any]:
        """True or False; with numbers, the number or None. A list of them for a question of several numbers."""
        return [_finished(answer, "values") for answer in raw]

    def latest(self, answers: list[Any]) -> Any:
        return _finished(answers[-1], "values")

    def error(self, raw: list[Any], alpha: float) -> list[Any] | None:
        if self.answers_epsilon is None:
            return None
        widths = [{**answer, "values": np.full(len(answer["values"]), _width(answer, alpha))} for answer in raw]
        return [_finished(answer, "values") for answer in widths]

    def accuracy(self, alpha: float, questions: int = 1) -> float:
        """In sensitivities: with chance 1 - alpha, of so many numbers asked none is answered "above" that lies further
        than this below its threshold, and none "below" that lies further than this above it."""
        if not 0 < alpha < 1:
            raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
        return self.gate.width(alpha, checks.whole(questions, "questions"))

    def expected_error(self, alpha: float) -> float | None:
        """How far from its threshold a number of the plan's own questions may lie and be told on the wrong side."""
        if not self.questions:
            return None
        queries = [self._split(question)[0] for question in self.questions]
        return self.accuracy(alpha, sum(len(query.names) for query in queries)) * max(query.linf for query in queries)

    def explain(self) -> list[str]:
        first, second = map(float, self.shares)
        steps = [
            f"put noise of scale {1 / first:.4g} sensitivities on the threshold, once (epsilon {first:.4g})",
            f"put fresh noise of scale {self._moves * self.count / second:.4g} sensitivities on each question, and "
            f"tell only whether it is above; end after {self.count} of them (epsilon {second:.4g})",
        ]
        if self._answer_scale is not None:
            steps.append(
                f"give those a number each, with new noise of scale {float(self._answer_scale):.4g} sensitivities"
            )
        return steps

    @classmethod
    def sample(cls) -> SparseVector:
        rows = Unit()
        questions = ((bounds.histogram("ward", ("east", "north", "west"), rows), 1), bounds.count(rows))
        return cls(epsilon=1, protects=rows, threshold=2, questions=questions)


class _Watch(GateConversation):
    def __init__(self, plan: SparseVector, run: Run) -> None:
        super().__init__(plan.gate, run.noise)
        self._plan = plan

    def answer(self, rows: Rows, question: GridQuestion) -> dict[str, Any]:
        steps = question.query.steps(rows, question.exponent)
        above = self._above(question, steps)
        answers: dict[str, Any] = {"above": bool(above[0]) if question.single else above}
        law = self._plan.answer_law(question)
        if law is None:
            return answers
        crossed = steps[: above.size][above]
        noisy = crossed + self._noise.draw(law, crossed.size)
        step = math.ldexp(1.0, question.exponent)
        return answers | {"values": grid.to_float(noisy, question.exponent), "scale": law.scale * step, "step": step}


def _plain(question: Any) -> Any:
    """A question in the form that survives JSON: a query, or a tuple of query and exact threshold."""
    if not isinstance(question, tuple | list) or len(question) != 2:
        return question
    query, threshold = question
    if isinstance(threshold, np.ndarray | tuple | list):
        return query, tuple(checks.bound(each, "threshold") for each in threshold)
    return query, checks.bound(threshold, "threshold")


def _finished(answer: Any, values: str) -> Any:
    above, numbers = answer["above"], answer.get(values)
    if numbers is None:
        return bool(above) if isinstance(above, bool) else above.tolist()
    rest = iter(numbers.tolist())
    released = [next(rest) if each else None for each in np.atleast_1d(above)]
    return released[0] if isinstance(above, bool) else released


def _width(answer: Any, alpha: float) -> float:
    """P(|noise| > width) <= alpha, from the scale and the step that were written beside the numbers."""
    return float(answer["scale"] * -math.log(alpha) + answer["step"])


def _cube_root(n: int) -> int:
    """The largest whole number whose cube is at most n."""
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle)
    return low
