"""Quantiles by the exponential mechanism: the engine of Quantile and ContributionLimit.

The candidates are all points 0, ..., points - 1 of a public grid. Rows are points with whole weights. With a = the
weight below g, e = the weight at g, and N = the weight of all rows, g is a q-quantile when a <= qN <= a + e, and its
score is how far it is from being one:

    score(g) = -max(0, a - qN, qN - (a + e))

(Smith 2011 scores -|a - qN|, which is the same where no row lies at g; where many rows are tied, this one sees that
their common value is a quantile.) There is always a point of score 0. The score is the same for all points between two
neighbouring rows, so such a gap is one candidate whose weight is its number of points, and if it wins, a uniform point
of it is drawn: exactly the exponential mechanism over all points, in the time of a sort.

Lemma (span). Let a unit's weights sum to at most P. Between neighbours, the changes of score over all g lie in an
interval of length span * P that holds 0, where
    span = 2 max(q, 1 - q)   a unit comes or goes (add-remove, zero-out)
           2                 a unit is exchanged for any other (replace)
           1                 q = 0 and q = 1, in either case.
Proof. Let the unit have weight W <= P, alpha of it below g and beta at or below g. Its coming moves a - qN by
alpha - qW and a + e - qN by beta - qW, both in [-qW, (1 - q)W], and -max(0, x, -y) moves by no more than x and y do. If
it is exchanged for one of W', alpha', the move is alpha' - alpha - q(W' - W), in [-(1 - q)W - qW', (1 - q)W' + qW],
within [-P, P]; likewise with beta. At q = 0 the score is -a: it moves by -alpha, in [-P, 0], or by alpha - alpha',
where alpha and alpha' rise with g from 0 to at most P, so the values at two points differ by at most P; at the lowest
point the move is 0. At q = 1 it is minus the weight above g, and the same from the other end. All scores are clamped at
the same far point, which makes no move longer and turns none round. A group of k units is a chain of k changes, and
lengths of intervals add.

So with rate epsilon/(span P group) the log-ratios of probabilities lie in an interval of length epsilon: the price of
an exponential mechanism, epsilon-bounded-range. (Tests check the lemma on all small databases.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks
from ..grid import Integers
from ..plan import Run
from ..units import Relation

FINEST_RANK = 2**20  # the largest denominator of q: ranks are compared as whole numbers, exactly
_EXACT = 2**53


def rank(value: Any, name: str) -> Fraction:
    """A public q from 0 to 1."""
    allowed = "a number from 0 to 1 with a denominator of at most 2^20, such as 0.5 or Fraction(1, 3)"
    q = checks.rational(value, name, allowed)
    if not 0 <= q <= 1 or q.denominator > FINEST_RANK:
        raise checks.refuse(name, value, allowed)
    return q


def span(q: Fraction, change: Relation) -> Fraction:
    """The lemma above."""
    if q in (0, 1):
        return Fraction(1)
    return Fraction(2) if change == "replace" else 2 * max(q, 1 - q)


@dataclass(frozen=True)
class RankedRows:
    """Rows sorted as points of the grid, and the weight before each."""

    points: int
    places: Integers  # rising
    before: Integers  # one more than places: the last is the weight of all

    @classmethod
    def of(cls, points: int, places: Integers, weights: Integers | None) -> RankedRows:
        """Weights sum to less than 2^62; None where every row has weight 1."""
        if weights is None:
            return cls(points, np.sort(places), np.arange(places.size + 1))
        order = np.argsort(places, kind="stable")
        before = np.zeros(places.size + 1, dtype=np.int64)
        np.cumsum(weights[order], out=before[1:])
        return cls(points, places[order], before)

    def choose(self, q: Fraction, rate: Fraction, run: Run) -> int:
        """A point g with probability proportional to exp(rate * score(g)), scores in units of 1/q.denominator.

        Candidates are, in turn, the gap before a row and the row itself; of rows that are tied the first stands for
        all. So the number of candidates, and of words drawn, depends on the number of rows alone.
        """
        rows = self.places.size
        p, r = q.numerator, q.denominator
        total = p * int(self.before[-1])
        edges = np.concatenate([[-1], self.places, [self.points]])
        first = np.diff(edges[:-1]) > 0  # of its ties; edges[0] is below every point
        starts = np.flatnonzero(first)
        after = np.append(self.before[starts[1:]], self.before[-1:])  # the weight up to and with each run of ties

        low = r * self.before - total  # r (a - qN): for the gap before each row, and behind the last
        scores = np.zeros(2 * rows + 1)
        np.negative(np.minimum(np.abs(low), _EXACT), out=scores[0::2], casting="unsafe")
        at = np.zeros(rows)
        at[starts] = -np.minimum(np.maximum(np.maximum(low[starts], total - r * after), 0), _EXACT)
        scores[1::2] = at
        weights = np.empty(2 * rows + 1, dtype=np.int64)
        weights[0::2] = np.maximum(np.diff(edges) - 1, 0)
        weights[1::2] = first
        won = run.noise.select(scores, scale=rate, weights=weights)
        inside = int(run.noise.integers(int(weights[won]), 1)[0])
        return int(edges[won // 2]) + 1 + inside if won % 2 == 0 else int(self.places[won // 2])


def rank_error(points: int, rate: Fraction, alpha: float) -> float:
    """P(score < -t) <= points * exp(-rate t): the exponential mechanism's theorem, as the best score is 0 (McSherry,
    Talwar 2007, Theorem 6). In units of score."""
    if not 0 < alpha < 1:
        raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
    return math.log(points / alpha) / float(rate)
