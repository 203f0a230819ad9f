"""Other names of the same functions: they are read as what they stand for, and are the same question."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from sfumato import Schema, Unit, schema, sql
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.query.spellings import SPELLINGS
from sfumato.schema import Table
from tests.query.still import answered

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": schema.key(), "ward": schema.category(["a", "b"]), "city": schema.key(),
                "cost": schema.real(0, 100), "age": schema.whole(0, 120), "ok": schema.flag(),
                "day": schema.date("2023-11-20", "2024-02-10"),
                "at": schema.moment("2023-01-01", "2023-12-31 23:59:59"),
            },
            unit="user",
        )
    }
)  # fmt: skip
DATA = {
    "visits": pa.table(
        {
            "user": [1, 2, 3, 4], "ward": ["a", "b", "a", None], "city": ["x", "yy", None, "z"],
            "cost": [0.5, 1.5, 2.5, 9.75], "age": [7, 0, 15, None], "ok": [True, False, True, None],
            "day": [datetime.date(2023, 11, 30), datetime.date(2023, 12, 1), None, datetime.date(2024, 2, 10)],
            "at": [datetime.datetime(2023, 1, d, 13, 5) for d in (1, 6, 7, 8)],
        }
    )
}  # fmt: skip


def plan_of(asked_for: str, *, group: bool = False) -> Sql:
    text = f"SELECT {asked_for} FROM visits" + (" GROUP BY 1" if group else "")
    return sql(text, SCHEMA, unit=Unit("user:user"), epsilon=1, limits={"rows": 1})


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("VAR(age)", "VARIANCE(age)"),
        ("VAR_SAMP(age)", "VARIANCE(age)"),
        ("VARP(age)", "VAR_POP(age)"),
        ("STD(age)", "STDDEV(age)"),
        ("STDEV(age)", "STDDEV(age)"),
        ("STDEVP(age)", "STDDEV_POP(age)"),
        ("STDDEVP(age)", "STDDEV_POP(age)"),
        ("SUM_IF(age, ok)", "SUM(age) FILTER (WHERE ok)"),
        ("SUMIF(age, ok)", "SUM(age) FILTER (WHERE ok)"),
        ("AVG_IF(age, ok)", "AVG(age) FILTER (WHERE ok)"),
        ("AVGIF(age, ok)", "AVG(age) FILTER (WHERE ok)"),
        ("COUNTIF(ok)", "COUNT_IF(ok)"),
        ("APPROX_COUNT_DISTINCT(city)", "COUNT(DISTINCT city)"),
        ("APPROX_COUNT_DISTINCT(user)", "COUNT(DISTINCT user)"),
        ("APPROX_DISTINCT(city)", "COUNT(DISTINCT city)"),
        ("APPROX_PERCENTILE(age, 0.5)", "QUANTILE(age, 0.5)"),
        ("PERCENTILE_APPROX(age, 0.5)", "QUANTILE(age, 0.5)"),
        ("PERCENTILE_APPROX(age, 0.5, 100)", "QUANTILE(age, 0.5)"),
        ("PERCENTILE(age, [0.5, 0.9])", "QUANTILE(age, [0.5, 0.9])"),
        ("SUM(IFF(ok, 1, 0))", "SUM(CASE WHEN ok THEN 1 ELSE 0 END)"),
        ("SUM(NVL(age, 0))", "SUM(COALESCE(age, 0))"),
        ("SUM(ISNULL(age, 0))", "SUM(COALESCE(age, 0))"),
        ("COUNT_IF(ISNULL(age))", "COUNT_IF(age IS NULL)"),
        ("COUNT_IF(ISNOTNULL(age))", "COUNT_IF(NOT age IS NULL)"),
        ("SUM(NVL2(age, 1, 0))", "SUM(CASE WHEN NOT age IS NULL THEN 1 ELSE 0 END)"),
        ("SUM(ZEROIFNULL(age))", "SUM(COALESCE(age, 0))"),
        ("SUM(NULLIFZERO(age))", "SUM(NULLIF(age, 0))"),
        ("SAFE_DIVIDE(SUM(age), COUNT(*))", "SUM(age) / COUNT(*)"),
        ("AVG(SQUARE(cost))", "AVG(POWER(cost, 2))"),
        ("COUNT_IF(EQUAL_NULL(city, 'x'))", "COUNT_IF((city IS NOT DISTINCT FROM 'x'))"),
        ("COUNT_IF(MID(city, 1, 1) = 'x')", "COUNT_IF(SUBSTRING(city, 1, 1) = 'x')"),
        ("COUNT_IF(SUBSTR(city, 1, 1) = 'x')", "COUNT_IF(SUBSTRING(city, 1, 1) = 'x')"),
        ("COUNT_IF(CHARINDEX('x', city) = 1)", "COUNT_IF(STRPOS(city, 'x') = 1)"),
        ("COUNT_IF(INSTR(city, 'x') = 1)", "COUNT_IF(STRPOS(city, 'x') = 1)"),
        ("COUNT_IF(POSITION('x' IN city) = 1)", "COUNT_IF(STRPOS(city, 'x') = 1)"),
        ("COUNT_IF(LEN(city) = 1)", "COUNT_IF(LENGTH(city) = 1)"),
        ("COUNT_IF(DATEPART(month, day) = 12)", "COUNT_IF(EXTRACT(MONTH FROM day) = 12)"),
        ("COUNT_IF(DATEADD(day, 1, day) > '2024-01-01')", "COUNT_IF((day + INTERVAL 1 DAY) > '2024-01-01')"),
        ("COUNT_IF(DATEADD(day, -1, day) > '2024-01-01')", "COUNT_IF((day + INTERVAL -1 DAY) > '2024-01-01')"),
        ("COUNT_IF(DATE_SUB(day, INTERVAL 1 DAY) > '2024-01-01')", "COUNT_IF((day - INTERVAL 1 DAY) > '2024-01-01')"),
        ("COUNT_IF(TO_DATE(city) > '2024-01-01')", "COUNT_IF(CAST(city AS DATE) > '2024-01-01')"),
        ("COUNT_IF(EOMONTH(day) = '2023-11-30')", "COUNT_IF(LAST_DAY(day) = '2023-11-30')"),
        ("COUNT_IF(DIV0(age, cost) = 0)",
         "COUNT_IF(CASE WHEN cost = 0 AND NOT age IS NULL THEN 0 ELSE age / cost END = 0)"),
    ],
)  # fmt: skip
def test_another_name_is_the_same_question(theirs: str, ours: str) -> None:
    plan, plain = plan_of(f"{theirs} AS c"), plan_of(f"{ours} AS c")
    assert plan.text == plain.text and plan == plain
    assert answered(plan, DATA)["c"] == answered(plain, DATA)["c"]


def test_every_name_is_tried() -> None:
    assert {name for name, _ in SPELLINGS} <= set(_names_above())


def _names_above() -> set[str]:
    marks = test_another_name_is_the_same_question.pytestmark  # type: ignore[attr-defined]
    texts = " ".join(theirs for theirs, _ in marks[0].args[1])
    return {name for name, _ in SPELLINGS if f"{name}(" in texts}


@pytest.mark.parametrize(
    ("pattern", "texts", "groups"),
    [
        ("'%Y-%m'", [1, 1, 0, 1], ["2023-11", "2023-12", "2024-01", "2024-02"]),
        ("'%Y'", [2, 1], ["2023", "2024"]),
        ("'in %Y, 100 %%'", [2, 1], ["in 2023, 100 %", "in 2024, 100 %"]),
    ],
)
def test_dates_are_written_and_their_groups_are_public(pattern: str, texts: list[int], groups: list[str]) -> None:
    answer = answered(plan_of(f"STRFTIME(day, {pattern}) AS m, COUNT(*) AS c", group=True), DATA)
    assert answer["m"] == groups and answer["c"] == texts


def test_months_of_any_year_and_hours_are_public_too() -> None:
    months = answered(plan_of("STRFTIME(day, '%m') AS m, COUNT(*) AS c", group=True), DATA)
    assert months["m"] == [f"{month:02}" for month in range(1, 13)]
    hours = answered(plan_of("STRFTIME(at, '%H') AS h, COUNT(*) AS c", group=True), DATA)
    assert hours["c"][13] == 4 and len(hours) == 24
    days = answered(plan_of("STRFTIME(at, '%Y-%m') AS m, COUNT(*) AS c", group=True), DATA)
    assert len(days["m"]) == 12 and sum(days["c"]) == 4


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("COUNT_IF(STRFTIME(day, '%x') = '')", "A format is made of"),
        ("COUNT_IF(STRFTIME(day, 'abc') = '')", "A format is made of"),
        ("COUNT_IF(STRFTIME(day, city) = '')", "The format must be a text in the query"),
        ("COUNT_IF(STRFTIME(city, '%Y') = '')", "A date or timestamp is needed"),
        ("COUNT_IF(day < GETDATE())", "The clock"),
        ("COUNT_IF(TO_CHAR(day, 'YYYY') = '2024')", "The function TO_CHAR"),
    ],
)
def test_formats_that_are_not_read(text: str, rule: str) -> None:
    with pytest.raises(QueryError, match=rule):
        plan_of(f"{text} AS c")
