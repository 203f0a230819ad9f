"""The formulas people learn first, by name: for teaching and comparison, not for guarantees.

Each says when it holds and what to use instead. They are plain float64, not rounded in any direction; some are valid
and loose, some are approximations, some are wrong outside a narrow range. Accountants never call this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .. import checks


def laplace_scale(*, sensitivity: float, epsilon: float) -> float:
    """The scale sensitivity/epsilon of Laplace noise for epsilon-DP. Exact. (Dwork, McSherry, Nissim, Smith 2006.)

    The standard deviation is sqrt(2) times the scale, the mean squared error twice its square."""
    return _positive(sensitivity, "sensitivity") / _epsilon(epsilon)


def classic_gaussian_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """sensitivity sqrt(2 ln(1.25/delta)) / epsilon.

    Valid for epsilon below 1 only, and larger than needed there; at epsilon = 10 it is too small, so unsafe. Use
    `gdp.least_multiplier`. (Dwork and Roth 2014, Theorem A.1.)
    """
    return _positive(sensitivity, "sensitivity") * math.sqrt(2 * math.log(1.25 / _delta(delta))) / _epsilon(epsilon)


def classic_gaussian_epsilon(*, sigma: float, sensitivity: float, delta: float) -> float:
    """The same formula solved for epsilon: valid only where the answer is below 1. Use `gdp.least_epsilon`."""
    ratio = _positive(sensitivity, "sensitivity") / _positive(sigma, "sigma")
    return ratio * math.sqrt(2 * math.log(1.25 / _delta(delta)))


def zcdp_epsilon(*, rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1/delta)). Valid, loose. Use `zcdp.epsilon`. (Bun and Steinke 2016, Proposition 1.3.)"""
    size = _positive(rho, "rho")
    return size + 2 * math.sqrt(size * -math.log(_delta(delta)))


def renyi_epsilon_old(*, divergence: float, order: float, delta: float) -> float:
    """divergence + ln(1/delta)/(order - 1). Valid, loose. Use `renyi.epsilon`. (Mironov 2017, Proposition 3.)"""
    if not 1 < order < math.inf:
        raise checks.refuse("order", order, "a finite number above 1")
    return float(divergence) - math.log(_delta(delta)) / (order - 1)


def randomized_response_truth(*, epsilon: float) -> float:
    """The probability of a true binary answer, e^epsilon/(1 + e^epsilon). Exact. (Warner 1965.)"""
    return 1 / (1 + math.exp(-_epsilon(epsilon)))


def coin_response(*, truth: float = 0.5, yes: float = 0.5) -> tuple[float, float, float]:
    """Answer truly with probability `truth`, otherwise "yes" with probability `yes`: (P(yes | yes), P(yes | no),
    epsilon). Two fair coins give (3/4, 1/4, ln 3). Exact."""
    honest, heads = _between(truth, "truth"), _between(yes, "yes")
    if_yes, if_no = honest + (1 - honest) * heads, (1 - honest) * heads
    return if_yes, if_no, max(math.log(if_yes / if_no), math.log((1 - if_no) / (1 - if_yes)))


def debias(observed: float, *, if_yes: float = 0.75, if_no: float = 0.25) -> float:
    """The share of true "yes" behind an observed share: (observed - P(yes|no)) / (P(yes|yes) - P(yes|no)). Unbiased; it
    may leave [0, 1]. Two fair coins and 60 % observed mean 70 %."""
    if not if_yes > if_no:
        raise checks.refuse("if_yes", if_yes, f"a probability above if_no = {if_no!r}")
    return (observed - if_no) / (if_yes - if_no)


def subsampled_epsilon(*, epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)): a pure mechanism on a Poisson sample (or, between neighbours that replace, a sample
    of fixed size). Exact for epsilon-DP; delta becomes rate * delta. (Balle, Barthe, Gaboardi 2018, Theorem 8.)"""
    size, share = _epsilon(epsilon), float(checks.positive(rate, "rate"))
    if share > 1:
        raise checks.refuse("rate", rate, "a probability above 0, at most 1")
    if size < 500:
        return math.log1p(share * math.expm1(size))
    return size + math.log(share + (1 - share) * math.exp(-size))


def group_epsilon(*, epsilon: float, size: int) -> float:
    """k epsilon for groups of k. Exact for pure DP in general; for a known mechanism its curve at k times the
    sensitivity is less."""
    return checks.whole(size, "size") * _epsilon(epsilon)


def basic_composition(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(epsilon, delta) pairs add up. Valid, loose for many parts. Use `pld.epsilon`."""
    pairs = [(float(epsilon), float(delta)) for epsilon, delta in parts]
    return math.fsum(epsilon for epsilon, _ in pairs), math.fsum(delta for _, delta in pairs)


def advanced_composition(*, epsilon: float, times: int, slack: float) -> float:
    """epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1), at delta = k delta_0 + slack.

    Valid, loose, and worse than basic composition for large epsilon. Use the optimal composition or `pld.epsilon`.
    (Dwork, Rothblum, Vadhan 2010, Theorem III.3.)
    """
    size, k = _epsilon(epsilon), checks.whole(times, "times")
    return size * math.sqrt(-2 * k * math.log(_delta(slack))) + k * size * math.expm1(min(size, 700.0))


def moments_approximation(*, rate: float, sigma: float, steps: int, delta: float, moment: int = 10) -> float:
    """DP-SGD by the leading term of Abadi et al. 2016, Lemma 3, at one moment:

        steps rate^2 (moment + 1) / ((1 - rate) sigma^2) + ln(1/delta)/moment.

    An approximation: the terms left out are of third order in the rate and are not small for sigma near 1. Use
    `pld.epsilon`; for the real moments, `moments.epsilon`.
    """
    share, width = _between(rate, "rate"), _positive(sigma, "sigma")
    count, order = checks.whole(steps, "steps"), checks.whole(moment, "moment")
    return count * share**2 * (order + 1) / ((1 - share) * width**2) - math.log(_delta(delta)) / order


def odds_factor(*, epsilon: float) -> float:
    """e^epsilon: the most by which an attacker's odds about one person may change. 0.1 gives 1.105, 8 gives 2981."""
    return math.exp(min(_epsilon(epsilon), 700.0))


def _epsilon(value: float) -> float:
    return float(checks.epsilon(value, warn=False))


def _delta(value: float) -> float:
    return float(checks.delta(value))


def _positive(value: float, name: str) -> float:
    return float(checks.positive(value, name))


def _between(value: float, name: str) -> float:
    number = _positive(value, name)
    if number >= 1:
        raise checks.refuse(name, value, "a probability above 0 and below 1")
    return number
