"""Times of other zones are what the zone's clocks show, by the tables of tzdata, whatever moment it is."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from importlib import resources
from zoneinfo import ZoneInfo

import pytest

from sfumato import Schema, Unit, schema, sql
from sfumato.query.expressions.functions import zones
from sfumato.query.plan import Sql
from tests.query.still import answered

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca")
OTHERS = ("America/New_York", "Australia/Lord_Howe", "Africa/Casablanca")
draw = random.Random(3)
SECONDS = 6 * 365 * 86_400
MOMENTS = [datetime.datetime(2019, 12, 31) + datetime.timedelta(seconds=draw.randrange(SECONDS)) for _ in range(3000)]
MOMENTS += [
    datetime.datetime(2024, 3, 31, 0, 59, 59),
    datetime.datetime(2024, 3, 31, 1),
    datetime.datetime(2024, 10, 27, 1),
]


def clocks(zone: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


@pytest.mark.parametrize("zone", ZONES)
def test_changes_are_those_of_the_zone(zone: str) -> None:
    table = zones._changes(zone.lower())
    assert table is not None
    for moment, _ in table:
        for near in (moment, moment + datetime.timedelta(days=2)):
            if near < zones.LAST and near.year > 1900:
                held = [ahead for start, ahead in table if start <= near][-1]
                assert near.replace(tzinfo=datetime.UTC).astimezone(clocks(zone)).utcoffset() == held
    for _ in range(500):
        moment = zones.FIRST + datetime.timedelta(seconds=draw.randrange(200 * 365 * 86_400))
        offset = [ahead for start, ahead in table if start <= moment][-1]
        assert moment.replace(tzinfo=datetime.UTC).astimezone(clocks(zone)).utcoffset() == offset


@pytest.mark.parametrize(
    ("zone", "low", "high"),
    [
        *((zone, "2020-01-01", "2025-06-30") for zone in ZONES),
        ("Asia/Kolkata", "1900-01-01", "2100-01-01"),
        ("Europe/Berlin", "1900-01-01", "2100-01-01"),
        *(pytest.param(zone, "1900-01-01", "2100-01-01", marks=pytest.mark.slow) for zone in OTHERS),
    ],
)
def test_hours_and_days_are_those_of_clocks_there(zone: str, low: str, high: str) -> None:
    data = Schema.of({"user": schema.key(), "t": schema.moment(low, high)}, unit="user")
    inside = [moment for moment in MOMENTS if low <= str(moment.date()) < high]
    cells = {"data": {"user": range(len(inside)), "t": inside}}
    for written, part in (
        ("t AT TIME ZONE 'UTC' AT TIME ZONE '{}'", "hour"), ("CAST(t AS TIMESTAMPTZ) AT TIME ZONE '{}'", "minute"),
    ):  # fmt: skip
        there = written.format(zone.lower())
        text = f"SELECT EXTRACT({part} FROM {there}) AS part, COUNT(*) AS n FROM data GROUP BY part"
        answer = answered(sql(text, data, unit=Unit("user:user"), epsilon=1, limits={"rows": 1}), cells)
        truth = Counter(
            getattr(moment.replace(tzinfo=datetime.UTC).astimezone(clocks(zone)), part) for moment in inside
        )
        assert dict(zip(answer["part"], answer["n"], strict=True)) == {key: truth[key] for key in answer["part"]}


def test_bounds_move_with_the_clocks_and_leave_changes_out() -> None:
    data = Schema.of({"user": schema.key(), "t": schema.moment("2024-01-01", "2024-02-01")}, unit="user")
    text = "SELECT AVG(EXTRACT(YEAR FROM t AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')) AS y FROM data"
    plan = sql(text, data, unit=Unit("user:user"), epsilon=1, limits={"rows": 1})
    cells = {"data": {"user": [1, 2], "t": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 6)]}}
    assert answered(plan, cells)["y"][0] == pytest.approx(2023.5)
    before, shift, _ = "".join(plan.statements().values()).partition("INTERVAL '-18000' SECOND")
    assert shift and "< CAST('" not in before and "CASE" not in plan.text  # the question names the zone alone


def test_a_text_with_its_distance_from_utc_is_a_moment() -> None:
    times = Schema.of(at=schema.moment("2020-01-01", "2030-01-01"))
    for text in ("2024-01-31 12:00:00+01", "2024-01-31T16:30:00+05:30", "2024-01-31 11:00:00Z"):
        query = f"SELECT COUNT(*) AS n FROM data WHERE at < TIMESTAMPTZ '{text}'"
        plan = sql(query, times, unit=Unit(), epsilon=1, limits={"rows": 1})
        assert isinstance(plan, Sql) and "2024-01-31 11:00:00" in str(plan.statements())
