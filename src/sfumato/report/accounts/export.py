"""Export: the ledger as NDJSON, CSV or Parquet, for other programs.

Every row carries its own number and hash and those of the head, so that a reader can tie it to the chain. Exact numbers
are text ("1/10"), with a float column beside them. A file is written beside its place and moved there when it is whole;
nobody but its owner may read it.

CSV is safe to open in a spreadsheet: a text that would be taken for a formula (it begins with = + - @, a tab or a line
end) or begins with an apostrophe gets one apostrophe in front. To read it back, take one leading apostrophe off every
text (`from_cell` does); an empty cell is an empty text or nothing.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from ... import checks, exact
from ...errors import ArgumentError, LedgerError, install_line
from ...ledger.stores.base import Store
from .history import history, moment
from .releases import Released, plain, releases

FORMATS = {".ndjson": "ndjson", ".jsonl": "ndjson", ".csv": "csv", ".parquet": "parquet"}
KINDS = ("releases", "entries")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")
_GROUP = 2000  # rows of a Parquet group

Progress = Callable[[int, int], None]
Row = dict[str, Any]

# Columns and their types: "json" is nested in NDJSON and a text elsewhere.
_HEAD = {"head_number": "int", "head_hash": "text"}
_RELEASES = {
    "number": "int", "hash": "text", "previous": "text", "id": "text", "at": "time", "actor": "text", "role": "text",
    "purpose": "text", "data": "text", "places": "json", "unit": "json", "neighbours": "text", "relation": "text",
    "bounds": "json", "afterwards": "list", "question": "text", "plan_hash": "text", "plan": "text", "words": "json",
    "mechanism": "text", "parameters": "json",
    "library": "text", "grade": "text", "randomness": "text", "loop": "text", "event": "json", "epsilon": "text",
    "epsilon_float": "float", "delta": "text", "delta_float": "float", "variant": "text", "native": "json",
    "adaptivity": "text", "accounts": "list", "charged": "json", "before": "json", "after": "json", "draws": "int",
    "steps": "int",
    "part_of": "int", "key": "text", "approvals": "json", "state": "text", "opened": "time", "settled": "time",
    "answer": "text",
}  # fmt: skip
_ENTRIES = {
    "number": "int", "hash": "text", "previous": "text", "kind": "text", "by": "text", "at": "time", "receipt": "text",
    "accounts": "list", "reason": "text", "fields": "json",
}  # fmt: skip


class Exported(NamedTuple):
    """What was written: the file, its rows, its SHA-256, and the entry that it reaches up to."""

    path: Path
    rows: int
    sha256: str
    number: int
    hash: str


@dataclass(frozen=True)
class _Table:
    columns: Mapping[str, str]
    rows: Iterator[Row]
    about: Mapping[str, str]


def export(
    store: Store,
    path: str | os.PathLike[str],
    *,
    what: str = "releases",
    format: str | None = None,
    overwrite: bool = False,
    price: bool = True,
    progress: Progress | None = None,
) -> Exported:
    """Write releases or entries to a file.

    format    "ndjson", "csv" or "parquet"; by default what the file's ending says
    price     price each release at its own delta (sampled training may take seconds)
    progress  is called with the number of the entry that was read, and of the last one
    """
    target = Path(checks.path(path, "path"))
    checks.one_of(what, "what", KINDS)
    told_format = FORMATS.get(target.suffix.lower(), "") if format is None else format
    kind = checks.one_of(told_format, "format", ("ndjson", "csv", "parquet"))
    if not overwrite and _is_there(target):
        raise checks.refuse("path", str(target), "a new file, or overwrite=True: there is one")
    if progress is not None and not callable(progress):
        raise checks.refuse("progress", progress, "a function of two numbers, or leave it out")
    with store.reading() as book:
        head = book.head
    about = {"head_number": str(head.number), "head_hash": head.hash.hex(), "what": what}
    tied = {"head_number": head.number, "head_hash": head.hash.hex()}
    told = None if progress is None else (lambda number: progress(number, head.number))
    rows = (
        _release_rows(store, head.number, price, told) if what == "releases" else _entry_rows(store, head.number, told)
    )
    columns = (_RELEASES if what == "releases" else _ENTRIES) | _HEAD
    table = _Table(columns, (row | tied for row in rows), about)
    count, digest = _written(target, _WRITERS[kind], table, overwrite)
    return Exported(target, count, digest, head.number, head.hash.hex())


def _is_there(target: Path) -> bool:
    try:
        return target.exists()
    except (OSError, ValueError):
        raise checks.refuse("path", str(target), "the path of a file, not too long") from None


def from_cell(text: str) -> str:
    """A text of a CSV export as it was."""
    return text.removeprefix("'")


def _release_rows(store: Store, last: int, price: bool, told: Callable[[int], None] | None) -> Iterator[Row]:
    for row in releases(store, last=last, price=price, progress=told):
        yield _release(row)


def _release(row: Released) -> Row:
    found = row.as_dict()
    found["epsilon_float"], found["delta_float"] = _above(row.epsilon), _above(row.delta)
    return found


def _above(value: Fraction | None) -> float | None:
    return None if value is None else exact.float_above(value)


def _entry_rows(store: Store, last: int, told: Callable[[int], None] | None) -> Iterator[Row]:
    for entry in history(store, last=last):
        yield entry.as_dict() | {
            "accounts": list(entry.accounts),
            "receipt": entry.receipt,
            "reason": entry.reason,
            "fields": {name: plain(value) for name, value in entry.fields.items()},
        }
        if told is not None:
            told(entry.number)


def _written(
    target: Path, write: Callable[[IO[bytes], _Table], int], table: _Table, overwrite: bool
) -> tuple[int, str]:
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            count = write(file, table)
            file.flush()
            os.fsync(file.fileno())
        with beside.open("rb") as whole:
            digest = hashlib.file_digest(whole, "sha256").hexdigest()
        _place(beside, target, overwrite)
    except OSError as problem:
        raise LedgerError(
            f"the export could not be written ({problem.strerror or 'no reason given'}); nothing was left in its place"
        ) from problem
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return count, digest


def _place(beside: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        beside.replace(target)
        return
    try:
        os.link(beside, target)  # fails where somebody else has made the file by now
    except FileExistsError:
        raise checks.refuse("path", str(target), "a new file, or overwrite=True: there is one") from None
    except OSError:  # a file system without hard links
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        beside.replace(target)


def _ndjson(file: IO[bytes], table: _Table) -> int:
    count = 0
    for row in table.rows:
        body = {name: row.get(name) for name in table.columns}
        file.write(json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n")
        count += 1
    return count


def _csv(file: IO[bytes], table: _Table) -> int:
    lines = _Lines(file)
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow(table.columns)
    count = 0
    for row in table.rows:
        writer.writerow([_cell(row.get(name), kind) for name, kind in table.columns.items()])
        count += 1
    return count


class _Lines:
    """A binary file that takes text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode("utf-8", "backslashreplace"))


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return ""
    if kind in ("json", "list"):
        return json.dumps(value, separators=(",", ":"))
    if kind in ("int", "float"):
        return repr(value)
    text = str(value)
    return "'" + text if text.startswith(_FORMULA) else text


def _parquet(file: IO[bytes], table: _Table) -> int:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ArgumentError(
            f"format = 'parquet' is not allowed: pyarrow is not installed. Use csv, or {install_line('parquet')}."
        ) from None
    types = {
        "int": arrow.int64(),
        "float": arrow.float64(),
        "text": arrow.string(),
        "json": arrow.string(),
        "list": arrow.list_(arrow.string()),
        "time": arrow.timestamp("us", tz="UTC"),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in table.columns.items()], metadata=dict(table.about))
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(table.rows):
            columns = {name: [_value(row.get(name), kind) for row in group] for name, kind in table.columns.items()}
            writer.write_table(arrow.table(columns, schema=schema))
            count += len(group)
    return count


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    for row in rows:
        group.append(row)
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, separators=(",", ":"))
    if kind == "time":
        return moment(value)
    if kind == "list":
        return [_clean(str(item)) for item in value]
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    """Without halves of surrogate pairs, which are no text."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_WRITERS: dict[str, Callable[[IO[bytes], _Table], int]] = {"ndjson": _ndjson, "csv": _csv, "parquet": _parquet}
