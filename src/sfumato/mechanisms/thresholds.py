"""Above or below: what SparseVector and Thresholdout share. One noisy threshold, fresh noise per question, an end.

Questions of different sensitivities are put on one scale, exactly. A question's value x and threshold t are whole steps
of its own grid, and one change of the unit moves x by at most D whole steps (the sensitivity in steps, rounded up). The
gate sees
    w = floor((x - t) K / D),  in units of 1/K of a sensitivity, with K whole.
As floor(a + K) = floor(a) + K, x <= x' <= x + D gives w <= w' <= w + K: on neighbours w moves by at most K whole steps,
in the direction in which x moved. Noise is whole too, so every shift in the proof is a whole number of steps.
Where a proof goes by single changes of a group of g (`parts`), D and K are whole multiples of g: then a single change,
which moves x by at most D/g, moves w by at most K/g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact, grid
from ..bounds import Bounded
from ..errors import ArgumentError
from ..interactive import Conversation
from ..laws import SCALES, DiscreteLaplace, Integers, Law
from ..noise import Noise

Answers = NDArray[np.int8]
ABOVE, NOT_ASKED = 1, -1

_FINER = 24  # a step of a question is about 2^-24 of its sensitivity
_FINER_GATE = 10  # a step of the gate is about 2^-10 of the threshold's noise
_WIDE = 2**61


@dataclass(frozen=True)
class Gate:
    """The laws of the noise, in steps of which `finer` make one sensitivity, and after how many crossings it ends."""

    finer: int
    threshold_law: Law
    query_law: Law
    count: int

    def begin(self, noise: Noise, trials: int = 1) -> Integers:
        """The noise on the threshold: drawn once for the whole conversation (of each trial)."""
        return noise.draw(self.threshold_law, trials)

    def noisy(self, values: Integers, trials: int, noise: Noise) -> Integers:
        """The values with fresh noise on each, anew for each trial. Only `told` may see them."""
        return values + noise.draw(self.query_law, trials * values.size).reshape(trials, values.size)

    def compare(self, noisy: Integers, threshold: Integers, left: Integers) -> Answers:
        """ABOVE or 0 for each value in turn, NOT_ASKED after the last crossing that is left.

        `threshold` and `left` have an entry for each row of `noisy`: a conversation is one row, audits look at many.
        """
        over = noisy >= threshold[:, None]
        before: Integers = np.cumsum(over, axis=1) - over
        return np.where(before < left[:, None], over, NOT_ASKED).astype(np.int8)

    def answer(self, values: Integers, threshold: Integers, left: Integers, noise: Noise) -> NDArray[np.bool_]:
        """One conversation's answers: which values are above, as far as it goes."""
        verdict = self.compare(self.noisy(values, 1, noise), threshold, left)[0]
        return np.asarray(verdict[verdict != NOT_ASKED] == ABOVE)

    def width(self, alpha: float, questions: int) -> float:
        """In sensitivities: with chance 1 - alpha, of so many questions none is answered above that lies further than
        this below its threshold, and none below that lies further above it. (One noise of threshold, a union bound
        over the others, and a step for rounding.)"""
        share = alpha / 2
        steps = self.threshold_law.half_width(share) + self.query_law.half_width(share / questions) + 1
        return steps / self.finer


class GateConversation(Conversation):
    """One conversation at a gate: its noisy threshold, and how many crossings are left."""

    def __init__(self, gate: Gate, noise: Noise) -> None:
        self._gate, self._noise = gate, noise
        self._threshold = gate.begin(noise)
        self._left = np.array([gate.count])

    @property
    def over(self) -> bool:
        return not self._left[0]

    def _above(self, question: GridQuestion, steps: Any) -> NDArray[np.bool_]:
        """Which of the numbers are above, as far as the conversation goes; those that are, count."""
        values = question.in_units(steps, self._gate.finer)
        above = self._gate.answer(values, self._threshold, self._left, self._noise)
        self._left -= int(above.sum())
        return above


