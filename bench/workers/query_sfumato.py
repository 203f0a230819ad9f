"""Private queries by sfumato: called by bench.query, and as a worker of its own where memory is measured.

Seconds are on the wall, for the whole of a release as a user makes it: source opened, query planned, priced and paid,
run with two threads, noise drawn, table in Python. Where times are compared, limits are given, as the peers' are; where
errors are, the adviser chooses them, what that costs is part of epsilon = 1 and delta = 1e-6, and sums are raised by
what the limits are estimated to take. Keys in tables are text, as the peers' workers give them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato import Budget, Curator, Limits, MemoryLedger, Private, Schema, Unit, open_ledger, schema, sql

Table = dict[str, list[float | None]]
"""For every released key the rows, the distinct users, the sum and the mean."""

EPSILON, DELTA = 1.0, 1e-6
LIMITS = Limits(rows=10, keys=5)
USER = Unit("user:user_id")
MEMORY = 4 * 2**30  # what the engine may use before it writes to disk
BUDGET = Budget(epsilon=1.5, delta=1e-5)
FOUR = "COUNT(*) AS n, COUNT(DISTINCT user_id) AS users, SUM(v1) AS total, AVG(v1) AS mean"


def _private(path: str, lower: float = 0.0, upper: float = 100.0) -> Private:
    columns = {"user_id": schema.key(), "key": schema.key(), "v1": schema.real(lower, upper, nulls=lower)}
    tables = Schema({"rows": schema.Table(columns, unit="user_id")})
    return Private("rows", path, unit=USER, schema=tables, engine={"memory": MEMORY})


def _released(
    path: str, query: str, ledger: Any = None, lower: float = 0.0, upper: float = 100.0, **options: Any
) -> Any:
    data = _private(path, lower, upper)
    plan = sql(query, data, epsilon=EPSILON, delta=DELTA, **options)
    return Curator(data, ledger or MemoryLedger({"rows": BUDGET})).release(plan).value


def grouped(
    path: str,
    keys: Sequence[int | str] | None = None,
    *,
    lower: float = 0.0,
    upper: float = 100.0,
    advised: bool = False,
) -> tuple[float, Table]:
    """GROUP BY key: COUNT(*), COUNT(DISTINCT user_id), SUM(v1), AVG(v1), of the given keys or of selected ones."""
    start = time.perf_counter()
    options: dict[str, Any] = {"unclip": True} if advised else {"limits": LIMITS}
    options |= {} if keys is None else {"keys": {"key": list(keys)}}
    answer = _released(path, f"SELECT key, {FOUR} FROM rows GROUP BY key", lower=lower, upper=upper, **options)
    columns = [answer[name] for name in ("n", "users", "total", "mean")]
    found = {str(key): list(numbers) for key, *numbers in zip(answer["key"], *columns, strict=True)}
    return time.perf_counter() - start, found


def ungrouped(path: str) -> tuple[float, list[float]]:
    """COUNT(*), COUNT(DISTINCT user_id), SUM(v1), AVG(v1) of the whole table."""
    start = time.perf_counter()
    answer = _released(path, f"SELECT {FOUR} FROM rows", limits=LIMITS)
    found = [answer[name][0] for name in ("n", "users", "total", "mean")]
    return time.perf_counter() - start, found


def medians(path: str, keys: Sequence[int | str]) -> tuple[float, dict[str, float]]:
    """GROUP BY key: MEDIAN(v1), of the given keys."""
    start = time.perf_counter()
    given = [int(key) if str(key).isdigit() else key for key in keys]
    query = "SELECT key, MEDIAN(v1) AS middle FROM rows GROUP BY key"
    answer = _released(path, query, limits=LIMITS, keys={"key": given})
    found = {str(key): value for key, value in zip(answer["key"], answer["middle"], strict=True)}
    return time.perf_counter() - start, found


def small(path: str) -> float:
    """Seconds of the grouped query with a durable ledger, the ledger's own writes included."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(Path(folder) / "budget.ledger", create=True)
        ledger.open_account("rows", BUDGET, level="data set", unit=USER)
        start = time.perf_counter()
        len(_released(path, f"SELECT key, {FOUR} FROM rows GROUP BY key", ledger, limits=LIMITS).rows)
        took = time.perf_counter() - start
        ledger.shut()
    return took


if __name__ == "__main__":
    import query_jobs

    query_jobs.serve({"grouped": lambda **given: grouped(**given)[1]})
