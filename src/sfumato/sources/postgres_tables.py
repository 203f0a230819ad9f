"""Tables in a PostgreSQL server: their address, and what the server's catalogue says of them.

Only stored cells of base tables are taken. A view, and a policy on rows, may compute over all rows at once, so that one
unit moves what is seen of others; a foreign table is read from elsewhere; a virtual column is computed when it is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import checks
from ..errors import PlanError
from ..schema import Table
from .base import Connection, Source, no_arrays, quoted
from .postgres_cells import cell_of
from .postgres_server import PostgresServer
from .raw_cells import Cell
from .session import RawTable

_TABLE = """
SELECT c.oid, c.relkind, n.nspname, c.relname, row_security_active(c.oid), EXISTS (
  WITH RECURSIVE parts AS (
    SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = c.oid
    UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts ON i.inhparent = parts.inhrelid
  ) SELECT 1 FROM parts JOIN pg_class AS p ON p.oid = parts.inhrelid WHERE p.relkind NOT IN ('r', 'p')
)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = ANY(%s) AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY c.relname = %s DESC LIMIT 1
"""
_COLUMNS = """
WITH RECURSIVE base AS (
  SELECT a.attname, a.attnum, a.attgenerated, a.atttypid AS typid, a.atttypmod AS typmod
  FROM pg_attribute AS a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.attname, b.attnum, b.attgenerated, t.typbasetype, t.typtypmod
  FROM base AS b JOIN pg_type AS t ON t.oid = b.typid WHERE t.typtype = 'd'
)
SELECT b.attname, b.attgenerated, CASE WHEN t.typtype = 'e' THEN 'enum' WHEN n.nspname = 'pg_catalog' THEN t.typname
  ELSE '' END, format_type(t.oid, NULL), b.typmod, has_column_privilege(%s::oid, b.attnum, 'SELECT')
FROM base AS b JOIN pg_type AS t ON t.oid = b.typid JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE t.typtype <> 'd'
"""
UNREACHED = "the PostgreSQL server does not answer: see that it runs, and ask again"
_STORE = "make a table of it (CREATE TABLE ... AS SELECT ...) where no row's cells depend on another unit's rows"
_OTHERS = {
    "v": f"a view, which may compute over all rows at once: {_STORE}",
    "m": f"a materialized view, which may compute over all rows at once: {_STORE}",
    "f": "a foreign table, which another server holds: name that server's own table, or copy it into this one",
}


@dataclass(frozen=True)
class PostgresTable(Source):
    """One table of a PostgreSQL server.

    address  the name of an environment variable, or the path of a file, that holds the postgresql://... address
    table    its name there, with its schema: "clinic.visits"; in "public", called as in ours, if None
    """

    address: str
    table: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", PostgresServer(self.address).place)
        if self.table is not None and not (isinstance(self.table, str) and all(self.table.split(".", 1))):
            raise checks.refuse("table", self.table, "the name of a table, such as 'clinic.visits'")

    def engine(self) -> Callable[..., Connection]:
        return PostgresServer(self.address)

    def check(self, table: Table) -> None:
        no_arrays(table, "a PostgreSQL server")

    def compare(self, table: Table) -> None:
        """Asked of the server now: is the table there, and its columns, and may the role read them?"""
        opened = PostgresServer(self.address).connect()
        try:
            self.reached(opened, table)
        finally:
            opened.close()

    def _names(self, table: Table) -> tuple[str, str]:
        if self.table is None:
            return "public", table.name
        first, point, rest = self.table.partition(".")
        return (first, rest) if point else ("public", first)

    def reached(self, opened: Any, table: Table) -> RawTable:
        """The table as the server holds it. Looks at its catalogue, and at no row."""
        schema, name = self._names(table)
        row, columns = _asked(opened, schema, name)
        if row is None:
            raise PlanError(
                f"the server has no table {(self.table or table.name)!r} for table {table.name!r}, or the role may not "
                "look into its schema: correct the name, or grant USAGE on the schema and SELECT on the table"
            )
        if row[1] not in ("r", "p"):
            raise PlanError(f"table {table.name!r} is {_OTHERS.get(row[1], 'no table')} on the server")
        if row[4]:
            raise PlanError(
                f"table {table.name!r} has policies on rows, which may look at other rows and hide some: give the role "
                "BYPASSRLS, or a table of the rows that are meant"
            )
        if row[5]:
            raise PlanError(f"a part of table {table.name!r} is {_OTHERS['f']}")
        cells = {column: _cell(table, column, columns) for column in table.columns}
        return RawTable(f"{quoted(row[2])}.{quoted(row[3])}", cells)


def _asked(opened: Any, schema: str, name: str) -> tuple[Any, dict[str, Any]]:
    """What the catalogue says of a table, and of its columns by name."""
    with contextlib.suppress(Exception):
        row = opened.execute(_TABLE, (schema, [name, name.lower()], name)).fetchone()
        if row is None:
            return None, {}
        columns = opened.execute(_COLUMNS, (row[0], row[0])).fetchall()
        return row, {column[0]: column for column in columns}
    raise PlanError(UNREACHED)  # outside of the block, so that the server's words are not its context


def _cell(table: Table, column: str, columns: dict[str, Any]) -> Cell:
    stored = columns.get(column) or columns.get(column.lower())
    if stored is None:
        raise PlanError(
            f"the data of table {table.name!r} has no column {column!r}, which the schema names: correct the "
            "schema, or the table"
        )
    name, computed, type_, shown, typmod, readable = stored
    if not readable:
        raise PlanError(f"the role may not read column {column!r} of table {table.name!r}: grant SELECT on it")
    if computed == "v":
        raise PlanError(
            f"column {column!r} of table {table.name!r} is computed when it is read: store its cells, or leave the "
            "column out of the schema and compute it in the query"
        )
    cell = cell_of(quoted(name), type_, _digits(typmod))
    if cell is None:
        raise PlanError(
            f"column {column!r} of table {table.name!r} is of the type {shown!r}, which is not read: leave it out of "
            "the schema, or store it as a number, a text, a truth value, a date or a timestamp"
        )
    return cell


def _digits(typmod: int) -> tuple[int, int] | None:
    """How many digits a numeric column has, and how many of them behind the point."""
    if typmod < 4:
        return None
    return (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 1024) - 1024
