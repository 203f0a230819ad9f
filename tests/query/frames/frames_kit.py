"""What tests of frames share: a clinic's schema, its made-up rows, and both as polars has them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import polars as pl

import sfumato as sf
from sfumato.frames import LazyFrame, frame
from sfumato.schema import Table, category, date, flag, key, moment, real, whole

WARDS = ["east", "north", "south", "west"]
UNIT = sf.Unit("user:patient")
SCHEMA = sf.Schema(
    {
        "visits": Table(
            {
                "patient": key(), "ward": category(WARDS), "drug": key(), "day": date("2026-01-01", "2026-06-30"),
                "cost": real(0, 1000, nulls=0), "score": whole(-50, 50), "urgent": flag(),
                "at": moment("2026-01-01", "2026-06-30"),
            },
            unit="patient",
        ),
        "people": Table({"patient": key(), "born": whole(1900, 2026, nulls=1950)}, unit="patient"),
        "beds": Table({"ward": category(WARDS), "floor": key(), "beds": whole(0, 100)}, private=False),
    },
    views={"dear": "SELECT patient, ward, cost FROM visits WHERE cost > 200"},
)  # fmt: skip


def visits() -> LazyFrame:
    return frame(SCHEMA, "visits", unit=UNIT)


def people() -> LazyFrame:
    return frame(SCHEMA, "people", unit=UNIT)


def beds() -> LazyFrame:
    return frame(SCHEMA, "beds", unit=UNIT)


def rows(count: int = 300, seed: int = 7) -> dict[str, pl.DataFrame]:
    """Made-up tables, with missing values wherever the schema lets them be."""
    rng = np.random.default_rng(seed)
    patients = [f"P{n}" for n in rng.integers(0, count // 4, count)]
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=int(n)) for n in rng.integers(0, 181, count)]
    hours = [datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=int(n)) for n in rng.integers(0, 4000, count)]

    def some(values: list[Any]) -> list[Any]:
        return [None if missing else value for value, missing in zip(values, rng.random(count) < 0.1, strict=True)]

    table = pl.DataFrame({
        "patient": patients, "ward": some([WARDS[n] for n in rng.integers(0, 3, count)]),
        "drug": some([f"D{n}" for n in rng.integers(0, 6, count)]), "day": some(days),
        "cost": rng.integers(0, 4001, count) / 4, "score": some([int(n) for n in rng.integers(-50, 51, count)]),
        "urgent": some([bool(n) for n in rng.integers(0, 2, count)]), "at": some(hours),
    })  # fmt: skip
    born = pl.DataFrame({"patient": [f"P{n}" for n in range(0, count // 4, 2)]}).with_columns(
        born=pl.Series(rng.integers(1930, 2020, len(range(0, count // 4, 2))))
    )
    floors = pl.DataFrame({
        "ward": WARDS, "floor": ["ground", "ground", "first", "first"], "beds": [20, 30, 15, 8]
    })  # fmt: skip
    return {"visits": table, "people": born, "beds": floors}
