"""A1, accountants that sell below cost: what an event costs at least, from first principles, beside its price.

Every accountant here is held to the same numbers, which share no code with any of them. A mechanism of each kind is
written down as two laws of its output (the worst pair of neighbours), its losses are put on a grid, rounded *down*, and
convolved. Rounding losses down only makes delta smaller, so what comes out is a true lower bound: a price below it is
wrong, whatever the accountant's proof says. Known curves (Gaussian, Laplace, the sampled Gaussian) are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ... import events
from ...accounting import approximate, group, price, pure
from ...errors import SfumatoError
from .verdict import Verdict

Floats = NDArray[np.float64]
Price = Callable[[events.Event, Fraction], float]

_GRID = 2.0**-9  # of losses: rounding down costs the bound at most this much epsilon a part
_ROUNDING = 1e-7  # of the sums here: far above 64-bit roundoff, far below any fault
DELTAS = (Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 100), Fraction(1, 5))


@dataclass(frozen=True)
class Law:
    """The privacy loss of one mechanism: masses on the grid from `first` on, and the mass that shows everything."""

    first: int
    masses: Floats
    everything: float = 0.0

    def then(self, other: Law) -> Law:
        """Both, one after the other."""
        shown = 1 - (1 - self.everything) * (1 - other.everything)
        return Law(self.first + other.first, np.convolve(self.masses, other.masses), shown)

    def delta(self, epsilon: float) -> float:
        """E(1 - e^(epsilon - loss))+, the least delta at epsilon."""
        losses = (self.first + np.arange(self.masses.size)) * _GRID
        return float(self.everything + np.sum(self.masses * np.maximum(-np.expm1(epsilon - losses), 0.0)))


def of_laws(here: Floats, there: Floats) -> Law:
    """Of two laws on the same finitely many outputs."""
    seen = here > 0
    everything = float(here[seen & (there <= 0)].sum())
    both = seen & (there > 0)
    places = np.floor(np.log(here[both] / there[both]) / _GRID + 1e-9).astype(np.int64)
    first = int(places.min(initial=0))
    masses = np.bincount(places - first, weights=here[both])
    return Law(first, np.asarray(masses * (1 - 1e-12), dtype=np.float64), everything)


def normal(mu: float, rate: float = 1.0, *, forward: bool = True) -> Law:
    """rate N(mu, 1) + (1 - rate) N(0, 1) against N(0, 1), or back, in intervals: merging outputs only loses.

    Intervals are nodes of a fine mesh; what lies beyond both ends is merged into the outer two.
    """
    edges = np.linspace(-9.0, mu + 9.0, 6001)
    plain = np.diff(np.concatenate([[0.0], special.ndtr(edges), [1.0]]))
    moved = np.diff(np.concatenate([[0.0], special.ndtr(edges - mu), [1.0]]))
    mixed = rate * moved + (1 - rate) * plain
    kept = (mixed > 1e-15) & (plain > 1e-15)  # what is left out is lost, which is the safe side here
    one, other = (mixed[kept], plain[kept]) if forward else (plain[kept], mixed[kept])
    return of_laws(one, other)


def two_points(epsilon: float, delta: float = 0.0) -> Law:
    """Randomised response of two answers; with probability delta everything shows."""
    p = (1 - delta) / (1 + math.exp(-epsilon))
    low = p * math.exp(-epsilon)
    return of_laws(np.array([p, low, delta]), np.array([low, p, 0.0]))


def laplace(epsilon: float, rate: float = 1.0) -> Law:
    """Laplace noise of scale 1/epsilon, moved by 1, for a unit that joins with that rate."""
    edges = np.linspace(-18.0 / epsilon, 1 + 18.0 / epsilon, 6001)

    def cdf(x: Floats) -> Floats:
        return np.where(x < 0, 0.5 * np.exp(epsilon * np.minimum(x, 0)), 1 - 0.5 * np.exp(-epsilon * np.maximum(x, 0)))

    plain = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    moved = np.diff(np.concatenate([[0.0], cdf(edges - 1), [1.0]]))
    return of_laws(np.maximum(rate * moved + (1 - rate) * plain, 0), np.maximum(plain, 0))


def shuffled_counts(epsilon: float, users: int) -> Law:
    """Who all say "no" by randomised response of two answers, one of whom says "yes": how many reports are "yes"."""
    truth = 1 / (1 + math.exp(-epsilon))
    others = stats.binom.pmf(np.arange(users), users - 1, 1 - truth)

    def with_one(yes: float) -> Floats:
        return np.asarray(np.append(others * (1 - yes), 0.0) + np.append(0.0, others * yes))

    here, there = with_one(truth), with_one(1 - truth)
    kept = (here > 1e-200) & (there > 1e-200)
    return of_laws(here[kept], there[kept])


def together(*laws: Law) -> Law:
    made = laws[0]
    for each in laws[1:]:
        made = made.then(each)
    return made


def cases() -> Iterator[tuple[str, events.Event, Law]]:
    """Events of every kind with what they cost at least."""
    replaced: dict[str, Any] = {"relation": "replace"}
    for multiplier in (Fraction(1, 2), Fraction(2)):
        noisy, mu = events.Gaussian(multiplier=multiplier), 1 / float(multiplier)
        yield f"Gaussian, multiplier {float(multiplier):g}", noisy, normal(mu)
        yield f"9 Gaussians, multiplier {float(multiplier):g}", events.Repeat(noisy, 9), normal(3 * mu)
        yield f"3 of them changed, multiplier {float(multiplier):g}", group.group(noisy, 3), normal(3 * mu)
        for rate in (Fraction(1, 20), Fraction(1, 2)):
            sampled, name = events.Poisson(noisy, rate), f"sampled at {float(rate):g}, multiplier {float(multiplier):g}"
            yield name, sampled, normal(mu, float(rate))
            yield f"{name}, back", sampled, normal(mu, float(rate), forward=False)
            four = together(*[normal(mu, float(rate))] * 4)
            yield f"4 times {name}", events.Repeat(sampled, 4), four
    for size in (Fraction(1, 2), Fraction(2)):
        lone, alone = events.Laplace(epsilon=size), laplace(float(size))
        yield f"Laplace, {float(size):g}", lone, alone
        yield f"3 Laplaces, {float(size):g}", events.Repeat(lone, 3), together(*[alone] * 3)
        yield f"Laplace, {float(size):g}, for 2", group.group(lone, 2), laplace(2 * float(size))
        yield f"Laplace sampled, {float(size):g}", events.Poisson(lone, Fraction(1, 4)), laplace(float(size), 0.25)
        yield f"pure, {float(size):g}", events.Pure(epsilon=size), two_points(float(size))
        failing = events.Approximate(epsilon=size, delta=Fraction(1, 1000))
        twice = together(*[two_points(float(size), 1e-3)] * 2)
        yield f"2 that may fail, {float(size):g}", events.Sequence((failing, failing)), twice
        mixed = events.Sequence((lone, events.Gaussian(multiplier=1), failing))
        yield f"three kinds, {float(size):g}", mixed, together(alone, normal(1.0), two_points(float(size), 1e-3))
        rho = events.ZeroConcentrated(rho=size)
        yield f"rho = {float(size):g}", rho, normal(math.sqrt(2 * float(size)))
        part = events.Laplace(epsilon=size, **replaced)
        yield f"parts under replace, {float(size):g}", events.Partition("w", (part, part, part)), together(alone, alone)
        for users in (20, 1000):
            report = events.RandomizedResponse(epsilon=size, categories=2, **replaced)
            shuffled = events.Shuffled(report, users)
            yield f"{users} shuffled, {float(size):g}", shuffled, shuffled_counts(float(size), users)


def by_charge(event: events.Event, delta: Fraction) -> float:
    """What a ledger charges."""
    return float(approximate.epsilon(event, delta))


def by_curve(event: events.Event, delta: Fraction) -> float:
    """What `sf.epsilon` says."""
    return price.epsilon(event, delta=delta).upper


def by_sum(event: events.Event, delta: Fraction) -> float:
    """The exact sum of pure epsilons: it holds at delta = 0, and so at any."""
    return float(pure.epsilon(event))


LIBRARY: Mapping[str, Price] = {"charge": by_charge, "price": by_curve, "pure": by_sum}


def classic(event: events.Event, delta: Fraction) -> float:
    """The planted bug: sqrt(2 ln(1.25/delta))/multiplier, which holds up to epsilon 1 only, and sampling that takes
    the rate for a factor."""
    if isinstance(event, events.Gaussian):
        return math.sqrt(2 * math.log(1.25 / delta)) / float(event.multiplier)
    if isinstance(event, events.Poisson):
        return float(event.rate) * classic(event.event, delta)
    return by_charge(event, delta)


def attack(prices: Mapping[str, Price] = LIBRARY) -> Verdict:
    """Hold every price to what its event costs at least."""
    below, held, nearest = [], 0, 0.0
    for name, event, law in cases():
        for way, priced in prices.items():
            for delta in DELTAS:
                try:
                    epsilon = priced(event, delta)
                except SfumatoError:  # no price: nothing is sold
                    continue
                held += 1
                shown = law.delta(epsilon) / float(delta)
                nearest = max(nearest, shown)
                if shown > 1 + _ROUNDING:
                    below.append(f"{name} by {way}: at epsilon {epsilon:.4g} delta is {shown:.3g} times what is said")
    words = (
        f"{len(below)} of {held} prices are below cost: {below[0]}."
        if below
        else f"None of {held} prices is below what its event costs at least."
    )
    return Verdict("A1", bool(below), words, {"prices": held, "below cost": len(below), "nearest": nearest})


def control() -> Verdict:
    """Textbook formulas, where they do not hold."""
    return attack({"textbook": classic})
