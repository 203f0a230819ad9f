from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from sfumato.schema import Column, Table, category, date, flag, key, moment, real, whole
from sfumato.sources import DuckDBTable, Frame, Parquet, Source
from tests.sources.odd_tables import MEANING, TEXT_KINDS, TEXTS, text_columns, types, view

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_every_kind_of_source_reads_the_same_texts_to_the_same_values(kind: str, tmp_path: Path) -> None:
    assert view(TEXTS, TEXT_KINDS[kind](tmp_path)) == MEANING


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_the_types_of_a_table_do_not_depend_on_where_it_lies(kind: str, tmp_path: Path) -> None:
    assert list(types(TEXTS, TEXT_KINDS[kind](tmp_path)).values()) == [
        "VARCHAR", "DOUBLE", "BIGINT", "BIGINT", "VARCHAR", "BIGINT", "BOOLEAN", "DATE", "TIMESTAMP", "DOUBLE",
        "VARCHAR",
    ]  # fmt: skip


NUMBERS = Table(
    {"who": key(), "x": real(-10, 100), "n": whole(0, 50), "wide": whole(-(2**63), 2**63 - 1),
     "c": category(["1", "5"]), "k": category([0, 5]), "f": flag(nulls=False)},
    unit="who",
)  # fmt: skip


def _sources(arrow: pyarrow.Table, folder: Path) -> dict[str, Source]:
    pyarrow.parquet.write_table(arrow, folder / "numbers.parquet")
    with duckdb.connect(str(folder / "numbers.duckdb")) as made:
        made.register("given", arrow)
        made.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
    return {
        "arrow": Frame(arrow),
        "polars": Frame(polars.from_arrow(arrow)),
        "pandas": Frame(arrow.to_pandas(types_mapper=pandas.ArrowDtype)),
        "lists": Frame(arrow.to_pydict()),
        "parquet": Parquet(folder / "numbers.parquet"),
        "duckdb": DuckDBTable(folder / "numbers.duckdb", "people"),
    }


def _same(table: Table, arrow: pyarrow.Table, folder: Path) -> list[dict[str, Any]]:
    views = {kind: view(table, source) for kind, source in _sources(arrow, folder).items()}
    for rows in views.values():
        for row in rows:
            row["who"] = str(row["who"])  # whole numbers are BIGINT or text, by what the source holds
        assert sorted(rows, key=str) == sorted(views["arrow"], key=str)
    return views["arrow"]


def test_floats_are_clamped_rounded_to_even_and_never_nan(tmp_path: Path) -> None:
    cells = [0.5, 1.5, NAN, INF, -INF, None, 5.0, 1e300]
    arrow = pyarrow.table({"who": list(range(8)), **dict.fromkeys(["x", "n", "wide", "c", "k", "f"], cells)})
    rows = _same(NUMBERS, arrow, tmp_path)
    assert [row["x"] for row in rows] == [0.5, 1.5, None, 100.0, -10.0, None, 5.0, 100.0]
    assert [row["n"] for row in rows] == [0, 2, None, 50, 0, None, 5, 50]
    assert [row["wide"] for row in rows] == [0, 2, None, 2**63 - 1, -(2**63), None, 5, 2**63 - 1]
    assert [row["c"] for row in rows] == [None] * 6 + ["5", None]
    assert [row["k"] for row in rows] == [None] * 6 + [5, None]
    assert [row["f"] for row in rows] == [False] * 8


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32"])
def test_numbers_of_every_width(kind: str, tmp_path: Path) -> None:
    cells = [0, 1, 5, 100, None]
    arrow = pyarrow.table(
        {"who": list(range(5))} | {name: pyarrow.array(cells, kind) for name in ["x", "n", "wide", "c", "k", "f"]}
    )
    rows = _same(NUMBERS, arrow, tmp_path)
    assert [row["x"] for row in rows] == [0.0, 1.0, 5.0, 100.0, None]
    assert [row["n"] for row in rows] == [0, 1, 5, 50, None]
    assert [row["wide"] for row in rows] == cells
    assert [row["c"] for row in rows] == [None, "1", "5", None, None]
    assert [row["k"] for row in rows] == [0, None, 5, None, None]
    assert [row["f"] for row in rows] == [False, True, False, False, False]


