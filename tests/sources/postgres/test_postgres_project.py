"""A table on a PostgreSQL server in sfumato.yaml: by the name of its address, and nothing of the address anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.project import open_project
from sfumato.project.problems import ProjectError
from sfumato.sources.postgres_tables import PostgresTable
from tests.ledger.stores import run
from tests.sources.postgres import kit

FILE = """\
sfumato: 1
name: clinic
unit: user:patient
tables:
  visits:
    source: {source}
    columns: {{patient: key, cost: {{type: real, lower: 0, upper: 100}}}}
budget: {{total: {{epsilon: 3, delta: 1e-6}}}}
"""


def project(folder: Path, source: str) -> Path:
    (folder / "sfumato.yaml").write_text(FILE.format(source=source))
    return folder / "sfumato.yaml"


def test_a_table_is_named_by_a_variable_or_by_a_file(tmp_path: Path) -> None:
    named = open_project(project(tmp_path, "{postgres: CLINIC_URL, table: clinic.visits}"))
    assert named.sources["visits"] == PostgresTable("CLINIC_URL", "clinic.visits")
    filed = open_project(project(tmp_path, "{postgres: secrets/clinic.url}"))
    assert filed.sources["visits"] == PostgresTable(str(tmp_path / "secrets" / "clinic.url"))
    assert named.missing() == ()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{postgres: 'postgresql://me:SECRET@host/db'}", "the address itself does not belong here"),
        ("{postgres: CLINIC_URL, delimiter: ';'}", "a table on a server has no delimiter"),
        ("{postgres: CLINIC_URL, path: visits.csv}", "a table on a server has no path"),
        ("{table: clinic.visits}", "path is missing"),
    ],
)
def test_what_does_not_belong_there_is_refused(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=message) as caught:
        open_project(project(tmp_path, source))
    assert "SECRET" not in str(caught.value)


def test_what_is_missing_on_the_server_is_told_at_the_line_of_the_table(tmp_path: Path) -> None:
    place = kit.database()
    run(place, "CREATE TABLE visits (patient int, cost float)")
    (tmp_path / "clinic.url").write_text(place)
    open_project(project(tmp_path, "{postgres: clinic.url}")).need_data()
    run(place, "ALTER TABLE visits DROP COLUMN cost")
    with pytest.raises(ProjectError, match="has no column 'cost'") as caught:
        open_project(project(tmp_path, "{postgres: clinic.url}")).need_data()
    assert "host=" not in str(caught.value)
