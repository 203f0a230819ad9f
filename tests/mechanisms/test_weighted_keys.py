"""Keys by weights: exact sensitivity, thresholds over all numbers of keys, neighbours, and what it is good for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from sfumato import Unit, events
from sfumato.errors import ArgumentError
from sfumato.mechanisms import ThresholdKeys, WeightedKeys
from sfumato.mechanisms.weighted_keys import weight
from tests.mechanisms.keyed import ROW, USER, excess, law_of_sets, neighbours, run, table


def plan_for(epsilon: Any = 1, delta: Any = 1e-5, unit: Unit = USER, per_unit: int = 1, **more: Any) -> WeightedKeys:
    return WeightedKeys(column="k", protects=unit, epsilon=epsilon, delta=delta, per_unit=per_unit, **more)


def shows(plan: WeightedKeys, threshold: int, keys: int, height: int) -> Any:
    edge = mp.mpf(2 * (threshold - height) - 1) / 2 / mp.mpf(plan.law.sigma)
    return 1 - (1 - mp.erfc(edge / mp.sqrt(2)) / 2) ** keys


def test_weights_are_the_largest_whole_ones_of_unit_length() -> None:
    for t in (*range(1, 200), 1000, 4096, 2**18):
        assert t * weight(t) ** 2 <= 4**20 < t * (weight(t) + 1) ** 2


@pytest.mark.parametrize(("epsilon", "delta", "per_unit"), [(1, 1e-5, 1), (1, 1e-5, 40), (0.1, 1e-3, 64), (5, 0.2, 7)])
def test_the_threshold_is_the_largest_over_all_numbers_of_keys(epsilon: float, delta: float, per_unit: int) -> None:
    plan = plan_for(epsilon, delta, per_unit=per_unit)
    with mp.workdps(50):
        allowed = mp.mpf(plan.key_delta.numerator) / plan.key_delta.denominator
        ts = range(1, per_unit + 1)
        assert all(shows(plan, plan.threshold_steps, t, weight(t)) <= allowed for t in ts)
        assert any(shows(plan, plan.threshold_steps - 1, t, weight(t)) > allowed for t in ts)
        one = plan_for(epsilon, delta)  # the mutant: the threshold of a single new key
        if per_unit > 7:
            assert any(shows(plan, one.threshold_steps, t, weight(t)) > allowed for t in ts)


def test_runs_of_many_keys_are_safe_too() -> None:
    plan = plan_for(1, 1e-6, per_unit=5000)
    with mp.workdps(50):
        allowed = mp.mpf(plan.key_delta.numerator) / plan.key_delta.denominator
        found = [shows(plan, plan.threshold_steps, t, weight(t)) for t in range(1, 5001, 7)]
        assert max(found) <= allowed and max(found) > allowed * 0.9


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("per_unit", [1, 2, 3])
def test_all_small_neighbours_are_within_the_price(change: Any, per_unit: int) -> None:
    plan = plan_for(1.5, 0.4, Unit("user:u", change), per_unit)

    def worst(threshold: int) -> float:
        def keep(units: list[tuple[int, int]]) -> float:
            return float(plan.law.sf(threshold - sum(weight(t) for t, _ in units) - 1))

        return max(excess(plan, *(law_of_sets(s, per_unit, keep) for s in pair)) for pair in neighbours(change))

    assert worst(plan.threshold_steps) <= 1e-12
    assert worst(weight(1) // 2) > 0.01  # a threshold that lone keys pass


def test_weights_and_counts_are_exact() -> None:
    plan = plan_for(9, 0.01, per_unit=3, count_epsilon=9)
    rows = table(USER, *[("a",)] * 50, *[("a", "b", "c")] * 40, *[("a", "b", "c", "d", "e")] * 200)
    found = plan._run(rows, run())
    assert set(found) == {"a", "b", "c", "d", "e"}
    assert found["a"] == pytest.approx(50 + 40 + 200 * 3 / 5, abs=50)
    assert sum(found.values()) == pytest.approx(50 + 120 + 600, abs=20)  # three keys of five, chosen at random


def test_it_finds_more_keys_where_units_have_few() -> None:
    """Units with one or two keys beside a few with very many: the noise need not be for the many."""
    holdings = [(f"k{i % 60}",) for i in range(60 * 45)] + [tuple(f"x{i}" for i in range(100))] * 3
    rows = table(USER, *holdings)
    weighted = plan_for(1, 1e-5, per_unit=100)
    gauss = ThresholdKeys(column="k", protects=USER, epsilon=1, delta=1e-5, per_unit=100, noise="gaussian")
    laplace = ThresholdKeys(column="k", protects=USER, epsilon=1, delta=1e-5, per_unit=100)
    assert weighted.event == gauss.event
    assert len(weighted._run(rows, run())) == 60 and not gauss._run(rows, run()) and not laplace._run(rows, run())
    assert weighted.keep_chance(45) > 0.99 > 0.01 > gauss.keep_chance(45)
    assert weighted.keep_chance(45, keys=100) < 1e-3


def test_counts_are_paid_apart() -> None:
    plan = plan_for(1, 1e-5, per_unit=4, count_epsilon=0.5)
    assert isinstance(plan.event, events.Sequence) and plan.event.events[2] == events.Laplace(epsilon=Fraction(1, 2))
    assert 1 < plan.price() <= Fraction(3, 2) and plan_for(1, 1e-5, per_unit=4).price() <= 1
    assert plan.count_law.spread * 2.0**plan._count_exponent == pytest.approx(8, rel=1e-12)
    other = plan_for(1, 1e-5, Unit("user:u", "replace"), 4, count_epsilon=0.5)
    assert other.count_law.spread * 2.0**other._count_exponent == pytest.approx(16, rel=1e-12)
    assert other.law.sigma == pytest.approx(plan.law.sigma * math.sqrt(2), rel=1e-9)
    rows = table(USER, *[("a", "b")] * 100)
    raw = plan._run(rows, run())
    assert plan.finish(raw) == raw and plan.error(raw, 0.05) == dict.fromkeys(raw, plan.expected_error(0.05))
    bare = plan_for(1, 1e-5, per_unit=4)
    assert bare.finish(bare._run(rows, run())) == ["a", "b"] and bare.expected_error(0.05) is None
    assert bare.error({"a": True}, 0.05) is None
    assert "0.5 more" in plan.explain()[-1] and "nothing else" in bare.explain()[-1]


def test_count_bars_cover() -> None:
    plan = plan_for(2, 1e-5, ROW, count_epsilon=0.5)
    rows = table(ROW, *[[k] for k in range(400) for _ in range(100)])
    raw = plan._run(rows, run())
    assert len(raw) == 400
    missed = sum(abs(count - 100) > plan.error(raw, 0.1)[k] for k, count in raw.items())  # type: ignore[index]
    assert missed / 400 <= 0.1 + 5 * math.sqrt(0.1 / 400)


def test_refusals() -> None:
    for fields, match in (
        ({"protects": Unit("user:u", group=2)}, "group = 1"),
        ({"count_epsilon": 0}, "count_epsilon"),
        ({"epsilon": 1e-9, "delta": 1e-60}, "larger epsilon"),
    ):
        with pytest.raises(ArgumentError, match=match):
            WeightedKeys(**{"column": "k", "protects": USER, "epsilon": 1, "delta": 1e-5, **fields})
