"""The law of the likelihood ratio, for numbers that noise of a known law was added to.

A change moves some of the numbers by so many steps. For each of them an outcome has a loss, the logarithm of how much
likelier it is on one table than on its neighbour; the losses of independent numbers add up, and no event tells the
tables apart better than "the loss is at least t" (Neyman, Pearson 1933). With L the loss where the first table is true,

    P(L >= t) = sum of P(L = l),   P'(L >= t) = sum of P(L = l) e^-l,   both over l >= t.

Outcomes are taken in bins, and losses in steps of `_STEP`, so the chances are near the truth, not bounds of it: they
say what an audit will probably see, and judge nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import signal

from sfumato.audit import enclosed
from sfumato.audit.counting import Floats
from sfumato.audit.neighbours import Pair
from sfumato.combine import Repeat, Sequence
from sfumato.laws import Law
from sfumato.plan import Plan

Moves = list[tuple[Law, int]]

_STEP, _MOST = 0.002, 30.0  # of losses
_BINS, _RARE = 4_000, 1e-12
_EVENTS = 200


def moves(plan: Plan[Any, Any], pair: Pair) -> Moves | None:
    """Every number of the output that the change moves: the law of its noise, and by how much. None where the output
    does not consist of such numbers."""
    if type(plan) is Sequence:
        parts = [moves(child, pair) for child in plan.children]
        return None if None in parts else [each for part in parts for each in part or ()]
    if type(plan) is Repeat:
        once = moves(plan.plan, pair)
        return None if once is None else once * plan.times
    part = enclosed.additive_part(plan)
    if part is None:
        return None
    moved = enclosed.move_of(part.query, pair.rows, pair.neighbour, part.exponent)
    return [(part.law, abs(each)) for each in moved if each]


def tails(moved: Moves) -> Iterator[tuple[float, float, float]]:
    """t, P(L >= t) and P'(L >= t), for thresholds from likely to rare."""
    if not moved:
        return
    at, chances = 0, np.ones(1)
    for law, move in moved:
        start, one = _losses(law, move)
        at, chances = at + start, np.maximum(signal.fftconvolve(chances, one), 0.0)
    losses = _STEP * (at + np.arange(chances.size))
    here, there = (np.cumsum(x[::-1])[::-1] for x in (chances, chances * np.exp(-np.clip(losses, -700, 700))))
    likely = np.flatnonzero((here > _RARE) & (chances > 0))
    for i in likely[:: max(likely.size // _EVENTS, 1)]:
        # Far below 0 the rounding of a convolution is multiplied by e^-loss: no chance is above 1.
        yield float(losses[i]), min(float(here[i]), 1.0), min(float(there[i]), 1.0)


def _losses(law: Law, move: int) -> tuple[int, Floats]:
    """The chances of losses, at steps that begin with the first number."""
    far = math.ceil(30 * law.spread)
    width = max(1, math.ceil((2 * far + move) / _BINS))
    edges = np.arange(-far, move + far + width, width, dtype=np.float64)
    moved, still = (-np.diff(law.sf(edges - shift - 1)) for shift in (move, 0))
    seen = moved > _RARE
    loss = np.log(moved[seen] / np.maximum(still[seen], 1e-300))
    steps = np.rint(np.clip(loss, -_MOST, _MOST) / _STEP).astype(np.int64)
    start = int(steps.min())
    return start, np.bincount(steps - start, weights=moved[seen]).astype(np.float64)
