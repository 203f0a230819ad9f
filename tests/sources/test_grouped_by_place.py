"""Numbers that lie close together are grouped by their place in an array: the groups are those of a hash."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.schema import Schema, Table, key, whole
from sfumato.sources import Parquet, connect
from sfumato.sources.vocabulary import read

ROWS = Table({"who": key(), "cost": whole(0, 9)}, unit="who")
SCHEMA = Schema({"rows": ROWS})
GROUPED = "SELECT who, count(*) AS n FROM rows GROUP BY who"


def opened(path: Path, **settings: Any) -> Any:
    return connect({"rows": (SCHEMA.table("rows"), Parquet(path))}, **settings)


def written(path: Path, units: list[int | None]) -> Path:
    rows = pa.table({"who": pa.array(units, pa.int64()), "cost": [1] * len(units)})
    pyarrow.parquet.write_table(rows, path, use_dictionary=False)
    return path


@pytest.mark.parametrize(
    "settings, bits",
    [
        ({"threads": 1, "memory": 2**32}, 20),
        ({"threads": 4, "memory": 2**32}, 19),
        ({"threads": 2, "memory": 2**28}, 16),
        ({"threads": 8, "memory": 2**25}, 12),
    ],
)
def test_arrays_of_all_threads_are_a_small_part_of_the_memory(
    tmp_path: Path, settings: dict[str, int], bits: int
) -> None:
    with opened(written(tmp_path / "rows.parquet", [1]), **settings) as session:
        [[held]] = session._engine.execute("SELECT current_setting('perfect_ht_threshold')").fetchall()
    assert int(held) == bits
    assert settings["threads"] * 2**bits * 2**8 <= settings["memory"] / 8 or bits == 12


@pytest.mark.parametrize(
    "units",
    [
        [None, 1, 2**20 - 2, 1],
        [-(2**19), None, 2**19 - 3, 0, 0],
        [0, 2**20 + 5, None],  # beyond what an array is made for
        [-(2**63), 2**63 - 1, None, -(2**63)],
        [2**63 - 1, 2**63 - 1 - 2**19, 2**63 - 1],
        [None, None],
    ],
)
def test_units_are_the_same_by_place_and_by_hash(tmp_path: Path, units: list[int | None]) -> None:
    with opened(written(tmp_path / "rows.parquet", units * 50), threads=2, memory=2**32) as session:
        rows = session.run(read(GROUPED)).to_pylist()
    assert {row["who"]: row["n"] for row in rows} == {unit: 50 * n for unit, n in Counter(units).items()}


def test_a_file_whose_statistics_are_wrong_is_read_without_them(tmp_path: Path) -> None:
    """The engine makes the array as wide as they say, and stops at a number outside."""
    path = written(tmp_path / "rows.parquet", [5, 7, 876_543, 7])
    content = path.read_bytes()
    at = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    path.write_bytes(content[:at] + content[at:].replace(struct.pack("<q", 876_543), struct.pack("<q", 9)))
    with opened(path, threads=1, memory=2**32) as session:
        rows = session.run(read(GROUPED)).to_pylist()
    assert {row["who"]: row["n"] for row in rows} == {5: 1, 7: 2, 876_543: 1}
