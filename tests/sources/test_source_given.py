from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from sfumato.errors import ArgumentError
from sfumato.sources import Csv, DuckDBTable, Frame, Parquet, source


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a.csv", Csv("a.csv")),
        (Path("b/A.CSV"), Csv("b/A.CSV")),
        ("a.tsv", Csv("a.tsv", delimiter="\t")),
        ("a.parquet", Parquet("a.parquet")),
        ("many/*.parquet", Parquet("many/*.parquet")),
        ("a.duckdb", DuckDBTable("a.duckdb")),
        (DuckDBTable("a.duckdb", "t"), DuckDBTable("a.duckdb", "t")),
    ],
)
def test_a_path_is_known_by_its_suffix_and_not_opened(given: Any, expected: Any) -> None:
    assert source(given) == expected


@pytest.mark.parametrize(
    "given",
    [pyarrow.table({"a": [4711]}), pandas.DataFrame({"a": [4711]}), polars.DataFrame({"a": [4711]}), {"a": [4711]}],
)
def test_frames_are_known_by_their_type_and_not_shown(given: Any) -> None:
    made = source(given)
    assert isinstance(made, Frame) and made.names() == ["a"] and "4711" not in repr(made)


def test_a_record_batch_is_a_frame() -> None:
    assert source(pyarrow.RecordBatch.from_pydict({"a": [1]})).names() == ["a"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "given",
    ["a.xlsx", "a", "", "https://example.org/a", None, 4711, [4711], np.array([4711]), object(), iter([4711]),
     polars.LazyFrame({"a": [4711]}), pandas.Series([4711])],
)  # fmt: skip
def test_anything_else_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ArgumentError, match="source") as refused:
        source(given)
    assert "4711" not in str(refused.value)


def test_a_frame_is_made_of_columns_only() -> None:
    with pytest.raises(ArgumentError, match="columns"):
        Frame([4711])


def test_the_area_is_imported_without_its_engine() -> None:
    code = (
        "import sys\nimport sfumato.sources as s\ns.source('a.csv')\n"
        "assert not {'duckdb', 'sqlglot', 'pyarrow'} & set(sys.modules)\n"
        "for name in ('duckdb', 'sqlglot', 'pyarrow'): sys.modules[name] = None\n"
        "from sfumato.schema import Table, key\n"
        "try:\n    s.connect({'t': (Table({'a': key()}), s.source({'a': [1]}))})\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("PlanError") and "pip install '.[sql]'" in done.stdout
