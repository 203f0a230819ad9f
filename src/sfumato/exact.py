"""Certified enclosures of real numbers, in integer arithmetic.

An `Enclosure` holds lo <= value * 2^bits <= hi for two Python integers. Every operation rounds the lower end down and
the upper end up, so whatever is computed with it is a proof: if `lo` of one number lies above `hi` of another, the
first number *is* larger. The samplers decide their rare close calls with it; tests and prices round with it.

Speed does not matter here (one call per many millions of draws), being right does.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Enclosure:
    """lo <= value * 2^bits <= hi."""

    lo: int
    hi: int
    bits: int

    def __add__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.lo + other.lo, self.hi + other.hi, self.bits)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.lo - other.hi, self.hi - other.lo, self.bits)

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.hi, -self.lo, self.bits)

    def __mul__(self, other: Enclosure) -> Enclosure:
        products = (self.lo * other.lo, self.lo * other.hi, self.hi * other.lo, self.hi * other.hi)
        return Enclosure(min(products) >> self.bits, -(-max(products) >> self.bits), self.bits)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        if other.lo <= 0:
            raise ZeroDivisionError("division needs a divisor that is certainly positive")
        ends = (other.lo, other.hi)
        low = min((self.lo << self.bits) // end for end in ends)
        high = max(-((-self.hi << self.bits) // end) for end in ends)
        return Enclosure(low, high, self.bits)

    def times(self, factor: Fraction) -> Enclosure:
        """The product with an exact number."""
        p, q = factor.numerator, factor.denominator
        low, high = sorted((self.lo * p, self.hi * p))
        return Enclosure(low // q, -(-high // q), self.bits)

    def over(self, n: int) -> Enclosure:
        """The quotient by a positive whole number."""
        return Enclosure(self.lo // n, -(-self.hi // n), self.bits)

    def widen(self, ulps: int) -> Enclosure:
        return Enclosure(self.lo - ulps, self.hi + ulps, self.bits)

    def to(self, bits: int) -> Enclosure:
        """The same number with fewer fractional bits."""
        shift = self.bits - bits
        return Enclosure(self.lo >> shift, -(-self.hi >> shift), bits)

    def __float__(self) -> float:
        return float(Fraction(self.lo + self.hi, 2 << self.bits))


def enclose(value: Fraction | int, bits: int) -> Enclosure:
    scaled = Fraction(value) * (1 << bits)
    return Enclosure(math.floor(scaled), math.ceil(scaled), bits)


def exp_neg(x: Fraction, bits: int) -> Enclosure:
    """exp(-x) for x >= 0.

    x is halved until it is below 2^-8, the Taylor polynomial is summed with its remainder (|y|^n / n!, alternating
    terms of falling size), and the result is squared back.
    """
    if x < 0:
        raise ValueError("exp_neg needs x >= 0")
    if x > 2 * bits + 64:  # exp(-x) < 2^-x < 2^-bits
        return Enclosure(0, 1, bits)
    halvings = max(0, math.ceil(x).bit_length() + 8)
    work = bits + halvings + 16
    y = enclose(x / (1 << halvings), work)
    low = high = total_low = total_high = 1 << work  # terms and sums written out in integers: this loop is called a lot
    n = 0
    while high > 1:
        n += 1
        low, high = (low * y.lo >> work) // n, -((-high * y.hi >> work) // n)
        if n % 2 == 0:
            total_low, total_high = total_low + low, total_high + high
        else:
            total_low, total_high = total_low - high, total_high - low
    total_low, total_high = total_low - high - 1, total_high + high + 1
    for _ in range(halvings):
        total_low, total_high = total_low * total_low >> work, -(-total_high * total_high >> work)
    return Enclosure(max(total_low, 0), total_high, work).to(bits)


def _atanh_inverse(n: int, bits: int) -> Enclosure:
    """atanh(1/n) = sum of 1 / ((2j+1) n^(2j+1)); what is left after the last term is below one more of it."""
    work = bits + 16
    low = high = 0
    power, j = Fraction(1, n), 0
    while True:
        term = enclose(power / (2 * j + 1), work)
        low, high = low + term.lo, high + term.hi
        if term.hi <= 1:
            return Enclosure(low, high + 1, work).to(bits)
        power /= n * n
        j += 1


@lru_cache(maxsize=16)
def ln2(bits: int) -> Enclosure:
    return _atanh_inverse(3, bits + 2).times(Fraction(2)).to(bits)


def ln(x: Fraction, bits: int) -> Enclosure:
    """The natural logarithm of x > 0: x = m 2^e with m in [1, 2), and ln m = 2 atanh((m-1)/(m+1))."""
    if x <= 0:
        raise ValueError("ln needs x > 0")
    e = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** e
    if m < 1:
        m, e = m * 2, e - 1
    work = bits + abs(e).bit_length() + 16
    z = enclose((m - 1) / (m + 1), work)  # at most 1/3, so terms fall ninefold
    square, power = z * z, z
    total, j = z, 0
    while power.hi > 1:
        j += 1
        power = power * square
        total = total + power.over(2 * j + 1)
    return (total.widen(2).times(Fraction(2)) + ln2(work).times(Fraction(e))).to(bits)


@lru_cache(maxsize=16)
def pi(bits: int) -> Enclosure:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239), alternating series of falling terms."""
    work = bits + 16

    def atan_inverse(n: int) -> Enclosure:
        total, power, j = enclose(0, work), Fraction(1, n), 0
        while True:
            term = enclose(power / (2 * j + 1), work)
            total = total + term if j % 2 == 0 else total - term
            if term.hi <= 1:
                return total.widen(1)
            power /= n * n
            j += 1

    return (atan_inverse(5).times(Fraction(16)) - atan_inverse(239).times(Fraction(4))).to(bits)


