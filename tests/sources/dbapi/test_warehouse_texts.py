"""Statements for engines that were never run: as texts that somebody read, and refused where nobody says otherwise.

`python -m tests.sources.dbapi.test_warehouse_texts` writes the texts anew; read what changed before you keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from sfumato import Private, sql
from sfumato.errors import ArgumentError, PlanError
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import DatabaseTable
from sfumato.sources.dbapi_server import NOT_RUN
from sfumato.sources.vocabulary import WORDS
from sfumato.sources.warehouses import WAREHOUSES, Warehouse
from sfumato.units import Unit
from tests.query.test_query_rewrites import FILES, halves, trees
from tests.sources.engines.kit import statement

FOLDER = Path(__file__).parent / "texts"
LEAST = {"snowflake": 17, "bigquery": 17, "trino": 17, "tsql": 2}
"""How many golden rewrites each of them has the words for."""


@cache
def rewrites() -> dict[str, list[Any]]:
    return {file.stem: trees(halves(file)[0]) for file in FILES}


def lowered(engine: Warehouse, asked: list[Any]) -> str | None:
    try:
        for tree in asked:
            engine.check(tree)
        return "\n\n".join(f"{engine.text(tree, pretty=True)};" for tree in asked) + "\n"
    except PlanError as refusal:
        assert engine.name in str(refusal)
        return None


def words(engine: Warehouse) -> Iterator[str]:
    """What each word becomes, by its first edge case; a gap by its name."""
    for name, word in WORDS.items():
        if name not in engine.words:
            yield f"{name}: a gap"
            continue
        for edge in word.edges[:1]:
            text = lowered(engine, [statement(word, edge, edge.rows[0])])
            yield f"{name}: {'a gap in this form' if text is None else ' '.join(text.split())}"


def texts(engine: Warehouse) -> dict[str, str]:
    """By name of a file: its text."""
    found = {f"{name}.sql": lowered(engine, asked) for name, asked in rewrites().items()}
    return {"words.txt": "\n".join(words(engine)) + "\n"} | {name: text for name, text in found.items() if text}


@pytest.mark.parametrize("dialect", NOT_RUN)
def test_statements_are_what_the_files_say(dialect: str) -> None:
    made, stored = texts(WAREHOUSES[dialect]), sorted((FOLDER / dialect).iterdir())
    assert len(made) - 1 >= LEAST[dialect]
    assert sorted(made) == [file.name for file in stored], "python -m tests.sources.dbapi.test_warehouse_texts"
    for file in stored:
        assert made[file.name] == file.read_text(encoding="utf-8"), file


@pytest.mark.parametrize("dialect", NOT_RUN)
def test_what_stands_in_the_files_is_sql_of_the_dialect(dialect: str) -> None:
    for file in (FOLDER / dialect).glob("*.sql"):
        for tree in sqlglot.parse(file.read_text(encoding="utf-8"), dialect=dialect):
            names = {node.name.lower() for node in tree.find_all(sqlglot.exp.Anonymous)} if tree is not None else set()
            assert not names & set(WORDS), (file, names)  # a word that was not lowered


@pytest.mark.parametrize("dialect", NOT_RUN)
def test_they_are_not_opened_unless_somebody_says_that_they_know(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr("tests.sources.dbapi.kit.no_database", lambda: opened.append(1), raising=False)
    schema = Schema({"visits": Table({"who": key(), "cost": real(0, 100)}, unit="who")})
    place = DatabaseTable("tests.sources.dbapi.kit:no_database", "clinic.visits", dialect=dialect)
    clinic = Private("clinic", place, unit=Unit("user:who"), schema=schema)
    with pytest.raises(PlanError, match=r"was never run on an engine of the dialect .*say so .untested"):
        clinic.compare(sql("SELECT COUNT(*) AS n FROM visits", clinic, epsilon=1, limits={"rows": 1}))
    assert not opened
    known = DatabaseTable("tests.sources.dbapi.kit:no_database", "clinic.visits", dialect=dialect, untested=True)
    with pytest.raises(PlanError, match="gives no connection"):
        known.compare(schema.table("visits"))
    assert opened


def test_a_dialect_that_is_none_is_refused() -> None:
    with pytest.raises(ArgumentError, match="dialect"):
        DatabaseTable("a:b", "t", dialect="oracle")


def main() -> None:
    for dialect in NOT_RUN:
        folder = FOLDER / dialect
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        for name, text in texts(WAREHOUSES[dialect]).items():
            (folder / name).write_text(text, encoding="utf-8")
        print(f"{dialect} written")


if __name__ == "__main__":
    main()
