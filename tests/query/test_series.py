"""Series: blocks of time, what they cost, what one unit can move, and what is refused."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import events, record
from sfumato.accounting import approximate, pure, zcdp
from sfumato.errors import ArgumentError, PlanError, SfumatoError
from sfumato.query import SqlSeries
from sfumato.query.dated.time_blocks import LEVELS as ALL_LEVELS
from sfumato.query.dated.time_blocks import begins, blocks_within, follows, in_order
from sfumato.schema import Schema, Table, category, date, key, moment
from sfumato.units import Unit
from tests.query.series_kit import FIRST, LEVELS, QUERY, SCHEMA, UNIT, Rows, day, exactly, moved, random_rows, series_of


def test_blocks_tile_the_days_and_are_told_in_the_order_in_which_they_are_over() -> None:
    start = dt.date(2026, 1, 14)
    for level in ALL_LEVELS:
        blocks = blocks_within(start, 800, level)
        assert all(one.after == two.first for one, two in pairwise(blocks))
        assert blocks[0].first >= start and blocks[-1].after <= start + dt.timedelta(days=800)
        for block in blocks:
            days = (block.first + dt.timedelta(days=n) for n in range((block.after - block.first).days))
            assert {begins(each, level) for each in days} == {block.first} and follows(
                block.first, level
            ) == block.after
    mixed = in_order([block for level in ALL_LEVELS for block in blocks_within(start, 800, level)])
    assert [block.after for block in mixed] == sorted(block.after for block in mixed)
    assert [block.name for block in mixed if block.after == dt.date(2026, 3, 1)] == [
        "day 2026-02-28", "month 2026-02-01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1, "delta": 1e-6}, {"rho": Fraction(1, 50)}, {"epsilon": 1, "delta": 0}]
)
def test_all_blocks_together_cost_what_was_given(budget: dict[str, Any]) -> None:
    plan = series_of(**{"epsilon": None, "delta": None, **budget})
    parts = {level: next(part for name, part in plan.parts.items() if name.startswith(level)) for level in LEVELS}
    assert plan.event == events.Sequence((events.Repeat(parts["day"].event, 3), events.Repeat(parts["week"].event, 2)))
    if "rho" in budget:
        assert Fraction(99, 100) * budget["rho"] < zcdp.rho(plan.event) <= budget["rho"]
        assert 2 * zcdp.rho(plan.parts["week 2026-01-05"].event) == pytest.approx(float(budget["rho"]) / 3, rel=1e-9)
    elif budget["delta"]:
        assert Fraction(99, 100) < approximate.epsilon(plan.event, plan.delta) <= 1
    else:  # three days at 2/3, and two weeks at 1/3
        assert pure.epsilon(plan.event) == 1
        assert pure.epsilon(parts["day"].event) == Fraction(2, 9) and pure.epsilon(parts["week"].event) == Fraction(
            1, 6
        )


def test_a_unit_of_few_days_loses_less_and_that_is_quoted() -> None:
    plan = series_of(levels={"day": {"most": 9}}, delta=0, limits={"rows": 2})
    assert [pure.epsilon(plan.event_of(days)) for days in (1, 3, 9, 21)] == [
        Fraction(1, 9), Fraction(1, 3), Fraction(1), Fraction(1),
    ]  # fmt: skip
    ledger = sf.MemoryLedger({"clicks": sf.Budget(epsilon=2)})
    columns: dict[str, Any] = {"reader": [], "ad": [], "cost": [], "day": []}
    private = sf.Private("clicks", columns, unit=UNIT, schema=SCHEMA)
    words = str(sf.Curator(private, ledger).quote(plan))
    assert "price     epsilon = 1" in words and "1 day     epsilon = 0.111111, for a reader" in words
    assert "7 days    epsilon = 0.777778" in words


def _histories(rng: np.random.Generator, late: float) -> tuple[list[Rows], str]:
    """A table as it stands after each day of a series, with rows that come late, and a reader who is on many days."""
    rows = random_rows(rng, 60)
    rows += [("r0", *row[1:]) for row in random_rows(rng, 40)]
    arrives = [
        max((dt.date.fromisoformat(row[3]) - FIRST).days, 0) + int(rng.integers(6) * (rng.random() < late))
        for row in rows
    ]
    return [[row for row, at in zip(rows, arrives, strict=True) if at <= now] for now in range(28)], "r0"


@pytest.mark.parametrize("late", [0.0, 0.4, 0.9])
def test_one_unit_moves_no_more_blocks_than_it_may_on_a_table_that_grows(late: float) -> None:
    """Every block is released once, in order, on the table as it stands then; rows of closed blocks still come."""
    histories, whose = _histories(np.random.default_rng(7), late)
    plan = series_of(
        days=14, levels={**LEVELS, "day": {**LEVELS["day"], "most": 3}, "week": {**LEVELS["week"], "most": 1}}
    )
    shares: dict[str, list[float]] = {"day": [], "week": []}
    for name, part in plan.parts.items():
        block = plan.blocks[name]
        rows = histories[(block.after - FIRST).days]
        share = moved(part, rows, [row for row in rows if row[0] != whose])
        shares[block.level].append(share)
    for level, most in (("day", 3), ("week", 1)):
        assert max(shares[level]) <= 1 + 1e-9
        counted = sum(share > 0 for share in shares[level])
        assert counted <= most and (late or counted == most), "the reader is on more days than count"


def test_rows_of_a_block_count_and_no_others() -> None:
    plan = series_of(levels={"day": {"limits": {"rows": 50}}, "week": {"limits": {"rows": 99}}})
    rows = random_rows(np.random.default_rng(5), 40, readers=40)
    for name in ("day 2026-01-08", "week 2026-01-12"):
        block = plan.blocks[name]
        inside = [row for row in rows if block.first.isoformat() <= row[3] < block.after.isoformat()]
        raw = exactly(plan.parts[name], rows)
        told = dict(zip(raw["keys"]["ad"], raw["numbers"]["rows"], strict=True))
        assert told == {ad: sum(row[1] == ad for row in inside) for ad in told}


def test_the_first_blocks_of_a_unit_count_whatever_comes_later() -> None:
    plan = series_of(levels={"day": {"most": 2, "limits": {"rows": 5}}})
    rows: Rows = [("r1", "north", 1.0, day(number).isoformat()) for number in (0, 2, 5, 6)]
    counted = [sum(exactly(part, rows)["numbers"]["rows"]) for part in plan.parts.values()]
    assert counted == [1, 0, 1] + [0] * 18
    before = [("r1", "north", 1.0, day(-3).isoformat())]
    assert [sum(exactly(part, rows + before)["numbers"]["rows"]) for part in plan.parts.values()] == counted


def test_moments_are_cut_at_midnight_and_rows_as_units_are_in_one_block() -> None:
    table = Table({"ad": category(["a"]), "at": moment("2026-01-01", "2026-02-01")})
    plan = sf.series(
        "SELECT ad, COUNT(*) AS n FROM data GROUP BY ad", Schema({"data": table}), unit=Unit(), column="at",
        start="2026-01-01", days=31, levels=("day", "week"), epsilon=1,
    )  # fmt: skip
    assert dict(plan.most) == {"day": 1, "week": 1} and plan.counted("day") is None
    assert pure.epsilon(plan.event) == 1
    assert "TIMESTAMP '2026-01-02 00:00:00'" in plan.parts["day 2026-01-01"].text


def test_a_series_survives_its_record_and_its_parts_are_those_of_its_fields() -> None:
    plan = series_of()
    again = record.parse(record.canonical(plan))
    assert again == plan and again.hash == plan.hash and list(again.parts) == list(plan.parts)
    assert {name: part.hash for name, part in again.parts.items()} == dict(plan.hashes or {})
    assert all(part == type(part)(**_fields(part)) for part in list(plan.parts.values())[:3])
    for changed in (
        {"start": "2026-01-06"}, {"days": 20}, {"most": {"day": 4, "week": 2}}, {"column": "cost"},
        {"hashes": {"day 2026-01-05": "0"}}, {"query": QUERY + " LIMIT 3"}, {"most": {"day": 3}},
    ):  # fmt: skip
        with pytest.raises(SfumatoError):
            SqlSeries(**{**_fields(plan), "hashes": None, **changed})


def _fields(plan: Any) -> dict[str, Any]:
    return {each.name: getattr(plan, each.name) for each in fields(plan) if each.init}


def test_bounds_that_follow_from_the_dates_are_those_of_each_block() -> None:
    """Noise may differ from block to block where the query speaks of the dates: each part is checked by itself."""
    query = "SELECT ad, SUM(DATE_DIFF('day', DATE '2026-01-05', day)) AS age FROM clicks GROUP BY ad"
    plan = series_of(query, levels={"day": {"limits": {"rows": 2}}})
    widths = [next(iter(part.fixed.spreads.values()))[0].std for part in plan.parts.values() if part.fixed]
    assert widths[-1] > 3 * widths[1]
    raws = {name: {"groups": 3, "keys": {"ad": list("abc")}, "numbers": {}} for name in plan.parts}
    for name, part in plan.parts.items():
        assert part.fixed is not None
        raws[name]["numbers"] = {each: [0.0] * 3 for each in part.fixed.spreads}
    low = [row["age_low"] for row in plan.read(raws).by_level("day").rows[::3]]
    assert low[-1] < 3 * low[1] < 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"query": "SELECT ad, AVG(cost) FROM clicks GROUP BY ad"}, "does not add up"),
        ({"query": "SELECT COUNT(DISTINCT reader) FROM clicks"}, "does not add up"),
        ({"query": "SELECT ad, COUNT(*) / 2 FROM clicks GROUP BY ad"}, "does not add up"),
        ({"query": "SELECT COUNT(*) FROM clicks HAVING COUNT(*) > 3"}, "HAVING"),
        ({"query": "SELECT ad, COUNT(*) AS n FROM clicks GROUP BY ad ORDER BY n LIMIT 1"}, "ORDER"),
        ({"query": "SELECT ad, COUNT(*) FROM clicks GROUP BY ad", "keys": {"ad": "select"}}, "is private"),
        ({"limits": None, "levels": ("day",)}, "limits that are known beforehand"),
        ({"column": "cost"}, "made of days"),
        ({"column": "when"}, "when"),
        ({"query": "SELECT COUNT(*) FROM other"}, "other"),
        ({"start": "soon"}, "start"),
        ({"days": 2000}, "days"),
        ({"days": 5, "levels": {"week": None}, "limits": {"rows": 1}}, "no whole week"),
        ({"levels": {"fortnight": None}}, "level"),
        ({"levels": {"day": {"rows": 3}}}, "options of day"),
        ({"levels": ("day", "week"), "limits": {"rows": 3}}, "each level limits of its own"),
        ({"epsilon": None}, "how much"),
        ({"unit": Unit("user:reader", "replace")}, "present or absent"),
        ({"unit": Unit("user:reader", group=2)}, "present or absent"),
    ],
)
def test_what_a_series_refuses(changed: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, PlanError), match=words):
        series_of(**changed)


def test_a_view_a_second_private_table_and_a_name_of_the_query_are_refused() -> None:
    tables = {
        "clicks": SCHEMA.tables["clicks"],
        "buys": Table({"reader": key(), "day": date("2026-01-01", "2026-12-31")}, unit="reader"),
    }
    options: dict[str, Any] = {
        "unit": UNIT, "column": "day", "start": FIRST, "days": 7, "epsilon": 1, "limits": {"rows": 1},
    }  # fmt: skip
    for query, words in (
        ("SELECT COUNT(*) FROM clicks JOIN buys ON clicks.reader = buys.reader", "one private table"),
        ("WITH clicks AS (SELECT 1 AS x) SELECT COUNT(*) FROM clicks", "another name"),
        ("-- sfumato: epsilon=3\nSELECT COUNT(*) FROM clicks", "comment"),
    ):
        with pytest.raises((ArgumentError, PlanError), match=words):
            sf.series(query, Schema(tables), **options)
