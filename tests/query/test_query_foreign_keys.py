"""Rows that are owned through keys: each belongs to the unit at the end of the chain, and depends on no other."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, orphans, sql
from sfumato.errors import PlanError
from sfumato.query.limits import Limits
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.query.relation import UNIT
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import connect, source
from sfumato.units import Unit
from sfumato_referee import attacks
from tests.query.keys_kit import PERSON, SCHEMA, as_sql_says, check, everywhere, meant
from tests.query.still import Still

ALONE = [
    "SELECT item, price FROM items",
    "SELECT id, shop FROM orders",
    "SELECT item, stars FROM notes WHERE stars > 2",
    'SELECT "order", COUNT(*) AS n, SUM(size) AS s FROM items GROUP BY "order"',
    'SELECT "order" AS o, MAX(price) AS top FROM items GROUP BY o HAVING COUNT(*) > 1',
    'SELECT DISTINCT "order" FROM items',
    'SELECT item, ROW_NUMBER() OVER (PARTITION BY "order" ORDER BY price, item) AS r FROM items',
    'SELECT "order", SUM(size) OVER (PARTITION BY "order") AS s FROM items',
    "SELECT i.item, s.town FROM items AS i JOIN shops AS s ON i.size > 2 AND s.shop = 'a'",
]
"""Where every key leads to one unit, what SQL says."""

ALONG = [
    'SELECT o.shop, i.price FROM orders AS o JOIN items AS i ON i."order" = o.id',
    'SELECT o.shop, i.price FROM items AS i JOIN orders AS o ON (o.id = i."order") AND i.size > 1',
    'SELECT o.shop, i.price FROM orders AS o, items AS i WHERE o.id = i."order" AND price > 1',
    'SELECT o.shop, i.price FROM orders AS o LEFT JOIN items AS i ON i."order" = o.id AND i.size > 3',
    'SELECT o.shop, o.id FROM orders AS o SEMI JOIN items AS i ON i."order" = o.id AND i.size > 3',
    'SELECT o.shop, o.id FROM orders AS o ANTI JOIN items AS i ON i."order" = o.id AND i.size > 3',
    'SELECT p.age, o.shop, i.price FROM people AS p, orders AS o, items AS i'
    ' WHERE p.person = o.buyer AND i."order" = o.id',
    'SELECT k, price FROM (SELECT id AS k FROM orders WHERE shop = \'a\') AS o'
    ' JOIN (SELECT "order" AS k, price FROM items) AS i USING (k)',
    'WITH o AS (SELECT id, shop FROM orders), i AS (SELECT "order" AS id, COUNT(*) AS n FROM items GROUP BY "order")'
    " SELECT shop, n FROM o JOIN i ON o.id = i.id",
    'SELECT o.buyer, SUM(i.size) AS s FROM orders AS o JOIN items AS i ON i."order" = o.id GROUP BY o.buyer',
    'SELECT o.id, COUNT(i.item) AS n FROM orders AS o LEFT JOIN items AS i ON i."order" = o.id'
    " WHERE o.id IS NOT NULL GROUP BY o.id, o.buyer",
]  # fmt: skip
"""Joins along keys are what SQL says whatever keys are shared: that the units are equal takes nothing away."""

AMONG = [
    'SELECT id, shop FROM orders WHERE id IN (SELECT "order" FROM items WHERE size > 3)',
    'SELECT o.id, o.shop FROM orders AS o WHERE o.id NOT IN (SELECT i."order" FROM items AS i WHERE i.size > 3)',
    'SELECT id FROM orders WHERE id IN (SELECT "order" FROM items GROUP BY "order" HAVING SUM(size) > 2)',
    "SELECT item FROM items WHERE \"order\" IN (SELECT id FROM orders WHERE shop = 'a' AND id IS NOT NULL)",
    "SELECT item FROM items WHERE item IN (SELECT item FROM notes WHERE stars > 4)",
    'SELECT id, CASE WHEN id IN (SELECT "order" FROM items WHERE item IN (SELECT item FROM notes)) THEN 1 ELSE 0 END'
    " AS noted FROM orders",
    "SELECT o.id FROM orders AS o WHERE EXISTS (SELECT 1 FROM orders AS z WHERE z.buyer = o.buyer"
    ' AND o.id IN (SELECT "order" FROM items WHERE size > 1))',
]
"""Keys among those of the unit's own rows."""

