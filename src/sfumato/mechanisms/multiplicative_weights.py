"""Private multiplicative weights: counting queries asked one after the other; only the surprising ones cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .. import bounds, checks, events, exact, grid
from ..bounds import Bounded
from ..bounds.measured import cell_moves
from ..checks import Exact
from ..errors import ArgumentError, PlanError
from ..interactive import Conversation, Interactive
from ..laws import SCALES, RoundedLaplace
from ..plan import Run
from ..questions import ANY_ORDER, COARSE, PRICE
from ..record import record
from ..rows import Rows
from ..schema import Table
from ..units import Unit
from .sparse_vector import SparseVector
from .synthetic import Floats, Synthetic, Whole, answers, check_cells, check_total, coarsest, far_off, reach
from .thresholds import Gate, GateConversation, GridQuestion

_BITS = 16  # weights are whole multiples of 2^-16
_FINER = 30  # a step is at least 2^-30 of the noise of a measurement
_QUESTIONS = 1000  # how many the usual threshold is made for
SYNTHETIC, MEASURED, UNCHECKED = "synthetic", "measured", "unchecked"


@record("plan-multiplicative-weights/1")
@dataclass(frozen=True, kw_only=True)
class PrivateMultiplicativeWeights(Interactive):
    """Counting queries of a histogram's cells, as many as you like, each chosen after seeing the answers before. A
    question is a weight from 0 to 1 for every cell. A made-up histogram answers, unless its answer is further than
    about `threshold` rows off: then the answer is measured, with noise, and the histogram learns it. After `updates` of
    those the histogram answers on its own, unchecked.

    query      the cells, such as bounds.histogram(...) or bounds.cross(...)
    threshold  in rows; without one, just above the noise of the test
    total      the number of rows where it is public (replace, zero-out); otherwise it is measured too
    questions  asked by `release`; in a session, as you go

    Guarantee: epsilon-DP, for questions chosen one after the other: half for the tests, half for the measurements (and
        the number of rows).
    Needs: cells that each row is in one of, known in public.
    Paper: Hardt, Rothblum 2010; with the sparse vector of Lyu, Su, Li 2017 and the update of Hardt, Ligett, McSherry
        2012.

    Proof sketch: the made-up histogram is a function of earlier answers. Put on the grid its answer is a constant g, so
    the distance |<w, x> - g| moves between neighbours by at most D, the most that a unit moves <w, x>. "Is it above the
    threshold?" is one question of a sparse vector with `updates` crossings (sparse_vector.py, not monotone), however
    many are asked. A crossing is followed by <w, x> with fresh Laplace noise, at most `updates` times, and after the
    last one nothing looks at the data again. Answers of the histogram are post-processing. Interactive mechanisms
    compose like others (Vadhan, Wang 2021; Vadhan, Zhang 2023).
    """

    query: Bounded
    epsilon: Exact = field(metadata=PRICE)
    updates: int = field(metadata=PRICE)
    threshold: Exact = field(default=None, metadata=COARSE)
    total: int | None = field(default=None, metadata=PRICE)
    passes: int = field(default=8, metadata=PRICE)
    questions: tuple[tuple[Exact, ...], ...] = field(default=(), metadata=ANY_ORDER)
    family = "synthetic"
    boxes = (16,)  # synthetic data

    def __post_init__(self) -> None:
        check_cells(self.query)
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        object.__setattr__(self, "updates", checks.whole(self.updates, "updates", most=1000))
        object.__setattr__(self, "passes", checks.whole(self.passes, "passes", most=100))
        object.__setattr__(self, "total", check_total(self.query, self.total))
        _ = self.event, self.law  # parts too small to be priced or drawn are refused now
        if self.threshold is not None:
            object.__setattr__(self, "threshold", checks.positive(self.threshold, "threshold"))
        if not isinstance(self.questions, tuple | list | np.ndarray):
            raise checks.refuse("questions", self.questions, "a list of questions, each with a weight for every cell")
        object.__setattr__(self, "questions", tuple(self._exactly(question) for question in self.questions))

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    def agenda(self) -> tuple[Any, ...]:
        return self.questions

    @cached_property
    def _tests(self) -> SparseVector:
        """The sparse vector that decides whether to measure."""
        return SparseVector(epsilon=self.epsilon / 2, protects=self.unit, count=self.updates)

    @property
    def _part(self) -> Fraction:
        """The epsilon of one measurement."""
        return self.epsilon / 2 / (self.updates + (self.total is None))

    @property
    def event(self) -> events.Event:
        measured = events.Laplace(epsilon=self._part, relation=self.unit.change)
        return events.Sequence(
            (self._tests.event, events.Repeat(measured, self.updates + (self.total is None))),
        )

    @property
    def gate(self) -> Gate:
        return self._tests.gate

    @cached_property
    def exponent(self) -> int:
        """The grid step of answers is 2^exponent: no finer than the noise needs."""
        noise = grid.floor_log2(cell_moves(self.query, 0).steps / self._part)
        return min(max(coarsest(self.query, _BITS), noise - _FINER), -_BITS)

    @cached_property
    def moved(self) -> Fraction:
        """The most that one change of the unit moves any answer, in steps: weights are from 0 to 1."""
        return reach(self.query, self.exponent + _BITS, np.array([[1 << _BITS]]))

    @cached_property
    def law(self) -> RoundedLaplace:
        """The noise of a measurement, in steps."""
        scale = self.moved / self._part
        if scale > SCALES[1] / 2 or self.moved * self.gate.finer >= 2**61:
            raise ArgumentError("the noise would be out of all proportion to a row: give a larger epsilon.")
        return RoundedLaplace(exact.float_above(scale))

    @cached_property
    def _threshold(self) -> Fraction:
        """In steps."""
        if self.threshold is not None:
            return grid.steps(self.threshold, self.exponent)
        return Fraction(self.gate.width(0.05, _QUESTIONS)) * self.moved

    @cached_property
    def test(self) -> GridQuestion:
        """How a distance, in steps, is compared with the threshold."""
        return GridQuestion(self.query, self.exponent, math.ceil(self.moved), min(math.ceil(self._threshold), 2**61))

    def accept(self, question: Any, table: Table) -> Whole:
        try:
            weights = self._exactly(question)
        except ArgumentError as problem:
            raise PlanError(str(problem)) from None
        return np.array([round(weight * (1 << _BITS)) for weight in weights], dtype=np.int64)

    def _exactly(self, question: Any) -> tuple[Fraction, ...]:
        entries = question.tolist() if isinstance(question, np.ndarray) else question
        allowed = f"{self.query.size} weights from 0 to 1, one for every cell"
        if not isinstance(entries, tuple | list) or len(entries) != self.query.size:
            raise checks.refuse("question", "...", allowed)
        fractions: dict[Any, Fraction] = {}
        weights = []
        for weight in entries:
            key = (type(weight), weight) if isinstance(weight, int | float | Fraction) else None
            if key is None or key not in fractions:
                number = checks.rational(weight, "question", allowed)
                if not 0 <= number <= 1:
                    raise checks.refuse("question", weight, allowed)
                fractions[key] = number
            weights.append(fractions[key])
        return tuple(weights)

    def _begin(self, run: Run) -> Conversation:
        return _Learning(self, run)

    def finish(self, raw: list[Any]) -> list[float]:
        return [float(answer["value"]) for answer in raw]

    def latest(self, answers: list[Any]) -> float:
        return float(answers[-1]["value"])

    def error(self, raw: list[Any], alpha: float) -> list[float | None]:
        """Of each answer by itself; None where nothing was checked any more."""
        widths = {
            SYNTHETIC: self.accuracy(alpha),
            MEASURED: math.ldexp(self.law.half_width(alpha) + 0.5, self.exponent),
            UNCHECKED: None,
        }
        return [widths[answer["from"]] for answer in raw]

    def accuracy(self, alpha: float, questions: int = 1) -> float:
        """With chance 1 - alpha, none of so many answers of the checked histogram is further off, in rows."""
        width = Fraction(self.gate.width(alpha, checks.whole(questions, "questions"))) * math.ceil(self.moved)
        return math.ldexp(float(width + math.ceil(self._threshold)) + 1, self.exponent)

    def expected_error(self, alpha: float) -> float | None:
        return self.accuracy(alpha, max(len(self.questions), 1))

    def explain(self) -> list[str]:
        far = math.ldexp(float(self._threshold), self.exponent)
        return [
            ("measure the number of rows" if self.total is None else f"take {self.total} rows as public")
            + f", and start from a uniform histogram of {self.query.size} cells",
            f"answer from it, and test whether it is about {far:.4g} rows off; until it was so {self.updates} "
            f"times (epsilon {float(self._tests.epsilon):.4g} in all)",
            f"then measure, with Laplace noise of scale {math.ldexp(self.law.scale, self.exponent):.4g}, and let the "
            f"histogram learn (epsilon {float(self._part):.4g} each)",
        ]

    @classmethod
    def sample(cls) -> PrivateMultiplicativeWeights:
        wards, questions = bounds.histogram("ward", ("east", "north", "west"), Unit()), ((1, 0, 0.5), (1, 1, 0))
        return cls(query=wards, epsilon=2, updates=1, threshold=3, passes=2, questions=questions)


class _Learning(GateConversation):
    """The made-up histogram beside the gate. It answers on when no updates are left."""

    def __init__(self, plan: PrivateMultiplicativeWeights, run: Run) -> None:
        super().__init__(plan.gate, run.noise)
        self._plan = plan
        self._made: Synthetic | None = None

    @property
    def over(self) -> bool:
        return False

    def answer(self, rows: Rows, question: Whole) -> dict[str, Any]:
        plan = self._plan
        weights: Floats = np.ldexp(question.astype(np.float64), -_BITS)
        if self._made is not None and not self._left[0]:  # nothing looks at the data again
            return {"value": float(self._made.answer(weights)), "from": UNCHECKED}
        cells = plan.query.steps(rows, plan.exponent + _BITS)
        histogram = self._made or self._start(cells)
        guess = float(histogram.answer(weights))
        truth = answers(cells, question)
        off = far_off(truth, np.array(guess), plan.exponent)
        if not self._above(plan.test, off)[0]:
            return {"value": guess, "from": SYNTHETIC}
        value = self._measured(truth)
        histogram.learn(weights, value)
        return {"value": value, "from": MEASURED}

    def _start(self, cells: Any) -> Synthetic:
        plan = self._plan
        if plan.total is not None:
            total = float(plan.total)
        else:
            ones = np.full(plan.query.size, 1 << _BITS, dtype=np.int64)
            total = self._measured(answers(cells, ones))
        self._made = Synthetic(plan.query.size, total, plan.passes)
        return self._made

    def _measured(self, exactly: Any) -> float:
        noisy = exactly + self._noise.draw(self._plan.law, 1)
        return float(grid.to_float(noisy, self._plan.exponent)[0])
