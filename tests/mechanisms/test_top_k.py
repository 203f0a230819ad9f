"""The first k: one shot equals peeling, exactly; the price on all small neighbours; the law that is drawn."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import mpmath as mp
import pytest
from scipy.stats import chisquare

from sfumato import Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.accounting import approximate, pure, zcdp
from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from tests.helpers import seeded
from tests.mechanisms.selecting import NAMES, exactly, exponential, moves, voters

TINY = mp.mpf(10) ** -12
VOTE = 2**20  # steps


def plan_for(unit: Unit, k: int, epsilon: Any = 1) -> m.TopK:
    return m.TopK(query=bounds.votes("w", NAMES, unit), epsilon=epsilon, k=k)


def peeling(logits: list[Any], k: int) -> dict[tuple[int, ...], Any]:
    """k exponential mechanisms one after the other, each among those that are left."""
    law = {}
    for order in permutations(range(len(logits)), k):
        chance, left = mp.mpf(1), list(range(len(logits)))
        for winner in order:
            chance *= exponential([logits[i] for i in left])[left.index(winner)]
            left.remove(winner)
        law[order] = chance
    return law


def test_one_shot_is_peeling_by_integration() -> None:
    """P(total_a > total_b > total_c) of independent Gumbel noises, by two integrals that know nothing of peeling."""
    logits = [mp.mpf("0.3"), mp.mpf(-1), mp.mpf("1.2")]

    def density(t: Any, s: Any) -> Any:
        return mp.exp(-(t - s) - mp.exp(-(t - s)))

    def below(t: Any, s: Any) -> Any:
        return mp.exp(-mp.exp(-(t - s)))

    with mp.workdps(15):
        for a, b, c in ((0, 1, 2), (2, 0, 1)):
            # a > b > c: integrate over the total of b
            chance = mp.quad(
                lambda t, a=a, b=b, c=c: density(t, logits[b]) * below(t, logits[c]) * (1 - below(t, logits[a])),
                [-8, 0, 8, 40],
            )
            assert abs(chance - peeling(logits, 3)[(a, b, c)]) < 1e-9


def worst(rate: Fraction, k: int, monotone: bool, top: int = 2) -> Any:
    loss = mp.mpf(0)
    for scores in product(range(top + 1), repeat=3):
        here = peeling([exactly(rate * s) for s in scores], k)
        for move in moves(monotone):
            there = peeling([exactly(rate * (s + x)) for s, x in zip(scores, move, strict=True)], k)
            loss = max(loss, *(abs(mp.log(here[o]) - mp.log(there[o])) for o in here))
    return loss


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("monotone", [True, False])
def test_all_ordered_subsets_of_all_small_neighbours_are_within_epsilon(k: int, monotone: bool) -> None:
    unit = Unit() if monotone else Unit(change="replace")
    with mp.workdps(30):
        for epsilon in (Fraction(1, 2), 4):
            plan = plan_for(unit, k, epsilon)
            assert worst(plan.rate * VOTE, k, monotone) <= exactly(Fraction(epsilon)) + TINY
    assert pure.epsilon(plan.event) == 4


def test_mutants_are_caught() -> None:
    with mp.workdps(30):
        rate = plan_for(Unit(change="replace"), 2, 4).rate * VOTE
        assert worst(2 * rate, 2, monotone=False) > 4.4  # the wrong factor 2, and k forgotten
        assert worst(plan_for(Unit(), 2, 4).rate * VOTE, 2, monotone=False) > 4.4  # monotone where it is not


def test_the_delta_price_holds_on_all_small_neighbours() -> None:
    """The hockey-stick at what the accountant sells, not only the pure epsilon."""
    plan = plan_for(Unit(), 3, 3)
    rate = plan.rate * VOTE
    for delta in (Fraction(1, 1000), Fraction(1, 20)):
        epsilon = approximate.epsilon(plan.event, delta)
        assert epsilon < 3
        for scores in product(range(3), repeat=3):
            here = peeling([exactly(rate * s) for s in scores], 3)
            for move in moves(True):
                there = peeling([exactly(rate * (s + x)) for s, x in zip(scores, move, strict=True)], 3)
                for one, other in ((here, there), (there, here)):
                    lost = sum(max(one[o] - mp.exp(exactly(epsilon)) * other[o], 0) for o in one)
                    assert lost <= exactly(delta)


def test_rates_and_events() -> None:
    assert plan_for(Unit(), 2).rate * VOTE == Fraction(1, 2)
    assert plan_for(Unit(change="replace", group=3), 2, 3).rate * VOTE == Fraction(1, 4)
    assert plan_for(Unit(), 1).event == events.Exponential(epsilon=1)
    assert plan_for(Unit(), 3).event == events.Repeat(events.Exponential(epsilon=Fraction(1, 3)), 3)
    assert zcdp.rho(plan_for(Unit(), 3, 3).event) == Fraction(3, 8)
    assert plan_for(Unit(), 1).rate == m.Exponential(query=bounds.votes("w", NAMES, Unit()), epsilon=1).rate


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_law_that_is_drawn_is_the_law_that_was_checked(k: int) -> None:
    plan, rows, run = plan_for(Unit(), k, 2), voters(Unit(), a=3, b=2, c=0), Run(Noise(SeededBits(k)))
    seen = Counter(tuple(plan._run(rows, run)) for _ in range(4000))
    law = peeling([exactly(plan.rate * VOTE * s) for s in (3, 2, 0)], k)
    assert chisquare([seen[o] for o in law], [float(p) * 4000 for p in law.values()]).pvalue > 1e-6
    assert len(seen) == len(law)


def test_what_leaves_are_names_in_order_with_bars_that_cover() -> None:
    plan, rows = plan_for(Unit(), 2, 1), voters(Unit(), a=40, b=31, c=25)
    assert plan.finish([2, 0]) == ["c", "a"]
    assert plan.error([2, 0], 0.1) == [plan.expected_error(0.1)] * 2
    assert plan.expected_error(0.1) == pytest.approx(2 * math.log(3 * 2 / 0.1))
    scores, best, run = (40, 31, 25), (40, 31), Run(Noise(SeededBits(5)))
    for alpha in (0.1, 0.4):
        missed = 0
        for _ in range(800):
            order = plan._run(rows, run)
            missed += any(best[j] - scores[i] > plan.expected_error(alpha) for j, i in enumerate(order))
        assert missed <= 800 * alpha
    assert "2 exponential mechanism(s)" in plan.explain()[1]


def test_extreme_scores_and_ties_are_ranked() -> None:
    for value in (1e300, -1e300, math.nan, math.inf, 0.0):
        query = bounds.declared(
            lambda rows, v=value: [v, 0.0, v], Unit(), reads={}, labels=["p", "q", "r"], l1=3, l2=3, linf=1
        )
        order = m.TopK(query=query, epsilon=1, k=3)._run(voters(Unit()), seeded())
        assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize(("k", "epsilon"), [(0, 1), (4, 1), (1.5, 1), (True, 1), (3, 2e-9)])
def test_bad_counts_are_refused(k: Any, epsilon: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^k = "):
        plan_for(Unit(), k, epsilon)
