"""What a session leaves out of statements, and what it keeps of them, changes no row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlglot

from sfumato import Unit
from sfumato.query.relations.bases import base_tables
from sfumato.schema import Schema, Table, key, whole
from sfumato.sources import Parquet, connect, source
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.lean import Lean
from sfumato.sources.mentions import ONCE, mentions
from sfumato.sources.vocabulary import read

ORDERS = Table({"id": key(), "who": key()}, unit="who")
ITEMS = Table({"order": key(), "price": whole(0, 9)}, owner="order -> orders.id")
SCHEMA = Schema({"orders": ORDERS, "items": ITEMS})
READ = "SELECT count(*) AS n, exact_sum(price) AS s FROM items"


def opened(ids: list[Any], folder: Path) -> Any:
    """Of items of orders 0 to 5, and of units 0, 1 and 2."""
    tables = {
        "orders": pa.table({"id": ids, "who": [place % 3 for place in range(len(ids))]}),
        "items": pa.table({"order": [*range(6), 0], "price": [*range(6), 0]}),
    }
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    return connect({name: (SCHEMA.table(name), Parquet(folder / f"{name}.parquet")) for name in tables}, threads=1)


def owned() -> Any:
    """The rows of items, each with its unit."""
    return base_tables(SCHEMA, Unit("user:who"))["items"].tree


def text(tree: Any, different: set[Any], columns: set[Any]) -> str:
    return DUCKDB.text(tree, change=Lean(frozenset(different), frozenset(columns)))


def test_a_distinct_is_left_out_where_its_keys_are_different_and_nowhere_else() -> None:
    tree = owned()
    assert mentions(tree).once == {("orders", "id")} and mentions(tree).tables == {"orders", "items"}
    assert "DISTINCT" not in text(tree, {("orders", "id")}, set())
    assert "DISTINCT" in text(tree, {("orders", "who"), ("items", "order")}, set())
    assert any(ONCE in node.meta for node in tree.find_all(sqlglot.exp.Select))
    assert "DISTINCT" in DUCKDB.text(tree), "the statement itself is changed"


@pytest.mark.parametrize(
    ("ids", "different"),
    [
        ([0, 1, 2, 3, 4, 5], True),
        ([5, 3, 1, 0, 2, 4], True),
        ([0, 1, 2, 0, 4, 5], False),  # one unit holds order 0 twice
        ([0, 0, 1, 2, 3, 4], False),  # two units hold it
        ([None, 0, None, 1, 2, 3], True),  # a key that is not there leads nowhere
        ([0, 1, 2, 3, 4, 2**62], False),  # too far apart to be told
        (["0", "1", "2", "3", "4", "5"], False),  # no numbers
    ],
)
def test_rows_are_the_same_whether_keys_are_different_or_not(ids: list[Any], different: bool, tmp_path: Path) -> None:
    session, tree = opened(ids, tmp_path), owned()
    try:
        assert session._are_different("orders", "id") is different
        assert ("DISTINCT" in session._ready(tree)) is not different
        rows = sorted(map(str, session.run(tree).to_pylist()))
        plain = session._engine.sql(DUCKDB.text(tree)).to_arrow_table()
        assert rows == sorted(map(str, plain.to_pylist()))
    finally:
        session.close()


def test_what_is_only_bound_reads_no_key(tmp_path: Path) -> None:
    session = opened([0, 0, 1], tmp_path)
    try:
        session.bind(owned())
        assert not session._different
    finally:
        session.close()


@pytest.mark.parametrize(
    ("condition", "columns", "compared"),
    [
        ("CAST(a.x AS VARCHAR) = CAST(b.y AS VARCHAR)", {("t", "x"), ("u", "y")}, "a.x = b.y"),
        ("CAST(a.x AS VARCHAR) = CAST(b.y AS VARCHAR)", {("t", "x")}, "TEXT"),  # one of them is of texts
        ("CAST(a.x AS VARCHAR) = CAST(b.y AS VARCHAR)", {("t", "y"), ("u", "x")}, "TEXT"),
        ("CAST(a.x AS VARCHAR) = '1'", {("t", "x"), ("u", "y")}, "TEXT"),
        ("CAST(a.x + 1 AS VARCHAR) = CAST(b.y AS VARCHAR)", {("t", "x"), ("u", "y")}, "TEXT"),
        ("CAST(a.z AS VARCHAR) = CAST(b.y AS VARCHAR)", {("t", "x"), ("t", "z"), ("u", "y")}, "TEXT"),
    ],
)
def test_columns_of_whole_numbers_are_compared_as_such(condition: str, columns: set[Any], compared: str) -> None:
    made = f"SELECT 1 AS n FROM (SELECT x AS x, x + 1 AS z FROM t) AS a JOIN (SELECT y FROM u) AS b ON {condition}"
    tree = sqlglot.parse_one(made, dialect="duckdb")
    assert compared in text(tree, set(), columns)


def test_a_name_that_a_query_gives_anew_is_no_table() -> None:
    made = "WITH t AS (SELECT 'a' AS x) SELECT 1 AS n FROM t AS a JOIN u AS b ON CAST(a.x AS TEXT) = CAST(b.y AS TEXT)"
    tree = sqlglot.parse_one(made, dialect="duckdb")
    assert "TEXT" in text(tree, set(), {("t", "x"), ("u", "y")})


def test_rows_that_are_kept_are_computed_once_and_are_no_table_of_the_schema() -> None:
    table = Table({"n": whole(0, 100)}, private=False)
    with connect({"t": (table, source({"n": [1, 2, 3]}))}, threads=1) as session:
        rows = session.keep(sqlglot.parse_one("SELECT n, n * n AS m FROM t WHERE n > 1", dialect="duckdb"))
        session._do("CREATE OR REPLACE TEMP VIEW t AS SELECT 1 AS n WHERE false")  # nobody asks it again
        sums = read("SELECT exact_sum(m) AS s FROM _rows")
        [place] = sums.find_all(sqlglot.exp.Table)
        place.replace(rows.subquery("_rows"))
        assert [session.run(sums.copy()).column(0)[0].as_py() for _ in range(2)] == [13, 13]
        assert list(session.tables) == ["t"]
