"""Exact draws from any law on the integers, by inverting its tail.

Let U be uniform on (0, 1) and X the law's magnitude. #{k >= 1 : P(X >= k) > U} has the law of X: it is at least k
exactly when U < P(X >= k). A sign bit makes it two-sided. U is an endless string of random bits of which the first 63
are drawn at once, U in [n, n+1) / 2^63; they decide nearly always. Two ways to decide, both in float64, both with an
error that is bounded, not hoped for:

  table     (small scales) The uniform's leading bits, read as a float's exponent and mantissa, pick a cell. Cells are
            narrow enough that at most one boundary P(X >= k) comes near any of them, so a draw is one lookup and one
            comparison with that boundary.
  inverse   (any scale) The law's closed inverse gives a real x, and the magnitude is floor(x).

Where n lies within the margin of a boundary, more bits are drawn and the boundary is enclosed in integer arithmetic
until it is certain on which side U lies (`settle`). This happens about once in 10^8 draws from a table, and once in
10^4 at the scale of real-valued sums (2^28 steps).

Claim: a draw has exactly the law P. Proof: where the fast path answers, |n/2^63 - boundary| exceeds the float error of
every boundary that could matter, so the answer is #{k : P(X >= k) > U} for every U in [n, n+1)/2^63; where it does not,
`settle` returns that number for the U whose bits it extends. The margin costs time, never exactness.

Every draw takes one 64-bit word and the same steps, whatever the value; only the settled ones take more (F4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..laws import TAIL_ERROR, Integers, Law, _small_tails
from .bits import Bits, Words

_BLOCK = 1 << 15  # draws per pass: the working set stays in the second-level cache
_MARGIN = int(TAIL_ERROR * 2**63) * 2 + 2  # of the boundary, in units of 2^-63: twice the float error and the open end
_FEW = 1 << 12  # below this many draws a big table is not worth building
# Uniforms below 2^_DEEP / 2^63 are always settled by enclosures. A table's cells must stay wider than the margin; for
# the inverse the bits not drawn must not matter.
_DEEP, INVERT_DEEP = 36, 44
_SMALL_SCALE, _TABLE_SCALE = 64.0, 2048.0


def draw(law: Law, count: int, bits: Bits) -> Integers:
    """`count` independent draws."""
    limit = _TABLE_SCALE if count >= _FEW else _SMALL_SCALE
    table = None
    if law.spread <= limit:
        table = _table(law)
    elif law.invert(np.full(1, 0.5)) is None:
        raise ArithmeticError(f"{law} has neither a table nor an inverse")
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        part = out[start : start + _BLOCK]
        words = bits.words(part.size)
        close = table.read(words, part) if table is not None else _invert(law, words, part)
        if close is not None:
            for index in close:
                part[index] = settle(law, int(words[index]) >> 1, int(part[index]), bits)
        if not law.one_sided:
            sign = (words & np.uint64(1)).view(np.int64)  # the lowest bit; the other 63 made the magnitude
            np.negative(sign, out=sign)
            np.bitwise_xor(part, sign, out=part)
            part -= sign
    return out


def _invert(law: Law, words: Words, out: Integers) -> NDArray[np.intp] | None:
    """Magnitudes by the closed inverse; returns the indices that are too close to call."""
    n = (words >> np.uint64(1)).view(np.int64)
    t = (
        n.astype(np.float64) + 0.5
    ) * 2.0**-63  # relative error 2^-53 from the conversion, 2^-63/t from the bits not drawn
    x = law.invert(t)
    assert x is not None
    below = np.floor(x)
    out[:] = below
    x -= below
    # x moves by at most 1.26 scale dt/t when t does (Mills' ratio for the Gaussians, 1 for the others)
    margin = law.invert_error + 1.26 * law.spread * (2.0**-53 + 2.0**-INVERT_DEEP)
    x -= 0.5
    np.abs(x, out=x)
    if x.max() < 0.5 - margin and n.min() >= 1 << INVERT_DEEP:
        return None
    return np.flatnonzero((x >= 0.5 - margin) | (n < 1 << INVERT_DEEP))


@dataclass(frozen=True)
class _Table:
    """Cells of the uniform n in [2^_DEEP, 2^63), 2^mantissa of them to an octave."""

    base: NDArray[np.int32]  # boundaries that lie above the whole cell, margin and all
    next: Integers  # the one boundary that may be near the cell, in units of 2^-63
    shift: int
    first: int

    def read(self, words: Words, out: Integers) -> NDArray[np.intp] | None:
        """Magnitudes by lookup; returns the indices that are too close to call."""
        cell = _cells((words >> np.uint64(11)).view(np.int64), self.shift)
        cell -= self.first
        near = self.next.take(cell, mode="clip")
        out[:] = self.base.take(cell, mode="clip")
        gap = (words >> np.uint64(1)).view(np.int64)
        lowest = gap.min()
        gap -= near
        out += gap < 0
        np.abs(gap, out=gap)
        if gap.min() > _MARGIN and lowest >= 1 << _DEEP:
            return None
        return np.flatnonzero((gap <= _MARGIN) | (words < np.uint64(2 << _DEEP)))


def _cells(top: Integers, shift: int) -> Integers:
    """The cell of a uniform given by its 53 leading bits: a whole number that is exact as a float, whose exponent and
    leading mantissa bits are the cell."""
    return np.right_shift(top.astype(np.float64).view(np.int64), shift)


@lru_cache(maxsize=32)
def _table(law: Law) -> _Table:
    boundaries = _boundaries(law)
    mantissa = max(2, math.ceil(math.log2(1.3 * law.spread + 1)))
    while True:
        table = _cut(boundaries, mantissa)
        if table is not None:
            return table
        mantissa += 1


def _boundaries(law: Law) -> Integers:
    """P(X >= k) for k = 1, 2, ... in units of 2^-63, down to below where enclosures take over."""
    least = 2.0 ** (_DEEP - 1 - 63)
    count = 16
    while float(law.tail(count)) > least:
        count *= 2
    tails = law.tail(np.arange(1, count + 1))
    tails = tails[: int(np.searchsorted(-tails, -least)) + 1]
    return np.minimum(tails * 2.0**63, 2.0**63 - 1024).astype(np.int64)


def _cut(boundaries: Integers, mantissa: int) -> _Table | None:
    """The table, or None if two boundaries come near one cell."""
    shift = 52 - mantissa
    first = int(_cells(np.array([1 << (_DEEP - 10)]), shift)[0])
    cells = (63 - _DEEP) << mantissa
    lowest = _cells(np.maximum(boundaries - _MARGIN, 0) >> 10, shift) - first
    highest = _cells(np.minimum(boundaries, 2**63 - 1 - _MARGIN) + _MARGIN >> 10, shift) - first
    touched = (highest[1:] >= 0) & (highest[1:] >= lowest[:-1])  # boundaries fall: the next one is lower
    if bool(touched.any()):
        return None
    above = np.bincount(np.clip(lowest, 0, cells), minlength=cells + 1)
    base = (boundaries.size - np.cumsum(above))[:cells]  # boundaries whose lowest cell is above this one
    padded = np.append(boundaries, 0)
    return _Table(base.astype(np.int32), padded[base], shift, first)


def settle(law: Law, n: int, guess: int, bits: Bits) -> int:
    """#{k >= 1 : P(X >= k) > U} for U in [n, n+1) / 2^63, drawing further bits of U until it is certain.

    `guess` is where to look first; it costs time where it is far off, and nothing else.
    """
    precision = 63
    while True:
        n = (n << 64) | int(bits.words(1)[0])
        precision += 64
        found = _count_above(law, n, precision, guess)
        if found is not None:
            return found


def _count_above(law: Law, n: int, precision: int, guess: int) -> int | None:
    """The number of boundaries above U in [n, n+1) / 2^precision; None if these bits do not tell."""
    low, high, step = max(guess, 0), max(guess, 0) + 1, 1
    while low > 0 and (side := _side(law, low, n, precision)) <= 0:  # until P(X >= low) > U, or low = 0
        if side == 0:
            return None
        low, high, step = max(low - step, 0), low, 2 * step
    while (side := _side(law, high, n, precision)) >= 0:  # until P(X >= high) <= U
        if side == 0:
            return None
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        side = _side(law, middle, n, precision)
        if side == 0:
            return None
        low, high = (middle, high) if side > 0 else (low, middle)
    return low


def _side(law: Law, k: int, n: int, precision: int) -> int:
    """+1 if P(X >= k) > U certainly, -1 if not certainly, 0 if these bits do not tell."""
    tail = law.enclose_tail(k, precision)
    if tail.lo >= n + 1:
        return 1
    return -1 if tail.hi <= n else 0


def forget() -> None:
    """Drop the cached tables (benchmarks measure the set-up too)."""
    _table.cache_clear()
    _small_tails.cache_clear()
