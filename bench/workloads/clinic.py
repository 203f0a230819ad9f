"""The made-up clinic that the documented shapes are asked of: patients and their visits, wards in a public table."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from sfumato.schema import Table, category, date, flag, key, real, whole

from ..query_data import SEED

UNIT = "patient"
WARDS = ("east", "north", "south", "west")
FIRST, DAYS = datetime.date(2025, 1, 1), 365


def tables(patients: int) -> dict[str, tuple[Table, pa.Table]]:
    """Every table with its rows; four visits a patient on average, and nobody at all for some."""
    rng = np.random.default_rng([SEED, patients, 23])
    many = rng.geometric(0.2, patients) - 1
    patient = np.repeat(np.arange(patients), many)
    rows = patient.size
    visits = {
        "patient": patient,
        "ward": np.array(WARDS)[rng.choice(4, rows, p=(0.4, 0.3, 0.2, 0.1))],
        "drug": np.array([f"D{number:02}" for number in range(60)])[np.minimum(rng.geometric(0.15, rows), 60) - 1],
        "day": np.datetime64(FIRST) + rng.integers(0, DAYS, rows),
        "cost": np.round(np.minimum(rng.gamma(2.0, 60.0, rows), 1000.0), 2),
        "nights": np.minimum(rng.poisson(2.0, rows), 10),
        "urgent": rng.random(rows) < 0.3,
    }
    people = {
        "patient": np.arange(patients),
        "sex": np.array(("f", "m"))[rng.integers(0, 2, patients)],
        "age": rng.integers(0, 100, patients),
    }
    wards = {"ward": list(WARDS), "site": ["hill", "hill", "lake", "lake"], "beds": [40, 30, 20, 10]}
    last = FIRST + datetime.timedelta(DAYS - 1)
    return {
        "visits": (
            Table(
                {
                    "patient": key(), "ward": category(WARDS), "drug": key(), "day": date(FIRST, last),
                    "cost": real(0, 1000, decimals=2), "nights": whole(0, 10), "urgent": flag(),
                },
                unit=UNIT,
            ),
            pa.table(visits),
        ),
        "patients": (
            Table({"patient": key(), "sex": category(("f", "m")), "age": whole(0, 99)}, unit=UNIT),
            pa.table(people),
        ),
        "wards": (Table({"ward": key(), "site": key(), "beds": whole(0, 100)}, private=False), pa.table(wards)),
    }  # fmt: skip
