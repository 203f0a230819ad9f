"""Tables that Spark reads: folders of Parquet files, Delta tables, tables of its catalogue, and plain scans of files.

Only stored cells are taken. A view, and a data frame that computes, may look at all rows at once, so that one unit
moves what is seen of others; and what text files hold is read by options that make it raise for one cell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .. import checks
from ..errors import ArgumentError, PlanError
from ..schema import Table
from .base import Connection, Source, no_arrays
from .delta_log import delta_files
from .raw_cells import Cell
from .spark_cells import cell_of
from .spark_place import SparkPlace, close, is_of_spark
from .spark_templates import name_in_quotes

_STORED = ("parquet", "orc", "delta", "iceberg")
_STORE = "write it as Parquet where no row's cells depend on another unit's rows, and name that"
_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED", "mergeSchema": "false"}


@dataclass(frozen=True)
class SparkTable(Source):
    """One table that a Spark reads: a folder of files, or a table of its catalogue.

    address  the name of an environment variable, or the path of a file, that holds the address (sc://..., spark://...,
             local[4]); or a SparkSession of this process
    path     of a folder of Parquet files, or of a Delta table, as that Spark reaches it
    table    in place of it: the name of a table in its catalogue, such as "clinic.visits"
    """

    address: Any
    path: str | Path | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", SparkPlace(self.address).place)
        if isinstance(self.path, Path):
            object.__setattr__(self, "path", str(self.path))
        if (self.path is None) == (self.table is None):
            raise ArgumentError("a Spark table needs its path or its name: give one of path and table", argument="path")
        if self.table is not None and not (isinstance(self.table, str) and all(self.table.split("."))):
            raise checks.refuse("table", self.table, "the name of a table, such as 'clinic.visits'")
        if self.path is not None and not (isinstance(self.path, str) and self.path):
            raise checks.refuse("path", self.path, "the path of a folder")

    def __repr__(self) -> str:
        return f"SparkTable({SparkPlace(self.address)!r}, {self.path or self.table!r})"

    def engine(self) -> Callable[..., Connection]:
        return SparkPlace(self.address)

    def check(self, table: Table) -> None:
        no_arrays(table, "a table in Spark")

    def compare(self, table: Table) -> None:
        """Asked of Spark now: is the table there, and its columns?"""
        opened = SparkPlace(self.address).session()
        try:
            cells_of(self.scan(opened, table), table)
        finally:
            close(opened)

    def scan(self, opened: Any, table: Table) -> Any:
        """The stored rows as a lazy frame: looks at the names and types of columns, and at no row."""
        if self.table is not None:
            return _in_catalogue(opened, self.table, table)
        assert self.path is not None
        return _in_folder(opened, str(self.path), table)


@dataclass(frozen=True, eq=False, repr=False)
class SparkFrame(Source):
    """A Spark data frame that is a plain scan of Parquet files: `spark.read.parquet(...)`, with no more than columns
    chosen. Its files are read anew, in a session of ours."""

    frame: Any

    def __repr__(self) -> str:
        return "<SparkFrame>"

    def engine(self) -> Callable[..., Connection]:
        return SparkPlace(self.frame.sparkSession)

    def check(self, table: Table) -> None:
        no_arrays(table, "a table in Spark")

    def compare(self, table: Table) -> None:
        cells_of(self.scan(None, table), table)

    def scan(self, opened: Any, table: Table) -> Any:
        files = None
        with contextlib.suppress(Exception):
            files = _plain_files(self.frame)
        if files is None:
            raise PlanError(
                f"the Spark frame of table {table.name!r} is no plain scan of Parquet files, and may compute over all "
                f"rows at once, or anew each time: {_STORE}; of a table in a catalogue or a folder make a SparkTable"
            )
        if opened is None:
            return self.frame
        return _read(opened).schema(self.frame.schema).parquet(*files) if files else _empty(opened, self.frame.schema)


def is_spark_frame(thing: Any) -> bool:
    """Is it a data frame of Spark? Asks its type only."""
    return is_of_spark(thing, "DataFrame")


def cells_of(frame: Any, table: Table) -> Mapping[str, Cell]:
    """The raw cells of the schema's columns. Names and types alone are asked of the frame."""
    fields: list[tuple[str, str]] | None = None
    with contextlib.suppress(Exception):
        fields = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    if fields is None:
        raise PlanError(f"Spark does not say which columns table {table.name!r} has: see that it runs, and ask again")
    return {column: _cell(table, column, fields) for column in table.columns}


