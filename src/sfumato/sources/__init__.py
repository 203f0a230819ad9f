"""Where tables live, and one engine session over them: address -> connection with run(tree) -> Arrow."""

from .base import Connection, Source
from .connections import connect, engine_of, engine_settings
from .examples import Examples
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .given import source
from .session import Session
from .whole import columns_of, compare_columns

__all__ = [
    "Connection",
    "Csv",
    "DuckDBTable",
    "Examples",
    "Frame",
    "Parquet",
    "Session",
    "Source",
    "columns_of",
    "compare_columns",
    "connect",
    "engine_of",
    "engine_settings",
    "source",
]
