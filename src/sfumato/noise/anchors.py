"""The rounded Gaussian's certified tail, from anchors: what `law.enclose_tail` gives, several times as fast.

Draws that float64 cannot call are settled by enclosing P(X >= k) = 2 Q(z), z = (k - 1/2)/sigma. They are few, but at
large scales most of the time would go into them. The normal tail Q and its derivatives are enclosed once at each
multiple a of 1/16, and then, with h = z - a, |h| <= 1/32,

    Q(a + h) = Q(a) - sum_{j < m} D_j h^(j+1)/(j+1)! - R,    D_j = density^(j)(a) = (-1)^j He_j(a) density(a),
    |R| <= |h|^(m+1)/(m+1)! max |density^(m)| <= |h|^(m+1)/sqrt(m!),

the last by Cramer's |He_m(x)| density(x) <= 0.44 sqrt(m!). The sum is made in integers over 2^work. Coefficients are
off by at most `width` of these units, h by one. A step of Horner's rule, r <- r h + c with |r| < 1, carries on 1/32 of
the error so far and adds at most width + 2, so no error is ever above width + 3, the last product's included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .. import exact
from ..exact import Enclosure
from ..laws import RoundedGaussian

_SPACING = 4  # anchors are multiples of 2^-4
_FARTHEST = 16  # no draw comes here: 2 Q(16) < 2^-187


@dataclass(frozen=True)
class _Anchor:
    tail: Enclosure
    coefficients: tuple[int, ...]  # the highest power first
    width: int


def enclose_tail(law: RoundedGaussian, k: int, bits: int) -> Enclosure:
    """P(|X| >= k) for k >= 1, between two integers over 2^bits."""
    work = bits + 16
    p, q = law.sigma.as_integer_ratio()
    z = ((2 * k - 1) * q << work - 1) // p
    index = (z + (1 << work - _SPACING - 1)) >> work - _SPACING
    if index > _FARTHEST << _SPACING:
        return law.enclose_tail(k, bits)
    anchor = _anchor(index, work)
    h = z - (index << work - _SPACING)
    r = 0
    for coefficient in anchor.coefficients:
        r = (r * h >> work) + coefficient
    r = r * h >> work
    error = anchor.width + 4  # one more for the remainder
    return Enclosure(2 * (anchor.tail.lo - r - error), 2 * (anchor.tail.hi - r + error), work).to(bits)


@lru_cache(maxsize=1024)
def _anchor(index: int, work: int) -> _Anchor:
    a = Fraction(index, 1 << _SPACING)
    density = exact.gauss_density(a, work)
    before, here = 0, 1  # He_j(a) 2^(_SPACING j), a whole number
    coefficients, width = [], 0
    for j in range(_terms(work)):
        below = math.factorial(j + 1) << _SPACING * j
        low, high = sorted((density.lo * here * (-1) ** j, density.hi * here * (-1) ** j))
        low, high = low // below, -(-high // below)
        coefficients.append(low)
        width = max(width, high - low)
        before, here = here, index * here - (j * before << 2 * _SPACING)
    return _Anchor(exact.gauss_tail(a, work), tuple(reversed(coefficients)), width)


def _terms(work: int) -> int:
    """The least m with (1/32)^(m+1)/sqrt(m!) below 2^-work, with a bit to spare."""
    m = 1
    while (_SPACING + 1) * (m + 1) + 0.5 * math.lgamma(m + 1) / math.log(2) < work + 1:
        m += 1
    return m


def forget() -> None:
    _anchor.cache_clear()
