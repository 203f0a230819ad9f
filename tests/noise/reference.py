"""The laws once more, in mpmath: an independent hand to compare `sfumato.laws` and the samplers with.

The discrete Gaussian's tail is a direct sum up to scale 3000. Beyond, it is the *endpoint* Euler-Maclaurin formula
(Bernoulli numbers at the ends), where the library uses the midpoint one: other coefficients, other points.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from mpmath import bernoulli, erfc, exp, factorial, log, mp, mpf, sqrt

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, Law, RoundedGaussian, RoundedLaplace

PRECISION = 480  # bits of every value given here; what is compared with it has at most 63 + 4 * 64

SUMMED = 3000.0
LAWS = (RoundedGaussian, RoundedLaplace, DiscreteGaussian, DiscreteLaplace, Geometric)


def real(x: Fraction | float | int) -> Any:
    """An exact number as an mpf of the working precision."""
    exact = Fraction(x)
    return mpf(exact.numerator) / exact.denominator


@lru_cache(maxsize=1 << 17)
def tail(law: Law, k: int) -> Any:
    """P(|X| >= k), or P(X >= k) where one-sided, for k >= 1."""
    with mp.workprec(PRECISION):
        scale = mpf(law.spread)
        match law:
            case RoundedGaussian():
                return erfc((k - mpf(1) / 2) / scale / sqrt(mpf(2)))
            case RoundedLaplace():
                return exp(-(k - mpf(1) / 2) / scale)
            case DiscreteLaplace():
                return 2 * exp(-k / scale) / (1 + exp(-1 / scale))
            case Geometric():
                return exp(-k / scale)
            case DiscreteGaussian(sigma) if sigma <= SUMMED:
                sums = _summed_tails(sigma)
                return sums[min(k, len(sums) - 1)]
            case DiscreteGaussian(sigma):
                return _euler_maclaurin_tail(sigma, k)
    raise NotImplementedError(law)


@lru_cache(maxsize=32)
def _summed_tails(sigma: float) -> list[Any]:
    """P(|X| >= k) for k = 0, 1, ... by direct summation from the far end."""
    with mp.workprec(PRECISION + 32):
        rate = 1 / (2 * mpf(sigma) ** 2)
        weights, ratio, step = [mpf(1)], exp(-rate), exp(-2 * rate)
        while weights[-1] > mpf(2) ** -(PRECISION + 16):
            weights.append(weights[-1] * ratio)
            ratio *= step
        total, sums = mpf(0), [mpf(0)]
        for weight in reversed(weights[1:]):
            total += 2 * weight
            sums.append(total)
        sums.append(total + 1)
        return [s / (total + 1) for s in reversed(sums)]


def _euler_maclaurin_tail(sigma: float, k: int) -> Any:
    """sum_{j >= k} f(j) = int_k^inf f + f(k)/2 - sum_m B_2m/(2m)! f^(2m-1)(k), f the normal density."""
    with mp.workprec(PRECISION + 32):
        s = mpf(sigma)
        z = k / s
        density = exp(-z * z / 2) / sqrt(2 * mp.pi) / s
        total = erfc(z / sqrt(mpf(2))) / 2 + density / 2
        before, here = mpf(1), z  # He_0, He_1
        for m in range(1, 40):
            # f^(2m-1) = -He_(2m-1)(z) f / sigma^(2m-1)
            total += bernoulli(2 * m) / factorial(2 * m) * here * density / s ** (2 * m - 1)
            for n in (2 * m - 1, 2 * m):
                before, here = here, z * here - n * before
        return 2 * total  # the normaliser differs from sigma sqrt(2 pi) by exp(-2 pi^2 sigma^2): nothing


def magnitude_at(law: Law, t: Fraction) -> Any:
    """The real x that `law.invert(t)` approximates, where the law has a closed form; for the discrete Gaussian, the
    root of its smooth tail (midpoint Euler-Maclaurin, in the real variable)."""
    with mp.workprec(200):  # plenty for a float's error
        scale, at = mpf(law.spread), real(t)
        half = mpf(1) / 2
        match law:
            case RoundedGaussian():
                return half + scale * sqrt(mpf(2)) * mp.erfinv(1 - at)
            case RoundedLaplace():
                return half - scale * log(at)
            case DiscreteLaplace():
                return -scale * log(at * (1 + exp(-1 / scale)) / 2)
            case Geometric():
                return -scale * log(at)
            case DiscreteGaussian():
                z = sqrt(mpf(2)) * mp.erfinv(1 - at)
                for _ in range(6):  # Newton, from the continuous root
                    z += (_smooth(scale, z) - at / 2) / (exp(-z * z / 2) / sqrt(2 * mp.pi))
                return half + scale * z
    raise NotImplementedError(law)


def _smooth(sigma: Any, z: Any) -> Any:
    """P(X >= k) at k = sigma z + 1/2, for real k."""
    density = exp(-z * z / 2) / sqrt(2 * mp.pi)
    total, before, here = erfc(z / sqrt(mpf(2))) / 2, mpf(1), z
    for m in range(1, 14):
        half_bernoulli = -(1 - mpf(2) ** (1 - 2 * m)) * bernoulli(2 * m)
        total += half_bernoulli / factorial(2 * m) * here * density / sigma ** (2 * m)
        for n in (2 * m - 1, 2 * m):
            before, here = here, z * here - n * before
    return total


def scaled(value: Any, bits: int) -> tuple[int, int]:
    """floor and ceiling of value * 2^bits; they differ unless the value is that whole number exactly."""
    with mp.workprec(PRECISION + bits):
        product = mp.ldexp(value, bits)
        return int(mp.floor(product)), int(mp.ceil(product))


def inverts(law: Law, magnitude: int, n: int, precision: int) -> bool:
    """Is `magnitude` = #{k >= 1 : P(X >= k) > U} for every U in [n, n+1) / 2^precision?

    True exactly when tail(magnitude) >= (n+1)/2^precision and tail(magnitude + 1) <= n/2^precision.
    """
    if magnitude < 0 or (magnitude > 0 and scaled(tail(law, magnitude), precision)[0] < n + 1):
        return False
    return scaled(tail(law, magnitude + 1), precision)[1] <= n


def magnitude_of(law: Law, n: int, precision: int) -> int:
    """#{k >= 1 : P(X >= k) > U} at the point U = n / 2^precision, by bisection."""
    low, high = 0, 1
    while scaled(tail(law, high), precision)[0] > n:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if scaled(tail(law, middle), precision)[0] > n else (low, middle)
    return low
