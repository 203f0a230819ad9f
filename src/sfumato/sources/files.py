"""Tables in files. A file's header is public, as its columns are in the schema; its cells are opened by a release."""

from __future__ import annotations

import codecs
import contextlib
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import PlanError
from ..schema import Table, TensorColumn
from ..tensors import arrow_misfit
from .base import CLOSED, Source, literal, needed, no_arrays
from .catalogue import attach, stored
from .spelling import PYTHON_BLANKS, Dates, check_signs, forms_for, forms_of, plain_text, trimmed

ENCODINGS = ("utf-8", "latin-1", "utf-16")
_WILD = "*?["


@dataclass(frozen=True)
class Csv(Source):
    """One CSV file, every cell of which is text until the schema says what it means. Nothing is sniffed.

    delimiter  one character between the cells of a row
    quote      the character around cells that hold delimiters or line breaks, doubled inside of them; "" for none
    header     the first row names the columns
    columns    without a header: the names of all columns of the file, in their order, also of those that the schema
               leaves out. Without this the file holds the schema's columns, in its order, and no other
    null       the text of a NULL
    trim       blanks around cells, and around the names of a header, are left away: "39, State-gov, 77516"
    decimal    the decimal sign of numbers: "." or ","
    thousands  the sign between thousands, such as "." in 1.234,50; "" for none. " " stands for wide blanks, too
    dates      how dates and moments are written, in the signs of strptime ("%d.%m.%Y"): one form or a list, of which
               the first that fits counts, or forms by column. Without it, as in ISO 8601: 2026-01-31

    What is not written as these say cannot be read, and is NULL: `query.unreadable` counts such cells privately.

    The first row has as many cells as there are names, or nothing is read: one place off, a column would be taken for
    its neighbour, and a visit for a patient.

    A row with too few cells ends in NULLs, cells beyond the header are left alone, a row that is not text of this
    encoding or longer than 2 MB is left out, and so are blank lines. With a quote a row may go over several lines, so a
    quote that one row opens and never closes takes the rows after it along: read a file that no CSV writer wrote with
    quote="", where every line speaks for itself.
    """

    path: str | Path
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null: str = ""
    columns: tuple[str, ...] = ()
    trim: bool = False
    decimal: str = "."
    thousands: str = ""
    dates: Dates = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(checks.path(self.path, "path")))
        if any(sign in str(self.path) for sign in _WILD):
            raise checks.refuse("path", self.path, "the path of one file, without * ? or [")
        _check_sign(self.delimiter, "delimiter", "one character, such as ','")
        if self.quote != "":
            _check_sign(self.quote, "quote", "one character, such as '\"', or '' for none")
        if self.delimiter == self.quote:
            raise checks.refuse("quote", self.quote, "another character than the delimiter")
        checks.flag(self.header, "header")
        checks.one_of(self.encoding, "encoding", ENCODINGS)
        if not isinstance(self.null, str) or (self.quote and self.quote in self.null) or self.delimiter in self.null:
            raise checks.refuse("null", self.null, "a text without delimiters and quotes")
        object.__setattr__(self, "columns", _names(self.columns))
        if self.columns and self.header:
            raise checks.refuse("columns", self.columns, "none where the file has a header, which names them")
        checks.flag(self.trim, "trim")
        check_signs(self.decimal, self.thousands)
        object.__setattr__(self, "dates", forms_of(self.dates))

    def file(self) -> str:
        return _file(self.path)

    @property
    def absent(self) -> bool:
        return not Path(self.path).is_file()

    def codec(self) -> str:
        """Python's name of the encoding: UTF-16 that does not say its order of bytes has the low one first."""
        if self.encoding != "utf-16":
            return self.encoding
        with Path(self.path).open("rb") as start:
            return "utf-16" if start.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-16-le"

    def check(self, table: Table) -> None:
        no_arrays(table, "a CSV file")
        if lacking := [name for name in table.columns if self.columns and name not in self.columns]:
            raise PlanError(
                f"the columns of {Path(self.path).name!r} have no {lacking[0]!r}, which the schema of table "
                f"{table.name!r} names: give all columns of the file in their order, under the schema's names"
            )
        for name in self.dates if isinstance(self.dates, Mapping) else ():
            if name not in table.columns or not table.columns[name].of_kind.is_time:
                dated = [each for each, column in table.columns.items() if column.of_kind.is_time]
                fix = f"name one of {', '.join(map(repr, dated))}" if dated else "it has none, so leave dates out"
                raise PlanError(
                    f"dates names {name!r}, which is no column of dates or moments in table {table.name!r}: {fix}"
                )

    def compare(self, table: Table) -> None:
        """Refuse a file whose first row does not fit, or that is not there, before anything is paid."""
        self.file()
        self.places(table)

    def called(self, table: Table, column: str) -> str:
        """By its name in the header; without one, by its place."""
        if self.header:
            return column
        return f"{column}, column {(self.columns or tuple(table.columns)).index(column) + 1}"

    def places(self, table: Table) -> tuple[int, dict[str, int]]:
        """How many cells a row has, and in which of them each column of the schema stands."""
        file, first = Path(self.path).name, self.first_row()
        names = tuple(first or ()) if self.header else self.columns or tuple(table.columns)
        if not self.header and first is not None and len(first) != len(names):
            raise PlanError(
                f"the first row of {file!r} has {len(first)} cells, and {len(names)} columns are named, so that no "
                f"place can be trusted: name all columns of the file in their order, also those that are left out "
                f"(columns, beside header)"
            )
        if any("\ufffd" in name for name in names):
            raise PlanError(f"the header of {file!r} cannot be read as {self.encoding} CSV")
        for column in table.columns:
            if names.count(column) != 1:
                count = "no column" if column not in names else "several columns"
                cause = f"the header of table {table.name!r} has {count} {column!r}"
                raise PlanError(f"{cause}: correct the schema, or {file!r}")
        return len(names), {column: names.index(column) for column in table.columns}

    def first_row(self) -> list[str] | None:
        """The cells of the first row, for their number, or their names where it is a header; None where there is no
        row. A blank line is none, but for a header."""
        quoting: dict[str, Any] = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        with contextlib.suppress(OSError, ValueError, csv.Error):
            encoding = "utf-8-sig" if self.encoding == "utf-8" else self.codec()
            # Python decodes ahead of the first row: a bad byte in another one must not show here.
            with Path(self.path).open(encoding=encoding, errors="replace", newline="") as lines:
                rows = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.trim, **quoting)
                row = next((row for row in rows if row or self.header), None)
                return [cell.strip(PYTHON_BLANKS) for cell in row] if row is not None and self.trim else row
        what = "header" if self.header else "first row"
        raise PlanError(f"the {what} of {Path(self.path).name!r} cannot be read as {self.encoding} CSV")

    def scan(self, cells: list[str], file: str) -> str:
        """SQL that reads the cells of each row as text, under these names, from a file in UTF-8."""
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in cells)
        # Two readers at once have to guess whether a line break is inside quotes, and a cell can make them guess wrong.
        return (
            f"read_csv({literal(file)}, auto_detect = false, columns = {{{columns}}}, header = "
            f"{str(self.header).lower()}, delim = {literal(self.delimiter)}, quote = {literal(self.quote)}, "
            f"escape = {literal(self.quote)}, nullstr = {literal(self.null)}, encoding = 'utf-8', "
            f"compression = 'none', ignore_errors = true, null_padding = true, strict_mode = false, "
            f"parallel = {str(not self.quote).lower()})"
        )

    @property
    def plain(self) -> bool:
        """Are cells written as `reading` reads them?"""
        return not (self.trim or self.thousands or self.dates) and self.decimal == "."

    def plain_cell(self, table: Table, column: str, cell: str) -> str:
        """SQL for the text of a cell as `reading` reads it."""
        forms = forms_for(self.dates, column)
        return plain_text(
            table.columns[column], self.text(cell), decimal=self.decimal, thousands=self.thousands, dates=forms
        )

    def text(self, cell: str) -> str:
        """SQL for what stands in a cell; NULL where that is nothing."""
        return f"NULLIF({trimmed(cell)}, {literal(self.null)})" if self.trim else cell


