"""Where tables live, and one engine session over them: address -> connection with run(tree) -> Arrow."""

from .base import Connection, Source
from .examples import Examples
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .given import source
from .session import connect, engine_settings
from .whole import columns_of, compare_columns

__all__ = [
    "Connection",
    "Csv",
    "DuckDBTable",
    "Examples",
    "Frame",
    "Parquet",
    "Source",
    "columns_of",
    "compare_columns",
    "connect",
    "engine_settings",
    "source",
]
