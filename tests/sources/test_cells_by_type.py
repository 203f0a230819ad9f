"""How a column is read is decided by its type alone. Each of these was decided by a NULL, or failed by one cell."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, query, schema
from sfumato.errors import PlanError
from sfumato.rows import Rows
from sfumato.schema import Table, key, real, whole
from sfumato.sources import Csv, DuckDBTable, Frame, Parquet
from tests.sources.odd_tables import view

DAY = dt.datetime(2026, 1, 1, 8)
WHO = Table({"who": key()})


def labels(column: Any) -> list[Any]:
    series = Rows.read(WHO, {"who": column}, Unit())["who"]
    names = iter(series.label(series.values[series.valid]))
    return [next(names) if valid else None for valid in series.valid.tolist()]


def no_utf8(cells: list[bytes | None], kind: Any = None) -> Any:
    kind = kind or pyarrow.string()
    raw = pyarrow.array(cells, pyarrow.large_binary() if kind == pyarrow.large_string() else pyarrow.binary())
    return pyarrow.Array.from_buffers(kind, len(cells), raw.buffers())


@pytest.mark.parametrize(
    ("cells", "kind", "name"),
    [
        ([DAY], pyarrow.timestamp("us"), "2026-01-01 08:00:00"),
        ([DAY], pyarrow.timestamp("ns", tz="Europe/Rome"), "2026-01-01 08:00:00"),
        ([dt.timedelta(hours=30)], pyarrow.duration("us"), "30:00:00"),
        ([[1, 2]], pyarrow.list_(pyarrow.int64()), None),
        ([{"a": 1}], pyarrow.struct([("a", pyarrow.int64())]), None),
        ([dt.date(2026, 1, 1)], pyarrow.date32(), "2026-01-01"),
        ([dt.time(8)], pyarrow.time64("ns"), "08:00:00"),
        ([2**60 + 1], pyarrow.int64(), 2**60 + 1),
    ],
)
def test_a_null_changes_no_other_key(cells: list[Any], kind: Any, name: Any) -> None:
    for beside in ([], [None]):
        array = pyarrow.array([*cells, *beside], kind)
        for column in (array, pyarrow.chunked_array([array]), polars.from_arrow(array),
                       pandas.Series(array, dtype=pandas.ArrowDtype(kind))):  # fmt: skip
            assert labels(column) == [name, *beside]
            by_engine = [row["who"] for row in view(WHO, Frame({"who": column}))]
            assert [str(cell) for cell in by_engine] == [str(name), *map(str, beside)]


def test_a_date_beyond_the_calendar_is_its_own_affair(capfd: pytest.CaptureFixture[str]) -> None:
    days = pyarrow.array([20_000, 2**30, None], pyarrow.int32()).view(pyarrow.date32())
    table = Table({"day": schema.date("2000-01-01", "2030-12-31"), "at": schema.moment("2000-01-01", "2030-12-31")})
    for column in (days, polars.from_arrow(days)):
        assert labels(column) == ["2024-10-04", None, None]
        rows = Rows.read(table, {"day": column, "at": column}, Unit())
        for name in table.columns:
            assert rows[name].valid.tolist() == [True, True, False]
            assert rows[name].values[1] == table.column(name).upper
        assert [row["day"] for row in view(table, Frame({"day": column, "at": column}))] == [
            dt.date(2024, 10, 4), dt.date(2030, 12, 31), None
        ]  # fmt: skip
    assert capfd.readouterr() == ("", "")  # polars panics on the terminal where it makes a list of them


def test_moments_at_the_end_of_their_numbers_are_clamped_not_wrapped() -> None:
    table = Table({"at": schema.moment("2000-01-01", "2030-12-31"), "day": schema.date("2000-01-01", "2030-12-31")})
    for unit in ("s", "ms", "us", "ns"):
        ends = np.array([2**63 - 1, -(2**63) + 1]).view(f"M8[{unit}]")
        for column in (ends, list(ends), pyarrow.array(ends.view("i8")).view(pyarrow.timestamp(unit))):
            rows = Rows.read(table, {"at": column, "day": column}, Unit())
            for name in table.columns:
                assert rows[name].values.tolist() == [table.column(name).upper, table.column(name).lower]


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()])
def test_arrow_text_that_is_not_utf8_is_null(kind: Any) -> None:
    column = no_utf8([b"ab", b"\xff", b"12", None], kind)
    for packed in (column, column.dictionary_encode(), pyarrow.compute.run_end_encode(column)):
        assert labels(packed) == ["ab", None, 12, None]
        assert [row["who"] for row in view(WHO, Frame({"who": packed}))] == ["12", "ab", None, None]


def test_run_end_encoded_text_is_read() -> None:
    table = Table({"who": key(), "x": real(0, 20), "c": schema.category(["a", "7"])})
    runs = pyarrow.compute.run_end_encode(pyarrow.array(["a", "a", None, "7"]))
    for column in (runs, pyarrow.chunked_array([runs.slice(0, 1), runs.slice(1, 3)])):
        arrow = pyarrow.table(dict.fromkeys(table.columns, column))
        rows = Rows.read(table, arrow, Unit())
        assert rows["c"].valid.tolist() == [True, True, False, True] and rows["c"].values.tolist() == [0, 0, 0, 1]
        assert view(table, Frame(arrow)) == [
            {"who": "7", "x": 7.0, "c": "7"},
            *[{"who": "a", "x": None, "c": "a"}] * 2,
            dict.fromkeys(table.columns),
        ]


def test_times_of_day_in_nanoseconds() -> None:
    clock = pyarrow.array([8 * 3600 * 10**9 + 1, -5, 10**18, None], pyarrow.int64()).view(pyarrow.time64("ns"))
    assert (
        labels(clock)
        == labels(polars.from_arrow(clock.slice(0, 1))) + [None] * 3
        == ["08:00:00.000000001"] + [None] * 3
    )


@pytest.mark.parametrize("quote", ['"', ""])
def test_bytes_that_the_engine_does_not_take_for_latin_1(tmp_path: Path, quote: str) -> None:
    table = Table({"who": key(), "n": whole(0, 9)})
    (tmp_path / "t.csv").write_bytes(b"who,n\n\xe9,1\n" + bytes(range(0x80, 0xA0)) + b",2\nz,3\n")
    rows = view(table, Csv(tmp_path / "t.csv", encoding="latin-1", quote=quote))
    assert [(row["who"], row["n"]) for row in rows] == [
        ("z", 3), ("".join(map(chr, range(0x80, 0xA0))), 2), ("é", 1)
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["utf-16", "utf-16-le", "utf-16-be"])
def test_half_a_character_in_utf_16_leaves_its_row_out(tmp_path: Path, order: str) -> None:
    table, plain = Table({"who": key(), "n": whole(0, 9)}), "utf-16-be" if order == "utf-16-be" else "utf-16-le"
    start = {"utf-16": "\ufeff", "utf-16-le": "", "utf-16-be": "\ufeff"}[order]
    text = f"{start}who,n\né,1\n\ud800,2\n\udc00\ud800,4\nz,3\n"
    for end in (b"", "w,5".encode(plain) + b"\0"):  # and a file that ends within a character
        (tmp_path / "t.csv").write_bytes(text.encode(plain, "surrogatepass") + end)
        assert [row["who"] for row in view(table, Csv(tmp_path / "t.csv", encoding="utf-16"))] == ["z", "é"]


def test_parquet_with_cells_that_the_format_forbids(tmp_path: Path) -> None:
    table = Table({"who": key(), "x": real(0, 99), "c": schema.category(["ab", "12"]), "at": key(), "on": key()})
    texts = no_utf8([b"ab", b"\xff", b"12", b"1e1", None])
    clock = pyarrow.array([0, -1, 10**15, 5 * 10**6, None], pyarrow.int64()).view(pyarrow.time64("us"))
    moments = pyarrow.array([0, 2**62, 1500, None, 5], pyarrow.int64()).view(pyarrow.timestamp("ms"))
    columns = {"who": texts, "x": texts, "c": texts, "at": clock, "on": moments}
    pyarrow.parquet.write_table(pyarrow.table(columns).take([0, 2, 3, 4]).set_column(
        3, "at", clock.take(pyarrow.array([0, 3, 3, 4]))), tmp_path / "fine.parquet")  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "odd.parquet")
    odd = view(table, Parquet(tmp_path / "odd.parquet"))
    assert odd == [
        {"who": "12", "x": 12.0, "c": "12", "at": None, "on": "1970-01-01 00:00:01.5"},
        {"who": "1e1", "x": 10.0, "c": None, "at": "00:00:05", "on": None},
        {"who": "ab", "x": None, "c": "ab", "at": "00:00:00", "on": "1970-01-01 00:00:00"},
        *[row for row in odd if row["who"] is None],
    ]
    fine = {row["who"]: row for row in view(table, Parquet(tmp_path / "fine.parquet"))}
    for who in ("ab", "1e1"):
        assert fine[who] == next(row for row in odd if row["who"] == who)


def test_moments_of_a_database_that_have_no_text(tmp_path: Path) -> None:
    """DuckDB 2 shuts its database down where it is to write such a moment as text."""
    ends = pyarrow.array([0, 2**63 - 1, -(2**63) + 2, 2**62], pyarrow.int64())
    for unit in ("s", "ms", "us", "ns"):
        path = tmp_path / f"{unit}.duckdb"
        with duckdb.connect(str(path)) as made:
            made.register("given", pyarrow.table({"who": ends.view(pyarrow.timestamp(unit))}))
            made.execute("CREATE TABLE people AS SELECT * FROM given")
        found = [row["who"] for row in view(WHO, DuckDBTable(path, "people"))]
        assert found[0] == "1970-01-01 00:00:00" and len(found) == 4
        pyarrow.parquet.write_table(pyarrow.table({"who": ends.view(pyarrow.timestamp("us"))}), tmp_path / "t.parquet")
        assert [row["who"] for row in view(WHO, Parquet(tmp_path / "t.parquet"))] == [
            "1970-01-01 00:00:00",
            *[None] * 3,
        ]


def _frames(cells: list[Any], kind: Any) -> dict[str, Any]:
    array = no_utf8(cells) if kind == pyarrow.string() else pyarrow.array(cells, pyarrow.int64()).view(kind)
    frames = {"arrow": pyarrow.table({"k": array})}
    if kind != pyarrow.string():
        frames["polars"] = polars.DataFrame({"k": polars.from_arrow(array)})
    return frames


@pytest.mark.parametrize(
    ("kind", "cell", "odd"),
    [
        (pyarrow.timestamp("us"), 1_767_254_400_000_000, None),
        (pyarrow.timestamp("us"), 1_767_254_400_000_000, 2**62),
        (pyarrow.string(), b"flu", b"\xff"),
        (pyarrow.time64("ns"), 5, 10**15),
        (pyarrow.duration("s"), 5, None),
    ],
)
def test_one_unit_changes_no_released_key(kind: Any, cell: Any, odd: Any) -> None:
    """Through a curator, by a core plan and by SQL: the same keys with the odd row as without."""
    described = Schema.of(k=schema.key())
    keys = mechanisms.ThresholdKeys(column="k", protects=Unit(), epsilon=4, delta=1e-3)
    text = query.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k", described, unit=Unit(), epsilon=4, delta=1e-3)
    seen = set()
    for cells in ([cell] * 200, [cell] * 200 + [odd]):
        for name, frame in _frames(cells, kind).items():
            private = Private("d", frame, unit=Unit(), schema=described)
            curator = Curator(private, MemoryLedger({"d": Budget(epsilon=10, delta=0.01)}))
            assert curator.release(mechanisms.Laplace(query=bounds.count(Unit()), epsilon=1)).value is not None
            seen.add((name, str(list(curator.release(keys).value)), str(curator.release(text).raw["keys"]["k"])))
    assert len({each[1:] for each in seen}) == 1, seen


def test_polars_without_arrow_is_refused_before_anything_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PlanError, match="pyarrow"):
        Private("d", polars.DataFrame({"k": ["a"]}), unit=Unit(), schema=Schema.of(k=schema.key()))