@dataclass(frozen=True)
class Parquet(Source):
    """One Parquet file, or several of the same columns: "visits/*.parquet". Statistics in the files give no bounds.

    Cells that the format forbids (text that is not UTF-8, times of day beyond 24 hours) are NULL, and change no other.
    """

    path: str | Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(checks.path(self.path, "path")))

    def files(self) -> list[str]:
        """All files, in one order. The engine would take wild signs in a file's own name for a pattern."""
        if not any(sign in str(self.path) for sign in _WILD):
            return [_file(self.path)]
        whole = Path(self.path).absolute()
        pattern = str(whole.relative_to(whole.anchor))
        found = sorted(str(each) for each in Path(whole.anchor).glob(pattern) if each.is_file())
        if not found:
            raise PlanError(f"no file fits {Path(self.path).name!r}: correct the path, or put the files there")
        if any(sign in name for name in found for sign in _WILD):
            raise PlanError(f"a file that fits {Path(self.path).name!r} has * ? or [ in its name: rename it")
        return [_file(name) for name in found]

    @property
    def absent(self) -> bool:
        try:
            return not self.files()
        except PlanError:
            return True

    def compare(self, table: Table) -> None:
        """Refuse files that are not there. What columns they have, the engine tells by their headers."""
        self.files()

    def check(self, table: Table) -> None:
        """Refuse arrays of another shape, by the headers of files that are there already."""
        if any(isinstance(column, TensorColumn) for column in table.columns.values()):
            files: list[str] = []
            with contextlib.suppress(PlanError):  # a file that is still to come is looked at when it is opened
                files = self.files()
            self.check_headers(table, files)

    @staticmethod
    def check_headers(table: Table, files: list[str]) -> None:
        """Refuse files that do not all hold the schema's columns, in the same types, and arrays in the right shape."""
        kinds = []
        for file in files:
            kinds.append(_kinds(file, table))
            for name, column in table.columns.items():
                wrong = arrow_misfit(column, kinds[-1][name]) if isinstance(column, TensorColumn) else None
                if wrong is not None:
                    raise PlanError(f"column {name!r} of table {table.name!r} does not fit the schema: {wrong}")
        if any(each != kinds[0] for each in kinds):
            raise PlanError(f"the files of table {table.name!r} do not have the same types in the schema's columns")

    @staticmethod
    def scan(files: list[str]) -> str:
        listed = ", ".join(map(literal, files))
        return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = false)"


