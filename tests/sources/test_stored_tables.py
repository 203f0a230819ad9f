"""Of a DuckDB file stored cells alone are taken; whatever else bears a table's name is refused before it is paid."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import ArgumentError, PlanError
from sfumato.ledger.memory import MemoryLedger
from sfumato.mechanisms import Laplace
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import DuckDBTable, connect, source
from sfumato.units import Unit

PERSON = Unit("user:who")
SCHEMA = Schema({"visits": Table({"who": key(), "x": real(0, 1)}, unit="who")})
BASE = (
    "CREATE TABLE base (who VARCHAR, cost DOUBLE); "
    "INSERT INTO base SELECT 'p' || i, i FROM range(50) AS r(i)"
)  # fmt: skip
SHARE = "SELECT who, cost / max(cost) OVER () AS x FROM base"


def stored(folder: Path, *statements: str) -> Path:
    file = folder / "clinic.duckdb"
    with duckdb.connect(str(file)) as base:
        base.execute(BASE)
        for each in statements:
            base.execute(each)
    return file


def door(data: Any) -> tuple[Curator, MemoryLedger]:
    ledger = MemoryLedger({"d": Budget(epsilon=10)})
    return Curator(Private("d", data, unit=PERSON, schema=SCHEMA), ledger), ledger


NO_TABLES = {
    "a view": (f"CREATE VIEW visits AS {SHARE}", "is a view"),
    "a view in other letters": (f'CREATE VIEW "Visits" AS {SHARE}', "is a view"),
    "a view of a view": (f"CREATE VIEW v AS {SHARE}; CREATE VIEW visits AS SELECT * FROM v", "is a view"),
    "a harmless view": ("CREATE VIEW visits AS SELECT who, cost AS x FROM base", "is a view"),
    "a macro": (f"CREATE MACRO visits() AS TABLE {SHARE}", "has no table 'visits'"),
    "a table of another schema": (f"CREATE SCHEMA o; CREATE TABLE o.visits AS {SHARE}", "has no table 'visits'"),
    "nothing": ("SELECT 1", "has no table 'visits'"),
    "a generated column": (
        "CREATE TABLE visits (who VARCHAR, raw DOUBLE, x DOUBLE GENERATED ALWAYS AS (raw / 9))",
        "'x' .* is computed when it is read",
    ),
    "a generated column in other letters": (
        'CREATE TABLE visits (raw VARCHAR, x DOUBLE, "WHO" VARCHAR GENERATED ALWAYS AS (lower(raw)))',
        "'WHO' .* is computed when it is read",
    ),
}


def asked(curator: Curator) -> list[Callable[[], Any]]:
    query = sql("SELECT SUM(x) AS s FROM visits", curator.private, epsilon=1, limits=Limits())
    rows = Laplace(query=bounds.clipped_sum("x", 0, 1, PERSON), epsilon=1)
    return [lambda plan=plan, ask=ask: ask(plan) for plan in (query, rows) for ask in (curator.quote, curator.release)]


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_stored_table_is_refused_before_anything_is_charged(name: str, tmp_path: Path) -> None:
    statement, words = NO_TABLES[name]
    curator, ledger = door(stored(tmp_path, statement))
    before = ledger.left("d")
    for ask in asked(curator):
        with pytest.raises(PlanError, match=words) as caught:
            ask()
        assert "p49" not in str(caught.value)
    assert ledger.left("d") == before


def test_the_words_say_what_to_do(tmp_path: Path) -> None:
    curator, _ = door(stored(tmp_path, f"CREATE VIEW visits AS {SHARE}"))
    with pytest.raises(PlanError, match=r"make a table of it .* or name the tables that it reads in the schema"):
        asked(curator)[0]()


def test_a_session_refuses_it_too(tmp_path: Path) -> None:
    """A view that takes a table's place between the charge and the opening is not read either."""
    tables = {"visits": (SCHEMA.table(), DuckDBTable(stored(tmp_path, f"CREATE VIEW visits AS {SHARE}")))}
    with pytest.raises(PlanError, match="is a view"):
        _ = connect(tables).tables["visits"]


