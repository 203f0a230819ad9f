"""How much privacy is lost exactly, where the law of the output is in the plan.

Black-box audits miss small probabilities. Where noise on a grid or a selection among few gives the law, the exact loss
is computed instead, and samples only have to show that what runs follows that law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import events
from ..accounting import gdp
from ..laws import Law, RoundedGaussian
from ..mechanisms.additive import Additive
from ..mechanisms.selection import Selection, win_chances
from ..plan import Plan
from ..rows import Rows
from .counting import Claims, Floats, at_least, at_most
from .neighbours import Pair

_CANDIDATES = 128  # of a selection whose law is computed
_ROUNDING = 1e-9
_LARGEST_EPSILON = 600.0  # beyond, float64 cannot tell e^-epsilon from 0: nothing is shown


def hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    """The least delta at that epsilon between two laws on finitely many values, one direction."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) if epsilon < _LARGEST_EPSILON else 0.0


def pure_loss(law: Law, shifts: Sequence[int]) -> float:
    """max ln P(y)/P'(y) over all outputs y, for independent noise whose centre moves by `shifts` steps.

    Coordinates are independent, so the worst output is worst in every coordinate.
    """
    return sum(_pure_loss(law, abs(int(shift))) for shift in shifts)


def _pure_loss(law: Law, shift: int) -> float:
    if shift == 0:
        return 0.0
    far = max(1, int(500 * law.spread))  # beyond, float64 probabilities vanish: go there in several strides
    if shift > far:
        return shift // far * _pure_loss(law, far) + _pure_loss(law, shift % far)
    k = _places(law, shift, 40)
    here, there = law.pmf(k), law.pmf(k - shift)
    seen = (here > 1e-290) & (there > 1e-290)
    if not seen.any() or bool(((here > 1e-100) & (there == 0)).any()):
        return math.inf
    return float(np.max(np.abs(np.log(here[seen]) - np.log(there[seen]))))


def curve_loss(law: Law, shifts: Sequence[int], epsilons: Sequence[float]) -> list[float]:
    """The delta at each epsilon, for independent noise whose centre moves by `shifts` steps.

    In one coordinate the worst events are tails (all laws here are log-concave, so the likelihood ratio is monotone).
    The Gaussian in several coordinates depends on the Euclidean distance alone; other laws are judged coordinate by
    coordinate, which bounds the loss from below.
    """
    moved = sorted({abs(int(shift)) for shift in shifts} - {0})
    if isinstance(law, RoundedGaussian) and len(shifts) > 1 and moved:
        distance = math.sqrt(sum(int(shift) ** 2 for shift in shifts))
        return [gdp.delta(distance / law.sigma, epsilon) for epsilon in epsilons]
    worst = np.zeros(len(epsilons))
    for shift in moved:
        t = _places(law, shift, 12)
        here, there = law.sf(t - shift), law.sf(t)
        deltas = [float(np.max(here - math.exp(min(e, _LARGEST_EPSILON)) * there)) for e in epsilons]
        worst = np.maximum(
            worst, [delta if e < _LARGEST_EPSILON else 0.0 for e, delta in zip(epsilons, deltas, strict=True)]
        )
    return [float(delta) for delta in worst]


def _places(law: Law, shift: int, spreads: int) -> Floats:
    """Every whole number that matters where they are few, otherwise a mesh, dense at both centres."""
    reach = math.ceil(spreads * law.spread) + 64
    if reach <= 1 << 15 and shift <= 1 << 15:
        return np.arange(-reach, reach + shift + 1, dtype=np.float64)
    near = np.arange(-64.0, 65.0)
    mesh = np.rint(np.linspace(-reach, reach + shift, 1 << 14))
    return np.unique(np.concatenate([near, near + shift, mesh]))


def leaves(plan: Plan[Any, Any]) -> Iterator[Additive | Selection]:
    """The plan, or its children, whose law is known."""
    if isinstance(plan, Additive | Selection):
        yield plan
    for child in plan.children:
        yield from leaves(child)


@dataclass(frozen=True)
class ExactLoss:
    """What was computed beside what is allowed."""

    size: float
    allowed: float
    words: str

    @property
    def broken(self) -> bool:
        return not self.size <= self.allowed * (1 + _ROUNDING) + 1e-12

    @property
    def share(self) -> float:
        return self.size / self.allowed if self.allowed else 0.0

    def __str__(self) -> str:
        return f"{self.words} is {self.size:.6g}, and at most {self.allowed:.6g} is allowed"


def _values(leaf: Additive | Selection, rows: Rows) -> tuple[int, ...]:
    """The query's value in whole steps."""
    exponent = leaf.exponent if isinstance(leaf, Additive) else leaf._exponent
    return tuple(map(int, leaf.query.steps(rows, exponent)))


def _shift(leaf: Additive | Selection, pair: Pair) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(*(_values(leaf, rows) for rows in pair), strict=True))


