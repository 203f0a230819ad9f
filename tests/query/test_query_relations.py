"""Subqueries, CTEs, UNION ALL, DISTINCT, and subqueries in conditions: the unit survives, or the query is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sqlglot
from sqlglot import exp

from sfumato.errors import PlanError
from sfumato.query.refusal import QueryError
from sfumato.query.relations.bases import base_tables, carries
from sfumato.query.relations.reading import reading
from sfumato.query.relations.rows_of import with_ctes
from sfumato.schema import Schema, Table, key, real, whole
from sfumato.units import Unit
from tests.query.units_kit import ROW, SCHEMA, USER, as_sql_says, check, meant, nasty_database, run

SOUND = [
    "SELECT * FROM visits",
    "FROM visits",
    "SELECT v.* EXCLUDE (x) FROM visits AS v",
    "SELECT user, n + 1 AS m, m * 2 AS k FROM visits WHERE m > 2 AND ok",
    "SELECT * FROM (SELECT user AS u, n FROM visits WHERE n > 1) AS t WHERE n < 4",
    "SELECT * FROM (SELECT user, n FROM visits ORDER BY n)",
    "SELECT c, b FROM visits AS v(a, b, c, d, e, f, g)",
    "WITH t AS (SELECT user, n FROM visits WHERE ok) SELECT user, n FROM t WHERE n > 1",
    "WITH t(u, m) AS (SELECT user, n FROM visits), s AS (SELECT * FROM t WHERE m > 1) SELECT a.u, b.m FROM s AS a"
    " JOIN t AS b ON a.u = b.u AND a.m > 900",
    "WITH visits AS (SELECT user, n FROM visits WHERE n = 1) SELECT * FROM visits",
    "SELECT * FROM (WITH t AS (SELECT user, n FROM visits) SELECT * FROM t) AS s",
    "SELECT user, n FROM visits UNION ALL SELECT user, n FROM visits WHERE n > 2",
    "SELECT user, n FROM visits UNION ALL SELECT customer, amount FROM orders UNION ALL SELECT user, y FROM visits",
    "(SELECT user, place AS p FROM visits) UNION ALL (SELECT customer, item FROM orders ORDER BY 1)",
    "SELECT u, SUM(n) AS s FROM (SELECT user AS u, n FROM visits UNION ALL SELECT user, n FROM visits) AS t GROUP BY u",
    "SELECT DISTINCT user, place FROM visits",
    "SELECT DISTINCT user FROM visits WHERE n > 0",
    "SELECT DISTINCT user, y > 0 AS up, n FROM visits",
    "SELECT user, n FROM visits WHERE place IN (SELECT place FROM places)",
    "SELECT user, n FROM visits WHERE place NOT IN (SELECT place FROM places WHERE place IS NOT NULL)",
    "SELECT user, n FROM visits WHERE tag IN (SELECT region FROM regions)",
    "SELECT user, n FROM visits AS v WHERE EXISTS (SELECT 1 FROM places AS p WHERE p.place = v.place AND size > v.y)",
    "SELECT user, n FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM places WHERE places.place = v.place)",
    "SELECT user, n FROM visits AS v WHERE n IN (SELECT CAST(size AS INT) FROM places AS p WHERE p.place = v.place)",
    "SELECT user, y - (SELECT AVG(size) FROM places) AS d FROM visits WHERE n >= (SELECT MIN(size) FROM places)",
    "SELECT user, n FROM visits WHERE place IN (SELECT place FROM places GROUP BY place HAVING COUNT(*) > 1)",
    "SELECT user, c FROM visits JOIN (SELECT place, COUNT(*) AS c FROM places GROUP BY place) AS p USING (place)",
]


@pytest.mark.parametrize("sql", SOUND)
def test_rows_keep_their_unit_and_depend_on_no_other(sql: str) -> None:
    check(sql)
    as_sql_says(sql)


def test_distinct_zeros_do_not_depend_on_which_came_first() -> None:
    rows = check("SELECT DISTINCT user, y FROM visits")
    assert "-0.0" not in {str(row["y"]) for row in rows}


@pytest.mark.slow
def test_the_same_step_on_many_rows_is_the_same_with_two_threads() -> None:
    rows = check("SELECT a.user, a.x + b.y AS z FROM visits AS a JOIN visits AS b ON a.user = b.user AND a.n = 3")
    assert len(rows) > 30_000


def test_kinds_follow_union_all() -> None:
    made = meant("SELECT user, n, place FROM visits UNION ALL SELECT customer, amount, 'z' FROM orders")
    number, place = made.columns["n"], made.columns["place"]
    assert (number.type, number.lower, number.upper) == ("real", Fraction(0), Fraction(1000))
    assert set(place.values or ()) == {"a", "b", "c", "d", "z"}
    assert made.columns["user"].unit and not made.single
    mixed = meant("SELECT user AS u FROM visits UNION ALL SELECT item FROM orders")
    assert not mixed.columns["u"].unit


def test_a_unit_alone_is_single() -> None:
    assert meant("SELECT DISTINCT user FROM visits").single
    assert not meant("SELECT DISTINCT user, n FROM visits").single
    assert meant("SELECT n FROM visits WHERE n > 1", ROW).single


def test_rows_of_different_tables_are_different_units() -> None:
    made = meant("SELECT n FROM visits UNION ALL SELECT amount FROM orders", ROW)
    assert made.single and not carries(made)
    fanned = "SELECT n, size FROM visits JOIN places USING (place) UNION ALL SELECT amount, 1.5 FROM orders"
    made = meant(fanned, ROW)
    assert carries(made) and not made.single
    rows = run(made, nasty_database())
    assert not {row["_unit"] for row in rows[:-7]} & {row["_unit"] for row in rows[-7:]}


REFUSED = [
    ("SELECT place FROM places UNION ALL SELECT place FROM visits", "belong to nobody", "join a public table"),
    ("SELECT user FROM visits UNION SELECT customer FROM orders", "UNION compares rows", "use UNION ALL"),
    ("SELECT user FROM visits EXCEPT SELECT customer FROM orders", "EXCEPT compares rows", "use UNION ALL"),
    ("SELECT user FROM visits INTERSECT SELECT customer FROM orders", "INTERSECT compares rows", "use UNION ALL"),
    ("SELECT user FROM visits UNION ALL BY NAME SELECT user FROM visits", "BY NAME", "leave it out"),
    ("SELECT user, n FROM visits UNION ALL SELECT user FROM visits", "as many columns", "same columns"),
    ("SELECT ok FROM visits UNION ALL SELECT n FROM visits", "flag and whole", "CAST"),
    ("SELECT DISTINCT place FROM visits", "merges rows of different units", "select the unit's column"),
    ("SELECT DISTINCT ON (user) user, n FROM visits", "order of rows", "ROW_NUMBER()"),
    ("SELECT user FROM visits LIMIT 3", "LIMIT in a subquery", "end of the whole query"),
    ("SELECT user FROM visits ORDER BY n LIMIT 3", "LIMIT in a subquery", "end of the whole query"),
    ("SELECT user FROM visits OFFSET 3", "OFFSET in a subquery", "end of the whole query"),
    ("SELECT user FROM visits TABLESAMPLE 10%", "draws rows at random", "leave it out"),
    ("SELECT user FROM visits USING SAMPLE 10", "draws rows at random", "leave it out"),
    ("SELECT user FROM visits, LATERAL (SELECT 1 AS one) AS t", "LATERAL cannot stand in FROM", "name a table"),
    ("SELECT user FROM visits, UNNEST(tag) AS t", "a list that stands in the query", "UNNEST(['a', 'b'])"),
    ("WITH RECURSIVE t AS (SELECT user FROM visits) SELECT * FROM t", "recursive WITH", "plain CTEs"),
    ("SELECT * FROM (VALUES (1), (n)) AS t", "no column 'n'", ""),
    ("SELECT * FROM glob('*')", "A function cannot stand in FROM", "name a table"),
    ("SELECT * FROM read_csv('secret.csv')", "A function cannot stand in FROM", "visits, orders"),
    ("SELECT * FROM 'secret.csv'", "no table 'secret.csv'", "visits, orders"),
    ("SELECT * FROM information_schema.tables", "no table 'information_schema.tables'", "visits, orders"),
    ("SELECT * FROM main.visits", "no table 'main.visits'", "visits, orders"),
    ("SELECT * FROM duckdb_settings()", "A function cannot stand in FROM", "visits, orders"),
    ("SELECT user INTO t FROM visits", "SELECT INTO writes", "leave INTO out"),
    ("SELECT user FROM visits FOR UPDATE", "FOR UPDATE locks", "leave it out"),
    ("SELECT * FROM visits PIVOT (SUM(n) FOR place IN ('a'))", "PIVOT makes columns", "CASE"),
    ("SELECT COUNT(*) AS one", "without FROM", "add FROM"),
    ("SELECT _unit FROM visits", "reserved: '_unit'", "another name"),
    ("SELECT n AS _n FROM visits", "reserved: '_n'", "another name"),
    ("SELECT n FROM visits AS _v", "reserved: '_v'", "another name"),
    ("SELECT rowid FROM visits", "no column 'rowid'", "use one of: user"),
    ("SELECT user, n, n FROM visits", "Two columns are called 'n'", "AS"),
    ("SELECT * REPLACE (1 AS n) FROM visits", "REPLACE", "leave it out"),
    ("SELECT w.* FROM visits AS v", "no table 'w'", "use one of: v"),
    ("SELECT COLUMNS('n') FROM visits", "", ""),
    ("SELECT user FROM visits WHERE n IN (SELECT n FROM visits)", "must equate the units", "add visits2.user = visits"),
    (
        "SELECT user FROM visits WHERE EXISTS (SELECT 1 FROM orders)",
        "must equate the units",
        "add orders.customer = visits",
    ),
    ("SELECT place FROM places WHERE EXISTS (SELECT 1 FROM orders)", "must equate the units", "join the tables"),
    (
        "SELECT user, (SELECT MAX(n) FROM visits) AS m FROM visits",
        "must equate the units",
        "visits2.user = visits.user",
    ),
    ("SELECT user, (SELECT size FROM places) AS m FROM visits", "must be an aggregate", "SELECT MAX(x)"),
    ("SELECT user, (SELECT SUM(size) OVER () FROM places) AS m FROM visits", "must be an aggregate", "MAX(x)"),
    ("SELECT user, (SELECT MAX(size) FROM places GROUP BY region) AS m FROM visits", "must be an aggregate", "MAX(x)"),
    ("SELECT user FROM visits WHERE n = ANY (SELECT size FROM places)", "ANY and ALL", "IN (SELECT ...)"),
    ("SELECT user FROM visits WHERE (n, x) IN (SELECT size, size FROM places)", "one column", "EXISTS"),
    ("SELECT user FROM visits WHERE n IN (SELECT place FROM places)", "IN compares whole with text", "cast"),
    (
        "SELECT user FROM visits AS v WHERE EXISTS (SELECT 1 FROM places AS v WHERE size > n)",
        "uses again",
        "another name",
    ),
    ("SELECT user FROM visits WHERE n", "", ""),
    ("SELECT user FROM visits QUALIFY n > 1", "QUALIFY filters by window functions", "use WHERE"),
    ("SELECT user FROM visits WHERE SUM(n) > 1", "An aggregate cannot stand here", "HAVING"),
]


@pytest.mark.parametrize(("sql", "rule", "rewrite"), REFUSED)
def test_what_cannot_be_followed_is_refused(sql: str, rule: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        meant(sql)
    assert rule in refused.value.rule
    assert rewrite in refused.value.rewrite
    assert str(refused.value.within(sql))


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT DISTINCT n FROM visits", "each row is its own unit"),
        ("SELECT n FROM visits UNION ALL SELECT n FROM visits", "gives a row twice"),
        ("SELECT user, SUM(n) AS s FROM visits GROUP BY user", "each row is its own unit"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY user) AS r FROM visits", "each row is its own unit"),
    ],
)
def test_where_rows_are_units_nothing_is_done_across_rows(sql: str, rule: str) -> None:
    with pytest.raises(QueryError, match=rule):
        meant(sql, ROW)


def test_public_rows_stay_public() -> None:
    made = meant("SELECT DISTINCT region, MAX(size) AS m FROM places GROUP BY region")
    assert not made.private and not made.single and made.columns["region"].origin == ("places", "region")
    assert len(run(made, nasty_database())) == 3


def test_a_reading_has_rows_and_unit_but_no_columns() -> None:
    select = sqlglot.parse_one("SELECT COUNT(*) FROM visits AS v JOIN places AS p USING (place) WHERE n > 1")
    assert isinstance(select, exp.Select)
    rows = reading(select, base_tables(SCHEMA, USER), USER)
    assert rows.private and not rows.single and not rows.select.expressions
    assert rows.unit is not None and rows.unit.sql() == '"v"."_unit"'
    made = rows.project({"k": rows.translate(sqlglot.parse_one("n + 1"))})
    assert list(made.columns) == ["k"] and made.tree.named_selects == ["_unit", "k"]
    subquery = sqlglot.parse_one("place IN (SELECT place FROM places)")
    assert rows.translate(subquery).kind.type == "flag"


def test_ctes_become_tables() -> None:
    query = sqlglot.parse_one("WITH t AS (SELECT user FROM visits) SELECT COUNT(*) FROM t")
    assert isinstance(query, exp.Query)
    bare, tables = with_ctes(query, base_tables(SCHEMA, USER), USER)
    assert bare.args.get("with_") is None and query.args.get("with_") is not None
    assert tables["t"].private and set(tables) == {*SCHEMA.tables, "t"}


def test_private_tables_must_say_whose_rows_they_hold() -> None:
    tables = {"t": Table({"x": real(0, 1)})}
    with pytest.raises(PlanError, match="does not say whose its rows are"):
        base_tables(Schema(tables), USER)
    assert base_tables(Schema(tables), ROW)["t"].single
    with pytest.raises(PlanError, match="cannot name units"):
        base_tables(Schema({"t": Table({"user": whole(0, 9)})}), USER)
    assert carries(base_tables(Schema({"t": Table({"user": key()})}), USER)["t"])
    with pytest.raises(QueryError, match="Two tables are called"):
        base_tables(Schema({"t": Table({"user": key()}), "T": Table({"user": key()})}), USER)
    with pytest.raises(QueryError, match="two columns 'x'"):
        base_tables(Schema({"t": Table({"user": key(), "x": key(), "X": key()})}), Unit("user:user"))


def test_names_are_compared_without_case_and_ours_stay_hidden() -> None:
    schema = Schema({"Data": Table({"_id": key(), "Wage": real(0, 1), "_x": key()}, unit="_id")})
    made = meant("SELECT WAGE FROM data", Unit("user:_id"), schema)
    assert list(made.columns) == ["wage"]
    assert made.tree.sql() == (
        'SELECT "data"."_unit" AS "_unit", "data"."wage" AS "wage" FROM (SELECT "_id" AS "_unit", "Wage" AS "wage" '
        'FROM "Data" WHERE NOT "_id" IS NULL) AS "data"'
    )
