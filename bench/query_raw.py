"""DuckDB without privacy: what private queries are held against, and how the two take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

THREADS = 2
GROUPED = "SELECT key, count(*), count(DISTINCT user_id), sum(v1), avg(v1) FROM '{}' GROUP BY key"
UNGROUPED = "SELECT count(*), count(DISTINCT user_id), sum(v1), avg(v1) FROM '{}'"


def seconds(query: str, path: Path) -> float:
    """From opening DuckDB to the answer in Arrow, on the wall; ours opens it for each release too."""
    start = time.perf_counter()
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.sql(query.format(path)).to_arrow_table()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Turns:
    """Medians in seconds on the wall, and of the ratio within a turn."""

    ours: float
    raw: float
    ratio: float


def turns(ours: Callable[[], float], raw: Callable[[], float], repeats: int) -> Turns:
    """Ours and DuckDB one after the other, first one and then the other leading, after one turn that does not count."""
    pairs = []
    for number in range(repeats + 1):
        if number % 2:
            pairs.append((ours(), raw()))
        else:
            bare = raw()
            pairs.append((ours(), bare))
    counted = pairs[1:]
    return Turns(
        statistics.median(mine for mine, _ in counted),
        statistics.median(bare for _, bare in counted),
        statistics.median(mine / bare for mine, bare in counted),
    )
