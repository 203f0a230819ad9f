"""Small nasty tables, and a check that no unit's rows depend on another's, nor on any order."""

from __future__ import annotations

import functools
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sfumato.query.relation import UNIT, Relation
from sfumato.query.relations.bases import base_tables
from sfumato.query.relations.rows_of import relation
from sfumato.schema import Schema, Table, category, flag, key, real, whole
from sfumato.sources.duckdb import DUCKDB
from sfumato.units import Unit
from tests.query.databases import database

USER = Unit("user:user")
ROW = Unit("row")
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": key(),
                "x": real(-1e17, 1e17),
                "y": real(-100, 100),
                "n": whole(0, 1000),
                "place": category(["a", "b", "c", "d"]),
                "ok": flag(),
                "tag": key(),
            },
            unit="user",
        ),
        "orders": Table({"customer": key(), "amount": real(0, 50), "item": key()}, unit="customer", names="user"),
        "places": Table({"place": category(["a", "b", "c", "e"]), "region": key(), "size": real(0, 10)}, private=False),
        "regions": Table({"region": key(), "land": category(["N", "S"])}, private=False),
    }
)
TYPES = {
    "visits": [pa.int64(), pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.string()],
    "orders": [pa.string(), pa.float64(), pa.string()],
    "places": [pa.string(), pa.string(), pa.float64()],
    "regions": [pa.string(), pa.string()],
}
OF_ROWS = Schema({name: replace(table, unit=None, names=None) for name, table in SCHEMA.tables.items()})
Tables = Mapping[str, list[tuple[Any, ...]]]


def nasty() -> dict[str, list[tuple[Any, ...]]]:
    """Ties, duplicates, NULL units, order-sensitive floats, -0.0, a heavy user, users in one table only."""
    visits: list[tuple[Any, ...]] = [
        (1, 1e16, 1.0, 5, "a", True, "t1"),
        (1, 1.0, -0.0, 5, "b", False, "t1"),
        (1, -1e16, 0.0, 5, "a", None, "t2"),
        (1, 1.0, 2.5, None, None, True, None),
        (1, 1.0, 2.5, None, None, True, None),
        (2, None, None, 0, "c", True, "t1"),
        (2, 0.1, 0.1, 1, "c", True, "t1"),
        (2, 0.2, 0.2, 2, "c", False, "t3"),
        (3, 3.0, 100.0, 1000, "d", None, "3"),
        (4, None, None, None, None, None, None),
        (None, 9.0, 9.0, 9, "a", True, "t1"),
        (None, 1e16, 9.0, 9, "b", True, "t1"),
    ]
    draw = random.Random(7)
    visits += [
        (
            5,
            draw.choice([1e16, 1.0, -1e16, 0.1, -0.0, 0.0, draw.uniform(-1, 1)]),
            draw.choice([-0.0, 0.0, draw.uniform(-100, 100)]),
            draw.randrange(4),
            draw.choice("abcd"),
            draw.choice([True, False, None]),
            draw.choice(["t1", "t2", None]),
        )
        for _ in range(400)
    ]
    orders: list[tuple[Any, ...]] = [
        ("1", 10.0, "t1"),
        ("1", 10.0, "t1"),
        ("2", 0.0, "t3"),
        ("5", 5.0, "t2"),
        ("6", 1.0, None),
        ("7x", 2.0, "t1"),
        (None, 3.0, "t1"),
    ]
    places = [("a", "r1", 1.0), ("a", "r2", 2.0), ("b", "r1", 0.1), ("e", "r3", 0.2), (None, "r1", 0.3)]
    regions = [("r1", "N"), ("r2", "S"), ("r9", "S"), (None, "N")]
    return {"visits": visits, "orders": orders, "places": places, "regions": regions}


def meant(sql: str, unit: Unit = USER, schema: Schema | None = None) -> Relation:
    schema = schema or (OF_ROWS if unit == ROW else SCHEMA)
    query = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(query, exp.Query)
    made = relation(query, base_tables(schema, unit), unit)
    DUCKDB.check(made.tree)
    return made


