"""Record and replay on the forms that pipelines hold tables in: frames of every maker, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from sfumato import Schema, Unit, audit, bounds, mechanisms, query, schema
from sfumato.audit.replays.holding import HELD
from sfumato.audit.replays.recording import EXCEPTION, RESULT
from sfumato.errors import ArgumentError
from sfumato.sources import Csv, DuckDBTable, Parquet
from tests.effort import tries

WARDS = ("a", "b")
VISITS = Schema.of(
    ward=schema.category(WARDS), days=schema.real(0, 9), note=schema.key(), at=schema.moment("2020-01-01", "2030-01-01")
)
QUICK = [
    "pandas",
    "polars",
    "arrow",
    "csv",
    *(pytest.param(form, marks=pytest.mark.slow) for form in ("parquet", "duckdb")),
]
OF_FILES = {"csv": Csv, "parquet": Path, "duckdb": DuckDBTable}


def summary(curator: Any) -> Any:
    wards = curator.release(mechanisms.Laplace(query=bounds.histogram("ward", WARDS, Unit()), epsilon=1)).value
    notes = mechanisms.ThresholdKeys(column="note", protects=Unit(), epsilon=1, delta=1e-6)
    return wards, curator.release(notes).value


def dashboard(curator: Any) -> Any:
    text = "SELECT ward, COUNT(*) AS n, SUM(days) AS total FROM data GROUP BY ward"
    return curator.release(query.sql(text, VISITS, unit=Unit(), epsilon=1, delta=1e-6)).to_csv()


def test_quick_forms_are_held_forms() -> None:
    assert {getattr(form, "values", (form,))[0] for form in QUICK} == set(HELD)


@pytest.mark.parametrize("form", QUICK)
def test_honest_pipelines_pass_in_every_form(form: str) -> None:
    for pipeline in (summary, dashboard):
        told = audit.replay(pipeline, schema=VISITS, unit=Unit(), form=form, most=tries(3, of=5))
        assert told.verdict == "nothing found", told.findings


def first_ward(data: Any, curator: Any) -> Any:
    """Glue that reads the data itself, in whatever form it lies."""
    kind = type(data).__module__.partition(".")[0]
    if kind in ("pandas", "polars", "pyarrow"):
        ward = len(data["ward"])
    elif isinstance(data, DuckDBTable):
        with duckdb.connect(data.path) as opened:
            ward = opened.sql("SELECT count(*) FROM data").fetchall()[0][0]
    elif isinstance(data, Csv):
        ward = len(Path(data.path).read_bytes().splitlines())
    else:
        ward = pyarrow.parquet.read_metadata(getattr(data, "path", data)).num_rows
    return summary(curator), ward


@pytest.mark.parametrize("form", QUICK)
def test_glue_that_reads_frames_and_files_is_found(form: str) -> None:
    told = audit.replay(first_ward, schema=VISITS, unit=Unit(), form=form, most=tries(2, of=4))
    assert RESULT in told.kinds


def careless(data: Any, curator: Any) -> Any:
    """A program that decodes all texts at once, and so fails on one of them."""
    texts = [data["note"].cast("large_binary").to_pylist()]
    joined = b" ".join(cell for cell in texts[0] if cell).decode()
    return summary(curator), isinstance(joined, str)


def test_awkward_cells_of_frames_are_tried() -> None:
    for awkward in (True, False):
        told = audit.replay(careless, schema=VISITS, unit=Unit(), form="arrow", awkward=awkward, most=20)
        assert (EXCEPTION in told.kinds) == awkward


def _given(form: str, folder: Path) -> Any:
    raw = pyarrow.array([b"x", b"\xff", b"z", None, b"x"])
    notes = pyarrow.Array.from_buffers(pyarrow.string(), 5, raw.buffers())
    moments = pyarrow.array([0, 2**62, None, 5, 10**15], pyarrow.int64()).view(pyarrow.timestamp("us"))
    columns = {"ward": ["a", "b", None, "a", "z"], "days": [1.0, None, 3.0, 2.0, 5.0], "note": notes, "at": moments}
    fine = {**columns, "note": ["x", "y", "z", None, "x"], "at": moments.take(pyarrow.array([0, 0, 2, 3, 4]))}
    if form == "arrow":
        return pyarrow.table(columns)
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
        return Parquet(folder / "t.parquet")
    if form == "csv":
        pyarrow.csv.write_csv(pyarrow.table(fine), folder / "t.csv")
        return folder / "t.csv"
    if form == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as made:
            made.register("given", pyarrow.table(fine))
            made.execute("CREATE TABLE visits AS SELECT * FROM given")
        return DuckDBTable(folder / "t.duckdb", "visits")
    table = pyarrow.table(fine)
    return polars.from_arrow(table) if form == "polars" else table.to_pandas(types_mapper=pandas.ArrowDtype)


@pytest.mark.parametrize("form", QUICK)
def test_rows_of_your_own_are_replayed_in_the_form_they_lie_in(form: str, tmp_path: Path) -> None:
    seen = set()

    def looks(data: Any, curator: Any) -> Any:
        seen.add(type(data))
        return summary(curator)

    given = _given(form, tmp_path)
    told = audit.replay(looks, schema=VISITS, unit=Unit(), data=given, most=tries(3, of=6))
    assert told.verdict == "nothing found", told.findings
    expected = {"arrow": pyarrow.Table, "polars": polars.DataFrame, "pandas": pandas.DataFrame, "csv": Csv}
    assert all(issubclass(kind, expected.get(form, OF_FILES.get(form, object))) for kind in seen)
    assert RESULT in audit.replay(first_ward, schema=VISITS, unit=Unit(), data=given, most=3).kinds


def test_forms_that_are_none() -> None:
    with pytest.raises(ArgumentError, match="form"):
        audit.replay(summary, schema=VISITS, form="excel")
    with pytest.raises(ArgumentError, match="form"):
        audit.replay(summary, schema=VISITS, form=5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="schema is missing"):
        audit.replay(lambda data: None, data={"x": [1]}, form="arrow")
    with pytest.raises(ArgumentError, match="pairs"):
        audit.replay(summary, schema=VISITS, form="arrow", pairs=[({}, {})])
