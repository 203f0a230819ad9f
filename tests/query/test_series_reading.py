"""What is read of a series: windows, roll-ups, orders, what is hidden, and whether the intervals hold."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import ArgumentError
from sfumato.laws import RoundedGaussian
from sfumato.query import SqlSeries
from sfumato.query.dated.series_reading import SeriesReading
from sfumato.query.released.mixtures import summed_half_width
from tests.query.series_kit import ADS, FIRST, LEVELS, SCHEMA, UNIT, day, random_rows, series_of

WIDE: dict[str, Any] = {
    "day": {"limits": {"rows": 400}}, "week": {"limits": {"rows": 900}}, "month": {"limits": {"rows": 2000}},
}  # fmt: skip
COUNTS = "SELECT ad, COUNT(*) AS clicks FROM clicks GROUP BY ad"


def made_up(plan: SqlSeries, truth: Any, rng: Any, *, without: tuple[str, ...] = (), last: int = 10**6) -> Any:
    """What the blocks release where each day and ad holds so many rows: noise of the parts' own laws."""
    raws: dict[str, Any] = {}
    for name, block in plan.blocks.items():
        if name in without or (block.after - FIRST).days > last:
            continue
        part = plan.firsts[block.level]
        assert part.fixed is not None
        inside = truth[max((block.first - FIRST).days, 0) : (block.after - FIRST).days].sum(axis=0)
        (law, step) = part.fixed.spreads["rows"]
        size = law.std * step
        normal = isinstance(law, RoundedGaussian)
        noise = rng.normal(0, size, len(ADS)) if normal else rng.laplace(0, size / math.sqrt(2), len(ADS))
        raws[name] = {"groups": 3, "keys": {"ad": list(ADS)}, "numbers": {"rows": (inside + noise).tolist()}}
    return raws


def month_plan(**changed: Any) -> SqlSeries:
    return series_of(COUNTS, **{"days": 56, "levels": WIDE, "epsilon": 10, **changed})


def test_totals_are_the_sums_of_their_parts_however_they_are_cut() -> None:
    plan, rng = month_plan(), np.random.default_rng(1)
    reading = plan.read(made_up(plan, rng.integers(0, 900, (56, 3)), rng))
    by_day = np.array(reading.by_level("day").raw("clicks")).reshape(56, 3)
    by_week = np.array(reading.by_level("week").raw("clicks")).reshape(8, 3)
    assert np.allclose(by_day.reshape(8, 7, 3).sum(axis=1), by_week, atol=1e-6)
    running = np.array(reading.running(by=()).raw("clicks"))
    assert np.allclose(running, by_day.sum(axis=1).cumsum(), atol=1e-6)
    rolling = np.array(reading.rolling(7, by=()).raw("clicks"))
    assert np.allclose(rolling[::7], by_week.sum(axis=1), atol=1e-6)
    whole = reading.window(FIRST, day(55))
    assert np.allclose(np.array(whole.raw("clicks")), by_day.sum(axis=0), atol=1e-6)
    assert whole.rows[0]["first_day"] == FIRST and whole.rows[0]["last_day"] == day(55)


def test_windows_are_the_least_squares_of_all_blocks() -> None:
    """By hand: the normal equations of the measurements, weighted by their noise."""
    plan, rng = month_plan(), np.random.default_rng(2)
    raws = made_up(plan, rng.integers(0, 900, (56, 3)), rng)
    rows, wanted, scale = [], [], []
    for name, raw in raws.items():
        block, part = plan.blocks[name], plan.firsts[plan.blocks[name].level]
        assert part.fixed is not None
        law, step = part.fixed.spreads["rows"]
        rows.append([block.first <= day(n) < block.after for n in range(56)])
        wanted.append(raw["numbers"]["rows"])
        scale.append(law.std * step)
    matrix, weight = np.array(rows, dtype=float), 1 / np.array(scale)
    days = np.linalg.lstsq(matrix * weight[:, None], np.array(wanted) * weight[:, None], rcond=None)[0]
    reading = plan.read(raws)
    for first, last in ((0, 55), (3, 19), (26, 26), (7, 13)):
        told = np.array(reading.window(day(first), day(last)).raw("clicks"))
        assert np.allclose(told, days[first : last + 1].sum(axis=0), atol=1e-5)
    widths = np.diff([each for each in reading.window(day(0), day(55)).interval("clicks") if each], axis=1)
    alone = plan.read({name: raw for name, raw in raws.items() if name.startswith("day")})
    assert (widths < np.diff([each for each in alone.window(day(0), day(55)).interval("clicks") if each], axis=1)).all()


