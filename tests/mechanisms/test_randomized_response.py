"""Randomized response: the exact table of probabilities, NULLs and all."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Budget, Schema, Unit, events, partition, reserve
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, PlanError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import category, flag
from tests.helpers import read, seeded

REPLACE = Unit(change="replace")
LETTERS = ("a", "b", "c", "d", "e")


def plan_for(k: int = 2, epsilon: Any = 1, unit: Unit = REPLACE) -> m.RandomizedResponse:
    return m.RandomizedResponse(column="w", categories=LETTERS[:k], epsilon=epsilon, protects=unit)


def table(plan: m.RandomizedResponse, bits: int = 300) -> list[list[Any]]:
    """P(report | answer) for each answer and for a NULL, from the plan's own enclosure."""
    k = len(plan.categories)
    enclosed = plan.keep_chance(bits)
    assert enclosed.hi - enclosed.lo <= 16
    p = mp.mpf(enclosed.lo) / mp.mpf(2) ** bits
    q = (1 - p) / (k - 1)
    return [*([p if i == j else q for j in range(k)] for i in range(k)), [mp.mpf(1) / k] * k]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, math.log(3), 5, 9, Fraction(1, 3)])
def test_any_two_answers_are_within_epsilon_nulls_too(k: int, epsilon: Any) -> None:
    plan = plan_for(k, epsilon)
    with mp.workdps(80):
        e = mp.mpf(plan.epsilon.numerator) / plan.epsilon.denominator
        laws = table(plan)
        worst = max(abs(mp.log(x) - mp.log(y)) for p in laws for q in laws for x, y in zip(p, q, strict=True))
        assert abs(worst - e) < mp.mpf(10) ** -60  # exactly e^epsilon, no more and no less
        for law in laws:
            assert abs(mp.fsum(law) - 1) < mp.mpf(10) ** -60


def test_mutants_are_caught_by_the_same_check() -> None:
    with mp.workdps(80):
        p, *_ = table(plan_for(3, 1))[0]
        right = mp.e / (mp.e + 2)
        assert abs(p - right) < mp.mpf(10) ** -60
        assert abs(mp.log(mp.e / (mp.e + 1) / (1 - mp.e / (mp.e + 1)) * 2) - 1) > 0.5  # the binary formula for k = 3
        assert mp.log(right / (1 - right)) < 1  # forgetting that the others share the rest


def test_two_fair_coins() -> None:
    plan = plan_for(2, math.log(3))
    assert float(plan.keep_chance(80)) == pytest.approx(0.75, abs=1e-15)
    sixty = np.array([0] * 600 + [1] * 400)  # "a" is yes
    estimate = plan.finish(sixty)
    assert estimate["a"] == pytest.approx(700) and estimate["b"] == pytest.approx(300)
    for epsilon in (0.5, 2.0):
        kept = float(plan_for(2, epsilon).keep_chance(80))
        assert kept == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)), rel=1e-14)


@pytest.mark.parametrize("k", [2, 4])
def test_what_is_drawn_is_the_table_that_was_checked(k: int) -> None:
    plan = plan_for(k, 1)
    answers = [*LETTERS[:k], None]
    laws = table(plan)
    schema = Schema.of(w=category(LETTERS))
    run, n = Run(Noise(SeededBits(4))), 20_000
    for answer, law in zip(answers, laws, strict=True):
        raw = plan._run(read(schema, REPLACE, w=[answer] * n), run)
        seen = np.bincount(raw, minlength=k) / n
        for got, wanted in zip(seen, law, strict=True):
            assert abs(got - float(wanted)) < 5.3 * math.sqrt(float(wanted) * (1 - float(wanted)) / n)
    unlisted = plan._run(read(schema, REPLACE, w=["e"] * n), run)  # known to the schema, not to the plan
    assert abs(np.bincount(unlisted, minlength=k)[0] / n - 1 / k) < 5.3 * math.sqrt(1 / k / n)


