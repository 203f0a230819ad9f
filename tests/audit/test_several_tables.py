"""Audits of queries over several tables: whoever changes in one table changes in all, and everybody else stays."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import schema
from sfumato.audit.engines import read_table
from sfumato.audit.neighbours import pairs
from sfumato.audit.stages import data_for, table_for
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import Limits, Sql, sql
from sfumato.schema import Schema, Table
from sfumato.units import Unit

WARDS = ("east", "north", "west")
HOSPITAL = Schema(
    {
        "people": Table(
            {"id": schema.key(), "sex": schema.category(("f", "m")), "born": schema.whole(1900, 2026)},
            unit="id",
            names="person",
        ),
        "visits": Table(
            {
                "person": schema.key(),
                "ward": schema.category(WARDS),
                "day": schema.date("2026-01-01", "2026-12-31"),
            },
            unit="person",
        ),
        "wards": Table({"ward": schema.category(WARDS), "floor": schema.category(("low", "high"))}, private=False),
    }
)
UNIT = Unit("user:person")


def plan(text: str, unit: Unit = UNIT) -> Sql:
    return sql(text, HOSPITAL, unit=unit, epsilon=1, delta=1e-6, limits=Limits(rows=4, keys=2))


BY_FLOOR = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits JOIN people ON person = id GROUP BY sex"
ALIAS = "SELECT floor, COUNT(DISTINCT person) AS people FROM visits JOIN wards USING (ward) GROUP BY floor"
PEOPLE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def answer(asked: Sql, data: Any) -> list[float]:
    raw = asked._run(data, Run(Noise(SeededBits(3))))
    (numbers,) = raw["numbers"].values()
    return [float(each) for each in numbers]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "table"),
    [(BY_FLOOR, "visits"), (BY_SEX, "visits"), (PEOPLE, "people"), (ALIAS, "visits")],
    ids=["floor", "sex", "people", "alias"],
)
def test_pairs_reach_the_answer_of_every_query(text: str, table: str) -> None:
    asked = plan(text)
    assert (table_for(asked).name, table_for(asked).unit) == (table, "person")
    moved = 0
    for _, pair in zip(range(25), pairs(asked), strict=False):
        one, other = (answer(asked, data) for data in pair)  # the same noise on both sides
        moved += one != other
    assert moved >= 10


def test_a_join_of_private_tables_finds_partners_for_everybody() -> None:
    asked = plan(BY_SEX)
    none, two = ({"person": people, "ward": ["east"] * len(people), "day": ["2026-02-01"] * len(people)}
                 for people in ([], ["a", "b"]))  # fmt: skip
    before, after = (answer(asked, data_for(asked, table_for(asked), raw)) for raw in (none, two))
    assert [round(b - a) for a, b in zip(before, after, strict=True)] == [2, 2]  # a and b, each with one f and one m


def test_units_may_be_named_differently_in_every_table() -> None:
    asked = plan(PEOPLE)
    assert list(read_table(asked).columns) == ["person", "sex", "born"]
    raw = {"person": ["a", "b"], "sex": ["f", "f"], "born": [1980, 1990]}
    empty: dict[str, list[Any]] = {name: [] for name in raw}
    before, after = (answer(asked, data_for(asked, read_table(asked), each)) for each in (empty, raw))
    assert [round(b - a) for a, b in zip(before, after, strict=True)] == [2, 0]
