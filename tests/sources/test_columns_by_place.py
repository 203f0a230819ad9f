"""A file without a header: columns are known by their places alone, so all are named, and are counted unpaid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit
from sfumato.combine import sequence
from sfumato.errors import ArgumentError, PlanError
from sfumato.query import Limits, sql
from sfumato.schema import Table, key, real
from sfumato.sources import Csv
from sfumato_referee import attacks
from sfumato_referee.attacks import columns_by_place

PATIENT = Unit("user:patient")
TABLE = Table({"patient": key(), "cost": real(0, 9)}, unit="patient")
SCHEMA = Schema({"t": TABLE})
PLAN = sql("SELECT COUNT(*) AS n FROM t", SCHEMA, unit=PATIENT, epsilon=5, limits=Limits(rows=1))


def visits(file: Path, *, columns: str = "visit,patient,cost", sign: str = ",", encoding: str = "utf-8") -> Path:
    """100 patients with 100 rows each."""
    cells = {"visit": "v{0}", "patient": "p{1}", "cost": "3", "more": "Violetta"}
    row = sign.join(cells[name] for name in columns.split(",")) + "\n"
    file.write_text("".join(row.format(n, n % 100) for n in range(10_000)), encoding=encoding)
    return file


def doors(source: Csv) -> tuple[Curator, MemoryLedger]:
    ledger = MemoryLedger({"d": Budget(epsilon=10)})
    return Curator(Private("d", source, unit=PATIENT, schema=SCHEMA), ledger), ledger


def test_a_column_that_is_left_out_keeps_its_place(tmp_path: Path) -> None:
    """Read one place off, 10,000 visits would pass for patients."""
    source = Csv(visits(tmp_path / "v.csv"), header=False, columns=("visit", "patient", "cost"))
    curator, _ = doors(source)
    assert curator.release(PLAN).value["n"][0] == pytest.approx(100, abs=20)


def test_a_file_with_more_columns_than_are_named_is_refused_at_every_door_unpaid(tmp_path: Path) -> None:
    curator, ledger = doors(Csv(visits(tmp_path / "v.csv"), header=False))
    before = str(ledger.left("d"))
    opened: list[Any] = [
        lambda: curator.quote(PLAN),
        lambda: curator.release(PLAN),
        lambda: curator.prepay(sequence(one=PLAN)),
    ]
    for door in opened:
        with pytest.raises(PlanError, match=r"'v\.csv' has 3 cells, and 2 columns are named") as problem:
            door()
        assert "name all columns of the file in their order" in str(problem.value)
        assert "p0" not in str(problem.value)
    assert str(ledger.left("d")) == before


@pytest.mark.parametrize(
    ("columns", "how"),
    [
        ("more,visit,patient,cost", {}),
        ("patient,cost", {}),
        ("visit,patient,cost", {"delimiter": ";"}),
        ("visit,patient,cost,more", {"delimiter": "\t", "quote": ""}),
        ("visit,patient,cost,more", {"encoding": "utf-16"}),
        ("visit,patient,cost,more", {"encoding": "latin-1"}),
    ],
)
def test_a_file_that_has_changed_since_is_refused_unpaid(tmp_path: Path, columns: str, how: dict[str, str]) -> None:
    file, sign, encoding = tmp_path / "v.csv", how.get("delimiter", ","), how.get("encoding", "utf-8")
    visits(file, sign=sign, encoding=encoding)
    curator, ledger = doors(Csv(file, header=False, columns=("visit", "patient", "cost"), **how))  # type: ignore[arg-type]
    curator.quote(PLAN)
    if how.get("delimiter") == ";":
        visits(file, columns=columns)  # commas now
    else:
        visits(file, columns=columns, sign=sign, encoding=encoding)
    before = str(ledger.left("d"))
    with pytest.raises(PlanError, match="3 columns are named") as problem:
        curator.release(PLAN)
    assert "Violetta" not in str(problem.value) and str(ledger.left("d")) == before


def test_a_header_that_has_lost_a_column_is_refused_unpaid(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("visit,patient,cost\n", encoding="utf-8")
    curator, ledger = doors(Csv(file))
    curator.quote(PLAN)
    file.write_text("visit,person,cost\n", encoding="utf-8")
    before = str(ledger.left("d"))
    with pytest.raises(PlanError, match="no column 'patient'"):
        curator.release(PLAN)
    assert str(ledger.left("d")) == before


def test_what_was_answered_is_given_again_whatever_became_of_the_file(tmp_path: Path) -> None:
    file = visits(tmp_path / "v.csv")
    curator, _ = doors(Csv(file, header=False, columns=("visit", "patient", "cost")))
    first = curator.release(PLAN)
    visits(file, columns="more,visit,patient,cost")
    assert curator.release(PLAN).raw == first.raw and curator.quote(PLAN).due is not None


@pytest.mark.parametrize("text", ["", "\n\n", '"v\n1","p\n1",2\nv2,p2,3\n', "\nv1,p1,2\n"])
def test_no_row_at_all_and_rows_over_several_lines_are_counted_as_they_are(tmp_path: Path, text: str) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text, encoding="utf-8")
    curator, _ = doors(Csv(file, header=False, columns=("visit", "patient", "cost")))
    curator.quote(PLAN)


def test_columns_are_names_of_different_places_and_need_no_header(tmp_path: Path) -> None:
    for columns in ("patient", ("patient", "patient"), ("patient", ""), ("patient", 3), 7):
        with pytest.raises(ArgumentError, match="columns"):
            Csv("v.csv", header=False, columns=columns)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="header"):
        Csv("v.csv", columns=("patient", "cost"))
    assert Csv("v.csv", header=False, columns=["a", "b"]).columns == ("a", "b")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="have no 'patient'"):
        Private("d", Csv("v.csv", header=False, columns=("visit", "cost")), unit=PATIENT, schema=SCHEMA)


def test_o1_every_way_to_write_a_file_is_withstood_and_the_planted_fault_is_seen() -> None:
    verdict = columns_by_place.attack(patients=4, visits=5, written=2)
    assert not verdict.broken and verdict.figures["answered"] == 56, verdict
    control = columns_by_place.attack(columns_by_place.CONTROL, patients=4, visits=5, written=2)
    assert control.broken and control.figures["most units"] == 20


@pytest.mark.slow
def test_o1_in_full() -> None:
    assert not attacks.attack("O1").broken
    assert attacks.attack("O1", control=True).figures["most units"] == 10_000