def gate_of(*, threshold_scale: Fraction, query_scale: Fraction, count: int, parts: int = 1) -> Gate:
    """The gate whose noise has these scales, in sensitivities, rounded up to what is drawn."""
    finer = _multiple(1 << min(max(0, _FINER_GATE - grid.floor_log2(threshold_scale)), 16), parts)
    scales = [exact.float_above(finer * scale) for scale in (threshold_scale, query_scale)]
    if max(scales) > SCALES[1]:
        raise ArgumentError(
            "the noise would be more than 10^12 sensitivities: give a larger epsilon or a smaller count."
        )
    return Gate(finer, DiscreteLaplace(scales[0]), DiscreteLaplace(scales[1]), count)


@dataclass(frozen=True)
class GridQuestion:
    """A question on its grid: 2^exponent to a step, `reach` whole steps of sensitivity, thresholds in steps."""

    query: Bounded
    exponent: int
    reach: int
    thresholds: Any

    @property
    def single(self) -> bool:
        return len(self.query.names) == 1

    def in_units(self, steps: Any, finer: int) -> Integers:
        """floor((steps - threshold) * finer / reach), clamped beyond all noise; clamping keeps order and distance."""
        most = _WIDE // max(self.reach, finer) * self.reach
        over = np.clip(steps - self.thresholds, -most, most).astype(np.int64)
        whole, rest = over // self.reach, over % self.reach
        return np.asarray(whole * finer + rest * finer // self.reach)


def put_on_grid(
    query: Bounded,
    threshold: Any,
    *,
    finer: int,
    answer_scale: Fraction | None = None,
    reach: Fraction | None = None,
    parts: int = 1,
) -> GridQuestion:
    """The query on a grid chosen from public fields.

    answer_scale  the noise on shown values, in sensitivities, which must be drawable on that grid
    reach         a sensitivity at least as large as the query's own, to be used in its place
    parts         the sensitivity is a whole multiple of so many steps
    """
    exponent, steps = _grid(query, finer, answer_scale, reach, parts)
    return GridQuestion(query, exponent, steps, in_steps(threshold, len(query.names), exponent, "threshold"))


@lru_cache(maxsize=256)
def _grid(
    query: Bounded, finer: int, answer_scale: Fraction | None, reach: Fraction | None, parts: int
) -> tuple[int, int]:
    """The exponent of the grid, and the sensitivity in its steps, rounded up."""
    if query.combined != 1 or query.mixing is not None:
        raise ArgumentError(
            "a question's numbers are compared with a threshold one by one: ask for a count, a sum or a histogram, "
            "whose numbers stand for themselves."
        )
    own = query.sensitivity.linf * query.unit.group
    if own <= 0:
        raise ArgumentError("nobody can move this question's answer: it needs no privacy.")
    moved = own if reach is None else reach
    exponent = max(grid.floor_log2(moved) - _FINER, grid.finest(query.largest))
    if answer_scale is not None:
        exponent = max(exponent, grid.floor_log2(moved * answer_scale) - 38)
    if query.coarsest is not None:
        exponent = min(exponent, query.coarsest)
    steps = _multiple(max(query.in_steps(exponent).linf, grid.steps(moved, exponent)), parts)
    if steps * finer >= _WIDE or (answer_scale is not None and steps * answer_scale > SCALES[1]):
        raise ArgumentError("the noise would be more than 10^11 times a row's value: give a larger epsilon.")
    return exponent, steps


def _multiple(number: Fraction | int, of: int) -> int:
    """The least whole multiple that is not below."""
    return of * math.ceil(Fraction(number) / of)


def in_steps(public: Any, length: int, exponent: int, name: str) -> Any:
    """A public number, or one for each of the query's numbers, to the nearest step."""
    allowed = "a finite number" + (f", or {length} of them" if length > 1 else "")
    if isinstance(public, np.ndarray | tuple | list):
        numbers = public if isinstance(public, np.ndarray) else np.array([_number(each, name) for each in public])
        if numbers.shape != (length,) or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise checks.refuse(name, public, allowed)
    else:
        numbers = np.array(_number(public, name))
    with np.errstate(over="ignore", under="ignore"):
        steps = np.rint(np.ldexp(numbers.astype(np.float64), -exponent))
    return np.clip(steps, -float(_WIDE), float(_WIDE)).astype(np.int64)


def _number(public: Any, name: str) -> float:
    return float(checks.bound(public, name))
