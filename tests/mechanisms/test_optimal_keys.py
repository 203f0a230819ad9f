"""Optimal selection of keys: published values, both inequalities for every n, all small neighbours, the coins drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Unit, events
from sfumato.errors import ArgumentError
from sfumato.mechanisms import OptimalKeys
from sfumato.mechanisms.optimal_keys import _WORD
from tests.mechanisms.keyed import ROW, USER, excess, law_of_sets, neighbours, run, table


def plan_for(epsilon: Any = 1, delta: Any = 1e-5, unit: Unit = ROW, per_unit: int = 1) -> OptimalKeys:
    return OptimalKeys(column="k", protects=unit, epsilon=epsilon, delta=delta, per_unit=per_unit)


def recursion(epsilon: Fraction, delta: Fraction, last: int) -> list[Any]:
    """The definition: from pi(0) = 0, the largest step that both inequalities allow."""
    e, d = mp.exp(mp.mpf(epsilon.numerator) / epsilon.denominator), mp.mpf(delta.numerator) / delta.denominator
    pi = [mp.mpf(0)]
    for _ in range(last):
        pi.append(min(e * pi[-1] + d, 1 - (1 - pi[-1] - d) / e, mp.mpf(1)))
    return pi


def test_published_values() -> None:
    plan = plan_for()
    published = {1: 1e-5, 5: 8.5791025e-4, 10: 0.12818308, 12: 0.760311}
    for n, expected in published.items():
        assert float(plan.chance(n, 80)) == pytest.approx(expected, rel=5e-7)
    assert float(plan.chance(22, 80)) < 1 and plan.chance(23, 80).lo == 1 << 80
    assert plan.sure == 23 and plan.chance(0, 80).hi == 0


CASES = [(1, 1e-5), (0.1, 1e-3), (3, 1e-10), (9.5, 1e-3), (0.01, 0.2), (1e-3, 1e-2), (2, 0.9), (1, 1e-60), (5, 1e-4)]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_every_chance_is_the_recursion(epsilon: float, delta: float) -> None:
    plan = plan_for(epsilon, delta)
    last = min(plan.sure + 3, 400)
    with mp.workdps(120):
        pi = recursion(*plan.share, last)
        for n in sorted({*range(min(last, 60)), plan._turn - 1, plan._turn, plan._turn + 1, last - 4, last}):
            if 0 <= n <= last:
                found = plan.chance(n, 200)
                assert mp.mpf(found.lo) / 2**200 <= pi[n] + mp.mpf(2) ** -199
                assert pi[n] <= mp.mpf(found.hi) / 2**200 + mp.mpf(2) ** -199
                assert found.hi - found.lo <= 4
                assert float(plan.chances(n)) == pytest.approx(float(pi[n]), abs=2.0**-41)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.fractions(Fraction(1, 10**6), 10),
    st.fractions(Fraction(1, 10**12), Fraction(1, 2)),
    st.integers(0, 10**7),
    st.sampled_from([1, 2, 7]),
)
def test_both_inequalities_hold_at_any_count_and_one_is_tight(e: Fraction, d: Fraction, n: int, per_unit: int) -> None:
    plan = plan_for(e, d, USER, per_unit)
    n = n % (2 * plan.sure)
    epsilon, delta = plan.share
    with mp.workdps(80):
        here, there = (mp.mpf(plan.chance(x, 250).lo + plan.chance(x, 250).hi) / 2**251 for x in (n, n + 1))
        up = mp.exp(mp.mpf(epsilon.numerator) / epsilon.denominator)
        d_ = mp.mpf(delta.numerator) / delta.denominator
        first = up * here + d_ - there  # P(kept | n+1) <= e^e P(kept | n) + d
        second = up * (1 - there) + d_ - (1 - here)  # P(dropped | n) <= e^e P(dropped | n+1) + d
        tiny = mp.mpf(10) ** -60 * up
        assert min(first, second) >= -tiny and here <= there
        assert min(first, second) <= tiny or there == 1


def losses(plan: OptimalKeys, chances: Any, change: str) -> float:
    per_unit = plan.per_unit
    return max(
        excess(plan, *(law_of_sets(side, per_unit, lambda units: float(chances(len(units)))) for side in pair))
        for pair in neighbours(change)
    )


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("per_unit", [1, 2])
def test_all_small_neighbours_are_within_the_price(change: str, per_unit: int) -> None:
    plan = plan_for(1.5, 0.3, Unit("user:u", change), per_unit)  # type: ignore[arg-type]
    assert losses(plan, plan.chances, change) <= 1e-12


def test_mutants_are_caught_by_the_same_check() -> None:
    unit = Unit("user:u")
    plan = plan_for(1.5, 0.3, unit, 2)
    whole = plan_for(1.5, 0.3, unit, 1)  # epsilon and delta not divided among the keys of a unit
    assert losses(plan, whole.chances, "add-remove") > 0.05
    assert losses(plan, lambda n: plan.chances(n + 1), "add-remove") > 0.05  # one step too far
    assert losses(plan, lambda n: float(n >= 2), "add-remove") > 0.5  # a threshold without noise
    replaced = plan_for(1.5, 0.3, Unit("user:u", "replace"), 2)  # replace priced as if a unit only came
    assert losses(replaced, plan.chances, "replace") > 0.005


def test_the_price_is_what_was_asked_for() -> None:
    assert plan_for().event == events.Approximate(epsilon=1, delta=1e-5) and plan_for().price() == 1
    many = plan_for(unit=USER, per_unit=10)
    share = events.Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**6))
    assert many.event == events.Bundle((events.Repeat(share, 10),))
    assert many.price() <= 1 and many.delta == Fraction(1, 10**5)
    other = plan_for(unit=Unit("user:u", "replace"), per_unit=3)
    assert other.touched == 6 and other.event.events[0].times == 6  # type: ignore[union-attr]


class Scripted:
    """Noise that deals out given words."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def integers(self, below: int, count: int) -> Any:
        assert below == 1 << _WORD
        return np.array([self.words.pop(0) for _ in range(count)], dtype=np.int64)


