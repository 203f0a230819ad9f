"""Exact selection: who has the largest score plus noise.

Candidate i runs with score s_i plus independent noise from its own uniform U_i:

    exponential   E_i = -ln U_i         the winner has the law of permute-and-flip with coins exp(s_i - max s)
                                        (Ding, Kifer, Sajid Nikesh 2021)
    gumbel        G_i = -ln(-ln U_i)    the winner has the law P(i) proportional to exp(s_i): the exponential mechanism;
                                        the first k in order have the law of k winners drawn one after the other, each
                                        among those that are left (Durfee, Rogers 2019; see mechanisms/top_k.py)

A candidate of whole weight w stands for w equal ones: the largest of w Gumbel draws is one Gumbel draw plus ln w, so it
runs with s_i + ln w_i, and P(i) is proportional to w_i exp(s_i). Nobody stands behind a weight of 0: it never wins.

Every U_i is an endless string of bits of which 64 are drawn at once, U in [n, n+1) / 2^64. A float64 pass finds the
leader and everyone who might still be ahead of it given the float error; nearly always that is the leader alone.
Otherwise the leaders' totals are enclosed in integer arithmetic, with as many further bits of their U as it takes.

Claim: the winner, and the order of the first k, have exactly the law of the real-valued race. Proof: a candidate is
dropped, and two are ranked, only when their totals certainly differ that way; the rest is decided by disjoint
enclosures. Equal totals have probability zero. Scores are exact numbers: `scores * scale`, with float64 scores taken
as the dyadic rationals they are and an exact scale.

Every candidate takes one 64-bit word and the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..checks import one_of
from ..exact import Enclosure
from .bits import Bits

Kind = Literal["exponential", "gumbel"]
KINDS: tuple[Kind, ...] = ("exponential", "gumbel")
HEAVIEST = 2**60

_BLOCK = 1 << 15

# The float pass. The winner's total is at least -3.8 (the best scorer's own total; its weight is at least 1), noise is
# at most 44.4 and ln w at most 41.6, so the scores that matter are within 90 of the best. The product with the scale,
# ln w and the sums are then off by less than 2^-43 together. The noise: -ln U is off by less than 2^-52 for the middle
# words, so -ln(-ln U) is off by less than 2^-22 + 2^-46 while -ln U >= 2^-30. Words nearer to either end (where the
# bits not drawn, or 1 - U in float64, matter more) are not judged in float64 at all: their owners stay in the race.
# Two totals compared: twice the error, which is less than the slack.
_SLACK = 2.0**-20
_ROUNDING = 2.0**-48  # of a total far behind: four operations, two totals
_LOWEST = np.uint64(2**24)
_HIGHEST = np.uint64(2**64 - 2**34)

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Runner:
    """One candidate whose U is known to lie in [n, n+1) / 2^64, 2^128, ..."""

    index: int
    score: Fraction
    weight: int
    n: int

    def enclose(self, precision: int, kind: Kind) -> Enclosure:
        total = exact.enclose(self.score, precision) + _enclose_noise(self.n, precision, kind)
        return total if self.weight == 1 else total + exact.ln(Fraction(self.weight), precision)


@dataclass(frozen=True)
class _Race:
    """The words are drawn and the float pass is done."""

    kind: Kind
    scores: Floats
    weights: NDArray[np.int64] | None
    scale: Fraction
    best: float
    words: NDArray[np.uint64]
    totals: Floats  # -inf where float64 does not judge, and where nobody runs
    outer: Places  # who is not judged in float64

    def runners(self, places: Places) -> list[_Runner]:
        best = Fraction(self.best)
        return [
            _Runner(
                int(i),
                (Fraction(float(self.scores[i])) - best) * self.scale,
                1 if self.weights is None else int(self.weights[i]),
                int(self.words[i]),
            )
            for i in places
        ]


def select(scores: Floats, scale: Fraction, kind: Kind, bits: Bits, weights: NDArray[np.int64] | None = None) -> int:
    """The index of the largest scores[i] * scale + ln weights[i] + noise_i."""
    race = _start(scores, scale, kind, bits, weights)
    lead = race.totals.max() - _SLACK
    leaders = race.outer if lead == -np.inf else np.union1d(np.flatnonzero(race.totals >= lead), race.outer)
    if leaders.size == 1:
        return int(leaders[0])
    return _photo_finish(race.runners(leaders), 1, kind, bits)[0]


def top(scores: Floats, count: int, scale: Fraction, bits: Bits) -> list[int]:
    """The indices of the `count` largest scores[i] * scale + Gumbel noise, the largest first.

    In the order of the float totals, two whose gap exceeds the slack are ranked for certain, and so are all before and
    after such a gap. What lies between two such gaps is settled by enclosures. Those who come far behind the best are
    ranked too, so the slack grows with their distance, by more than its rounding.
    """
    race = _start(scores, scale, "gumbel", bits, None)
    totals = race.totals
    with np.errstate(invalid="ignore"):  # the gap between two that are out of float64's reach is nan, and not certain
        last = -np.inf if count >= scores.size - race.outer.size else np.partition(totals, -count)[-count]
        places = np.flatnonzero(totals >= last - _SLACK - _ROUNDING * abs(last))
        if race.outer.size:  # nothing is known of these yet: all are settled together
            return _photo_finish(race.runners(np.union1d(places, race.outer)), count, "gumbel", bits)
        places = places[np.argsort(-totals[places], kind="stable")]
        ranked = totals[places]
        certain = -np.diff(ranked) > _SLACK + _ROUNDING * np.abs(ranked[1:])
    order: list[int] = []
    for close in np.split(places, np.flatnonzero(certain) + 1):
        wanted = count - len(order)
        if wanted > 0:
            alone = close.size == 1
            order += close.tolist() if alone else _photo_finish(race.runners(close), wanted, "gumbel", bits)
    return order


def _start(scores: Floats, scale: Fraction, kind: Kind, bits: Bits, weights: NDArray[np.int64] | None) -> _Race:
    one_of(kind, "kind", KINDS)
    words = bits.words(scores.size)
    runs = None if weights is None else weights > 0
    best = float(scores.max() if runs is None else scores.max(where=runs, initial=-np.inf))
    totals = np.empty(scores.size)
    # A score hopelessly far behind may reach -inf, and one without weight +inf; ln 0 is -inf.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for start in range(0, scores.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            np.subtract(scores[part] * 0.5, best * 0.5, out=totals[part])  # half the gap: finite whatever the scores
            totals[part] *= float(2 * scale)
            totals[part] += _noise(words[part], kind, None if weights is None else weights[part])
    outside = (words < _LOWEST) | (words >= _HIGHEST)
    totals[outside] = -np.inf
    if runs is not None:
        totals[~runs] = -np.inf
        outside &= runs
    return _Race(kind, scores, weights, scale, best, words, totals, np.flatnonzero(outside))


def _noise(words: NDArray[np.uint64], kind: Kind, weights: NDArray[np.int64] | None) -> Floats:
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-64
    np.log(u, out=u)
    np.negative(u, out=u)
    if kind == "exponential":
        return u
    np.maximum(u, 2.0**-64, out=u)  # a U that rounds to 1 is an outer word
    np.divide(1.0 if weights is None else weights, u, out=u)
    return np.log(u, out=u)  # ln w - ln(-ln U)


def _photo_finish(runners: Sequence[_Runner], count: int, kind: Kind, bits: Bits) -> list[int]:
    """The first `count` in order, by enclosures, drawing further bits for all who are still in the race."""
    precision, left, order = 64, list(runners), list[int]()
    while True:
        more = bits.words(len(left))
        precision += 64
        left = [replace(runner, n=(runner.n << 64) | int(word)) for runner, word in zip(left, more, strict=True)]
        totals = {runner.index: runner.enclose(precision, kind) for runner in left}
        left.sort(key=lambda runner: -totals[runner.index].lo)
        while left and all(totals[r.index].hi <= totals[left[0].index].lo for r in left[1:]):
            order.append(left.pop(0).index)
            if len(order) == count:
                return order
        if not left:
            return order
        if len(order) == count - 1:  # only the next one is wanted: who is certainly behind goes home
            lead = totals[left[0].index].lo
            left = [left[0], *(r for r in left[1:] if totals[r.index].hi > lead)]
        left.sort(key=lambda runner: runner.index)


def _enclose_noise(n: int, precision: int, kind: Kind) -> Enclosure:
    """The noise of U in [n, n+1) / 2^precision."""
    low_u, high_u = Fraction(max(n, 1), 1 << precision), Fraction(n + 1, 1 << precision)
    low, high = (-exact.ln(u, precision) for u in (high_u, low_u))
    if kind == "exponential":
        # n = 0 has no upper end; it comes up once in 2^precision, and one more word of bits then decides
        return Enclosure(low.lo, high.hi if n else 1 << (2 * precision), precision)
    least, most = max(low.lo, 0), high.hi if n else 1 << (2 * precision)
    if least == 0:  # U in the last cell below 1: no upper end yet
        return Enclosure(-exact.ln(Fraction(most, 1 << precision), precision).hi, 1 << (2 * precision), precision)
    smallest = -exact.ln(Fraction(most, 1 << precision), precision)
    largest = -exact.ln(Fraction(least, 1 << precision), precision)
    return Enclosure(smallest.lo, largest.hi, precision)
