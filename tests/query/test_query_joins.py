"""Joins keep every row with its unit, and refuse rows that would have two or none."""

from __future__ import annotations

import pytest

from sfumato.query.refusal import QueryError
from sfumato.query.relations.bases import carries
from tests.query.units_kit import ROW, SCHEMA, as_sql_says, check, meant, nasty, run

SOUND = [
    "SELECT v.user, p.region, size FROM visits AS v JOIN places AS p ON v.place = p.place",
    "SELECT v.user, p.region FROM visits AS v JOIN places AS p ON v.place = p.place AND p.size > v.y",
    "SELECT v.user, p.region FROM visits AS v LEFT JOIN places AS p ON v.place = p.place AND v.ok",
    "SELECT v.user, p.region FROM places AS p RIGHT JOIN visits AS v ON v.place = p.place",
    "SELECT v.user, p.region FROM visits AS v CROSS JOIN places AS p WHERE v.n < 3",
    "SELECT v.user, p.region FROM visits AS v, places AS p WHERE v.place = p.place",
    "SELECT * FROM visits JOIN places USING (place) LEFT JOIN regions USING (region)",
    "SELECT * FROM visits NATURAL JOIN places",
    "SELECT * FROM (visits NATURAL JOIN places) NATURAL LEFT JOIN regions",
    "SELECT user, n, amount FROM visits NATURAL JOIN (SELECT customer AS user, amount FROM orders) AS o",
    "SELECT v.user, p.region FROM ((visits AS v JOIN places AS p ON v.place = p.place))",
    "SELECT v.user, r.land FROM visits AS v JOIN (places AS p JOIN regions AS r ON p.region = r.region)"
    " ON v.place = p.place",
    "SELECT v.user, o.amount, r.land FROM visits AS v JOIN (orders AS o CROSS JOIN regions AS r)"
    " ON v.user = o.customer AND v.n > o.amount AND r.region = v.tag",
    "SELECT v.user, n, amount, w.y FROM visits AS v, orders AS o, (SELECT user, MAX(y) AS y FROM visits GROUP BY user)"
    " AS w WHERE w.user = v.user AND o.customer = w.user AND n > 2",
    "SELECT v.user, n, amount FROM regions AS r, visits AS v, places AS p, orders AS o"
    " WHERE p.place = v.place AND r.region = p.region AND v.user = o.customer",
    "SELECT v.* EXCLUDE (x, y) FROM visits AS v SEMI JOIN places AS p ON v.place = p.place",
    "SELECT v.user, v.n FROM visits AS v ANTI JOIN places AS p ON v.place = p.place",
    "SELECT v.user, v.n, o.amount FROM visits AS v JOIN orders AS o ON v.user = o.customer",
    "SELECT v.user, v.n, o.amount FROM visits AS v JOIN orders AS o ON (o.customer = v.user) AND o.item = v.tag",
    "SELECT v.user, v.n, o.amount FROM visits AS v LEFT JOIN orders AS o ON v.user = o.customer AND v.n > 1",
    "SELECT o.customer, v.n FROM visits AS v RIGHT JOIN orders AS o ON v.user = o.customer AND v.n > 1",
    "SELECT v.user, o.customer, n FROM visits AS v FULL JOIN orders AS o ON v.user = o.customer AND v.n > o.amount",
    "SELECT v.user, n, amount FROM visits AS v, orders AS o WHERE o.customer = v.user AND n > 2",
    "SELECT v.user, v.n FROM visits AS v SEMI JOIN orders AS o ON v.user = o.customer AND v.tag = o.item",
    "SELECT v.user, v.n FROM visits AS v ANTI JOIN orders AS o ON v.user = o.customer",
    "SELECT a.user, a.n, b.place FROM visits AS a JOIN visits AS b ON a.user = b.user AND a.n = 3 AND b.n = 0",
    "SELECT a.user, b.x FROM visits AS a"
    " LEFT JOIN (SELECT user, MAX(x) AS x FROM visits WHERE n > 1 GROUP BY user) AS b USING (user)",
    "SELECT user, s, t FROM (SELECT user, SUM(y) AS s FROM visits GROUP BY user) AS a"
    " FULL JOIN (SELECT customer AS user, SUM(amount) AS t FROM orders GROUP BY customer) AS b USING (user)",
    "SELECT user, n, amount FROM visits JOIN (SELECT customer AS user, amount FROM orders) AS o USING (user)"
    " JOIN (SELECT user, COUNT(*) AS c FROM visits GROUP BY user) AS k USING (user) WHERE c < 10",
    "SELECT user, s, t, u FROM (SELECT user, SUM(n) AS s FROM visits WHERE n > 2 GROUP BY user) AS a"
    " FULL JOIN (SELECT customer AS user, SUM(amount) AS t FROM orders GROUP BY customer) AS b USING (user)"
    " FULL JOIN (SELECT user, MIN(y) AS u FROM visits GROUP BY user) AS c USING (user)",
]


