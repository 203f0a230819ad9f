"""A Spark of this process for the tests, where there is Java: one context, and a session for each way to ask it."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.sources import SparkTable

NEEDS_JAVA = pytest.mark.skipif(
    shutil.which("java") is None, reason="Spark needs Java 17 or later: apt-get install openjdk-17-jre-headless"
)
SLOW = [pytest.mark.slow, NEEDS_JAVA]
QUERY, LIMITS = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", {"rows": 4}
STORED = ("USING parquet", "USING orc", "STORED AS PARQUET", "STORED AS ORC", "STORED AS TEXTFILE")
# Without these, Spark computes constants before it runs anything, and never by the code that it makes for rows.
_UNFOLDED = "ConstantFolding ConvertToLocalRelation PushProjectionThroughUnion InferFiltersFromConstraints"
_SETTINGS = {
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
    # What it would show of them on its page, it keeps also where it has none.
    "spark.ui.retainedJobs": "10", "spark.ui.retainedStages": "10", "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
    # Tests are small: they are through before a better compiler or collector would pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
}  # fmt: skip


@functools.cache
def spark() -> Any:
    """One process, one context: two threads, no page on the web."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    opened = builder.getOrCreate()
    opened.sparkContext.setLogLevel("OFF")
    return opened


@functools.cache
def session(ansi: bool, folds: bool) -> Any:
    opened = spark().newSession()
    opened.conf.set("spark.sql.session.timeZone", "UTC")
    opened.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    if not folds:
        rules = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _UNFOLDED.split())
        opened.conf.set("spark.sql.optimizer.excludedRules", rules)
    return opened


def asked(text: str) -> list[tuple[Any, ...]]:
    """The rows, which must be the same with errors and without, of constants and of rows."""
    one, other = (_rows(session(ansi, folds), text) for ansi, folds in ((True, True), (False, False)))
    assert repr(one) == repr(other)
    return one


def _rows(opened: Any, text: str) -> list[tuple[Any, ...]]:
    rows = opened.sql(text).toArrow()
    return [tuple(map(_plain, cells)) for cells in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


def _plain(cell: Any) -> Any:
    """Its numbers of any width are decimals."""
    return int(cell) if isinstance(cell, Decimal) and cell == cell.to_integral_value() else cell


def numbers(rows: Any) -> list[list[Any]]:
    """The rows of a statement, in an order of their own."""
    cells = ([_plain(cell) for cell in column.to_pylist()] for column in rows.columns)
    return sorted(map(list, zip(*cells, strict=True)), key=str)


def store(folder: Path, rows: pa.Table, files: int = 1) -> SparkTable:
    """A folder of Parquet files with these rows, as the Spark of the tests reads it."""
    write(folder, rows, files)
    return SparkTable(spark(), str(folder))


def write(folder: Path, rows: pa.Table, files: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-rows.num_rows // files) or 1
    for number in range(files):
        parquet.write_table(rows.slice(number * size, size), folder / f"part-{number}.parquet")
