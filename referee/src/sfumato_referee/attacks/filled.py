"""Accounts filled to the brim: releases of one kind are paid until nothing more is taken, and all of them together are
held to what they cost at least. An account may refuse too early; what it took may never cost more than its budget.

Whether a limit is too high shows nowhere else: each price by itself is right, and so is their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato import events
from sfumato.accounting.budget import common_shares
from sfumato.accounting.filters import Budget, Filter, HeldSteps, counts_plans
from sfumato.errors import BudgetError

from .losses_below import LossLaw, laplace, normal, times, together, two_points

_MOST = 1000  # releases that an account is asked for: all of these budgets end far earlier
_STEPS = 12  # of held work
Kind = tuple[events.Event, Fraction, Callable[[int], LossLaw]]
"""An event, the delta that its plan is priced at, and what so many of them cost at least."""


@dataclass(frozen=True)
class _Account:
    """What one account took."""

    releases: int
    ended: bool


def kinds(budget: Budget) -> Mapping[str, Kind]:
    """Sizes of which some dozens fit into the budget: enough that sums of squares have more room than sums."""
    epsilon, own = Fraction(budget.epsilon), Fraction(budget.delta) / 400
    mu, size = float(epsilon) / 24, epsilon / 40
    noisy = events.Gaussian(multiplier=1 / Fraction(mu))
    failing = events.Approximate(epsilon=size, delta=Fraction(budget.delta) / 60)
    sampled = events.Poisson(events.Gaussian(multiplier=1), Fraction(1, 50))
    return {
        "Gaussian": (noisy, own, lambda n: normal(mu * math.sqrt(n))),
        "Laplace": (events.Laplace(epsilon=size), Fraction(0), lambda n: times(laplace(float(size)), n)),
        "pure": (events.Pure(epsilon=size), Fraction(0), lambda n: times(two_points(float(size)), n)),
        "may fail": (failing, failing.delta, lambda n: times(two_points(float(size), float(failing.delta)), n)),
        "sampled Gaussian": (sampled, own, lambda n: times(normal(1.0, 0.02), n)),
        "rho": (events.ZeroConcentrated(rho=Fraction(mu) ** 2 / 2), own, lambda n: normal(mu * math.sqrt(n))),
        "Laplace and Gaussian": (
            events.Sequence((events.Laplace(epsilon=size / 2), noisy)),
            own,
            lambda n: together(times(laplace(float(size / 2)), n), normal(mu * math.sqrt(n))),
        ),
    }


BUDGETS = (
    Budget(epsilon=1, delta=1e-3),
    Budget(epsilon=3, delta=1e-6),
    Budget(epsilon=3, delta=1e-6, shares=common_shares(Fraction(3), Fraction(1, 10**6))),  # as accounts were before
)


def overfull(rounding: float) -> tuple[int, list[str]]:
    """How many accounts were filled, and which of them took more than they may."""
    tried, overfilled = 0, []
    for budget in BUDGETS:
        for name, (event, own, costs) in kinds(budget).items():
            for way, taken in _ways(budget, event, own):
                tried += 1
                if not taken.ended:
                    overfilled.append(f"{name} {way} under {budget} goes on for ever")
                elif taken.releases:
                    shown = costs(taken.releases).delta(float(budget.epsilon)) / float(budget.delta)
                    if shown > 1 + rounding:
                        took = f"{taken.releases} x {name} {way}"
                        overfilled.append(f"{took} under {budget}, where delta is {shown:.3g} times what is said")
    return tried, overfilled


def _ways(budget: Budget, event: events.Event, own: Fraction) -> Iterator[tuple[str, _Account]]:
    yield "one by one", _released(budget, event, own)
    yield "in held steps", _stepped(budget, event, own)


def _released(budget: Budget, event: events.Event, own: Fraction) -> _Account:
    account = Filter.of(budget)
    for count in range(_MOST):
        try:
            account = account.spend(event, own)
        except BudgetError:
            return _Account(count, True)
    return _Account(_MOST, False)


def _stepped(budget: Budget, event: events.Event, own: Fraction) -> _Account:
    """Works of so many steps, each drawn step by step, and asked for three times the steps that it has."""
    account, count = Filter.of(budget), 0
    while count < _MOST:
        work = HeldSteps(events.Repeat(event, _STEPS), own)
        for step in range(3 * _STEPS):
            try:
                block = work.block(1)
                _, account = account.charged(block, own, drawing=True)
            except BudgetError:
                if step < _STEPS:
                    return _Account(count, True)
                break
            work = work.after(block, counts_plans(account.open))
            count += 1
    return _Account(count, False)