@pytest.mark.parametrize("sql", SOUND)
def test_a_joined_row_belongs_to_one_unit_and_depends_on_no_other(sql: str) -> None:
    check(sql)
    as_sql_says(sql)


def test_units_of_two_tables_meet_as_texts_whatever_their_types() -> None:
    rows = check("SELECT user, customer FROM visits FULL JOIN orders ON user = customer")
    assert {str(row["_unit"]) for row in rows} == {"1", "2", "3", "4", "5", "6", "7x"}


def test_units_of_one_table_are_compared_as_they_are() -> None:
    tree = meant("SELECT a.user FROM visits AS a JOIN visits AS b ON a.user = b.user").tree
    assert "VARCHAR" not in tree.sql()


def test_where_units_are_single_their_join_is_single() -> None:
    per_user = "(SELECT user, COUNT(*) AS n FROM visits GROUP BY user)"
    assert meant(f"SELECT a.user FROM {per_user} AS a FULL JOIN {per_user} AS b USING (user)").single
    assert not meant(f"SELECT a.user FROM {per_user} AS a JOIN visits AS b USING (user)").single
    assert not meant(f"SELECT a.user FROM {per_user} AS a JOIN places AS p ON a.n > p.size").single
    assert meant(f"SELECT a.user FROM {per_user} AS a SEMI JOIN places AS p ON a.n > p.size").single


def test_a_side_that_may_be_missing_does_not_name_the_unit() -> None:
    made = meant("SELECT v.user, o.customer FROM visits AS v LEFT JOIN orders AS o ON v.user = o.customer")
    assert made.columns["user"].unit and not made.columns["customer"].unit and made.columns["customer"].nullable
    with pytest.raises(QueryError, match="GROUP BY must hold the unit"):
        meant("SELECT customer, SUM(n) FROM visits LEFT JOIN orders ON user = customer GROUP BY customer")
    made = meant("SELECT user FROM visits FULL JOIN (SELECT customer AS user FROM orders) AS o USING (user)")
    assert made.columns["user"].unit