def test_days_alone_are_added_up_and_what_was_not_released_is_not_told() -> None:
    plan, rng = month_plan(), np.random.default_rng(3)
    raws = made_up(plan, rng.integers(0, 900, (56, 3)), rng, without=("day 2026-01-07", "day 2026-02-10"), last=40)
    days = {name: raw for name, raw in raws.items() if name.startswith("day")}
    alone = plan.read(days)
    told = np.array(alone.window(day(10), day(20)).raw("clicks"))
    own = [days[f"day {day(n)}"]["numbers"]["rows"] for n in range(10, 21)]
    assert np.allclose(told, np.sum(own, axis=0), atol=1e-6)
    assert alone.window(day(0), day(6)).raw("clicks") == [None] * 3
    assert "cannot be told" in alone.window(day(0), day(6)).notes[1]
    both = plan.read(raws)  # the week knows what the failed day, with the others, comes to
    assert None not in both.window(day(0), day(6)).raw("clicks") + both.window(day(2), day(2)).raw("clicks")
    assert both.window(day(36), day(36)).raw("clicks") == [None] * 3
    assert both.window(day(39), day(45)).raw("clicks") == [None] * 3, "not over yet"
    assert both.window(day(-9), day(3)).raw("clicks") == [None] * 3, "before the series began"
    with pytest.raises(ArgumentError, match="nothing to read"):
        plan.read({})
    with pytest.raises(ArgumentError, match="block"):
        plan.read({"day 1999-01-01": {}})


def test_small_numbers_are_hidden_none_is_below_0_and_the_raw_ones_stand_beside() -> None:
    plan = series_of(COUNTS, levels={"day": {"limits": {"rows": 2}}})
    raw = {"groups": 3, "keys": {"ad": list(ADS)}, "numbers": {"rows": [1e6, 3.0, -40.0]}}
    reading = plan.read({f"day {FIRST}": raw})
    one = reading.by_level("day")
    assert one.shown("clicks") == [1e6, None, None] and one.raw("clicks") == pytest.approx([1e6, 3.0, -40.0])
    assert reading.by_level("day", least=2).shown("clicks") == pytest.approx([1e6, 3.0, None])
    assert reading.by_level("day", least=-1e9).shown("clicks") == pytest.approx([1e6, 3.0, 0.0])
    table = list(csv.DictReader(io.StringIO(one.to_csv() or "")))
    assert table[1]["clicks"] == "" and float(table[1]["clicks_raw"]) == pytest.approx(3)
    assert one.to_pandas().shape == (3, 7) and one.to_arrow().num_rows == 3
    assert [row["ad"] for row in one.top(2, "clicks").rows] == ["north", "south"]
    signed = series_of("SELECT ad, SUM(cost) AS paid FROM clicks GROUP BY ad", levels={"day": {"limits": {"rows": 2}}})
    (name,) = {name for part in signed.firsts.values() if part.fixed for name in part.fixed.spreads}
    numbers = {name: [-1e6, 1e6, 1.0]}
    owed = signed.read({f"day {FIRST}": {"groups": 3, "keys": {"ad": list(ADS)}, "numbers": numbers}}).by_level("day")
    assert owed.shown("paid") == pytest.approx([-1e6, 1e6, None]), "what may be below 0 is not raised"


def test_roll_ups_and_groups_that_only_some_blocks_list() -> None:
    plan = series_of(COUNTS, levels={"day": {"limits": {"rows": 2}}})
    raws = {
        f"day {day(0)}": {"groups": 2, "keys": {"ad": ["north", "south"]}, "numbers": {"rows": [10.0, 20.0]}},
        f"day {day(1)}": {
            "groups": 3,
            "keys": {"ad": ["west", "south", "north"]},
            "numbers": {"rows": [1.0, 2.0, 3.0]},
        },
    }
    reading = plan.read(raws)
    told = reading.window(day(0), day(1))
    assert dict(zip((row["ad"] for row in told.rows), told.raw("clicks"), strict=True)) == pytest.approx(
        {"south": 22.0, "north": 13.0}
    )
    assert "1 group(s)" in told.notes[-1]
    assert reading.window(day(0), day(1), by=()).raw("clicks") == pytest.approx([35.0])
    with pytest.raises(ArgumentError, match="by"):
        reading.window(day(0), day(1), by=["country"])
    with pytest.raises(ArgumentError, match="last"):
        reading.window(day(1), day(0))


