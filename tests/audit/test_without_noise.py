"""A plan without its noise, for tests of pipelines; and the law of a selection, beside the mechanism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, audit, bounds, mechanisms, schema
from sfumato.audit.chances import winners
from sfumato.audit.silent import Plain, Silent
from sfumato.errors import ArgumentError, PlanError
from sfumato.mechanisms.selection import win_chances
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run

UNIT = Unit("user:patient")
WARDS = ("east", "north", "west")
TABLE = {
    "patient": [1, 2, 3, 4, 4],
    "ward": ["west", "west", "east", "west", "east"],
    "age": [30.0, 40.0, 50.0, 200.0, 0.0],
}
VOTES = bounds.votes("ward", WARDS, UNIT)


def test_counts_and_sums_are_those_of_the_table() -> None:
    count = mechanisms.Laplace(query=bounds.count(UNIT, per_unit=2), epsilon=0.1)
    assert audit.without_noise(count, TABLE).value == 5
    total = mechanisms.Gaussian(query=bounds.clipped_sum("age", 0, 100, Unit()), epsilon=1, delta=1e-6)
    assert audit.without_noise(total, {"age": TABLE["age"]}).value == 220  # 200 is clipped


def test_the_best_wins_and_the_first_of_equals() -> None:
    for plan in (
        mechanisms.PermuteAndFlip(query=VOTES, epsilon=1e-3),
        mechanisms.Exponential(query=VOTES, epsilon=1e-3),
    ):
        assert audit.without_noise(plan, TABLE).value == "west"
        assert audit.without_noise(plan, {"patient": [1, 2], "ward": ["west", "north"]}).value == "north"
    best = mechanisms.TopK(query=VOTES, epsilon=1e-3, k=3)
    assert audit.without_noise(best, TABLE).value == ["west", "east", "north"]


def test_a_query_is_answered_as_the_engine_does() -> None:
    table = Schema.of(patient=schema.key(), ward=schema.category(WARDS), age=schema.real(0, 100), unit="patient")
    text, limits = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", sf.Limits(rows=4)
    plan = sf.sql(text, table, unit=UNIT, epsilon=1, delta=1e-6, limits=limits)
    answer = audit.without_noise(plan, TABLE).to_pandas()
    assert dict(zip(answer["ward"], answer["n"], strict=True)) == {"east": 2, "north": 0, "west": 3}


def test_nothing_is_charged_and_no_curator_takes_such_noise() -> None:
    release = audit.without_noise(mechanisms.Laplace(query=bounds.count(Unit()), epsilon=1), {"age": [1.0]})
    assert release.receipt is None
    private = Private("visits", TABLE, unit=UNIT, schema=Schema.of(patient=schema.key(), unit="patient"))
    for noise in (Silent(SeededBits(0)), Plain(SeededBits(0))):
        bits: Any = noise
        with pytest.raises(ArgumentError, match="bits"):
            Curator(private, MemoryLedger({"visits": Budget(epsilon=1)}), bits=bits)


def test_arguments_are_checked_by_name() -> None:
    plan = mechanisms.PermuteAndFlip(query=VOTES, epsilon=1)
    with pytest.raises(ArgumentError, match="plan"):
        audit.without_noise("SELECT 1", TABLE)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="table"):
        audit.without_noise(plan, 3)
    with pytest.raises(PlanError, match="table is not allowed"):
        audit.without_noise(plan, {"patient": [1]})
    for wrong in ([1, 2], [1, 2, float("nan")], "abc", 3):
        with pytest.raises(ArgumentError, match="scores"):
            plan.law(wrong)


@pytest.mark.parametrize(
    ("plan", "shares"),
    [
        (mechanisms.Exponential, (0.506480, 0.307196, 0.186324)),
        (mechanisms.PermuteAndFlip, (0.587172, 0.266077, 0.146751)),
    ],
)
def test_the_law_of_a_selection_is_the_published_one(plan: Any, shares: tuple[float, ...]) -> None:
    """At epsilon = 1 and a sensitivity of 1; votes move one way, so half of that gives the same rate."""
    found = plan(query=VOTES, epsilon=0.5).law([0, -1, -2])
    assert list(found) == list(WARDS) and list(found.values()) == pytest.approx(shares, abs=5e-7)


@pytest.mark.parametrize("plan", [mechanisms.Exponential, mechanisms.PermuteAndFlip])
def test_the_law_is_that_of_the_mechanism_exactly_and_by_drawing(plan: Any) -> None:
    chosen = plan(query=VOTES, epsilon=1.5)
    law = chosen.law([1.5, 0, 2.5])  # the votes of TABLE: patient 4 is shared out
    rows = audit.arguments.one_table(chosen, TABLE, None)
    exactly = winners([*map(sf.exact.Fraction, chosen._scores(rows).tolist())], chosen.rate, chosen.noise)
    assert list(law.values()) == pytest.approx([float(chance) for chance in exactly], abs=1e-12)
    noise, draws = Noise(SeededBits(3)), 4000
    wins = Counter(chosen.finish(chosen._run(rows, Run(noise))) for _ in range(draws))
    for name, share in law.items():
        assert abs(wins[name] / draws - share) < 5 * np.sqrt(share * (1 - share) / draws)


def test_the_law_of_thousands_of_candidates() -> None:
    equal = win_chances(np.zeros(3000), 1.0, "exponential")
    assert equal == pytest.approx(np.full(3000, 1 / 3000), rel=1e-11)
    some = win_chances(np.linspace(-30, 0, 3000), 1.0, "exponential")
    assert some.sum() == pytest.approx(1, abs=1e-12) and np.all(np.diff(some) > 0)
