"""Views in sfumato.yaml: read, checked with their lines, and held against the files that have them."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from sfumato.project import ProjectError, open_project
from tests.cli.front import sfumato

TEXT = """\
sfumato: 1
name: clinic
unit: user:patient
tables:
  visits:
    source: {path: clinic.duckdb, table: visits_2026}
    columns:
      patient: key
      ward: {type: category, values: [e, w]}
      cost: {type: real, lower: 0, upper: 100}
views:
  dear: SELECT * FROM visits WHERE cost > 50
  own:
    query: SELECT patient, ward FROM visits WHERE cost > 10
    source: clinic.duckdb
  wards: SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
limits: {rows: 10}
privacy: {target_epsilon: 1}
budget: {total: {epsilon: 9}}
"""
VIEW = "CREATE OR REPLACE VIEW own AS SELECT patient, ward FROM visits_2026 WHERE cost > "


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as base:
        base.execute(
            "CREATE TABLE visits_2026 AS SELECT i % 90 AS patient, CASE WHEN i % 2 = 0 THEN 'e' ELSE 'w' END AS ward, "
            "i % 100 AS cost FROM range(900) AS r(i)"
        )
        base.execute(VIEW + "10")
        base.execute("CREATE VIEW mixed AS SELECT patient, cost / MAX(cost) OVER () AS x FROM visits_2026")
    (tmp_path / "sfumato.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_queries_read_views(place: Path) -> None:
    project = open_project(place)
    assert list(project.schema.views) == ["dear", "own", "wards"]
    assert "WHERE cost > 50" in project.plan("SELECT COUNT(*) AS n FROM dear").text  # type: ignore[union-attr]
    told = json.loads(sfumato("describe", "--json", at=place).out)
    assert told["views"]["dear"] == "SELECT * FROM visits WHERE cost > 50"
    sfumato("ledger", "open", at=place)
    assert sfumato("query", "SELECT ward, COUNT(*) AS n FROM own GROUP BY ward", at=place).code == 0
    with duckdb.connect(str(place / "clinic.duckdb")) as base:
        base.execute(VIEW + "11")
    ran = sfumato("query", "SELECT COUNT(*) AS n FROM own", at=place)
    assert ran.code != 0 and "says something else now" in ran.err and "nothing was charged" in ran.err


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("cost > 50", "price > 50", 12, "In the view 'dear': There is no column 'price'"),
        (
            "SELECT * FROM visits WHERE cost > 50",
            "SELECT cost / MAX(cost) OVER () AS x FROM visits",
            12,
            "PARTITION BY",
        ),
        ("    source: clinic.duckdb", "    source: clinic.csv", 15, "only DuckDB files have views"),
        ("  wards:", "  visits:", 11, "a name that no table and no other view has"),
        ("  wards: SELECT", "  wards: SELEC", 16, "wards"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, line: int, words: str, place: Path) -> None:
    (place / "sfumato.yaml").write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProjectError, match="(?s)" + words.replace("(", r"\(")) as caught:
        open_project(place)
    assert caught.value.line == line


def test_a_new_project_takes_the_views_that_it_can_have(place: Path) -> None:
    (place / "sfumato.yaml").unlink()
    cost = ("--column", "cost=real:0:100", "--column", "ward=category:e,w")
    ran = sfumato("init", "--source", "clinic.duckdb", "--unit", "patient", "--yes", "--json", *cost, at=place)
    told = json.loads(ran.out)
    assert told["ready"] and any("the view mixed is left out: In the view 'mixed'" in note for note in told["notes"])
    project = open_project(place)
    assert dict(project.schema.views) == {"own": 'SELECT patient, ward FROM visits_2026 WHERE ("cost" > 10)'}
    assert sfumato("query", "SELECT COUNT(*) AS n FROM own", at=place).code == 0
    (place / "sfumato.yaml").unlink()
    ran = sfumato("init", "--source", "clinic.duckdb", "--unit", "patient", "--yes", "--json", at=place)
    assert any("(mixed, own) are left out until the rest is filled in" in note for note in json.loads(ran.out)["notes"])
