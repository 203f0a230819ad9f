"""What each function means, run on the engine."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from sfumato.query.expressions.scalars import translate
from sfumato.query.kinds import Kind, Typed
from sfumato.query.relation import Relation, Scope
from sfumato.sources.duckdb import DUCKDB

COLUMNS = {
    "x": Kind("real", Fraction(0), Fraction(120)),
    "y": Kind("real", Fraction(-1), Fraction(1)),
    "w": Kind("whole", Fraction(0), Fraction(99)),
    "big": Kind("whole"),
    "f": Kind("flag", values=(False, True)),
    "c": Kind("text", values=("red", "Blue")),
    "k": Kind("key"),
    "u": Kind("key", unit=True),
    "d": Kind("date"),
    "m": Kind("moment"),
    "p": Kind("text", origin=("places", "p")),
}
SCOPE = Scope({"t": Relation(exp.select("*").from_("t"), COLUMNS, True)})
ROW = """SELECT 37.5::DOUBLE x, -0.5::DOUBLE y, 42::BIGINT w, (-9223372036854775808)::BIGINT big, true f,
         'red' c, 12::BIGINT k,
         'ann' u, DATE '2024-02-29' d, TIMESTAMP '2024-02-29 13:45:06.7' m, 'home' p"""


def read(text: str) -> Typed:
    return translate(sqlglot.parse_one(text, dialect="duckdb"), SCOPE)


def value(text: str, **cells: str) -> Any:
    """Of the expression on the one row, with some cells replaced by SQL."""
    changed = ", ".join(f"{sql} AS {name}" for name, sql in cells.items())
    table = f"SELECT * REPLACE ({changed}) FROM ({ROW})" if cells else ROW
    sql = DUCKDB.text(exp.select(read(text).tree.as_("v")))
    return duckdb.sql(f"{sql} FROM ({table}) AS t").fetchall()[0][0]


D, M = datetime.date, datetime.datetime


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w + 1", 43),
        ("w - 50 * 2", -58),
        ("(w + 1) * 2", 86),
        ("-(w + 1) % 10", -3),
        ("w / 8", 5.25),
        ("w / 0", None),
        ("x / (w - 42)", None),
        ("w // 5", 8),
        ("-w // 5", -8),
        ("-x // 10", -3),
        ("w // 0", None),
        ("w % 0", None),
        ("MOD(-7, 2)", -1),
        ("x % 10", 7.5),
        ("x % 0", None),
        ("-big", None),
        ("ABS(big)", None),
        ("big // -1", None),
        ("big % -1", None),
        ("big + 1", -(2.0**63)),
        ("2000000000 + 2000000000", 4_000_000_000),
        ("9223372036854775807 + 1", 2.0**63),
        ("-9223372036854775808", -(2**63)),
        ("1e300 * 1e300 * x / 1e300", None),
        ("ABS(y)", 0.5),
        ("SIGN(y)", -1),
        ("FLOOR(y)", -1),
        ("CEIL(y)", 0),
        ("TRUNC(y)", 0),
        ("ROUND(y)", -1),
        ("ROUND(x)", 38),
        ("ROUND(x, 0)", 38),
        ("ROUND(x, -1)", 40),
        ("ROUND(w, -1)", 40),
        ("ROUND(45, -1)", 50),
        ("ROUND(-45, -1)", -50),
        ("ROUND(w, 2)", 42),
        ("ROUND(y / 3, 2)", -0.17),
        ("FLOOR(x / 10) * 10", 30),
        ("SQRT(w - 6)", 6.0),
        ("SQRT(y)", None),
        ("LN(1)", 0.0),
        ("LN(0)", None),
        ("LN(y)", None),
        ("LOG(1000)", 3.0),
        ("LOG10(100)", 2.0),
        ("LOG2(8)", 3.0),
        ("LOG(3, 9)", 2.0),
        ("EXP(0)", 1.0),
        ("EXP(x * 100)", None),
        ("POWER(w, 2)", 1764.0),
        ("w ^ 2", 1764.0),
        ("POWER(y, 0.5)", None),
        ("POWER(0, -1)", None),
        ("WIDTH_BUCKET(x, 0, 100, 10)", 4),
        ("WIDTH_BUCKET(y, 0, 100, 10)", 0),
        ("WIDTH_BUCKET(100, 0, 100, 10)", 11),
        ("GREATEST(w, 50)", 50),
        ("LEAST(x, w)", 37.5),
        ("GREATEST(w, NULL)", None),
        ("LEAST(GREATEST(big, 0), 100)", 0),
        ("COALESCE(NULL, w)", 42),
        ("IFNULL(NULL, 'a')", "a"),
        ("NULLIF(w, 42)", None),
        ("NULLIF(w, 43)", 42),
        ("NULLIF(w, NULL)", 42),
        ("IF(f, 1, 2.5)", 1.0),
        ("CASE WHEN w > 100 THEN 'many' WHEN w > 40 THEN 'some' END", "some"),
        ("CASE w WHEN 1 THEN 'one' ELSE 'else' END", "else"),
        ("CASE c WHEN 'red' THEN 1 END", 1),
        ("w = 42 AND NOT f OR NULL", None),
        ("f AND NULL", None),
        ("NOT f AND NULL", False),
        ("f IS TRUE", True),
        ("f IS NOT FALSE", True),
        ("NULL IS UNKNOWN", True),
        ("w IS NOT NULL", True),
        ("w IS DISTINCT FROM NULL", True),
        ("w BETWEEN 1 AND 42", True),
        ("w NOT BETWEEN 1 AND 42", False),
        ("w IN (1, 42)", True),
        ("w NOT IN (1, 2, NULL)", None),
        ("w = NULL", None),
        ("c IN ('red', 'green')", True),
        ("k = 12", True),
        ("k = '12'", True),
        ("k <> 13", True),
        ("k IN (11, 12)", True),
        ("k = u", False),
        ("k LIKE '1%'", True),
        ("c LIKE 'r_d'", True),
        ("c NOT LIKE 'R%'", True),
        ("c ILIKE 'R%'", True),
        ("'10%' LIKE '10!%' ESCAPE '!'", True),
        ("'100' LIKE '10!%' ESCAPE '!'", False),
        ("LOWER(UPPER(c))", "red"),
        ("LENGTH(c)", 3),
        ("LENGTH(k)", 2),
        ("TRIM('  a ') || LTRIM('xb', 'x') || RTRIM('c ')", "abc"),
        ("SUBSTR('hello', 2, 3)", "ell"),
        ("SUBSTRING('hello' FROM 2)", "ello"),
        ("SUBSTR('hello', -3)", "llo"),
        ("LEFT('hello', 2) || RIGHT('hello', 2)", "helo"),
        ("REPLACE('a-b', '-', ' and ')", "a and b"),
        ("CONCAT('a', NULL, w, d)", "a422024-02-29"),
        ("'a' || NULL", None),
        ("STARTS_WITH(c, 're')", True),
        ("ENDS_WITH(c, 'x')", False),
        ("SUFFIX(c, 'ed')", True),
        ("CONTAINS(c, 'e')", True),
        ("STRPOS(c, 'd')", 3),
        ("POSITION('d' IN c)", 3),
        ("CAST('12.7' AS INT)", 13),
        ("CAST('abc' AS INT)", None),
        ("CAST(x AS INT)", 38),
        ("CAST(300 AS TINYINT)", None),
        ("x::BIGINT", 38),
        ("CAST('nan' AS DOUBLE)", None),
        ("CAST('-inf' AS DOUBLE)", None),
        ("CAST('1e400' AS DOUBLE)", None),
        ("CAST(' 2.5 ' AS DOUBLE)", 2.5),
        ("CAST(k AS BIGINT) + 1", 13.0),
        ("CAST(f AS INT) + 1", 2),
        ("CAST(w AS VARCHAR)", "42"),
        ("CAST(f AS VARCHAR)", "true"),
        ("CAST(w AS BOOLEAN)", True),
        ("CAST('maybe' AS BOOLEAN)", None),
        ("CAST(m AS DATE)", D(2024, 2, 29)),
        ("CAST(d AS TIMESTAMP)", M(2024, 2, 29)),
        ("CAST(LOWER('2024-01-05') AS DATE)", D(2024, 1, 5)),
        ("CAST(LOWER('infinity') AS DATE)", None),
        ("CAST(LOWER('12024-01-05') AS TIMESTAMP)", None),
        ("DATE(m)", D(2024, 2, 29)),
        ("YEAR(d)", 2024),
        ("EXTRACT(MONTH FROM d)", 2),
        ("DATE_PART('day', m)", 29),
        ("HOUR(m) * 100 + MINUTE(m)", 1345),
        ("SECOND(m)", 6),
        ("HOUR(d)", 0),
        ("DAYOFWEEK(d)", 4),
        ("ISODOW(DATE '2024-03-03')", 7),
        ("WEEKDAY(DATE '2024-03-03')", 0),
        ("QUARTER(d)", 1),
        ("WEEK(DATE '2021-01-01')", 53),
        ("DAYOFYEAR(d)", 60),
        ("EXTRACT(EPOCH FROM TIMESTAMP '1970-01-01 00:01:00')", 60.0),
        ("MONTHNAME(d) || DAYNAME(d)", "FebruaryThursday"),
        ("LAST_DAY(DATE '2023-02-01')", D(2023, 2, 28)),
        ("DATE_TRUNC('month', d)", D(2024, 2, 1)),
        ("DATE_TRUNC('week', d)", D(2024, 2, 26)),
        ("DATE_TRUNC('hour', m)", M(2024, 2, 29, 13)),
        ("DATE_TRUNC('day', m)", M(2024, 2, 29)),
        ("DATE_DIFF('day', DATE '2024-01-01', d)", 59),
        ("DATEDIFF('month', d, DATE '2025-01-01')", 11),
        ("DATE_DIFF('hour', d, m)", 13),
        ("d - DATE '2024-01-01'", 59),
        ("d + INTERVAL 1 YEAR", D(2025, 2, 28)),
        ("d - INTERVAL '3 months'", D(2023, 11, 29)),
        ("INTERVAL 1 DAY + d", D(2024, 3, 1)),
        ("d + INTERVAL 2 HOUR", M(2024, 2, 29, 2)),
        ("m - INTERVAL 1 DAY", M(2024, 2, 28, 13, 45, 6, 700000)),
        ("DATE_ADD(d, INTERVAL 1 DAY)", D(2024, 3, 1)),
        ("d + 1", D(2024, 3, 1)),
        ("d - w", D(2024, 1, 18)),
        ("d + big", None),
        ("d + INTERVAL 9000 YEAR", None),
        ("m - INTERVAL 3000 YEAR", None),
        ("d > '2024-01-31'", True),
        ("d BETWEEN '2024-02-29' AND '2024-03-01'", True),
        ("d < '2024-02-29 00:00:01'", True),
        ("m >= d", True),
        ("d IN ('2024-02-29', NULL)", True),
        ("DATE '2024-02-29' = d", True),
        ("NULL", None),
        ("0.1 + 0.2", 0.3),  # numbers of the query are decimals, as in SQL
        ("1e5", 1e5),
        ("TRUE", True),
    ],
)
def test_the_value_of(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


SQL = {"real": "DOUBLE", "whole": "BIGINT", "flag": "BOOLEAN", "date": "DATE", "moment": "TIMESTAMP"}
NULLS = {name: f"NULL::{SQL.get(kind.type, 'VARCHAR')}" for name, kind in COLUMNS.items()}


@pytest.mark.parametrize(
    "text",
    [
        "x + 1",
        "GREATEST(x, 1, w)",
        "LEAST(c, 'a')",
        "WIDTH_BUCKET(x, 0, 9, 3)",
        "ROUND(x, 2)",
        "c || 'a'",
        "d + 1",
        "d + w",
        "DATE_TRUNC('day', m)",
        "k = 1",
        "c LIKE '%'",
        "w IN (1)",
        "x BETWEEN 0 AND 1",
        "CAST(f AS INT)",
        "YEAR(m)",
        "-w",
        "SQRT(x)",
        "POWER(x, 0)",
        "CONTAINS(c, '')",
        "CASE WHEN f THEN 1 END",
        "NULLIF(w, 3)",
        "SIGN(y)",
        "NOT f",
    ],
)
def test_null_in_null_out(text: str) -> None:
    assert value(text, **NULLS) is None


def bounds(text: str) -> tuple[str, Any, Any]:
    kind = read(text).kind
    return kind.type, kind.lower, kind.upper


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 1", ("real", 1, 121)),
        ("w * w", ("whole", 0, 9801)),
        ("w - 100", ("whole", -100, -1)),
        ("w / 4", ("real", 0, Fraction(99, 4))),
        ("10 / w", ("real", Fraction(float(Fraction(10, 99))), 10)),
        ("x / y", ("real", None, None)),
        ("x / x", ("real", 0, None)),
        ("big + 1", ("real", None, None)),
        ("LEAST(GREATEST(big, 0), 100)", ("whole", 0, 100)),
        ("GREATEST(x, 5)", ("real", 5, 120)),
        ("x % 10", ("real", 0, 10)),
        ("w % 10", ("whole", 0, 9)),
        ("ABS(y)", ("real", 0, 1)),
        ("FLOOR(x / 10)", ("whole", 0, 12)),
        ("FLOOR(big / 10)", ("real", None, None)),
        ("ROUND(x, -1)", ("whole", 0, 120)),
        ("ROUND(y, 1)", ("real", -1, 1)),
        ("CAST(x AS INT)", ("whole", 0, 120)),
        ("CAST(x AS TINYINT)", ("whole", 0, 120)),
        ("CAST('5' AS INT)", ("whole", None, None)),
        ("CAST(w AS DOUBLE)", ("real", 0, 99)),
        ("CASE WHEN f THEN x ELSE -1 END", ("real", -1, 120)),
        ("COALESCE(w, 200)", ("whole", 0, 200)),
        ("NULLIF(x, 3)", ("real", 0, 120)),
        ("LENGTH(k)", ("whole", 0, None)),
        ("YEAR(d)", ("whole", 1, 9999)),
        ("DATE_DIFF('day', d, m)", ("whole", None, None)),
        ("POWER(y, 2)", ("real", 0, 1 + Fraction(1, 2**40))),
    ],
)
def test_the_interval_of(text: str, expected: tuple[str, Any, Any]) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("MONTH(d)", tuple(range(1, 13))),
        ("HOUR(m)", tuple(range(24))),
        ("DAYOFWEEK(d)", tuple(range(7))),
        ("QUARTER(d)", (1, 2, 3, 4)),
        ("YEAR(d)", None),
        ("FLOOR(x / 10) * 10", tuple(range(0, 121, 10))),
        ("ROUND(w, -1)", tuple(range(0, 101, 10))),
        ("w // 10", tuple(range(10))),
        ("WIDTH_BUCKET(x, 0, 100, 4)", tuple(range(6))),
        ("w > 3", (False, True)),
        ("CASE WHEN w > 3 THEN 'many' ELSE 'few' END", ("many", "few")),
        ("CASE WHEN f THEN c ELSE 'none' END", ("red", "Blue", "none")),
        ("CASE WHEN f THEN k ELSE 'none' END", None),
        ("IF(f, 1, 0.5)", (1.0, 0.5)),
        ("COALESCE(c, 'none')", ("red", "Blue", "none")),
        ("UPPER(c)", ("RED", "BLUE")),
        ("LEFT(c, 1)", ("r", "B")),
        ("CAST(f AS INT)", (0, 1)),
        ("CAST(f AS VARCHAR)", ("false", "true")),
        ("CAST(MONTH(d) AS VARCHAR)", tuple(map(str, range(1, 13)))),
        ("NULLIF(c, 'red')", ("red", "Blue")),
        ("SIGN(y)", (-1, 0, 1)),
        ("SIGN(x)", (0, 1)),
        ("w * w * w", None),
        ("NULL", ()),
        ("k", None),
    ],
)
def test_the_values_of(text: str, values: tuple[Any, ...] | None) -> None:
    assert read(text).kind.values == values


def test_only_the_bare_unit_column_names_the_unit() -> None:
    assert read("u").kind.unit and read("(t.u)").kind.unit
    assert not read("COALESCE(u, 'x')").kind.unit
    assert not read("CAST(u AS VARCHAR)").kind.unit
    assert not read("NULLIF(u, 'x')").kind.unit
    assert not read("CASE WHEN f THEN u END").kind.unit


def test_only_bare_columns_of_public_tables_keep_their_origin() -> None:
    assert read("p").kind.origin == ("places", "p")
    assert read("LOWER(p)").kind.origin is None
    assert read("NULLIF(p, 'home')").kind.origin is None


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("1", False),
        ("x", True),
        ("x IS NULL", False),
        ("COALESCE(x, 0)", False),
        ("CASE WHEN f THEN 1 ELSE 2 END", False),
        ("CASE WHEN f THEN 1 END", True),
        ("1 / 2", False),
        ("1 / 0", True),
        ("1 + 2", False),
        ("GREATEST(1, 2)", False),
        ("1 = NULL", True),
    ],
)
def test_what_may_be_null(text: str, nullable: bool) -> None:
    assert read(text).kind.nullable is nullable


def test_trees_quote_names_and_share_nothing_with_the_query() -> None:
    query = sqlglot.parse_one("X + CASE WHEN f THEN x ELSE 1 END", dialect="duckdb")
    before = repr(query)
    found = translate(query, SCOPE)
    assert repr(query) == before
    assert not {id(each) for each in query.walk()} & {id(each) for each in found.tree.walk()}
    assert all(each.quoted for each in found.tree.find_all(exp.Identifier))
    nodes = list(found.tree.walk())
    assert len({id(each) for each in nodes}) == len(nodes)


def test_aggregates_go_to_the_clause_that_allows_them() -> None:
    seen: list[str] = []

    def special(node: exp.Expression) -> Typed:
        seen.append(node.sql())
        return Typed(exp.column("_total", quoted=True), Kind("whole", Fraction(0), Fraction(9)))

    found = translate(sqlglot.parse_one("SUM(x) + 1"), Scope(SCOPE.sources, special=special))
    assert seen == ["SUM(x)"]
    assert (found.kind.lower, found.kind.upper) == (1, 10)


def test_long_chains_are_read() -> None:
    assert value(" OR ".join(f"w = {each}" for each in range(300))) is True
    assert value(" + ".join(["w"] * 90)) == 42 * 90
