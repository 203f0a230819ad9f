"""Limits from public hints: free, as good as the adviser's where the hints are right, never less private."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.query import hints as hinting
from sfumato.query.hints import Hints
from sfumato.schema import Table, category, key, real

WARDS = ["east", "north", "south", "west"]
SCHEMA = sf.Schema(
    {"visits": Table({"patient": key(), "ward": category(WARDS), "cost": real(0, 1000)}, unit="patient")}
)
UNIT = sf.Unit("user:patient")
TEXT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def asked(hints: Any = None, text: str = TEXT, **more: Any) -> Any:
    return sf.sql(text, SCHEMA, unit=UNIT, **{"epsilon": 1, "delta": 1e-7, "hints": hints, **more})


def test_limits_come_from_hints_and_cost_nothing() -> None:
    plan = asked({"units": 5000, "rows": {1: 0.6, 3: 0.3, 20: 0.1}})
    assert not plan.advises and plan.fixed is not None
    assert 1 < plan.limits.rows <= 20
    assert plan.event == asked(limits={"rows": 1}).event
    assert record.parse(record.canonical(plan)) == plan
    assert plan.hash == record.parse(record.canonical(plan)).hash


def test_more_units_or_more_budget_allow_wider_limits() -> None:
    shape = {1: 0.6, 3: 0.3, 20: 0.1}
    found = [asked({"units": n, "rows": shape}).limits.rows for n in (100, 1000, 10_000, 1_000_000)]
    assert found == sorted(found) and found[0] < found[-1]
    spent = [asked({"units": 1000, "rows": shape}, epsilon=e).limits.rows for e in (0.01, 0.1, 1, 5)]
    assert spent == sorted(spent) and spent[0] < spent[-1]


def test_rows_spread_over_groups_make_shorter_vectors() -> None:
    one = asked({"units": 10_000, "rows": 16})
    four = asked({"units": 10_000, "rows": 16, "keys": 4})
    assert one.limits.rows == 16 and four.limits.rows == 8  # 16 / sqrt(4)
    laplace = asked({"units": 10**6, "rows": 16, "keys": 4}, delta=None)
    assert laplace.limits.rows == 16  # lengths add up


def test_the_expected_loss_is_that_of_the_hints() -> None:
    plan = asked({"units": 100, "rows": {1: 0.9, 100: 0.1}}, epsilon=0.1)
    rows = float(plan.limits.rows)
    masses = 0.9 * max(1 - rows, 0) + 0.1 * (100 - rows) if rows < 1 else 0.1 * (100 - rows)
    assert hinting.loss(plan, plan.hints, plan.limits) == pytest.approx(masses / (0.9 + 10), rel=0.02)
    said = f"by the hints, that takes about {100 * hinting.loss(plan, plan.hints, plan.limits):.2g} % of all rows away"
    assert said in plan.explain()


def test_given_limits_stay_and_hints_only_tell() -> None:
    plan = asked({"units": 100, "rows": {1: 0.5, 9: 0.5}}, limits={"rows": 3})
    assert plan.limits == sf.Limits(rows=3)
    assert hinting.loss(plan, plan.hints, plan.limits) == pytest.approx(0.5 * 6 / 5, rel=1e-9)


def test_answers_tell_the_expected_loss() -> None:
    rng = np.random.default_rng(1)
    rows = {"patient": rng.integers(500, size=2000), "ward": rng.choice(WARDS, 2000), "cost": rng.random(2000)}
    visits = sf.Private("visits", rows, unit=UNIT, schema=SCHEMA)
    curator = sf.Curator(visits, sf.MemoryLedger({"visits": sf.Budget(epsilon=2, delta=1e-6)}))
    release = curator.release(asked({"units": 500, "rows": {4: 1}, "keys": 2}))
    assert any(line.startswith("by the hints") for line in release.value.notes)
    errors = curator.quote(asked({"units": 500, "rows": {4: 1}, "keys": 2})).errors()
    assert set(errors) == {"n"}  # with hints the widths are known beforehand, with the adviser they are not


def test_units_that_vote_get_a_limit_on_groups() -> None:
    plan = asked(
        {"units": 5000, "rows": 6, "keys": {1: 0.5, 6: 0.5}, "groups": 40}, TEXT + "  ", keys={"ward": "select"}
    )
    assert plan.limits.keys > 1
    assert plan.limits.most_keys >= plan.limits.keys


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        ({"rows": 3}, "units"),
        ({"units": 10}, "rows"),
        ({"units": 10, "rows": {}}, "rows of hints"),
        ({"units": 10, "rows": {0: 1}}, "rows of hints"),
        ({"units": 10, "rows": {1: -1}}, "share in rows of hints"),
        ({"units": 10, "rows": [(1, 1), (1, 2)]}, "each number once"),
        ({"units": 10, "rows": [3, 4]}, "rows of hints"),
        ({"units": 0, "rows": 1}, "units"),
        ({"units": 10, "rows": 1, "keys": "x"}, "keys of hints"),
        ({"units": 10, "rows": 1, "groups": 0}, "groups"),
        ({"units": 10, "row": 1}, "hints by name"),
        (5, "hints"),
    ],
)
def test_wrong_hints_are_refused_by_name(hints: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        asked(hints)


def test_unknown_groups_must_be_hinted() -> None:
    with pytest.raises(ArgumentError, match="groups of hints is missing"):
        asked({"units": 10, "rows": 1}, keys={"ward": "select"})


def test_rows_that_are_units_take_no_hints() -> None:
    table = sf.Schema({"visits": Table({"ward": category(WARDS)})})
    with pytest.raises(ArgumentError, match="hints are not for rows"):
        sf.sql(TEXT, table, unit=sf.Unit(), epsilon=1, hints={"units": 10, "rows": 1})


@given(
    rows=st.dictionaries(st.integers(1, 10**6), st.integers(1, 100), min_size=1, max_size=8),
    keys=st.dictionaries(st.integers(1, 10**4), st.integers(1, 100), min_size=1, max_size=4),
    units=st.integers(1, 10**9),
    epsilon=st.sampled_from(["0.001", "0.1", "1", "8"]),
)
def test_any_hints_give_limits_that_can_be_drawn(rows: Any, keys: Any, units: int, epsilon: str) -> None:
    plan = asked({"units": units, "rows": rows, "keys": keys}, epsilon=Fraction(epsilon))
    assert 0 < plan.limits.rows <= 1.01 * max(rows)
    assert 0 <= hinting.loss(plan, plan.hints, plan.limits) < 1
    assert isinstance(plan.hints, Hints)
