from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
import sqlglot

from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.schema import Table, category, key, real, whole
from sfumato.sources import Connection, Csv, DuckDBTable, Frame, Parquet, connect, source
from tests.sources.odd_tables import run

SECRET = "SECRET-4711"
TABLE = Table({"who": key(), "n": whole(0, 100)}, unit="who")


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    (tmp_path / "other.csv").write_text("a\n1\n")
    made = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"who": [SECRET, "b"], "n": [1, 2], "hidden": [7, 8]}), made)
    session = connect({"people": (TABLE, Parquet(made))}, threads=1, seconds=20)
    yield session
    session.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_parquet('{folder}/people.parquet')",
        "SELECT * FROM parquet_metadata('{folder}/people.parquet')",
        "SELECT * FROM '{folder}/people.parquet'",
        "SELECT * FROM '{folder}/other.csv'",
        "SELECT * FROM 'https://example.org/a.csv'",
        "SELECT * FROM glob('*')",
        "SELECT * FROM LATERAL read_text('/etc/hostname')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_views",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_tables",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM memory.main.people",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('duckdb_views')",
        "SELECT current_setting('temp_directory')",
        "SELECT getvariable('x')",
        "SELECT getenv('HOME')",
        "SELECT error(who) FROM people",
        "SELECT write_log(who) FROM people",
        "SELECT n INTO copy FROM people",
        "SELECT * FROM people WHERE n = ?",
        "SELECT * FROM range(10)",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT * FROM r",
        "WITH pg_tables AS (SELECT * FROM pg_tables) SELECT * FROM pg_tables",
        "WITH a AS (SELECT * FROM pg_views), pg_views AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM (WITH pg_tables AS (SELECT 1) SELECT * FROM pg_tables) AS a, pg_tables",
        "SELECT n FROM people WHERE EXISTS (SELECT 1 FROM duckdb_tables)",
        "SELECT hidden FROM people",
        "SELECT no_such_function(n) FROM people",
        "SELECT sum(who) FROM people",
        "SELECT max(strptime(who, '%Y')) AS s FROM people",
    ],
)
def test_only_the_tables_are_read(opened: Connection, tmp_path: Path, text: str) -> None:
    with pytest.raises(PlanError) as refused:
        run(opened, text.format(folder=tmp_path))
    assert SECRET not in str(refused.value) and refused.value.__context__ is None
    assert run(opened, "SELECT count(*) AS n FROM people") == [{"n": 2}]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW people",
        "INSERT INTO people VALUES ('x', 1)",
        "COPY people TO 'out.csv'",
        "ATTACH 'x.duckdb'",
        "PRAGMA database_list",
        "SET threads = 2",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "DESCRIBE people",
    ],
)
def test_only_selects_are_run(opened: Connection, text: str) -> None:
    with pytest.raises(ArgumentError, match="one SELECT"):
        opened.run(sqlglot.parse_one(text, dialect="duckdb"))


@pytest.mark.parametrize("tree", ["SELECT 1", None, 1])
def test_only_trees_are_run(opened: Connection, tree: Any) -> None:
    with pytest.raises(ArgumentError, match="one SELECT"):
        opened.run(tree)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('{folder}/other.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM 'https://example.org/a.csv'",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/new.duckdb' AS new",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/hostname']",
        "RESET lock_configuration",
        "SELECT * FROM _python_variable",
    ],
)
def test_the_engine_itself_is_shut_off(opened: Any, tmp_path: Path, text: str) -> None:
    """Behind the check of trees: the session could not do it if it were asked."""
    _python_variable = pyarrow.table({"a": [1]})
    with pytest.raises(duckdb.Error):
        opened._engine.execute(text.format(folder=tmp_path)).fetchall()