MORE = [
    'SELECT a.item, b.item AS other FROM items AS a JOIN items AS b ON a."order" = b."order" AND a.item <> b.item',
    'SELECT i.item, n.stars, o.shop FROM orders AS o JOIN items AS i ON i."order" = o.id'
    " JOIN notes AS n ON n.item = i.item",
    "SELECT p.age, n.stars FROM people AS p, orders AS o, items AS i, notes AS n"
    ' WHERE p.person = o.buyer AND o.id = i."order" AND i.item = n.item',
    'SELECT o.shop, i.price FROM orders AS o RIGHT JOIN items AS i ON i."order" = o.id AND o.shop = \'a\'',
    'SELECT o.shop, i.price FROM orders AS o FULL JOIN items AS i ON i."order" = o.id AND i.size > 2',
    'SELECT x FROM (SELECT "order" AS x FROM items UNION ALL SELECT id FROM orders) AS u',
    'SELECT DISTINCT id, shop FROM orders AS o JOIN items AS i ON i."order" = o.id',
    'SELECT id, LAG(price) OVER (PARTITION BY id ORDER BY price) AS last FROM orders AS o JOIN items AS i'
    ' ON i."order" = o.id',
]  # fmt: skip


@pytest.mark.parametrize("text", [*ALONE, *ALONG, *AMONG, *MORE])
def test_without_a_unit_no_other_units_rows_change(text: str) -> None:
    check(text)


@pytest.mark.parametrize("text", [*ALONE, *ALONG, *AMONG])
def test_where_keys_lead_to_one_unit_it_is_what_sql_says(text: str) -> None:
    as_sql_says(text)


@pytest.mark.parametrize("text", [each for each in ALONG if "GROUP BY" not in each and "DISTINCT" not in each])
def test_joins_along_keys_are_what_sql_says_also_where_units_share_them(text: str) -> None:
    as_sql_says(text, shared=True)


def test_a_row_counts_once_for_each_unit_that_its_key_leads_to() -> None:
    rows = Counter((row[UNIT], row["item"]) for row in check("SELECT item FROM items"))
    assert rows["p1", "i1"] == 2 and rows["p2", "i1"] == 1 and rows["p4", "i1"] == 1  # o1 is p2's twice, and once here
    assert rows["p1", "i3"] == 1  # o2 is p1's twice
    assert {item for _, item in rows} & {"i7", "i8", "i9"} == set()  # of nobody
    assert rows["px", "i6"] == 1  # whoever a key names is somebody, listed or not
    stars = Counter(row[UNIT] for row in check("SELECT stars FROM notes WHERE item = 'i1'"))
    assert stars == {"p1": 2, "p2": 2, "p4": 2}


LOOKED_UP = [
    ('orders AS o JOIN items AS i ON i."order" = o.id', 0),
    ('items AS i JOIN orders AS o ON i."order" = o.id', 0),
    ('people AS p, orders AS o, items AS i, notes AS n WHERE person = buyer AND id = "order" AND n.item = i.item', 0),
    ('notes AS n JOIN items AS i ON n.item = i.item JOIN orders AS o ON i."order" = o.id', 0),
    ('orders AS o LEFT JOIN items AS i ON i."order" = o.id', 0),
    ('orders AS o ANTI JOIN items AS i ON i."order" = o.id', 0),
    ('items AS a JOIN items AS b ON a."order" = b."order"', 1),
    ("notes AS n JOIN items AS i ON n.item = i.item", 1),  # of the items alone
    ("items", 1),
    ("notes", 2),
    ('orders AS o RIGHT JOIN items AS i ON i."order" = o.id', 1),  # items without an order are somebody's, or nobody's
    ('orders AS o FULL JOIN items AS i ON i."order" = o.id', 1),
    ('orders AS o JOIN (SELECT * FROM items) AS i ON i."order" = o.id', 1),
    ('(SELECT * FROM orders) AS o JOIN items AS i ON i."order" = o.id', 1),
    ('orders AS o JOIN items AS i (k, n, p, s) ON i.k = o.id', 1),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "times"), LOOKED_UP)
def test_owners_are_looked_up_where_no_join_of_the_query_does(rows: str, times: int) -> None:
    text = f"SELECT 1 AS one FROM {rows}"
    assert meant(text).tree.sql().count("SELECT DISTINCT") == times
    check(text)


REFUSED = [
    ("items AS i JOIN orders AS o ON i.size > 1", 'declared key, i."order" = o.id, to the ON'),
    ("items AS i JOIN orders AS o ON i.item = o.id", 'declared key, i."order" = o.id'),
    ('items AS i JOIN orders AS o ON i."order" = o.id OR i.size > 1', 'declared key, i."order" = o.id'),
    ('items AS i JOIN orders AS o ON CAST(i."order" AS VARCHAR) = o.id', 'declared key, i."order" = o.id'),
    ('notes AS n JOIN orders AS o ON n.item = o.id', "select the unit's column"),
    ('people AS p JOIN items AS i ON p.person = i."order"', "select the unit's column"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "instead"), REFUSED)
