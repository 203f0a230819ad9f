"""Files carry the least and largest number of a column, without nan. By these no row may change how others are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.schema import Table, category, key, real, whole
from sfumato.sources import connect, source, vocabulary

TABLE = Table({"u": key(), "v": real(0, 100), "w": whole(0, 50), "k": key(), "g": category([1, 2])}, name="t")
QUESTIONS = (
    "SELECT u, v, w, k, g FROM t WHERE u < 5 ORDER BY u",
    "SELECT count(v) a, sum(CASE WHEN v > 50 THEN 1 ELSE 0 END) b, count(CASE WHEN v IS NULL THEN 1 END) c "
    "FROM t WHERE u < 5",
    "SELECT count(*) FROM t WHERE v > 50 AND u < 5",
    "SELECT count(*) FROM t WHERE v IS NULL AND u < 5",
)


def read(path: Path, values: list[float], dtype: Any, *, duckdb_reads: bool = False) -> list[Any]:
    v = np.array(values).astype(dtype)
    table = pa.table({"u": np.arange(len(v)), "v": v, "w": v, "k": v, "g": v / 10})
    pq.write_table(table, path)
    opened = connect({"t": (TABLE, source(path if not duckdb_reads else table))})
    try:
        return [opened.run(vocabulary.read(text)).to_pylist() for text in QUESTIONS]
    finally:
        opened.close()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("extra", [np.inf, -np.inf, 1e30, 55.0])
def test_one_row_never_changes_how_the_nan_of_others_is_read(tmp_path: Path, dtype: Any, extra: float) -> None:
    others = [10.0, 20.0, np.nan, np.nan, 30.0]
    path = tmp_path / "t.parquet"
    without = read(path, others, dtype)
    assert read(path, [*others, extra], dtype) == without == read(path, others, dtype, duckdb_reads=True)
    assert [row["v"] for row in without[0]] == [10, 20, None, None, 30]
    assert without[1][0]["b"] == 0 and without[1][0]["c"] == 2
