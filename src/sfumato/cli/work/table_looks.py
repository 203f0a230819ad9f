"""What a file says about itself without its rows: the names in the first line of a CSV file, the names and types that
a Parquet or DuckDB file declares. Nothing else is read: not a second line, and no statistics. Where the first line is a
row of data, its cells are counted, and nothing else of it is used."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import checks
from ...errors import ArgumentError, PlanError
from ...sources.base import needed
from ..problems import FILE, CommandError

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".data", ".txt"), "csv"),
    ".parquet": "parquet", ".pq": "parquet", ".duckdb": "duckdb", ".ddb": "duckdb",
}  # fmt: skip
_LONGEST = 1 << 16
_TABLES = "duckdb_tables() WHERE schema_name = 'main' AND NOT internal"
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_VALUE = re.compile(
    r"\s*([-+]?[\d.,' ]*\d(e[-+]?\d+)?\s*[%€$£]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T][\d:.+Z-]*)?|\?)\s*", re.I
)


@dataclass(frozen=True)
class DeclaredColumn:
    """A column, and the type that the file declares for it; None where it declares none, as in CSV."""

    name: str
    type: str | None = None


@dataclass(frozen=True)
class TableLook:
    """What is known of one table before anything is paid.

    columns   those that can be used; in a CSV file without names, none
    written   how the cells of a CSV file are written, as its source takes it: {"trim": True, "decimal": ","}
    notes     what was odd about the others, in words
    doubtful  something in the first line looks like data: its words are not repeated anywhere
    """

    path: Path
    kind: str
    columns: tuple[DeclaredColumn, ...] = ()
    delimiter: str = ","
    encoding: str = "utf-8"
    header: bool = True
    written: Mapping[str, Any] = field(default_factory=dict)
    table: str | None = None
    notes: tuple[str, ...] = ()
    doubtful: bool = False


def kind_of(path: Path) -> str:
    """csv, parquet or duckdb, by the ending alone."""
    if path.suffix.lower() not in SUFFIXES:
        raise CommandError(
            f"{path.name} is of no known kind",
            "the ending of a file says how to read it",
            "give a file that ends in .csv, .tsv, .data, .txt, .parquet or .duckdb",
            FILE,
        )
    if not path.is_file():
        raise CommandError(f"there is no file {path}", "nothing is at that path", "give the path of a file", FILE)
    return SUFFIXES[path.suffix.lower()]


def look(path: Path, *, header: bool = True, table: str | None = None) -> TableLook:
    """Look at a file. Without a header nothing of a CSV file is read at all."""
    kind = kind_of(path)
    if kind == "csv":
        sign = "\t" if path.suffix.lower() == ".tsv" else ","
        return _csv(path, sign) if header else TableLook(path, kind, delimiter=sign, header=False)
    declared = _parquet(path) if kind == "parquet" else _duckdb(path, table)
    columns, notes = _usable([each.name for each in declared])
    types = {each.name: each.type for each in declared}
    return TableLook(path, kind, tuple(DeclaredColumn(name, types[name]) for name in columns), notes=notes, table=table)


def look_by_place(path: Path, names: Sequence[str]) -> TableLook:
    """A CSV file whose columns somebody has named, in their order: there are as many cells in its first line, with the
    usual sign between them or another one."""
    good, odd = _usable(list(names))
    if len(good) < len(names):
        raise _odd(path, odd[0].partition(":")[0], "give each column a name of its own")
    usual, (line, encoding) = look(path, header=False).delimiter, _first_line(path)
    encoding = encoding if encoding == "utf-16" else "utf-8"  # a mark of the file's; other words would be of its row
    seen = TableLook(path, "csv", tuple(map(DeclaredColumn, names)), usual, encoding, header=False)
    counts = {sign: _count(line, sign) for sign in sorted(_SIGNS, key=lambda sign: sign != usual)}
    fitting = next((sign for sign, count in counts.items() if count in (len(names), None)), None)
    if fitting is None:
        count = counts[_delimiter(line, usual)]
        raise _odd(
            path,
            f"its first line has {count} cells, and {len(names)} columns are named",
            "name all columns in their order; those that are not wanted are left out by NAME=out",
        )
    notes = () if fitting == usual else (f"its cells are separated by {_SIGNS[fitting]}; sfumato.yaml says so",)
    return replace(seen, delimiter=fitting, notes=notes)


def _count(line: str, sign: str) -> int | None:
    """How many cells a line has; None where it is blank, or ends inside of one: then the release looks."""
    try:
        return len(next(csv.reader([line], delimiter=sign, strict=True, skipinitialspace=True), [])) or None
    except csv.Error:
        return None


def duckdb_tables(path: Path) -> list[str]:
    """The names of the tables in a DuckDB file; views are none."""
    return sorted(str(row[0]) for row in _asked(path, f"SELECT table_name FROM {_TABLES}"))


def _csv(path: Path, usual: str) -> TableLook:
    line, encoding = _first_line(path)
    delimiter = _delimiter(line, usual)
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
        spaced = 2 * sum(name != name.strip() for name in names[1:]) > len(names[1:])
        if spaced:  # as a quote that follows a blank, too
            names = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
            names = [name.strip() for name in names]
    except csv.Error:
        raise _odd(
            path, "its first line opens a quote that it does not close", "close it, or give --no-header"
        ) from None
    if not any(name.strip() for name in names):
        raise _odd(path, "its first line is empty", "let the first line name the columns, or give --no-header")
    if any(name.strip() and _VALUE.fullmatch(name) for name in names):
        return TableLook(path, "csv", tuple(map(DeclaredColumn, _usable(names)[0])), delimiter, encoding, doubtful=True)
    columns, notes = _usable(names)
    if delimiter != usual:
        notes = (f"its cells are separated by {_SIGNS[delimiter]}; sfumato.yaml says so", *notes)
    if encoding != "utf-8":
        notes = (f"it is read as {encoding}, because its first line is not UTF-8", *notes)
    written = {"trim": True} if spaced else {}
    return TableLook(
        path, "csv", tuple(map(DeclaredColumn, columns)), delimiter, encoding, written=written, notes=notes
    )


def _first_line(path: Path) -> tuple[str, str]:
    """The first line and its encoding. Single bytes are read, so that not even a buffer holds the second line."""
    line = bytearray()
    width = 1
    try:
        file = os.open(path, os.O_RDONLY)
        try:
            while len(line) < _LONGEST and (more := os.read(file, width)):
                line += more
                if bytes(line) in (b"\xff\xfe", b"\xfe\xff"):
                    width = 2
                if more.strip(b"\0") in (b"\n", b"\r"):
                    break
            else:
                if len(line) >= _LONGEST:
                    raise _odd(path, "its first line does not end within 65,536 bytes", "give a CSV file")
        finally:
            os.close(file)
    except OSError as error:
        raise _odd(path, f"it cannot be read ({error.strerror})", "give a file that this user may read") from None
    return _decoded(path, bytes(line))


def _decoded(path: Path, line: bytes) -> tuple[str, str]:
    encoding = next((name for mark, name in _MARKS if line.startswith(mark)), None)
    if encoding is None and (b"\0" in line or line.startswith((b"\x1f\x8b", b"PK\x03\x04", b"PAR1"))):
        raise _odd(path, "it is not text: perhaps it is compressed", "unpack it, or give a file of text")
    for name in (encoding,) if encoding else ("utf-8", "latin-1"):
        try:
            return line.decode("utf-8-sig" if name == "utf-8" else name).rstrip("\r\n"), name
        except UnicodeDecodeError:
            continue
    raise _odd(path, f"its first line is not {encoding}, although its first bytes say so", "save it as UTF-8")


def _delimiter(line: str, usual: str) -> str:
    """The sign that most often stands outside of quotes; the usual one where none does."""
    outside = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(_SIGNS, key=lambda sign: (outside.count(sign), sign == usual))


def _usable(names: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The names that a schema can hold, and words about the others."""
    good: list[str] = []
    notes: list[str] = []
    for place, name in enumerate(names, 1):
        try:
            checks.label(name, "name")
        except ArgumentError:
            empty = not name.strip()
            why = "has no name" if empty else "has a name that is too long or cannot be printed"
            notes.append(f"column {place} {why}: it is left out")
            continue
        if names.count(name) > 1:
            if names.index(name) == place - 1:
                notes.append(f"several columns are called {name!r}: they are left out, since no query could tell them")
            continue
        if twin := next((each for each in good if each.lower() == name.lower()), None):
            notes.append(f"{name!r} and {twin!r} are one name in SQL: the second is left out")
            continue
        if name != name.strip():
            notes.append(f"the name {name!r} has spaces around it, which belong to it")
        good.append(name)
    return good, tuple(notes)