REFUSED = [
    ("visits AS v JOIN orders AS o ON v.tag = o.item", "only meet within one unit", "add v.user = o.customer"),
    ("visits AS v JOIN orders AS o ON v.user = o.customer OR v.ok", "only meet within one unit", "v.user = o.customer"),
    ("visits AS v JOIN orders AS o ON NOT v.user = o.customer", "only meet within one unit", "v.user = o.customer"),
    ("visits AS v JOIN orders AS o ON v.user = o.item", "only meet within one unit", "v.user = o.customer"),
    ("visits AS v JOIN orders AS o ON v.user = v.user", "only meet within one unit", "v.user = o.customer"),
    ("visits AS v CROSS JOIN orders AS o", "only meet within one unit", "v.user = o.customer"),
    ("visits AS v LEFT JOIN orders AS o ON TRUE WHERE v.user = o.customer", "only meet within one unit", "add"),
    ("visits AS v JOIN (SELECT item FROM orders) AS o ON v.tag = o.item", "within one unit", "select the unit"),
    ("visits AS v LEFT JOIN orders AS o ON v.user = o.customer LEFT JOIN visits AS w ON w.user = o.customer",
     "only meet within one unit", "add v.user = w.user"),
    ("visits AS v SEMI JOIN orders AS o ON v.tag = o.item", "only meet within one unit", "add v.user"),
    ("visits AS v RIGHT JOIN places AS p ON v.place = p.place", "belong to nobody", "LEFT JOIN, or use INNER JOIN"),
    ("visits AS v FULL JOIN places AS p ON v.place = p.place", "belong to nobody", "LEFT JOIN"),
    ("places AS p LEFT JOIN visits AS v ON v.place = p.place", "belong to nobody", "RIGHT JOIN"),
    ("places AS p SEMI JOIN visits AS v ON v.place = p.place", "belong to nobody", "begin with the private table"),
    ("places AS p ANTI JOIN visits AS v ON v.place = p.place", "belong to nobody", "begin with the private table"),
    ("visits NATURAL JOIN regions", "columns of the same name", "JOIN ... ON a = b"),
    ("visits NATURAL JOIN (SELECT item, amount FROM orders) AS o", "columns of the same name", "JOIN ... ON a = b"),
    ("visits AS v ASOF JOIN places AS p ON v.y >= p.size", "ASOF JOIN cannot be followed", "ON or USING"),
    ("visits AS v POSITIONAL JOIN places AS p", "POSITIONAL", "ON or USING"),
    ("visits AS v LEFT JOIN places AS p", "needs a condition", "add ON"),
    ("visits AS v JOIN places AS p ON v.n", "true or false", "compare two columns"),
    ("visits JOIN visits ON TRUE", "Two tables are called 'visits'", "another name"),
    ("visits AS v JOIN places AS p ON v.place IN (SELECT place FROM places)", "subquery cannot stand", "join"),
    ("visits AS v LEFT JOIN (places AS p JOIN regions AS r ON p.region = r.region) ON v.place = p.place",
     "all its joins are inner ones", "into a subquery"),
    ("visits AS v JOIN (orders AS o JOIN places AS p ON p.region = o.item) ON p.place = v.place",
     "only meet within one unit", "add v.user = o.customer"),
    ("visits AS v, orders AS o, visits AS w WHERE v.user = o.customer AND w.n = o.amount", "within one unit", "add"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "rule", "rewrite"), REFUSED)
def test_joins_that_lose_the_unit_are_refused(source: str, rule: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        meant(f"SELECT 1 AS one FROM {source}")
    assert rule in refused.value.rule
    assert rewrite in refused.value.rewrite


def test_rows_as_units_get_ids_before_a_join_repeats_them() -> None:
    made = meant("SELECT n, region FROM visits JOIN places USING (place)", ROW)
    assert carries(made) and not made.single
    tables = nasty()
    rows = run(made, tables)
    owners = [row["_unit"] for row in rows]
    assert len(set(owners)) < len(owners)  # place a is in two regions
    named = [row[4] for row in tables["visits"] if row[4] is not None]
    expected = sum(place[0] == each for each in named for place in tables["places"])
    assert len(rows) == expected
    single = meant("SELECT n FROM visits SEMI JOIN places USING (place)", ROW)
    assert single.single and not carries(single)


def test_rows_as_units_do_not_meet_each_other() -> None:
    for source in ("visits AS a JOIN visits AS b ON a.user = b.user", "visits, orders"):
        with pytest.raises(QueryError, match="each row is its own unit"):
            meant(f"SELECT 1 AS one FROM {source}", ROW)


def test_public_tables_join_as_they_like() -> None:
    made = meant("SELECT region, land FROM places FULL JOIN regions USING (region)")
    assert not made.private and not carries(made)
    assert len(run(made, nasty())) == 7
    assert made.columns["land"].origin == ("regions", "land")


def test_the_base_table_leaves_rows_without_a_unit_out() -> None:
    assert len(run(meant("SELECT * FROM visits"), nasty())) == len(nasty()["visits"]) - 2
    assert len(run(meant("SELECT * FROM visits", ROW), nasty())) == len(nasty()["visits"])
    assert set(SCHEMA.tables) == {"visits", "orders", "places", "regions"}
