"""What mechanisms cost at least: the losses of two laws on a grid, rounded down, so that delta comes out too small.

Each is the worst pair of neighbours of one mechanism, or a pair that is bad enough. Nothing here is shared with any
accountant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]

_GRID = 2.0**-9  # of losses: rounding down costs the bound at most this much epsilon a part
_NEXT_TO_NOTHING = 1e-19
_LEAST = 1e-15  # chances below are left out, on both sides: what is lost makes delta smaller


@dataclass(frozen=True)
class LossLaw:
    """The privacy loss of one mechanism: masses on the grid from `first` on, and the mass that shows everything."""

    first: int
    masses: Floats
    everything: float = 0.0

    def then(self, other: LossLaw) -> LossLaw:
        """Both, one after the other."""
        shown = 1 - (1 - self.everything) * (1 - other.everything)
        return LossLaw(self.first + other.first, np.convolve(self.masses, other.masses), shown).shortened()

    def shortened(self) -> LossLaw:
        """Without the ends that hold next to nothing: long sums of losses stay short, and only lose by it."""
        heavy = np.flatnonzero(self.masses > _NEXT_TO_NOTHING)
        if not heavy.size:
            return self
        return LossLaw(self.first + int(heavy[0]), self.masses[heavy[0] : heavy[-1] + 1], self.everything)

    def delta(self, epsilon: float) -> float:
        """E(1 - e^(epsilon - loss))+, the least delta at epsilon."""
        losses = (self.first + np.arange(self.masses.size)) * _GRID
        return float(self.everything + np.sum(self.masses * np.maximum(-np.expm1(epsilon - losses), 0.0)))


def of_laws(here: Floats, there: Floats) -> LossLaw:
    """Of two laws on the same finitely many outputs."""
    seen = here > 0
    everything = float(here[seen & (there <= 0)].sum())
    both = seen & (there > 0)
    places = np.floor(np.log(here[both] / there[both]) / _GRID + 1e-9).astype(np.int64)
    first = int(places.min(initial=0))
    masses = np.bincount(places - first, weights=here[both])
    return LossLaw(first, np.asarray(masses * (1 - 1e-12), dtype=np.float64), everything)


def normal(mu: float, rate: float = 1.0, *, forward: bool = True) -> LossLaw:
    """rate N(mu, 1) + (1 - rate) N(0, 1) against N(0, 1), or back, in intervals: merging outputs only loses.

    Intervals are nodes of a fine mesh; what lies beyond both ends is merged into the outer two.
    """
    edges = np.linspace(-9.0, mu + 9.0, 6001)
    plain = np.diff(np.concatenate([[0.0], special.ndtr(edges), [1.0]]))
    moved = np.diff(np.concatenate([[0.0], special.ndtr(edges - mu), [1.0]]))
    mixed = rate * moved + (1 - rate) * plain
    certain = (mixed > _LEAST) & (plain > _LEAST)
    one, other = (mixed[certain], plain[certain]) if forward else (plain[certain], mixed[certain])
    return of_laws(one, other)


def two_points(epsilon: float, delta: float = 0.0) -> LossLaw:
    """Randomised response of two answers; with probability delta everything shows."""
    p = (1 - delta) / (1 + math.exp(-epsilon))
    low = p * math.exp(-epsilon)
    return of_laws(np.array([p, low, delta]), np.array([low, p, 0.0]))


def laplace(epsilon: float, rate: float = 1.0) -> LossLaw:
    """Laplace noise of scale 1/epsilon, moved by 1, for a unit that joins with that rate."""
    edges = np.linspace(-18.0 / epsilon, 1 + 18.0 / epsilon, 6001)

    def cdf(x: Floats) -> Floats:
        return np.where(x < 0, 0.5 * np.exp(epsilon * np.minimum(x, 0)), 1 - 0.5 * np.exp(-epsilon * np.maximum(x, 0)))

    plain = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    moved = np.diff(np.concatenate([[0.0], cdf(edges - 1), [1.0]]))
    return of_laws(np.maximum(rate * moved + (1 - rate) * plain, 0), np.maximum(plain, 0))


def shuffled_counts(epsilon: float, users: int) -> LossLaw:
    """Who all say "no" by randomised response of two answers, one of whom says "yes": how many reports are "yes"."""
    truth = 1 / (1 + math.exp(-epsilon))
    others = stats.binom.pmf(np.arange(users), users - 1, 1 - truth)

    def with_one(yes: float) -> Floats:
        return np.asarray(np.append(others * (1 - yes), 0.0) + np.append(0.0, others * yes))

    here, there = with_one(truth), with_one(1 - truth)
    certain = (here > 1e-200) & (there > 1e-200)
    return of_laws(here[certain], there[certain])


def stepped(weights: Floats, shift: int) -> LossLaw:
    """Integer noise with these weights (an odd number of them, the middle one at 0), moved by so many steps."""
    plain = np.pad(weights / weights.sum(), (0, shift))
    moved = np.roll(plain, shift)
    certain = (plain > _LEAST) & (moved > _LEAST)
    return of_laws(moved[certain], plain[certain])


def best_of(epsilon: float, stop: float) -> LossLaw:
    """Randomised response of two answers, tried until a coin of chance `stop` says that it is enough; "yes" is best.

    "No" comes out where all tries said no: with p the chance of yes, E (1 - p)^N = stop (1 - p)/(stop + (1 - stop) p).
    """
    yes = 1 / (1 + math.exp(-epsilon))
    no = [stop * (1 - p) / (stop + (1 - stop) * p) for p in (yes, 1 - yes)]
    return of_laws(np.array([no[1], 1 - no[1]]), np.array([no[0], 1 - no[0]]))


def allocated(mu: float, steps: int) -> LossLaw:
    """Gaussian noise at so many steps, moved by mu at one of them that nobody knows: the sum of all answers."""
    return normal(mu / math.sqrt(steps))


def times(law: LossLaw, count: int) -> LossLaw:
    """So many of the same, one after the other."""
    composed, doubled = None, law
    while True:
        if count % 2:
            composed = doubled if composed is None else composed.then(doubled)
        count //= 2
        if not count:
            assert composed is not None
            return composed
        doubled = doubled.then(doubled)


def together(*laws: LossLaw) -> LossLaw:
    composed = laws[0]
    for law in laws[1:]:
        composed = composed.then(law)
    return composed
