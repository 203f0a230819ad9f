"""Where tables live, and one engine session over them: address -> connection with run(tree) -> Arrow."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Connection, Source
    from .clickhouse_session import ClickHouseSession
    from .connections import connect, engine_of, engine_settings
    from .dbapi_tables import DatabaseTable
    from .examples import Examples
    from .files import Csv, DuckDBTable, Parquet
    from .frames import Frame
    from .given import source
    from .mariadb_session import MariaDBSession
    from .postgres_session import PostgresSession
    from .postgres_tables import PostgresTable
    from .session import Session
    from .spark_session import SparkSession
    from .spark_tables import SparkFrame, SparkTable
    from .table_names import tables_read
    from .view_definitions import compare_view, proposed_views, with_views_of_files
    from .warehouse_session import WarehouseSession
    from .whole import columns_of, compare_columns

__all__ = [
    "ClickHouseSession",
    "Connection",
    "Csv",
    "DatabaseTable",
    "DuckDBTable",
    "Examples",
    "Frame",
    "MariaDBSession",
    "Parquet",
    "PostgresSession",
    "PostgresTable",
    "Session",
    "Source",
    "SparkFrame",
    "SparkSession",
    "SparkTable",
    "WarehouseSession",
    "columns_of",
    "compare_columns",
    "compare_view",
    "connect",
    "engine_of",
    "engine_settings",
    "proposed_views",
    "source",
    "tables_read",
    "with_views_of_files",
]

_HOMES = {
    "ClickHouseSession": "clickhouse_session",
    "Connection": "base",
    "Csv": "files",
    "DatabaseTable": "dbapi_tables",
    "DuckDBTable": "files",
    "Examples": "examples",
    "Frame": "frames",
    "MariaDBSession": "mariadb_session",
    "Parquet": "files",
    "PostgresSession": "postgres_session",
    "PostgresTable": "postgres_tables",
    "Session": "session",
    "Source": "base",
    "SparkFrame": "spark_tables",
    "SparkSession": "spark_session",
    "SparkTable": "spark_tables",
    "WarehouseSession": "warehouse_session",
    "columns_of": "whole",
    "compare_columns": "whole",
    "compare_view": "view_definitions",
    "connect": "connections",
    "engine_of": "connections",
    "engine_settings": "connections",
    "proposed_views": "view_definitions",
    "source": "given",
    "tables_read": "table_names",
    "with_views_of_files": "view_definitions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.sources' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
