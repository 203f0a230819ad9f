"""The clone pair of shuffling, solved numerically from both sides.

One user's report is a 0 or a 1, right with probability e^local/(e^local+1). Of the n - 1 others each is a *clone* with
probability c, and a clone's report is a fair coin. What is seen are the counts of zeros and ones among the user and
the clones; P and Q are their laws for the user's two values. With D = (clones) + 1 counted reports, of which k are 0,
    P(k, D) = P(D) Bin(k; D, 1/2) (2/D) (h k + l (D-k)),    h = e^local/(e^local+1),    l = 1 - h,
and Q has h and l exchanged (so one direction is enough). Hence, with r = tanh(epsilon/2) / tanh(local/2),
    delta(epsilon) = tanh(local/2) (1 + e^epsilon) E[ (2/D) (K - D (1+r)/2)+ ],    K ~ Bin(D, 1/2),
an excess of a binomial law that has a closed form (binomial.py). It falls as D grows, because one more clone is a fair
coin that anybody could add. So the sum over D is taken over blocks: from above every block counts as its least D, from
below as its greatest, and what lies outside the window is counted in the same way.

(An error in the blocks' probabilities is harmless: after summation by parts all terms but one are positive, so the sum
is off by no more, relatively, than the binomial tails are.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import brent
from ..interval import Interval
from . import binomial
from .binomial import SLACK, Floats

MOST_USERS = 10**9  # the accuracy of binomial.py is tested up to here
LARGE = 100.0  # above this local epsilon, the chance of a clone is below 1e-43
_BLOCKS = 1200
_ATOMS = 1 << 18
_ROOM = 16.0  # of log-probability that the window leaves below delta
_UP = 6.5
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Clones:
    """The clone pair: `clone` is c; delta is scaled by `part`, the chance that the user's report matters at all."""

    local: float
    users: int
    clone: float
    part: float = 1.0

    def delta(self, epsilon: float) -> Interval:
        """The pair's delta at epsilon >= 0."""
        return self._delta(epsilon, math.log(1e-30))

    def epsilon(self, delta: float) -> Interval:
        """The pair's least epsilon at delta > 0."""
        if self.local > LARGE:
            return Interval(0.0, self.local)
        window = math.log(delta)

        def above(epsilon: float) -> float:
            return self._delta(epsilon, window).upper

        def beneath(epsilon: float) -> float:
            return self._delta(epsilon, window).lower

        spread = 2 * math.tanh(self.local / 2) / math.sqrt(1 + (self.users - 1) * self.clone)
        guess = spread * (1 + math.sqrt(-2 * window))
        upper = least(above, delta, guess, self.local)
        return Interval(greatest(beneath, delta, upper), upper)

    def pair(self, log_delta: float) -> tuple[Floats, Floats, float]:
        """Atoms (p, q) that dominate the pair, and the P-mass that they leave out (at most e^log_delta or so).

        Blocks of D count as their least D. Outcomes of one likelihood ratio are merged.
        """
        counted, _, weight, under, over = self._blocks(log_delta)
        weight[-1] += over
        reach = math.sqrt(2 * (_ROOM - log_delta))
        wide = min(counted[-1] + 1, reach * math.sqrt(counted[-1]) + 2)
        keep = np.linspace(0, counted.size, int(min(counted.size, max(1, _ATOMS // wide))) + 1).astype(int)
        weight = np.add.reduceat(weight, keep[:-1])
        p, q, outside = [], [], self.part * under
        low = math.exp(-self.local)
        for d, share in zip(counted[keep[:-1]], self.part * weight, strict=True):
            half = reach * math.sqrt(d)
            first, last = max(0.0, math.floor((d - half) / 2)), min(d, math.ceil((d + half) / 2))
            k = np.arange(first, last + 1)
            base = share * binomial.mass(k, d, 0.5) * (2 / (1 + low)) / d
            p.append(base * (k + low * (d - k)))
            q.append(base * (low * k + d - k))
            if first > 0:
                outside += 2 * share * float(binomial.at_least(last + 1, d, 0.5)) * (1 + SLACK)
        p.append(np.array([1 - self.part]))
        q.append(np.array([1 - self.part]))
        return *_merged(np.concatenate(p), np.concatenate(q)), outside

    def _delta(self, epsilon: float, log_delta: float) -> Interval:
        if epsilon >= self.local:
            return Interval(0.0, 0.0)
        if self.local > LARGE:
            return Interval(0.0, self.part)
        counted, last, weight, under, over = self._blocks(log_delta)
        low, high = self._given(np.append(counted, last), epsilon)
        single = last - counted[0] + 1 == counted.size
        alone = float(self._given(np.ones(1), epsilon)[1][0])
        above = float((weight * high[:-1]).sum()) + under * alone + over * float(high[-1])
        beneath = float((weight * (low[:-1] if single else low[1:])).sum()) + under * float(low[0])
        return Interval(self.part * beneath * (1 - 4 * SLACK), min(1.0, self.part * above * (1 + 4 * SLACK)))

    def _given(self, counted: Floats, epsilon: float) -> tuple[Floats, Floats]:
        """delta when D reports are counted, from below and from above."""
        # (1 + e^epsilon) (1 - r)/2, which keeps its digits as epsilon nears local
        gap = math.expm1(epsilon - self.local) / math.expm1(-self.local)
        room = counted * gap / (1 + math.exp(epsilon))  # D (1-r)/2: how many ones among D still exceed
        low, high = binomial.excess(counted - room, counted, 0.5)
        scale = 2 * math.tanh(self.local / 2) * (1 + math.exp(epsilon)) / counted
        sole = 2 * math.tanh(self.local / 2) * gap * np.exp2(-counted)  # only K = D exceeds
        one = room < 1
        return np.where(one, sole * (1 - SLACK), scale * low), np.where(one, sole * (1 + SLACK), scale * high)

    def _blocks(self, log_delta: float) -> tuple[Floats, float, Floats, float, float]:
        """The least D of each block, the greatest D of all, the blocks' probabilities, and those below and above."""
        others = self.users - 1
        mean = others * self.clone
        reach = math.sqrt(2 * (_ROOM - log_delta))
        first = max(0, math.floor(mean - reach * math.sqrt(mean)))
        last = min(others, math.ceil(mean + _UP * math.sqrt(mean) + _UP**2 / 3))  # above, delta is small anyway
        edges = np.floor(np.linspace(first, last + 1, min(last - first + 1, _BLOCKS) + 1))
        if not others:
            return np.ones(1), 1.0, np.ones(1), 0.0, 0.0
        lower, upper = binomial.below(edges, others, self.clone), binomial.at_least(edges, others, self.clone)
        weight = np.maximum(np.where(edges[1:] <= mean, np.diff(lower), -np.diff(upper)), 0.0)
        return edges[:-1] + 1, float(edges[-1]), weight, float(lower[0]), float(upper[-1])


def least(falling: Callable[[float], float], level: float, guess: float, most: float) -> float:
    """An epsilon in [0, most], close to the least, with falling(epsilon) <= level; `most` itself is known to do."""
    if falling(0.0) <= level:
        return 0.0
    high = min(guess, most)
    while high < most and falling(high) > level:
        high = min(4 * high, most)
    low = high / 4
    while low > _SMALLEST and falling(low) <= level:
        low, high = low / 4, low
    root = _root(falling, level, low, high)
    step = 1e-9
    while root < most and falling(root) > level:
        root, step = root * (1 + step), 4 * step
    return min(root, most)


def greatest(falling: Callable[[float], float], level: float, most: float) -> float:
    """An epsilon in [0, most], close to the greatest, with falling(epsilon) >= level; 0 if there is none."""
    low, high = most, most
    gap = 1e-6
    while low > 0 and falling(low) < level:
        low, high, gap = max(0.0, most * (1 - gap)), low, 8 * gap
    if low == high or (low <= 0 and falling(0.0) < level):
        return low
    root = _root(falling, level, low, high)
    step = 1e-9
    while root > low and falling(root) < level:
        root, step = root * (1 - step), 4 * step
    return max(root, low)


def _root(falling: Callable[[float], float], level: float, low: float, high: float) -> float:
    def distance(epsilon: float) -> float:
        return math.log(max(falling(epsilon), _SMALLEST) / level)

    if distance(high) > 0:
        return high
    return brent.root(distance, low, high, absolute=1e-12 * high, relative=1e-9)


def _merged(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The same pair with one atom for each likelihood ratio."""
    some = (p > 0) | (q > 0)
    p, q = p[some], q[some]
    ratio = p / (p + q)
    order = np.argsort(ratio)
    starts = np.flatnonzero(np.diff(ratio[order], prepend=-1.0) > 1e-15)
    return np.add.reduceat(p[order], starts), np.add.reduceat(q[order], starts)
