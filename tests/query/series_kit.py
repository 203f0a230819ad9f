"""A made-up table of clicks that grows, and series over it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from sfumato.audit.sql_losses import beside_noise, without_noise
from sfumato.query import SqlSeries, series
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, key, real
from sfumato.sources import connect, source
from sfumato.units import Unit

ADS = ("north", "south", "west")
FIRST = dt.date(2026, 1, 5)
CLICKS = Table(
    {"reader": key(), "ad": category(ADS), "cost": real(-1, 9), "day": date("2025-01-01", "2027-12-31")}, unit="reader"
)
SCHEMA = Schema({"clicks": CLICKS})
UNIT = Unit("user:reader")
QUERY = "SELECT ad, COUNT(*) AS clicks, SUM(cost) AS paid FROM clicks GROUP BY ad"
LEVELS = {
    "day": {"most": 3, "limits": {"rows": 2}, "share": 2},
    "week": {"most": 2, "limits": {"rows": 5}},
}
Rows = list[tuple[str, str, float, str]]


def series_of(query: str = QUERY, **changed: Any) -> SqlSeries:
    options = {"column": "day", "start": FIRST, "days": 21, "levels": LEVELS, "unit": UNIT, "epsilon": 1, "delta": 1e-6}
    return series(query, SCHEMA, **{**options, **changed})


def day(number: int) -> dt.date:
    return FIRST + dt.timedelta(days=number)


def random_rows(rng: np.random.Generator, many: int, *, readers: int = 6, days: int = 24) -> Rows:
    return [
        (
            f"r{rng.integers(readers)}",
            ADS[rng.integers(3)],
            float(rng.uniform(-3, 12)),
            day(int(rng.integers(-2, days))).isoformat(),
        )
        for _ in range(many)
    ]


def opened(rows: Rows) -> Any:
    cells = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    return connect({"clicks": (CLICKS, source(dict(zip(CLICKS.columns, cells, strict=True))))}, threads=1)


def exactly(part: Sql, rows: Rows) -> dict[str, Any]:
    """What a part would release without its noise."""
    connection = opened(rows)
    try:
        return without_noise(part, connection)
    finally:
        connection.close()


def moved(part: Sql, one: Rows, other: Rows) -> float:
    """How much of the part's price a pair of tables uses."""
    return beside_noise(part, exactly(part, one), exactly(part, other))