def _cell(table: Table, column: str, fields: list[tuple[str, str]]) -> Cell:
    alike = [field for field in fields if field[0].lower() == column.lower()]
    if len(alike) != 1:
        count = "no column" if not alike else "several columns"
        raise PlanError(
            f"the data of table {table.name!r} has {count} {column!r}, which the schema names: correct the schema, or "
            "the table"
        )
    ((name, type_),) = alike
    cell = cell_of(name_in_quotes(name), type_)
    if cell is None:
        raise PlanError(
            f"column {column!r} of table {table.name!r} is of the type {type_[:60]!r}, which is not read: leave it out "
            "of the schema, or store it as a number, a text, a truth value, a date or a timestamp"
        )
    return cell


def _read(opened: Any) -> Any:
    return opened.read.options(**_OPTIONS)


def _empty(opened: Any, schema: Any) -> Any:
    return opened.createDataFrame([], schema)


def _in_folder(opened: Any, path: str, table: Table) -> Any:
    """The files that are there now: they stay the same for all statements of a session."""
    listed = delta_files(opened, path, table.name)
    with contextlib.suppress(Exception):
        if listed is None:
            return _read(opened).parquet(path)
        schema = listed.schema()
        if not listed.files:
            return _empty(opened, schema)
        return _read(opened).option("basePath", path).schema(schema).parquet(*listed.files)
    raise PlanError(
        f"Spark finds no Parquet files for table {table.name!r}, or two of their columns have one name: correct its "
        "path, and see that it may read them"
    )


def _in_catalogue(opened: Any, name: str, table: Table) -> Any:
    quoted = ".".join(map(name_in_quotes, name.split(".")))
    described: dict[str, str] = {}
    with contextlib.suppress(Exception):
        for row in opened.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect():
            described[str(row["col_name"])] = str(row["data_type"])
    if "Type" not in described and "Provider" not in described:
        raise PlanError(f"Spark's catalogue has no table {name!r} for table {table.name!r}: correct the name")
    if "VIEW" in described.get("Type", "").upper() or "View Text" in described:
        raise PlanError(f"table {table.name!r} is a view, which may compute over all rows at once: {_STORE}")
    stored = described.get("Provider", "").lower()
    serde = described.get("Serde Library", "").lower()
    if stored not in _STORED and not (stored == "hive" and ("parquet" in serde or "orc" in serde)):
        raise PlanError(
            f"table {table.name!r} is stored as {stored[:30]!r}, whose cells may be computed or raise: {_STORE}"
        )
    with contextlib.suppress(Exception):
        return opened.table(quoted)
    raise PlanError(f"Spark does not open table {name!r}: see that this account may read it")


def _plain_files(frame: Any) -> list[str] | None:
    """The files of a frame that scans these and does no more; None of any other."""
    node = frame._jdf.queryExecution().analyzed()
    while (kind := node.getClass().getSimpleName()) in ("SubqueryAlias", "Project"):
        if kind == "Project":
            listed = node.projectList()
            kinds = {listed.apply(place).getClass().getSimpleName() for place in range(listed.length())}
            if kinds - {"AttributeReference"}:
                return None
        node = node.child()
    if kind != "LogicalRelation" or node.isStreaming():
        return None
    relation = node.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    is_parquet = relation.fileFormat().getClass().getSimpleName() == "ParquetFileFormat"
    if not is_parquet or relation.partitionSchema().length():
        return None
    return [unquote(file) for file in frame.inputFiles()]
