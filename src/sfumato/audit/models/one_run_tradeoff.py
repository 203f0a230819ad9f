"""The one-run audit of a whole trade-off curve, not of one point of it.

Mahloujifar, Melis, Chaudhuri, "Auditing f-differential privacy in one run" (ICML 2025). As in one_run_bound.py, m
records are put in by fair coins, and r of the coins are guessed from the output. Claim: where the mechanism has the
trade-off f (convex, and for both orders of neighbours), let p_i be the chance that exactly i guesses are right, and


    a_t = sum over i >= t of (i / m) p_i        b_t = sum over i >= t of ((r - i) / m) p_i.

Then b_(t-1) >= f(1 - a_t) for t = 1 ... r. (Theirs is for m = r, and any set of counts; tails are enough here.)

Proof. Fix a record j, a value s of its coin, and the other coins. Let S be the outputs that guess s for j and are right
for at least t - 1 of the others. With coin s the event S says "j is right, and at least t are"; with the other coin
it says "j is guessed and wrong, and at least t - 1 are right". To reject "coin s" outside S is a test with false
positives 1 - P_s(S) and false negatives P_(1-s)(S), so P_(1-s)(S) >= f(1 - P_s(S)). Average over j, s and the other
coins, and use that f is convex: the left becomes b_(t-1), the right f(1 - a_t).

The tail. Suppose that at least v are right with chance p >= q. Moving all that mass to exactly v keeps every inequality
for t <= v (a_t falls, b_t rises) and those above are empty. So a_v = p v / m, b_v = p (r - v) / m, and downwards,
as a_(t-1) - a_t = k (b_(t-1) - b_t) with k = (t - 1) / (r - t + 1),

    b_(t-1) >= max(b_t, f(1 - a_t)),      and at the end a_0 + b_0 = r / m.

Taking equality everywhere, from q, gives the least a and b: let A >= 0 and B >= 0 be what a true a and b exceed them
by, and let A >= k B (it holds at v). Then B at t - 1 is >= 0, and A there is A - k B at t plus k times B at t - 1: so
at least k' times it, k' < k being next. Where the least a_0 + b_0 is above r / m, the chance of v right ones is below
q. Every step here is rounded down, which keeps that order.

What it shows: a curve that is refuted is not the mechanism's. An epsilon from it (`mu_at_least`) holds for mechanisms
that are Gaussian, or of whatever family was searched; one_run_bound.py needs no such word.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...accounting import gdp
from ...accounting.tradeoff import GaussianCurve, Tradeoff
from ..counting import checked_confidence
from .one_run_bound import checked_counts

Floats = NDArray[np.float64]
_DOWN = 1 - 1e-15  # a product and a sum of two are each off by less than half of it
_SLACK = 1 + 1e-12
_MOST_MU = 64.0
_GRID, _ROUNDS = 33, 6  # down to 64 / 32^6


class Curve(Protocol):
    """A trade-off, at or below the truth, such as accounting.tradeoff gives it."""

    def __call__(self, alpha: Any, /) -> Any: ...


def refuted(curve: Curve, canaries: int, guesses: int, correct: int, *, error: float) -> bool:
    """Is the chance of so many right guesses surely below `error` for every mechanism of this trade-off?"""
    checked_counts(canaries, guesses, correct)
    smooth = curve.smooth if isinstance(curve, Tradeoff) else None
    if isinstance(smooth, GaussianCurve):  # known at the other end, where numbers are small and exact
        mu = np.array([smooth.mu])
        return bool(_refuted(_gaussian(mu), mu, canaries, guesses, correct, error)[0])

    def misses(right: Floats) -> Floats:
        # 1 - right is rounded up: the curve falls, so this errs to the safe side
        return np.asarray(curve(np.minimum(np.nextafter(1.0 - right, 2.0), 1.0)), dtype=np.float64)

    return bool(_refuted(misses, np.ones(1), canaries, guesses, correct, error)[0])


def mu_at_least(canaries: int, guesses: int, correct: int, *, confidence: float = 0.95) -> float:
    """The largest mu for which "this is mu-GDP" is refuted; 0 where the guesses show nothing.

    Wrong with chance at most 1 - confidence. See epsilon_of for what it says of epsilon.
    """
    return least_mu(canaries, guesses, correct, error=1 - checked_confidence(confidence))


def least_mu(canaries: int, guesses: int, correct: int, *, error: float) -> float:
    """The same by the chance of being wrong itself."""
    checked_counts(canaries, guesses, correct)
    low, high = 0.0, _MOST_MU
    for _ in range(_ROUNDS):  # each round looks at many at once, and closes in on the largest that falls
        mus = np.linspace(low, high, _GRID)
        fell = _refuted(_gaussian(mus), mus, canaries, guesses, correct, error)
        if not fell.any():
            return low
        place = int(np.flatnonzero(fell)[-1])
        low, high = float(mus[place]), float(mus[min(place + 1, _GRID - 1)])
        if high <= low:
            break
    return low


def epsilon_of(mu: float, delta: float) -> float:
    """The epsilon of a mu-GDP mechanism at delta, rounded down: what mu proves of a mechanism that is Gaussian."""
    if mu <= 0:
        return 0.0
    return max(float(gdp.least_epsilon(Fraction(mu) ** 2, Fraction(delta))) * (1 - 1e-6), 0.0)


def _gaussian(mus: Floats) -> Callable[[Floats], Floats]:
    def misses(right: Floats) -> Floats:
        z = special.ndtri(right) - mus  # f(1 - a) = Phi(Phi^-1(a) - mu)
        spare = 1e-14 * (np.minimum(np.abs(z), 1e9) + mus + 1)
        return np.asarray(special.ndtr(z - spare) * (1 - 1e-12))

    return misses


def _refuted(
    misses: Callable[[Floats], Floats], like: Floats, canaries: int, guesses: int, correct: int, error: float
) -> NDArray[np.bool_]:
    """For each of several curves at once: does `error` as the chance of the tail lead above a total of 1?"""
    right = np.full(like.shape, error * correct / canaries * _DOWN)
    wrong = np.full(like.shape, error * (guesses - correct) / canaries * _DOWN)
    whole = guesses / canaries * _SLACK
    over = np.zeros(like.shape, dtype=np.bool_)
    for i in range(correct - 1, -1, -1):
        more = np.maximum(wrong, misses(np.minimum(right, 1.0)) * _DOWN)
        if (more == wrong).all():
            break  # nothing moves any more: every step from here on is this one again
        right = (right + (i / (guesses - i)) * _DOWN * (more - wrong) * _DOWN) * _DOWN
        wrong = more
        over |= right + wrong > whole  # both only grow
        if over.all():
            break
    return over


__all__ = ["Curve", "epsilon_of", "least_mu", "mu_at_least", "refuted"]