def test_whole_numbers_are_exact_to_the_last_bit_and_clamped_beyond(tmp_path: Path) -> None:
    arrow = pyarrow.table({
        "who": [1, 2, 3],
        "signed": [2**63 - 1, -(2**63), 2**53 + 1],
        "unsigned": pyarrow.array([2**64 - 1, 0, 2**53 + 1], "uint64"),
        "decimal": pyarrow.array([10**37, -(10**37), 2**53 + 1], pyarrow.decimal128(38, 0)),
    })  # fmt: skip
    every = whole(-(2**63), 2**63 - 1)
    table = Table({"who": key(), "signed": every, "unsigned": every, "decimal": every})
    assert _same(table, arrow, tmp_path) == [
        {"who": "1", "signed": 2**63 - 1, "unsigned": 2**63 - 1, "decimal": 2**63 - 1},
        {"who": "2", "signed": -(2**63), "unsigned": 0, "decimal": -(2**63)},
        {"who": "3", "signed": 2**53 + 1, "unsigned": 2**53 + 1, "decimal": 2**53 + 1},
    ]


def test_times_are_clamped_and_counted_in_utc(tmp_path: Path) -> None:
    noon = dt.datetime(2020, 5, 5, 12)
    zoned = [noon.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), None, dt.datetime(1, 1, 1, tzinfo=dt.UTC)]
    arrow = pyarrow.table({
        "who": ["a", "b", "c"],
        "day": pyarrow.array([noon.date(), None, dt.date(9999, 12, 31)]),
        "at": pyarrow.array([noon, None, dt.datetime(1900, 1, 1)], pyarrow.timestamp("ms")),
        "zoned": pyarrow.array(zoned, pyarrow.timestamp("us", tz="UTC")),
    })  # fmt: skip
    days, moments = date("2000-01-01", "2030-01-01"), moment("2000-01-01", "2030-01-01")
    first = dt.datetime(2000, 1, 1)
    table = Table({"who": key(), "day": days, "at": moments, "zoned": moments})
    assert _same(table, arrow, tmp_path) == [
        {"who": "a", "day": noon.date(), "at": noon, "zoned": dt.datetime(2020, 5, 4, 22)},
        {"who": "b", "day": None, "at": None, "zoned": None},
        {"who": "c", "day": dt.date(2030, 1, 1), "at": first, "zoned": first},
    ]
    days_of = Table({"who": key(), "day": moments, "at": days, "zoned": days})
    assert _same(days_of, arrow, tmp_path)[0] == {
        "who": "a", "day": dt.datetime(2020, 5, 5), "at": noon.date(), "zoned": dt.date(2020, 5, 4)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "type_", "keys"),
    [
        (pyarrow.array([1, 2, None]), "BIGINT", [1, 2, None]),
        (pyarrow.array([1, 2, None], "uint8"), "BIGINT", [1, 2, None]),
        (pyarrow.array([2**64 - 1, 2, None], "uint64"), "VARCHAR", ["18446744073709551615", "2", None]),
        (pyarrow.array([12.0, 0.1, NAN, INF, -0.0, 1e22, 1e300, 1.5e-7]), "VARCHAR",
         ["0", "0.1", "1.5e-07", "1" + "0" * 22, "12", "1e+300", "inf", None]),
        (pyarrow.array([Decimal("12"), Decimal("1.50"), Decimal("0.10")]), "VARCHAR", ["0.1", "1.5", "12"]),
        (pyarrow.array([True, False, None]), "BOOLEAN", [False, True, None]),
        (pyarrow.array([dt.date(2020, 1, 1), None]), "DATE", [dt.date(2020, 1, 1), None]),
        (pyarrow.array(["12", "012", None, ""]), "VARCHAR", ["", "012", "12", None]),
        (pyarrow.array([b"12", b"\xff", None]), "VARCHAR", ["12", None, None]),
        (pyarrow.nulls(2), "VARCHAR", [None, None]),
    ],
)  # fmt: skip
def test_keys_keep_their_type_or_become_text(cells: pyarrow.Array, type_: str, keys: list[Any]) -> None:
    table, source = Table({"who": key()}), Frame(pyarrow.table({"who": cells}))
    assert types(table, source) == {"who": type_}
    assert [row["who"] for row in view(table, source)] == keys