def test_a_table_that_becomes_a_view_is_refused_from_then_on(tmp_path: Path) -> None:
    file = stored(tmp_path, f"CREATE TABLE visits AS {SHARE}")
    curator, ledger = door(file)
    curator.release(sql("SELECT SUM(x) AS s FROM visits", curator.private, epsilon=1, limits=Limits()))
    with duckdb.connect(str(file)) as base:
        base.execute(f"DROP TABLE visits; CREATE VIEW visits AS {SHARE}")
    before = ledger.left("d")
    with pytest.raises(PlanError, match="is a view"):
        curator.release(sql("SELECT COUNT(*) AS n FROM visits", curator.private, epsilon=1, limits=Limits()))
    assert ledger.left("d") == before


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE visits AS {SHARE}",
        f'CREATE TABLE "VISITS" AS {SHARE}',
        "CREATE TABLE visits (who VARCHAR, x DOUBLE, more DOUBLE GENERATED ALWAYS AS (x + 1))",  # which nobody reads
        f"CREATE TABLE visits AS {SHARE}; CREATE VIEW other AS {SHARE}; CREATE INDEX i ON visits (who)",
        "CREATE TABLE visits (who VARCHAR, x DOUBLE DEFAULT 0.5); INSERT INTO visits (who) SELECT who FROM base",
    ],
)
def test_a_base_table_is_read(statement: str, tmp_path: Path) -> None:
    curator, _ = door(stored(tmp_path, statement))
    for ask in asked(curator):
        ask()


def test_a_named_table_is_found_whatever_the_schema_calls_it(tmp_path: Path) -> None:
    curator, _ = door(
        DuckDBTable(stored(tmp_path, f"CREATE TABLE kept AS {SHARE}; CREATE VIEW visits AS {SHARE}"), "kept")
    )
    for ask in asked(curator):
        ask()
    curator, _ = door(DuckDBTable(tmp_path / "clinic.duckdb", "visits"))
    with pytest.raises(PlanError, match="is a view"):
        asked(curator)[0]()


def test_a_file_of_another_engine_is_none(tmp_path: Path) -> None:
    """SQLite has types, collations and views of its own."""
    file = tmp_path / "clinic.duckdb"
    with sqlite3.connect(file) as base:
        base.execute("CREATE TABLE visits (who TEXT COLLATE NOCASE, x REAL)")
    base.close()
    curator, ledger = door(file)
    before = ledger.left("d")
    with pytest.raises(PlanError, match="is no DuckDB file"):
        asked(curator)[1]()
    assert ledger.left("d") == before


def test_a_file_that_is_still_to_come_is_quoted(tmp_path: Path) -> None:
    curator, _ = door(tmp_path / "later.duckdb")
    assert asked(curator)[0]() is not None


def test_frames_that_are_computed_when_they_are_read_are_refused_by_their_type() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table = arrow.table({"who": ["a"], "x": [0.5]})
    lazy = [polars.from_arrow(table).lazy(), table.to_reader(), table.to_batches(), duckdb.sql("SELECT 1 AS x")]
    lazy += [pytest.importorskip("pyarrow.dataset").dataset(table), duckdb.connect()]
    for each in lazy:
        with pytest.raises(ArgumentError, match="source"):
            source(each)


def test_init_offers_stored_tables_and_columns_alone(tmp_path: Path) -> None:
    from sfumato.cli.problems import CommandError
    from sfumato.cli.work.table_looks import duckdb_tables, look

    columns = "who VARCHAR, x DOUBLE, more DOUBLE GENERATED ALWAYS AS (x + 1)"
    file = stored(tmp_path, f"CREATE TABLE visits ({columns}); CREATE VIEW v AS {SHARE}; CREATE SCHEMA o")
    assert duckdb_tables(file) == ["base", "visits"]
    assert [each.name for each in look(file, table="visits").columns] == ["who", "x"]
    with pytest.raises(CommandError):
        look(file, table="v")
