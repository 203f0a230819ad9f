"""The Gaussian mechanism's exact curve.

With mu = 1/multiplier, the mechanism is (epsilon, delta)-DP exactly when
    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
(Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13). Gaussians compose by adding mu^2.

Answers are certified: a float64 root gives the candidate, integer enclosures prove it, and it moves outward until they
do. The classic sigma = sqrt(2 ln(1.25/delta))/epsilon is wrong above epsilon = 1 and never a guarantee here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from scipy import special

from .. import exact
from ..exact import Enclosure
from . import brent
from .interval import Interval

_SMALL, _FAR = 1e-5, 50.0
_NOTHING = -800.0  # the logarithm of a delta that lies below every float, however the curve is rounded


def delta(mu: float, epsilon: float) -> float:
    """The curve in float64: good for plots and root finding, not rounded in any direction."""
    upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if upper > -1:
        return float(special.ndtr(upper) - math.exp(min(epsilon + float(special.log_ndtr(lower)), 0.0)))
    return math.exp(float(special.log_ndtr(upper))) * -math.expm1(_log_ratio(mu, epsilon))


def _log_delta(mu: float, epsilon: float) -> float:
    upper = float(special.log_ndtr(mu / 2 - epsilon / mu))
    return upper + math.log(max(-math.expm1(_log_ratio(mu, epsilon)), 1e-300))


def _log_ratio(mu: float, epsilon: float) -> float:
    """The logarithm of the second term over the first, at most 0. Where mu is next to nothing both are nearly the same,
    and their difference is lost in float64; then it is -mu (h(x) - x), with x = epsilon/mu and h = phi/Phi(-x) the
    hazard of the normal law, but for terms of mu^3."""
    x = epsilon / mu
    if mu >= _SMALL:
        return min(epsilon + float(special.log_ndtr(-mu / 2 - x)) - float(special.log_ndtr(mu / 2 - x)), 0.0)
    if x > _FAR:
        y = 1 / x
        return -mu * (1 - 2 * y**2 + 10 * y**4) * y
    hazard = math.exp(-x * x / 2 - math.log(2 * math.pi) / 2 - float(special.log_ndtr(-x)))
    return -mu * (hazard - x)


def enclose_delta(mu: Fraction, epsilon: Fraction, bits: int) -> Enclosure:
    """The curve, certified, to `bits` fractional bits.

    With u = mu/2 - epsilon/mu and x = mu/2 + epsilon/mu, x^2 = u^2 + 2 epsilon, so e^epsilon times the density at x is
    the density at u: the second term is density(u) mills(x), and no e^epsilon is needed."""
    work = bits + 16
    u, x = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    first = exact.gauss_tail(-u, work) if u <= 0 else exact.enclose(1, work) - exact.gauss_tail(u, work)
    return (first - exact.gauss_density(u, work) * exact.mills(x, work)).to(bits)


def _holds(mu: Fraction, epsilon: Fraction, target: Fraction) -> bool:
    bits = _bits(target)
    return Fraction(enclose_delta(mu, epsilon, bits).hi, 1 << bits) <= target


@lru_cache(maxsize=1024)
def least_multiplier(epsilon: Fraction, target: Fraction) -> Fraction:
    """The least noise multiplier that is (epsilon, target)-DP, rounded up: by about one part in 10^13 for ordinary
    epsilon, a little more at the far ends of the range."""
    wanted = math.log(target)
    size = float(epsilon)

    def excess(log_mu: float) -> float:
        return _log_delta(math.exp(log_mu), size) - wanted

    mu = math.exp(_root(excess, math.log(size / 40 + 1e-12), 1.0))
    return _outward(Fraction(1 / mu), lambda multiplier: _holds(1 / multiplier, epsilon, target), Fraction(1, 2**46))


@lru_cache(maxsize=1024)
def least_epsilon(mu_squared: Fraction, target: Fraction) -> Fraction:
    """The least epsilon at which Gaussians of total mu^2 are (epsilon, target)-DP, rounded up; 0 if none is needed."""
    mu = _sqrt_above(mu_squared)
    wanted = math.log(target)
    if _log_delta(float(mu), 0.0) <= wanted and _holds(mu, Fraction(0), target):
        return Fraction(0)

    def excess(log_epsilon: float) -> float:
        return wanted - _log_delta(float(mu), math.exp(log_epsilon))

    start = float(mu) ** 2 / 2 + float(mu) * math.sqrt(-2 * wanted)
    root = math.exp(_root(excess, math.log(start), 0.5))
    # A short decimal: noise that was calibrated to epsilon = 0.8 is priced 0.8, not a hair above.
    short = Fraction(f"{root:.11g}")
    if short < root * (1 - 1e-13):
        short = Fraction(f"{root * (1 + 5e-12):.11g}")  # the next one up
    return _outward(short, lambda epsilon: _holds(mu, epsilon, target), Fraction(1, 10**11))


def epsilon_at_least(mu_squared: Fraction, upper: Fraction, target: Fraction) -> float:
    """An epsilon a hair below `upper` at which `target` is proven too small, else 0."""
    lower = upper * (1 - Fraction(1, 10**9))
    bits = _bits(target)
    proven = upper and Fraction(enclose_delta(_sqrt_below(mu_squared), lower, bits).lo, 1 << bits) > target
    return exact.float_below(lower) if proven else 0.0


def delta_within(mu_squared: Fraction, epsilon: Fraction) -> Interval:
    """The curve of Gaussians of total mu^2 at epsilon, from both sides, to about eighteen digits."""
    about = _log_delta(exact.sqrt_above(mu_squared), float(epsilon))
    if about < _NOTHING:
        return Interval(0.0, math.ulp(0.0))
    bits = 64 - min(0, math.floor(about / math.log(2)))
    low = Fraction(enclose_delta(_sqrt_below(mu_squared), epsilon, bits).lo, 1 << bits)
    high = Fraction(enclose_delta(_sqrt_above(mu_squared), epsilon, bits).hi, 1 << bits)
    return Interval(exact.float_below(max(low, Fraction(0))), min(exact.float_above(high), 1.0))


def _bits(target: Fraction) -> int:
    return 64 + max(0, math.ceil(-math.log2(target)))


def _root(rising: Callable[[float], float], start: float, step: float) -> float:
    """The root of an increasing function, bracketed outward from `start`."""
    low, high = start - step, start + step
    while rising(low) > 0:
        low, step = low - step, 2 * step
    while rising(high) < 0:
        high, step = high + step, 2 * step
    return brent.root(rising, low, high, absolute=1e-14, relative=1e-14)


def _sqrt_above(x: Fraction) -> Fraction:
    """The square root: exact where it is rational (one Gaussian), else the next float."""
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return root if root * root == x else Fraction(exact.sqrt_above(x))


def _sqrt_below(x: Fraction) -> Fraction:
    root = _sqrt_above(x)
    return root if root * root == x else 1 / Fraction(exact.sqrt_above(1 / x))


def _outward(start: Fraction, proven: Callable[[Fraction], bool], growth: Fraction) -> Fraction:
    """The first number at or above `start` that is proven, growing by tiny steps."""
    value = start
    while not proven(value):
        value, growth = Fraction(exact.float_above(value * (1 + growth))), 2 * growth
    return value
