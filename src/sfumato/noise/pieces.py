"""Normal magnitudes from pieces of parabolas: one table for every scale.

Let z(u) be the size that a standard normal exceeds with probability u, u = 2 Q(z). A rounded Gaussian's magnitude is
the whole number nearest to sigma z(U), a discrete Gaussian's nearly so (`stretch`). Here z is a parabola in each of
512 cells (1024 at large scales) to an octave of U, picked by the exponent and the leading mantissa bits of U as a
float; a draw is three lookups and a handful of multiplications, all in passes over arrays that stay in the cache.

How far the parabolas may be off (`Pieces.error`) is not hoped for but computed with them. From u = 2 Q(z), with
d = 2 density(z):   z' = -1/d,   z'' = z/d^2,   z''' = -(1 + 2 z^2)/d^3,   so |z'''| grows as u falls, and is largest at
a cell's lower end. The parabola through the three Chebyshev nodes of a cell of width w is off by at most
w^3/192 max|z'''|; whatever moves its values at the nodes by e moves it by at most 5/3 e in the cell (the Lebesgue
constant of these nodes). That covers the error of the values there and of the coefficients, which is measured; to it
comes the rounding of the evaluation: no term passes through more than six operations, each off by at most
2^-53 of |c2| u^2 + |c1| u + |c0|.

Where the result lies within that error, and what the conversion of U and the bits not drawn may add, of a place where
the rounding changes, it is *too close to call*, and so is every U in the far tail. Whoever asked decides these by other
means. The margin is the same in all cells: a close call is equally likely whatever the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..laws import NDTRI_ERROR, Floats, Integers, _Normal
from .bits import Words

DEEP = 44  # uniforms below 2^DEEP / 2^63 are always too close to call
WIDEST = 0.02  # beyond this margin, in steps, one draw in 25 would be too close to call
_COARSE, _FINE, _FINE_SCALE = 9, 10, 2.0**26  # mantissa bits of a cell; twice the cells are off by an eighth
# Adding 3/2 2^52 rounds a float to a whole number, half to even, and leaves that number in the mantissa.
_ROUND = 1.5 * 2.0**52
_ROUND_BITS = int(np.float64(_ROUND).view(np.int64))


@dataclass(frozen=True)
class Pieces:
    """A multiple of z(n / 2^63) is (square n + linear) n + constant in the cell of n, off by at most `error`."""

    constant: Floats
    linear: Floats
    square: Floats
    error: float
    mantissa: int

    def stretched(self, stretch: float) -> Pieces:
        constant = stretch * self.constant
        constant[0] = 0.5  # the far tail's cell: at no scale an answer, for it is nearest to no whole number
        return Pieces(constant, stretch * self.linear, stretch * self.square, stretch * self.error, self.mantissa)


@lru_cache(maxsize=2)
def standard(mantissa: int) -> Pieces:
    """The parabolas of the standard normal: some ten thousand, made once in a few milliseconds."""
    cells = 1 << mantissa
    octave = np.ldexp(1.0, np.arange(DEEP, 63))[:, None]
    least = (octave * (1 + np.arange(cells) / cells)).ravel()
    width = (octave / cells).repeat(cells, axis=1).ravel()
    middle, reach = least + 0.5 * width, math.sqrt(0.75) * 0.5 * width
    nodes = np.array([middle - reach, middle, middle + reach])
    sizes = -special.ndtri(nodes * 2.0**-64)
    a, b, c = nodes
    rise = (sizes[1] - sizes[0]) / (b - a)
    square = ((sizes[2] - sizes[1]) / (c - b) - rise) / (c - a)
    linear = rise - square * (a + b)
    constant = sizes[0] - a * (rise - square * b)
    error = _error(least, width, nodes, sizes, (constant, linear, square))
    constant, linear, square = (np.append(0.0, part) for part in (constant, linear, square))  # cell 0: n below 2^DEEP
    return Pieces(constant, linear, square, error, mantissa)


def _error(
    least: Floats, width: Floats, nodes: Floats, sizes: Floats, coefficients: tuple[Floats, Floats, Floats]
) -> float:
    """How far any of the parabolas may be off from z, all roundings included."""
    constant, linear, square = coefficients
    # A little more than z at the cell's lower end: z at the last node of the cell below.
    largest = np.append(-special.ndtri(least[:1] * 2.0**-64), sizes[2, :-1])
    third = (1 + 2 * largest**2) / (2 * np.exp(-0.5 * largest**2) / math.sqrt(2 * math.pi)) ** 3
    between = (width * 2.0**-63) ** 3 / 192 * third
    most = least + width
    rounding = 6 * 2.0**-53 * ((np.abs(square) * most + np.abs(linear)) * most + np.abs(constant))
    at_nodes = (
        np.abs((square * nodes + linear) * nodes + constant - sizes).max(axis=0) + NDTRI_ERROR * largest + rounding
    )
    return 1.01 * float((between + 5 / 3 * at_nodes + rounding).max())  # 1 % for the roundings in this very line


@lru_cache(maxsize=8)
def _stretched(stretch: float) -> Pieces:
    return standard(_FINE if stretch > _FINE_SCALE else _COARSE).stretched(stretch)


def margin(law: _Normal) -> float:
    """How far the float before its rounding may be off, in steps."""
    # z moves by at most 1.26 dt/t when t does (Mills' ratio): 2^-53 of t by conversion, 2^-DEEP by the bits not drawn
    return _stretched(law.stretch).error + 1.26 * law.stretch * (2.0**-53 + 2.0**-DEEP) + law.invert_error


class Reader:
    """Draws of one law, block by block. It holds its own working space: one reader, one thread."""

    def __init__(self, law: _Normal, block: int) -> None:
        self._pieces = _stretched(law.stretch)
        self._sure = 0.5 - margin(law)
        self._shift = 52 - self._pieces.mantissa
        self._before = ((1023 + DEEP) << self._pieces.mantissa) - 1  # the leading bits of the float 2^DEEP are cell 1
        self._floats = np.empty((3, block))
        self._close = np.empty(block, dtype=np.bool_)

    def read(self, words: Words, out: Integers) -> NDArray[np.intp]:
        """Fills `out` with signed draws, one for each word; returns the indices that are too close to call."""
        n, x, part = self._floats[:, : out.size]
        close, table = self._close[: out.size], self._pieces
        cells = out  # until the draws are known
        np.right_shift(words, np.uint64(1), out=cells.view(np.uint64))
        np.copyto(n, cells)
        np.right_shift(n.view(np.int64), self._shift, out=cells)
        cells -= self._before
        table.square.take(cells, mode="clip", out=x)
        x *= n
        table.linear.take(cells, mode="clip", out=part)
        x += part
        x *= n
        table.constant.take(cells, mode="clip", out=part)
        x += part
        # The lowest bit of the word is the sign. It goes into the float, since rounding treats both signs alike.
        signs = part.view(np.uint64)
        np.left_shift(words, np.uint64(63), out=signs)
        np.bitwise_xor(x.view(np.uint64), signs, out=x.view(np.uint64))
        np.add(x, _ROUND, out=n)
        np.subtract(n.view(np.int64), _ROUND_BITS, out=out)
        n -= _ROUND
        n -= x
        np.abs(n, out=n)
        np.greater_equal(n, self._sure, out=close)
        return close.nonzero()[0]


def forget() -> None:
    standard.cache_clear()
    _stretched.cache_clear()
