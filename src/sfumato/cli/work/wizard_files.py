"""The wizard's first questions: which files, and what their columns are. No row is read (see `looking`)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..problems import CommandError
from ..screen import columns
from . import wizard_words as words
from .column_words import column_given, listed
from .draft import TableDraft, plain_name
from .flags import Flags, encoded
from .prompts import Prompts
from .proposing import ColumnDraft, propose
from .table_looks import SUFFIXES, TableLook, duckdb_tables, kind_of, look, look_by_place
from .writing_cells import day_given, number_given


def ask_tables(prompts: Prompts, folder: Path, flags: Flags) -> list[TableDraft]:
    """Which files there are, and what is in them by their own account, where flags do not say it beforehand."""
    prompts.heading("1  The data")
    near = folder if folder.is_dir() else Path()
    names = [path.name for path in sorted(near.iterdir()) if _is_data(path)]
    paths = list(flags.sources) or prompts.ask(
        "Which files hold the data?",
        why=words.FILES_WHY,
        more=words.FILES_MORE,
        read=lambda text: _paths(text, folder),
        default=", ".join(names[:5]),
        shown=", ".join(names[:5]) or "no default",
    )
    tables: list[TableDraft] = []
    for path in paths:
        for seen in _looks(prompts, path, flags):
            name = plain_name(seen.table or path.stem, f"table_{len(tables) + 1}")
            while any(table.name == name for table in tables):
                name += "_2"
            table = TableDraft(name, seen, [propose(column) for column in seen.columns])
            for note in seen.notes:
                prompts.say(f"{path.name}: {note}", "yellow")
            tables.append(table)
    return tables


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".txt"  # a text of any sort


def _paths(text: str, folder: Path) -> list[Path]:
    paths = []
    for name in listed(text):
        path = Path(name).expanduser()
        path = path if path.exists() or path.is_absolute() else folder / name
        kind_of(path)
        paths.append(path)
    if not paths:
        raise CommandError("no file", "there is no data without a file", "type the name of a file")
    return paths


def _looks(prompts: Prompts, path: Path, flags: Flags) -> list[TableLook]:
    kind = kind_of(path)
    if kind == "duckdb":
        names = duckdb_tables(path)
        chosen = prompts.ask(
            f"Which tables of {path.name}?",
            why=words.TABLES_WHY,
            more=words.TABLES_MORE,
            read=lambda text: _among(text, names),
            default=", ".join(names),
        )
        return [look(path, table=name) for name in chosen]
    if kind == "parquet":
        return [look(path)]
    return [_ask_cells(prompts, _ask_names(prompts, path, flags.header), flags)]


def _ask_names(prompts: Prompts, path: Path, header: bool | None) -> TableLook:
    """What the columns of a CSV file are called: by its first line, or by somebody's word."""
    named = header
    if named is None:
        named = prompts.sure(
            f"Does the first line of {path.name} hold the names of its columns?",
            why=words.HEADER_WHY,
            more=words.HEADER_MORE,
            default=True,
        )
    if named:
        seen = look(path)
        if (
            not seen.doubtful
            or header
            or prompts.sure("Are they names all the same?", why=words.DOUBT_WHY, more=words.DOUBT_MORE, default=False)
        ):
            return replace(seen, doubtful=False)
    return prompts.ask(
        f"What are the columns of {path.name} called, in their order?",
        why=words.NAMES_WHY,
        more=words.NAMES_MORE,
        read=lambda text: look_by_place(path, _names(text)),
        default="",
        shown="no default",
    )


def _ask_cells(prompts: Prompts, seen: TableLook, flags: Flags) -> TableLook:
    """How its cells are written, where that is not said and something suggests that it should be: blanks in the line of
    names, no such line, or semicolons, which people use where commas stand in numbers."""
    written: dict[str, Any] = {}
    if flags.trim is None and (seen.written.get("trim") or not seen.header):
        written |= (
            {"trim": True}
            if prompts.sure(
                f"Are blanks around the cells of {seen.path.name} to be left away?",
                why=words.TRIM_WHY,
                more=words.TRIM_MORE,
                default=True,
            )
            else {}
        )
    if flags.decimal is None and flags.thousands is None and seen.delimiter == ";":
        written |= prompts.ask(
            f"How does {seen.path.name} write 1234.5?",
            why=words.DECIMAL_WHY,
            more=words.DECIMAL_MORE,
            read=number_given,
            default="1234,5",
        )
    return replace(encoded(seen, flags), written={**written, **flags.written})


def ask_dates(prompts: Prompts, table: TableDraft, flags: Flags) -> None:
    """How its days are written, where numbers have decimal commas: such people seldom write 2026-12-31."""
    kinds = {column.kind for column in table.columns}
    if flags.dates is not None or not {"date", "moment"} & kinds or table.look.written.get("decimal", ".") == ".":
        return
    clock = " 23:59:58" * ("moment" in kinds)
    written = prompts.ask(
        f"How does {table.look.path.name} write the last day of 2026{', two seconds before its end' if clock else ''}?",
        why=words.DATES_FORM_WHY,
        more=words.DATES_FORM_MORE,
        read=day_given,
        default=f"31.12.2026{clock}",
    )
    table.look = replace(table.look, written={**table.look.written, **written})


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise CommandError(
            "no names", "every column has a name of its own", "type them with commas: patient, ward, cost"
        )
    return names


def _among(text: str, names: list[str]) -> tuple[str, ...]:
    chosen = listed(text)
    if not chosen or not set(chosen) <= set(names):
        raise CommandError("no table", f"there are {', '.join(names) or 'no tables'}", "type some of them, with commas")
    return chosen


def ask_kinds(prompts: Prompts, table: TableDraft) -> None:
    """What the columns are: one question for all, since most proposals are right."""
    prompts.heading(f"2  The columns of {table.name}")
    while True:
        _show_columns(prompts, table)
        changes = prompts.ask(
            "Is that right?",
            why=words.KINDS_WHY,
            more=words.KINDS_MORE,
            read=lambda text: _changes(text, table),
            default="yes",
        )
        if not changes:
            return
        for column in changes:
            table.put(column)


def _show_columns(prompts: Prompts, table: TableDraft) -> None:
    if prompts.unseen:
        return
    prompts.console.print()
    rows = [("", each.name, "left out" if each.kind == "out" else each.kind, each.why) for each in table.columns]
    columns(prompts.console, ("", "column", "kind", "because"), rows)


def _changes(text: str, table: TableDraft) -> list[ColumnDraft]:
    """cost=whole, note=out: commas stand between changes, and between the values of a category."""
    if text.lower() in ("y", "yes"):
        return []
    changed: list[ColumnDraft] = []
    for part in re.split(r",\s*(?=[^,=<>]*=)", text):  # <=50K is a value
        name, sign, kind = part.strip().partition("=")
        old = table.column(name.strip())
        if not sign or old is None:
            names = ", ".join(column.name for column in table.columns)
            raise CommandError("no change", f"{part.strip()[:40]!r} changes no column of {names}", "write cost=whole")
        new = column_given(old.name, kind)
        changed.append(replace(new, unit=old.unit, why="you said so"))
    return changed