def _parquet(path: Path) -> list[DeclaredColumn]:
    """The footer holds statistics too; only the schema is taken out of it."""
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    failure: CommandError
    try:
        footer = arrow.BufferReader(_footer(path))
        return [DeclaredColumn(field.name, str(field.type)) for field in parquet.read_schema(footer)]
    except Exception:
        failure = _odd(path, "it cannot be read as Parquet", "give a Parquet file")
    raise failure


def _footer(path: Path) -> bytes:
    """The end of a Parquet file, without its rows: a reader of the whole file takes the last 64 KB at once."""
    with path.open("rb", buffering=0) as file:
        size = file.seek(-8, os.SEEK_END) + 8
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or length > size - 12:
            raise ValueError("no Parquet")
        file.seek(-8 - length, os.SEEK_END)
        return b"PAR1" + file.read(length) + end


def _duckdb(path: Path, table: str | None) -> list[DeclaredColumn]:
    if table is None:
        raise PlanError("a DuckDB file has tables: name the one that is meant")
    stored = f"table_name = ? AND NOT is_generated AND table_oid IN (SELECT table_oid FROM {_TABLES})"
    rows = _asked(
        path, f"SELECT column_name, data_type FROM duckdb_columns() WHERE {stored} ORDER BY column_index", table
    )
    if not rows:
        raise _odd(path, f"it has no table {table!r}", f"give one of {', '.join(duckdb_tables(path)) or 'none'}")
    return [DeclaredColumn(str(name), str(type_)) for name, type_ in rows]


def _asked(path: Path, query: str, *parameters: str) -> list[Any]:
    engine = needed("duckdb")
    failure = _odd(path, "it cannot be opened as a DuckDB file", "give a DuckDB file that nobody is writing to")
    try:
        with engine.connect(str(path), read_only=True) as opened:
            rows: list[Any] = opened.execute(query, list(parameters)).fetchall()
        return rows
    except Exception:
        pass
    raise failure


def _odd(path: Path, why: str, fix: str) -> CommandError:
    return CommandError(f"{path.name} cannot be used", why, fix, FILE)