def movements(leaf: Additive | Selection, pair: Pair) -> Iterator[ExactLoss]:
    """How far the pair moves the query, beside what the query declares, in every norm."""
    shift, query = _shift(leaf, pair), leaf.query
    declared = query.in_steps(leaf.exponent if isinstance(leaf, Additive) else leaf._exponent)
    # As exact shares: whole numbers of steps may be too long for float64.
    yield ExactLoss(float(sum(map(abs, shift)) / declared.l1), 1.0, "the L1 movement, in declared ones,")
    yield ExactLoss(
        float(sum(x * x for x in shift) / declared.l2_squared), 1.0, "the squared L2 movement, in declared ones,"
    )
    yield ExactLoss(float(max(map(abs, shift)) / declared.linf), 1.0, "the L-infinity movement, in declared ones,")
    if query.monotone and query.unit.group == 1:
        both_ways = min(max(shift), -min(shift))
        yield ExactLoss(float(max(both_ways, 0)), 0.0, "the movement both ways of a query that says it is monotone")


def of_pairs(leaf: Additive | Selection, pairs: Sequence[Pair], claims: Claims) -> Iterator[tuple[ExactLoss, str]]:
    """The exact loss of every pair beside every claim, with the change that caused it."""
    if isinstance(leaf, Additive):
        shifts = {_shift(leaf, pair): pair.change for pair in pairs}
        for shift, change in shifts.items():
            yield from ((loss, change) for loss in _additive_losses(leaf, shift, claims))
    elif len(leaf.query.names) <= _CANDIDATES:
        scores = {(_values(leaf, pair.rows), _values(leaf, pair.neighbour)): pair.change for pair in pairs}
        for (here, there), change in scores.items():
            yield from ((loss, change) for loss in _selection_losses(leaf, here, there, claims))


def _additive_losses(leaf: Additive, shift: tuple[int, ...], claims: Claims) -> Iterator[ExactLoss]:
    if 0.0 in claims:
        yield ExactLoss(pure_loss(leaf.law, shift), claims[0.0], "the exact epsilon")
    some = {delta: epsilon for delta, epsilon in claims.items() if delta}
    deltas = curve_loss(leaf.law, shift, list(some.values()))
    for (delta, epsilon), loss in zip(some.items(), deltas, strict=True):
        yield ExactLoss(loss, delta, f"the exact delta at epsilon = {epsilon:.4g}")


def _selection_losses(
    leaf: Selection, here: tuple[int, ...], there: tuple[int, ...], claims: Claims
) -> Iterator[ExactLoss]:
    one, other = (_chances(leaf, scores) for scores in (here, there))
    ratios = np.log(one) - np.log(other)
    if 0.0 in claims:
        yield ExactLoss(float(np.abs(ratios).max()), claims[0.0], "the exact epsilon")
    if isinstance(leaf.event, events.Exponential):
        yield ExactLoss(float(np.ptp(ratios)), float(leaf.event.epsilon), "the range of the log ratios")
    for delta, epsilon in claims.items():
        if delta:
            loss = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))
            yield ExactLoss(loss, delta, f"the exact delta at epsilon = {epsilon:.4g}")


def _chances(leaf: Selection, scores: tuple[int, ...]) -> Floats:
    shares = win_chances(np.array(scores, dtype=np.float64), float(leaf.rate), leaf.noise)
    return np.maximum(shares, 1e-300)  # what vanishes in float64 cannot be compared


def misfits(plan: Plan[Any, Any], rows: Rows, raws: Sequence[Any], alpha: float) -> Iterator[ExactLoss]:
    """How far runs are from the law in the plan; an honest plan has a broken one with chance at most alpha."""
    if isinstance(plan, Additive):
        steps = np.array(_values(plan, rows), dtype=np.float64)
        noise = np.rint(np.ldexp(np.array(raws), -plan.exponent)) - steps
        for name, column in zip(plan.query.names, noise.T, strict=True):
            gap, allowed = misfit(column, plan.law, alpha / len(plan.query.names))
            yield ExactLoss(gap, allowed, f"the gap between the noise on {name!r} and plan.law")
    elif isinstance(plan, Selection) and len(plan.query.names) <= _CANDIDATES:
        chances, share = _chances(plan, _values(plan, rows)), alpha / (2 * len(plan.query.names))
        wins = np.bincount(raws, minlength=chances.size)
        low, high = at_least(wins, len(raws), share), at_most(wins, len(raws), share)
        for i, name in enumerate(plan.query.names):
            yield ExactLoss(float(low[i]), float(chances[i]), f"the share of wins of {name!r}, given plan.rate,")
            yield ExactLoss(
                float(1 - high[i]), float(1 - chances[i]), f"the share of losses of {name!r}, given plan.rate,"
            )


def misfit(noise: NDArray[Any], law: Law, alpha: float) -> tuple[float, float]:
    """How far draws are from their law (the largest gap between the cdfs), and the gap that an honest sampler exceeds
    with probability at most alpha (Dvoretzky-Kiefer-Wolfowitz with Massart's constant)."""
    values, counts = np.unique(noise.astype(np.float64), return_counts=True)
    after = np.cumsum(counts) / noise.size
    before = after - counts / noise.size
    gap = max(float(np.max(np.abs(after - law.cdf(values)))), float(np.max(np.abs(before - law.cdf(values - 1)))))
    return gap, math.sqrt(math.log(2 / alpha) / (2 * noise.size))
