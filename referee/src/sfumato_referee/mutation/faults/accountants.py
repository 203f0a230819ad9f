"""Faults of prices: events sold for less than they cost."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.accounting import approximate, composition, gdp, holds, price, pure, zcdp
from sfumato.audit import seams
from sfumato.events import BestOf, Poisson, Repeat, Sequence, ZeroConcentrated

from ..mutant import Shelf, attacks, plant, swap, swap_everywhere

FAULTS = Shelf("accountants")


@FAULTS.fault("the classic formula for Gaussian noise", by=attacks("A1"))
def classic() -> None:
    def use_classic_formula(_: Any) -> Any:
        return lambda mu_squared, target: Fraction(math.sqrt(2 * math.log(1.25 / target) * mu_squared))

    swap(gdp, "least_epsilon", use_classic_formula)


@FAULTS.fault("rho is converted without its delta", by=attacks("A1"))
def rho_alone() -> None:
    swap(zcdp, "epsilon", lambda _: lambda size, delta: Fraction(math.sqrt(2 * size)) + size)


@FAULTS.fault("sampling at half the rate", by=attacks("A1"))
def half_the_rate() -> None:
    def halve_rate(pair: Any) -> Any:
        def thinner(event: Any, tail: float) -> Any:
            return pair(Poisson(event.event, event.rate / 2) if isinstance(event, Poisson) else event, tail)

        return thinner

    plant(seams.PAIR, halve_rate)


@FAULTS.fault("repetitions are counted once", by=attacks("A1"))
def no_repeats() -> None:
    def count_once(total: Any) -> Any:
        def once(event: Any, price: Any) -> Any:
            return total(event.event if isinstance(event, Repeat) else event, price)

        return once

    swap_everywhere(composition.total, count_once)


@FAULTS.fault("groups at the price of one", by=attacks("A1"))
def no_groups() -> None:
    plant(seams.GROUP, lambda _: lambda event, size, together: event)


@FAULTS.fault("shuffled reports of ten times as many", by=attacks("A1"))
def more_users() -> None:
    def enlarge_crowd(checked: Any) -> Any:
        def crowded(event: Any) -> Any:
            shuffled = checked(event)
            return type(shuffled)(shuffled.event, 10 * shuffled.users)

        return crowded

    plant(seams.SHUFFLED, enlarge_crowd)


@FAULTS.fault("prices are rounded down", by=attacks("A1"))
def rounded_down() -> None:
    def round_down(epsilon: Any) -> Any:
        return lambda event, delta: Fraction(math.floor(100 * epsilon(event, delta)), 100)

    swap(approximate, "epsilon", round_down)


@FAULTS.fault("sampling of pure events by the rate alone", by=attacks("A1"))
def rate_alone() -> None:
    swap(pure, "sampled", lambda _: lambda size, rate: size * rate)


@FAULTS.fault("what may be lost altogether is left out", by=attacks("A1"))
def no_failures() -> None:
    """An (epsilon, delta) event shows everything with probability delta: an infinite loss, here forgotten."""

    def forget_failures(pair: Any) -> Any:
        return lambda event, tail: replace(pair(event, tail), infinite=0.0)

    plant(seams.PAIR, forget_failures)


@FAULTS.fault("only the dearest part of a sequence counts", by=attacks("A1"))
def dearest_alone() -> None:
    def take_dearest(total: Any) -> Any:
        def dearest(event: Any, price: Any) -> Any:
            if isinstance(event, Sequence):
                return max(total(part, price) for part in event.events)
            return total(event, price)

        return dearest

    swap_everywhere(composition.total, take_dearest)


@FAULTS.fault("an account has room for noise of half the size", by=attacks("A1"))
def wide_account() -> None:
    """Every price is right, and the limit of the sum of Gaussians is not."""

    def widen(member: Any) -> Any:
        def wide(name: str, *terms: Any) -> Any:
            right = member(name, *terms)
            return replace(right, limit=4 * right.limit) if name in ("gaussian", "smoothed") else right

        return wide

    plant(seams.MEMBER, widen)
    plant(seams.MEMBER_APART, widen)


@FAULTS.fault("held steps cost sums of plans nothing", by=attacks("A1"))
def steps_for_nothing() -> None:
    """These pay for the whole work with its first steps. Here no steps are the first."""
    swap(holds.HeldSteps, "block", lambda block: lambda self, steps: replace(block(self, steps), first=False))


@FAULTS.fault("rho of a group grows with its size, not with the square", by=attacks("A1"))
def rho_of_a_group() -> None:
    def grow_linearly(grouped: Any) -> Any:
        def linear(event: Any, size: int, together: bool) -> Any:
            if isinstance(event, ZeroConcentrated):
                return ZeroConcentrated(rho=size * event.rho, relation=event.relation)
            return grouped(event, size, together)

        return linear

    plant(seams.GROUP, grow_linearly)


@FAULTS.fault("the best of many tries at the price of one", by=attacks("A1"))
def one_try() -> None:
    def price_one_try(epsilon: Any) -> Any:
        return lambda event, **named: epsilon(event.event if isinstance(event, BestOf) else event, **named)

    swap_everywhere(price.epsilon, price_one_try)