def test_the_width_of_a_sum_is_the_exact_law_for_gaussians_and_grows_with_copies() -> None:
    plan = month_plan()
    law, step = plan.firsts["day"].fixed.spreads["rows"]  # type: ignore[union-attr]
    one, four = summed_half_width([[(law, step)]] * 9, np.ones((1, 9)), np.array([1.0, 4.0]), 0.05)[0]
    assert one == pytest.approx(1.959964 * 3 * law.std * step, rel=1e-3) and four == pytest.approx(2 * one, rel=1e-3)


def test_asking_a_thousand_times_draws_nothing_and_charges_nothing() -> None:
    """The averaging attack: the same window, overlapping ones, and the parts themselves again and again."""
    rows = random_rows(np.random.default_rng(4), 300)
    cells = dict(zip(("reader", "ad", "cost", "day"), map(list, zip(*rows, strict=True)), strict=True))
    ledger = sf.MemoryLedger({"clicks": sf.Budget(epsilon=2, delta=1e-5)})
    private = sf.Private("clicks", cells, unit=UNIT, schema=SCHEMA, version="stream")
    curator = sf.Curator(private, ledger)
    plan = series_of(days=7, levels={"day": LEVELS["day"]})
    curator.prepay(plan, key="clicks")
    used = ledger.used("clicks")
    raws = {name: curator.release(part, key=name).raw for name, part in plan.parts.items()}
    assert ledger.used("clicks") == used
    before = ledger.overview().number
    reading = plan.read(raws)
    windows = {tuple(reading.window(day(1), day(4)).raw("clicks")) for _ in range(200)}
    assert len(windows) == 1
    for number in range(1000):
        name, part = list(plan.parts.items())[number % 7]
        assert curator.release(part).raw == raws[name]
    for first in range(4):
        for last in range(4, 7):
            own = np.sum([raws[f"day {day(n)}"]["numbers"]["rows"] for n in range(first, last + 1)], axis=0)
            assert np.allclose(reading.window(day(first), day(last)).raw("clicks"), own, atol=1e-6)
    assert ledger.overview().number == before and ledger.used("clicks") == used
    ledger.verify()


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-6, 0])
def test_intervals_of_any_window_hold_the_truth_as_often_as_they_say(delta: float) -> None:
    plan, rng = month_plan(delta=delta), np.random.default_rng(5)
    truth = rng.integers(0, 900, (56, 3))
    inside = {0.05: 0, 0.5: 0}
    runs, asked = 400, ((0, 55), (5, 5), (3, 20), (30, 51), (12, 14))
    many = runs * len(asked) * 4
    for _ in range(runs):
        reading = plan.read(made_up(plan, truth, rng))
        for first, last in asked:
            exact = truth[first : last + 1].sum(axis=0)
            for alpha in inside:
                ends = reading.window(day(first), day(last), alpha=alpha).interval("clicks")
                ends += reading.window(day(first), day(last), alpha=alpha, by=()).interval("clicks")
                for each, number in zip(ends, [*exact, exact.sum()], strict=True):
                    assert each is not None
                    inside[alpha] += each[0] <= number <= each[1]
    deviation = 6 / math.sqrt(runs)  # answers of one run are alike
    assert inside[0.05] / many > 0.95 - 0.22 * deviation and inside[0.5] / many > 0.5 - 0.5 * deviation
    if delta:  # exact for Gaussian noise, a bound for Laplace noise
        assert inside[0.05] / many < 0.95 + 0.22 * deviation and inside[0.5] / many < 0.5 + 0.5 * deviation


def test_dates_are_given_as_dates_or_as_texts() -> None:
    plan, rng = month_plan(), np.random.default_rng(6)
    reading = plan.read(made_up(plan, np.full((56, 3), 50), rng))
    assert isinstance(reading, SeriesReading)
    assert reading.window("2026-01-05", dt.date(2026, 1, 6)).rows == reading.window(day(0), day(1)).rows
