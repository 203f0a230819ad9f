"""What a DuckDB file holds under a name: only stored cells are taken, and the file's catalogue says which these are.

A view may compute over all rows (cost / max(cost) OVER ()), so that one unit moves everybody's cells, and no
sensitivity that is computed from cells as they come would hold. A generated column is computed when it is read, by
the settings of whoever reads it. Both are refused; nothing but a base table is taken on trust.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

from ..errors import PlanError
from .base import literal, quoted

_STORE = "make a table of it (CREATE TABLE ... AS SELECT ...) where no row's cells depend on another unit's rows"


def attach(engine: Any, file: str, alias: str, table: str) -> None:
    """Attach a file for reading. Files of other engines (SQLite), which compare and type cells in ways of their own,
    are none."""
    with contextlib.suppress(Exception):
        engine.execute(f"ATTACH {literal(file)} AS {alias} (READ_ONLY, TYPE duckdb)")
        return
    why = "it is no DuckDB file, one of a newer version, or another connection is writing to it"
    raise PlanError(f"the file of table {table!r} cannot be opened: {why}")


def stored(engine: Any, alias: str, called: str, table: str, columns: Collection[str]) -> str:
    """The base table of this name in the attached file, as SQL; refuses whatever else bears the name."""
    listed = _rows(engine, f"SELECT table_name FROM duckdb_tables() WHERE {_within(alias)}")
    # The engine does not tell upper from lower case in names, of ASCII letters; the file has no two of one name.
    tables = [name for (name,) in listed if same_name(name, called)]
    if len(tables) != 1:
        views = _rows(engine, f"SELECT view_name FROM duckdb_views() WHERE {_within(alias)}")
        if any(same_name(name, called) for (name,) in views):
            raise PlanError(
                f"{called!r} in the file of table {table!r} is a view, which may compute over all rows at once: "
                f"{_STORE}, or name the tables that it reads in the schema, and the view not as a table but under "
                "views (or in the data alone): then its query is unfolded in yours"
            )
        raise PlanError(
            f"the DuckDB file of table {table!r} has no table {called!r}: name one of its tables in the schema "
            "(main), not a macro or a file"
        )
    where = f"{_within(alias)} AND table_name = {literal(tables[0])} AND is_generated"
    for (column,) in _rows(engine, f"SELECT column_name FROM duckdb_columns() WHERE {where}"):
        if any(same_name(column, name) for name in columns):
            raise PlanError(
                f"column {column!r} in the file of table {table!r} is computed when it is read: store its cells, "
                "or leave the column out of the schema and compute it in the query"
            )
    return f"{quoted(alias)}.main.{quoted(tables[0])}"


def view_definitions(engine: Any, alias: str) -> dict[str, str]:
    """By name: the statements that made the views of the attached file. The catalogue has them; no row is read."""
    return dict(_rows(engine, f"SELECT view_name, sql FROM duckdb_views() WHERE {_within(alias)}"))


def _within(alias: str) -> str:
    return f"database_name = {literal(alias)} AND schema_name = 'main' AND NOT internal"


def _rows(engine: Any, text: str) -> list[Any]:
    rows: list[Any] = engine.execute(text).fetchall()
    return rows


def same_name(one: str, other: str) -> bool:
    return _lower(one) == _lower(other)


def _lower(name: str) -> str:
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)
