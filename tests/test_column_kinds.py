"""Kinds of columns: every kind answers every question, and every layer has a line for every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, record, schema
from sfumato.audit.hunting import Dice
from sfumato.audit.replays.column_forms import CELL_FORMS, in_arrow, in_numpy
from sfumato.column_kinds import KINDS, AnyColumn, ColumnKind, register
from sfumato.column_kinds.number_columns import RealKind
from sfumato.errors import ArgumentError, PlanError
from sfumato.learn.encodings import ENCODINGS
from sfumato.mechanisms import Laplace
from sfumato.noise import SeededBits
from sfumato.plan import fits
from sfumato.project.columns import WRITTEN, ColumnForm
from sfumato.query.kinds import OF_COLUMNS
from sfumato.rows import Rows, Series
from sfumato.schema import Column, Table
from sfumato.sources.reading import READINGS

COLUMNS: list[Column] = [
    schema.real(-1, 5),
    schema.real(0, 9, decimals=2, nulls=1),
    schema.whole(-3, 10, nulls=0),
    schema.category(["a", "b", "c"], nulls="b"),
    schema.category([3, 1, 2]),
    schema.category([True, False]),
    schema.flag(nulls=True),
    schema.key(),
    schema.date("2020-01-01", "2020-12-31"),
    schema.moment("2020-01-01", "2020-12-31"),
    schema.tensor((2, 3), 0, 1),
    schema.tensor((2,), 0, 7, whole=True),
]
ALL = pytest.mark.parametrize("column", COLUMNS, ids=str)
WORDS = SeededBits(3).words


def read(column: Column, cells: Any) -> Series:
    return Rows.read(Table({"x": column}), {"x": cells}, Unit())["x"]


def test_every_kind_is_tried_here() -> None:
    assert {column.type for column in COLUMNS} == set(KINDS)


def test_words_of_columns_are_those_of_the_kinds() -> None:
    assert tuple(word for word, kind in KINDS.items() if not kind.own_record) == schema.TYPES
    assert all(kind.word == word for word, kind in KINDS.items())
    with pytest.raises(ArgumentError, match="give one of 'real', 'whole', 'category', 'flag', 'key', 'date', 'moment'"):
        Column("tensor")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [CELL_FORMS, ENCODINGS, WRITTEN], ids=["replays", "learn", "project"])
def test_every_layer_has_a_line_for_every_kind(table: dict[str, Any]) -> None:
    assert set(table) == set(KINDS)


@pytest.mark.parametrize("table", [OF_COLUMNS, READINGS], ids=["SQL", "cells"])
def test_sql_has_a_line_for_every_kind_that_an_engine_holds(table: dict[str, Any]) -> None:
    assert set(table) == {word for word, kind in KINDS.items() if not kind.is_array}


def test_a_file_takes_every_kind() -> None:
    assert set(get_args(ColumnForm.model_fields["type"].annotation)) == set(KINDS)


def test_bounds_of_every_kind_that_has_them_are_told_in_words() -> None:
    assert {word for word, line in WRITTEN.items() if line.bounds} == {w for w, k in KINDS.items() if k.has_bounds}


@ALL
def test_clean_cells_are_read_as_values(column: Column) -> None:
    kind = column.of_kind
    for cells in (kind.made_up(column, 40, WORDS), kind.clean(column), kind.allowed(column)):
        assert read(column, cells).valid.all()
    chance = Dice(SeededBits(5))
    assert read(column, [kind.drawn(column, chance) for _ in range(20)]).valid.all()


@ALL
def test_odd_cells_are_read_one_by_one(column: Column) -> None:
    """Whatever stands beside a cell, and whoever holds it."""
    for cells in (column.of_kind.awkward(column), column.of_kind.extremes(column)):
        together = read(column, cells)
        for place, cell in enumerate(cells):
            alone = read(column, [cell])
            assert alone.valid[0] == together.valid[place]
            if column.of_kind.is_public:  # a key's code means nothing
                assert np.array_equal(alone.values[0], together.values[place])


@ALL
def test_a_null_is_among_the_extremes(column: Column) -> None:
    assert any(cell is None for cell in column.of_kind.extremes(column))
    assert any(cell is None for cell in column.of_kind.awkward(column))


@ALL
def test_a_stand_in_is_read_where_there_is_a_null(column: Column) -> None:
    series = read(column, [None])
    assert series.valid[0] == (not column.drops_nulls)
    if not column.drops_nulls:
        assert column.of_kind.fills_nulls
        assert series.values[0] == read(column, [column.nulls]).values[0]


@ALL
def test_units_have_different_names(column: Column) -> None:
    if column.of_kind.names_units:
        names = read(column, column.of_kind.names(column, 2))
        assert names.valid.all() and len(set(names.values.tolist())) == 2


@ALL
def test_what_was_read_goes_to_arrow_and_back(column: Column) -> None:
    if column.of_kind.is_array or not column.of_kind.is_public:
        return
    cells = [*column.of_kind.clean(column), None]
    series = read(column, cells)
    again = read(column, column.of_kind.arrow(column, series.values, ~series.valid, pyarrow))
    assert again.values.tolist() == series.values.tolist() and again.valid.tolist() == series.valid.tolist()


@ALL
def test_programs_hold_clean_cells_as_they_are(column: Column) -> None:
    cells = column.of_kind.clean(column)
    there = read(column, cells)
    for held in (in_numpy(column, cells, awkward=True), pyarrow.array(*in_arrow(column, cells))):
        again = read(column, held)
        assert again.valid.all() and again.values.tolist() == there.values.tolist()


@ALL
def test_columns_are_stored_by_their_word(column: Column) -> None:
    text = record.canonical(column)
    assert record.parse(text, Column) == column
    stored = json.loads(text)
    assert stored["is"] == ("tensor-column/1" if column.of_kind.own_record else "column/1")
    assert stored.get("type", "tensor") == column.type and "of_kind" not in stored


def test_a_word_is_taken_once() -> None:
    with pytest.raises(ArgumentError, match="a word that no other kind of column has"):
        register(RealKind())


def test_a_kind_that_leaves_a_question_out_is_none() -> None:
    class Silent(ColumnKind):
        word = "silent"

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]


# ------------------------------------------------------------------------------------------------ a kind of one's own


class ShareKind(RealKind):
    """Percentages: "12 %" is 0.12."""

    word = "share"
    has_decimals = False

    def bounds(self, column: AnyColumn) -> tuple[Fraction, Fraction]:
        if column.lower is not None or column.upper is not None:
            return super().bounds(column)
        return Fraction(0), Fraction(1)

    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Any:
        bare = [cell.removesuffix("%") if isinstance(cell, str) else cell for cell in cells.tolist()]
        signed = np.array([isinstance(cell, str) and cell.endswith("%") for cell in cells.tolist()], dtype=bool)
        values, valid, keys = super().read_cells(column, np.fromiter(bare, dtype=object))
        return np.where(signed, values / 100, values), valid, keys


@pytest.fixture
def share() -> Iterator[Any]:
    """A column of a kind that only this test knows."""
    register(ShareKind())
    kind: Any = "share"
    yield Column(kind, nulls=0)
    del KINDS["share"]


def test_a_kind_of_ones_own_is_one_class(share: Column) -> None:
    """From birth to a release, with made-up rows, without a line anywhere else."""
    assert str(share) == "share in [0, 1], NULLs read as 0"
    assert read(share, ["12 %", 0.5, None, "x"]).values.tolist() == [0.12, 0.5, 0.0, 0.0]
    table = Table({"x": share})
    assert len(Rows.read(table, table.make_up(50, WORDS), Unit())) == 50
    with pytest.raises(ArgumentError, match="no categories to a share column"):
        Column(share.type, categories=("a",))
    with pytest.raises(ArgumentError, match="no decimals to a share column"):
        Column(share.type, decimals=2)
    private = Private("rates", {"x": ["50 %"] * 40}, unit=Unit(), schema=Schema.of(x=share))
    curator = Curator(private, MemoryLedger({"rates": Budget(epsilon=10)}))
    plan = Laplace(query=bounds.clipped_sum("x", 0, 1, Unit()), epsilon=10)
    assert curator.rehearse(plan) is not None
    assert abs(float(curator.release(plan).value) - 20) < 5


def test_a_plan_takes_it_for_a_number(share: Column) -> None:
    fits(Unit(), {"x": schema.real(0, 1)}, Table({"x": share}))
    with pytest.raises(PlanError, match="column 'x' is share in the schema, and the plan needs one of category, flag"):
        fits(Unit(), {"x": schema.flag()}, Table({"x": share}))
