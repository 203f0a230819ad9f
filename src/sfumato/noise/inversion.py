"""Exact draws from any law on the integers, by inverting its tail.

Let U be uniform on (0, 1) and X the law's magnitude. #{k >= 1 : P(X >= k) > U} has the law of X: it is at least k
exactly when U < P(X >= k). A sign bit makes it two-sided. U is an endless string of random bits of which the first 63
are drawn at once, U in [n, n+1) / 2^63; they decide nearly always. Three ways to decide, all in float64, all with an
error that is bounded, not hoped for:

  table     (small scales) The uniform's leading bits, read as a float's exponent and mantissa, pick a cell. Cells are
            narrow enough that at most one boundary P(X >= k) comes near any of them, so a draw is one lookup and one
            comparison with that boundary.
  pieces    (the Gaussians, many draws at larger scales) The leading bits pick a parabola that the inverse is nearly
            equal to: see pieces.py.
  inverse   (any scale) The law's closed inverse gives a real x, and the magnitude is floor(x).

Where n lies within the margin of a boundary, the inverse decides for the pieces; where it cannot either, more bits are
drawn and the boundary is enclosed in integer arithmetic until it is certain on which side U lies (`settle`). This
happens about once in 10^8 draws from a table, once in 10^5 or less up to a scale of 2^26, and once in 20,000 at the
scale of real-valued sums (2^28 steps).

Claim: a draw has exactly the law P. Proof: where a fast path answers, n/2^63 is further from every boundary than the
float error of all that could matter, so the answer is #{k : P(X >= k) > U} for every U in [n, n+1)/2^63; where none
does, `settle` returns that number for the U whose bits it extends. The margin costs time, never exactness. So all ways
make the same of the same bits, and which one is taken may depend on anything.

Every draw takes one 64-bit word and the same steps, whatever the value; only the close calls take more (F4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ..laws import TAIL_ERROR, Integers, Law, RoundedGaussian, _Normal, _small_tails
from . import anchors, pieces
from .bits import Bits, Words

_BLOCK = 1 << 15  # draws per pass: the working set stays in the second-level cache
_MARGIN = int(TAIL_ERROR * 2**63) * 2 + 2  # of the boundary, in units of 2^-63: twice the float error and the open end
_FEW = 1 << 12  # below this many draws a big table is not worth building
# Uniforms below 2^_DEEP / 2^63 are always settled by enclosures. A table's cells must stay wider than the margin; for
# the inverse the bits not drawn must not matter.
_DEEP, INVERT_DEEP = 36, pieces.DEEP
_SMALL_SCALE, _TABLE_SCALE, _PIECES_SCALE = 64.0, 2048.0, 1024.0


def draw(law: Law, count: int, bits: Bits) -> Integers:
    """`count` independent draws."""
    out = np.empty(count, dtype=np.int64)
    fill, late = _way(law, count, bits), _Late(law, bits)
    for start in range(0, count, _BLOCK):
        late.keep(start, *fill(out[start : start + _BLOCK]))
        late.add_to(out, at_least=_BLOCK)
    late.add_to(out)
    return out


def add(law: Law, sums: Integers, bits: Bits) -> None:
    """Adds an independent draw to each of the sums, in place: the same draws as `draw`, which never leave the cache."""
    block = np.empty(min(sums.size, _BLOCK), dtype=np.int64)
    fill, late = _way(law, sums.size, bits), _Late(law, bits)
    for start in range(0, sums.size, _BLOCK):
        part = sums[start : start + _BLOCK]
        late.keep(start, *fill(block[: part.size]))
        part += block[: part.size]
        late.add_to(sums, at_least=_BLOCK)
    late.add_to(sums)


class _Late:
    """Draws that a block left open, at 0. They are few, and cheaper together."""

    def __init__(self, law: Law, bits: Bits) -> None:
        self._law, self._bits, self._count = law, bits, 0
        self._places: list[NDArray[np.intp]] = []
        self._words: list[Words] = []

    def keep(self, start: int, places: NDArray[np.intp], words: Words) -> None:
        if places.size:
            self._places.append(places + start)
            self._words.append(words)
            self._count += places.size

    def add_to(self, out: Integers, at_least: int = 1) -> None:
        """Draws them now, if there are at least so many."""
        if self._count >= at_least:
            out[np.concatenate(self._places)] += _inverted(self._law, np.concatenate(self._words), self._bits)
            self._count = 0
            self._places.clear()
            self._words.clear()


_Fill = Callable[[Integers], tuple[NDArray[np.intp], Words]]
"""Fills a block of at most _BLOCK draws; returns the places it left open, at 0, and the words that are drawn there."""

_NONE = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64)


def _way(law: Law, count: int, bits: Bits) -> _Fill:
    """The fastest way to draw so many. All ways make the same of the same words."""
    many = count >= _FEW
    if many and isinstance(law, _Normal) and law.spread > _PIECES_SCALE and pieces.margin(law) < pieces.WIDEST:
        return partial(_by_pieces, pieces.Reader(law, min(count, _BLOCK)), bits)
    if law.spread <= (_TABLE_SCALE if many else _SMALL_SCALE):
        return partial(_by_table, law, _table(law), bits)
    if law.invert(np.full(1, 0.5)) is None:
        raise ArithmeticError(f"{law} has neither a table nor an inverse")
    return partial(_by_inverse, law, bits)


def _by_pieces(reader: pieces.Reader, bits: Bits, out: Integers) -> tuple[NDArray[np.intp], Words]:
    words = bits.words(out.size)
    close = reader.read(words, out)
    out[close] = 0
    return close, words[close]


def _by_table(law: Law, table: _Table, bits: Bits, out: Integers) -> tuple[NDArray[np.intp], Words]:
    words = bits.words(out.size)
    close = table.read(words, out)
    if close is not None:
        for index in close:
            out[index] = settle(law, int(words[index]) >> 1, int(out[index]), bits)
    if not law.one_sided:
        _sign(words, out)
    return _NONE


def _by_inverse(law: Law, bits: Bits, out: Integers) -> tuple[NDArray[np.intp], Words]:
    out[:] = _inverted(law, bits.words(out.size), bits)
    return _NONE


def _sign(words: Words, out: Integers) -> None:
    """The lowest bit is the sign; the other 63 made the magnitude."""
    sign = (words & np.uint64(1)).view(np.int64)
    np.negative(sign, out=sign)
    np.bitwise_xor(out, sign, out=out)
    out -= sign


def _inverted(law: Law, words: Words, bits: Bits) -> Integers:
    """Draws by the closed inverse."""
    n = (words >> np.uint64(1)).view(np.int64)
    # relative error 2^-53 from the conversion, half of 2^-63/t from the bits not drawn
    x = law.invert((n.astype(np.float64) + 0.5) * 2.0**-63)
    assert x is not None
    below = np.floor(x)
    out = below.astype(np.int64)
    x -= below
    x -= 0.5
    # x moves by at most 1.26 scale dt/t when t does (Mills' ratio for the Gaussians, 1 for the others)
    sure = 0.5 - law.invert_error - 1.26 * law.spread * (2.0**-53 + 2.0 ** -(INVERT_DEEP + 1))
    gap = np.abs(x, out=below)
    if gap.max() >= sure or n.min() < 1 << INVERT_DEEP:
        for index in np.flatnonzero((gap >= sure) | (n < 1 << INVERT_DEEP)):
            at, guess = int(n[index]), int(out[index])
            if at < 1 << INVERT_DEEP:
                out[index] = settle(law, at, guess, bits)
            else:
                out[index] = _settle_at(law, at, guess + int(x[index] > 0), bits)
    if not law.one_sided:
        _sign(words, out)
    return out


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
        above = _count_above(law, n, precision, guess)
        if above is not None:
            return above


def _settle_at(law: Law, n: int, k: int, bits: Bits) -> int:
    """The same where it is known that no boundary but P(X >= k) is near: half the work."""
    if k < 1:
        return 0
    precision = 63
    while True:
        n = (n << 64) | int(bits.words(1)[0])
        precision += 64
        side = _side(law, k, n, precision)
        if side != 0:
            return k if side > 0 else k - 1


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
    if isinstance(law, RoundedGaussian):
        tail = anchors.enclose_tail(law, k, precision)
    else:
        tail = law.enclose_tail(k, precision)
    if tail.lo >= n + 1:
        return 1
    return -1 if tail.hi <= n else 0


def forget() -> None:
    """Drop the cached tables (benchmarks measure the set-up too)."""
    anchors.forget()
    pieces.forget()
    _table.cache_clear()
    _small_tails.cache_clear()