def test_private_tables_meet_along_declared_keys_alone(rows: str, instead: str) -> None:
    with pytest.raises(QueryError, match="only meet within one unit") as refusal:
        meant(f"SELECT 1 AS one FROM {rows}")
    assert instead in str(refusal.value)


def test_a_key_is_looked_up_among_the_keys_of_its_own_unit_alone() -> None:
    tree = meant('SELECT id FROM orders WHERE id IN (SELECT "order" FROM items)').tree.sql()
    assert 'WHERE "_members"."_unit" = "orders"."_unit"' in tree.replace("CAST(", "").replace(" AS TEXT)", "")
    for other in (
        "id IN (SELECT item FROM items)",
        'shop IN (SELECT "order" FROM items)',
        "id IN (SELECT shop FROM orders)",
        'LOWER(id) IN (SELECT "order" FROM items)',
        'id IN (SELECT LOWER("order") FROM items)',
    ):
        with pytest.raises(QueryError, match="must equate the units"):
            meant(f"SELECT id FROM orders WHERE {other}")


def test_a_key_that_was_changed_on_the_way_owns_nothing() -> None:
    for column in ('LOWER("order")', "COALESCE(\"order\", 'x')", "MIN(CAST(item AS VARCHAR))"):
        with pytest.raises(QueryError, match=r"GROUP BY must hold the unit|merges rows|neither grouped"):
            meant(f"SELECT k, COUNT(*) AS n FROM (SELECT {column} AS k FROM items) AS s GROUP BY k")
    both = 'SELECT "order" AS k FROM items UNION ALL SELECT item FROM items'
    with pytest.raises(QueryError, match="GROUP BY must hold the unit"):
        meant(f"SELECT k, COUNT(*) AS n FROM ({both}) AS s GROUP BY k")
    with pytest.raises(QueryError, match="PARTITION BY must hold"):
        meant("SELECT SUM(size) OVER (PARTITION BY price) AS s FROM items")


def test_groups_of_an_answer_are_not_what_single_units_own() -> None:
    with pytest.raises(QueryError, match="Each group would hold rows of one unit"):
        sql('SELECT "order", COUNT(*) AS n FROM items GROUP BY "order"', SCHEMA, unit=PERSON, epsilon=1, delta=1e-6)
    plan = sql('SELECT COUNT(DISTINCT "order") AS n FROM items', SCHEMA, unit=PERSON, epsilon=1, limits=Limits())
    assert plan.questions.distinct


def test_rows_of_nobody_are_counted_by_a_plan_of_their_own() -> None:
    plan = orphans(SCHEMA, "items", unit=PERSON, epsilon=1, limits=Limits(rows=2))
    assert "rows of one key are hidden together" in plan.hides and "left out" not in plan.hides
    for rows in everywhere('SELECT item, "order" FROM "orphans of items"').values():  # nobody moves them
        assert Counter(row["item"] for row in rows) == {"i7": 1, "i8": 1, "i9": 1}
        assert sorted(row[UNIT] for row in rows)[:2] == ["key gone", "key o6"]
    for rows in everywhere('SELECT stars FROM "orphans of notes"').values():
        assert {row[UNIT] for row in rows if row[UNIT].startswith("key")} == {"key none", "key i7", "key i8"}
    for table in ("people", "orders", "shops"):
        with pytest.raises(PlanError, match="not owned through a key that is looked up"):
            orphans(SCHEMA, table, unit=PERSON, epsilon=1)
    with pytest.raises(QueryError, match="only meet within one unit"):
        meant('SELECT 1 AS one FROM "orphans of items" AS i JOIN orders AS o ON i."order" = o.id')
    with pytest.raises(QueryError, match="GROUP BY must hold the unit"):
        meant('SELECT "order", COUNT(*) AS n FROM "orphans of items" GROUP BY "order"')


