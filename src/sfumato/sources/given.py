"""Which source somebody means by a path or a frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import checks
from .base import Source
from .examples import Examples, is_examples
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame, is_frame
from .spark_tables import SparkFrame, is_spark_frame

_ALLOWED = (
    "a path that ends in .csv, .tsv, .data, .txt, .parquet or .duckdb, an Arrow table, a pandas or polars frame, "
    "a Spark frame that scans Parquet files, columns by name, or a map-style data set"
)


def source(given: Any) -> Source:
    """The source that `given` names. Looks at its type and suffix only; nothing is opened."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | Path):
        suffix = Path(given).suffix.lower()
        if suffix in (".csv", ".data", ".txt"):
            return Csv(given)
        if suffix == ".tsv":
            return Csv(given, delimiter="\t")
        if suffix in (".parquet", ".pq"):
            return Parquet(given)
        if suffix in (".duckdb", ".ddb"):
            return DuckDBTable(given)
        raise checks.refuse("source", str(given), _ALLOWED)
    if is_spark_frame(given):
        return SparkFrame(given)
    if isinstance(given, Mapping) or is_frame(given):
        return Frame(given)
    if is_examples(given):
        return Examples(given)
    raise checks.refuse("source", type(given), _ALLOWED)  # the type alone: anything else may be data