def test_there_is_a_report_per_row_whatever_the_rows_hold() -> None:
    schema = Schema.of(w=category(LETTERS))
    for cells in ([], [None], ["zz", 3, math.nan], ["a"] * 7):
        raw = plan_for(3)._run(read(schema, REPLACE, w=cells), seeded())
        assert raw.shape == (len(cells),) and set(raw.tolist()) <= {0, 1, 2}
        assert set(plan_for(3).finish(raw)) == {"a", "b", "c"}


def test_flags_are_answers_too() -> None:
    plan = m.RandomizedResponse(column="on", categories=[False, True], epsilon=9, protects=REPLACE)
    raw = plan._run(read(Schema.of(on=flag()), REPLACE, on=[True] * 500), seeded())
    assert raw.mean() > 0.99


def test_the_estimate_is_unbiased_and_its_error_bar_covers() -> None:
    plan = plan_for(3, 1.5)
    rows = read(Schema.of(w=category(LETTERS)), REPLACE, w=["a"] * 150 + ["b"] * 100 + ["c"] * 50)
    run = Run(Noise(SeededBits(8)))
    raws = [plan._run(rows, run) for _ in range(600)]
    mean = np.mean([plan.finish(raw)["a"] for raw in raws])
    width = plan.error(raws[0], 0.05)["a"]
    assert abs(mean - 150) < 5 * width / 2 / math.sqrt(600)
    covered = np.mean([abs(plan.finish(raw)["a"] - 150) <= width for raw in raws])
    assert covered >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 600)


def test_a_group_of_rows_costs_so_many_times_epsilon() -> None:
    assert plan_for(3).event == events.RandomizedResponse(epsilon=1, categories=3, relation="replace")
    group = plan_for(3, 0.5, Unit(change="replace", group=4))
    assert group.event == events.Pure(epsilon=2, relation="replace")


@pytest.mark.parametrize("unit", [Unit(), Unit("user:u", "replace"), Unit("user:u"), Unit("user:u", "zero-out")])
def test_only_rows_whose_number_is_public_can_be_reported_one_by_one(unit: Unit) -> None:
    with pytest.raises(ArgumentError, match="once per row"):
        plan_for(unit=unit)


@pytest.mark.parametrize("change", ["replace", "zero-out"])
def test_reports_are_never_split_by_a_private_column(change: Any) -> None:
    # A part's number of reports is the exact number of its rows: one exchange moves it, with no noise at all.
    unit = Unit(change=change)
    schema = Schema.of(ward=category(["n", "s"]), w=category(LETTERS))
    before = read(schema, unit, ward=["n", "n", "s"], w=["a", "b", "a"])
    after = read(schema, unit, ward=["s" if change == "replace" else None, "n", "s"], w=["a", "b", "a"])
    try:
        plan = partition("ward", ["n", "s"], plan_for(2, 1, unit))
        plan.check(schema.table())
    except (ArgumentError, PlanError):
        return  # refused at birth, or where it meets the schema
    sizes = [[len(part) for part in plan._run(rows, seeded()).values()] for rows in (before, after)]
    assert sizes[0] == sizes[1]


def test_reports_are_never_split_inside_a_reserve_either() -> None:
    schema = Schema.of(ward=category(["n", "s"]), w=category(LETTERS))

    def body(run: Run) -> Any:
        return sum(run.release(plan_for(2, 1)).values())

    sizes = []
    for ward in (["n", "n", "s"], ["s", "n", "s"]):
        try:
            plan = partition("ward", ["n", "s"], reserve(body, unit=REPLACE, budget=Budget(epsilon=1)))
            plan.check(schema.table())
            raw = plan._run(read(schema, REPLACE, ward=ward, w=["a", "b", "a"]), seeded())
        except (ArgumentError, PlanError):
            return
        sizes.append([round(v) for v in raw.values()])
    assert sizes[0] == sizes[1]
