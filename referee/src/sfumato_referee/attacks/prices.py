"""A1, accountants that sell below cost: what an event costs at least, from first principles, beside its price.

Every accountant here is held to the same numbers, which share no code with any of them. A mechanism of each kind is
written down as two laws of its output (the worst pair of neighbours), its losses are put on a grid, rounded *down*, and
convolved. Rounding losses down only makes delta smaller, so what comes out is a true lower bound: a price below it is
wrong, whatever the accountant's proof says. Known curves (Gaussian, Laplace, the sampled Gaussian) are exact.

Accounts are held to the same numbers: they are filled to the brim with releases of one kind (filled.py), and all that
they took must stay within their budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import events
from sfumato.accounting import approximate, group, price, pure
from sfumato.errors import SfumatoError

from . import filled
from .losses_below import (
    LossLaw,
    allocated,
    best_of,
    laplace,
    normal,
    of_laws,
    shuffled_counts,
    stepped,
    together,
    two_points,
)
from .verdict import Verdict

Price = Callable[[events.Event, Fraction], float]

_ROUNDING = 1e-7  # of the sums here: far above 64-bit roundoff, far below any fault
DELTAS = (Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 100), Fraction(1, 5))


def cases() -> Iterator[tuple[str, events.Event, LossLaw]]:
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
    for size in (Fraction(1, 2), Fraction(2)):
        yield from _selections(size, float(size))
        yield from _of_more(size, float(size))
    yield from _on_a_lattice()


def _selections(size: Fraction, epsilon: float) -> Iterator[tuple[str, events.Event, LossLaw]]:
    """Two candidates; and randomised response, which is as bad as pure DP can be."""
    odds = [1 / (1 + math.exp(-each)) for each in (epsilon - 0.5, -0.5)]  # one candidate's, by softmax
    drawn = of_laws(*(np.array([p, 1 - p]) for p in odds))
    chosen = events.Exponential(epsilon=size)
    yield f"exponential mechanism, {epsilon:g}", chosen, drawn
    yield f"4 of them, {epsilon:g}", events.Repeat(chosen, 4), together(*[drawn] * 4)
    flipped = of_laws(*(np.array([p, 1 - p]) for p in (0.5, math.exp(-epsilon) / 2)))
    flips = events.PermuteAndFlip(epsilon=size)
    yield f"permute and flip, {epsilon:g}", flips, flipped
    yield f"4 flips, {epsilon:g}", events.Repeat(flips, 4), together(*[flipped] * 4)
    response = events.RandomizedResponse(epsilon=size, categories=2, relation="replace")
    yield f"randomised response, {epsilon:g}", response, two_points(epsilon)
    yield f"3 people's answers, {epsilon:g}", group.group(response, 3), together(*[two_points(epsilon)] * 3)
    tried = events.BestOf(events.Pure(epsilon=size), shape=1, stop=Fraction(1, 50))
    yield f"the best of many tries, {epsilon:g}", tried, best_of(epsilon, 0.02)


def _of_more(size: Fraction, epsilon: float) -> Iterator[tuple[str, events.Event, LossLaw]]:
    """Groups, parts that belong together, samples of a fixed size, and steps of which everybody has one."""
    several = group.group(events.ZeroConcentrated(rho=size), 3)
    yield f"rho = {epsilon:g}, for 3", several, normal(3 * math.sqrt(2 * epsilon))
    slips = Fraction(9, 2000)
    failing = group.group(events.Approximate(epsilon=size, delta=slips), 2)
    shown = float(slips) * (1 + math.exp(epsilon))  # an outcome of chance 0, then delta, then e^epsilon delta + delta
    yield f"may fail, {epsilon:g}, for 2", failing, of_laws(np.array([shown, 1 - shown]), np.array([0.0, 1.0]))
    noisy, mu = events.Gaussian(multiplier=1 / size), epsilon
    bundle = events.Bundle((noisy, events.Approximate(epsilon=0, delta=Fraction(1, 200))))
    yield f"a bundle that may fail, mu = {mu:g}", bundle, together(normal(mu), two_points(0, 0.005))
    drawn = events.WithoutReplacement(events.Gaussian(multiplier=1 / size, relation="replace"), 10, 40)
    yield f"10 of 40, mu = {mu:g}", drawn, normal(mu, 0.25)
    yield f"one of 4 steps, mu = {mu:g}", events.RandomAllocation(noisy, 4), allocated(mu, 4)


def _on_a_lattice() -> Iterator[tuple[str, events.Event, LossLaw]]:
    """Integer noise."""
    k = np.arange(-200, 201)
    for shift in (1, 3):
        normal_noise = stepped(np.exp(-(k**2) / (2 * 9.0)), shift)
        event: events.Event = events.DiscreteGaussian(variance=9, shift_squared=shift**2)
        yield f"discrete Gaussian, moved by {shift}", event, normal_noise
        yield f"4 of those, moved by {shift}", events.Repeat(event, 4), together(*[normal_noise] * 4)
        if shift == 1:
            yield "discrete Gaussian, for 3", group.group(event, 3), stepped(np.exp(-(k**2) / (2 * 9.0)), 3)
        event = events.DiscreteLaplace(epsilon=Fraction(shift, 4), shift=shift)
        geometric = stepped(np.exp(-np.abs(k) / 4.0), shift)
        yield f"geometric noise, moved by {shift}", event, geometric
        yield f"3 of those, moved by {shift}", events.Repeat(event, 3), together(*[geometric] * 3)


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
    """Hold every price to what its event costs at least, and the library's accounts to their budgets."""
    below, tried, nearest = [], 0, 0.0
    for name, event, law in cases():
        for way, priced in prices.items():
            for delta in DELTAS:
                try:
                    epsilon = priced(event, delta)
                except SfumatoError:  # no price: nothing is sold
                    continue
                tried += 1
                shown = law.delta(epsilon) / float(delta)
                nearest = max(nearest, shown)
                if shown > 1 + _ROUNDING:
                    below.append(f"{name} by {way}: at epsilon {epsilon:.4g} delta is {shown:.3g} times what is said")
    accounts, overfull = filled.overfull(_ROUNDING) if prices is LIBRARY else (0, [])
    words = (
        f"{len(below)} of {tried} prices are below cost: {below[0]}."
        if below
        else f"{len(overfull)} of {accounts} accounts took more than their budget: {overfull[0]}."
        if overfull
        else f"None of {tried} prices is below what its event costs at least"
        + (f", and none of {accounts} accounts takes more than its budget." if accounts else ".")
    )
    figures = {"prices": tried, "below cost": len(below), "nearest": nearest, "accounts": accounts}
    return Verdict("A1", bool(below or overfull), words, figures | {"overfull": len(overfull)})


def control() -> Verdict:
    """Textbook formulas, where they do not hold."""
    return attack({"textbook": classic})
