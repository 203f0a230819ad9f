"""Views of DuckDB files: their definitions are read, and unfolded; the file's own view is never asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, sql
from sfumato.errors import ArgumentError, PlanError
from sfumato.query import Sql
from sfumato.schema import Schema, Table, category, date, flag, key, real, whole
from sfumato.sources import DuckDBTable, proposed_views
from sfumato.units import Unit
from tests.query.still import answered

USER = Unit("user:patient")
BASE = """
CREATE TABLE visits_2026 AS SELECT (i % 300)::INT AS patient, CASE WHEN i % 2 = 0 THEN 'e' ELSE 'w' END AS ward,
    (i % 100)::DOUBLE AS cost, DATE '2026-01-01' + (i % 100)::INT AS day, i % 3 = 0 AS ok FROM range(3000) AS r(i);
CREATE TABLE people AS SELECT i::INT AS patient, (1930 + i % 70)::INT AS born FROM range(290) AS r(i);
"""
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(), "ward": category(["e", "w"]), "cost": real(0, 100),
                "day": date("2026-01-01", "2026-12-31"), "ok": flag(),
            },
            unit="patient",
        ),
        "people": Table({"patient": key(), "born": whole(1900, 2020)}, unit="patient"),
    }
)  # fmt: skip
VIEWS = {
    "filtered": "SELECT * FROM visits_2026 WHERE cost > 10 AND ward LIKE 'e%' AND ward NOT ILIKE 'x%'",
    "renamed(p, n)": "SELECT patient, COUNT(*) FROM visits_2026 GROUP BY patient HAVING SUM(cost) > 300",
    "computed": "SELECT patient, EXTRACT(year FROM day) AS y, day + INTERVAL 3 DAY AS later, IF(ok, 1, 2) AS i, "
    "cost::INT AS c, POSITION('e' IN ward) AS place, NOT ok AS no, day - INTERVAL 2 MONTH AS before "
    "FROM visits_2026 v JOIN people p USING (patient) WHERE cost BETWEEN 1 AND 40 AND ward IN ('e', 'b') "
    "AND day >= DATE '2026-01-01' AND day + INTERVAL 30 DAY < DATE '2026-03-20' AND POSITION('e' IN ward) = 1",
    "latest": "SELECT patient, cost FROM visits_2026 "
    "WINDOW w AS (PARTITION BY patient ORDER BY day DESC, cost) QUALIFY ROW_NUMBER() OVER w = 1",
    "joined": "WITH q AS (SELECT patient, AVG(cost) FILTER (WHERE cost > 0) AS m FROM visits_2026 GROUP BY ALL) "
    "SELECT q.patient, q.m, p.born // 10 * 10 AS decade, w.ward FROM q LEFT JOIN people p ON p.patient = q.patient "
    "JOIN (SELECT patient AS who, ward FROM visits_2026) w ON w.who = q.patient",
    "stacked": "SELECT patient, day FROM main.visits_2026 UNION ALL SELECT patient, day FROM visits_2026 WHERE ok",
    "asking": "SELECT patient, ward FROM visits_2026 v WHERE patient IN (SELECT patient FROM people WHERE born < 1960) "
    "AND NOT EXISTS (SELECT 1 FROM people p WHERE p.patient = v.patient AND p.born < 1935) "
    "AND patient NOT IN (SELECT patient FROM visits_2026 GROUP BY patient HAVING COUNT(*) > 20)",
    "of_a_view": "SELECT * EXCLUDE (cost), filtered.cost * 2 AS double FROM filtered",
    "old_names": "SELECT visits_2026.patient, visits_2026.cost FROM visits_2026, people "
    "WHERE people.patient = visits_2026.patient",
}


def filed(folder: Path, *statements: str) -> Path:
    file = folder / "clinic.duckdb"
    with duckdb.connect(str(file)) as base:
        for statement in (BASE, *(f"CREATE VIEW {name} AS {text}" for name, text in VIEWS.items()), *statements):
            base.execute(statement)
    return file


def private(file: Path, *views: str, schema: Schema = SCHEMA, **places: Any) -> Private:
    data = {
        "visits": DuckDBTable(file, "visits_2026"),
        "people": str(file),
        **dict.fromkeys(views, str(file)),
        **places,
    }
    return Private("clinic", data, unit=USER, schema=schema)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filed(tmp_path_factory.mktemp("views"))


@pytest.mark.parametrize("name", [name.partition("(")[0] for name in VIEWS])
def test_a_view_is_unfolded_and_counts_what_the_file_counts(name: str, file: Path) -> None:
    data = private(file, name)
    plan = sql(f"SELECT COUNT(*) AS n FROM {name}", data, epsilon=1, limits={"rows": 100})
    assert (
        isinstance(plan, Sql) and plan.text.startswith("WITH ") and "visits_2026" not in plan.text.replace(" AS ", "")
    )
    with duckdb.connect(str(file), read_only=True) as base:
        [(true,)] = base.sql(f"SELECT COUNT(*) FROM {name}").fetchall()
        rows = {table: base.sql(f"FROM {table}").to_arrow_table() for table in ("visits_2026", "people")}
    answer = answered(plan, {"visits": rows["visits_2026"], "people": rows["people"]})
    assert true > 50 and answer["n"] == [true]


def test_a_view_is_paid_for_and_released(file: Path) -> None:
    data = private(file, "of_a_view")
    assert set(data.schema.views) == {"filtered", "of_a_view"} and "of_a_view" in repr(data)
    curator = Curator(data, MemoryLedger({"clinic": Budget(epsilon=10)}))
    plan = sql("SELECT ward, COUNT(*) AS n FROM of_a_view GROUP BY ward", data, epsilon=5, limits={"rows": 20})
    assert curator.quote(plan) and abs(curator.release(plan).value["n"][0] - 1320) < 200


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("SELECT patient, cost / MAX(cost) OVER () AS x FROM visits_2026", "In the view 'v'.*PARTITION BY"),
        ("SELECT * FROM range(3)", "public tables only"),
        ("SELECT patient, nextval('s') AS x FROM visits_2026", "NEXTVAL"),
    ],
)
def test_what_the_compiler_refuses_is_refused(view: str, words: str, tmp_path: Path) -> None:
    data = private(filed(tmp_path, "CREATE SEQUENCE s", f"CREATE VIEW v AS {view}"), "v")
    with pytest.raises(PlanError, match=words):
        sql("SELECT COUNT(*) AS n FROM v", data, epsilon=1)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "CREATE TABLE more (patient INT); CREATE VIEW v AS SELECT * FROM more",
            "reads 'more', which is no table of the",
        ),
        (
            "CREATE SCHEMA o; CREATE TABLE o.people (patient INT); CREATE VIEW v AS SELECT * FROM o.people",
            "in its file's",
        ),
        ("SELECT 1", "has no view 'v'"),
        ("CREATE TABLE v (patient INT)", "has no view 'v'"),
        ("CREATE VIEW visits AS SELECT * FROM people; CREATE VIEW v AS SELECT * FROM visits", "has a table 'visits'"),
    ],
)
def test_what_is_not_there_is_refused_at_once(statement: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=words):
        private(filed(tmp_path, statement), "v")


def test_tables_of_another_file_are_not_taken_for_its_own(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    there, here = filed(tmp_path / "other"), filed(tmp_path)
    with pytest.raises(PlanError, match="reads 'visits_2026', which is no table of the schema in the same file"):
        private(here, filtered=str(there))


def test_a_view_that_changes_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = filed(tmp_path)
    data = private(file, "filtered", "of_a_view")
    ledger = MemoryLedger({"clinic": Budget(epsilon=10)})
    curator = Curator(data, ledger)
    plan = sql("SELECT COUNT(*) AS n FROM of_a_view", data, epsilon=1, limits={"rows": 9})
    curator.release(plan)
    left = ledger.left("clinic")
    with duckdb.connect(str(file)) as base:
        base.execute("CREATE OR REPLACE VIEW filtered AS SELECT * FROM visits_2026 WHERE cost > 11")
    other = sql("SELECT COUNT(*) AS n FROM of_a_view", data, epsilon=2, limits={"rows": 9})
    with pytest.raises(PlanError, match=r"'filtered' in 'clinic\.duckdb' says something else now"):
        curator.release(other)
    with duckdb.connect(str(file)) as base:
        base.execute("DROP VIEW filtered; DROP VIEW of_a_view")
    with pytest.raises(PlanError, match="has no view"):
        curator.release(other)
    assert ledger.left("clinic") == left
    with duckdb.connect(str(file)) as base:
        base.execute(f"CREATE VIEW filtered AS {VIEWS['filtered']}; CREATE VIEW of_a_view AS {VIEWS['of_a_view']}")
    curator.release(other)


def test_a_text_of_somebodys_own_is_held_against_the_file(file: Path) -> None:
    own = "select * from Visits where ((cost > 10) and ward like 'e%') and (ward not ilike 'x%')"
    schema = Schema(SCHEMA.tables, views={"filtered": own})
    data = private(file, "filtered", schema=schema)
    curator = Curator(data, MemoryLedger({"clinic": Budget(epsilon=10)}))
    curator.release(sql("SELECT COUNT(*) AS n FROM filtered", data, epsilon=1, limits={"rows": 9}))
    wrong = Schema(SCHEMA.tables, views={"filtered": "SELECT * FROM visits WHERE cost > 11"})
    data = private(file, "filtered", schema=wrong)
    with pytest.raises(PlanError, match="says something else"):
        Curator(data, MemoryLedger({"clinic": Budget(epsilon=10)})).release(
            sql("SELECT COUNT(*) AS n FROM filtered", data, epsilon=1, limits={"rows": 9})
        )


def test_data_beside_the_tables_are_views_of_duckdb_files_alone(file: Path) -> None:
    for more in ({"patient": [1]}, "visits.csv", file.with_suffix(".parquet")):
        with pytest.raises(ArgumentError, match="views of DuckDB files"):
            private(file, more=more)
    one = Schema({"visits_2026": SCHEMA.table("visits")})
    data = Private("clinic", {"visits_2026": file, "filtered": file}, unit=USER, schema=one)
    assert set(data.schema.views) == {"filtered"}


def test_views_that_read_the_tables_alone_are_proposed(tmp_path: Path) -> None:
    file = filed(tmp_path, "CREATE TABLE more (patient INT); CREATE VIEW v AS SELECT * FROM more")
    proposed = proposed_views(file, {"visits_2026": "visits", "people": "people"})
    assert set(proposed) == {name.partition("(")[0] for name in VIEWS}
    assert set(proposed_views(file, {"visits_2026": "stays"})) == {
        "filtered",
        "renamed",
        "latest",
        "stacked",
        "of_a_view",
    }
    assert "FROM stays" in proposed_views(file, {"visits_2026": "stays"})["filtered"]
