"""Answers raised by what limits cut: their intervals hold the truth, or say that nobody knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, sql
from sfumato.laws import RoundedGaussian
from sfumato.noise import Noise, SeededBits
from sfumato.query import Limits
from sfumato.query.plan import Sql
from sfumato.query.released import figures
from sfumato.query.released.answer import Answer
from sfumato.query.released.texts import legend, texts_of
from sfumato.schema import Schema, Table, category, key, real
from tests.effort import tries
from tests.query.still import answered, raw_of

WARDS = ["a", "b", "c"]
SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(WARDS), "item": key(), "cost": real(0, 100, nulls=0)}, unit="patient"
        )
    }
)
TEXT = "COUNT(*) AS n, COUNT(DISTINCT patient) AS p, SUM(cost) AS s, AVG(cost) AS m"


def plan(text: str, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 1, "delta": 1e-6, **options})


@pytest.fixture(scope="module")
def visits() -> dict[str, Any]:
    """Rows of patients follow a power law; heavy patients go to ward a more often."""
    draw = np.random.default_rng(11)
    many = np.minimum((draw.pareto(1.5, 6000) + 1).astype(int), 2000)
    patient = np.repeat(np.arange(6000), many)
    heavy = many[patient] > 10
    ward = np.where(heavy & (draw.random(patient.size) < 0.5), "a", draw.choice(WARDS, patient.size))
    columns = {"patient": patient, "ward": ward, "item": np.arange(patient.size)}
    return {"visits": {**columns, "cost": draw.gamma(2.0, 10.0, patient.size).clip(0, 100)}}


def truth(data: dict[str, Any], ward: str | None) -> dict[str, float]:
    rows = data["visits"]
    mine = np.ones(rows["ward"].size, dtype=bool) if ward is None else rows["ward"] == ward
    cost = rows["cost"][mine]
    people = np.unique(rows["patient"][mine]).size
    return {"n": float(mine.sum()), "p": float(people), "s": float(cost.sum()), "m": float(cost.mean())}


def held(answer: Answer, truths: Sequence[dict[str, float]]) -> list[bool]:
    return [
        low <= true[name] <= high
        for name in answer.numbers
        for (low, high), true in zip(answer.interval(name), truths, strict=True)
    ]


@pytest.mark.parametrize("by", [None, "ward"])
def test_intervals_hold_the_truth(visits: dict[str, Any], by: str | None) -> None:
    """Noise and what limits cut together; noise alone held it in far fewer."""
    text = f"SELECT ward, {TEXT} FROM visits GROUP BY ward" if by else f"SELECT {TEXT} FROM visits"
    truths = [truth(visits, ward) for ward in WARDS] if by else [truth(visits, None)]
    hits = [
        each
        for seed in range(tries(10, of=25))
        for each in held(answered(plan(text), visits, Noise(SeededBits(seed))), truths)
    ]
    assert np.mean(hits) >= 0.9


def test_given_limits_say_at_least(visits: dict[str, Any]) -> None:
    answer = answered(plan(f"SELECT ward, {TEXT} FROM visits GROUP BY ward", limits=Limits(rows=3, keys=1)), visits)
    for name in ("n", "p", "s"):
        assert all(high == np.inf and np.isfinite(low) for low, high in answer.interval(name))
        value, behind = texts_of(answer.cells(name)[0])
        assert behind.startswith(" ≥ ") and float(behind[3:].replace(",", "")) < float(value.replace(",", ""))
    assert answer.interval("m") == [(-np.inf, np.inf)] * 3  # an average may be off to either side
    assert texts_of(answer.cells("m")[0])[1].startswith(" noise ± ")
    assert "at least" in str(answer) and "what limits cut is not known" in legend(answer.cells("n"), "95 %")
    table = answer.table()
    assert table["n_bias"] == [None] * 3 and table["n_high"] == [np.inf] * 3
    shown = answer._repr_html_()
    assert "≥" in shown and "at least" in shown and "noise ±" in shown
    assert not re.search(r'aria-label="[\d.]+ ±', shown), "no bar is closed"


def test_where_nothing_can_be_cut_intervals_are_closed() -> None:
    """One row for each unit, by the shape of the query: no limit, no adviser, no doubt."""
    text = "SELECT COUNT(*) AS n FROM (SELECT patient FROM visits GROUP BY patient) AS t"
    made = plan(text)
    assert not made.advises and made.fixed is not None
    answer = answered(made, {"visits": {"patient": [1, 1, 2], "ward": ["a"] * 3, "item": [1] * 3, "cost": [1.0] * 3}})
    assert answer["n"] == [2] and answer.bias("n") == [0.0] and np.isfinite(answer.interval("n")[0][1])


def test_different_values_are_advised(visits: dict[str, Any]) -> None:
    """Every item belongs to one patient: with one value for each, most of them would be lost without a word."""
    items = float(visits["visits"]["item"].size)
    hits = []
    for seed in range(tries(8, of=12)):
        made = plan("SELECT COUNT(DISTINCT item) AS v FROM visits", epsilon=3)
        answer = answered(made, visits, Noise(SeededBits(seed)))
        low, high = answer.interval("v")[0]
        hits.append(low <= items <= high)
        assert answer["v"][0] > 0.6 * items
    assert np.mean(hits) >= 0.75


def test_a_count_with_a_sum_is_starved_by_neither() -> None:
    """Incomes with a heavy tail beside counts of one row each."""
    draw = np.random.default_rng(5)
    income = np.minimum(draw.lognormal(10, 1, 20_000), 1e6)
    schema = Schema({"t": Table({"person": key(), "income": real(0, 1_000_000, nulls=0)}, unit="person")})
    made = sql("SELECT COUNT(*) AS n, SUM(income) AS s FROM t", schema, unit=Unit("user:person"), epsilon=1, delta=1e-6)
    hits, errors = [], []
    for seed in range(tries(10, of=20)):
        answer = answered(made, {"t": {"person": np.arange(20_000), "income": income}}, Noise(SeededBits(seed)))
        hits += [low <= true <= high for name, true in (("n", 20_000), ("s", income.sum()))
                 for low, high in answer.interval(name)]  # fmt: skip
        errors.append(abs(answer["s"][0] / income.sum() - 1))
    assert np.mean(hits) >= 0.85 and np.median(errors) < 0.05


def test_a_rare_count_loses_with_the_sums_beside_it(visits: dict[str, Any]) -> None:
    """One weight for all sums: heavy patients lose of every number, also of one that is far below its own limit."""
    rows = visits["visits"]
    rare = np.random.default_rng(8).random(rows["cost"].size) < 0.05
    data = {"visits": {**rows, "item": np.where(rare, 1, 0)}}
    asking = plan("SELECT COUNT(*) AS n, COUNT_IF(item = 1) AS r, SUM(cost) AS s FROM visits", epsilon=3)
    hits = []
    for seed in range(tries(10, of=25)):
        (low, high), *_ = answered(asking, data, Noise(SeededBits(seed))).interval("r")
        hits.append(low <= rare.sum() <= high)
    assert np.mean(hits) >= 0.8


def test_an_average_of_one_row_each_is_not_shifted() -> None:
    draw = np.random.default_rng(6)
    age = draw.integers(17, 91, 16_000)
    schema = Schema({"t": Table({"person": key(), "age": real(17, 90, nulls=17)}, unit="person")})
    made = sql("SELECT AVG(age) AS m FROM t", schema, unit=Unit("user:person"), epsilon=1, delta=1e-6)
    data = {"t": {"person": np.arange(16_000), "age": age.astype(float)}}
    errors = [abs(answered(made, data, Noise(SeededBits(s)))["m"][0] / age.mean() - 1) for s in range(9)]
    assert np.median(errors) < 0.005


def test_a_selective_count_is_right_or_marked(visits: dict[str, Any]) -> None:
    """Too few units for the adviser to see anything: the answer is at least what it says."""
    rows = {name: column[:40] for name, column in visits["visits"].items()}
    answer = answered(plan("SELECT COUNT(*) AS n FROM visits"), {"visits": rows}, Noise(SeededBits(1)))
    low, high = answer.interval("n")[0]
    assert high == np.inf and low <= 40 and answer.bias("n") == [None]
    assert any("noise hid from the adviser" in note for note in answer.notes)


def test_open_sides_follow_arithmetic() -> None:
    spreads = {"x": (RoundedGaussian(8.0), 1.0)}
    count = replace(figures.measured("x", np.array([100.0, 50.0])), above=True)
    two = figures.constant(2.0, 2)
    for figure, above, below in ((count * two, True, False), (-count, False, True), (two - count, False, True)):
        low, high = figure.interval(spreads)
        assert np.isinf(high).all() == above and np.isinf(low).all() == below
    low, high = (count / (count + two)).interval(spreads)
    assert np.isinf(low).all() or np.isinf(high).all()


def test_numbers_that_are_shown_for_being_high_are_not_taken_at_their_word() -> None:
    """Among shown groups, intervals hold the mean in 95 of 100; plain ones would in far fewer near the threshold."""
    draw, threshold = np.random.default_rng(2), 60.0
    spreads = {"v": (RoundedGaussian(10.0), 1.0)}
    for mean in (40.0, 55.0, 70.0, 120.0):
        noisy = np.rint(draw.normal(mean, 10.0, 400_000))
        shown = noisy[noisy >= threshold][:4000]
        low, high = figures.selected("v", shown, threshold).interval(spreads)
        assert 0.93 <= np.mean((low <= mean) & (mean <= high)) <= 0.985
    plain = figures.measured("v", np.rint(draw.normal(40.0, 10.0, 400_000)))
    near = plain.value[plain.value >= threshold]
    assert np.mean(near - 19.6 <= 40.0) < 0.1


def test_notes_say_on_which_side_the_truth_may_lie(visits: dict[str, Any]) -> None:
    """Counts and sums are at least what they say, averages and quantiles are not."""

    def said(columns: str) -> str:
        answer = answered(plan(f"SELECT {columns} FROM visits", limits=Limits(rows=3)), visits)
        (note,) = (note for note in answer.notes if note.startswith("what that cuts"))
        return note

    assert "not known, so they are at least what they say;" in said("COUNT(*) AS n, SUM(cost) AS s")
    assert "not known, so they may be off to either side;" in said("AVG(cost) AS m, QUANTILE(cost, [0.2, 0.5]) AS q")
    mixed = said("AVG(cost) AS m, COUNT(*) AS n, SUM(cost) AS s, -COUNT(*) AS l")
    assert "so n and s are at least what they say, l is at most what it says, m may be off to either side;" in mixed


def test_no_end_is_shown_that_noise_hides(visits: dict[str, Any]) -> None:
    """Of a ratio over next to nothing neither end is known: at least minus infinity is no news."""
    few = {name: column[:2] for name, column in visits["visits"].items()}
    made = plan("SELECT COUNT(*) / SUM(cost) AS r FROM visits", limits=Limits(rows=3))
    for seed in range(8):
        answer = answered(made, {"visits": few}, Noise(SeededBits(seed)))
        assert answer.interval("r") == [(-np.inf, np.inf)]
        assert texts_of(answer.cells("r")[0])[1] == " noise ± ∞ ?" and "inf" not in str(answer)


def test_the_end_on_the_screen_is_the_one_in_the_file(visits: dict[str, Any]) -> None:
    """Also where noise is not the same on both sides: among groups that are shown for their number of units."""
    text = "SELECT item, COUNT(DISTINCT patient) AS p FROM visits GROUP BY item"
    rows = {**visits["visits"], "item": visits["visits"]["item"] % 40}
    answer = answered(plan(text, limits=Limits(rows=3, keys=2)), {"visits": rows}, Noise(SeededBits(3)))
    assert len(answer)
    for cell, low in zip(answer.cells("p"), answer.table()["p_low"], strict=True):
        assert cell.above and not cell.below and cell.value - cell.width == pytest.approx(low)


def test_losses_are_told_in_plain_words(visits: dict[str, Any]) -> None:
    columns = {**SCHEMA.table("visits").columns, "cost": real(0, 100, nulls=0, decimals=2)}
    schema = Schema({"visits": Table(columns, unit="patient")})
    made = sql("SELECT SUM(cost * 1.19) AS s FROM visits", schema, unit=Unit("user:patient"), epsilon=1, delta=1e-6)
    notes = answered(made, visits, Noise(SeededBits(1))).notes
    assert any("from sum of visits.cost * 1.19: the number was raised" in note for note in notes)


WAGES = Schema({"t": Table({"person": key(), "wage": real(0, 50_000, nulls=0), "gain": real(-1000, 1000, nulls=0)},
                           unit="person")})  # fmt: skip
DEAREST = "(SELECT person, MAX(wage) AS w, MIN(gain) AS g FROM t GROUP BY person)"


@pytest.fixture(scope="module")
def wages() -> dict[str, Any]:
    """One row each, far below their bounds."""
    draw = np.random.default_rng(4)
    gain = draw.standard_t(3, 20_000).clip(-1000, 1000)
    return {"t": {"person": np.arange(20_000), "wage": draw.lognormal(4, 1, 20_000).clip(0, 50_000), "gain": gain}}


def of_wages(columns: str, **options: Any) -> Sql:
    fields: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, **options}
    return sql(f"SELECT {columns} FROM {DEAREST}", WAGES, unit=Unit("user:person"), **fields)


def test_of_single_rows_no_count_pays_for_a_sum(wages: dict[str, Any]) -> None:
    """The adviser's limit for the sum is far below what a row may hold, and everybody counts nevertheless."""
    made, total = of_wages("COUNT(*) AS n, SUM(w) AS s"), wages["t"]["wage"].sum()
    hits = []
    for seed in range(tries(8, of=12)):
        answer = answered(made, wages, Noise(SeededBits(seed)))
        hits += [low <= true <= high for name, true in (("n", 20_000), ("s", total))
                 for low, high in answer.interval(name)]  # fmt: skip
        assert abs(answer["n"][0] - 20_000) < 60 and abs(answer["s"][0] / total - 1) < 0.1
    assert np.mean(hits) >= 0.85


