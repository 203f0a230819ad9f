"""F1, the least significant bits: Mironov, "On significance of the least significant bits for differential privacy"
(CCS 2012).

Textbook noise `f + b * log(u)` in float64 does not reach every float, and which floats it reaches depends on f: a value
below 1/2 with bits finer than 2^-53 cannot come from f = 1, and comes from f = 0 a quarter of the time. One answer then
tells the neighbours apart, whatever epsilon was promised.

The attack looks at every answer's magnitude and lowest set bit, relative to the sensitivity, and asks of each event
    {magnitude m, lowest bit g},  {magnitude <= m, lowest bit < g},  {magnitude m, last three bits b}
how much likelier it is under one neighbour. Clopper-Pearson bounds, shared over all events, both directions and all
scales, give an epsilon that the target certainly exceeds; above the promise, the target is broken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.counting import at_least, at_most

from .bitwise import Integers, lowest_bit, magnitude
from .targets import EVERY, Floats, Target
from .verdict import FALSE_ALARM, Verdict

RELEASES = 200_000
_MAGNITUDES = (-14, 6)  # octaves around the sensitivity
_LOWEST = (-110, 8)
_JUDGED = 24  # events per direction that get bounds: the most telling ones by eye


@dataclass(frozen=True)
class ShownEpsilon:
    """The most telling event found: the epsilon it proves."""

    epsilon: float
    event: str


def attack(
    targets: Sequence[Target] = EVERY,
    *,
    releases: int = RELEASES,
    sensitivities: tuple[float, ...] | None = None,
) -> Verdict:
    """Neighbours f = 0 and f = sensitivity, at every scale that a target is to be tried at."""
    trials = [(t, s) for t in targets for s in (sensitivities or t.sensitivities)]
    alpha = FALSE_ALARM / len(trials)
    figures, worst, broken = {}, "", []
    for target, sensitivity in trials:
        pair = [target.release(value, sensitivity, releases) for value in (0.0, sensitivity)]
        shown = most_telling(pair[0], pair[1], sensitivity, delta=target.delta, alpha=alpha)
        figures[f"{target.name}, sensitivity {sensitivity:g}: epsilon at least"] = shown.epsilon
        if shown.epsilon > target.epsilon * (1 + 1e-9):
            broken.append(sensitivity)
            worst = worst or f"{target.name} at sensitivity {sensitivity:g} shows it by {shown.event}"
    text = (
        f"The low bits give neighbours away at {len(broken)} of {len(trials)} scales: {worst}."
        if broken
        else f"The low bits of {releases} releases at {len(trials)} scales prove no epsilon above the promise."
    )
    return Verdict("F1", bool(broken), text, figures)


def most_telling(zero: Floats, one: Floats, sensitivity: float, *, delta: float, alpha: float) -> ShownEpsilon:
    """The largest epsilon proven by any event in either direction, wrong with chance at most alpha."""
    names, counts = zip(*(_events(y, sensitivity) for y in (zero, one)), strict=True)
    share = alpha / (4 * counts[0].size)  # two directions, two bounds each
    proofs = [ShownEpsilon(0.0, "nothing")]
    for here, there in ((0, 1), (1, 0)):
        hits, others = counts[here].astype(np.float64), counts[there].astype(np.float64)
        sizes = (zero.size, one.size)
        promising = (hits - 7 * np.sqrt(hits + 1)) / (others + 7 * np.sqrt(others + 1) + 25)
        chosen = np.argsort(promising)[-_JUDGED:]
        low = at_least(hits[chosen], sizes[here], share) - delta
        high = at_most(others[chosen], sizes[there], share)
        with np.errstate(divide="ignore", invalid="ignore"):
            proven = np.where(low > 0, np.log(low / high), 0.0)
        best = int(np.argmax(proven))
        event = int(chosen[best])
        proofs.append(
            ShownEpsilon(max(0.0, float(proven[best])), f"[{names[0][event]}] {hits[event]:g} to {others[event]:g}")
        )
    return max(proofs, key=lambda shown: shown.epsilon)


def _events(y: Floats, sensitivity: float) -> tuple[list[str], NDArray[np.int64]]:
    """Names of all events, and how often each happened."""
    top = math.frexp(sensitivity)[1] - 1
    size, low = magnitude(y) - top, lowest_bit(y) - top
    rows, columns = np.clip(size, *_MAGNITUDES) - _MAGNITUDES[0], np.clip(low, *_LOWEST) - _LOWEST[0]
    cells = _table(rows, columns, _MAGNITUDES, _LOWEST)
    below = cells.cumsum(axis=0).cumsum(axis=1)
    last = np.ldexp(np.abs(y), 52 - magnitude(y)).astype(np.int64) & 7  # the last three bits of the significand
    patterns = _table(rows, np.where(y == 0, 0, last), _MAGNITUDES, (0, 7))
    spans = range(_MAGNITUDES[0], _MAGNITUDES[1] + 1), range(_LOWEST[0], _LOWEST[1] + 1)
    names = [f"|y| ~ 2^{m} of the sensitivity, lowest bit 2^{g} of it" for m in spans[0] for g in spans[1]]
    names += [f"|y| < 2^{m + 1} of the sensitivity, lowest bit at most 2^{g} of it" for m in spans[0] for g in spans[1]]
    names += [f"|y| ~ 2^{m} of the sensitivity, last bits {b:03b}" for m in spans[0] for b in range(8)]
    return names, np.concatenate([cells.ravel(), below.ravel(), patterns.ravel()])


def _table(rows: Integers, columns: Integers, tall: tuple[int, int], wide: tuple[int, int]) -> NDArray[np.int64]:
    height, width = tall[1] - tall[0] + 1, wide[1] - wide[0] + 1
    return np.bincount(rows * width + columns, minlength=height * width).reshape(height, width)