def test_python_keys_are_texts_whatever_the_other_cells_hold() -> None:
    table = Table({"who": key()})
    for more in ([], ["x"], [b"\xff", "\ud800"], [None, NAN]):
        source = Frame({"who": [12, 12.0, "12", 1.5, *more]})
        assert types(table, source) == {"who": "VARCHAR"}
        assert [row["who"] for row in view(table, source)][:4] == ["1.5", "12", "12", "12"]
        assert [row["who"] for row in view(table, source)].count("12") == 3


@pytest.mark.parametrize(
    "column", [real(0, 1), whole(0, 1), category(["a"]), category([1]), flag(), date("2000-01-01", "2001-01-01")]
)
def test_columns_of_a_type_that_cannot_mean_it_are_null(column: Column, tmp_path: Path) -> None:
    strange = pyarrow.table({"who": ["a"], "v": pyarrow.array([[1, 2]])})
    assert _same(Table({"who": key(), "v": column}), strange, tmp_path) == [{"who": "a", "v": None}]
    lasts = pyarrow.table({"who": ["a"], "v": pyarrow.array([5], pyarrow.duration("us"))})
    assert view(Table({"who": key(), "v": column}), Frame(lasts)) == [{"who": "a", "v": None}]


def test_text_that_is_not_utf8_is_null_and_changes_no_other_cell() -> None:
    odd = pyarrow.array([b"ab", b"\xff\xfe", b"12", None])
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 4, odd.buffers())
    table = Table({"who": key(), "x": real(0, 20), "c": category(["ab", "12"]), "f": flag()})
    arrow = pyarrow.table(dict.fromkeys(table.columns, texts))
    expected = [
        {"who": "12", "x": 12.0, "c": "12", "f": None},
        {"who": "ab", "x": None, "c": "ab", "f": None},
        *[dict.fromkeys(table.columns)] * 2,
    ]
    assert view(table, Frame(arrow)) == expected
    assert view(table, Frame({name: [b"ab", b"\xff\xfe", b"12", None] for name in table.columns})) == expected
    assert view(table, Frame({name: ["ab", "\ud800", "12", None] for name in table.columns})) == expected


def test_masked_strided_and_foreign_arrays() -> None:
    masked = np.ma.MaskedArray(np.arange(3), mask=[False, True, False])
    odd = {"who": np.arange(6)[::2], "x": masked, "n": np.arange(3, dtype=">i4"), "w": np.arange(3, dtype=np.float16)}
    table = Table({"who": key(), "x": real(0, 9), "n": whole(0, 9), "w": whole(0, 9)})
    assert view(table, Frame(odd)) == [
        {"who": 0, "x": 0.0, "n": 0, "w": 0},
        {"who": 2, "x": None, "n": 1, "w": 1},
        {"who": 4, "x": 2.0, "n": 2, "w": 2},
    ]  # fmt: skip
    days = {
        "who": [1, 2],
        "x": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "n": np.array(["2020-01-01T01", "NaT"], "M8[ns]"),
    }
    timed = Table({"who": key(), "x": date("2000-01-01", "2030-01-01"), "n": moment("2000-01-01", "2030-01-01")})
    expected = [
        {"who": "1", "x": dt.date(2020, 1, 1), "n": dt.datetime(2020, 1, 1, 1)}, {"who": "2", "x": None, "n": None}
    ]  # fmt: skip
    assert view(timed, Frame(days)) == expected
    assert (
        view(timed, Frame(pandas.DataFrame({**days, "x": days["x"].astype("M8[s]")}).astype({"who": object})))
        == expected
    )


