"""The outermost SELECT taken apart, and what is refused there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Unit, sql
from sfumato.query import Limits
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Schema, Table, category, flag, key, real, whole

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(),
                "ward": category(["a", "b"]),
                "drug": key(),
                "days": real(0, 50),
                "sure": real(0, 50, nulls=0),
                "n": whole(0, 9),
                "ok": flag(),
            },
            unit="patient",
        ),
        "drugs": Table({"drug": key(), "price": real(0, 9)}, private=False),
    }
)


def plan(text: str, **options: Any) -> Sql:
    more = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=4, keys=3), **options}
    return sql(text, SCHEMA, unit=Unit("user:patient"), **more)


def refused(text: str, **options: Any) -> str:
    with pytest.raises(QueryError) as refusal:
        plan(text, **options)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT * FROM visits", "SELECT * would show rows"),
        ("SELECT days FROM visits", "nothing in it aggregates"),
        ("SELECT patient, COUNT(*) FROM visits GROUP BY patient", "Each group would be one unit"),
        ("SELECT drug, days FROM visits GROUP BY drug", "nothing in it aggregates"),
        ("SELECT COUNT(*) FROM visits GROUP BY COUNT(*)", "cannot group by an aggregate"),
        ("SELECT COUNT(*) AS x, SUM(n) AS x FROM visits", "Two columns are called 'x'"),
        ("SELECT SUM(DISTINCT n) FROM visits", "would compare rows of different units"),
        ("SELECT COUNT(DISTINCT ((ward, n), drug)) FROM visits", "takes up to 20 columns"),
        ("SELECT COUNT(DISTINCT patient) FILTER (WHERE ok) FROM visits", "which a FILTER would split"),
        ("SELECT SUM(drug) FROM visits", "Numbers are added up"),
        ("SELECT SUM(days) OVER () FROM visits", "window function cannot stand in the outermost SELECT"),
        ("SELECT STRING_AGG(drug) FROM visits", "is not an aggregate that can be blurred"),
        ("SELECT mode(drug) FROM visits", "MODE is not an aggregate"),
        ("SELECT COUNT(*) FROM visits WHERE STRPTIME(drug, '%Y') = '1'", "The function STRPTIME is not one of those"),
        ("SELECT COUNT(*) FROM visits WHERE drug LIKE", "column 43: something is missing here"),
        ("SELECT HISTOGRAM(days) FROM visits", "edges that do not come from the data"),
        ("SELECT QUANTILE(days, 2) FROM visits", "at numbers from 0 to 1"),
        ("SELECT QUANTILE(days, n) FROM visits", "must be a constant"),
        ("SELECT QUANTILE(, 0.5) FROM visits", "QUANTILE lacks an operand"),
        ("SELECT QUANTILE(days) FROM visits", "QUANTILE lacks an operand"),
        ("SELECT COUNT(*) FROM visits WHERE n > 0.e", "A number cannot be read"),
        ("SELECT COUNT_IF(n) FROM visits", "rows that a condition holds for"),
        ("SELECT SUM(SUM(n)) FROM visits", ""),
        ("SELECT COUNT(*) FROM drugs", "reads public tables only"),
        ("SELECT COUNT(*) FROM visits GROUP BY 7", "There is no column 7"),
        ("SELECT COUNT(*) FROM visits; SELECT 1", "One query at a time"),
        ("DROP TABLE visits", "Only SELECT reads data here"),
        ("SELECT COUNT(*) FROM", "This is not SQL at line 1, column 20: Expected table name but got the end"),
        ("SELECT ward, COUNT(*) FROM visits", "ward"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING n > 3", "n"),
    ],
)
def test_what_cannot_be_answered_is_refused(text: str, rule: str) -> None:
    message = refused(text)
    assert rule in message and "\nInstead: " in message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward HAVING days > 3",
        "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY days",
        "SELECT ward, COUNT(*) + days AS c FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward ORDER BY visits.days + c",
    ],
)
def test_a_column_outside_aggregates_must_be_one_of_the_groups(text: str) -> None:
    assert "days is neither one of the groups nor inside an aggregate" in refused(text)


def test_a_group_may_be_written_with_its_table() -> None:
    assert names("SELECT v.ward, COUNT(*) AS c FROM visits v GROUP BY ward HAVING v.ward <> 'a' ORDER BY v.ward")


def test_the_clause_is_underlined() -> None:
    message = refused("SELECT ward,\n       SUM(DISTINCT n) AS s\nFROM visits GROUP BY ward")
    line, marks = message.splitlines()[1:3]
    assert line == "2 |        SUM(DISTINCT n) AS s"
    assert marks.strip(" ").strip("^") == "" and "^" in marks


def test_keys_are_named_by_alias_place_or_expression() -> None:
    assert list(plan("SELECT ward AS w, COUNT(*) FROM visits GROUP BY w").front.outermost.keys) == ["w"]
    assert list(plan("SELECT COUNT(*), ward FROM visits GROUP BY 2").front.outermost.keys) == ["ward"]
    assert list(plan("SELECT n % 3 AS r, COUNT(*) FROM visits GROUP BY r").front.outermost.keys) == ["r"]
    assert list(plan("SELECT n % 3, COUNT(*) FROM visits GROUP BY n % 3").front.outermost.keys) == ["n % 3"]
    assert list(plan("SELECT COUNT(*) FROM visits GROUP BY ward").front.outermost.keys) == ["ward"]
    assert list(plan("SELECT ward, ok, COUNT(*) FROM visits GROUP BY ALL").front.outermost.keys) == ["ward", "ok"]
    assert plan("SELECT WARD, Count(*) FROM Visits GROUP BY Ward").front.titles == ("ward", "COUNT(*)")


def test_comments_and_case_do_not_tell_expressions_apart() -> None:
    made = plan("SELECT ward /* which */, SUM(n) AS a, sum(N) + 1 AS b FROM visits GROUP BY ward -- by ward")
    assert len(made.front.aggregates) == 1


def names(text: str, **options: Any) -> list[str]:
    return [each.name for each in plan(text, **options).questions.measures]


def test_averages_count_from_the_middle_unless_the_sum_is_asked_for() -> None:
    assert names("SELECT AVG(sure) FROM visits") == ["rows", 'sum of "visits"."sure" - 25']
    assert names("SELECT AVG(sure), SUM(sure) FROM visits") == ["rows", 'sum of "visits"."sure"']
    made = plan("SELECT AVG(sure) FROM visits")
    assert made.fixed is not None
    assert float(made.fixed.reaches['sum of "visits"."sure" - 25']) == pytest.approx(100)


def test_columns_without_nulls_need_no_count_of_their_own() -> None:
    assert names("SELECT COUNT(sure), COUNT(*), AVG(sure) FROM visits")[0] == "rows"
    assert names("SELECT COUNT(days), COUNT(*) FROM visits") == ['rows with "visits"."days"', "rows"]
    assert len(names("SELECT COUNT(*), COUNT(*) FILTER (WHERE ok), COUNT_IF(ok), COUNT(ok) FROM visits")) >= 3


def test_a_count_of_what_is_there_is_not_the_count_of_what_is_true() -> None:
    both = names("SELECT COUNT(ok), COUNT(*) FILTER (WHERE ok) FROM visits")
    assert len(set(both)) == 2


def test_bounds_are_by_column_alias_or_expression() -> None:
    for name in ("days", "s", "sum"):
        text = "SELECT SUM(days) AS s FROM visits"
        if name == "sum":
            assert "bounds names 'sum'" in refused(text, bounds={"sum": (0, 1)})
            continue
        (measure,) = plan(text, bounds={name: (0, 7)}).questions.measures
        assert (measure.lower, measure.upper) == (Fraction(0), Fraction(7))
    assert "no public bounds" in refused("SELECT SUM(CAST(drug AS DOUBLE)) AS s FROM visits")
    plan("SELECT SUM(CAST(drug AS DOUBLE)) AS s FROM visits", bounds={"s": (0, 5)})
