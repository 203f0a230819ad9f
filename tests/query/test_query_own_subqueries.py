"""Subqueries in expressions over the rows of the unit that the row around them belongs to, and never over others'."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Schema, Unit, schema
from sfumato.query import sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Table
from tests.query.still import answered, plainly
from tests.query.units_kit import ROW, as_sql_says, check, meant

SOUND = [
    "SELECT v.user, v.n FROM visits AS v WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user)",
    "SELECT v.user, v.n FROM visits AS v"
    " WHERE NOT EXISTS (SELECT * FROM orders AS o WHERE v.user = o.customer AND o.item = v.tag)",
    "SELECT v.user, v.n FROM visits AS v WHERE EXISTS (SELECT 1 FROM orders WHERE customer = v.user AND amount > n)",
    "SELECT user, n FROM visits WHERE user IN (SELECT customer FROM orders)",
    "SELECT user, n FROM visits WHERE user NOT IN (SELECT customer FROM orders WHERE amount > 4)",
    "SELECT user, n FROM visits WHERE user IN (SELECT user FROM visits GROUP BY user HAVING COUNT(*) > 2)",
    "SELECT user, n FROM visits AS v WHERE user IN (SELECT o.customer FROM orders AS o WHERE o.item = v.tag)",
    "SELECT v.user, v.n FROM visits AS v WHERE v.tag IN (SELECT o.item FROM orders AS o WHERE o.customer = v.user)",
    "SELECT v.user, v.n FROM visits AS v WHERE v.tag NOT IN (SELECT o.item FROM orders AS o WHERE o.customer = v.user)",
    "SELECT v.user, (SELECT MAX(o.amount) FROM orders AS o WHERE o.customer = v.user) AS m FROM visits AS v",
    "SELECT v.user, (SELECT COUNT(*) FROM orders AS o WHERE o.customer = v.user AND o.amount > v.n) AS m"
    " FROM visits AS v",
    "SELECT v.user, n FROM visits AS v WHERE n > (SELECT 2 * AVG(w.n) FROM visits AS w WHERE w.user = v.user)",
    "SELECT v.user, CASE WHEN EXISTS (SELECT 1 FROM visits AS w WHERE w.user = v.user AND w.n > v.n) THEN 1 ELSE 0 END"
    " AS later FROM visits AS v",
    "SELECT v.user, (SELECT MAX(size) FROM places AS p WHERE p.place = v.place) AS m FROM visits AS v",
    "SELECT v.user, (SELECT COUNT(*) FROM places AS p WHERE p.place = v.place AND EXISTS"
    " (SELECT 1 FROM visits AS w WHERE w.user = v.user AND w.place = p.place AND w.n > 1)) AS m FROM visits AS v",
    "SELECT v.user, n FROM visits AS v WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user AND EXISTS"
    " (SELECT 1 FROM visits AS w WHERE w.user = o.customer AND w.tag = o.item AND w.n > v.n))",
    "SELECT v.user, n FROM visits AS v WHERE EXISTS"
    " (SELECT place FROM visits AS w WHERE w.user = v.user GROUP BY place HAVING COUNT(*) > 1)",
    "SELECT v.user, n FROM visits AS v"
    " WHERE (SELECT COUNT(DISTINCT w.place) FROM visits AS w WHERE w.user = v.user) > 2",
    "SELECT v.user, SUM(CASE WHEN EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user AND o.item = tag)"
    " THEN n END) AS s FROM visits AS v GROUP BY v.user HAVING v.user IN (SELECT customer FROM orders)",
    "SELECT v.user, (SELECT MAX(r) FROM (SELECT user, ROW_NUMBER() OVER (PARTITION BY user ORDER BY n) AS r"
    " FROM visits) AS w WHERE w.user = v.user) AS r FROM visits AS v",
    "SELECT v.user, n FROM visits AS v WHERE n IN (SELECT w.n FROM visits AS w WHERE w.user = v.user AND w.ok"
    " UNION ALL SELECT CAST(o.amount AS BIGINT) FROM orders AS o WHERE o.customer = v.user)",
    "SELECT v.user, n FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w JOIN orders AS o ON w.user = o.customer"
    " WHERE w.user = v.user AND w.tag = o.item AND w.n <> v.n)",
    "SELECT v.user, r FROM (SELECT user, n, RANK() OVER (PARTITION BY user ORDER BY n) AS r FROM visits) AS v"
    " WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user AND o.amount > r)",
    "SELECT v.user, ROW_NUMBER() OVER (PARTITION BY v.user ORDER BY n) AS r FROM visits AS v"
    " WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user AND o.amount > n)",
    "WITH big AS (SELECT customer, item FROM orders WHERE amount > 4) SELECT v.user, n FROM visits AS v"
    " WHERE EXISTS (SELECT 1 FROM big WHERE customer = v.user AND item = v.tag)",
]


@pytest.mark.parametrize("text", SOUND)
def test_a_row_with_a_subquery_depends_on_its_own_unit_alone(text: str) -> None:
    check(text)
    as_sql_says(text)


def test_every_private_subquery_is_tied_by_the_engine_itself() -> None:
    for text in SOUND:
        tree = meant(text).tree.sql()
        if "EXISTS" in text and "orders AS o WHERE o" in text:
            assert '"o"."_unit"' in tree and ' = CAST("v"."_unit"' in tree


def test_a_limit_within_exists_changes_nothing() -> None:
    text = "SELECT v.user FROM visits AS v WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user{})"
    assert meant(text.format(" LIMIT 1")).tree == meant(text.format("")).tree
    for odd in (" LIMIT 0", " LIMIT n"):
        with pytest.raises(QueryError, match="LIMIT"):
            meant(text.format(odd))


ADD = "add o.customer = v.user to the subquery's WHERE"
REFUSED = [
    ("n > (SELECT AVG(w.n) FROM visits AS w)", "add w.user = v.user"),
    ("EXISTS (SELECT 1 FROM orders AS o)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.item = v.tag)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user OR o.amount > 3)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.customer <> v.user)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = o.customer)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.tag)", ADD),
    ("EXISTS (SELECT 1 FROM orders AS o WHERE o.item = v.user)", ADD),
    ("tag IN (SELECT o.item FROM orders AS o)", ADD),
    ("tag IN (SELECT o.customer FROM orders AS o)", ADD),
    ("user IN (SELECT o.item FROM orders AS o)", ADD),
    ("(user IN (SELECT o.item FROM orders AS o)) = (n > 3)", ADD),
    ("user IN (SELECT o.customer FROM orders AS o WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.user = v.user))",
     "add w.user = o.customer"),
    ("user IN (SELECT o.customer FROM orders AS o WHERE v.user IN (SELECT w.user FROM visits AS w))",
     "add w.user = o.customer"),
    ("EXISTS (SELECT 1 FROM visits AS w LEFT JOIN orders AS o ON w.user = o.customer WHERE o.customer = v.user)",
     "add w.user = v.user"),
    ("EXISTS (SELECT 1 FROM visits AS v WHERE v.user = v.user)", "another name with AS"),
    ("EXISTS (SELECT 1 FROM orders WHERE customer = user UNION ALL SELECT 1 FROM orders)", "of one sort"),
    ("n = ANY (SELECT amount FROM orders)", "use IN"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "rewrite"), REFUSED)
def test_a_subquery_that_would_look_at_other_units_is_refused(condition: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        meant(f"SELECT v.user FROM visits AS v WHERE {condition}")
    assert rewrite in refused.value.rewrite


@pytest.mark.parametrize(("condition", "rewrite"), [each for each in REFUSED if each[1] == ADD and "WHERE" in each[0]])
def test_the_rewrite_works(condition: str, rewrite: str) -> None:
    assert condition.endswith(")")
    inner, _, rest = condition.partition("WHERE")
    check(f"SELECT v.user FROM visits AS v WHERE {inner}WHERE o.customer = v.user AND ({rest.rstrip(')')})" + ")")


def test_where_rows_are_units_a_subquery_reads_public_tables() -> None:
    for condition in (
        "EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = v.user)",
        "user IN (SELECT user FROM visits)",
        "n > (SELECT AVG(w.n) FROM visits AS w WHERE w.user = v.user)",
    ):
        with pytest.raises(QueryError, match=r"must equate the units|each row is its own unit"):
            meant(f"SELECT n FROM visits AS v WHERE {condition}", ROW)
    meant("SELECT n FROM visits AS v WHERE EXISTS (SELECT 1 FROM places AS p WHERE p.place = v.place)", ROW)


def test_a_public_row_does_not_tell_who_is_there() -> None:
    with pytest.raises(QueryError, match="must equate the units"):
        meant("SELECT place FROM places AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.place = p.place)")


SHOP = Schema(
    {
        "orders": Table(
            {"buyer": schema.key(), "number": schema.whole(0, 9999), "price": schema.real(0, 100)}, unit="buyer"
        ),
        "items": Table(
            {"buyer": schema.key(), "number": schema.whole(0, 9999), "many": schema.whole(0, 50)}, unit="buyer"
        ),
    }
)
draw = np.random.default_rng(0)
OF = draw.integers(0, 300, 900)
ORDERS = pa.table({"buyer": draw.integers(0, 40, 300), "number": np.arange(300), "price": draw.uniform(0, 100, 300)})
ITEMS = pa.table({"buyer": ORDERS["buyer"].to_numpy()[OF], "number": OF, "many": draw.integers(0, 50, 900)})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM orders AS o WHERE EXISTS (SELECT 1 FROM items AS i"
        " WHERE i.buyer = o.buyer AND i.number = o.number AND i.many > 40)",
        "SELECT COUNT(*) AS n FROM orders"
        " WHERE buyer IN (SELECT buyer FROM items GROUP BY buyer HAVING SUM(many) > 600)",
        "SELECT SUM(CASE WHEN price > (SELECT AVG(p.price) FROM orders AS p WHERE p.buyer = o.buyer) THEN 1 ELSE 0 END)"
        " AS n FROM orders AS o",
        "SELECT AVG((SELECT SUM(many) FROM items AS i WHERE i.buyer = o.buyer AND i.number = o.number)) AS n"
        " FROM orders AS o",
        "SELECT COUNT(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM items AS i WHERE i.buyer = o.buyer AND"
        " i.number = o.number)) AS n FROM orders AS o",
    ],
)
def test_a_whole_query_says_what_the_engine_says(text: str) -> None:
    tables = {"orders": ORDERS, "items": ITEMS}
    bounds = {"n": (0, 1000)} if "AVG((" in text else {}
    plan = sql(text, SHOP, unit=Unit("user:buyer"), epsilon=1, limits={"rows": 1000}, bounds=bounds)
    assert answered(plan, tables)["n"][0] == pytest.approx(plainly(text, tables)[0][0], rel=1e-6)
