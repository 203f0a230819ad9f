"""The wizard's first questions: which files, and what their columns are. No row is read (see `looking`)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ..problems import CommandError
from ..screen import columns
from . import wizard_words as words
from .column_words import column_given, listed
from .draft import TableDraft, plain_name
from .looking import SUFFIXES, Look, duckdb_tables, kind_of, look, look_by_place
from .prompts import Prompts
from .proposing import Column, propose


def ask_tables(prompts: Prompts, folder: Path, given: list[Path], header: bool | None = None) -> list[TableDraft]:
    """Which files there are, and what is in them by their own account; `header` where it is said beforehand."""
    prompts.heading("1  The data")
    near = folder if folder.is_dir() else Path()
    found = [path.name for path in sorted(near.iterdir()) if _is_data(path)]
    paths = given or prompts.ask(
        "Which files hold the data?",
        why=words.FILES_WHY,
        more=words.FILES_MORE,
        read=lambda text: _paths(text, folder),
        default=", ".join(found[:5]),
        shown=", ".join(found[:5]) or "no default",
    )
    tables: list[TableDraft] = []
    for path in paths:
        for seen in _looks(prompts, path, header):
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


def _looks(prompts: Prompts, path: Path, header: bool | None) -> list[Look]:
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
            return [replace(seen, doubtful=False)]
    seen = prompts.ask(
        f"What are the columns of {path.name} called, in their order?",
        why=words.NAMES_WHY,
        more=words.NAMES_MORE,
        read=lambda text: look_by_place(path, _names(text)),
        default="",
        shown="no default",
    )
    return [seen]


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
    prompts.console.print()
    rows = [("", each.name, "left out" if each.kind == "out" else each.kind, each.why) for each in table.columns]
    columns(prompts.console, ("", "column", "kind", "because"), rows)


def _changes(text: str, table: TableDraft) -> list[Column]:
    """cost=whole, note=out: commas stand between changes, and between the values of a category."""
    if text.lower() in ("y", "yes"):
        return []
    changed: list[Column] = []
    for part in re.split(r",\s*(?=[^,=]*=)", text):
        name, sign, kind = part.strip().partition("=")
        old = table.column(name.strip())
        if not sign or old is None:
            names = ", ".join(column.name for column in table.columns)
            raise CommandError("no change", f"{part.strip()[:40]!r} changes no column of {names}", "write cost=whole")
        new = column_given(old.name, kind)
        changed.append(replace(new, unit=old.unit, why="you said so"))
    return changed
