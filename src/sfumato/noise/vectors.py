"""Exact draws from laws of whole vectors whose coordinates depend on each other: noise by the size of a norm.

    sup_norm    P(k) proportional to exp(-max |k_i| / scale) on whole vectors k
    euclidean   x rounded to whole numbers, where x has the density proportional to exp(-|x|_2 / scale)

and bounds on how far one coordinate strays. Proofs: vectors.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import exact
from ..checks import refuse
from ..exact import Enclosure
from ..laws import DEEPEST_Z, LOG_ERROR, NDTRI_ERROR, Geometric, Integers, Law
from . import inversion
from .bits import Bits

_BLOCK = 1 << 15
MOST = 2**20  # coordinates
_SURE = 1 + 1e-9  # special functions are good to 1e-12


# ------------------------------------------------------------------------------------------------ L-infinity


def sup_norm(scale: float, count: int, bits: Bits) -> Integers:
    """One vector of `count` whole numbers."""
    n = _sup_radius(scale, count, bits)
    return _below(np.full(count, 2 * n + 1, dtype=np.uint64), bits).astype(np.int64) - n


def _sup_radius(scale: float, count: int, bits: Bits) -> int:
    """n with P(n) proportional to (2n + 1)^count q^n: a sum of count + 1 geometric numbers, kept with probability
    prod (2n + 1)/(2 (n + j))."""
    law, j = Geometric(scale), np.arange(1, count + 1, dtype=np.uint64)
    while True:
        n = int(inversion.draw(law, count + 1, bits).sum())
        if bool((_below(np.uint64(2) * (np.uint64(n) + j), bits) <= np.uint64(2 * n)).all()):
            return n


def _below(limits: NDArray[np.uint64], bits: Bits) -> NDArray[np.uint64]:
    """Uniform below each limit: words of the last, incomplete run are drawn again."""
    words, whole = bits.words(limits.size), np.uint64(2**64 - 1) // limits * limits
    while (late := np.flatnonzero(words >= whole)).size:
        words[late] = bits.words(late.size)
    return words % limits


def sup_norm_width(scale: float, count: int, alpha: float) -> float:
    """w with P(|k_i| > w) <= alpha for each coordinate."""
    peak = 1 / (scale * math.sqrt(2 * math.pi * count))
    if peak > 0.5:
        raise refuse("scale", scale, "more steps")

    def tail(w: float) -> float:
        x = (w + 0.5) / scale
        above = float(special.pdtr(count, x) - x / count * special.pdtr(count - 1, x))
        bent = (count - 1) / (w + 1) ** 2 / 24 + 1 / (12 * scale)
        return (max(above, 0.0) + 1e-12) * _SURE / ((1 - peak) * (1 - min(bent, 0.5)))

    return math.ceil(_least(tail, alpha, scale * count))


def sup_norm_reach(scale: float, count: int, alpha: float) -> float:
    """w with P(max |k_i| > w) <= alpha."""
    peak = 1 / (scale * math.sqrt(2 * math.pi * count))

    def tail(w: float) -> float:
        above = float(special.pdtr(count, (w + 0.5) / scale)) + (peak if w < count * scale else 0.0)
        return (above + 1e-12) * _SURE / (1 - peak)

    return math.ceil(_least(tail, alpha, scale * count))


# ------------------------------------------------------------------------------------------------ Euclidean


def euclidean(scale: float, count: int, bits: Bits) -> Integers:
    """One vector of `count` whole numbers: round(scale * sqrt(W) * N_i), with W chi-square."""
    size = _Size(scale, count, bits)
    tails = cast(Law, size)  # all that settling asks of a law is its tail
    near, spread = size.rough()
    # ndtri and the product; the size; the bits of t not drawn, by Mills' ratio. Deep uniforms are always settled. A
    # close call is equally likely whatever the value drawn.
    margin = (DEEPEST_Z * near + 1) * (NDTRI_ERROR + spread) + 1.26 * near * (2.0**-53 + 2.0**-inversion.INVERT_DEEP)
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        part = out[start : start + _BLOCK]
        words = bits.words(part.size)
        n = (words >> np.uint64(1)).view(np.int64)
        t = (n.astype(np.float64) + 0.5) * 2.0**-63
        x = 0.5 - near * special.ndtri(0.5 * t)
        below = np.floor(x)
        part[:] = below
        close = (np.abs(x - below - 0.5) >= 0.5 - margin) | (n < 1 << inversion.INVERT_DEEP)
        for index in np.flatnonzero(close):
            part[index] = inversion.settle(tails, int(n[index]), int(part[index]), bits)
        sign = -(words & np.uint64(1)).view(np.int64)
        np.bitwise_xor(part, sign, out=part)
        part -= sign
    return out


@dataclass
class _Size:
    """scale * sqrt(W), W = -2 ln(U_1 ... U_m): chi-square with 2m = count + 1 degrees of freedom, or count + 2 where
    that is odd (a coordinate more is drawn, and not shown)."""

    scale: float
    count: int
    bits: Bits
    precision: int = 64
    uniforms: list[int] = field(default_factory=list)
    radii: dict[int, Enclosure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words = self.bits.words(halves(self.count))

    def rough(self) -> tuple[float, float]:
        """The size, and how far it may be off, relative to it."""
        u = self._words.astype(np.float64)
        u += 0.5
        unseen = float(np.sum(0.5 / np.maximum(u - 1, 0.25)))  # moves ln U as the bits not drawn yet come in
        logs = -np.log(u * 2.0**-64)
        total = float(np.sum(logs))
        error = total * (LOG_ERROR + 2.0**-47) + self._words.size * 2.0**-52 + unseen
        low, high = max(total - error, 0.0), total + error
        near = self.scale * math.sqrt(2 * total)
        spread = 1.0 if low == 0 or not self._words.all() else (math.sqrt(high / low) - 1) + 2.0**-50
        return near, min(spread, 1.0)

    def enclose(self, precision: int) -> Enclosure:
        """The same, certified; further bits of every U are drawn as they are needed."""
        if precision not in self.radii:
            if not self.uniforms:
                self.uniforms = [int(word) for word in self._words]
            while self.precision < precision + 64 or min(self.uniforms) == 0:
                words = self.bits.words(len(self.uniforms)).tolist()
                self.uniforms = [(n << 64) | word for n, word in zip(self.uniforms, words, strict=True)]
                self.precision += 64
            low, high = (self._minus_log(n_plus, precision + 16) for n_plus in (1, 0))
            chi = Enclosure(max(2 * low.lo, 0), 2 * high.hi, precision + 16)
            self.radii[precision] = exact.sqrt(chi).times(Fraction(self.scale)).to(precision)
        return self.radii[precision]

    def _minus_log(self, plus: int, bits: int) -> Enclosure:
        """-ln of the product of all n + plus, over 2^precision each; kept to `bits` and some, rounded outwards."""
        keep, power, product = bits + 64 + self.count.bit_length(), 0, 1
        for n in self.uniforms:
            product *= n + plus
            extra = product.bit_length() - keep
            if extra > 0:
                product = -(-product >> extra) if plus else product >> extra
                power += extra
        length, work = product.bit_length(), bits + 64  # the product is mantissa * 2^-halvings, 1/2 <= mantissa <= 1
        halvings = self.precision * len(self.uniforms) - power - length
        mantissa = exact.ln(Fraction(product, 1 << length), work)
        return (exact.ln2(work).times(Fraction(halvings)) - mantissa).to(bits)

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        """P(|round(size * N)| >= k) for a size within its enclosure."""
        size = self.enclose(bits + 64)
        ends = []
        for end, up in ((size.lo, 1), (size.hi, 0)):
            if end <= 0:
                ends.append(exact.enclose(0, bits))
                continue
            z = Fraction(((2 * k - 1) << (2 * size.bits)) // (2 * end) + up, 1 << size.bits)  # of many bits, not more
            ends.append(exact.gauss_tail(z, bits + 8).times(Fraction(2)).to(bits))
        return Enclosure(ends[0].lo, ends[1].hi, bits)


def halves(count: int) -> int:
    """m, the number of uniforms: one coordinate is a sum of m Laplace variables."""
    return count // 2 + 1


def euclidean_width(scale: float, count: int, alpha: float) -> float:
    """w with P(|x_i| > w) <= alpha before rounding: |x_i|/scale is Gamma(m - k) with probability
    2 C(m - 1 + k, k) 2^-(m + k), k = 0, ..., m - 1."""
    m = halves(count)
    k = np.arange(m, dtype=np.float64)
    logs = special.gammaln(m + k) - special.gammaln(k + 1) - special.gammaln(m) - (m + k - 1) * math.log(2)
    likely = logs > -60
    weights, shapes = np.exp(logs[likely]), m - k[likely]
    left_out = m * math.exp(-60.0)
    return _least(
        lambda w: float(weights @ special.gammaincc(shapes, w / scale)) * (1 + 1e-6) + left_out, alpha, scale * m
    )


def _least(tail: Any, alpha: float, start: float) -> float:
    """A w with tail(w) <= alpha, to a millionth."""
    if not 0 < alpha < 1:
        raise refuse("alpha", alpha, "a probability above 0 and below 1")
    low, high = 0.0, start
    while tail(high) > alpha:
        low, high = high, 2 * high
        if high > 2.0**200:
            raise refuse("alpha", alpha, "a larger probability: error bars go down to about 1e-12")
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= alpha else (middle, high)
    return high