def sqrt(x: Enclosure) -> Enclosure:
    low = math.isqrt(max(x.lo, 0) << x.bits)
    return Enclosure(low, math.isqrt(x.hi << x.bits) + 1, x.bits)


def gauss_density(z: Fraction, bits: int) -> Enclosure:
    """exp(-z^2/2) / sqrt(2 pi)."""
    work = bits + 8
    return (exp_neg(z * z / 2, work) / sqrt(pi(work).times(Fraction(2)))).to(bits)


def gauss_tail(z: Fraction, bits: int) -> Enclosure:
    """P(N(0,1) > z) for z >= 0.

    P(0 < N <= z) = density(z) * (z + z^3/3 + z^5/15 + ...), all terms positive; once the ratio z^2/(2n+1) is below
    one half, what is left is at most the last term.
    """
    if z < 0:
        raise ValueError("gauss_tail needs z >= 0")
    if z * z > 2 * bits + 64:  # the tail is below exp(-z^2/2) < 2^-bits
        return Enclosure(0, 1, bits)
    work = bits + math.ceil(z * z) + 24  # the sum grows like exp(z^2/2)
    square, first = enclose(z * z, work), enclose(z, work)
    low, high = first.lo, first.hi  # the running term, written out in integers: this loop is most of the time
    total_low, total_high = low, high
    n = 0
    while high > 1 or 2 * z * z > 2 * n + 1:
        n += 1
        low = (low * square.lo >> work) // (2 * n + 1)
        high = -((-high * square.hi >> work) // (2 * n + 1))
        total_low, total_high = total_low + low, total_high + high
    total = Enclosure(total_low, total_high + high + 1, work)
    return (enclose(Fraction(1, 2), work) - gauss_density(z, work) * total).to(bits)


_FAR = 6  # from here on the continued fraction is quick


def mills(x: Fraction, bits: int) -> Enclosure:
    """P(N(0,1) > x) / density(x) for x >= 0, which is about 1/x: no digits are lost where both are next to nothing.

    Far out by Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))), whose rest after n steps lies in
    [0, (n + 1)/x]; every step narrows what is known.
    """
    if x < _FAR:
        work = bits + math.ceil(x * x) + 16
        return (gauss_tail(x, work) / gauss_density(x, work)).to(bits)
    work, n = bits + 16, 16
    first = enclose(x, work)
    while True:
        denominator = Enclosure(first.lo, first.hi + enclose((n + 1) / x, work).hi, work)
        for k in range(n, 0, -1):
            denominator = first + enclose(k, work) / denominator
        ratio = (enclose(1, work) / denominator).to(bits)
        if ratio.hi - ratio.lo <= 4 or n > bits * bits:
            return ratio
        n *= 2


def short_above(x: Fraction, bits: int = 128) -> Fraction:
    """x itself where its denominator is short, else the next multiple of 2^-bits above: sums of many stay small."""
    return x if x.denominator.bit_length() <= bits else Fraction(math.ceil(x * (1 << bits)), 1 << bits)


def is_above(x: Fraction, y: Fraction) -> bool:
    """x > y, without the detours that a comparison of any two numbers takes."""
    return x.numerator * y.denominator > y.numerator * x.denominator


def total_above(x: Fraction, y: Fraction, bits: int) -> Fraction:
    """`short_above(x + y, bits)`. Where both have powers of two below them, as sums of floats do, by shifts alone."""
    a, b = x.denominator, y.denominator
    if a & (a - 1) or b & (b - 1):
        return short_above(x + y, bits)
    larger = max(a, b)
    return short_above(Fraction(x.numerator * (larger // a) + y.numerator * (larger // b), larger), bits)


def float_above(x: Fraction) -> float:
    """The least float64 that is not below x; infinity above the largest."""
    try:
        near = float(x)
    except OverflowError:
        return math.inf if x > 0 else -sys.float_info.max
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def decimal_above(x: Fraction) -> float:
    """The least float64 that stands for a number not below x: a float is read as the decimal that it prints, here as in
    every argument, so what costs three tenths costs 0.3."""
    near = float_below(x)
    while math.isfinite(near) and Fraction(repr(near)) < x:
        near = math.nextafter(near, math.inf)
    return near


def float_below(x: Fraction) -> float:
    """The greatest float64 that is not above x."""
    return -float_above(-x)


def sqrt_above(x: Fraction) -> float:
    """The least float64 that is not below the square root of x >= 0."""
    if x and not Fraction(1, 2**1000) < x < 2**1000:  # floats thin out here: bring x near 1 by an even power of two
        half = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
        return float_above(Fraction(sqrt_above(x / Fraction(4) ** half)) * Fraction(2) ** half)
    near = math.sqrt(x)
    while Fraction(near) ** 2 < x:
        near = math.nextafter(near, math.inf)
    while near > 0 and Fraction(math.nextafter(near, 0.0)) ** 2 >= x:
        near = math.nextafter(near, 0.0)
    return near