def test_close_calls_are_settled_exactly() -> None:
    plan = plan_for()
    for n in (1, 7, 13, 22):
        bits = 3 * _WORD
        exact = plan.chance(n, bits + 64)
        whole = exact.lo >> 64  # the first 3 words of the chance
        words = [whole >> 2 * _WORD, (whole >> _WORD) % 2**_WORD, whole % 2**_WORD]
        for third, kept in ((words[2] - 5, True), (words[2] + 5, False)):
            script: Any = Scripted(words[0], words[1], third)
            got = plan._kept(np.array([n]), type("Run", (), {"noise": script})())
            assert got.tolist() == [kept] and not script.words
    script = Scripted(2**_WORD - 1, *[2**_WORD - 1] * 9)
    assert plan._kept(np.array([23]), type("Run", (), {"noise": script})()).all()  # certain is certain


def test_coins_follow_the_chances_and_a_unique_key_is_rare() -> None:
    plan = plan_for(1, 1e-3)
    keys = np.repeat(np.arange(40_000), 3)
    rows = table(ROW, *[[k] for k in np.concatenate([keys, 10**6 + np.arange(100_000)]).tolist()])
    out = plan._run(rows, run())
    three, one = sum(k < 10**6 for k in out), sum(k >= 10**6 for k in out)
    assert three == pytest.approx(40_000 * float(plan.chances(3)), abs=6 * math.sqrt(40_000 * 0.0112))
    assert one == pytest.approx(100, abs=60)  # 6 standard deviations: delta of 100,000


def test_what_leaves_is_a_sorted_list_of_keys() -> None:
    plan = plan_for(1, 1e-5)
    rows = table(ROW, *[[k] for k in ("b", 12.0, "a", 12, "12", 1.5, None) for _ in range(30)])
    raw = plan._run(rows, run())
    assert plan.finish(raw) == [1.5, 12, "a", "b"] and plan.error(raw, 0.05) is None
    assert "1 from 23 on" in plan.explain()[1]


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"delta": 0}, "delta = 0"),
        ({"delta": None}, "delta = None"),
        ({"per_unit": 2}, "per_unit = 2 is not allowed: give 1"),
        ({"column": ""}, "column"),
        ({"protects": "row"}, "protects"),
        ({"protects": Unit(group=2)}, "group = 1"),
        ({"protects": USER, "per_unit": 2**18, "epsilon": 1e-5}, "per_unit"),
    ],
)
def test_bad_fields_are_refused_by_name(fields: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        OptimalKeys(**{"column": "k", "protects": ROW, "epsilon": 1, "delta": 1e-5, **fields})
