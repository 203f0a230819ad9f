"""The law of reading: rows that are added or taken away change no other row's value, nor the label of its key, and no
row decides whether a release ends. For every form of table, every type that it holds, every type of a schema, and every
awkward cell; by the way of core plans and by the engine."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest

from sfumato import sources, times
from sfumato.audit.awkward import kinds
from sfumato.audit.forms import FORMS, IMAGES, MEANINGS, TABLE, Kind, changed_by, read_as_rows, read_by_engine
from sfumato.schema import TYPES, Column
from sfumato.sources.files import ENCODINGS

EVERYWHERE = ("alone", "start", "middle", "end")
FRAMES = ("columns", "examples", "arrow", "polars", "pandas")
_NOT_MADE = {"Type_INTERVAL_MONTHS", "Type_INTERVAL_DAY_TIME", "Type_MAX_ID"}  # pyarrow makes no arrays of these


# the lists are whole: what is new must be entered


def test_every_source_every_type_and_every_encoding_is_tried(tmp_path: Path) -> None:
    exported = {
        name
        for name in sources.__all__
        if isinstance(each := getattr(sources, name), type) and issubclass(each, sources.Source)
    } - {"Source", "PostgresTable", "DatabaseTable", "SparkTable", "SparkFrame"}  # servers have test_..._cells.py
    tried = set()
    for form in FORMS:
        kind = kinds(form)[0]
        given = kind.stored(kind.ordinary, range(len(kind.ordinary)), tmp_path)
        tried.add(type(sources.source(given)).__name__)
    assert tried == exported
    assert {column.type for column in MEANINGS.values()} == set(TYPES)
    assert IMAGES.columns["tensor"].type == "tensor"
    assert {f"csv {encoding}" for encoding in ENCODINGS} <= set(FORMS)


def test_every_option_of_csv_files_is_tried(tmp_path: Path) -> None:
    """An option that changes how cells are read belongs into a form."""
    given = [kinds(form)[0].stored([], [], tmp_path) for form in FORMS if form.startswith("csv")]
    usual = sources.Csv(tmp_path / "law.csv")
    varied = {
        each.name for each in fields(usual) if any(vars(one)[each.name] != vars(usual)[each.name] for one in given)
    }
    assert varied == {each.name for each in fields(usual)} - {"path", "header", "columns"}


def test_every_type_of_arrow_is_tried() -> None:
    every = {value: name for name, value in vars(pyarrow.lib).items() if name.startswith("Type_")}
    tried = {kind.column(list(kind.ordinary)).type.id for kind in kinds("arrow")}
    assert {name for value, name in every.items() if value not in tried} <= _NOT_MADE


def test_every_type_of_polars_is_tried() -> None:
    def leaves(kind: type) -> set[str]:
        below = [
            leaf for each in kind.__subclasses__() if each.__module__.startswith("polars") for leaf in leaves(each)
        ]
        return set(below) or {kind.__name__}

    tried = {type(kind.column(list(kind.ordinary)).dtype).__name__ for kind in kinds("polars")}
    tried |= {kind.column(list(kind.ordinary)).dtype.base_type().__name__ for kind in kinds("polars")}
    untried = leaves(polars.datatypes.DataType) - tried
    assert untried <= {"Field", "Unknown", "BaseExtension", "Extension"}, untried


# the law


def _by_engine(kind: Kind) -> bool:
    return kind.table is TABLE


@pytest.mark.parametrize("form", FRAMES)
def test_no_row_changes_another_on_the_way_of_core_plans(form: str, tmp_path: Path) -> None:
    broken = [words for kind in kinds(form) for words in changed_by(kind, ("middle",), tmp_path, read_as_rows)]
    assert broken == []


@pytest.mark.parametrize("form", FORMS)
def test_no_row_changes_another_by_the_engine(form: str, tmp_path: Path) -> None:
    """A part of the types; all of them below."""
    tried = [kind for kind in kinds(form) if _by_engine(kind)]
    always = [f"{form}: {name}" for name in ("string", "timestamp[us]", "time64[ns]")]
    tried = [kind for place, kind in enumerate(tried) if kind.name in always or place % (1 + len(tried) // 2) == 0]
    broken = [words for kind in tried for words in changed_by(kind, ("middle",), tmp_path, read_by_engine)]
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_no_row_changes_another_wherever_it_stands(form: str, tmp_path: Path) -> None:
    broken = []
    for kind in kinds(form):
        broken += changed_by(kind, EVERYWHERE if form in FRAMES else ("middle",), tmp_path, read_as_rows)
        if _by_engine(kind):
            broken += changed_by(kind, EVERYWHERE, tmp_path, read_by_engine)
    assert broken == []


@pytest.mark.parametrize("form", ["columns", "arrow", "polars", "pandas"])
def test_core_plans_and_the_engine_read_ordinary_cells_alike(form: str, tmp_path: Path) -> None:
    for kind in kinds(form)[::4]:
        if _by_engine(kind):
            given = kind.stored(kind.ordinary, range(len(kind.ordinary)), tmp_path)
            rows, engine = read_as_rows(kind, given), read_by_engine(kind, given)
            for number, cells in engine.items():
                assert [*map(_plain, MEANINGS, cells)] == [*map(_as_engine, MEANINGS.values(), rows[number])], kind.name


def _plain(name: str, cell: Any) -> Any:
    if name == "key" and cell is not None:  # whole numbers are numbers or texts to it, by what the source holds
        return str(int(cell) if isinstance(cell, bool) else cell)
    return str(cell) if isinstance(cell, dt.date) else cell


def _as_engine(column: Column, value: Any) -> Any:
    """What `Rows` holds, as the engine shows it: categories by name, times and keys as texts."""
    if value is None:
        return None
    if column.type == "key":
        return str(value)
    if column.type == "category":
        return column.categories[value]
    if column.type == "real":  # clamped where it is used
        return min(max(value, float(column.interval[0])), float(column.interval[1]))
    return times.shown(value, column.type) if column.type in ("date", "moment") else value
