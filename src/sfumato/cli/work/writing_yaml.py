"""The text of sfumato.yaml, with comments for whoever reads it next. What is still missing stands there as a TODO."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...errors import ArgumentError
from ...schema import real
from .draft import Draft, TableDraft
from .making import ANCHOR, KEY, PLACE
from .proposing import ColumnDraft

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_PLAIN = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"])
_FIELDS = {"null": '"null"'}  # which means nothing to YAML, without quotes
_HEAD = """\
# What sfumato may know of the data, whom it protects, what may be spent.
# All of it is public: write it without looking at the data.
# `sfumato describe` tells it in words, `sfumato schema project` is for editors.
"""


@dataclass(frozen=True)
class Todo:
    """Something that is still missing."""

    line: int
    what: str


class _Page:
    """Lines, and which of them are still to be filled in."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.todos: list[Todo] = []

    def add(self, line: str = "", comment: str = "") -> None:
        self.lines.append(f"{line:<30}  # {comment}" if comment else line)

    def todo(self, line: str, what: str) -> None:
        self.lines.append(f"{line}  # TODO: {what}" if line.strip() else f"{line}# TODO: {what}")
        self.todos.append(Todo(len(self.lines), what))


def written(draft: Draft) -> tuple[str, list[Todo]]:
    """The text of the file, and what is still to be filled in."""
    page = _Page()
    page.lines += _HEAD.splitlines()
    page.add("sfumato: 1")
    page.add(f"name: {scalar(draft.name)}", "also its account in the ledger")
    if draft.unit is None:
        page.add("unit: row", "hides a row, not a person with several")
    else:
        page.add(f"unit: {_user(draft.unit)}", f"hides all that one {draft.unit} contributed")
    page.add('version: "1"', "of the data; new data, new name")
    page.add()
    page.add("tables:")
    for table in draft.tables:
        _table(page, table, draft)
    if draft.views:
        page.lines += ["", "views:"]
    for view in draft.views:
        page.add(f"  {scalar(view.name)}:")
        page.add(f"    query: {json.dumps(view.query, ensure_ascii=False)}")
        page.add(f"    source: {scalar_path(view.path, draft.folder)}", "releases stop where it says something else")
    page.add()
    if draft.rows is None:
        page.add("# limits: {rows: 8}", "left out: each query measures them, privately")
    else:
        page.add(f"limits: {{rows: {draft.rows}}}", "for so many rows one unit counts at most")
    _money(page, draft)
    return "\n".join(page.lines) + "\n", page.todos


def _money(page: _Page, draft: Draft) -> None:
    page.lines += ["", "ledger:", f"  place: {PLACE}"]
    page.add(f"  anchor: {ANCHOR}", "better on another disk")
    page.add(f"  key: {KEY}", "for your eyes only")
    page.lines += [f"  principal: {scalar(draft.principal)}", "", "privacy:"]
    page.add(f"  target_epsilon: {draft.release_epsilon}", "of a release, by default")
    total = f"epsilon: {draft.epsilon}"
    if float(draft.delta):
        page.add(f"  target_delta: {draft.release_delta}")
        total += f", delta: {draft.delta}"
    page.lines += ["", "budget:"]
    page.add(f"  total: {{{total}}}", "all that may ever be spent")
    page.add("  alert_threshold: 0.8", "tell when so much of it is spent")


def _table(page: _Page, table: TableDraft, draft: Draft) -> None:
    page.add(f"  {scalar(table.name)}:")
    page.lines += _source(table, draft.folder)
    if table.public:
        page.add("    public: true", "anybody may know all of it; it hides nobody")
    elif draft.unit is not None and table.unit is not None:
        page.add(f"    unit: {scalar(table.unit)}", "says whose row it is")
        if table.unit != draft.unit:
            page.add(f"    names: {scalar(draft.unit)}", "the same people, under another name")
    elif draft.unit is not None and table.owner is not None:
        page.add(
            f"    owner: {scalar(str(table.owner))}", f"belongs to whoever owns the {table.owner.table} it leads to"
        )
    elif draft.unit is not None:
        page.todo("    ", f"unit: the column of {table.name} that says whose row it is; or owner; or public: true")
    page.add("    columns:")
    for column in table.columns:
        _column(page, column)