def test_pandas_categories_and_nullable_numbers() -> None:
    frame = pandas.DataFrame({
        "who": pandas.array([1, None, 2**60 + 1], "Int64"),
        "c": pandas.Categorical(["a", "z", None]),
        "x": pandas.array([1.5, None, 3], "Float64"),
    })  # fmt: skip
    table = Table({"who": key(), "c": category(["a"]), "x": real(0, 2)})
    assert view(table, Frame(frame)) == [
        {"who": 1, "c": "a", "x": 1.5}, {"who": 2**60 + 1, "c": None, "x": 2.0}, {"who": None, "c": None, "x": None}
    ]  # fmt: skip


def test_plain_columns_are_not_copied() -> None:
    numbers = np.arange(1000.0)
    table = Table({"x": real(0, 1)})
    for given in ({"x": numbers}, pandas.DataFrame({"x": numbers}, copy=False), pyarrow.table({"x": numbers})):
        seen = Frame(given).arrow(table, ["c0"])["c0"].chunk(0).buffers()[1].address
        assert seen == numbers.ctypes.data


def test_categories_between_others_and_stand_ins() -> None:
    table = Table({
        "who": key(), "near": category([3, 4, 5], nulls=4), "far": category([-7, 10**15], nulls=-7),
        "both": category([True, False]), "one": category([True], nulls=True),
    })  # fmt: skip
    columns = {"near": [3, 9, None], "far": [10**15, 0, None], "both": ["t", "f", "?"], "one": [1, 0, "?"]}
    assert view(table, Frame({"who": ["a", "b", "c"], **columns})) == [
        {"who": "a", "near": 3, "far": 10**15, "both": True, "one": True},
        {"who": "b", "near": 4, "far": -7, "both": False, "one": True},
        {"who": "c", "near": 4, "far": -7, "both": None, "one": True},
    ]
    typed = pyarrow.table({"who": ["a", "b", "c"]} | {k: pyarrow.array(v) for k, v in columns.items() if k != "one"})
    assert view(Table({k: v for k, v in table.columns.items() if k != "one"}), Frame(typed))[1] == {
        "who": "b", "near": 4, "far": -7, "both": False
    }  # fmt: skip


def test_one_cell_changes_no_other_row() -> None:
    columns = text_columns()
    whole_view = view(TEXTS, Frame(columns))
    for place in range(len(MEANING)):
        fewer = {name: cells[:place] + cells[place + 1 :] for name, cells in columns.items()}
        who = columns["who"][place]
        assert view(TEXTS, Frame(fewer)) == [row for row in whole_view if row["who"] != who]


def test_texts_mean_to_the_engine_what_they_mean_to_rows() -> None:
    draw = random.Random(11)

    def text() -> str:
        kind = draw.random()
        if kind < 0.4:
            return "".join(draw.choices("0123456789.eE_ xinfaN", k=draw.randint(0, 8)))
        if kind < 0.7:
            return str(draw.randint(-(10 ** draw.randint(1, 45)), 10 ** draw.randint(1, 45)))
        if kind < 0.9:
            return repr(draw.uniform(-1, 1) * 10.0 ** draw.randint(-320, 308))
        return draw.choice(
            ["TRUE", "F", "yes ", "\tno\n", "1" * 400, "0" * 50 + "7", "-1e999999999", "2.50", "-0", "."]
        )

    cells = [text() for _ in range(4000)]
    columns = {
        "x": real(-1e6, 1e6), "n": whole(-100, 100), "wide": whole(-(2**63), 2**63 - 1), "f": flag(),
        "c": category([1, 2, 7, -40]), "s": category(["1", "7", "TRUE"]),
    }  # fmt: skip
    texts = {"who": [f"k{number:04}" for number in range(4000)], **dict.fromkeys(columns, cells)}
    table = Table({"who": key(), **columns})
    assert view(table, Frame(pyarrow.table(texts))) == view(table, Frame(texts))
