"""What the engine is asked for a query: pairs of texts, one file each.

A file of tests/query/rewrites begins with comments: what it shows, then the options after "-- sfumato:". Then come the
query and, below a line of dashes, every statement that goes to the engine. `python -m tests.query.test_query_rewrites`
writes the statements anew; read what changed before you keep it.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from sfumato import Unit, sql
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.sources import connect, source
from sfumato.sources.duckdb import DUCKDB
from tests.query.still import Still

FOLDER = Path(__file__).parent / "rewrites"
LINE = "-" * 100
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(),
                "ward": category(["a", "b"]),
                "drug": key(),
                "days": real(0, 50),
                "cost": whole(0, 100, nulls=0),
                "day": date("2024-01-01", "2024-12-31"),
            },
            unit="patient",
        ),
        "calls": Table({"who": key(), "minutes": real(0, 60)}, unit="who", names="patient"),
        "drugs": Table({"drug": key(), "kind": category(["pill", "drop"])}, private=False),
        "orders": Table({"id": key(), "buyer": key(), "shop": category(["x", "y"])}, owner="buyer -> visits.patient"),
        "items": Table({"order": key(), "price": real(0, 9)}, owner="order -> orders.id"),
    }
)
DATA: dict[str, dict[str, list[Any]]] = {
    "visits": {
        "patient": list(range(900)), "ward": ["a", "b"] * 450, "drug": ["x", "y", "z"] * 300, "days": [1.0, 9.5] * 450,
        "cost": [3, 7, 90] * 300, "day": [datetime.date(2024, 3, 1)] * 900,
    },
    "calls": {"who": [1, 2], "minutes": [1.0, 2.0]},
    "drugs": {"drug": ["x", "y"], "kind": ["pill", "drop"]},
    "orders": {"id": [1, 2], "buyer": [1, 2], "shop": ["x", "y"]},
    "items": {"order": [1, 2], "price": [1.0, 2.0]},
}  # fmt: skip
FILES = sorted(FOLDER.glob("*.sql"))


class Listening:
    """A connection that remembers what it is asked."""

    dialect = "duckdb"

    def __init__(self) -> None:
        tables = {name: (SCHEMA.table(name), source(pa.table(each))) for name, each in DATA.items()}
        self._opened = connect(tables, threads=1)
        self.tables = self._opened.tables
        self.asked: list[Any] = []

    def run(self, tree: Any) -> Any:
        self.asked.append(tree)
        return self._opened.run(tree)

    def keep(self, tree: Any) -> Any:
        self.asked.append(tree)
        return self._opened.keep(tree)

    def close(self) -> None:
        self._opened.close()


def plan_in(query: str) -> Sql:
    return sql(query, SCHEMA, unit=Unit("user:patient"))


def trees(query: str) -> list[Any]:
    """All statements of a release, in words of the vocabulary."""
    connection = Listening()
    try:
        plan_in(query)._run(connection, SimpleNamespace(noise=Still()))  # type: ignore[arg-type]
    finally:
        connection.close()
    return connection.asked


def statements(query: str) -> str:
    """All statements of a release as DuckDB's text, one after the other."""
    return "\n\n".join(f"{DUCKDB.text(tree, pretty=True)};" for tree in trees(query)) + "\n"


def halves(file: Path) -> tuple[str, str]:
    query, _, expected = file.read_text(encoding="utf-8").partition(f"{LINE}\n")
    return query, expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_engine_is_asked_what_the_file_says(file: Path) -> None:
    query, expected = halves(file)
    assert statements(query) == expected, "python -m tests.query.test_query_rewrites writes it anew"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_stands_in_the_files_is_sql_with_limits(file: Path) -> None:
    """Whoever reads a file sees the unit, and integers alone in sums."""
    _, expected = halves(file)
    assert sqlglot.parse(expected, dialect="duckdb")
    assert "_unit" in expected
    assert "AVG(" not in expected and "RANDOM" not in expected


def test_there_are_a_dozen() -> None:
    assert len(FILES) >= 12


def main() -> None:
    for file in sorted(FOLDER.glob("*.sql")):
        query, _ = halves(file)
        file.write_text(f"{query.rstrip()}\n{LINE}\n{statements(query)}", encoding="utf-8")
        print(f"{file.name} written")


if __name__ == "__main__":
    main()
