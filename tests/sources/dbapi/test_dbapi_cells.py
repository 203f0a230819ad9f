"""Cells that a table may hold, each read as the schema says; none raises, and none changes another. Units are as many
as their bytes say."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest

from sfumato.schema import Column, Schema, Table, category, date, flag, key, moment, real, whole
from sfumato.sources import DatabaseTable, columns_of, connect
from sfumato.sources.vocabulary import read
from tests.sources.dbapi import clickhouse_engine, kit
from tests.sources.dbapi.kit import quoted_text

DAY, NEW, AT = datetime.date(2024, 2, 29), datetime.date(2024, 1, 1), datetime.datetime(2024, 3, 1, 12, 30)
DAYS, MOMENTS = date("2024-01-01", "2024-12-31"), moment("2024-01-01", "2024-12-31")
_PLACES = itertools.count()

# By type of the server: cells as it takes them, and what a column makes of them.
TEXT_NUMBERS = [
    ("12", 12.0), (" 7e0 ", 7.0), ("1_000", None), ("1e400", 100.0), ("-1e400", 0.0), ("0x10", None), ("", None),
    ("nan", None), ("inf", 100.0), ("١٢", None), ("1e", None), ("9" * 300, 100.0), (None, None),
]  # fmt: skip
TEXT_DAYS = [("2024-02-29", DAY), ("2023-02-29", None), ("2024-02-30", None), ("today", None), ("1999-01-01", NEW),
             ("0000-00-00", None), ("2024-13-01", None)]  # fmt: skip
TEXT_MOMENTS = [("2024-03-01T13:30:00+01:00", AT), ("2024-03-01 12:30", AT), ("now", None), ("25:00", None),
                ("2024-03-01 12:30:00.0000009", AT), ("2024-03-01 24:00:00", None)]  # fmt: skip
MARIADB: list[tuple[str, Column, list[tuple[Any, Any]]]] = [
    ("tinyint unsigned", whole(0, 1000), [(255, 255), (0, 0), (None, None)]),
    ("bigint unsigned", whole(-5, 2**63 - 1), [(2**64 - 1, 2**63 - 1), (3, 3)]),
    ("bigint", whole(-(2**63), 2**63 - 1), [(2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))]),
    ("bigint", key(), [(2**63 - 1, 2**63 - 1), (2**63 - 2, 2**63 - 2)]),
    ("decimal(9,2)", real(0, 100, decimals=1), [("7.25", 7.3), ("-1.00", 0.0)]),
    ("decimal(9,2)", key(), [("7.20", "7.2"), ("7.00", "7")]),
    ("decimal(38,0)", whole(0, 2**60), [("9" * 38, 2**60), ("5", 5)]),
    ("decimal(65,30)", real(0, 100), [("12.5", 12.5), ("9" * 35, 100.0)]),
    ("float", real(0, 100), [(1.5, 1.5), (None, None)]),
    ("double", real(-10, 10), [("1.7976931348623157e308", 10.0), ("5e-324", 5e-324), (-3.5, -3.5)]),
    ("double", whole(0, 9), [(2.5, 2), (3.5, 4), (1e300, 9)]),
    ("double", category([1, 5]), [(5, 5), (5.5, None), (1e300, None)]),
    ("double", key(), [(12, "12"), (9007199254740993, "9007199254740992")]),
    ("text", real(0, 100), TEXT_NUMBERS),
    ("text", whole(-(2**62), 2**62), [(str(2**61 + 1), 2**61 + 1), ("1.5", 2), ("x", None)]),
    ("text", DAYS, TEXT_DAYS), ("text", MOMENTS, TEXT_MOMENTS),
    ("text", flag(), [("Yes", True), (" no ", False), ("2", None)]),
    ("varchar(20)", category(["a", "A", "é"]), [("a", "a"), ("A", "A"), ("a ", None), ("é", "é"), ("e", None)]),
    ("varchar(20) CHARACTER SET latin1", key(), [("é", "é"), ("E", "E"), ("'", "'"), ("\\", "\\")]),
    ("longtext", key(), [("x" * 250, "x" * 250), ("NULL", "NULL"), ("\\N", "\\N"), ("a\nb", "a\nb")]),
    ("boolean", flag(), [(True, True), (False, False), (7, None)]),
    ("enum('sad','glad')", category(["sad"]), [("sad", "sad"), ("glad", None)]),
    ("date", DAYS, [("2024-02-29", DAY), ("0000-00-00", None), ("2024-02-31", None), ("1000-01-01", NEW)]),
    ("date", MOMENTS, [("2024-03-01", datetime.datetime(2024, 3, 1)), ("0000-00-00", None)]),
    ("datetime(6)", MOMENTS, [("2024-03-01 12:30:00", AT), ("0000-00-00 00:00:00", None)]),
    ("datetime", DAYS, [("2024-02-29 23:59:59", DAY)]),
    ("year", whole(0, 3000), [(2024, 2024)]),
]  # fmt: skip
CLICKHOUSE: list[tuple[str, Column, list[tuple[Any, Any]]]] = [
    ("UInt8", whole(0, 1000), [(255, 255), (0, 0)]),
    ("Nullable(UInt64)", whole(-5, 2**63 - 1), [(2**64 - 1, 2**63 - 1), (3, 3), (None, None)]),
    ("Int64", key(), [(2**63 - 1, 2**63 - 1), (2**63 - 2, 2**63 - 2)]),
    ("Int128", whole(0, 2**60), [(2**100, 2**60), (5, 5)]),
    ("Decimal(9, 2)", real(0, 100, decimals=1), [("7.25", 7.3), ("-1.00", 0.0)]),
    ("Decimal(22, 2)", category([1, 5]), [("5", 5), ("5.5", None), ("99999999999999999999", None)]),
    ("Float64", real(-10, 10), [("nan", None), ("inf", 10.0), ("-inf", -10.0), ("-3.5", -3.5), ("5e-324", 5e-324)]),
    ("Float64", whole(0, 9), [("2.5", 2), ("3.5", 4), ("1e300", 9), ("nan", None), ("inf", 9)]),
    ("Float64", category([1, 5]), [("5", 5), ("5.5", None), ("1e300", None), ("nan", None), ("inf", None)]),
    ("Float64", key(), [("12", "12"), ("nan", None)]),
    ("Float32", real(0, 100), [("1.5", 1.5), ("nan", None)]),
    ("Nullable(String)", real(0, 100), TEXT_NUMBERS),
    ("String", whole(-(2**62), 2**62), [(str(2**61 + 1), 2**61 + 1), ("1.5", 2), ("x", None), ("", None)]),
    ("String", DAYS, TEXT_DAYS), ("String", MOMENTS, TEXT_MOMENTS),
    ("String", flag(), [("Yes", True), (" no ", False), ("2", None)]),
    ("LowCardinality(String)", category(["a", "A", "é"]), [("a", "a"), ("A", "A"), ("a ", None), ("é", "é")]),
    ("LowCardinality(Nullable(String))", key(), [("a", "a"), (None, None), ("\\", "\\"), ("'", "'"), ("a\nb", "a\nb")]),
    ("Bool", flag(), [(True, True), (False, False)]),
    ("Enum8('sad' = 1, 'glad' = 2)", category(["sad"]), [("sad", "sad"), ("glad", None)]),
    ("Date32", DAYS, [("2024-02-29", DAY), ("1900-01-01", NEW)]),
    ("Date", MOMENTS, [("2024-03-01", datetime.datetime(2024, 3, 1))]),
    ("DateTime64(6, 'Europe/Berlin')", MOMENTS, [("2024-03-01 13:30:00", AT)]),
    ("DateTime('UTC')", DAYS, [("2024-02-29 23:59:59", DAY)]),
    ("UUID", key(), [("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
]  # fmt: skip


@pytest.fixture(scope="module")
def place() -> str:
    return kit.database()


def shown(source: DatabaseTable, column: Column) -> list[Any]:
    table = Table({"i": whole(0, 99), "x": column}, name="t")
    rows = columns_of(Schema({"t": table}).table("t"), source).to_pylist()
    return [row["x"] for row in sorted(rows, key=lambda row: row["i"])]


def in_mariadb(place: str, type_: str, cells: list[Any]) -> DatabaseTable:
    name = f"cells_{next(_PLACES)}"
    kit.create(place, name, ["i int", f"x {type_}"], list(enumerate(cells)))
    return DatabaseTable(kit.account(f"SELECT ON {place}.*"), f"{place}.{name}")


def in_clickhouse(type_: str, cells: list[Any]) -> DatabaseTable:
    name = f"cells_{next(_PLACES)}"
    table = kit.clickhouse_table(name, f"i Int32, x {type_}")
    numbers = type_.startswith(("U", "Int", "Float")) and type_ != "UUID"
    values = (f"({i}, {_constant(cell, numbers)})" for i, cell in enumerate(cells))
    clickhouse_engine.run(f"INSERT INTO {name} VALUES {', '.join(values)}")
    return table


def _constant(cell: Any, number: bool) -> str:
    if cell is None:
        return "NULL"
    return str(cell) if number or isinstance(cell, bool | int) else quoted_text(cell)


def check(source: DatabaseTable, column: Column, cells: list[tuple[Any, Any]]) -> None:
    read_ = shown(source, column)
    wrong = [
        (cell, x, right)
        for (cell, right), x in zip(cells, read_, strict=True)
        if type(x) is not type(right) or x != right
    ]
    assert not wrong


@pytest.mark.parametrize("number", range(len(MARIADB)), ids=[f"{case[0]} as {case[1].type}" for case in MARIADB])
def test_cells_of_mariadb_are_read_as_the_schema_says(number: int, place: str) -> None:
    type_, column, cells = MARIADB[number]
    check(in_mariadb(place, type_, [cell for cell, _ in cells]), column, cells)


@pytest.mark.parametrize("number", range(len(CLICKHOUSE)), ids=[f"{case[0]} as {case[1].type}" for case in CLICKHOUSE])
def test_cells_of_clickhouse_are_read_as_the_schema_says(number: int) -> None:
    type_, column, cells = CLICKHOUSE[number]
    check(in_clickhouse(type_, [cell for cell, _ in cells]), column, cells)


UNITS = [
    "a",
    "A",
    "a ",
    "á",
    "a\u0301",
    "ß",
    "ss",
    "ﬁ",
    "fi",
    " a",
    "a\t",
    "0",
    "00",
    "x" * 300,
    "x" * 299 + "y",
    "é",
    "e",
]


@pytest.mark.parametrize("engine", ["mariadb", "mariadb, general", "clickhouse"])
def test_units_are_as_many_as_their_bytes_say(engine: str, place: str) -> None:
    """Collations make one of 'a', 'A' and 'á', and 'a' is 'a ' where texts are filled up with blanks."""
    if engine == "clickhouse":
        table = in_clickhouse("String", UNITS * 2)
    else:
        collation = "utf8mb4_unicode_ci" if engine == "mariadb" else "utf8mb4_general_ci"
        table = in_mariadb(place, f"longtext COLLATE {collation}", UNITS * 2)
    opened = connect({"t": (Table({"i": whole(0, 99), "x": key()}, unit="x", name="t"), table)})
    grouped = opened.run(read("SELECT x, count(*) AS n FROM t GROUP BY x")).to_pylist()
    ranked = opened.run(
        read(
            "SELECT max(r) AS r, count(*) AS n FROM "
            "(SELECT row_number() OVER (PARTITION BY x ORDER BY i) AS r FROM t) AS s"
        )
    ).to_pylist()
    joined = opened.run(read("SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.x = b.x")).to_pylist()
    different = opened.run(read("SELECT count(DISTINCT x) AS n FROM t")).to_pylist()
    opened.close()
    assert len(grouped) == len(UNITS) and all(row["n"] == 2 for row in grouped)
    assert ranked == [{"r": 2, "n": 2 * len(UNITS)}]
    assert joined == [{"n": 4 * len(UNITS)}] and different == [{"n": len(UNITS)}]


def test_bytes_that_are_no_text_are_no_unit() -> None:
    """Two of them are not one unit: their rows are left out."""
    table = kit.clickhouse_table("no_texts", "i Int32, x String")
    clickhouse_engine.run(
        "INSERT INTO no_texts SELECT 1, unhex('ff') UNION ALL SELECT 2, unhex('fe') UNION ALL SELECT 3, 'a'"
    )
    assert shown(table, key()) == [None, None, "a"]
