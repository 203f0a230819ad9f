"""The same odd table in every kind of source, and what each cell of it means."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet

from sfumato.schema import Table, category, date, flag, key, moment, real, whole
from sfumato.sources import Connection, Csv, DuckDBTable, Frame, Parquet, Source, connect
from sfumato.sources.vocabulary import read

TEXTS = Table(
    {
        "who": key(),
        "income": real(-10, 100),
        "visits": whole(-5, 1000),
        "big": whole(-(2**63), 2**63 - 1),
        "town": category(["rome", "oslo", "12"]),
        "floor": category([1, 2, 7]),
        "smokes": flag(),
        "born": date("1900-01-01", "2030-12-31"),
        "seen": moment("2000-01-01", "2030-12-31"),
        "score": real(0, 10, nulls=5),
        "home": category(["yes", "no"], nulls="no"),
    },
    unit="who",
)
_DAY, _NOON = dt.date(1980, 2, 29), dt.datetime(2020, 1, 1, 12, 30)
_NONE = dict.fromkeys(TEXTS.columns) | {"score": 5.0, "home": "no"}

# By key: the cells as text, and their meaning where it is not NULL. A cell left out is NULL.
_ROWS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    (
        "a",
        {"income": "1.5", "visits": "12", "big": "9223372036854775807", "town": "rome", "floor": "7", "smokes": "Yes",
         "born": "1980-02-29", "seen": "2020-01-01T12:30:00", "score": "7", "home": "yes"},
        {"income": 1.5, "visits": 12, "big": 2**63 - 1, "town": "rome", "floor": 7, "smokes": True, "born": _DAY,
         "seen": _NOON, "score": 7.0, "home": "yes"},
    ),
    ("b", {}, {}),
    (
        "c",
        {"income": "nan", "visits": "12.0", "big": "9007199254740993", "town": "paris", "floor": "3", "smokes": "maybe",
         "born": "1980-02-30", "seen": "now", "score": "NaN", "home": "perhaps"},
        {"visits": 12, "big": 2**53 + 1},
    ),
    (
        "d",
        {"income": "inf", "visits": "2.5", "big": "1e300", "town": "12", "floor": "2.0", "smokes": "0",
         "born": "2999-01-01", "seen": "1999-01-01", "score": "-inf"},
        {"income": 100.0, "visits": 2, "big": 2**63 - 1, "town": "12", "floor": 2, "smokes": False,
         "born": dt.date(2030, 12, 31), "seen": dt.datetime(2000, 1, 1), "score": 0.0},
    ),
    (
        "e",
        {"income": "-Infinity", "visits": "3.5", "big": "-" + "9" * 60, "town": "Rome", "floor": "1.5",
         "smokes": " T ", "born": "1800-01-01", "seen": "2020-01-01 14:30:00+02:00", "score": "1e400"},
        {"income": -10.0, "visits": 4, "big": -(2**63), "smokes": True, "born": dt.date(1900, 1, 1), "seen": _NOON,
         "score": 10.0},
    ),
    (
        "f",
        {"income": "1_000", "visits": "0x10", "big": "twelve", "town": "rome ", "floor": "1e0", "smokes": "n",
         "born": "x", "seen": "2020-13-01", "score": "1,5"},
        {"floor": 1, "smokes": False},
    ),
    (
        "g",
        {"income": " 7 ", "visits": "1e9", "big": "-9223372036854775809"},
        {"income": 7.0, "visits": 1000, "big": -(2**63)},
    ),
    ("12", {"income": "-0.0", "visits": "-1e9", "big": "0.5"}, {"income": 0.0, "visits": -5, "big": 0}),
    ("é' \"", {"income": "5e-324", "visits": "1e-9", "town": "'; DROP"}, {"income": 5e-324, "visits": 0}),
]  # fmt: skip

MEANING = sorted(({**_NONE, "who": who, **meaning} for who, _, meaning in _ROWS), key=lambda row: row["who"])


def text_columns() -> dict[str, list[str | None]]:
    cells = [{"who": who, **given} for who, given, _ in _ROWS]
    return {name: [row.get(name) for row in cells] for name in TEXTS.columns}


def _csv(folder: Path, **how: Any) -> Source:
    columns, file = text_columns(), folder / "odd.csv"
    with file.open("w", newline="", encoding=how.get("encoding", "utf-8")) as lines:
        writer = csv.writer(lines, delimiter=how.get("delimiter", ","))
        writer.writerow([*columns, "unknown"])
        writer.writerows([*[cell or "" for cell in row], "z"] for row in zip(*columns.values(), strict=True))
    return Csv(file, **how)


def _parquet(folder: Path) -> Source:
    pyarrow.parquet.write_table(pyarrow.table(text_columns()), folder / "odd.parquet")
    return Parquet(folder / "odd.parquet")


def _several(folder: Path) -> Source:
    whole = pyarrow.table(text_columns())
    pyarrow.parquet.write_table(whole.slice(0, 4), folder / "part-1.parquet")
    pyarrow.parquet.write_table(whole.slice(4), folder / "part-2.parquet")
    return Parquet(folder / "part-*.parquet")


def _duckdb(folder: Path) -> Source:
    with duckdb.connect(str(folder / "odd.duckdb")) as made:
        made.register("given", pyarrow.table(text_columns()))
        made.execute("CREATE TABLE people AS SELECT * FROM given")
    return DuckDBTable(folder / "odd.duckdb", "people")


def _enums(folder: Path) -> Source:
    table = pyarrow.table(text_columns())
    return Frame(pyarrow.table({name: table[name].dictionary_encode() for name in table.column_names}))


def _bytes(folder: Path) -> Source:
    columns = {name: [cell and cell.encode() for cell in cells] for name, cells in text_columns().items()}
    return Frame(pyarrow.table({name: pyarrow.array(cells, pyarrow.binary()) for name, cells in columns.items()}))


TEXT_KINDS: dict[str, Callable[[Path], Source]] = {
    "csv": _csv,
    "tsv": lambda folder: _csv(folder, delimiter="\t"),
    "csv in latin-1": lambda folder: _csv(folder, encoding="latin-1"),
    "parquet": _parquet,
    "parquets": _several,
    "duckdb": _duckdb,
    "arrow": lambda folder: Frame(pyarrow.table(text_columns())),
    "arrow dictionaries": _enums,
    "arrow bytes": _bytes,
    "pandas objects": lambda folder: Frame(pandas.DataFrame(text_columns(), dtype=object)),
    "pandas strings": lambda folder: Frame(pandas.DataFrame(text_columns(), dtype="string[pyarrow]")),
    "polars": lambda folder: Frame(polars.DataFrame(text_columns())),
    "lists": lambda folder: Frame(text_columns()),
    "lists of bytes": lambda folder: Frame(
        {name: [cell and cell.encode() for cell in cells] for name, cells in text_columns().items()}
    ),
    "numpy objects": lambda folder: Frame(
        {name: np.array(cells, dtype=object) for name, cells in text_columns().items()}
    ),
}


def run(opened: Connection, text: str) -> list[dict[str, Any]]:
    return opened.run(read(text)).to_pylist()


def view(table: Table, source: Source) -> list[dict[str, Any]]:
    opened = connect({"people": (table, source)}, threads=1)
    try:
        return run(opened, "SELECT * FROM people ORDER BY 1 NULLS LAST")
    finally:
        opened.close()


def types(table: Table, source: Source) -> Mapping[str, str]:
    opened = connect({"people": (table, source)}, threads=1)
    try:
        return opened.tables["people"]
    finally:
        opened.close()
