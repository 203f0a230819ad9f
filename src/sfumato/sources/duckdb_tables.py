"""The tables of a DuckDB session as their sources hold them: files, tables of DuckDB files, frames."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import PlanError, guarded
from ..schema import Table
from .base import Source, literal, quoted
from .catalogue import attach
from .duckdb_cells import cell_of
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .raw_cells import Cell
from .rewriting import in_utf_8, without_odd_cells
from .session import RawTable
from .spelling import there


class RawTables:
    """The tables as their sources hold them. Making it shuts the engine off from every other file."""

    def __init__(
        self, engine: Any, tables: Mapping[str, tuple[Table, Source]], folder: Path, unread: Collection[str]
    ) -> None:
        self._engine = engine
        self._tables = tables
        self._files: dict[str, list[str]] = {}
        self._anew: dict[str, list[str]] = {}  # where files would be written anew, by table
        self._texts: dict[str, str] = {}  # where texts in other encodings are written in UTF-8
        self._attached: dict[str, str] = {}
        for number, (name, (_, source)) in enumerate(tables.items()):
            if isinstance(source, Parquet):
                self._files[name] = source.files()
                self._anew[name] = [
                    str(Path(folder, f"{number}_{place}.parquet")) for place in range(len(self._files[name]))
                ]
            elif isinstance(source, Csv):
                self._texts[name] = str(Path(folder, f"{number}.csv"))
                if name in unread:
                    Path(empty := str(Path(folder, f"{number}_unread.csv"))).touch()
                    self._files[name] = [empty]
                else:
                    self._files[name] = [self._in_utf_8(name, source)]
            elif isinstance(source, DuckDBTable):
                self._attach(name, source.file())
        later = [source.file() for _, source in tables.values() if isinstance(source, Csv)]
        files = [file for several in (*self._files.values(), *self._anew.values()) for file in several]
        allowed = ", ".join(literal(file) for file in dict.fromkeys([*files, *self._texts.values(), *later]))
        engine.execute(f"SET allowed_paths = [{allowed}]; SET enable_external_access = false")

    def _in_utf_8(self, name: str, source: Csv) -> str:
        return guarded(partial(in_utf_8, source.file(), source.codec(), self._texts[name]))

    def reached_anew(self, names: Collection[str]) -> Collection[str] | None:
        """Reach the rows of these tables, which were left unread; the names of those that lie elsewhere now. None where
        there are other files than the engine may read."""
        sources = {name: self._tables[name][1] for name in names}
        parquet = {name: source for name, source in sources.items() if isinstance(source, Parquet)}
        if any(source.files() != self._files[name] for name, source in parquet.items()):
            return None
        texts = {name: source for name, source in sources.items() if isinstance(source, Csv)}
        self._files |= {name: [self._in_utf_8(name, source)] for name, source in texts.items()}
        return texts

    def rewritten(self) -> list[str]:
        """Write the Parquet files anew, those that are not yet; which tables these are."""
        anew = []
        for name, (table, _) in self._tables.items():
            if targets := self._anew.pop(name, []):
                for file, target in zip(self._files[name], targets, strict=True):
                    without_odd_cells(file, list(table.columns), target)
                self._files[name] = targets
                anew.append(name)
        return anew

    def _attach(self, name: str, file: str) -> None:
        if file in self._attached:
            return
        self._attached[file] = f"_file_{len(self._attached)}"
        attach(self._engine, file, self._attached[file], name)

    def table(self, name: str, *, flagged: bool = False) -> RawTable:
        """What to select from, and how every column of the schema is held there; `flagged` where it matters which cells
        cannot be read."""
        table, source = self._tables[name]
        if isinstance(source, Csv):
            return self._csv(name, table, source)
        if isinstance(source, Frame):
            return self._frame(name, table, source, flagged)
        if isinstance(source, DuckDBTable):
            scan = source.scan(self._engine, self._attached[source.file()], name, table)
            broken = f"the DuckDB file of table {name!r} cannot be read"
            return RawTable(scan, _cells(self._typed(table, self._described(scan, broken))))
        files = self._files[name]
        broken = f"a file of table {name!r} cannot be read as Parquet"
        types = [self._typed(table, self._described(Parquet.scan([file]), broken)) for file in files]
        if any(other != types[0] for other in types):
            raise PlanError(f"the files of table {name!r} do not have the same types in the schema's columns")
        return RawTable(Parquet.scan(files), _cells(types[0]))

    def _csv(self, name: str, table: Table, source: Csv) -> RawTable:
        count, places = source.places(table)
        cells = [f"c{place}" for place in range(count)]
        [file] = self._files[name]
        scan = source.scan(cells, file)
        if source.plain:
            return RawTable(
                scan, {column: cell_of(quoted(cells[place]), "VARCHAR") for column, place in places.items()}
            )
        shown = (
            f"{source.plain_cell(table, column, cells[place])} AS p{place}, {source.text(cells[place])} AS t{place}"
            for column, place in places.items()
        )
        columns = {
            column: cell_of(quoted(f"p{place}"), "VARCHAR", there(f"t{place}", "VARCHAR"))
            for column, place in places.items()
        }
        return RawTable(f"(SELECT {', '.join(shown)} FROM {scan})", columns)

    def _frame(self, name: str, table: Table, source: Frame, flagged: bool) -> RawTable:
        cells, flags = ([f"{sign}{place}" for place in range(len(table.columns))] for sign in ("c", "t"))
        scan = f"_frame_{list(self._tables).index(name)}{'_flagged' * flagged}"
        source.check(table)
        self._engine.register(scan, guarded(lambda: source.arrow(table, cells, flags if flagged else None)))
        types = self._described(scan, f"the data of table {name!r} cannot be read")
        columns = {
            column: cell_of(quoted(cell), types[cell], flag if flag in types else "")
            for column, cell, flag in zip(table.columns, cells, flags, strict=True)
        }
        return RawTable(scan, columns)

    def _described(self, scan: str, failure: str) -> dict[str, str]:
        with contextlib.suppress(Exception):
            return {row[0]: row[1] for row in self._engine.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
        raise PlanError(failure)  # outside of the block, so that the engine's error is not its context

    @staticmethod
    def _typed(table: Table, types: Mapping[str, str]) -> dict[str, str]:
        """The types of the schema's columns, which must all be there."""
        for column in table.columns:
            if column not in types:
                raise PlanError(
                    f"the data of table {table.name!r} has no column {column!r}, which the schema names: correct the "
                    "schema, or the file"
                )
        return {column: types[column] for column in table.columns}


def _cells(types: Mapping[str, str]) -> dict[str, Cell]:
    return {column: cell_of(quoted(column), physical) for column, physical in types.items()}
