"""Where tables live, and one engine session over them: address -> connection with run(tree) -> Arrow."""

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
