"""Cells that a PostgreSQL table may hold, each read as the schema says; none raises, and none changes another."""

from __future__ import annotations

import datetime
import math
from typing import Any

import psycopg
import pytest

from sfumato.schema import Column, Schema, Table, category, date, flag, key, moment, real, whole
from sfumato.sources import columns_of
from sfumato.sources.postgres_tables import PostgresTable
from tests.ledger.stores import run
from tests.sources.postgres import kit

DAY, LATE = datetime.date(2024, 2, 29), datetime.date(2024, 12, 31)
NEW, AT = datetime.date(2024, 1, 1), datetime.datetime(2024, 3, 1, 12, 30)
DAYS, MOMENTS = date("2024-01-01", "2024-12-31"), moment("2024-01-01", "2024-12-31")
LONG = "9" * 1000

# By type of the server: cells as it takes them, and what a column makes of them.
CASES: list[tuple[str, Column, list[tuple[str | None, Any]]]] = [
    ("smallint", whole(0, 100), [("7", 7), ("-32768", 0), (None, None)]),
    ("bigint", whole(-(2**63), 2**63 - 1), [(str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63))]),
    ("bigint", key(), [(str(2**63 - 1), 2**63 - 1), (str(2**63 - 2), 2**63 - 2)]),
    ("numeric", real(0, 100), [("12.5", 12.5), (LONG, 100.0), ("-" + LONG, 0.0), ("NaN", None), ("Infinity", 100.0),
                               ("-Infinity", 0.0), ("1e-1000", 0.0), ("1e310", 100.0), (str(2**63), 100.0)]),
    ("numeric", key(), [("12.50", "12.5"), (str(2**63), str(2**63)), (str(2**63 + 1), str(2**63 + 1)), (LONG, LONG),
                        ("NaN", None), ("1e-3", "0.001")]),
    ("numeric(38, 0)", whole(0, 2**60), [("9" * 38, 2**60), ("-" + "9" * 38, 0), ("5", 5), ("NaN", None)]),
    ("numeric(38, 0)", key(), [("9" * 38, "9" * 38), ("1" + "0" * 37, "1" + "0" * 37)]),
    ("numeric(9, 2)", real(0, 100, decimals=1), [("7.25", 7.3), ("-1.00", 0.0), ("NaN", None)]),
    ("numeric(9, 2)", key(), [("7.20", "7.2"), ("7.00", "7")]),
    ("numeric(5, -2)", whole(0, 1000), [("449", 400), ("NaN", None)]),
    ("real", real(0, 100), [("NaN", None), ("Infinity", 100.0), ("1.5", 1.5), ("1e-45", None)]),
    ("double precision", real(-10, 10), [("NaN", None), ("Infinity", 10.0), ("-Infinity", -10.0), ("-0", -0.0),
                                         ("5e-324", 5e-324), ("1.7976931348623157e308", 10.0)]),
    ("double precision", whole(0, 9), [("2.5", 2), ("3.5", 4), ("NaN", None), ("1e300", 9)]),
    ("double precision", category([1, 5]), [("5", 5), ("5.5", None), ("1e300", None), ("NaN", None)]),
    ("double precision", key(), [("12", "12"), ("9007199254740993", "9007199254740992"), ("NaN", None)]),
    ("text", real(0, 100), [("12", 12.0), (" 7e0 ", 7.0), ("1_000", None), ("1e400", 100.0), ("-1e400", 0.0),
                            ("1e999999", 100.0), ("1e-999999", 0.0), ("0x10", None), (LONG, 100.0), ("", None),
                            ("nan", None), ("inf", 100.0), ("١٢", None), ("0." + "0" * 400 + "1", 0.0),
                            ("9" * 20_000, 100.0), ("1e", None), ("epoch", None)]),
    ("text", whole(-(2**62), 2**62), [(str(2**61 + 1), 2**61 + 1), (LONG, 2**62), ("1.5", 2), ("x", None)]),
    ("text", DAYS, [("2024-02-29", DAY), ("2023-02-29", None), ("2024-02-30", None), ("infinity", None),
                    ("today", None),
                    ("1999-01-01", NEW), ("J2451187", None), ("2024-13-01", None), ("0000-00-00", None)]),
    ("text", MOMENTS, [("2024-03-01T13:30:00+01:00", AT), ("2024-03-01 12:30", AT), ("now", None), ("25:00", None),
                       ("2024-03-01 12:30:00.0000009", AT), ("2024-03-01 24:00:00", None)]),
    ("text", flag(), [("Yes", True), (" no ", False), ("2", None)]),
    ("text", category(["a", "A", "é"]), [("a", "a"), ("A", "A"), ("a ", None), ("é", "é"), ("e\u0301", None)]),
    ('text COLLATE "unicode"', key(), [("a", "a"), ("A", "A"), ("a\u00ad", "a\u00ad"), ("\\", "\\"), ("'", "'"),
                                              ('"', '"')]),
    ("varchar(20)", key(), [("a\nb", "a\nb"), ("NULL", "NULL"), ("\\N", "\\N"), ("\\.", "\\."), (",", ",")]),
    ("char(5)", key(), [("ab", "ab")]),
    ("boolean", flag(), [("t", True), ("f", False), (None, None)]),
    ("boolean", real(0, 9), [("t", 1.0), ("f", 0.0)]),
    ("boolean", category([0, 1]), [("t", 1), ("f", 0)]),
    ("date", DAYS, [("2024-02-29", DAY), ("infinity", LATE), ("-infinity", NEW), ("0044-03-15 BC", NEW),
                    ("5874897-12-31", LATE)]),
    ("date", MOMENTS, [("2024-03-01", datetime.datetime(2024, 3, 1)), ("5874897-12-31", None),
                       ("4713-01-01 BC", None)]),
    ("timestamp", MOMENTS, [("2024-03-01 12:30", AT), ("infinity", datetime.datetime(2024, 12, 31)),
                            ("294276-12-31", datetime.datetime(2024, 12, 31))]),
    ("timestamptz", MOMENTS, [("2024-03-01 13:30+01", AT), ("-infinity", datetime.datetime(2024, 1, 1))]),
    ("timestamp", DAYS, [("2024-02-29 23:59:59", DAY)]),
    ("uuid", key(), [("A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    ("mood", category(["sad", "glad"]), [("sad", "sad"), ("ok", None), ("glad", "glad"), (None, None)]),
    ("short", whole(0, 5), [("4", 4), (None, None)]),
    ("price", real(0, 5), [("4.50", 4.5), ("NaN", None)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def place() -> str:
    place = kit.database()
    run(
        place,
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')",
        "CREATE FUNCTION shout(mood) RETURNS text LANGUAGE sql AS 'SELECT ''glad'''",
        "CREATE CAST (mood AS text) WITH FUNCTION shout(mood)",
        "CREATE DOMAIN small AS smallint; CREATE DOMAIN short AS small CHECK (VALUE < 9)",
        "CREATE DOMAIN price AS numeric(6, 2)",
    )
    return place


def read_as(place: str, name: str, type_: str, column: Column, cells: list[str | None]) -> list[Any]:
    with psycopg.connect(place) as opened:
        opened.execute(f"CREATE TABLE {name} (i int, x {type_})".encode())
        with opened.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for number, cell in enumerate(cells):
                copy.write_row((number, cell))
    table = Table({"i": whole(0, 99), "x": column}, name="t")
    rows = columns_of(Schema({"t": table}).table("t"), PostgresTable(kit.variable(place), name)).to_pylist()
    return [row["x"] for row in sorted(rows, key=lambda row: row["i"])]


def alike(one: Any, other: Any) -> bool:
    if isinstance(other, float) and isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case[0]} as {case[1].type}" for case in CASES])
def test_cells_are_read_as_the_schema_says(number: int, place: str) -> None:
    type_, column, cells = CASES[number]
    cells = [(cell, right) for cell, right in cells if cell != "1e-45"]
    shown = read_as(place, f"cells_{number}", type_, column, [cell for cell, _ in cells])
    wrong = [(cell, x, right) for (cell, right), x in zip(cells, shown, strict=True) if not alike(x, right)]
    assert not wrong


def test_a_cell_alone_is_read_as_it_is_among_others(place: str) -> None:
    """The server folds constants, and plans by what it knows of the rows: neither may change a cell."""
    for number in (3, 15, 17):
        type_, column, cells = CASES[number]
        for place_, (cell, right) in enumerate(cells[:6]):
            (x,) = read_as(place, f"alone_{number}_{place_}", type_, column, [cell])
            assert alike(x, right), (cell, x, right)
