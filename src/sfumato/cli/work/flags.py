"""A draft from flags alone: what they do not say is proposed, or left for somebody to fill in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...foreign_keys import ARROW
from ..problems import CommandError
from .column_words import column_given
from .draft import Draft, TableDraft, plain_name, put_keys, read_key
from .proposing import SURE, ColumnDraft, propose
from .table_looks import TableLook, duckdb_tables, kind_of, look, look_by_place
from .writing_cells import checked, day_given, suggestion


@dataclass(frozen=True)
class Flags:
    """What was given on the command line, as it was typed."""

    sources: tuple[Path, ...] = ()
    units: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    header: bool | None = None
    trim: bool | None = None
    decimal: str | None = None
    thousands: str | None = None
    dates: str | None = None
    null: str | None = None
    encoding: str | None = None
    name: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    rows: str | None = None

    @property
    def written(self) -> dict[str, Any]:
        """How cells are written, as far as it is said."""
        options = {name: getattr(self, name) for name in ("trim", "decimal", "thousands", "null")}
        typed = {name: each for name, each in options.items() if each not in (None, False)}
        return checked(typed) | (day_given(self.dates) if self.dates is not None else {})


def drafted(draft: Draft, flags: Flags) -> tuple[Draft, list[str]]:
    """The draft that the flags describe, and what was odd on the way."""
    notes: list[str] = []
    for path in flags.sources:
        for source in _looks(path, flags):
            seen = _written(source, flags)
            name = plain_name(seen.table or path.stem, f"table_{len(draft.tables) + 1}")
            if any(table.name == name for table in draft.tables):
                raise CommandError(f"two tables would be called {name}", "their files have one name", "rename one file")
            draft.tables.append(TableDraft(name, seen, [propose(column) for column in seen.columns]))
            notes += [f"{path.name}: {note}" for note in seen.notes]
    say_columns(draft, flags)
    _set_units(draft, flags)
    return draft, notes


def _written(seen: TableLook, flags: Flags) -> TableLook:
    """How its cells are written: by the flags, or by blanks in the line of names. Where there is none, blanks are left
    away: the file is not read for this, and where it has none that changes nothing."""
    if seen.kind != "csv":
        return seen
    guessed = {} if flags.trim is False else {"trim": True} if not seen.header else seen.written
    written = {**guessed, **flags.written}
    seen = encoded(seen, flags)
    advice = suggestion(seen.delimiter, written, unsaid=flags.encoding is None and seen.encoding == "utf-8")
    return replace(seen, written=written, notes=(*seen.notes, *advice))


def encoded(seen: TableLook, flags: Flags) -> TableLook:
    """A CSV file in the encoding that somebody gave."""
    return seen if flags.encoding is None else replace(seen, encoding=checked({"encoding": flags.encoding})["encoding"])


def say_columns(draft: Draft, flags: Flags) -> None:
    """What the flags say of tables and columns."""
    for name in flags.public:
        _table(draft, name, "--public").public = True
    for text in flags.columns:
        _put(draft, text)


def _looks(path: Path, flags: Flags) -> list[TableLook]:
    if kind_of(path) == "duckdb":
        return [look(path, table=name) for name in duckdb_tables(path)]
    if flags.header is False and kind_of(path) == "csv":
        names = [each.partition("=")[0] for each in flags.columns]
        if len(flags.sources) > 1 or not names:
            raise CommandError(
                f"the columns of {path.name} have no names",
                "--no-header says that its first line holds none",
                "name all of them in their order, in a project of this one file: --column patient=key --column ...",
            )
        return [look_by_place(path, names)]
    seen = look(path)
    if seen.doubtful and flags.header is None:
        raise CommandError(
            f"the first line of {path.name} may hold no names",
            "some of its words look like numbers or dates, as in a row of data, so that none of them is shown",
            "give --header if they are names all the same, or --no-header and a --column for each column in its order",
        )
    return [seen]


def _table(draft: Draft, name: str, flag: str) -> TableDraft:
    for table in draft.tables:
        if table.name == name:
            return table
    names = ", ".join(table.name for table in draft.tables)
    raise CommandError(f"{flag} names no table {name!r}", f"the tables are {names}", "give one of them")


def _put(draft: Draft, text: str) -> None:
    """cost=real:0:5000 for the column of that name, in whichever tables have it; visits.cost=... in one of them."""
    name, sign, kind = text.partition("=")
    tables = [table for table in draft.tables if table.column(name)]
    if not tables:
        table_name, _, rest = name.partition(".")
        tables, name = [each for each in draft.tables if each.name == table_name and each.column(rest)], rest or name
    if not sign or not tables:
        names = ", ".join(column.name for table in draft.tables for column in table.columns)
        raise CommandError(f"--column {text} fits no column", f"the columns are {names}", "write cost=real:0:5000")
    for table in tables:
        table.put(column_given(name, kind))


def _set_units(draft: Draft, flags: Flags) -> None:
    """`--unit patient` names the unit, `--unit patients=id` the column of a table that calls it otherwise, and `--unit
    'items=order -> orders.id'` the key that leads to a table that knows.

    A column that is merely likely is never taken: a wrong one would hide the wrong thing.
    """
    named = [each for each in flags.units if "=" not in each]
    private = [table for table in draft.tables if not table.public] or draft.tables
    first = next((table for table in private if named and table.column(named[0])), private[0])
    sure = [column.name for column in first.columns if column.unit == SURE]
    unit = named[0] if named else sure[0] if len(sure) == 1 else None
    if unit is None or len(named) > 1 or (unit != "row" and first.column(unit) is None):
        names = ", ".join(column.name for column in first.columns)
        raise CommandError(
            "whom to hide is not clear",
            f"--unit is one column of {first.name} that names the person: {names}",
            "give --unit COLUMN, or --unit row if nobody has more than one row",
        )
    draft.unit = None if unit == "row" else unit
    if draft.unit is None:
        return
    for text in flags.units:
        table, sign, column = text.partition("=")
        if sign:
            owned = _table(draft, table, "--unit")
            if ARROW in column:
                owned.owner = read_key(column, owned, draft.tables)
                continue
            if owned.column(column) is None:
                raise CommandError(
                    f"--unit {text} fits no column", f"{table} has no {column!r}", "give one that it has"
                )
            if column != draft.unit and owned.column(draft.unit):
                raise CommandError(
                    f"--unit {text} names two units",
                    f"{table} has a column {draft.unit!r} itself, and that is whom to hide",
                    f"leave it out, or give --unit {column}",
                )
            owned.unit = column
    for table_ in draft.tables:
        if not table_.public and table_.unit is None and table_.owner is None and table_.column(draft.unit):
            table_.unit = draft.unit
        put_keys(table_, draft.tables)
        if table_.unit is not None:
            table_.put(ColumnDraft(table_.unit, "key", why="names the unit"))
