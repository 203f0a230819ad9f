"""The made-up hospital: the same on every machine, heavy-tailed, and as its sfumato.yaml says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import ArgumentError
from sfumato.example import FILES, hospital, write_example
from sfumato.project import open_project


def test_the_same_seed_makes_the_same_hospital(tmp_path: Path) -> None:
    write_example(tmp_path)
    found = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in FILES if name.endswith("csv")}
    assert found["data/visits.csv"][:16] == "1c9b39f2d72f965e"
    again, other = hospital(), hospital(seed=2)
    assert (again.visits["cost"] == hospital().visits["cost"]).all()
    assert len(other.visits["cost"]) != len(again.visits["cost"])


def test_there_are_several_visits_for_a_patient_and_very_many_for_some() -> None:
    made = hospital()
    _, counts = np.unique(made.visits["patient"], return_counts=True)
    assert 30_000 < counts.sum() < 60_000 and counts.mean() > 1.5
    assert np.median(counts) <= 2 and counts.max() >= 40
    assert np.quantile(made.visits["cost"], 0.5) * 10 < made.visits["cost"].max()
    days = made.visits["day"]
    assert (np.diff(days) >= np.timedelta64(0)).all() and days[0] < days[-1]
    owner = made.visits["patient"]
    assert (owner[1:] == owner[:-1]).mean() < 0.01, "one patient's visits do not stand together"


def test_the_tables_are_as_the_file_says(tmp_path: Path) -> None:
    """Every value is in the bounds, except for costs: a bound that holds for nearly all is what one would write."""
    write_example(tmp_path)
    project, made = open_project(tmp_path), hospital()
    assert set(project.schema.tables) == {"visits", "patients", "wards"} and not project.missing()
    for name, table in project.schema.tables.items():
        held = getattr(made, name)
        assert list(table.columns) == list(held)
        for each, column in table.columns.items():
            if column.categories:
                assert set(held[each].tolist()) == set(column.categories)
            elif column.type in ("real", "whole"):
                outside = (held[each] < float(column.lower)) | (held[each] > float(column.upper))
                assert outside.mean() < (0.03 if each == "cost" else 1e-9), each
            elif column.type == "date":
                assert (
                    held[each].astype(np.int64).min() >= column.lower
                    and held[each].astype(np.int64).max() <= column.upper
                )
    assert set(made.visits["patient"].tolist()) <= set(made.patients["id"].tolist())
    assert set(made.visits["ward"].tolist()) == set(made.wards["ward"].tolist())


def test_a_small_hospital_and_none() -> None:
    assert len(hospital(patients=1).patients["id"]) == 1
    with pytest.raises(ArgumentError, match="patients"):
        hospital(patients=0)