def test_no_progress_is_shown_where_somebody_watches() -> None:
    """In an interactive interpreter the engine switches its bar on, and a bar counts the rows of private tables."""
    code = """
import duckdb
from sfumato.schema import Table, real
from sfumato.sources import connect, source
asked = "SELECT current_setting('enable_progress_bar')"
session = connect({"t": (Table({"x": real(0, 1)}), source({"x": [1.0]}))})
print(*(each.sql(asked).fetchall()[0][0] for each in (duckdb.connect(), session._engine)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert told == ["True", "False"]


def test_ctes_subqueries_values_and_unions_are_run(opened: Connection) -> None:
    text = (
        "WITH a AS (SELECT n FROM people), b AS (SELECT n + k AS m FROM a, (VALUES (1), (2)) AS v(k)) "
        "SELECT sum(m) AS s FROM b UNION ALL SELECT count(*) FROM (SELECT * FROM People) AS q"
    )
    assert sorted(int(row["s"]) for row in run(opened, text)) == [2, 12]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(CAST(who AS INT)) AS s FROM people",
        "SELECT sum(n % (n - 1)) AS s FROM people",
        "SELECT max(9223372036854775807 + n) AS s FROM people",
    ],
)
def test_errors_of_the_engine_hold_no_cell(opened: Connection, text: str) -> None:
    with pytest.raises(DataError) as failed:
        run(opened, text)
    assert str(failed.value) == DataError.TEXT
    assert failed.value.__context__ is None and failed.value.__cause__ is None
    assert run(opened, "SELECT count(*) AS n FROM people") == [{"n": 2}]


def test_a_statement_is_stopped_in_time() -> None:
    big = pyarrow.table({"who": [str(n) for n in range(3000)], "n": list(range(3000))})
    opened = connect({"people": (TABLE, Frame(big))}, threads=1, seconds=0.2)
    started = time.monotonic()
    with pytest.raises(DataError):
        run(opened, "SELECT count(*) AS n FROM people a, people b, people c WHERE hash(a.n, b.n, c.n) = 1")
    assert time.monotonic() - started < 10
    assert run(opened, "SELECT count(*) AS n FROM people") == [{"n": 3000}]
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    opened.close()


def test_memory_is_limited_and_the_rest_goes_to_a_folder_that_is_removed(tmp_path: Path) -> None:
    numbers = pyarrow.table({"who": pyarrow.array(range(2_000_000)), "n": pyarrow.array(range(2_000_000))})
    opened = connect({"people": (TABLE, Frame(numbers))}, threads=1, memory=64 * 2**20, temp=tmp_path)
    text = "SELECT count(*) AS n, sum(s) AS s FROM (SELECT who, sum(n) OVER (ORDER BY who DESC) AS s FROM people)"
    assert run(opened, text)[0]["n"] == 2_000_000
    assert len(list(tmp_path.iterdir())) == 1
    opened.close()
    assert not list(tmp_path.iterdir())


def test_a_session_that_is_forgotten_leaves_nothing_behind(tmp_path: Path) -> None:
    opened = connect({"people": (TABLE, Frame({"who": ["a"], "n": [1]}))}, temp=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1 and repr(opened) == "<Session over 'people'>"
    del opened
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(PlanError):
        connect({"people": (TABLE, Csv("nowhere.csv"))}, temp=tmp_path)
    assert not list(tmp_path.iterdir())


def test_several_tables_in_one_session(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "two.duckdb")) as made:
        made.execute("CREATE TABLE towns AS SELECT 'rome' AS town, 41.9 AS north")
        made.execute('CREATE TABLE "odd \' name" AS SELECT 1 AS "x "" y"')
    (tmp_path / "visits.csv").write_text("who,town\na,rome\nb,oslo\n")
    towns = Table({"town": category(["rome", "oslo"]), "north": real(0, 90)}, private=False)
    odd = Table({'x " y': whole(0, 9)}, private=False)
    visits = Table({"who": key(), "town": category(["rome", "oslo"])}, unit="who")
    opened = connect({
        "towns": (towns, source(tmp_path / "two.duckdb")),
        "odd": (odd, DuckDBTable(tmp_path / "two.duckdb", "odd ' name")),
        "visits": (visits, source(tmp_path / "visits.csv")),
    })  # fmt: skip
    text = 'SELECT count(*) AS n, sum(north) AS s, max("x "" y") AS x FROM visits JOIN towns USING (town), odd'
    assert run(opened, text) == [{"n": 1, "s": pytest.approx(41.9), "x": 1}]
    assert list(opened.tables) == ["towns", "odd", "visits"]
    opened.close()
    with duckdb.connect(str(tmp_path / "two.duckdb")) as again:  # closed means closed
        again.execute("CREATE TABLE more AS SELECT 1")


def test_what_is_wrong_with_the_files_is_said_when_they_are_first_asked_for(tmp_path: Path) -> None:
    def refused(given: Any, words: str, table: Table = TABLE) -> None:
        with pytest.raises(PlanError, match=words) as error:
            _ = connect({"people": (table, source(given))}).tables["people"]
        assert SECRET not in str(error.value) and error.value.__context__ is None

    good = pyarrow.table({"who": [SECRET], "n": [1]})
    pyarrow.parquet.write_table(good, tmp_path / "p1.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"who": [SECRET], "n": [1.5]}), tmp_path / "p2.parquet")
    (tmp_path / "broken.parquet").write_text(SECRET)
    (tmp_path / "broken.duckdb").write_text(SECRET * 1000)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute("CREATE TABLE other AS SELECT 1 AS who")
    refused(tmp_path / "none.csv", "there is no file")
    refused(tmp_path / "none.parquet", "there is no file")
    refused(tmp_path / "none*.parquet", "no file fits")
    refused(tmp_path / "p*.parquet", "same types")
    refused(tmp_path / "broken.parquet", "cannot be read as Parquet")
    refused(tmp_path / "broken.duckdb", "cannot be opened")
    refused(tmp_path / "t.duckdb", "no table 'people'")
    refused(DuckDBTable(tmp_path / "t.duckdb", "other"), "no column 'n'")
    refused(good.select(["who"]), "no column 'n'")
    refused({"who": [SECRET]}, "no column 'n'")
    refused(good, "'who' and 'WHO'", Table({"who": key(), "WHO": key()}))
    with pytest.raises(DataError):
        _ = connect({"people": (TABLE, source({"who": [SECRET], "n": [1, 2]}))}).tables["people"]


def test_a_table_that_nobody_asks_for_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text(SECRET)
    opened = connect({
        "people": (TABLE, source({"who": ["a"], "n": [1]})), "others": (TABLE, source(tmp_path / "broken.parquet")),
    })  # fmt: skip
    with opened:
        assert run(opened, "SELECT count(*) AS n FROM people") == [{"n": 1}]
        with pytest.raises(PlanError, match="cannot be read as Parquet"):
            run(opened, "SELECT count(*) AS n FROM others")


@pytest.mark.parametrize(
    "how",
    [{"threads": 0}, {"threads": 1.5}, {"memory": 1}, {"memory": "1GB"}, {"seconds": 0}, {"seconds": float("nan")}],
)
def test_odd_options_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(how))):
        connect({"people": (TABLE, Frame({"who": [], "n": []}))}, **how)


def test_exact_sums_do_not_depend_on_threads() -> None:
    numbers = pyarrow.table({"who": list(range(50_000)), "n": [2**62 - n for n in range(50_000)]})
    table = Table({"who": key(), "n": whole(-(2**63), 2**63 - 1)})
    expected = sum(2**62 - n for n in range(50_000))
    for threads in (1, 2, 4):
        opened = connect({"people": (table, Frame(numbers))}, threads=threads)
        assert int(run(opened, "SELECT sum(n) AS s FROM people")[0]["s"]) == expected
        opened.close()


def test_the_working_folder_and_links_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it's.csv").write_text("who,n\na,1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "it's.csv")
    monkeypatch.chdir(tmp_path)
    for name in ("it's.csv", "link.csv", f"../{tmp_path.name}/it's.csv"):
        opened = connect({"people": (TABLE, source(name))})
        assert run(opened, "SELECT sum(n) AS s FROM people")[0]["s"] == 1
        opened.close()
