"""The exponential mechanism: published values, exact laws on all small neighbours, the law that is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from sfumato import Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.units import RELATIONS
from tests.helpers import read, seeded
from tests.mechanisms.selecting import (
    NAMES,
    SCHEMA,
    chances,
    chi_square,
    drawn,
    exactly,
    exponential,
    losses,
    voters,
    worst_loss,
)

TINY = mp.mpf(10) ** -12


def plan_for(unit: Unit, epsilon: Any = 1) -> m.Exponential:
    return m.Exponential(query=bounds.votes("w", NAMES, unit), epsilon=epsilon)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((2, 1, 0), (0.506480, 0.307196, 0.186324)), ((5, 3, -300), (0.731059, 0.268941, 0.0))],
)
def test_published_probabilities(scores: tuple[int, ...], expected: tuple[float, ...]) -> None:
    unit = Unit(change="replace")
    plan = plan_for(unit)
    assert not plan.query.monotone
    steps = [s << 20 for s in scores]
    assert [float(p) for p in chances(exponential, steps, plan.rate)] == pytest.approx(expected, abs=6e-7)
    if min(scores) >= 0:  # and the plan's own scores are these
        rows = voters(unit, **dict(zip(NAMES, scores, strict=True)))
        assert plan.query.steps(rows, plan._exponent).tolist() == steps


def test_rates_know_the_factor_two() -> None:
    steps = 2**20  # to a vote
    assert plan_for(Unit()).rate * steps == 1  # votes only rise, or only fall
    assert plan_for(Unit(change="zero-out")).rate * steps == 1
    assert plan_for(Unit(change="replace")).rate * steps == Fraction(1, 2)
    assert plan_for(Unit(group=4)).rate * steps == Fraction(1, 4)
    assert plan_for(Unit(change="replace", group=4), 3).rate * steps == Fraction(3, 8)
    declared = bounds.declared(lambda rows: [0, 0], Unit(), reads={}, labels=["p", "q"], l1=4, l2=3, linf=2)
    plan = m.Exponential(query=declared, epsilon=1)
    assert plan.rate < 1 / (4 * Fraction(2) ** -plan._exponent)  # with its rounding paid for


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 2), 1, 4, 9])
@pytest.mark.parametrize("monotone", [True, False])
def test_all_small_neighbours_are_within_epsilon_and_its_range(epsilon: Any, monotone: bool) -> None:
    plan = plan_for(Unit() if monotone else Unit(change="replace"), epsilon)
    rate = plan.rate * 2**20
    with mp.workdps(40):
        loss, width = worst_loss(exponential, rate, monotone)
        assert loss <= exactly(plan.epsilon) + TINY
        assert exactly(plan.epsilon) * 99 / 100 <= width <= exactly(plan.epsilon) + TINY  # bounded range, tight


def test_mutants_are_caught_by_the_same_check() -> None:
    with mp.workdps(40):
        for monotone in (True, False):
            rate = plan_for(Unit() if monotone else Unit(change="replace")).rate * 2**20
            assert worst_loss(exponential, rate * 2, monotone)[1] > 1.9  # the wrong factor 2
            assert worst_loss(exponential, rate * Fraction(11, 10), monotone)[1] > 1.05
        # the rate of monotone scores used where scores are exchanged
        assert worst_loss(exponential, plan_for(Unit()).rate * 2**20, monotone=False)[0] > 1.2


@pytest.mark.parametrize("unit", [Unit(of, change) for of in ("row", "user:u") for change in RELATIONS], ids=str)
def test_real_neighbours_are_hidden(unit: Unit) -> None:
    base = {"u": [1, 2, 3, 3, 3, 4], "w": ["a", "b", "a", "a", "b", "c"]}
    if unit.column is None:
        changed = {"add-remove": (base["u"][1:], base["w"][1:]), "replace": (base["u"], ["c", *base["w"][1:]])}
        u, w = changed.get(unit.change, (base["u"], [None, *base["w"][1:]]))
    else:
        w_new = {"replace": ["c", "c", "c"], "zero-out": [None] * 3}.get(unit.change)
        u = base["u"] if w_new else [1, 2, 4]
        w = ["a", "b", *w_new, "c"] if w_new else ["a", "b", "c"]
    for epsilon in (0.01, 1, 5):
        plan = plan_for(unit, epsilon)
        before = plan.query.steps(read(SCHEMA, unit, **base), plan._exponent)
        after = plan.query.steps(read(SCHEMA, unit, u=u, w=w), plan._exponent)
        with mp.workdps(40):
            ratios = losses(exponential, before, after, plan.rate)
            assert max(map(abs, ratios)) <= exactly(plan.epsilon) + TINY
            assert max(ratios) - min(ratios) <= exactly(plan.epsilon) + TINY


def test_a_group_may_come_and_go_in_any_mixture() -> None:
    # Two units hidden together: one leaves a, one joins b. Not all scores move the same way, and it still holds.
    unit = Unit(group=2)
    plan = plan_for(unit)
    before, after = (plan.query.steps(voters(unit, a=a, b=b), plan._exponent) for a, b in ((3, 1), (2, 2)))
    with mp.workdps(40):
        ratios = losses(exponential, before, after, plan.rate)
        assert max(ratios) - min(ratios) <= 1 + TINY


def test_the_law_that_is_drawn_is_the_law_that_was_checked() -> None:
    for unit, epsilon, seed in ((Unit(), 1, 1), (Unit(change="replace"), 2, 2), (Unit("user:u", group=2), 0.5, 3)):
        plan, rows = plan_for(unit, epsilon), voters(unit, a=4, b=3, c=1)
        law = chances(exponential, plan.query.steps(rows, plan._exponent), plan.rate)
        assert chi_square(drawn(plan, rows, 4000, seed), law) < 31  # 2 degrees of freedom: once in five million


def test_what_leaves_is_a_name_and_an_error_bar() -> None:
    plan = plan_for(Unit())
    assert plan.finish(1) == "b"
    assert plan.error(1, 0.05) == pytest.approx(math.log(60))
    assert plan.event == events.Exponential(epsilon=1) and plan.delta == 0
    assert "all the same way" in plan.explain()[0]
    rows = voters(Unit(), a=40, b=3, c=1)
    assert int(drawn(plan, rows, 300).argmax()) == 0


def test_the_error_bar_covers() -> None:
    plan, rows = plan_for(Unit(), 0.4), voters(Unit(), a=9, b=6, c=0)
    behind = [0, 3, 9]
    won = drawn(plan, rows, 3000)
    for alpha in (0.05, 0.3):
        missed = sum(int(won[i]) for i in range(3) if behind[i] > plan.expected_error(alpha)) / 3000
        assert missed <= alpha + 4 * math.sqrt(alpha / 3000)


def test_extreme_scores_are_clamped_and_drawn() -> None:
    for value in (1e300, -1e300, math.nan, math.inf):
        declared = bounds.declared(
            lambda rows, v=value: [v, 0.0], Unit(), reads={}, labels=["p", "q"], l1=2, l2=2, linf=1
        )
        plan = m.Exponential(query=declared, epsilon=1)
        assert plan._run(voters(Unit()), seeded()) in (0, 1)
