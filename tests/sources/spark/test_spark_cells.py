"""Cells that a Spark table may hold, each read as the schema says; none raises, and none changes another."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.schema import Column, Table, category, date, flag, key, moment, real, whole
from sfumato.sources import columns_of
from tests.sources.spark import kit

pytestmark = kit.SLOW
DAY, LATE = datetime.date(2024, 2, 29), datetime.date(2024, 12, 31)
NEW, AT = datetime.date(2024, 1, 1), datetime.datetime(2024, 3, 1, 12, 30)
DAYS, MOMENTS = date("2024-01-01", "2024-12-31"), moment("2024-01-01", "2024-12-31")
LONG, NAN, INF = "9" * 1000, float("nan"), float("inf")
UTC = datetime.UTC

# By type of the file: cells, and what a column makes of them.
CASES: list[tuple[pa.DataType, Column, list[tuple[Any, Any]]]] = [
    (pa.int8(), whole(0, 100), [(7, 7), (-128, 0), (None, None)]),
    (pa.int64(), whole(-(2**63), 2**63 - 1), [(2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))]),
    (pa.int64(), key(), [(2**63 - 1, 2**63 - 1), (2**63 - 2, 2**63 - 2)]),
    (pa.decimal128(38, 0), whole(0, 2**60), [(Decimal("9" * 38), 2**60), (Decimal("-" + "9" * 38), 0)]),
    (pa.decimal128(38, 0), key(), [(Decimal("9" * 38), "9" * 38), (Decimal("1" + "0" * 37), "1" + "0" * 37)]),
    (pa.decimal128(9, 2), real(0, 100, decimals=1), [(Decimal("7.25"), 7.3), (Decimal("-1.00"), 0.0)]),
    (pa.decimal128(9, 2), key(), [(Decimal("7.20"), "7.2"), (Decimal("7.00"), "7"), (Decimal("-0.50"), "-0.5")]),
    (pa.decimal128(38, 20), key(), [(Decimal("-1E-7"), "-0.0000001"), (Decimal(10), "10")]),
    (pa.float32(), real(0, 100), [(NAN, None), (INF, 100.0), (1.5, 1.5)]),
    (pa.float64(), real(-10, 10), [(NAN, None), (INF, 10.0), (-INF, -10.0), (-0.0, -0.0), (5e-324, 5e-324)]),
    (pa.float64(), whole(0, 9), [(2.5, 2), (3.5, 4), (NAN, None), (1e300, 9)]),
    (pa.float64(), category([1, 5]), [(5.0, 5), (5.5, None), (1e300, None), (NAN, None)]),
    (pa.float64(), key(), [(12.0, "12"), (9007199254740992.0, "9007199254740992"), (NAN, None)]),
    (pa.string(), real(0, 100), [("12", 12.0), (" 7e0 ", 7.0), ("1_000", None), ("1e400", 100.0), ("-1e400", 0.0),
                                 ("1e999999", 100.0), ("1e-999999", 0.0), ("0x10", None), ("1d", None), (LONG, 100.0),
                                 ("", None), ("nan", None), ("inf", 100.0), ("١٢", None), ("5\u2028", None)]),
    (pa.string(), whole(-(2**62), 2**62), [(str(2**61 + 1), 2**61 + 1), (LONG, 2**62), ("1.5", 2), ("x", None)]),
    (pa.string(), DAYS, [("2024-02-29", DAY), ("2023-02-29", None), ("2024-02-30", None), ("infinity", None),
                         ("today", None), ("1999-01-01", NEW), ("2024", None), ("2024-13-01", None)]),
    (pa.string(), MOMENTS, [("2024-03-01T13:30:00+01:00", AT), ("2024-03-01 12:30", AT), ("now", None), ("25:00", None),
                            ("2024-03-01 12:30:00.0000009", AT), ("2024-03-01 24:00:00", None)]),
    (pa.string(), flag(), [("Yes", True), (" no ", False), ("2", None)]),
    (pa.string(), category(["a", "A", "é"]), [("a", "a"), ("A", "A"), ("a ", None), ("é", "é"), ("e\u0301", None)]),
    (pa.string(), key(), [("a\u00ad", "a\u00ad"), ("\\", "\\"), ("'", "'"), ("${x}", "${x}"), ("a\0b", "a\0b")]),
    (pa.binary(), key(), [(b"a", "a"), (b"\xff", None), ("é".encode(), "é")]),
    (pa.bool_(), flag(), [(True, True), (False, False), (None, None)]),
    (pa.bool_(), real(0, 9), [(True, 1.0), (False, 0.0)]),
    (pa.bool_(), category([0, 1]), [(True, 1), (False, 0)]),
    (pa.date32(), DAYS, [(DAY, DAY), (datetime.date(1, 1, 1), NEW), (datetime.date(9999, 12, 31), LATE)]),
    (pa.date32(), MOMENTS, [(datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1))]),
    (pa.timestamp("us"), MOMENTS, [(AT, AT), (datetime.datetime(1, 1, 1), datetime.datetime(2024, 1, 1))]),
    (pa.timestamp("us", tz="UTC"), MOMENTS, [(AT.replace(tzinfo=UTC), AT)]),
    (pa.timestamp("us"), DAYS, [(datetime.datetime(2024, 2, 29, 23, 59, 59), DAY)]),
]  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    if isinstance(other, float) and isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


def test_cells_are_read_as_the_schema_says(tmp_path: Path) -> None:
    """All of them in one table, a column for each case, so that it is one job."""
    most = max(len(cells) for _, _, cells in CASES)
    columns: dict[str, Column] = {"place": whole(0, 99)}
    stored: dict[str, Any] = {"place": pa.array(range(most), pa.int64())}
    for number, (type_, column, cells) in enumerate(CASES):
        columns[f"c{number}"] = column
        stored[f"c{number}"] = pa.array([cell for cell, _ in cells] + [None] * (most - len(cells)), type_)
    table = Table(columns, name="t")
    rows = columns_of(table, kit.store(tmp_path, pa.table(stored))).sort_by("place")
    wrong = [
        (str(type_), column.type, cell, shown, right)
        for number, (type_, column, cells) in enumerate(CASES)
        for (cell, right), shown in zip(cells, rows.column(f"c{number}").to_pylist(), strict=False)
        if not alike(shown, right)
    ]
    assert not wrong
