"""Probabilities as certified enclosures: what `verify` multiplies, adds up and compares.

An enclosure has two whole ends in units of 2^-bits. Products and sums round outwards, so every comparison of ends is a
proof. Equal numbers are never told apart from nearly equal ones by enclosures alone: randomised response is *exactly*
at its price. So a bound counts as held where it is exceeded by at most `slack` (2^-200 or less), which is a theorem of
its own: the release is (epsilon, delta + slack)-DP on the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..exact import Enclosure
from ..laws import Law, _Exponential
from ..noise.race import Kind

BITS = 384
SLACK = Fraction(1, 2**200)

Floats = NDArray[np.float64]

# Of a probability of the Laplace family in float64, relative to it, within 64 scales of the centre: exp(-x) is off by
# less than (x + 2) 2^-53, and so are sums and products of a few of them without cancellation.
RELATIVE = 2.0**-44


def certain(bits: int = BITS) -> Enclosure:
    return exact.enclose(1, bits)


def at_or_above(law: Law, k: int, bits: int = BITS) -> Enclosure:
    """P(X >= k), from the tail that the sampler draws by."""
    if law.one_sided:
        return certain(bits) if k <= 0 else law.enclose_tail(k, bits)
    if k >= 1:
        return law.enclose_tail(k, bits + 1).over(2).to(bits)
    return certain(bits) - law.enclose_tail(1 - k, bits + 1).over(2).to(bits)


def between(law: Law, low: int | None, high: int | None, bits: int = BITS) -> Enclosure:
    """P(low <= X <= high); None has no end. The smaller tails are subtracted, so that nothing is lost far out."""
    if low is not None and high is not None and low > high:
        return Enclosure(0, 0, bits)
    if not law.one_sided and high is not None and (low is None or low + high < 0):
        low, high = -high, None if low is None else -low  # the law is symmetric
    chance = certain(bits) if low is None else at_or_above(law, low, bits)
    if high is not None:
        chance = chance - at_or_above(law, high + 1, bits)
    return Enclosure(max(chance.lo, 0), chance.hi, bits)


def window(law: Law, rest: Fraction) -> int:
    """A whole number that |X| exceeds with probability at most `rest`, certified."""
    high = 1
    while Fraction(law.enclose_tail(high + 1, BITS).hi, 1 << BITS) > rest:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        rare = Fraction(law.enclose_tail(middle + 1, BITS).hi, 1 << BITS) <= rest
        low, high = (low, middle) if rare else (middle, high)
    return high


def in_floats(law: Law) -> bool:
    """Are the law's float64 probabilities good to RELATIVE?"""
    return isinstance(law, _Exponential)


def winners(
    scores: Sequence[Fraction], scale: Fraction, kind: Kind, weights: Sequence[int] | None = None, bits: int = BITS
) -> list[Enclosure]:
    """Who wins a race with what probability: noise/race.py says why.

    gumbel       weight times exp(scale score), over the sum of all
    exponential  p_r int_0^1 prod_{i != r} (1 - p_i t) dt with p_i = exp(scale (score_i - best)); see
                 mechanisms/selection.py. The polynomial's coefficients are expanded, which loses a bit a candidate
    """
    work = bits + 2 * len(scores) + 16
    best = max(score for i, score in enumerate(scores) if weights is None or weights[i])
    odds = [
        exact.exp_neg(scale * (best - score), work) if score <= best else exact.enclose(0, work) for score in scores
    ]
    if kind == "gumbel":
        shares = odds if weights is None else [p.times(Fraction(w)) for p, w in zip(odds, weights, strict=True)]
        total = shares[0]
        for share in shares[1:]:
            total = total + share
        return [(share / total).to(bits) for share in shares]
    return [_flipped(odds, r, work).to(bits) for r in range(len(odds))]


def _flipped(odds: Sequence[Enclosure], r: int, work: int) -> Enclosure:
    polynomial = [exact.enclose(1, work)]
    for i, p in enumerate(odds):
        if i != r:
            longer = [*polynomial, exact.enclose(0, work)]
            for degree, coefficient in enumerate(polynomial):
                longer[degree + 1] = longer[degree + 1] - coefficient * p
            polynomial = longer
    total = polynomial[0]
    for degree, coefficient in enumerate(polynomial[1:], 2):
        total = total + coefficient.over(degree)
    chance = odds[r] * total
    return Enclosure(max(chance.lo, 0), chance.hi, work)


def from_float(value: float, relative: float, bits: int = BITS) -> Enclosure:
    """A positive number that float64 gives to that relative error."""
    low, high = Fraction(value) * (1 - Fraction(relative)), Fraction(value) * (1 + Fraction(relative))
    return Enclosure(exact.enclose(low, bits).lo, exact.enclose(high, bits).hi, bits)


def ends(value: Enclosure) -> tuple[Fraction, Fraction]:
    return Fraction(value.lo, 1 << value.bits), Fraction(value.hi, 1 << value.bits)


def exp_ends(epsilon: Fraction, bits: int = BITS) -> tuple[Fraction, Fraction]:
    """e^epsilon from below and from above."""
    more = bits + 3 * (int(abs(epsilon)) + 1)
    if epsilon < 0:
        return ends(exact.exp_neg(-epsilon, more))
    low, high = ends(exact.exp_neg(epsilon, more))
    return 1 / high, 1 / low


def shown(low: Fraction, high: Fraction, digits: int = 6) -> str:
    """A number that lies between two ends, in words: equal digits once."""
    one, other = f"{float(low):.{digits}g}", f"{float(high):.{digits}g}"
    return one if one == other else f"{one} to {other}"
