"""The laws of the noise: probability, cdf, quantile and tail of every law on the integers that sfumato draws.

One formula per law. Samplers, error bars, accountants and audits all read it here.

A law lives on the integers (grid units). Its *reach* is the tail of the magnitude, `tail(k)` = P(|X| >= k) for
k >= 1 (P(X >= k) for a one-sided law): a draw is the number of reaches that lie above a uniform number, so the tail is
all a sampler needs. Three forms of it are given:

    tail(k)            float64, absolute error below TAIL_ERROR
    enclose_tail(k)    certified, to any number of bits
    invert(t)          where it exists in closed form: real x with floor(x) = #{k >= 1: tail(k) > t}, off by less than
                       `invert_error`

TAIL_ERROR is generous: the special functions used are good to about 2^-50, which the tests measure against
high-precision references; 2^-42 leaves a factor of 256.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from . import exact
from .checks import refuse
from .exact import Enclosure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TAIL_ERROR = 2.0**-42
# Relative errors of the inverses; measured: ndtri 2^-50.8, np.log with the product after it 2^-52.
NDTRI_ERROR, LOG_ERROR = 2.0**-48, 2.0**-50
SCALES = (2.0**-12, 2.0**40)

# The mesh of the deepest uniform a sampler inverts is 2^-63, so magnitudes beyond these multiples of the scale are
# decided by enclosures alone.
DEEPEST_LOG = 63 * math.log(2)
DEEPEST_Z = 9.2


def _scale(value: Any, name: str) -> float:
    low, high = SCALES
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not low <= value <= high:
        raise refuse(name, value, f"a number of grid steps from {low:g} to {high:g}")
    return float(value)


class Law(ABC):
    """A law on the integers. Symmetric around 0 unless `one_sided`."""

    one_sided: ClassVar[bool] = False
    rounded: ClassVar[bool] = False

    @property
    @abstractmethod
    def spread(self) -> float:
        """The scale parameter, in grid steps."""

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @abstractmethod
    def tail(self, k: Any) -> Floats:
        """P(|X| >= k) for whole k >= 1 (P(X >= k) if one-sided)."""

    @abstractmethod
    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        """The same, certified."""

    @abstractmethod
    def pmf(self, k: Any) -> Floats:
        """P(X = k) for whole k."""

    @abstractmethod
    def invert(self, t: Floats) -> Floats | None:
        """Real x whose floor is the magnitude at tail t; None where no closed form is good enough."""

    @property
    @abstractmethod
    def invert_error(self) -> float:
        """How far `invert` may be off, for every t of 2^-63 or more. It does not depend on t: a close call is equally
        likely whatever the value drawn."""

    @property
    def std(self) -> float:
        return math.sqrt(self.variance)

    def cdf(self, k: Any) -> Floats:
        """P(X <= k)."""
        k = np.asarray(k, dtype=np.float64)
        if self.one_sided:
            return np.where(k < 0, 0.0, 1.0 - self.tail(np.maximum(k + 1, 1)))
        above = self.tail(np.maximum(k + 1, 1)) / 2
        below = self.tail(np.maximum(-k, 1)) / 2
        return np.where(k >= 0, 1.0 - above, below)

    def sf(self, k: Any) -> Floats:
        """P(X > k), without the cancellation of 1 - cdf."""
        k = np.asarray(k, dtype=np.float64)
        if self.one_sided:
            return np.where(k < 0, 1.0, self.tail(np.maximum(k + 1, 1)))
        return self.cdf(-k - 1)

    def quantile(self, p: float) -> int:
        """The least k with P(X <= k) >= p."""
        if not 0 < p < 1:
            raise refuse("p", p, "a probability above 0 and below 1")
        low, high = -1 if self.one_sided else -2, 1
        while not self.one_sided and self.cdf(low) >= p:
            low *= 2
        while self.cdf(high) < p:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cdf(middle) >= p else (middle, high)
        return high

    def half_width(self, alpha: float) -> int:
        """The least w >= 0 with P(|X| > w) <= alpha: the error bar at confidence 1 - alpha."""
        if not 0 < alpha < 1:
            raise refuse("alpha", alpha, "a probability above 0 and below 1")
        low, high = 0, 1
        while self.tail(high) > alpha:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tail(middle) <= alpha else (middle, high)
        return high - 1

    def mixed_half_width(self, l1: Any, l2: Any, linf: Any, alpha: float) -> Floats:
        """A w with P(|sum b_i X_i| > w) <= alpha for independent X_i of this law and weights b of these norms."""
        if not 0 < alpha < 1:
            raise refuse("alpha", alpha, "a probability above 0 and below 1")
        l1, l2, linf = np.broadcast_arrays(*(np.asarray(norm, dtype=np.float64) for norm in (l1, l2, linf)))
        mixed = self._mixed(l1, l2, linf, alpha)
        # One weight alone: no bound is needed, the law is known.
        return np.where(l1 <= linf * (1 + 1e-9), np.minimum(mixed, l1 * (self.half_width(alpha) + 0.5)), mixed)

    @abstractmethod
    def _mixed(self, l1: Floats, l2: Floats, linf: Floats, alpha: float) -> Floats:
        """The same for any weights. (A rounded law is the continuous one, moved by at most half a step.)"""


@dataclass(frozen=True)
class _Normal(Law):
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _scale(self.sigma, "sigma"))

    @property
    def spread(self) -> float:
        return self.sigma

    @property
    @abstractmethod
    def stretch(self) -> float:
        """What the size z of a standard normal is multiplied by: `invert` is 1/2 + stretch z."""

    @property
    def invert_error(self) -> float:
        return (self.sigma * DEEPEST_Z + 1) * NDTRI_ERROR

    def _mixed(self, l1: Floats, l2: Floats, linf: Floats, alpha: float) -> Floats:
        """sum b_i X_i is sub-Gaussian with sigma |b|_2 (for the discrete law: Canonne, Kamath, Steinke 2020)."""
        z = -special.ndtri(alpha / 2) if self.rounded else math.sqrt(2 * math.log(2 / alpha))
        return np.asarray(self.sigma * l2 * z + (0.5 * l1 if self.rounded else 0.0))


@dataclass(frozen=True)
class _Exponential(Law):
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale, "scale"))

    @property
    def spread(self) -> float:
        return self.scale

    @property
    def invert_error(self) -> float:
        return (self.scale * DEEPEST_LOG + 1) * LOG_ERROR

    def _mixed(self, l1: Floats, l2: Floats, linf: Floats, alpha: float) -> Floats:
        """The lesser of two bounds.

        Chernoff: the law's moment function at c is at most 1/(1 - (c scale)^2) (with equality for Laplace; for the
        discrete law c scale becomes sinh(c/2)/sinh(1/(2 scale)), which is less), and -ln(1 - x)/x grows in x. So with
        u = c scale linf below 1 and v = (l2/linf)^2 the bound is w = scale linf (ln(2/alpha) - v ln(1 - u^2))/u, for
        any u. The other is `_spread_of_laplace`, and what the law differs from a continuous one: a rounded one by half
        a step; the discrete one has the size floor(|Y| + d) for Laplace Y, as its tail 2 q^k/(1 + q) is q^(k - d) with
        0 <= d <= 1/2, and differs by less than a step.
        """
        some = np.maximum(linf, 1e-300)
        v = (l2 / some) ** 2
        best = np.full(some.shape, np.inf)
        for u in _CHERNOFF:
            np.minimum(best, (math.log(2 / alpha) - v * math.log1p(-u * u)) / u, out=best)
        chernoff = self.scale * some * best + (0.5 * l1 if self.rounded else 0.0)
        spread = self.scale * l2 * _spread_of_laplace(alpha) + (0.5 if self.rounded else 1.0) * l1
        return np.asarray(np.minimum(chernoff, spread))


_CHERNOFF = np.linspace(0.01, 0.99, 99).tolist()


@lru_cache(maxsize=1)
def _laguerre() -> tuple[Floats, Floats]:
    """Nodes and weights of the integral over e^-x."""
    nodes, weights = special.roots_laguerre(48)
    return nodes, weights


@lru_cache(maxsize=256)
def _spread_of_laplace(alpha: float) -> float:
    """A w with P(|sum b_i X_i| > w) <= alpha for every b with |b|_2 = 1 and independent Laplace X_i of scale 1.

    X_i is sqrt(2 E_i) N_i with E_i exponential and N_i normal, so given the E_i the sum is normal, of variance
    V = 2 sum b_i^2 E_i, a mean of exponentials, and E psi(V) <= E psi(2 E) for every convex psi (Jensen). The tail
    T(V) = 2 Phi(-w/sqrt(V)) is convex for V <= w^2/3 and concave beyond; psi goes on there along the tangent, which
    lies above T. As E T(2 E) = e^-w, the bound is e^-w + integral of (tangent - T) beyond, at density e^(-V/2)/2.
    """

    def bound(w: float) -> float:
        bend = w * w / 3
        rise = math.exp(-1.5) / math.sqrt(2 * math.pi) * w * bend**-1.5
        x, weights = _laguerre()  # V = bend + 2 x, which has density e^-x beyond the bend
        over = 2 * special.ndtr(-math.sqrt(3)) + 2 * rise * x - 2 * special.ndtr(-w / np.sqrt(bend + 2 * x))
        return math.exp(-w) + math.exp(-bend / 2) * float(weights @ over)

    low, high = 0.0, 1.0
    while bound(high) > alpha * (1 - 1e-6):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) <= alpha * (1 - 1e-6) else (middle, high)
    return high


@dataclass(frozen=True)
class RoundedGaussian(_Normal):
    """round(sigma * N(0, 1)): P(k) = Phi((k + 1/2)/sigma) - Phi((k - 1/2)/sigma).

    For x on the grid, x + round(G) = round(x + G), so releasing with it is post-processing of the continuous Gaussian
    mechanism, in any dimension.
    """

    rounded: ClassVar[bool] = True

    @property
    def variance(self) -> float:
        if self.sigma >= 2:  # the sawtooth part of rounding is below exp(-2 pi^2 sigma^2)
            return self.sigma**2 + 1 / 12
        k = np.arange(1, 64, dtype=np.float64)
        return float(np.sum((2 * k - 1) * self.tail(k)))

    def tail(self, k: Any) -> Floats:
        return np.asarray(2 * special.ndtr(-(np.asarray(k, dtype=np.float64) - 0.5) / self.sigma))

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        return exact.gauss_tail(Fraction(2 * k - 1, 2) / Fraction(self.sigma), bits + 1).times(Fraction(2)).to(bits)

    def pmf(self, k: Any) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.float64))  # both ends in the upper tail: no cancellation against 1
        return np.asarray(special.ndtr((0.5 - k) / self.sigma) - special.ndtr((-0.5 - k) / self.sigma))

    @property
    def stretch(self) -> float:
        return self.sigma

    def invert(self, t: Floats) -> Floats:
        # tail(k) > t  <=>  (k - 1/2)/sigma < z(t/2)  <=>  k < sigma z + 1/2
        return np.asarray(0.5 - self.stretch * special.ndtri(0.5 * t))


@dataclass(frozen=True)
class RoundedLaplace(_Exponential):
    """round(Laplace(scale)): P(0) = 1 - exp(-1/(2 scale)), P(k) = exp(-|k|/scale) sinh(1/(2 scale)).

    Post-processing of the continuous Laplace mechanism, as for the rounded Gaussian.
    """

    rounded: ClassVar[bool] = True

    @property
    def variance(self) -> float:
        # sum over k >= 1 of (2k - 1) q^(k - 1/2), q = exp(-1/scale): sqrt(q) (1 + q) / (1 - q)^2
        q1 = -math.expm1(-1 / self.scale)
        return math.exp(-0.5 / self.scale) * (2 - q1) / q1**2

    def tail(self, k: Any) -> Floats:
        return np.asarray(np.exp(-(np.asarray(k, dtype=np.float64) - 0.5) / self.scale))

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        return exact.exp_neg(Fraction(2 * k - 1, 2) / Fraction(self.scale), bits)

    def pmf(self, k: Any) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.float64))
        step = -math.expm1(-1 / self.scale)  # tail(k) - tail(k+1) = tail(k) (1 - q)
        return np.asarray(np.where(k == 0, -math.expm1(-0.5 / self.scale), self.tail(np.maximum(k, 1)) * step / 2))

    def invert(self, t: Floats) -> Floats:
        return np.asarray(0.5 - self.scale * np.log(t))


@dataclass(frozen=True)
class DiscreteLaplace(_Exponential):
    """P(k) proportional to exp(-|k|/scale): the two-sided geometric law of Ghosh, Roughgarden, Sundararajan 2009."""

    @property
    def variance(self) -> float:
        q1 = -math.expm1(-1 / self.scale)
        return 2 * (1 - q1) / q1**2

    def tail(self, k: Any) -> Floats:
        # P(|X| >= k) = 2 q^k / (1 + q)
        k = np.asarray(k, dtype=np.float64)
        return np.asarray(2 * np.exp(-k / self.scale) / (1 + math.exp(-1 / self.scale)))

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        work = bits + 8
        one = exact.enclose(1, work)
        rate = 1 / Fraction(self.scale)
        return (exact.exp_neg(k * rate, work).times(Fraction(2)) / (one + exact.exp_neg(rate, work))).to(bits)

    def pmf(self, k: Any) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.float64))
        return np.asarray(np.exp(-k / self.scale) * math.tanh(0.5 / self.scale))

    def invert(self, t: Floats) -> Floats:
        # 2 q^k / (1 + q) > t  <=>  k < -scale ln(t (1 + q) / 2)
        return np.asarray(-self.scale * np.log(t * (0.5 * (1 + math.exp(-1 / self.scale)))))


@dataclass(frozen=True)
class Geometric(_Exponential):
    """P(k) = (1 - q) q^k for k >= 0, q = exp(-1/scale)."""

    one_sided: ClassVar[bool] = True

    def _mixed(self, l1: Floats, l2: Floats, linf: Floats, alpha: float) -> Floats:
        """Chernoff on sum |b_i| X_i. X is an exponential number rounded down, so its moment function at c is at most
        1/(1 - c scale); with u = c scale linf as above, w = scale linf (ln(1/alpha) - l1/linf ln(1 - u))/u."""
        some = np.maximum(linf, 1e-300)
        best = np.full(some.shape, np.inf)
        for u in _CHERNOFF:
            np.minimum(best, (-math.log(alpha) - l1 / some * math.log1p(-u)) / u, out=best)
        return np.asarray(self.scale * some * best)

    @property
    def variance(self) -> float:
        q1 = -math.expm1(-1 / self.scale)
        return (1 - q1) / q1**2

    def tail(self, k: Any) -> Floats:
        return np.asarray(np.exp(-np.asarray(k, dtype=np.float64) / self.scale))

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        return exact.exp_neg(k / Fraction(self.scale), bits)

    def pmf(self, k: Any) -> Floats:
        k = np.asarray(k, dtype=np.float64)
        return np.asarray(np.where(k < 0, 0.0, self.tail(np.maximum(k, 0)) * -math.expm1(-1 / self.scale)))

    def invert(self, t: Floats) -> Floats:
        return np.asarray(-self.scale * np.log(t))


@dataclass(frozen=True)
class DiscreteGaussian(_Normal):
    """P(k) proportional to exp(-k^2 / (2 sigma^2)): Canonne, Kamath, Steinke 2020.

    A different law, with its own price, from the rounded Gaussian: the continuous curve does not bound it.

    Sums over the integers beyond sigma = LARGE use the midpoint Euler-Maclaurin formula,
        sum_{j >= k} f(j) = int_{k-1/2}^inf f - sum_m B_2m(1/2)/(2m)! f^(2m-1)(k - 1/2) + R_M,
        |R_M| <= 4 (2 pi)^(-2M) int |f^(2M)|,  and for the normal density int |f^(2M)| <= sigma^(-2M) sqrt((2M)!)
    (the last by Cauchy-Schwarz on the Hermite polynomial). By Poisson summation the normaliser is
    sigma sqrt(2 pi) (1 + 2 sum_j exp(-2 pi^2 sigma^2 j^2)).
    """

    LARGE: ClassVar[float] = 48.0

    @property
    def variance(self) -> float:
        if self.sigma >= 3:  # off by a factor 1 + O(exp(-2 pi^2 sigma^2))
            return self.sigma**2
        k = np.arange(1, 64, dtype=np.float64)
        return float(2 * np.sum(k * k * self.pmf(k)))

    @property
    def _normaliser(self) -> float:
        if self.sigma >= 3:
            return self.sigma * math.sqrt(2 * math.pi)
        k = np.arange(1, 64, dtype=np.float64)
        return float(1 + 2 * np.sum(np.exp(-0.5 * (k / self.sigma) ** 2)))

    def pmf(self, k: Any) -> Floats:
        k = np.asarray(k, dtype=np.float64)
        return np.asarray(np.exp(-0.5 * (k / self.sigma) ** 2) / self._normaliser)

    def tail(self, k: Any) -> Floats:
        k = np.asarray(k, dtype=np.float64)
        if self.sigma >= self.LARGE:
            return self._smooth_tail(k)
        sums = _small_tails(self.sigma)
        return np.asarray(sums[np.minimum(k, sums.size - 1).astype(np.int64)])

    def _smooth_tail(self, k: Floats) -> Floats:
        # Euler-Maclaurin with three correction terms. Left out: the fourth, 127/154828800 He_7(z) phi(z) / sigma^8
        # (|He_7 phi| < 15), and R_4 < 4 sqrt(8!) / (2 pi 48)^8: twice both is below 2^-55.
        z = (k - 0.5) / self.sigma
        s2 = self.sigma**-2
        z2 = z * z
        he3, he5 = z * (z2 - 3), z * (z2 * z2 - 10 * z2 + 15)
        series = s2 * (-z / 24 + s2 * (7 / 5760 * he3 - s2 * 31 / 967680 * he5))
        density = np.exp(-0.5 * z2) / math.sqrt(2 * math.pi)
        return np.asarray(2 * (special.ndtr(-z) + series * density))

    def enclose_tail(self, k: int, bits: int) -> Enclosure:
        work = bits + 32
        if self.sigma < self.LARGE:
            above, total = _enclose_sums(Fraction(self.sigma), k, work)
            return (above.times(Fraction(2)) / total).to(bits)
        return self._enclose_smooth_tail(k, work).to(bits)

    def _enclose_smooth_tail(self, k: int, bits: int) -> Enclosure:
        sigma = Fraction(self.sigma)
        z = Fraction(2 * k - 1, 2) / sigma
        terms = 1
        while not _remainder_below(terms, self.sigma, bits):
            terms += 1
        hermite = _odd_hermite(z, terms)
        correction = exact.enclose(0, bits)
        density = exact.gauss_density(z, bits)
        for m in range(1, terms + 1):
            coefficient = _half_bernoulli(2 * m) / math.factorial(2 * m) / sigma ** (2 * m)
            correction = correction + density.times(coefficient * hermite[m - 1])
        # One ulp for the remainder; the normaliser's excess 2 exp(-2 pi^2 sigma^2) is far below one more.
        half = (exact.gauss_tail(z, bits) + correction).widen(2)
        return half.times(Fraction(2))

    @property
    def stretch(self) -> float:
        # Q(z) - z density(z)/(24 sigma^2) + O(sigma^-4) = t/2  =>  z = z0 (1 - 1/(24 sigma^2)) + O(sigma^-4)
        return self.sigma - 1 / (24 * self.sigma)

    def invert(self, t: Floats) -> Floats | None:
        if self.sigma < self.LARGE:
            return None
        return np.asarray(0.5 - self.stretch * special.ndtri(0.5 * t))

    @property
    def invert_error(self) -> float:
        # The O(sigma^-4) part of z is below 0.004 (z^3 + z) for z <= 9.2, hence below 3.2; it counts sigma times.
        return super().invert_error + 4 / self.sigma**3


@lru_cache(maxsize=64)
def _small_tails(sigma: float) -> Floats:
    """P(|X| >= k) for k = 0, 1, ...: sums from the far end, so that small terms are not lost. Ends with 0."""
    k = np.arange(0, math.ceil(14 * sigma) + 4, dtype=np.float64)
    weights = np.exp(-0.5 * (k / sigma) ** 2)
    weights[1:] *= 2
    sums = np.cumsum(weights[::-1])[::-1] / weights[::-1].sum()
    return np.append(sums, 0.0)


def _enclose_sums(sigma: Fraction, k: int, bits: int) -> tuple[Enclosure, Enclosure]:
    """(sum_{j >= k} g(j), sum over all integers of g(j)) with g(j) = exp(-j^2 / (2 sigma^2)), k >= 1."""
    work = bits + 16
    rate = 1 / (2 * sigma * sigma)
    g, ratio, step = exact.enclose(1, work), exact.exp_neg(rate, work), exact.exp_neg(2 * rate, work)
    above, below = exact.enclose(0, work), exact.enclose(0, work)
    j = 0
    while g.hi > 2 or j <= k:
        g, ratio, j = g * ratio, ratio * step, j + 1  # g(j+1)/g(j) = exp(-(2j+1) rate)
        above, below = (above + g, below) if j >= k else (above, below + g)
    # The rest is a geometric-or-faster sum: at most g * r / (1 - r) with r the next ratio.
    rest = g * ratio / (exact.enclose(1, work) - ratio)
    above = Enclosure(above.lo, above.hi + rest.hi + 1, work)
    return above.to(bits), (exact.enclose(1, work) + (above + below).times(Fraction(2))).to(bits)


def _remainder_below(terms: int, sigma: float, bits: int) -> bool:
    """4 sqrt((2M)!) / (2 pi sigma)^(2M) <= 2^-bits, with half a bit to spare."""
    size = 2.5 + 0.5 * math.lgamma(2 * terms + 1) / math.log(2) - 2 * terms * math.log2(6.28 * sigma)
    if terms > 400:
        raise ArithmeticError("Euler-Maclaurin does not reach the asked precision")
    return size <= -bits


@lru_cache(maxsize=512)
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    if n > 1 and n % 2:
        return Fraction(0)
    return -sum((math.comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


def _half_bernoulli(n: int) -> Fraction:
    """The Bernoulli polynomial at one half: B_n(1/2) = -(1 - 2^(1-n)) B_n."""
    return -(1 - Fraction(2) ** (1 - n)) * _bernoulli(n)


def _odd_hermite(z: Fraction, count: int) -> list[Fraction]:
    """He_1(z), He_3(z), ..., by He_{n+1} = z He_n - n He_{n-1}."""
    before, here, odd = Fraction(1), z, [z]
    for n in range(1, 2 * count - 1):
        before, here = here, z * here - n * before
        if n % 2 == 0:
            odd.append(here)
    return odd