def test_every_answer_says_that_rows_of_nobody_are_left_out() -> None:
    data = {name: {column: [] for column in table.columns} for name, table in TWO.tables.items()}
    private = Private("d", data, unit=Unit("user:buyer"), schema=TWO)
    curator = Curator(private, MemoryLedger({"d": Budget(epsilon=10)}))
    plan = sql("SELECT COUNT(*) AS n FROM items", private, epsilon=1, limits=Limits())
    said = "order leads to it through orders, and rows that lead to nobody are left out"
    release = curator.release(plan)
    assert all(said in text for text in (str(curator.quote(plan)), str(release), release.explain(), plan.hides))
    assert "rows of items whose key leads to nobody are left out; orphans(data, table)" in str(release.value)
    other = sql("SELECT COUNT(*) AS n FROM orders", private, epsilon=1, limits=Limits())
    assert "left out" not in other.hides and "leads to nobody" not in str(curator.release(other).value)


TWO = Schema(
    {
        "orders": Table({"id": key(), "buyer": key()}, unit="buyer"),
        "items": Table({"order": key(), "price": real(0, 1)}, owner="order -> orders.id"),
    }
)


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        (pa.array([1, 2, 3]), pa.array([1, 1, 3, 9])),
        (pa.array([1, 2, 3]), pa.array(["1", "1", "3", "oops"])),
        (pa.array(["1", "2", "x"]), pa.array([1, 1, 2, 9])),
        (pa.array([1.0, 2.0, float("nan")]), pa.array([1, 1, 2, 9], pa.int32())),
        (pa.array([1, 2, 2**62]), pa.array([1, 1, 2**62, 2**64 - 1], pa.uint64())),
    ],
)
def test_keys_of_different_types_meet_as_texts_and_nothing_fails(ids: Any, keys: Any) -> None:
    tables = {
        "orders": pa.table({"id": ids, "buyer": ["a", "b", "c"]}),
        "items": pa.table({"order": keys, "price": [1.0] * 4}),
    }
    opened = connect({name: (TWO.table(name), source(each)) for name, each in tables.items()}, threads=1)
    try:
        assert opened.tables["orders"]["id"] == opened.tables["items"]["order"]  # type: ignore[attr-defined]
        for rows in ("items", 'items JOIN orders ON id = "order"', 'items, orders WHERE id = "order"'):
            text = f"SELECT COUNT(*) AS n FROM {rows}"
            plan = sql(text, TWO, unit=Unit("user:buyer"), epsilon=1, limits=Limits(rows=3))
            answer: Any = plan.finish(plan._run(opened, SimpleNamespace(noise=Still())))  # type: ignore[arg-type]
            assert answer["n"][0] == 3
    finally:
        opened.close()


def test_the_attack_on_chains_of_keys_is_withstood_and_sees_a_chain_that_loses_its_owner() -> None:
    assert not attacks.attack("O6", quick=True).broken
    assert attacks.attack("O6", quick=True, control=True).broken


def test_refusals_name_the_declared_key_where_the_unit_has_no_column() -> None:
    for text, advice in (
        (
            "SELECT AVG(x) FROM (SELECT MAX(price) OVER () AS x FROM items)",
            'MAX(price) OVER (PARTITION BY items."order")',
        ),
        ("SELECT COUNT(*) FROM orders AS o WHERE EXISTS (SELECT 1 FROM items WHERE size > 1)", 'items."order" = o.id'),
        ('SELECT COUNT(*) FROM (SELECT id FROM orders) JOIN (SELECT "order" AS k FROM items) ON true', "id = k"),
    ):
        with pytest.raises(QueryError) as caught:
            sql(text, SCHEMA, unit=PERSON, epsilon=1, limits={"rows": 1})
        assert advice in caught.value.rewrite


@pytest.mark.parametrize(
    "text",
    [
        'SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM people) AS p FROM (SELECT "order" FROM items GROUP BY "order")',
        'WITH own AS (SELECT "order", COUNT(*) AS m FROM items GROUP BY "order") '
        "SELECT m, n, n / SUM(n) OVER () AS part FROM (SELECT LEAST(m, 2) AS m, COUNT(*) AS n FROM own GROUP BY 1)",
        'SELECT COUNT(*) AS n FROM (SELECT "order", COUNT(*) AS m FROM items GROUP BY "order") '
        "WHERE m > (SELECT AVG(size) FROM items)",
        'SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM people) AS p FROM (SELECT DISTINCT "order", size FROM items)',
    ],
)
def test_groups_by_a_declared_key_stay_within_units_under_sql_above(text: str) -> None:
    plan = sql(text, SCHEMA, unit=PERSON, epsilon=10, delta=1e-6, limits={"rows": 100}, keys=_keys_of(text))
    assert not isinstance(plan, Sql) and len(plan.sqls) == 2 - ("part" in text)


def _keys_of(text: str) -> dict[str, list[int]]:
    return {"m": [1, 2]} if "part" in text else {}
