"""Decimal numbers are decimal, as in SQL: those that stand in the query, and columns that are declared so."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, record, schema
from sfumato.errors import ArgumentError
from sfumato.query import sql
from sfumato.rows import Rows
from sfumato.schema import Column, Table
from sfumato.sources import DuckDBTable, connect, source
from tests.effort import tries
from tests.query.databases import passing_database
from tests.query.still import answered

ORDERS = Unit("user:orderkey")
SIX = """
    SELECT COUNT(*) AS n, SUM(extendedprice * discount) AS revenue FROM lineitem
    WHERE discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND quantity < 24 AND shipdate >= DATE '1994-01-01'
      AND shipdate < DATE '1995-01-01'
"""


def cents(values: Any, scale: int = 2) -> pa.Array:
    return pa.array([Decimal(int(each)).scaleb(-scale) for each in values], pa.decimal128(15, scale))


def lineitem() -> pa.Table:
    drawn = np.random.default_rng(6)
    size = 20_000
    return pa.table(
        {
            "orderkey": drawn.integers(1, 5000, size),
            "quantity": drawn.integers(1, 51, size),
            "extendedprice": cents(drawn.integers(90_000, 10_500_000, size)),
            "discount": cents(drawn.integers(0, 11, size)),
            "tax": cents(drawn.integers(0, 9, size)),
            "shipdate": pa.array(drawn.integers(8400, 9500, size).astype("datetime64[D]")),
        }
    )


def tables(decimals: int | None) -> Schema:
    columns = {
        "orderkey": schema.key(),
        "quantity": schema.whole(1, 50),
        "extendedprice": schema.real(0, 105_000, decimals=decimals),
        "discount": schema.real(0, 0.1, decimals=decimals),
        "tax": schema.real(0, 0.08, decimals=decimals),
        "shipdate": schema.date("1992-01-01", "1998-12-31"),
    }
    return Schema({"lineitem": Table(columns, name="lineitem", unit="orderkey")})


def as_csv(table: pa.Table, folder: Path) -> Any:
    with duckdb.connect() as engine:
        engine.register("lineitem", table)
        engine.execute(f"COPY lineitem TO '{folder / 'lineitem.csv'}' (HEADER)")
    return folder / "lineitem.csv"


def as_parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "lineitem.parquet")
    return folder / "lineitem.parquet"


def as_doubles(table: pa.Table, folder: Path) -> Any:
    for name in ("extendedprice", "discount", "tax"):
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.float64()))
    return as_parquet(table, folder)


def as_database(table: pa.Table, folder: Path) -> Any:
    with duckdb.connect(folder / "shop.duckdb") as engine:
        engine.register("given", table)
        engine.execute("CREATE TABLE lineitem AS SELECT * FROM given")
    return DuckDBTable(folder / "shop.duckdb", "lineitem")


STORED: dict[str, Callable[[pa.Table, Path], Any]] = {
    "csv": as_csv,
    "parquet decimals": as_parquet,
    "parquet doubles": as_doubles,
    "database": as_database,
    "arrow": lambda table, _: table,
}


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("stored", STORED)
def test_query_six_of_tpch_counts_what_sql_counts(stored: str, decimals: int | None, tmp_path: Path) -> None:
    table = lineitem()
    plan = sql(SIX, tables(decimals), unit=ORDERS, epsilon=1, limits={"rows": 100})
    (row,) = answered(plan, {"lineitem": STORED[stored](table, tmp_path)}).rows
    with duckdb.connect() as engine:
        engine.register("lineitem", table)
        n, revenue = engine.sql(SIX).fetchall()[0]
    assert row["n"] == n > 300
    assert row["revenue"] == pytest.approx(float(revenue), rel=1e-4)


@pytest.mark.parametrize(
    "condition",
    [
        "discount + tax = 0.06",
        "discount + tax <= 0.1 AND tax > 0",
        "1 - discount = 0.93",
        "extendedprice * (1 - discount) * (1 + tax) <= 33340.2945",
        "discount - tax BETWEEN 0.01 AND 0.07",
        "quantity * 0.1 = 0.3",
        "3 * discount = 0.3",
        "-discount + 0.1 = 0.01",
        "CASE WHEN quantity > 20 THEN discount ELSE tax END + 0.01 IN (0.03, 0.06, 0.08)",
        "COALESCE(discount, 0) + 0.1 = 0.17",
        "ROUND(discount * 1.5, 2) + tax = 0.12",
        "LEAST(discount, tax) + 0.01 = 0.07",
        "CAST(extendedprice AS DECIMAL(15, 1)) * (1 - discount) = 50000.04 OR discount = 0.06",
        "TRY_CAST(extendedprice AS DECIMAL(6, 2)) IS NULL",
        "CAST(extendedprice / 7 AS DECIMAL(12, 3)) > 4321.001",
        "CAST(discount * 5 AS DECIMAL(5, 1)) = 0.3",
        "CAST(quantity AS NUMERIC(4, 1)) / 2 = 3.5",
        "0.1 + 0.2 = 0.3 AND 1.1 * 1.1 = 1.21 AND 0.3 - 0.1 = 0.2",
    ],
)
def test_what_is_computed_from_decimals_is_compared_as_decimals(condition: str) -> None:
    table = lineitem()
    text = f"SELECT COUNT(*) AS n FROM lineitem WHERE {condition}"
    plan = sql(text, tables(2), unit=ORDERS, epsilon=1, limits={"rows": 100})
    with passing_database() as engine:
        engine.register("lineitem", table)
        n = engine.sql(text.replace("COALESCE(discount, 0)", "discount")).fetchall()[0][0]
    assert answered(plan, {"lineitem": table}).rows == [{"n": n}]
    assert n > 0


def test_decimals_stay_decimals_in_subqueries_and_sums_per_unit() -> None:
    table = lineitem()
    text = """
        SELECT COUNT(*) AS n FROM (
            SELECT orderkey, SUM(tax) AS t, SUM(discount) AS d FROM (
                SELECT orderkey, tax + 0.01 AS tax, discount FROM lineitem
                UNION ALL SELECT orderkey, tax, discount FROM lineitem
            ) GROUP BY orderkey
        ) WHERE t = 0.3
    """
    plan = sql(text, tables(2), unit=ORDERS, epsilon=1, limits={"rows": 1})
    with passing_database() as engine:
        engine.register("lineitem", table)
        n = engine.sql(text).fetchall()[0][0]
    assert answered(plan, {"lineitem": table}).rows == [{"n": n}]
    assert n > 30


_AMOUNT = st.integers(-(10**15) + 1, 10**15 - 1)


@settings(max_examples=tries(15, of=100))
@given(st.lists(st.tuples(_AMOUNT, _AMOUNT), min_size=1, max_size=30), st.integers(0, 15))
def test_no_decimal_of_fifteen_digits_is_lost(pairs: list[tuple[int, int]], places: int) -> None:
    """a + b, a - b and a * b, compared with what they are, over columns of any size that may be declared."""
    end = Fraction(10**15 - 1, 10**places)
    column = schema.real(-end, end, decimals=places)
    table = Table({"id": schema.key(), "a": column, "b": column}, name="t", unit="id")
    size = len(pairs)
    rows = {
        "id": list(range(size)),
        **{name: cents((pair[i] for pair in pairs), places) for i, name in enumerate("ab")},
    }
    with passing_database() as engine:
        engine.register("t", pa.table(rows))
        wide = "a::DECIMAL(38, {0}) {1} b::DECIMAL(38, {0})".format
        least = engine.sql(f"SELECT min({wide(places, '+')}), max({wide(places, '-')}) FROM t").fetchall()[0]
    low, high = (format(each, "f") for each in least)
    text = f"SELECT COUNT_IF(a + b = {low}) AS p, COUNT_IF(a - b >= {high}) AS m, COUNT_IF(a * b > a * b) AS x FROM t"
    plan = sql(text, Schema({"t": table}), unit=Unit("user:id"), epsilon=1, limits={"rows": 1})
    sums = [a + b for a, b in pairs]
    gaps = [a - b for a, b in pairs]
    (found,) = answered(plan, {"t": pa.table(rows)}).rows
    assert found == {"p": sums.count(min(sums)), "m": gaps.count(max(gaps)), "x": 0}


@settings(max_examples=tries(20, of=100))
@given(
    st.lists(st.sampled_from(["a", "b", "w", "0.1", "2.50", "1e3", "3", "99999999999999.9", "1e-9"]), min_size=2),
    st.lists(st.sampled_from(["+", "-", "*"]), min_size=12, max_size=12),
)
def test_no_chain_of_decimals_raises(operands: list[str], between: list[str]) -> None:
    """Far beyond 38 digits too."""
    text = operands[0]
    for operator, operand in zip(between, operands[1:], strict=False):
        text = f"({text} {operator} {operand})"
    columns = {
        "id": schema.key(),
        "a": schema.real(-(10**8), 10**8, decimals=6),
        "b": schema.real(0, 1, decimals=15 - 1),
        "w": schema.whole(-(10**18), 10**18),
    }
    rows = pa.table({"id": [1, 2, 3], "a": [1e8, -1e8, None], "b": [1.0, 0.0, 0.5], "w": [10**18, -(10**18), None]})
    plan = sql(
        f"SELECT COUNT_IF({text} >= 0.5) AS n FROM t",
        Schema({"t": Table(columns, name="t", unit="id")}),
        unit=Unit("user:id"),
        epsilon=1,
        limits={"rows": 1},
    )
    (found,) = answered(plan, {"t": rows}).rows
    assert 0 <= found["n"] <= 3


def test_cells_are_rounded_to_the_decimals_alike_everywhere() -> None:
    table = Table({"x": schema.real(-10, 10, decimals=1)}, name="t")
    cells = [0.04, 0.05, 0.25, -0.25, 9.99, 10.2, -10.06, 1e300, None, 3.14159]
    read = Rows.read(table, {"x": np.array(cells, dtype=object)}, Unit())["x"]
    expected = [0.0, 0.1, 0.3, -0.3, 10.0, 10.0, -10.0, 10.0, None, 3.1]
    there = [each for each in expected if each is not None]
    assert np.clip(read.values[read.valid], -10, 10).tolist() == there
    for given_as in (pa.array(cells, pa.float64()), pa.array([None if each is None else str(each) for each in cells])):
        opened = connect({"t": (table, source(pa.table({"x": given_as})))}, threads=1)
        try:
            found = opened.run(sqlglot.parse_one("SELECT x FROM t")).column(0).to_pylist()
        finally:
            opened.close()
        assert found == expected


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: schema.real(0, 0.125, decimals=2), "upper = 0.125"),
        (lambda: schema.real(0, 10**14, decimals=2), "15 digits"),
        (lambda: schema.real(0, 1, decimals=16), "decimals = 16"),
        (lambda: schema.real(0, 1, nulls=0.55, decimals=1), "nulls"),
        (lambda: Column("whole", 0, 5, decimals=1), "no decimals"),
    ],
)
def test_decimals_that_no_double_holds_are_refused(made: Callable[[], Column], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        made()


def test_a_column_without_decimals_is_stored_as_it_always_was() -> None:
    assert b"decimals" not in record.canonical(schema.real(0, 1))
    column = schema.real(0, 0.1, decimals=2)
    assert record.parse(record.canonical(column)) == column


def test_numbers_of_a_query_are_rounded_once() -> None:
    plan = sql("SELECT COUNT_IF(tax < 0.7 / 2.1 * 0.3) AS n FROM lineitem", tables(None), unit=ORDERS, epsilon=1)
    assert "CAST(0.1e0 AS DOUBLE)" in plan.statements()["sums"]
