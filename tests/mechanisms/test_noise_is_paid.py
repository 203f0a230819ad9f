"""Mechanisms made of parts: the noise that each part draws is the noise that its part of the event pays for.

The exact loss of the law that is drawn, when one change moves the number as far as it may, against the epsilon or the
multiplier in the event; and draws for different numbers are independent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.audit.losses import pure_loss
from sfumato.laws import RoundedGaussian
from sfumato.strategies import Ranges
from tests.helpers import seeded
from tests.mechanisms.keyed import table

ROW, USER, REPLACE = Unit(), Unit("user:u"), Unit(change="replace")
WARDS = ("a", "b", "c")


def parts(event: events.Event, kind: type[Any]) -> list[tuple[Any, int]]:
    """The leaves of that kind, and how often each happens."""
    if isinstance(event, events.Repeat):
        return [(leaf, times * event.times) for leaf, times in parts(event.event, kind)]
    if isinstance(event, events.Sequence):
        return [found for each in event.events for found in parts(each, kind)]
    return [(event, 1)] if isinstance(event, kind) else []


def paid(law: Any, moved: Any, epsilon: Fraction) -> None:
    """The law loses at most epsilon when its centre moves so far, and nearly all of it."""
    loss = pure_loss(law, [math.ceil(moved)])
    assert 0.99 * float(epsilon) <= loss <= float(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("unit", [ROW, REPLACE, Unit(group=3)], ids=str)
def test_sparse_vector_s_numbers(count: int, unit: Unit) -> None:
    plan = m.SparseVector(epsilon=1, protects=unit, count=count, answers_epsilon=Fraction(3, 4))
    question = plan._asked(bounds.clipped_sum("x", 0, 5, unit), 0)
    [(each, times)] = parts(plan.event, events.Laplace)
    assert (each.epsilon, times) == (Fraction(3, 4) / count, count)
    law = plan.answer_law(question)
    assert law is not None
    paid(law, question.query.in_steps(question.exponent).linf, each.epsilon)


class NumbersForOne(m.SparseVector):
    """A mutant: the noise on shown numbers is for one crossing, whatever `count` is."""

    @property
    def _answer_scale(self) -> Fraction | None:
        return 1 / Fraction(self.answers_epsilon)


def test_numbers_with_the_noise_of_one_are_caught() -> None:
    plan = NumbersForOne(epsilon=1, protects=ROW, count=3, answers_epsilon=1)
    question = plan._asked(bounds.count(ROW), 0)
    [(each, _)] = parts(plan.event, events.Laplace)
    with pytest.raises(AssertionError):
        paid(plan.answer_law(question), question.query.in_steps(question.exponent).linf, each.epsilon)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_sparse_vector_s_comparisons(count: int) -> None:
    for monotone, moves in ((False, 2), (True, 1)):
        plan = m.SparseVector(epsilon=1, protects=ROW, count=count, monotone=monotone)
        first, second = plan.shares
        assert first + second == 1 == parts(plan.event, events.Pure)[0][0].epsilon
        paid(plan.gate.threshold_law, plan.gate.finer, first)
        paid(plan.gate.query_law, moves * plan.gate.finer, second / count)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_thresholdout(count: int) -> None:
    plan = m.Thresholdout(
        threshold=Fraction(1, 10), sensitivity=Fraction(1, 50), count=count, epsilon=2, protects=REPLACE
    )
    held = plan._held(bounds.share(bounds.count_where(REPLACE, {"w": ["a"]}), 50), 0.5)
    [(tests, _)], [(each, times)] = parts(plan.event, events.Pure), parts(plan.event, events.Laplace)
    assert times == count and tests.epsilon + count * each.epsilon == 2
    paid(plan.answer_law(held.on_grid), held.on_grid.reach, each.epsilon)
    gate = plan.gate
    lost = pure_loss(gate.threshold_law, [gate.finer]) + count * pure_loss(gate.query_law, [2 * gate.finer])
    assert 0.99 * float(tests.epsilon) <= lost <= float(tests.epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("total", [None, 100])
@pytest.mark.parametrize("updates", [1, 3])
def test_private_multiplicative_weights(total: int | None, updates: int) -> None:
    unit = ROW if total is None else REPLACE
    plan = m.PrivateMultiplicativeWeights(
        query=bounds.histogram("w", WARDS, unit), epsilon=2, updates=updates, total=total
    )
    [(tests, _)], [(each, times)] = parts(plan.event, events.Pure), parts(plan.event, events.Laplace)
    assert times == updates + (total is None) and tests.epsilon + times * each.epsilon == 2
    paid(plan.law, plan.moved, each.epsilon)


@pytest.mark.parametrize("total", [None, 100])
def test_mwem(total: int | None) -> None:
    unit = ROW if total is None else REPLACE
    cells, workload = bounds.histogram("w", WARDS, unit), Ranges(cells=3)
    plan = m.MWEM(query=cells, workload=workload, rounds=3, epsilon=2, total=total)
    [(picked, rounds)], [(each, times)] = parts(plan.event, events.Exponential), parts(plan.event, events.Laplace)
    assert rounds == 3 and times == 3 + (total is None) and rounds * picked.epsilon + times * each.epsilon == 2
    paid(plan.law, plan._reach(plan._whole), each.epsilon)
    paid(plan._total_law, plan._reach(plan._ones), each.epsilon)
    assert 2 * plan.rate * plan._reach(plan._whole) == picked.epsilon
    concentrated = m.MWEM(query=cells, workload=workload, rounds=3, rho=Fraction(1, 2), total=total)
    [(noise, times)] = parts(concentrated.event, events.Gaussian)
    law = concentrated.law
    assert isinstance(law, RoundedGaussian) and times == 3 + (total is None)
    assert law.sigma >= noise.multiplier * concentrated._reach(concentrated._whole)


def test_counts_and_values_beside_a_selection() -> None:
    keys = m.WeightedKeys(column="k", protects=USER, epsilon=1, delta=1e-5, per_unit=4, count_epsilon=Fraction(1, 2))
    [(each, _)] = parts(keys.event, events.Laplace)
    paid(keys.count_law, 4 << -keys._count_exponent, each.epsilon)
    [(noise, _)] = parts(keys.event, events.Gaussian)
    assert keys.law.sigma >= noise.multiplier * 2**20
    best = m.NoisyMaxWithValue(query=bounds.votes("w", WARDS, ROW), epsilon=1, share=Fraction(1, 4))
    [(value, _)] = parts(best.event, events.Laplace)
    assert value.epsilon == Fraction(3, 4) and best.selection.epsilon == Fraction(1, 4)
    paid(best.law, best.query.in_steps(best._exponent).linf, value.epsilon)


@pytest.mark.parametrize("kind", [m.OptimalKeys, m.ThresholdKeys, m.WeightedKeys])
def test_keys_are_decided_independently(kind: Any) -> None:
    plan = kind(column="k", protects=USER, epsilon=1, delta=0.01)
    height = next(n for n in range(1, 200) if _chance(plan, n) > 0.3)
    chance = _chance(plan, height)
    assert chance < 0.8
    rows, runs = table(USER, *("pq"[i % 2] for i in range(2 * height))), 1500  # a unit for each letter
    generator = seeded(5)
    kept = np.array([["p" in found, "q" in found] for found in (plan._run(rows, generator) for _ in range(runs))])
    spread = math.sqrt(1 / (4 * runs))
    assert np.all(np.abs(kept.mean(axis=0) - chance) < 5 * spread)
    assert abs((kept[:, 0] & kept[:, 1]).mean() - chance**2) < 5 * spread  # one noise for both gives `chance` here


def _chance(plan: Any, n: int) -> float:
    return float(plan.chances(n)) if isinstance(plan, m.OptimalKeys) else float(plan.keep_chance(n))
