"""A second engine, from a table in it to a receipt: SQLite, of a lowering and a session, and no line of the library."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, query, record, sql
from sfumato.errors import PlanError
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, flag, key, real, whole
from sfumato.sources import Parquet, columns_of, connect, source
from sfumato.sources.session import Session
from sfumato.sources.vocabulary import read
from tests.query.still import Still
from tests.sources.engines.sqlite_session import SqliteSession, SqliteTable

TABLE = Table(
    {
        "who": key(),
        "ward": category(["a", "b", "it's"]),
        "size": category([1, 2, 5], nulls=1),
        "days": real(0, 50, decimals=1),
        "cost": whole(0, 100, nulls=0),
        "home": flag(),
    },
    unit="who",
    name="visits",
)
SCHEMA = Schema({"visits": TABLE})
WHO = Unit("user:who")
ROWS: list[tuple[Any, ...]] = [
    *((place % 70, ("a", "b", "it's")[place % 3], 1 + place % 2, 0.25 * (place % 300), place % 120, place % 2)
      for place in range(600)),
    (None, "a", 1, 1.0, 1, 1), (3, None, None, None, None, None), (4, "A", 5, -1e300, 2**62, 0),
    (5, "", 7, float("inf"), -(2**63), 1), (3, "b", 2, 7.05, 50, 1), (3, "b", 2, 7.25, 50, 1),
]  # fmt: skip
ODD: list[tuple[Any, ...]] = [
    (6, b"\xff", "x", "seven", "12x", 9), (7, 5, b"5", "8.5", 4.0, "yes"), (8, "b", 2.5, 3, 1.5, 2)
]  # fmt: skip
QUERIES = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT size, SUM(days) AS s, AVG(cost) AS a FROM visits WHERE home GROUP BY size",
    "SELECT SUM(CASE WHEN days > 7.1 THEN cost END) AS s FROM visits WHERE ward <> 'it''s'",
    "SELECT ward, SUM(k) AS m FROM (SELECT who, ward, COUNT(*) AS k FROM visits GROUP BY who, ward) AS t GROUP BY ward",
]


def stored(folder: Path, rows: list[tuple[Any, ...]] = ROWS) -> SqliteTable:
    path = folder / "clinic.sqlite"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute(
            "CREATE TABLE visits (who INTEGER, ward TEXT, size INTEGER, days REAL, cost INTEGER, home BOOLEAN)"
        )
        opened.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", rows)
    return SqliteTable(path)


def by_column(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return dict(zip(TABLE.columns, map(list, zip(*rows, strict=True)), strict=True))


def private(given: Any) -> Private:
    return Private("clinic", given, unit=WHO, schema=SCHEMA)


def before_noise(plan: Sql, given: Any) -> Any:
    opened = connect({"visits": (TABLE, source(given))}, threads=1)
    try:
        raw = plan._run(opened, SimpleNamespace(noise=Still()))  # type: ignore[arg-type]
    finally:
        opened.close()
    return record.canonical(raw)


@pytest.mark.parametrize("text", QUERIES)
def test_the_same_integers_before_noise(text: str, tmp_path: Path) -> None:
    """Bounds, decimals, categories, flags, keys and NULLs are read by one law, in both engines."""
    plan = sql(text, SCHEMA, unit=WHO, epsilon=1, limits={"rows": 4}, bounds={"m": (0, 9)} if "AS m" in text else {})
    assert before_noise(plan, stored(tmp_path)) == before_noise(plan, by_column(ROWS))


def test_a_release_from_quote_to_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    honest = SqliteSession._bound
    monkeypatch.setattr(SqliteSession, "_bound", lambda self, text: asked.append(text) or honest(self, text))
    clinic = private(stored(tmp_path))
    ledger = MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, unspent = Curator(clinic, ledger), ledger.spent("clinic")
    plan = sql(QUERIES[1], clinic, epsilon=8, limits={"rows": 10})
    assert "8" in str(curator.quote(plan)) and asked
    rehearsed = curator.rehearse(plan)
    assert set(rehearsed.value["ward"]) == {"a", "b", "it's"}
    release = curator.release(plan)
    answer = dict(zip(release.value["ward"], release.value["n"], strict=True))
    assert all(abs(answer[ward] - 200) < 60 for ward in ("a", "b", "it's"))
    assert release.receipt.data == clinic.address
    assert ledger.spent("clinic") != unspent
    assert len(asked) >= 3 and all("WORD_EXACT_SUM" in text for text in asked)  # bound, rehearsed, run


@pytest.mark.parametrize(
    ("text", "limits", "word"),
    [
        ("SELECT ward, COUNT(DISTINCT size) AS d FROM visits GROUP BY ward", {"rows": 4, "values": 2}, "ordering_hash"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", None, "octaves"),  # of the adviser, in a first look
    ],
)
def test_a_word_that_it_lacks_is_refused_before_anything_is_charged(
    text: str, limits: Any, word: str, tmp_path: Path
) -> None:
    clinic = private(stored(tmp_path))
    ledger = MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, unspent = Curator(clinic, ledger), ledger.spent("clinic")
    plan = sql(text, clinic, epsilon=1, limits=limits)
    for ask in (curator.quote, curator.rehearse, curator.release):
        with pytest.raises(PlanError, match=f"SQLite has no word for '{word}'"):
            ask(plan)
    assert ledger.spent("clinic") == unspent


def test_a_column_that_it_has_no_type_for_is_refused_by_the_type(tmp_path: Path) -> None:
    table = Table({"who": key(), "cost": date("2024-01-01", "2024-12-31")}, unit="who", name="visits")
    session = connect({"visits": (table, stored(tmp_path))})
    session.bind(read("SELECT count(*) AS n FROM visits WHERE NOT who IS NULL"))
    with pytest.raises(PlanError, match="SQLite has no word for 'DATE'"):
        session.bind(read("SELECT count(cost) AS n FROM visits"))


def test_odd_cells_are_null_and_change_no_other(tmp_path: Path) -> None:
    """Any cell of a SQLite table may be of any type."""
    (tmp_path / "odd").mkdir()
    plain = columns_of(TABLE, stored(tmp_path)).to_pylist()
    odd = columns_of(TABLE, stored(tmp_path / "odd", ROWS + ODD)).to_pylist()
    assert odd[: len(ROWS)] == plain
    shown = [tuple(row.values()) for row in odd[len(ROWS) :]]
    assert shown == [(6, None, 1, None, 0, None), (7, None, 1, 8.5, 4, None), (8, "b", 1, 3.0, 0, None)]


def test_unreadable_cells_are_counted_there_too(tmp_path: Path) -> None:
    plan = query.unreadable(private(stored(tmp_path, ROWS + ODD)), epsilon=1, limits={"rows": 4})
    sums = record.parse(before_noise(plan, SqliteTable(tmp_path / "clinic.sqlite")))
    numbers = {name.rpartition("(")[2].strip(")"): round(number) for name, (number,) in sums["numbers"].items()}
    assert numbers == {"rows": len(ROWS + ODD) - 1, "ward": 3, "size": 4, "days": 1, "cost": 2, "home": 3}


def test_rows_are_read_through_it(tmp_path: Path) -> None:
    """Plans that read rows get them from the session, too, as DuckDB reads them from a file."""
    parquet.write_table(pa.table(by_column(ROWS)), tmp_path / "visits.parquet")
    there, here = columns_of(TABLE, stored(tmp_path)), columns_of(TABLE, Parquet(tmp_path / "visits.parquet"))
    assert there.to_pylist() == here.to_pylist()


def test_tables_of_two_engines_are_refused(tmp_path: Path) -> None:
    class Other(SqliteTable):
        def engine(self) -> Any:
            return Session

    given = stored(tmp_path)
    with pytest.raises(PlanError, match="held by several engines"):
        connect({"visits": (TABLE, given), "more": (TABLE, Other(given.path))})
    with pytest.raises(Exception, match="a SqliteTable or Frame"):
        connect({"visits": (TABLE, given), "more": (TABLE, Parquet(tmp_path / "x.parquet"))})


def test_the_session_reaches_nothing_but_its_tables(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as opened, opened:
        opened.execute("CREATE TABLE secret (x)")
    session = connect({"visits": (TABLE, stored(tmp_path))})
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        session._sqlite.execute(f"ATTACH '{tmp_path}/other.sqlite' AS more")  # type: ignore[attr-defined]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        session._sqlite.execute("INSERT INTO file_0.visits DEFAULT VALUES")  # type: ignore[attr-defined]
    session.close()