@dataclass(frozen=True)
class DuckDBTable(Source):
    """One table of a DuckDB file, opened for reading; without a name, the one that is called as in the schema.

    A base table, with its stored columns: a view, a macro or a generated column is refused before anything is paid.
    Texts are compared and shown byte by byte, whatever collation the file has for them.
    """

    path: str | Path
    table: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(checks.path(self.path, "path")))
        if self.table is not None:
            checks.label(self.table, "table")

    @property
    def absent(self) -> bool:
        return not Path(self.path).is_file()

    def file(self) -> str:
        return _file(self.path)

    def check(self, table: Table) -> None:
        no_arrays(table, "a DuckDB file")

    def compare(self, table: Table) -> None:
        """Refuse a file that is not there, or has no such base table, before anything is paid."""
        file = self.file()
        status = Path(file).stat()
        state = status.st_ino, status.st_size, status.st_mtime_ns
        _compared(file, state, self.table or table.name, table.name, tuple(table.columns))

    def scan(self, engine: Any, attached: str, name: str, table: Table) -> str:
        """The stored table in the attached file; whatever else bears its name is refused."""
        return stored(engine, attached, self.table or name, name, table.columns)


@lru_cache(maxsize=64)
def _compared(file: str, state: tuple[int, ...], called: str, table: str, columns: tuple[str, ...]) -> None:
    """Look into a file's catalogue, once for each `state` of it. Whoever opens it for a release looks again."""
    with needed("duckdb").connect(":memory:", config=CLOSED) as engine:
        attach(engine, file, "compared", table)
        stored(engine, "compared", called, table, columns)


def _kinds(file: str, table: Table) -> dict[str, Any]:
    """Arrow's types of the schema's columns, out of a file's header."""
    parquet, header = needed("pyarrow.parquet"), None
    with contextlib.suppress(Exception):
        header = parquet.read_schema(file)
    if header is None:
        raise PlanError(f"a file of table {table.name!r} cannot be read as Parquet")
    for name in table.columns:
        if header.names.count(name) != 1:
            raise PlanError(f"the data of table {table.name!r} has no column {name!r}, which the schema names")
    return {name: header.field(name).type for name in table.columns}


def _file(path: str | Path) -> str:
    full = Path(path).absolute()
    if not full.is_file():
        raise PlanError(f"there is no file {str(path)!r}: correct its path, or put it there")
    return str(full)


def _names(columns: object) -> tuple[str, ...]:
    """The names of a file's columns; a name says one place."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise checks.refuse("columns", columns, "the names of all columns of the file, in their order")
    names = tuple(checks.label(name, "columns") for name in columns)
    if twin := next((name for name in names if names.count(name) > 1), None):
        raise checks.refuse("columns", twin, "a name for each column of the file that no other has")
    return names


def _check_sign(sign: object, name: str, allowed: str) -> None:
    if not isinstance(sign, str) or len(sign) != 1 or not sign.isascii() or sign in "\r\n\0 ":
        raise checks.refuse(name, sign, allowed)