def _column(page: _Page, column: ColumnDraft) -> None:
    name = f"      {scalar(column.name)}"
    if column.kind == "out":
        page.add(f"      # {scalar(column.name)} is left out: {column.why or 'as you said'}")
    elif column.kind == "category" and column.values:
        numbers = all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in column.values)
        values = column.values if numbers else tuple(map(scalar, column.values))
        page.lines += _folded(f"{name}: {{type: category, values: [", values)
    elif column.kind == "category":
        page.add(f"{name}: key", "or {type: category, values: [...]}")
    elif column.missing:
        what = "two dates" if column.kind in ("date", "moment") else "two numbers"
        page.todo(f"{name}: {{type: {column.kind}}}", f"{column.name} needs lower and upper, {what}")
    elif column.lower is not None:
        more = f", decimals: {column.decimals}" if _has_decimals(column) else ""
        page.add(f"{name}: {{type: {column.kind}, lower: {column.lower}, upper: {column.upper}{more}}}")
    else:
        page.add(f"{name}: {column.kind}")


def _has_decimals(column: ColumnDraft) -> bool:
    """Is it declared DECIMAL, with bounds that have no more places?"""
    if column.kind != "real" or column.decimals is None or column.lower is None or column.upper is None:
        return False
    try:
        real(Fraction(column.lower), Fraction(column.upper), decimals=column.decimals)
    except (ArgumentError, ValueError):
        return False
    return True


def _folded(head: str, values: tuple[str, ...]) -> list[str]:
    """A list over as many lines as it needs, of 80 characters where values allow."""
    lines = [head]
    for number, value in enumerate(values):
        part = value + (", " if number + 1 < len(values) else "]}")
        if len(lines[-1]) + len(part) > 80 and number:
            lines.append(" " * 8 + part)
        else:
            lines[-1] += part
    return [line.rstrip() for line in lines]


def _source(table: TableDraft, folder: Path) -> list[str]:
    look = table.look
    path = scalar_path(look.path, folder)
    more = []
    if look.kind == "csv":
        usual = "\t" if look.path.suffix.lower() == ".tsv" else ","
        more += [f"delimiter: {json.dumps(look.delimiter)}"] if look.delimiter != usual else []
        more += [f"encoding: {look.encoding}"] if look.encoding != "utf-8" else []
        more += [f"{_FIELDS.get(name, name)}: {json.dumps(each)}" for name, each in look.written.items()]
    elif look.table is not None and look.table != table.name:
        more += [f"table: {scalar(look.table)}"]
    if not look.header:  # columns are known by their places alone, so those that are left out keep theirs
        head = "    source: {" + ", ".join([f"path: {path}", *more, "header: false", "columns: ["])
        return _folded(head, tuple(scalar(column.name) for column in look.columns))
    return [f"    source: {{path: {path}, {', '.join(more)}}}" if more else f"    source: {path}"]


def scalar_path(path: Path, folder: Path) -> str:
    """The path from the project's folder, so that both can move together."""
    try:
        near = os.path.relpath(path.resolve(), folder.resolve())
    except ValueError:  # on another drive
        near = str(path.resolve())
    near = near.replace(os.sep, "/")
    return (
        near
        if re.fullmatch(r"[A-Za-z0-9_./-]*[A-Za-z0-9]", near) and near[0] not in "-"
        else json.dumps(near, ensure_ascii=False)
    )


def scalar(text: str) -> str:
    """A text as YAML holds it: bare where every reader takes it for a text."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN else json.dumps(text, ensure_ascii=False)


def _user(unit: str) -> str:
    return f"user:{unit}" if _PLAIN.fullmatch(unit) else json.dumps(f"user:{unit}", ensure_ascii=False)
