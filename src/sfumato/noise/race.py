"""Exact selection: who has the largest score plus noise.

Candidate i runs with score s_i plus independent noise from its own uniform U_i:

    exponential   E_i = -ln U_i         the winner has the law of permute-and-flip with coins exp(s_i - max s)
                                        (Ding, Kifer, Sajid Nikesh 2021)
    gumbel        G_i = -ln(-ln U_i)    the winner has the law P(i) proportional to exp(s_i): the exponential mechanism

Every U_i is an endless string of bits of which 64 are drawn at once, U in [n, n+1) / 2^64. A float64 pass finds the
leader and everyone who might still be ahead of it given the float error; nearly always that is the leader alone.
Otherwise the leaders' totals are enclosed in integer arithmetic, with as many further bits of their U as it takes.

Claim: the winner has exactly the law of the real-valued race. Proof: a candidate is dropped only when its total is
certainly below the leader's; the rest is decided by disjoint enclosures. Equal totals have probability zero. Scores
are exact numbers: `scores * scale`, with float64 scores taken as the dyadic rationals they are and an exact scale.

Every candidate takes one 64-bit word and the same steps.
"""

from __future__ import annotations

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

_BLOCK = 1 << 15

# The float pass. The winner's total is at least -3.8 (the best scorer's own total), and noise is at most 44.4, so the
# scores that matter are within 49 of the best and their float error is below 2^-44. The noise: -ln U is off by less
# than 2^-51 for the middle words, so -ln(-ln U) is off by less than 2^-21 while -ln U >= 2^-30. Words nearer to either
# end (where the bits not drawn, or 1 - U in float64, matter more) are not judged in float64 at all: their owners stay
# in the race. Two totals compared: twice the error.
_SLACK = 2.0**-20
_LOWEST = np.uint64(2**24)
_HIGHEST = np.uint64(2**64 - 2**34)


def select(scores: NDArray[np.float64], scale: Fraction, kind: Kind, bits: Bits) -> int:
    """The index of the largest scores[i] * scale + noise_i."""
    one_of(kind, "kind", KINDS)
    words = bits.words(scores.size)
    best = float(scores.max())
    totals = np.empty(scores.size)
    with np.errstate(over="ignore"):  # a score hopelessly far behind may reach -inf
        for start in range(0, scores.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            np.subtract(scores[part] * 0.5, best * 0.5, out=totals[part])  # half the gap: finite whatever the scores
            totals[part] *= float(2 * scale)
            totals[part] += _noise(words[part], kind)
    outer = np.flatnonzero((words < _LOWEST) | (words >= _HIGHEST))
    totals[outer] = -np.inf
    lead = totals.max() - _SLACK
    leaders = outer if lead == -np.inf else np.union1d(np.flatnonzero(totals >= lead), outer)
    if leaders.size == 1:
        return int(leaders[0])
    exactly = Fraction(best)
    return _photo_finish(
        [(int(i), (Fraction(float(scores[i])) - exactly) * scale, int(words[i])) for i in leaders], kind, bits
    )


def _noise(words: NDArray[np.uint64], kind: Kind) -> NDArray[np.float64]:
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-64
    if kind == "exponential":
        return np.negative(np.log(u, out=u), out=u)
    np.log(u, out=u)
    np.negative(u, out=u)
    np.maximum(u, 2.0**-64, out=u)  # a U that rounds to 1 is an outer word
    return np.negative(np.log(u, out=u), out=u)


def _photo_finish(runners: list[tuple[int, Fraction, int]], kind: Kind, bits: Bits) -> int:
    """Decide among the leaders by enclosures, drawing further bits for them until the winner is certain."""
    precision = 64
    while True:
        runners = [(i, s, (n << 64) | int(w)) for (i, s, n), w in zip(runners, bits.words(len(runners)), strict=True)]
        precision += 64
        totals = [exact.enclose(s, precision) + _enclose_noise(n, precision, kind) for _, s, n in runners]
        first = max(range(len(runners)), key=lambda j: totals[j].lo)
        runners = [r for j, r in enumerate(runners) if j == first or totals[j].hi > totals[first].lo]
        if len(runners) == 1:
            return runners[0][0]


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