def opened(tables: Tables, threads: int = 1, users: pa.DataType | None = None) -> duckdb.DuckDBPyConnection:
    con = database(threads)
    for name, rows in tables.items():
        columns, types = list(SCHEMA.tables[name].columns), list(TYPES[name])
        values = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in columns]
        if users is not None and name == "visits":
            types[0], values[0] = users, [None if each is None else str(each) for each in values[0]]
        held = pa.table({c: pa.array(v, t) for c, v, t in zip(columns, values, types, strict=True)})
        con.register("given", held)
        con.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        con.unregister("given")
    return con


def run(made: Relation, tables: Tables | duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    con = tables if isinstance(tables, duckdb.DuckDBPyConnection) else opened(tables)
    return con.sql(DUCKDB.text(made.tree)).to_arrow_table().to_pylist()


@functools.cache
def nasty_database() -> duckdb.DuckDBPyConnection:
    return opened(nasty())


@functools.cache
def neighbours() -> dict[str, duckdb.DuckDBPyConnection]:
    """The tables without one unit, rows in another order, by the unit that is gone."""
    return removed(nasty(), ["1", "2", "3", "4", "5", "6", "7x", "nobody"])


def removed(tables: Tables, units: list[str]) -> dict[str, duckdb.DuckDBPyConnection]:
    owned, draw, found = {"visits": 0, "orders": 0}, random.Random(3), {}
    for turn, gone in enumerate(units):
        left = {
            name: [row for row in rows if name not in owned or str(row[owned[name]]) != gone]
            for name, rows in tables.items()
        }
        shuffled = {name: draw.sample(rows, len(rows)) for name, rows in left.items()}
        found[gone] = opened(shuffled, threads=1 + turn % 2)
    return found


def by_unit(rows: list[dict[str, Any]], unit: str = UNIT) -> dict[str, Counter[str]]:
    """Each unit's rows as a multiset of exact texts (-0.0 is not 0.0)."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[str(row[unit])][repr({name: value for name, value in row.items() if name != unit})] += 1
    return dict(found)


def check(sql: str) -> list[dict[str, Any]]:
    """Rows of the query; with any unit removed, in any order of rows, with 1 or 2 threads, the others' are the same."""
    made = meant(sql)
    assert made.private
    rows = run(made, nasty_database())
    _check_kinds(made, rows)
    whole = by_unit(rows)
    if made.single:
        assert all(sum(each.values()) == 1 for each in whole.values())
    for gone, con in neighbours().items():
        others = {unit: each for unit, each in whole.items() if unit != gone}
        assert by_unit(run(made, con)) == others, f"without {gone}"
    return rows


def _check_kinds(made: Relation, rows: list[dict[str, Any]]) -> None:
    """What is known of the columns holds."""
    for row in rows:
        assert row[UNIT] is not None
        assert [name for name in row if name != UNIT] == list(made.columns)
        for name, kind in made.columns.items():
            value = row[name]
            if value is None:
                assert kind.nullable, name
                continue
            assert kind.values is None or value in kind.values, name
            assert kind.lower is None or value >= kind.lower, name
            assert kind.upper is None or value <= kind.upper, name
            if kind.unit:
                assert str(value) == str(row[UNIT])
            types = {"real": float, "whole": int, "flag": bool, "text": str}
            if kind.type in types:
                assert type(value) is types[kind.type], (name, value)


@functools.cache
def plain_database() -> duckdb.DuckDBPyConnection:
    """For the engine itself: rows without a unit are gone, and units are texts in all tables."""
    tables = {
        name: [row for row in rows if name in ("places", "regions") or row[0] is not None]
        for name, rows in nasty().items()
    }
    return opened(tables, users=pa.string())


def as_sql_says(sql: str) -> None:
    """The visible rows are those of the engine itself, up to rounding."""
    made = meant(sql)
    ours = [[row[name] for name in made.columns] for row in run(made, plain_database())]
    parsed = sqlglot.parse_one(
        sqlglot.parse_one(sql, dialect="duckdb").sql(dialect="duckdb", identify=True), dialect="duckdb"
    )
    assert isinstance(parsed, exp.Query)
    theirs = [list(row.values()) for row in run(Relation(parsed, {}, False), plain_database())]
    assert sorted(map(_shown, ours)) == sorted(map(_shown, theirs))


def _shown(row: list[Any]) -> list[str]:
    """Numbers to nine digits; 1 and '1' are the same key."""
    return [f"{value + 0.0:.9g}" if isinstance(value, float) else str(value) for value in row]