def test_averages_of_single_rows_have_no_weights(wages: dict[str, Any]) -> None:
    """Around the middle of their bounds; what the limit cuts is measured, and is on both sides."""
    made, mean = of_wages("AVG(g) AS m"), wages["t"]["gain"].mean()
    hits, widths = [], []
    for seed in range(tries(8, of=16)):
        answer = answered(made, wages, Noise(SeededBits(seed)))
        low, high = answer.interval("m")[0]
        hits.append(low <= mean <= high)
        widths.append(high - low)
        assert "each person counts once, for at most" in answer.notes[0]
    assert np.mean(hits) >= 0.85 and np.median(widths) < 0.2


def test_single_rows_with_a_limit_of_one_are_not_cut(wages: dict[str, Any]) -> None:
    answer = answered(of_wages("COUNT(*) AS n, AVG(w) AS m", limits=Limits(rows=1)), wages)
    assert all(np.isfinite(end) for name in ("n", "m") for end in answer.interval(name)[0])
    assert answer["n"] == [20_000] and answer["m"][0] == pytest.approx(wages["t"]["wage"].mean(), rel=1e-6)
    assert answer.notes[0] == "each person counts once"
    cut = answered(of_wages("COUNT(*) AS n, SUM(w) AS s", limits=Limits(rows=1, reach={"s": 60})), wages)
    assert cut["n"] == [20_000] and np.isfinite(cut.interval("n")[0][1])  # the sum is at least that, not the count
    assert cut["s"][0] == pytest.approx(np.minimum(wages["t"]["wage"], 60).sum(), rel=1e-4)
    assert cut.interval("s")[0][1] == np.inf


def test_what_earlier_versions_measured_of_single_rows_reads_as_it_did(wages: dict[str, Any]) -> None:
    """They weighted such rows, and did not say so: `unweighted` is what tells."""
    made = of_wages("AVG(g) AS m")
    raw = raw_of(made, wages)
    assert raw["limits"]["unweighted"]
    name = next(each for each in raw["limits"]["reaches"] if each.startswith("sum of"))
    raw["limits"]["cuts"][name] = {"loss": 900.0, "doubt": 300.0, "signed": 200.0, "noise": 100.0}
    old = {**raw, "limits": {part: each for part, each in raw["limits"].items() if part != "unweighted"}}
    assert made.finish(old)["m"][0] < made.finish(raw)["m"][0]
    assert made.finish(old)["m"][0] == pytest.approx(raw["numbers"][name][0] / 20_000, rel=1e-6)
