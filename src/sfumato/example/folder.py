"""The hospital as a project folder: tables in files, `sfumato.yaml`, and a plan of releases."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

from ..errors import PlanError, install_line
from .hospital import Columns, hospital

_TEXTS = ("sfumato.yaml", "plan.yaml")
FILES = ("data/patients.parquet", "data/visits.csv", "data/wards.csv", *_TEXTS)


def write_example(folder: Path, *, seed: int = 1) -> None:
    """Write the example into a folder; files of these names are replaced."""
    tables = hospital(seed)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    _write_parquet(folder / "data/patients.parquet", tables.patients)
    _write_csv(folder / "data/visits.csv", tables.visits)
    _write_csv(folder / "data/wards.csv", tables.wards)
    for name in _TEXTS:
        text = (files(__package__) / "project" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")


def _write_csv(path: Path, columns: Columns) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_parquet(path: Path, columns: Columns) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise PlanError(f"the example's tables are in files, which need pyarrow: {install_line('sql')}") from None
    parquet.write_table(pyarrow.table(columns), path)
