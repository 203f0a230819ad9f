"""`sql(...)`: arguments, data or schema, and the plan that is made."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import sfumato
from sfumato import Private, Unit
from sfumato.errors import ArgumentError
from sfumato.query import Limits, Sql, sql
from sfumato.schema import Schema, Table, category, key, real

SCHEMA = Schema(
    {"visits": Table({"patient": key(), "ward": category(["a", "b"]), "days": real(0, 50)}, unit="patient")}
)
USER = Unit("user:patient")
QUERY = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_data_and_its_schema_make_the_same_plan() -> None:
    private = Private("visits", {"patient": [1], "ward": ["a"], "days": [1.0]}, unit=USER, schema=SCHEMA)
    assert sql(QUERY, private, epsilon=1) == sql(QUERY, SCHEMA, unit=USER, epsilon=1)
    assert sfumato.sql is sql and sfumato.Limits is Limits


def test_numbers_mean_what_they_print_as() -> None:
    made = sql(QUERY, SCHEMA, unit=USER, epsilon=0.1, delta=1e-6)
    assert isinstance(made, Sql)
    assert (made.epsilon, made.delta) == (Fraction(1, 10), Fraction(1, 10**6))


def test_limits_may_be_a_mapping() -> None:
    for limits in (Limits(rows=3, keys=2), {"rows": 3, "keys": 2}):
        assert sql(QUERY, SCHEMA, unit=USER, epsilon=1, limits=limits).limits == Limits(rows=3, keys=2)


def test_what_an_answer_advises_is_taken_by_sql_as_by_a_project() -> None:
    assert sql(QUERY, SCHEMA, unit=USER, epsilon=1, limits="advise") == sql(QUERY, SCHEMA, unit=USER, epsilon=1)


def test_names_are_compared_without_case() -> None:
    upper = sql(
        "select WARD, Sum(DAYS) as S from VISITS group by WARD", SCHEMA, unit=USER, epsilon=1,
        bounds={"Days": (0, 3)}, keys={"Ward": ["a"]}, limits=Limits(reach={"S": 5}),
    )  # fmt: skip
    assert upper.front.titles == ("ward", "s")
    assert [float(each) for each in upper.fixed.reaches.values()] == pytest.approx([5])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"say how much to spend: epsilon \(with delta\), rho, or the accuracy wanted"),
        ({"delta": 1e-6}, "say how much to spend"),
        ({"epsilon": 1, "rho": 1}, "in one way"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": 1, "unit": "patient"}, "unit"),
        ({"epsilon": 1, "limits": {"keyz": 3}}, "limits by name"),
    ],
)
def test_arguments_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sql(QUERY, SCHEMA, **{"unit": USER, **options})


def test_equal_texts_are_equal_plans() -> None:
    one, other = (sql(QUERY, SCHEMA, unit=USER, epsilon=1) for _ in range(2))
    assert one == other and one.hash == other.hash
    assert one.hash != sql(QUERY, SCHEMA, unit=USER, epsilon=1, floor=True).hash
