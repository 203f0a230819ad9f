"""Options that stand in a comment of the query."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import Unit, sql
from sfumato.errors import ArgumentError
from sfumato.query import Limits
from sfumato.query.comments import options_in
from sfumato.schema import Schema, Table, category, key, real

SCHEMA = Schema(
    {"visits": Table({"patient": key(), "ward": category(["A", "B"]), "days": real(0, 30)}, unit="patient")}
)
QUERY = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("epsilon=1, delta=1e-6", {"epsilon": 1, "delta": 1e-6}),
        ("rho=0.5", {"rho": 0.5}),
        ("rows=10, keys=3, most_keys=9, values=2", {"limits": {"rows": 10, "keys": 3, "most_keys": 9, "values": 2}}),
        ("reach.s=20.5", {"limits": {"reach": {"s": 20.5}}}),
        ("bounds.days=0..30", {"bounds": {"days": (0, 30)}}),
        ("bounds.days=-1.5..3e2", {"bounds": {"days": (-1.5, 300.0)}}),
        ("keys.ward=A|B | C", {"keys": {"ward": ["A", "B", "C"]}}),
        ("keys.ward='A'|12|-3", {"keys": {"ward": ["A", 12, -3]}}),
        ("keys.ward=select", {"keys": {"ward": "select"}}),
        ("accuracy.n=5, group_rows=100", {"accuracy": {"n": 5}, "group_rows": 100}),
        ("rank.m=20, accuracy.n=5", {"accuracy": {"m": {"rank": 20}, "n": 5}}),
        ("shares.rows=3, advice=0.2", {"shares": {"rows": 3}, "advice": 0.2}),
        ("floor=True", {"floor": True}),
        ("FLOOR=false, Epsilon=2", {"floor": False, "epsilon": 2}),
    ],
)
def test_options_are_read(written: str, options: dict[str, Any]) -> None:
    assert options_in(f"-- sfumato: {written}\n{QUERY}") == options
    assert options_in(f"{QUERY} /* sfumato: {written} */") == options


def test_unclip_can_be_written_too() -> None:
    assert options_in(f"-- sfumato: unclip=true\n{QUERY}") == {"unclip": True}


def test_several_comments_add_up_and_others_are_nobodys_business() -> None:
    text = f"-- sfumato: epsilon=1\n-- what wards do\n{QUERY} -- sfumato: rows=4\n-- about sfumato: no option"
    assert options_in(text) == {"epsilon": 1, "limits": {"rows": 4}}
    assert options_in("SELECT 'sfumato: epsilon=9' FROM visits") == {}
    assert options_in("SELECT ' -- sfumato: epsilon=9' FROM visits") == {}
    assert options_in("SELECT 'sfumato:") == {}


@pytest.mark.parametrize(
    "written",
    ["epsilon", "epsilon=", "=1", "epsilon=much", "colour=red", "bounds.days=3", "bounds=0..3", "floor=perhaps"],
)
def test_unknown_options_are_refused_by_name(written: str) -> None:
    with pytest.raises(ArgumentError, match="in a comment of the query is not known") as refusal:
        options_in(f"-- sfumato: {written}\n{QUERY}")
    assert written in str(refusal.value)


def test_twice_is_once_too_often() -> None:
    with pytest.raises(ArgumentError, match="the option epsilon stands twice"):
        options_in(f"-- sfumato: epsilon=1, epsilon=2\n{QUERY}")
    with pytest.raises(ArgumentError, match="epsilon is given twice: as an argument, and in a comment"):
        sql(f"-- sfumato: epsilon=1\n{QUERY}", SCHEMA, unit=Unit("user:patient"), epsilon=1)
    with pytest.raises(ArgumentError, match="limits is given twice"):
        sql(f"-- sfumato: rows=1\n{QUERY}", SCHEMA, unit=Unit("user:patient"), epsilon=1, limits=Limits(rows=2))


def test_a_comment_makes_the_same_plan_as_arguments() -> None:
    unit = Unit("user:patient")
    commented = sql(
        f"{QUERY} -- sfumato: epsilon=0.5, delta=1e-7, rows=3, keys=2, reach.s=40, bounds.days=0..20, keys.ward=B",
        SCHEMA,
        unit=unit,
    )
    argued = sql(
        QUERY, SCHEMA, unit=unit, epsilon=0.5, delta=1e-7, bounds={"days": (0, 20)}, keys={"ward": ["B"]},
        limits=Limits(rows=3, keys=2, reach={"s": 40}),
    )  # fmt: skip
    assert commented.event == argued.event
    assert commented.fixed is not None and argued.fixed is not None
    assert commented.fixed.spreads == argued.fixed.spreads
    assert commented.front.keys[0].values == argued.front.keys[0].values == ("B",)


def test_parts_may_come_from_both() -> None:
    made = sql(f"{QUERY} -- sfumato: rows=3", SCHEMA, unit=Unit("user:patient"), epsilon=1, limits={"keys": 2})
    assert made.limits == Limits(rows=3, keys=2)
