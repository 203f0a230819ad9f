"""A real PostgreSQL for tests of tables in it: the server that the ledger's tests share, with a database for each test
module, and roles that may read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import pyarrow as pa

from sfumato.sources.postgres_tables import PostgresTable
from tests.ledger.stores import run, server

_NAMES = itertools.count()
_TYPES = {
    "int8": "smallint", "uint8": "smallint", "uint16": "integer", "uint32": "bigint", "uint64": "numeric(20)",
    "null": "text",
    "int64": "bigint",
    "int32": "integer", "int16": "smallint", "double": "double precision", "float": "real",
    "bool": "boolean", "date32[day]": "date", "timestamp[us]": "timestamp", "string": "text",
}  # fmt: skip


def database() -> str:
    """The address of a new database, for its administrator."""
    name = f"clinic_{next(_NAMES)}"
    run(server().get_uri(), f"CREATE DATABASE {name}")
    return server().get_uri(database=name)


def role(place: str, *grants: str, name: str = "reader") -> str:
    """The address for a role that may do no more than these grants say."""
    if not run(place, f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
        run(place, f"CREATE ROLE {name} LOGIN")
    for grant in grants:
        run(place, f"GRANT {grant} TO {name}")
    return place.replace("postgres:@", f"{name}:@")


def variable(place: str) -> str:
    """The name of an environment variable that holds this address, for as long as the tests run."""
    name = f"SFUMATO_TEST_{abs(hash(place))}"
    os.environ[name] = place
    return name


def store(place: str, table: str, rows: pa.Table) -> PostgresTable:
    """A table of the server with these rows."""
    columns = [f'"{field.name}" {_TYPES[str(field.type)]}' for field in rows.schema]
    create(place, table, columns, list(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
    return PostgresTable(variable(place), table)


def create(place: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with psycopg.connect(place) as opened, opened.cursor() as cursor:
        schema, _, name = table.rpartition(".")
        cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema or "public"}"'.encode())
        called = f'"{schema or "public"}"."{name}"'
        cursor.execute(f"CREATE TABLE {called} ({', '.join(columns)})".encode())
        with cursor.copy(f"COPY {called} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)


def by_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Mapping[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
