"""A table in a database in sfumato.yaml: by the name of what opens a connection, and nothing of an address anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.project import open_project
from sfumato.project.problems import ProjectError
from sfumato.sources import DatabaseTable
from tests.sources.dbapi import clickhouse_engine, kit

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


def test_a_table_is_named_by_a_function_or_by_a_variable(tmp_path: Path) -> None:
    named = open_project(project(tmp_path, "{connect: 'clinic.db:connect', table: clinic.visits}"))
    assert named.sources["visits"] == DatabaseTable("clinic.db:connect", "clinic.visits")
    other = open_project(project(tmp_path, "{connect: CLINIC, dialect: trino, untested: true}"))
    assert other.sources["visits"] == DatabaseTable("CLINIC", dialect="trino", untested=True)
    assert named.missing() == ()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{connect: 'mysql://me:SECRET@host/db'}", "connect names no function"),
        ("{connect: 'host=SECRET'}", "connect names no function"),
        ("{connect: 'clinic.db:connect', delimiter: ';'}", "a table in a database has no delimiter"),
        ("{connect: 'clinic.db:connect', path: visits.csv}", "a table in a database has no path"),
        ("{connect: 'clinic.db:connect', dialect: oracle}", "dialect"),
        ("{dialect: mariadb}", "path is missing"),
    ],
)
def test_what_does_not_belong_there_is_refused(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=message) as caught:
        open_project(project(tmp_path, source))
    assert "SECRET" not in str(caught.value)


def test_what_is_missing_there_is_told_at_the_line_of_the_table(tmp_path: Path) -> None:
    there = kit.clickhouse_table("project_visits", "patient Int32, cost Float64")
    source = f"{{connect: '{there.connect}', dialect: clickhouse, table: project_visits}}"
    open_project(project(tmp_path, source)).need_data()
    clickhouse_engine.run("ALTER TABLE project_visits DROP COLUMN cost")
    with pytest.raises(ProjectError, match="has no column 'cost'"):
        open_project(project(tmp_path, source)).need_data()
