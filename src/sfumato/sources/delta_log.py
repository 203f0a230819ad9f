"""The files of a Delta table, and the types of its columns, out of its log: the JSON of its commits, and nothing else.

What the log says of cells (their least and greatest, their number) is not looked at. A feature of the format that is
not read here is refused by its name: files that a reader must change before it has the rows would else be read as they
are.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..errors import PlanError

_COMMIT = re.compile(r"(\d{20})\.json")
_HARMLESS = {"timestampNtz", "vacuumProtocolCheck", "deletionVectors", "columnMapping"}
_NOT_FOUND = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


@dataclass(frozen=True)
class DeltaFiles:
    """One version of a table: its number, its files, and the schema as the log writes it."""

    version: int
    files: tuple[str, ...]
    text: str

    def schema(self) -> Any:
        types = importlib.import_module("pyspark.sql.types")
        return types.StructType.fromJson(json.loads(self.text))


def delta_files(opened: Any, path: str, name: str) -> DeltaFiles | None:
    """The last version of the Delta table in this folder; None where there is no log."""
    rows, refused = None, ""
    try:
        log = opened.read.option("pathGlobFilter", "*.json").text(f"{path}/_delta_log", wholetext=True)
        rows = log.selectExpr("_metadata.file_name AS name", "value").toArrow().to_pylist()
    except Exception as problem:
        with contextlib.suppress(Exception):
            refused = str(problem.getCondition())  # type: ignore[attr-defined]
    if rows is None and refused in _NOT_FOUND:
        return None
    if rows is None:
        raise PlanError(f"the log of the Delta table for table {name!r} is not read: see that Spark may read it")
    commits = {int(number[1]): row["value"] for row in rows if (number := _COMMIT.fullmatch(row["name"]))}
    if not commits:
        return None
    return replayed(commits, path, name)


def replayed(commits: Mapping[int, str], path: str, name: str) -> DeltaFiles:
    """What the commits amount to, from the first on."""
    numbers = sorted(commits)
    if numbers != list(range(len(numbers))):
        raise _strange(name, "a log whose first commits are gone (a checkpoint stands for them)")
    live: dict[str, Mapping[str, Any]] = {}
    schema = ""
    partitions: list[str] = []
    for number in numbers:
        for action in _actions(commits[number], name):
            if "protocol" in action:
                _check_protocol(action["protocol"], name)
            if "metaData" in action:
                data = action["metaData"]
                schema, partitions = data["schemaString"], data.get("partitionColumns") or []
                if (data.get("configuration") or {}).get("delta.columnMapping.mode", "none") != "none":
                    raise _strange(name, "columns under other names (column mapping)")
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
    if not schema:
        raise _strange(name, "a log that says nothing of its columns")
    files = tuple(_file(add, path, partitions, name) for add in live.values())
    return DeltaFiles(numbers[-1], files, schema)


def _actions(text: str, name: str) -> Iterable[Mapping[str, Any]]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        pass
    raise _strange(name, "a commit that is no JSON")


def _check_protocol(protocol: Mapping[str, Any], name: str) -> None:
    version = int(protocol.get("minReaderVersion", 1))
    features = set(protocol.get("readerFeatures") or ())
    if version > 3:
        raise _strange(name, f"version {version} of the format")
    if more := sorted(features - _HARMLESS):
        raise _strange(name, f"the feature {more[0][:40]!r}")


def _file(add: Mapping[str, Any], path: str, partitions: list[str], name: str) -> str:
    if add.get("deletionVector"):
        raise _strange(name, "rows that are deleted beside their file (deletion vectors)")
    file = unquote(add["path"])
    if "://" in file or file.startswith("/") or ".." in file.split("/"):
        raise _strange(name, "files outside of its folder")
    folders = dict(part.split("=", 1) for part in add["path"].split("/")[:-1] if "=" in part)
    values = add.get("partitionValues") or {}
    for column in partitions:  # Spark reads them off the names of folders
        shown = unquote(unquote(folders.get(column, "")))
        if shown != (values.get(column) if values.get(column) is not None else "__HIVE_DEFAULT_PARTITION__"):
            raise _strange(name, "folders that are not called after the values of its partitions")
    return f"{path}/{file}"


def _strange(name: str, what: str) -> PlanError:
    return PlanError(
        f"the Delta table of table {name!r} has {what}, which is not read here: write its rows anew as Parquet, or "
        "open it by its name in a catalogue of a Spark that has Delta"
    )
