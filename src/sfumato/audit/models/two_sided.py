"""Many trainings, with and without one canary: bounds from both kinds of error, for trials that are independent.

Jagielski, Ullman, Oprea 2020; Nasr et al. 2021 and 2023. Claim: let the scores with the canary be independent and
alike, those without it too, and let an event be chosen without looking at them. By Clopper-Pearson its probabilities P
and P' are at least `low` and at most `high`, wrong with chance at most alpha each; so epsilon >= ln((low - delta) /
high), and a mu-GDP mechanism has mu >= Phi^-1(low) - Phi^-1(high). The same two bounds say that the opposite happens
with chance at least 1 - high without the canary, and at most 1 - low with it: so both sides of a threshold are judged
at the price of one. The threshold is chosen on the first quarter of the scores, and judged on the others, unless it is
given: a rough choice costs less than the scores that a better one would take.

`everywhere` chooses no threshold: it holds one (epsilon, delta) against the rates at all of them. Let U_(1) < ... <
U_(n) be the order statistics of n uniform numbers. A score is a monotone function of one, so where k of n scores reach
a threshold, the probability of that is at least U_(k) and at most U_(k + 1), *whatever the threshold*. Clopper-Pearson
bounds for k of n are the quantiles of these; at alpha / n each they hold for all k, and so for all thresholds, at once.

The scores of canaries of one training are not independent: one_run_bound.py is for these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ... import checks
from ..counting import at_least, at_most, checked_confidence, checked_delta, shown
from . import canaries

Floats = NDArray[np.float64]
_CUTS = 500
_CHOOSE = 4  # one score in so many chooses the threshold


@dataclass(frozen=True)
class TwoSided:
    """The most telling threshold: what it shows of epsilon at delta, and of mu if the mechanism is Gaussian.

    above            is the event "the score is at least the threshold", or the other side of it?
    inside, outside  how often it was seen with the canary and without
    """

    epsilon: float
    mu: float
    delta: float
    confidence: float
    threshold: float
    above: bool
    inside: float
    outside: float

    def __str__(self) -> str:
        sign = ">=" if self.above else "<"
        return (
            f"epsilon >= {self.epsilon:.4g} at delta = {self.delta:.3g} (mu >= {self.mu:.4g} if Gaussian), at "
            f"{100 * self.confidence:.10g} %: score {sign} {self.threshold:.4g} for {self.inside:.2%} with it "
            f"and {self.outside:.2%} without"
        )


def bounds(
    inside: Any, outside: Any, *, delta: float = 0.0, confidence: float = 0.95, threshold: float | None = None
) -> TwoSided:
    """Lower bounds from the scores of independent trainings with the canary, and of others without it.

    threshold  fixed in advance; then all scores are judged by it. None: the first quarter chooses one
    """
    one, other = (canaries.numbers(each, name) for each, name in ((inside, "inside"), (outside, "outside")))
    error, delta = 1 - checked_confidence(confidence), checked_delta(delta)
    least = 2 if threshold is None else 1
    if min(len(one), len(other)) < least:
        raise checks.refuse("inside, outside", (len(one), len(other)), f"at least {least} score(s) of each kind")
    if threshold is None:
        first, second = (max(len(each) // _CHOOSE, 1) for each in (one, other))
        cut = _chosen(one[:first], other[:second], delta, error / 2)
        one, other = one[first:], other[second:]
    else:
        cut = float(threshold)
    return max((_judged(one, other, cut, above, delta, error / 2, confidence) for above in (True, False)), key=_told)


@dataclass(frozen=True)
class EveryRate:
    """The threshold at which a claim of (epsilon, delta) is exceeded most, for certain.

    excess           of the true positive rate over e^epsilon times the false positive rate plus delta, or with above
                     False of the true negative rate over that of the false negatives: at least this, and above 0 only
                     where the claim is wrong, or with chance 1 - confidence
    inside, outside  how often the event was seen with the record and without
    """

    excess: float
    threshold: float
    above: bool
    inside: float
    outside: float

    @property
    def broken(self) -> bool:
        return self.excess > 0


def everywhere(inside: Any, outside: Any, *, epsilon: float, delta: float = 0.0, confidence: float = 0.95) -> EveryRate:
    """TPR <= e^epsilon FPR + delta, and the same of negatives, at every threshold at once."""
    one, other = (canaries.numbers(each, name) for each, name in ((inside, "inside"), (outside, "outside")))
    error, delta = 1 - checked_confidence(confidence), checked_delta(delta)
    if not (len(one) and len(other)):
        raise checks.refuse("inside, outside", (len(one), len(other)), "at least 1 score of each kind")
    cuts = np.unique(np.concatenate([one, other]))
    hits, others = _hits(one, cuts, True), _hits(other, cuts, True)
    low = at_least(hits, len(one), error / (2 * len(one)))
    high = at_most(others, len(other), error / (2 * len(other)))
    grown = math.exp(epsilon)
    # Fewer than 1 - low are missed, and more than 1 - high are told rightly to be away: no further bounds are needed.
    ways = {True: low - grown * high - delta, False: (1 - high) - grown * (1 - low) - delta}
    above = bool(ways[True].max() >= ways[False].max())
    place = int(np.argmax(ways[above]))
    rates = hits[place] / len(one), others[place] / len(other)
    seen = rates if above else (1 - rates[0], 1 - rates[1])
    return EveryRate(float(ways[above][place]), float(cuts[place]), above, float(seen[0]), float(seen[1]))


def _told(bound: TwoSided) -> tuple[float, float]:
    return bound.epsilon, bound.mu


def _chosen(one: Floats, other: Floats, delta: float, alpha: float) -> float:
    """The threshold that looks best on these, by either side of it."""
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, _CUTS), method="nearest"))
    best = (-1.0, -math.inf, float(cuts[0]))
    for above in (True, False):
        here, there = (one, other) if above else (other, one)
        hits, others = _hits(here, cuts, above), _hits(there, cuts, above)
        low, high = at_least(hits, len(here), alpha), at_most(others, len(there), alpha)
        epsilons, lead = shown(low, high, delta), low - high  # the lead breaks ties where nothing is shown yet
        place = int(np.lexsort((lead, epsilons))[-1])
        best = max(best, (float(epsilons[place]), float(lead[place]), float(cuts[place])))
    return best[2]


def _judged(
    one: Floats, other: Floats, cut: float, above: bool, delta: float, alpha: float, confidence: float
) -> TwoSided:
    """High scores tell that it was there, low ones that it was not: then the event is likelier without it."""
    here, there = (one, other) if above else (other, one)
    hits, others = (int(_hits(each, np.array([cut]), above)[0]) for each in (here, there))
    low, high = float(at_least(hits, len(here), alpha)), float(at_most(others, len(there), alpha))
    mu = float(special.ndtri(low) - special.ndtri(high)) if low > 0 and high < 1 else 0.0
    rates = hits / len(here), others / len(there)
    return TwoSided(
        epsilon=float(shown(low, high, delta)), mu=max(mu, 0.0), delta=delta, confidence=confidence, threshold=cut,
        above=above, inside=rates[0 if above else 1], outside=rates[1 if above else 0],
    )  # fmt: skip


def _hits(scores: Floats, cuts: Floats, above: bool) -> NDArray[np.int64]:
    """How many scores are at or above each cut, or below it."""
    below = np.searchsorted(np.sort(scores), cuts, side="left")
    return np.asarray(len(scores) - below if above else below, dtype=np.int64)


__all__ = ["EveryRate", "TwoSided", "bounds", "everywhere"]
