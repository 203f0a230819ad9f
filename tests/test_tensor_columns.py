"""Columns of arrays: described, made up, stored, and read so that no row changes how another is read."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Unit, record
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.noise.bits import SeededBits
from sfumato.rows import Rows
from sfumato.schema import Schema, Table, TensorColumn, category, key, real, tensor
from sfumato.sources import Csv, DuckDBTable, columns_of, connect, source

IMAGE = tensor((2, 3), -1, 1)
TOKENS = tensor((3,), 1, 50, whole=True)
FLAT = np.arange(6.0).reshape(2, 3) / 10
NAN, INF = float("nan"), float("inf")


def read(column: TensorColumn, given_cells: Any) -> tuple[np.ndarray[Any, Any], list[bool]]:
    series = Rows.read(Table({"x": column}), {"x": given_cells}, Unit())["x"]
    assert series.values.dtype == column.dtype and series.values.shape == (len(series.valid), *column.shape)
    assert not series.values.size or column.ends[0] <= series.values.min() <= series.values.max() <= column.ends[1]
    return series.values, series.valid.tolist()


# ------------------------------------------------------------------------------------------------ the schema


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: tensor((), 0, 1), "shape"),
        (lambda: tensor((0,), 0, 1), "shape"),
        (lambda: tensor(3, 0, 1), "shape"),
        (lambda: tensor((2.0,), 0, 1), "shape"),
        (lambda: tensor((True,), 0, 1), "shape"),
        (lambda: tensor((1,) * 9, 0, 1), "shape"),
        (lambda: tensor((2**20, 2**20), 0, 1), "shape"),
        (lambda: tensor((1,), 1, 0), "lower"),
        (lambda: tensor((1,), 0, NAN), "upper"),
        (lambda: tensor((1,), None, 1), "lower"),
        (lambda: tensor((1,), 0, 1e39), "upper"),
        (lambda: tensor((1,), 1, 1 + Fraction(1, 2**40)), "lower"),
        (lambda: tensor((1,), 0, 2.5, whole=True), "upper"),
        (lambda: tensor((1,), 0, 2**63, whole=True), "upper"),
        (lambda: tensor((1,), 0, 1, whole=1), "whole"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_refused_by_name(make: Any, named: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{named} "):
        make()


def test_a_schema_with_arrays_is_stored_prints_and_comes_back() -> None:
    described = Schema.of(image=tensor([1, 28, 28], 0, 1), ids=TOKENS, label=category([0, 1]), who=key(), unit="who")
    text = record.canonical(described)
    assert record.parse(text) == described and record.canonical(record.parse(text)) == text
    assert b'"is":"tensor-column/1"' in text and hash(record.parse(text)) == hash(described)
    assert "image: tensor of 1 x 28 x 28 reals in [0, 1]" in str(described)
    assert "ids: tensor of 3 whole numbers in [1, 50]" in str(described)
    assert "1 x 28 x 28" in described._repr_html_()


def test_other_columns_are_stored_as_before() -> None:
    assert record.canonical(real(0, 1)) == (
        b'{"categories":[],"constant":false,"is":"column/1","lower":{"is":"exact","value":"0"},"nulls":"drop",'
        b'"type":"real","upper":{"is":"exact","value":"1"}}'
    )


def test_stored_json_is_validated_again() -> None:
    text = record.canonical(IMAGE).replace(b"[2,3]", b"[2,0]")
    with pytest.raises(record.RecordError):
        record.parse(text)
    with pytest.raises(record.RecordError):
        record.parse(record.canonical(IMAGE).replace(b'"whole":false', b'"whole":false,"nulls":"drop"'))


def test_an_array_is_no_number_and_names_nobody() -> None:
    with pytest.raises(PlanError, match="real or whole"):
        _ = IMAGE.interval
    with pytest.raises(ArgumentError, match="unit"):
        Table({"x": IMAGE}, unit="x")
    with pytest.raises(PlanError, match="cannot name units"):
        Rows.read(Table({"x": IMAGE}), {"x": [FLAT]}, Unit("user:x"))
    assert replace(IMAGE, shape=(4,)) == tensor((4,), -1, 1) != IMAGE


@pytest.mark.parametrize(
    ("column", "rest"),
    [(IMAGE, 0), (TOKENS, 1), (tensor((1,), -9, -3), -3), (tensor((1,), 0.1, 1), np.nextafter(np.float32(0.1), 1))],
)
def test_what_stands_for_a_missing_number(column: TensorColumn, rest: float) -> None:
    assert column.rest == pytest.approx(rest, abs=1e-7) and column.lower <= Fraction(float(column.rest)) <= column.upper  # type: ignore[operator]


@settings(max_examples=50)
@given(low=st.floats(-1e30, 1e30), width=st.floats(1e-3, 1e30))
def test_the_ends_are_the_outermost_floats_within_the_bounds(low: float, width: float) -> None:
    try:
        column = tensor((1,), low, low + width)
    except ArgumentError:
        return
    first, last = column.ends
    assert column.lower <= Fraction(float(first)) < Fraction(float(last)) <= column.upper  # type: ignore[operator]
    assert Fraction(float(np.nextafter(first, np.float32(-INF)))) < column.lower  # type: ignore[operator]
    assert Fraction(float(np.nextafter(last, np.float32(INF)))) > column.upper  # type: ignore[operator]


# ------------------------------------------------------------------------------------------------ made-up rows


@pytest.mark.parametrize("column", [IMAGE, TOKENS, tensor((5,), -(2**63), 2**63 - 1, whole=True)], ids=str)
def test_made_up_arrays_are_within_the_bounds_and_everywhere(column: TensorColumn) -> None:
    table = Table({"x": column, "who": key()}, unit="who")
    made = table.make_up(300, SeededBits(3).words, awkward=False)["x"]
    assert made.dtype == column.dtype and made.shape == (300, *column.shape)
    low, high = column.ends
    assert low <= made.min() and made.max() <= high
    share = (made.astype(np.float64) - float(low)) / (float(high) - float(low))
    assert 0.4 < share.mean() < 0.6 and share.min() < 0.1 and share.max() > 0.9


def test_awkward_arrays_are_mixed_in_and_read() -> None:
    table = Table({"x": IMAGE, "ids": TOKENS, "cost": real(0, 1), "who": key()}, unit="who")
    rows = Rows.read(table, table.make_up(400, SeededBits(4).words), Unit("user:who"))
    for name in ("x", "ids"):
        assert 0 < (~rows[name].valid).sum() < len(rows) / 2
    assert len(rows["x"].values) == len(rows.units) and rows.unit_count <= 133
    twice = [Table({"x": IMAGE}).make_up(9, SeededBits(1).words, awkward=False)["x"] for _ in "ab"]
    assert np.array_equal(*twice)
    assert len(Table({"x": IMAGE}).make_up(0, SeededBits(1).words)["x"]) == 0


# ------------------------------------------------------------------------------------------------ reading


def test_numbers_are_clamped_and_missing_ones_are_nearest_to_zero() -> None:
    values, valid = read(IMAGE, np.array([[[NAN, INF, -INF], [2, -2, 0.5]]]))
    assert values.tolist() == [[[0, 1, -1], [1, -1, 0.5]]] and valid == [True]
    values, valid = read(TOKENS, np.array([[NAN, INF, -INF], [1.5, 2.5, 99], [0, 2**40, -1]]))
    assert values.tolist() == [[1, 50, 1], [2, 2, 50], [1, 50, 1]] and valid == [True] * 3


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8", ">i4", "f2", "f4", "f8", ">f4", "g"])
@pytest.mark.parametrize("column", [IMAGE, tensor((2, 3), -3, 3, whole=True)], ids=str)
def test_every_type_of_number(column: TensorColumn, dtype: str) -> None:
    cells = np.array([[[0, 1, 1], [1, 0, 1]]] * 2).astype(dtype)
    for form in (cells, np.asfortranarray(cells), np.repeat(cells, 2, axis=2)[:, :, ::2], cells[::-1], list(cells)):
        values, valid = read(column, form)
        assert values.tolist() == cells.astype(int).tolist() and valid == [True, True]
        assert values.flags.c_contiguous


@pytest.mark.parametrize(
    "cell",
    [None, NAN, 0, "n/a", b"\xff", {}, [], [[1, 2], [3]], np.zeros((3, 2)), np.zeros((2, 3, 1)), np.zeros(5), object(),
     np.zeros((2, 3), dtype=complex), np.full((2, 3), "1"), np.zeros((2, 3), dtype="M8[s]"), np.array(1.0), [[1, 2]]],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_array_of_the_shape_is_null_and_moves_no_other(cell: Any) -> None:
    for place in range(3):
        cells: list[Any] = [FLAT, FLAT + 0.1]
        cells.insert(place, cell)
        values, valid = read(IMAGE, cells)
        assert valid == [place != number for number in range(3)]
        assert not values[place].any()
        others = np.delete(values, place, axis=0)
        assert np.array_equal(others, np.stack([FLAT, FLAT + 0.1]).astype(np.float32))
    assert read(tensor((2, 3), 3, 5), [cell])[0].tolist() == [[[3] * 3] * 2]  # a NULL is within the bounds, too


class Hostile:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    def __len__(self) -> int:
        raise SystemError("secret")


def test_a_hostile_cell_is_null() -> None:
    values, valid = read(IMAGE, [Hostile(), FLAT, [[Hostile()] * 3] * 2, [[Decimal("sNaN")] * 3] * 2])
    assert valid[:2] == [False, True] and np.array_equal(values[1], FLAT.astype(np.float32))
    assert not values[2:].any()


def test_numbers_in_lists() -> None:
    cells = [
        [[None, 1, "x"], [True, Fraction(1, 4), Decimal("0.5")]],
        [[10**400, -(10**400), NAN], [np.float16(0.5), np.int8(1), 1j]],
        tuple(FLAT.tolist()),
        FLAT.ravel().tolist(),
    ]
    values, valid = read(IMAGE, cells)
    assert values[0].tolist() == [[0, 1, 0], [1, 0.25, 0.5]] and values[1].tolist() == [[1, -1, 0], [0.5, 1, 0]]
    assert np.array_equal(values[2], FLAT.astype(np.float32)) and np.array_equal(values[3], values[2])
    assert valid == [True] * 4
    large = tensor((2,), -(2**63), 2**63 - 1, whole=True)
    assert read(large, [[2**62 + 1, 10**30], [-(2**63), 0.5]])[0].tolist() == [[2**62 + 1, 2**63 - 1], [-(2**63), 0]]


def test_a_flat_row_of_as_many_numbers_has_the_shape() -> None:
    assert np.array_equal(read(IMAGE, FLAT.reshape(1, 6))[0], read(IMAGE, FLAT[None])[0])


def test_masks_hide_numbers() -> None:
    masked = np.ma.masked_array([FLAT, FLAT], mask=[np.zeros((2, 3)), np.ones((2, 3))])
    values, valid = read(IMAGE, masked)
    assert valid == [True, True] and not values[1].any() and np.array_equal(values[0], FLAT.astype(np.float32))
    objects = np.ma.masked_array(np.fromiter([FLAT, FLAT], dtype=object), mask=[False, True])
    assert read(IMAGE, objects)[1] == [True, False]


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**70), 2**70),
    st.sampled_from([None, NAN, "x", True, Decimal("1e999"), Fraction(1, 3)]),
)
CELLS = st.one_of(
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.lists(st.floats(width=32), min_size=3, max_size=3).map(np.array),
    st.lists(st.floats(width=16), min_size=3, max_size=3).map(lambda x: np.array(x, dtype=np.float16)),
    st.sampled_from([None, "x", 3, [1, 2], np.zeros((1, 3)), np.zeros(3, bool), np.zeros(3, np.uint8), Hostile()]),
)
COLUMNS = st.sampled_from([tensor((3,), -1, 1), TOKENS, tensor((3,), 0.1, 2), tensor((3,), -(2**63), -5, whole=True)])


@given(column=COLUMNS, cells=st.lists(CELLS, max_size=5))
def test_every_cell_reads_the_same_alone_and_in_company(column: TensorColumn, cells: list[Any]) -> None:
    together, valid = read(column, cells)
    for place, cell in enumerate(cells):
        alone, readable = read(column, [cell])
        assert np.array_equal(alone[0], together[place]) and readable == [valid[place]]


@given(
    column=COLUMNS,
    dtype=st.sampled_from(["f2", "f4", "f8", "i8", "u1", "?"]),
    numbers=st.lists(st.lists(st.floats(width=16, allow_nan=True), min_size=3, max_size=3), max_size=4),
)
def test_blocks_and_cells_agree(column: TensorColumn, dtype: str, numbers: list[list[float]]) -> None:
    with np.errstate(all="ignore"):
        block = np.array(numbers, dtype=np.float64).reshape(-1, 3).astype(dtype)
    assert np.array_equal(read(column, block)[0], read(column, list(block))[0])
    assert np.array_equal(read(column, block)[0], read(column, block.tolist())[0])


def test_clean_arrays_are_not_copied() -> None:
    images, ids = np.zeros((4, 2, 3), dtype=np.float32), np.ones((4, 3), dtype=np.int64)
    rows = Rows.read(Table({"x": IMAGE, "ids": TOKENS}), {"x": images, "ids": ids}, Unit())
    assert np.shares_memory(rows["x"].values, images) and np.shares_memory(rows["ids"].values, ids)
    with pytest.raises(ValueError):
        rows["x"].values[0] = 1
    images[0] = 7  # the maker's own array stays his
    dirty = np.full((1, 2, 3), 9, dtype=np.float32)
    assert read(IMAGE, dirty)[0].max() == 1 and dirty.max() == 9


def test_rows_keep_arrays_and_units_together() -> None:
    table = Table({"who": key(), "x": IMAGE, "label": category(["a", "b"])}, unit="who")
    raw = {"who": ["u", None, "v", "u"], "x": np.stack([FLAT * k for k in range(4)]), "label": ["a", "b", "b", "c"]}
    rows = Rows.read(table, raw, Unit("user:who"))
    assert len(rows) == 3 and rows.unit_count == 2 and rows.units.tolist() == [0, 1, 0]
    assert np.array_equal(rows["x"].values, np.clip([FLAT * k for k in (0, 2, 3)], -1, 1).astype(np.float32))
    kept = rows.keep(np.array([False, True, True]))
    assert kept["x"].values.shape == (2, 2, 3) and kept.unit_count == 2
    assert repr(rows["x"]) == "<Series of float32>"


def test_the_only_errors() -> None:
    table = Table({"x": IMAGE, "y": real(0, 1)})
    with pytest.raises(DataError):
        Rows.read(table, {"x": [FLAT], "y": [1, 2]}, Unit())
    for no_column in (5, None, np.array(3.0), Hostile()):
        with pytest.raises(DataError):
            Rows.read(table, {"x": no_column, "y": [1]}, Unit())
    for strange in (np.zeros((2, 4, 4)), np.zeros(2), np.zeros((2, 6), dtype=complex), np.array(["a", "b"])):
        assert read(IMAGE, strange)[1] == [False, False]


# ------------------------------------------------------------------------------------------------ Arrow and frames


def fixed(cells: list[Any], size: int = 6, kind: Any = None) -> Any:
    return pyarrow.array(cells, type=pyarrow.list_(kind or pyarrow.float32(), size))


ROW = FLAT.ravel().tolist()
ARROWS: dict[str, tuple[Any, list[bool]]] = {
    "fixed": (fixed([ROW, None, ROW]), [True, False, True]),
    "sliced": (fixed([ROW[::-1], ROW, None, ROW])[1:], [True, False, True]),
    "chunked": (pyarrow.chunked_array([fixed([ROW, None]), fixed([]), fixed([ROW])]), [True, False, True]),
    "any size": (pyarrow.array([ROW, [1.0], ROW]), [True, False, True]),
    "any size, sliced": (pyarrow.array([[1.0] * 4, ROW, None, ROW])[1:], [True, False, True]),
    "large": (pyarrow.array([ROW, [], ROW], type=pyarrow.large_list(pyarrow.float64())), [True, False, True]),
    "nested": (
        pyarrow.array([FLAT.tolist(), None, FLAT.tolist()], type=pyarrow.list_(pyarrow.list_(pyarrow.float64(), 3), 2)),
        [True, False, True],
    ),
    "nested, any size": (pyarrow.array([FLAT.tolist(), [[1.0]], FLAT.tolist()]), [True, False, True]),
    "half": (fixed([[np.float16(x) for x in ROW], None, ROW], kind=pyarrow.float16()), [True, False, True]),
    "decimal": (
        pyarrow.array([[Decimal(str(x)) for x in ROW], None, [Decimal(str(x)) for x in ROW]]),
        [True, False, True],
    ),
    "tensors": (
        pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.stack([FLAT, FLAT, FLAT]).astype(np.float32)),
        [True, True, True],
    ),
}


@pytest.mark.parametrize("name", ARROWS)
def test_arrow_lists(name: str) -> None:
    column, expected = ARROWS[name]
    table = Table({"x": IMAGE})
    frame = pyarrow.table({"x": column})
    source(frame).check(table)
    values, valid = read(IMAGE, frame["x"])
    assert valid == expected
    for row, there in zip(values, valid, strict=True):
        assert np.allclose(row, FLAT if there else 0, atol=1e-3)


def test_a_null_number_in_a_list_changes_no_other() -> None:
    large = tensor((2,), -(2**63), 2**63 - 1, whole=True)
    cells = [[2**62 + 1, None], [3, 4], None]
    for kind in (pyarrow.list_(pyarrow.int64(), 2), pyarrow.list_(pyarrow.int64())):
        values, valid = read(large, pyarrow.array(cells, type=kind))
        assert values.tolist() == [[2**62 + 1, 0], [3, 4], [0, 0]] and valid == [True, True, False]


def test_arrow_is_not_copied_where_nothing_is_missing() -> None:
    images = np.zeros((5, 2, 3), dtype=np.float32)
    values, _ = read(IMAGE, pyarrow.FixedShapeTensorArray.from_numpy_ndarray(images))
    assert np.shares_memory(values, images)


def test_frames_of_others() -> None:
    rows = [ROW, ROW[::-1]]
    frames: list[Any] = [
        polars.DataFrame({"x": rows}, schema={"x": polars.Array(polars.Float32, 6)}),
        polars.DataFrame({"x": rows}),
        polars.DataFrame({"x": [FLAT.tolist(), FLAT.tolist()]}, schema={"x": polars.Array(polars.Float32, (2, 3))}),
        pandas.DataFrame({"x": rows}),
        pandas.DataFrame({"x": [FLAT, FLAT]}),
        pandas.DataFrame({"x": pandas.Series(rows, dtype=pandas.ArrowDtype(pyarrow.list_(pyarrow.float32(), 6)))}),
    ]
    for frame in frames:
        place = source(frame)
        place.check(Table({"x": IMAGE}))
        values, valid = read(IMAGE, frame["x"])
        assert valid == [True, True] and np.allclose(values[0], FLAT)


# ------------------------------------------------------------------------------------------------ sources


@pytest.mark.parametrize(
    "given_column",
    [np.zeros((2, 3, 2)), np.zeros(2), np.zeros((2, 7)), np.zeros((2, 6), dtype=complex), np.full((2, 6), "4711"),
     fixed([[4711.0] * 7], 7), pyarrow.array([4711.0]), pyarrow.array(["4711"]),
     pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3, 2)))],
)  # fmt: skip
def test_a_shape_that_differs_is_refused_before_anything_is_read(given_column: Any) -> None:
    with pytest.raises(PlanError, match="column 'x' of table 'data' does not fit") as refused:
        source({"x": given_column}).check(Table({"x": IMAGE}))
    assert "4711" not in str(refused.value)


def test_an_array_for_a_single_value_is_refused() -> None:
    with pytest.raises(PlanError, match="squeeze"):
        source({"y": np.zeros((3, 1))}).check(Table({"y": real(0, 1)}))


def test_parquet_keeps_arrays(tmp_path: Path) -> None:
    table = Table({"label": category([0, 1]), "x": IMAGE})
    images = np.stack([FLAT, FLAT / 2, FLAT * 99]).astype(np.float32)
    parts = {"x": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(images), "label": [0, 1, None], "more": [1, 2, 3]}
    for number in range(2):
        pyarrow.parquet.write_table(pyarrow.table(parts), tmp_path / f"{number}.parquet")
    rows = Rows.read(table, columns_of(table, source(tmp_path / "*.parquet")), Unit())
    assert len(rows) == 6 and rows["label"].valid.tolist() == [True, True, False] * 2
    assert np.array_equal(rows["x"].values, np.concatenate([np.clip(images, -1, 1)] * 2))
    with pytest.raises(PlanError, match="no column 'z'"):
        columns_of(Table({"z": IMAGE}), source(tmp_path / "0.parquet"))
    source(tmp_path / "*.parquet").check(table)
    source(tmp_path / "not there yet.parquet").check(table)
    (tmp_path / "other.pq").write_bytes(b"4711")
    for file, other in (("0.parquet", tensor((7,), 0, 1)), ("other.pq", IMAGE)):
        with pytest.raises(PlanError, match=r"does not fit|cannot be read as Parquet"):
            source(tmp_path / file).check(Table({"x": other}))
    with pytest.raises(PlanError, match="does not fit"):
        columns_of(Table({"x": tensor((7,), 0, 1)}), source(tmp_path / "0.parquet"))
    pyarrow.parquet.write_table(pyarrow.table({**parts, "x": fixed([ROW] * 3)}), tmp_path / "1.parquet")
    with pytest.raises(PlanError, match="same types"):
        columns_of(table, source(tmp_path / "*.parquet"))


def test_files_without_arrays_are_refused_at_once() -> None:
    for place in (Csv("a.csv"), DuckDBTable("a.duckdb")):
        with pytest.raises(PlanError, match="holds no tensor columns, such as 'x'"):
            place.check(Table({"x": IMAGE}))


def test_an_engine_holds_the_other_columns() -> None:
    exp = pytest.importorskip("sqlglot").exp
    table = Table({"x": IMAGE, "y": real(0, 1)}, name="data")
    raw = source({"x": [FLAT, None], "y": [0.5, 7]})
    opened = connect({"data": (table, raw)})
    try:
        assert dict(opened.tables["data"]) == {"y": "DOUBLE"}
        cells = opened.run(exp.select(exp.column("y")).from_("data"))
        assert sorted(cells.column(0).to_pylist()) == [0.5, 1.0]
        with pytest.raises(PlanError):
            opened.run(exp.select(exp.func("count", exp.column("x"))).from_("data"))
    finally:
        opened.close()
    with pytest.raises(PlanError, match="tensor columns alone"):
        connect({"data": (Table({"x": IMAGE}), source({"x": [FLAT]}))})
