"""Queries of other databases: the same question in DuckDB's SQL, the same plan, or a refusal that says why."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from sfumato import Schema, Unit, schema, sql
from sfumato.errors import ArgumentError
from sfumato.query.dialects.pasted import CHANGES, DIALECTS, REFUSED_LATER, SAME, in_duckdb_sql
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Table
from tests.query.still import answered

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": schema.key(), "ward": schema.category(["a", "b  ", "Cc"]), "city": schema.key(),
                "cost": schema.real(0, 100, decimals=2), "score": schema.real(0, 10), "age": schema.whole(-120, 120),
                "n": schema.whole(0, 9), "ok": schema.flag(), "day": schema.date("2020-01-01", "2024-12-31"),
                "at": schema.moment("2020-01-01", "2024-12-31"),
            },
            unit="user",
        )
    }
)  # fmt: skip
DATA = {
    "visits": pa.table(
        {
            "user": [1, 2, 3, 4], "ward": ["a", "b  ", "Cc", None], "city": ["x", "yy", None, "z"],
            "cost": [0.5, 1.5, 2.5, 99.99], "score": [0.5, 1.5, 2.5, 9.9], "age": [7, -7, 15, None], "n": [0, 1, 2, 3],
            "ok": [True, False, True, None],
            "day": [datetime.date(2024, 1, d) for d in (1, 6, 7, 8)],
            "at": [datetime.datetime(2024, 1, d, 13, 5) for d in (1, 6, 7, 8)],
        }
    )
}  # fmt: skip


def plan_of(text: str, dialect: str | None = None) -> Sql:
    return sql(text, SCHEMA, unit=Unit("user:user"), epsilon=1, limits={"rows": 1}, dialect=dialect)


def counting(condition: str) -> str:
    return f"SELECT COUNT(CASE WHEN {condition} THEN 1 END) AS c FROM visits"


SAME_QUESTIONS = [
    ("postgres", "SELECT SUM(age / 10) FROM visits", "SELECT SUM(age // 10) FROM visits"),
    ("postgres", "SELECT SUM(age / 10.0) FROM visits", "SELECT SUM(age / 10.0) FROM visits"),
    ("postgres", "SELECT SUM(age / n) FROM visits", "SELECT SUM(age // n) FROM visits"),
    ("postgres", "SELECT SUM(q) FROM (SELECT age / 10 AS q FROM visits) t",
     "SELECT SUM(q) FROM (SELECT age // 10 AS q FROM visits) t"),
    ("postgres", "SELECT SUM(q / 2) FROM (SELECT age / 10 AS q FROM visits) t",
     "SELECT SUM(q // 2) FROM (SELECT age // 10 AS q FROM visits) t"),
    ("postgres", "SELECT SUM(score::int) FROM visits", "SELECT SUM(CAST(score AS INT)) FROM visits"),
    ("postgres", "SELECT SUM(cost::int) FROM visits", "SELECT SUM(CAST(ROUND(cost) AS INT)) FROM visits"),
    ("postgres", "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost DESC) AS q FROM visits",
     "SELECT QUANTILE_CONT(cost, 0.1) AS q FROM visits"),
    ("postgres", counting("to_char(day, 'YYYY-MM') = '2024-01'"), counting("STRFTIME(day, '%Y-%m') = '2024-01'")),
    ("postgres", counting("EXTRACT(dow FROM day) = 0"), counting("EXTRACT(DAYOFWEEK FROM day) = 0")),
    ("postgres", counting("day > to_date('2024-01-05', 'YYYY-MM-DD') - interval '1 month'"),
     counting("day > DATE '2024-01-05' - INTERVAL 1 MONTH")),
    ("postgres", counting("position('x' in city) > 0"), counting("STRPOS(city, 'x') > 0")),
    ("postgres", "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY c FETCH FIRST 2 ROWS ONLY",
     "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY c LIMIT 2"),
    ("bigquery", "SELECT COUNTIF(age > 3) FROM `visits`", "SELECT COUNT_IF(age > 3) FROM visits"),
    ("bigquery", "SELECT SAFE_DIVIDE(SUM(age), COUNT(*)) FROM visits", "SELECT SUM(age) / COUNT(*) FROM visits"),
    ("bigquery", counting("DATE_TRUNC(day, ISOWEEK) = '2024-01-01'"),
     counting("DATE_TRUNC('week', day) = '2024-01-01'")),
    ("bigquery", counting("EXTRACT(DAYOFWEEK FROM day) = 1"), counting("(EXTRACT(DAYOFWEEK FROM day) + 1) = 1")),
    ("bigquery", counting('CONCAT(city, "a") = "xa"'), counting("city || 'a' = 'xa'")),
    ("bigquery", counting("DATE_SUB(day, INTERVAL 1 DAY) > '2024-01-02'"),
     counting("(day - INTERVAL 1 DAY) > '2024-01-02'")),
    ("bigquery", "SELECT SUM(CAST(score AS INT64)) FROM visits",
     "SELECT SUM(CAST(ROUND(score) AS BIGINT)) FROM visits"),
    ("bigquery", "SELECT SUM(LOG(cost)) FROM visits", "SELECT SUM(LN(cost)) FROM visits"),
    ("bigquery", "SELECT APPROX_COUNT_DISTINCT(city) FROM visits", "SELECT COUNT(DISTINCT city) FROM visits"),
    ("snowflake", "SELECT SUM(IFF(ok, 1, 0)) FROM visits", "SELECT SUM(CASE WHEN ok THEN 1 ELSE 0 END) FROM visits"),
    ("snowflake", "SELECT SUM(ZEROIFNULL(age)) FROM VISITS",
     "SELECT SUM(CASE WHEN age IS NULL THEN 0 ELSE age END) FROM visits"),
    ("snowflake", counting("DAYNAME(day) = 'Mon'"), counting("LEFT(DAYNAME(day), 3) = 'Mon'")),
    ("snowflake", counting("DATEADD(day, 1, day) > '2024-01-02'"), counting("(day + INTERVAL 1 DAY) > '2024-01-02'")),
    ("snowflake", counting("DATE_PART(month, day) = 1"), counting("EXTRACT(MONTH FROM day) = 1")),
    ("snowflake", counting("LEN(city) = 1"), counting("LENGTH(city) = 1")),
    ("snowflake", counting("TO_CHAR(day, 'YYYY-MM') = '2024-01'"), counting("STRFTIME(day, '%Y-%m') = '2024-01'")),
    ("tsql", "SELECT TOP 2 [ward], COUNT_BIG(*) AS c FROM [visits] WITH (NOLOCK) GROUP BY [ward] ORDER BY c DESC",
     "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY c DESC LIMIT 2"),
    ("tsql", "SELECT SUM(ISNULL(age, 0)) FROM visits", "SELECT SUM(COALESCE(age, 0)) FROM visits"),
    ("tsql", "SELECT AVG(age) AS a FROM visits", "SELECT TRUNC(AVG(age)) AS a FROM visits"),
    ("tsql", "SELECT AVG(cost) AS a FROM visits", "SELECT AVG(cost) AS a FROM visits"),
    ("tsql", "SELECT VAR(age) AS a, STDEVP(age) AS b FROM visits",
     "SELECT VARIANCE(age) AS a, STDDEV_POP(age) AS b FROM visits"),
    ("tsql", "SELECT SUM(CAST(cost AS INT)) FROM visits", "SELECT SUM(CAST(TRUNC(cost) AS INT)) FROM visits"),
    ("tsql", "SELECT SUM(CONVERT(INT, cost)) FROM visits", "SELECT SUM(CAST(TRUNC(cost) AS INT)) FROM visits"),
    ("tsql", counting("LEN(ward) = 1"), counting("LENGTH(RTRIM(ward)) = 1")),
    ("tsql", counting("ward + N'!' = 'a!'"), counting("ward || '!' = 'a!'")),
    ("tsql", counting("DATEPART(weekday, day) = 2"), counting("(EXTRACT(DAYOFWEEK FROM day) + 1) = 2")),
    ("tsql", counting("DATEDIFF(day, day, at) = 0"), counting("DATE_DIFF('day', day, at) = 0")),
    ("tsql", counting("DATENAME(month, day) = 'January'"), counting("MONTHNAME(day) = 'January'")),
    ("spark", "SELECT COUNT_IF(ok) FROM visits", "SELECT COUNT_IF(ok) FROM visits"),
    ("spark", "SELECT PERCENTILE_APPROX(age, 0.5) AS q FROM visits", "SELECT QUANTILE(age, 0.5) AS q FROM visits"),
    ("spark", counting("date_format(day, 'yyyy-MM') = '2024-01'"), counting("STRFTIME(day, '%Y-%m') = '2024-01'")),
    ("spark", counting("weekday(day) = 0"), counting("(EXTRACT(ISODOW FROM day) - 1) = 0")),
    ("spark", counting("date_sub(day, 1) > '2024-01-02'"), counting("(day - INTERVAL 1 DAY) > '2024-01-02'")),
    ("databricks", "SELECT SUM(age / 10) FROM visits", "SELECT SUM(age / 10) FROM visits"),
    ("mysql", "SELECT STD(age) AS s FROM `visits`", "SELECT STDDEV_POP(age) AS s FROM visits"),
    ("mysql", "SELECT SUM(age DIV 10) FROM visits", "SELECT SUM(age // 10) FROM visits"),
    ("mysql", counting('CHAR_LENGTH(city) = 1 AND city = "x"'), counting("LENGTH(city) = 1 AND city = 'x'")),
    ("mysql", counting("DAYOFWEEK(day) = 2"), counting("(EXTRACT(DAYOFWEEK FROM day) + 1) = 2")),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "pasted", "ours"), SAME_QUESTIONS)
def test_the_same_question_is_the_same_plan(dialect: str, pasted: str, ours: str) -> None:
    plan, plain = plan_of(pasted, dialect), plan_of(ours)
    assert plan == plain and plan.text == plain.text
    assert "dialect" not in repr(plan)


REFUSED = [
    ("postgres", "SELECT SUM(age) / COUNT(*) AS m FROM visits", "Whether this / cuts off", "CAST(SUM(age) AS DOUBLE"),
    ("postgres", counting(r"city LIKE 'a\_%'"), "no escape sign", "city LIKE 'a!_%' ESCAPE '!'"),
    ("postgres", counting("city ~ 'a'"), "Regular expressions", "LIKE"),
    ("postgres", counting("SUBSTRING(city, -1, 3) = 'a'"), "Texts begin at 1", "SUBSTRING(city, 1, n)"),
    ("postgres", counting("day < now()"), "The clock", "DATE '2024-01-31'"),
    ("postgres", counting("to_char(day, 'Month') = 'x'"), "in digits", "DATE_TRUNC"),
    ("postgres", counting("initcap(city) = 'X'"), "INITCAP of PostgreSQL", "docs/sql.md"),
    ("bigquery", counting("DATE_TRUNC(day, WEEK) = '2024-01-01'"), "Weeks begin on Monday", "ISOWEEK"),
    ("bigquery", counting("EXTRACT(WEEK FROM day) = 1"), "Weeks begin on Monday", "ISOWEEK"),
    ("bigquery", counting("TIMESTAMP_DIFF(at, at, HOUR) = 1"), "units that have passed", "DATE_DIFF("),
    ("bigquery", "SELECT APPROX_QUANTILES(age, 2) FROM visits", "APPROX_QUANTILES of BigQuery", ""),
    ("snowflake", counting("SPLIT_PART(city, '-', 1) = 'a'"), "SPLIT_PART of Snowflake", ""),
    ("snowflake", counting("UNIFORM(1, 2, RANDOM()) = 1"), "", ""),
    ("tsql", counting("city LIKE '[a-c]%'"), "no sets of characters", "LIKE"),
    ("tsql", counting("CONVERT(VARCHAR(7), day, 23) = 'x'"), "with a style", "without the style"),
    ("tsql", counting("day < GETDATE()"), "The clock", ""),
    ("tsql", "SELECT TOP 10 PERCENT ward, COUNT(*) AS c FROM visits GROUP BY ward", "not a share", "TOP 10"),
    ("tsql", "SELECT SUM(ROUND(cost, 1, 1)) FROM visits", "ROUND takes a number", "TRUNC"),
    ("spark", counting("datediff(MONTH, day, at) = 1"), "Differences count days", "DATEDIFF"),
    ("spark", counting("EXTRACT(SECOND FROM at) = 1"), "Seconds are whole", "DATE_TRUNC"),
    ("mysql", counting("LENGTH(city) = 1"), "bytes", "CHAR_LENGTH(city)"),
    ("mysql", counting("WEEK(day) = 1"), "Weeks begin on Monday", "WEEKOFYEAR(day)"),
    ("mysql", "SELECT FROM WHERE", "This is not SQL of MySQL", ""),
    ("mysql", "DELETE FROM visits", "One SELECT", ""),
    ("bigquery", "SELECT SUM(CAST(STRUCT(1).x AS INT64)) FROM visits", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "pasted", "rule", "instead"), REFUSED)
def test_what_differs_is_refused(dialect: str, pasted: str, rule: str, instead: str) -> None:
    with pytest.raises(QueryError) as caught:
        plan_of(pasted, dialect)
    assert rule in caught.value.rule and instead in caught.value.rewrite


@pytest.mark.parametrize(
    ("dialect", "condition", "rows"),
    [
        ("tsql", "LEN(ward) = 1", 2),  # 'a' and 'b  '
        ("snowflake", "LEN(ward) = 3", 1),
        ("tsql", "age / 2 = -3", 1),  # -7 / 2 cut towards 0
        ("postgres", "age / 2 = 3", 1),
        ("spark", "age / 2 = 3.5", 1),
        ("tsql", "CAST(score AS INT) = 2", 1),  # 2.5 is cut; PostgreSQL rounds 1.5 and 2.5 to 2
        ("postgres", "score::int = 2", 2),
        ("bigquery", "CAST(score AS INT64) = 2", 1),
        ("postgres", "cost::int = 3", 1),  # a numeric rounds halves up
        ("tsql", "DATEPART(weekday, day) = 1", 1),  # 7 January 2024 was a Sunday
        ("spark", "DAYOFWEEK(day) = 1", 1),
        ("snowflake", "DAYOFWEEK(day) = 0", 1),
        ("mysql", "WEEKDAY(day) = 0", 2),
        ("mysql", "CONCAT(city, 'x') IS NULL", 1),
        ("postgres", "CONCAT(city, 'x') = 'x'", 1),
        ("postgres", "to_char(at, 'HH24:MI') = '13:05'", 4),
    ],
)
def test_words_mean_what_they_mean_there(dialect: str, condition: str, rows: int) -> None:
    answer = answered(plan_of(counting(condition), dialect), DATA)
    assert answer["c"] == [rows]


def test_a_comment_may_say_the_dialect() -> None:
    text = '-- sfumato: epsilon=1, rows=1, dialect=mysql\nSELECT STD(age) AS s FROM `visits` WHERE city = "it\'s"'
    plan = sql(text, SCHEMA, unit=Unit("user:user"))
    assert plan.text == "SELECT STDDEV_POP(age) FROM visits WHERE city = 'it''s'"
    with pytest.raises(ArgumentError, match="given twice"):
        sql(text, SCHEMA, unit=Unit("user:user"), dialect="mysql")


def test_dialects_have_names() -> None:
    assert plan_of("SELECT COUNT(*) FROM visits", "PostgreSQL") == plan_of("SELECT COUNT(*) FROM visits", "duckdb")
    with pytest.raises(ArgumentError, match="postgres"):
        plan_of("SELECT COUNT(*) FROM visits", "oracle")
    with pytest.raises(ArgumentError, match="dialect"):
        plan_of("SELECT COUNT(*) FROM visits", 7)  # type: ignore[arg-type]


def test_the_lists_do_not_overlap() -> None:
    assert not set(SAME) & set(CHANGES) and not set(SAME) & set(REFUSED_LATER) and not set(CHANGES) & set(REFUSED_LATER)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_plain_queries_pass_through(dialect: str) -> None:
    text = (
        "SELECT ward, COUNT(*) AS c, SUM(cost) AS s FROM visits WHERE age > 3 AND ok GROUP BY ward HAVING COUNT(*) > 2"
    )
    assert plan_of(text, dialect) == plan_of(text)
    assert in_duckdb_sql(text, dialect, SCHEMA)
