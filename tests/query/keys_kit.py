"""Small tables that are owned through keys, with whatever keys can be: shared, doubled, NULL, leading nowhere."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sfumato.query.relation import Relation
from sfumato.schema import Schema, Table, category, key, real, whole
from sfumato.units import Unit
from tests.query import units_kit
from tests.query.units_kit import by_unit

PERSON = Unit("user:person")
SCHEMA = Schema(
    {
        "people": Table({"person": key(), "age": whole(0, 120)}, unit="person"),
        "orders": Table({"id": key(), "buyer": key(), "shop": category(["a", "b"])}, owner="buyer -> people.person"),
        "items": Table(
            {"order": key(), "item": key(), "price": real(0, 9), "size": whole(0, 5)}, owner="order -> orders.id"
        ),
        "notes": Table({"item": key(), "stars": whole(1, 5)}, owner="item -> items.item"),
        "shops": Table({"shop": category(["a", "b"]), "town": key()}, private=False),
    }
)
Tables = Mapping[str, list[tuple[Any, ...]]]
TYPES = {
    "people": [pa.string(), pa.int64()],
    "orders": [pa.string(), pa.string(), pa.string()],
    "items": [pa.string(), pa.string(), pa.float64(), pa.int64()],
    "notes": [pa.string(), pa.int64()],
    "shops": [pa.string(), pa.string()],
}
UNITS = ["p1", "p2", "p3", "p4", "p5", "px"]


def nasty(*, shared: bool = True) -> dict[str, list[tuple[Any, ...]]]:
    """A heavy unit (p5), one without orders (p3), a buyer that is in no list (px); where they are shared, keys that
    lead to two units at once, at both ends of the chain."""
    draw = random.Random(11)
    people = [("p1", 30), ("p2", None), ("p3", 41), ("p4", 50), ("p5", 7), (None, 9)]
    orders: list[tuple[Any, ...]] = [
        ("o1", "p1", "a"), ("o2", "p1", "b"), ("o3", "p2", None), ("o4", "p4", "a"), ("o5", "px", "b"),
        ("o6", None, "a"), (None, "p1", "a"), (None, "p2", "b"),
    ]  # fmt: skip
    orders += [(f"q{i}", "p5", draw.choice("ab")) for i in range(12)]
    orders += [("o1", "p2", "b"), ("o1", "p2", "b"), ("q3", "p4", "a"), ("o2", "p1", "b")] if shared else []
    items: list[tuple[Any, ...]] = [
        ("o1", "i1", 1.0, 2), ("o1", "i2", 2.0, 2), ("o2", "i3", None, 1), ("o3", "i4", 4.0, None),
        ("o4", "i5", 5.0, 0), ("o5", "i6", 6.0, 3), ("o6", "i7", 7.0, 3), ("gone", "i8", 8.0, 4), (None, "i9", 9.0, 5),
        ("o1", None, 3.0, 1),
    ]  # fmt: skip
    items += [(f"q{i % 12}", f"j{i}", float(i % 10), i % 6) for i in range(60)]
    items += [("o4", "i1", 0.5, 5), ("o2", "i1", 0.5, 5), ("q3", "i5", 2.5, 5), ("q3", "j3", 2.5, 5)] if shared else []
    notes = [("i1", 5), ("i1", 4), ("i2", 1), ("i5", 2), ("i7", 3), ("i8", 3), ("none", 1), (None, 2), ("i6", 5)]
    notes += [(f"j{i % 60}", 1 + i % 5) for i in range(100)]
    shops = [("a", "here"), ("a", "there"), ("b", "here"), (None, "far")]
    return {"people": people, "orders": orders, "items": items, "notes": notes, "shops": shops}


def opened(tables: Tables) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        columns = list(SCHEMA.tables[name].columns)
        values = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in columns]
        con.register(
            "given", pa.table({c: pa.array(v, t) for c, v, t in zip(columns, values, TYPES[name], strict=True)})
        )
        con.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        con.unregister("given")
    return con


def without(tables: Tables, gone: str, *, orphans: bool) -> dict[str, list[tuple[Any, ...]]]:
    """The tables without a unit. Rows that lead to nobody else go with it, or stay where nobody owns them."""
    left = {name: list(rows) for name, rows in tables.items()}
    left["people"] = [row for row in tables["people"] if row[0] != gone]
    left["orders"] = [row for row in tables["orders"] if row[1] != gone]
    if not orphans:
        for name, at, parent in (("items", 0, "orders"), ("notes", 0, "items")):
            place = 0 if parent == "orders" else 1
            before, after = ({row[place] for row in each[parent]} for each in (tables, left))
            left[name] = [row for row in tables[name] if row[at] in after or row[at] not in before]
    return left


@functools.cache
def _worlds(shared: bool) -> dict[str, list[duckdb.DuckDBPyConnection]]:
    tables, draw = nasty(shared=shared), random.Random(5)
    worlds = {"": [opened(tables)]}
    for unit in UNITS:
        left = [without(tables, unit, orphans=orphans) for orphans in (True, False)]
        worlds[unit] = [opened({name: draw.sample(rows, len(rows)) for name, rows in each.items()}) for each in left]
    return worlds


def meant(sql: str, schema: Schema = SCHEMA) -> Relation:
    return units_kit.meant(sql, PERSON, schema)


def everywhere(sql: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of the query on all the data, and without each unit and the rows that lead to it alone."""
    relation = meant(sql)
    return {gone: units_kit.run(relation, worlds[-1]) for gone, worlds in _worlds(True).items()}


def check(sql: str) -> list[dict[str, Any]]:
    """Rows of the query; with any unit removed, those of the others are the same, whatever becomes of its orphans."""
    relation = meant(sql)
    assert relation.private
    rows = units_kit.run(relation, _worlds(True)[""][0])
    whole = by_unit(rows)
    if relation.single:
        assert all(sum(each.values()) == 1 for each in whole.values())
    for gone in UNITS:
        others = {unit: each for unit, each in whole.items() if unit != gone}
        for world in _worlds(True)[gone]:
            assert by_unit(units_kit.run(relation, world)) == others, f"without {gone}"
    return rows


def as_sql_says(sql: str, *, shared: bool = False) -> None:
    """The visible rows are those of the engine itself, where rows of nobody were taken out beforehand."""
    con = _worlds(shared)[""][0].cursor()
    con.execute("CREATE OR REPLACE TEMP TABLE people AS SELECT * FROM main.people WHERE person IS NOT NULL")
    con.execute("CREATE OR REPLACE TEMP TABLE orders AS SELECT * FROM main.orders WHERE buyer IS NOT NULL")
    con.execute(
        'CREATE OR REPLACE TEMP TABLE items AS SELECT * FROM main.items WHERE "order" IN (SELECT id FROM orders)'
    )
    con.execute("CREATE OR REPLACE TEMP TABLE notes AS SELECT * FROM main.notes WHERE item IN (SELECT item FROM items)")
    parsed = sqlglot.parse_one(
        sqlglot.parse_one(sql, dialect="duckdb").sql(dialect="duckdb", identify=True), dialect="duckdb"
    )
    assert isinstance(parsed, exp.Query)
    relation = meant(sql)
    ours = [[row[name] for name in relation.columns] for row in units_kit.run(relation, con)]
    theirs = [list(row.values()) for row in units_kit.run(Relation(parsed, {}, False), con)]
    con.close()
    assert sorted(map(_shown, ours)) == sorted(map(_shown, theirs))


def _shown(row: list[Any]) -> list[str]:
    return [str(each) if isinstance(each, str | None) else f"{float(each):.9g}" for each in row]
