"""Permute-and-flip: published values, exact laws on small neighbours, never worse than the exponential mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.accounting import zcdp
from tests.helpers import many
from tests.mechanisms.selecting import (
    NAMES,
    chances,
    chi_square,
    drawn,
    exactly,
    exponential,
    losses,
    permute_and_flip,
    voters,
    worst_loss,
)

TINY = mp.mpf(10) ** -12


def plan_for(unit: Unit, epsilon: Any = 1) -> m.PermuteAndFlip:
    return m.PermuteAndFlip(query=bounds.votes("w", NAMES, unit), epsilon=epsilon)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((2, 1, 0), (0.587172, 0.266077, 0.146751)), ((5, 3, -300), (0.816060, 0.183940, 0.0))],
)
def test_published_probabilities(scores: tuple[int, ...], expected: tuple[float, ...]) -> None:
    plan = plan_for(Unit(change="replace"))
    law = chances(permute_and_flip, [s << 20 for s in scores], plan.rate)
    assert [float(p) for p in law] == pytest.approx(expected, abs=6e-7)


@many
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=6), st.fractions(Fraction(1, 100), 3, max_denominator=100))
def test_the_law_adds_up_and_is_never_worse_than_the_exponential(scores: list[int], rate: Fraction) -> None:
    with mp.workdps(40):
        flips, exps = chances(permute_and_flip, scores, rate), chances(exponential, scores, rate)
        assert abs(mp.fsum(flips) - 1) < mp.mpf(10) ** -25
        assert min(flips) > -(mp.mpf(10) ** -25)
        error = [mp.fsum(p * (max(scores) - s) for p, s in zip(law, scores, strict=True)) for law in (flips, exps)]
        assert error[0] <= error[1] + mp.mpf(10) ** -20


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 2), 1, 4, 9])
@pytest.mark.parametrize("monotone", [True, False])
def test_all_small_neighbours_are_within_epsilon(epsilon: Any, monotone: bool) -> None:
    plan = plan_for(Unit() if monotone else Unit(change="replace"), epsilon)
    with mp.workdps(40):
        loss, _ = worst_loss(permute_and_flip, plan.rate * 2**20, monotone)
        assert exactly(plan.epsilon) / 2 <= loss <= exactly(plan.epsilon) + TINY


def test_it_is_not_of_bounded_range_and_is_priced_so() -> None:
    with mp.workdps(40):
        _, width = worst_loss(permute_and_flip, plan_for(Unit(change="replace"), 3).rate * 2**20, monotone=False)
        assert width > 3
    assert plan_for(Unit()).event == events.PermuteAndFlip(epsilon=1)
    assert zcdp.rho(plan_for(Unit()).event) == Fraction(1, 2)


def test_mutants_are_caught_by_the_same_check() -> None:
    with mp.workdps(40):
        for monotone in (True, False):
            rate = plan_for(Unit() if monotone else Unit(change="replace"), 4).rate * 2**20
            assert worst_loss(permute_and_flip, rate * 2, monotone)[0] > 4.5  # the wrong factor 2
        assert worst_loss(permute_and_flip, plan_for(Unit(), 4).rate * 2**20, monotone=False)[0] > 4.5


def test_a_group_may_come_and_go_in_any_mixture() -> None:
    unit = Unit(group=2)
    plan = plan_for(unit, 3)
    with mp.workdps(40):
        for (a, b, c), (x, y, z) in [((3, 1, 0), (2, 2, 0)), ((3, 3, 3), (1, 3, 3)), ((0, 0, 0), (1, 1, 0))]:
            before = plan.query.steps(voters(unit, a=a, b=b, c=c), plan._exponent)
            after = plan.query.steps(voters(unit, a=x, b=y, c=z), plan._exponent)
            assert max(map(abs, losses(permute_and_flip, before, after, plan.rate))) <= 3 + TINY


def test_the_law_that_is_drawn_is_the_law_that_was_checked() -> None:
    for unit, epsilon, seed in ((Unit(), 1, 1), (Unit(change="replace"), 2, 2), (Unit("user:u", group=2), 0.5, 3)):
        plan, rows = plan_for(unit, epsilon), voters(unit, a=4, b=3, c=1)
        law = chances(permute_and_flip, plan.query.steps(rows, plan._exponent), plan.rate)
        assert chi_square(drawn(plan, rows, 4000, seed), law) < 31
