"""Propose-test-release: the exact (epsilon, delta) on all small neighbours, mutants, the law drawn, odd data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Schema, Unit, events
from sfumato.errors import ArgumentError, PrivacyWarning
from sfumato.laws import DiscreteLaplace, RoundedLaplace
from sfumato.mechanisms import ProposeTestRelease
from sfumato.mechanisms.local_sensitivity import around_median, distance
from sfumato.schema import key, real
from tests.helpers import read, seeded

REPLACE = Unit(change="replace")
VALUES = (0, 256, 512, 768, 1024)
SCHEMA = Schema.of(u=key(), x=real(0, 1024))


def plan_for(bound: Any = 256, epsilon: Any = 4, delta: Any = 0.0162, unit: Unit = REPLACE) -> ProposeTestRelease:
    return ProposeTestRelease(column="x", lower=0, upper=1024, bound=bound, epsilon=epsilon, delta=delta, protects=unit)


@dataclass(frozen=True)
class Made:
    """What the mechanism is made of, so that a mutant can exchange a part."""

    law: RoundedLaplace
    test_law: DiscreteLaplace | None
    threshold: int
    steps: int
    ends: tuple[int, int]
    exponent: int

    def chances(self, x: tuple[int, ...]) -> Any:
        """P of every step of the grid, then of None."""
        low, high = self.ends
        around = around_median(np.array(x) * 2**-self.exponent, low, high)
        far = distance(around, self.steps)
        if self.test_law is None:
            answered = float(far > self.threshold)
        else:
            answered = float(self.test_law.sf(self.threshold - far))
        k = np.arange(low, high + 1) - around.median
        each = self.law.pmf(k)
        each[0], each[-1] = self.law.cdf(k[0]), self.law.sf(k[-1] - 1)
        return np.append(each * answered, 1 - answered)


def made(plan: ProposeTestRelease) -> Made:
    return Made(plan.law, plan.test_law, plan.threshold, plan._steps, plan._ends, plan.exponent)


def worst(parts: Made, epsilon: float) -> float:
    """The largest delta at epsilon over all small neighbours, both directions."""
    found = 0.0
    for n in (1, 3, 5):
        laws = {x: parts.chances(x) for x in combinations_with_replacement(VALUES, n)}
        for x, p in laws.items():
            for i in range(n):
                for v in VALUES:
                    q = laws[tuple(sorted((*x[:i], v, *x[i + 1 :])))]
                    found = max(found, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return found


def pure_part(parts: Made) -> float:
    """The largest |ln ratio| between neighbours whose medians differ by no more than the bound."""
    found = 0.0
    for n in (3, 5):
        laws = {x: parts.chances(x) for x in combinations_with_replacement(VALUES, n)}
        middle = (n - 1) // 2
        for x, p in laws.items():
            for i in range(n):
                for v in VALUES:
                    y = tuple(sorted((*x[:i], v, *x[i + 1 :])))
                    if abs(x[middle] - y[middle]) * 2**-parts.exponent <= parts.steps:
                        found = max(found, float(np.abs(np.log(p) - np.log(laws[y])).max()))
    return found


def test_the_exact_loss_is_within_epsilon_and_delta_and_near_them() -> None:
    plan = plan_for()
    assert plan.threshold == 1 and plan._steps * 2.0**plan.exponent == 256
    assert 0.8 * 0.0162 < worst(made(plan), 4) <= 0.0162
    assert 3.5 < pure_part(made(plan)) <= 4 * (1 + 1e-9)


def test_mutants_are_caught() -> None:
    plan = plan_for()
    right = made(plan)
    assert worst(replace(right, test_law=None), 4) > 0.9  # no noise on the distance
    assert worst(replace(right, threshold=0), 4) > 0.1  # threshold too low
    assert pure_part(replace(right, law=RoundedLaplace(plan.law.scale / 2))) > 4.5
    assert pure_part(replace(right, test_law=DiscreteLaplace(plan.test_law.scale / 2))) > 4.5


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-3), (1, 1e-100), (8, 1e-9), (2, 0.4), (2, 0.9)])
def test_the_threshold_is_the_least_that_is_rare_enough(epsilon: float, delta: float) -> None:
    plan = plan_for(epsilon=epsilon, delta=delta)

    def above(threshold: int) -> Any:
        q = mp.exp(-1 / mp.mpf(plan.test_law.scale))
        return q ** (threshold + 1) / (1 + q)

    with mp.workdps(60):
        exactly = mp.mpf(plan.delta.numerator) / plan.delta.denominator
        assert above(plan.threshold) <= exactly
        assert plan.threshold == 0 or above(plan.threshold - 1) > exactly


def test_the_law_that_is_drawn_is_the_law_that_was_checked() -> None:
    plan, run = plan_for(), seeded(5)
    for x in ((512,) * 5, (256, 512, 512, 512, 768), (0, 0, 512, 1024, 1024)):
        rows = read(SCHEMA, REPLACE, u=range(len(x)), x=[float(v) for v in x])
        drawn = [plan._run(rows, run) for _ in range(3000)]
        low, high = plan._ends
        places = np.array([high - low + 1 if k is None else k - low for k in drawn])
        edges = np.append(np.arange(0, high - low + 2, 256), high - low + 2)  # the last: None
        seen = np.add.reduceat(np.bincount(places, minlength=high - low + 2), edges[:-1])
        expected = 3000 * np.add.reduceat(made(plan).chances(x), edges[:-1])
        alike = expected > 5
        rest = abs(float(seen[~alike].sum() - expected[~alike].sum()))
        chi_square = float(((seen - expected)[alike] ** 2 / expected[alike]).sum())
        assert chi_square < 50 and rest < 40  # at most 9 degrees of freedom


def test_an_answer_where_the_data_are_far_from_moving() -> None:
    plan, run = plan_for(bound=8, epsilon=1, delta=1e-6), seeded(6)
    dense = read(SCHEMA, REPLACE, u=range(999), x=np.linspace(500, 524, 999))
    answers = [plan.finish(plan._run(dense, run)) for _ in range(300)]
    assert None not in answers
    wrong = np.mean([abs(answer - 512) > plan.error(1, 0.1) for answer in answers])
    assert wrong <= 0.1 + 4 * math.sqrt(0.1 / 300)
    split = read(SCHEMA, REPLACE, u=range(998), x=[0.0] * 499 + [1000.0] * 499)
    assert [plan._run(split, run) for _ in range(50)] == [None] * 50
    assert plan.finish(None) is None and plan.error(None, 0.05) is None


@pytest.mark.parametrize("values", [[], [5.0], [math.nan] * 3, [None, math.inf, -math.inf, 1e308], [7.0] * 99])
def test_odd_tables_are_answered_or_refused(values: list[Any]) -> None:
    for plan in (plan_for(epsilon=1e-9), plan_for(), plan_for(bound=1e-3, epsilon=9, delta=1e-9)):
        answer = plan.finish(plan._run(read(SCHEMA, REPLACE, u=range(len(values)), x=values), seeded(3)))
        assert answer is None or 0 <= answer <= 1024


def test_what_is_refused_and_why() -> None:
    for wrong, words in (
        ({"unit": Unit()}, "replace"),
        ({"unit": Unit("row", "replace", 3)}, "group"),
        ({"bound": 1024}, "bound"),
        ({"bound": 0}, "bound"),
        ({"bound": 1e-20}, "grid"),
        ({"delta": 0}, "delta"),
        ({"delta": None}, "delta"),
    ):
        with pytest.raises(ArgumentError, match=words):
            plan_for(**wrong)
    with pytest.raises(ArgumentError, match="epsilon"), pytest.warns(PrivacyWarning):
        plan_for(epsilon=5000)
    plan = plan_for(epsilon=1, delta=1e-6)
    assert plan.event == events.Approximate(epsilon=1, delta=1e-6, relation="replace")
    assert plan.delta == plan.event.delta and plan.needs_whole and plan.price() == 1
    assert "no answer" in plan.explain()[-1]
