"""Reading raw rows: total, and every row speaks only for itself."""

from __future__ import annotations

import datetime
import math
import traceback
import uuid
import warnings
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.column_kinds import block_reading, cell_values
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.rows import Rows, Series
from sfumato.schema import Column, Table, category, flag, key, real, whole
from sfumato.units import Unit

timeless = settings(deadline=None)

BY_ROW = Unit()
BY_USER = Unit("user:user")
INF = math.inf


def read(column: Column, values: Any) -> Series:
    return Rows.read(Table({"x": column}), {"x": values}, BY_ROW)["x"]


def listed(column: Column, values: Any) -> list[Any]:
    series = read(column, values)
    assert series.values.dtype == (np.float64 if column.type == "real" else np.int64)
    assert series.valid.dtype == np.bool_ and not series.values[~series.valid].any()
    return [v if ok else None for v, ok in zip(series.values.tolist(), series.valid.tolist(), strict=True)]


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Hostile
        raise RuntimeError("secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __str__(self) -> str:
        raise RuntimeError("secret")

    __hash__ = None  # type: ignore[assignment]


class Frame:
    """A column as other libraries hand it over."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype=dtype)


class Arrow:
    """A column of whole numbers that becomes floats where a row is NULL."""

    def __init__(self, items: list[int | None]) -> None:
        self.items = items

    @property
    def null_count(self) -> int:
        return self.items.count(None)

    def to_pylist(self) -> list[int | None]:
        return self.items

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([math.nan if i is None else i for i in self.items])


class Polars:
    def __init__(self, items: list[int | None]) -> None:
        self.items = items

    def null_count(self) -> int:
        return self.items.count(None)

    def to_list(self) -> list[int | None]:
        return self.items

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([math.nan if i is None else i for i in self.items])


class Pandas:
    """The nullable kind: its dtype is not numpy's."""

    dtype = "Int64"

    def __init__(self, items: list[int | None]) -> None:
        self.items = items

    def isna(self) -> Any:
        raise AssertionError("not needed")

    def __iter__(self) -> Any:
        return iter(self.items)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([math.nan if i is None else i for i in self.items])


class Shade(str, Enum):  # noqa: UP042 - frames hold such enums, and their hash is not that of the text
    RED = "red"


JUNK: list[Any] = [
    None, math.nan, INF, -INF, -0.0, 5e-324, 1.5, 2.5, 0, 1, 7, -3, True, False, 2**53 + 1, 2**63, -(2**63) - 1, 2**64,
    10**400, -(10**400), 1e300, "", " ", "3", " 4.5 ", "1_000", "x", "nan", "inf", "-Infinity", "1e400", "9" * 5000,
    "12", b"12", b"\xff", b"6", bytearray(b"8"), "yes", "FALSE", "red", Shade.RED, np.str_("red"), np.bytes_(b"red"),
    1j, complex("nan"), Decimal("2.5"), Decimal("nan"), Decimal("snan"), Decimal("-inf"), Decimal("1e999999"),
    Decimal("1e-999999"), Fraction(7, 2), Fraction(10**400), Fraction(1, 10**400), datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1), datetime.timedelta(1), np.datetime64("2020-01-01"), np.datetime64("NaT"),
    np.timedelta64(5, "D"), np.timedelta64("NaT"), np.float32(1.5), np.float16(math.nan), np.longdouble(2),
    np.int8(-5), np.uint64(2**64 - 1), np.bool_(True), np.complex64(1), np.ma.masked, np.array([1, 2]), np.array(3.0),
    np.void(b"ab"), [1], (1, 2), {"a": 1}, {1}, object, uuid.UUID(int=5), Hostile(), ..., range(3), lambda: 1,
]  # fmt: skip

COLUMNS = [
    real(0, 10),
    real(0, 10, nulls=3),
    whole(-5, 8),
    whole(-(2**63), 2**63 - 1),
    category(["red", "12", ""]),
    category([7, 12, 2**70], nulls=12),
    category([True, False]),
    flag(),
    key(),
]


@pytest.mark.parametrize(
    ("given_values", "expected"),
    [
        ([1, 2, "x"], [1.0, 2.0, None]),
        ([1.5, math.nan, None, INF, -INF], [1.5, None, None, INF, -INF]),
        ([2**53 + 1, 0.5], [2.0**53, 0.5]),
        ([10**400, -(10**400), Fraction(-(10**400)), Decimal("1e400")], [INF, -INF, -INF, INF]),
        ([" 4.5 ", "1_000", "", "1e3", b"2", "nan", "inf", "9" * 5000], [4.5, None, None, 1e3, 2.0, None, INF, INF]),
        ([True, np.bool_(False), 1j, Decimal("0.1"), Fraction(1, 4)], [1.0, 0.0, None, 0.1, 0.25]),
        ([datetime.date(2020, 1, 1), np.timedelta64(3), np.datetime64(3, "ns"), np.longdouble(3)], [None] * 3 + [3.0]),
        ([Decimal("snan"), [1], np.array([1, 2]), Hostile(), np.ma.masked], [None] * 5),
        (np.array([1.5, math.nan, INF]), [1.5, None, INF]),
        (np.array([1, 2], dtype=np.uint8), [1.0, 2.0]),
        (np.array([1.5, 2], dtype=">f4"), [1.5, 2.0]),
        (np.array([True, False]), [1.0, 0.0]),
        (np.array(["1", "x", "2.5"]), [1.0, None, 2.5]),
        (np.array([b"1", b"\xff"]), [1.0, None]),
        (np.array([1 + 1j, 2]), [None, None]),
        (np.array(["2020-01-01", "NaT"], dtype="M8[ns]"), [None, None]),
        (np.array([1, 2], dtype="m8[s]"), [None, None]),
        (np.zeros(2, dtype=[("a", int)]), [None, None]),
        (np.zeros((2, 3)), [None, None]),
        (np.ma.array([1.0, 2.0], mask=[True, False]), [None, 2.0]),
        (np.ma.array([1, "2"], mask=[False, True], dtype=object), [1.0, None]),
        (Frame(np.array([1.0, 2.0])), [1.0, 2.0]),
        (Frame(np.array([1, None, "x"], dtype=object)), [1.0, None, None]),
        (range(3), [0.0, 1.0, 2.0]),
        ((x for x in (1, None)), [1.0, None]),
        ([], []),
    ],
)
def test_reals(given_values: Any, expected: list[float | None]) -> None:
    assert listed(real(0, 10), given_values) == expected


def test_minus_zero_is_zero() -> None:
    for zeros in (np.array([-0.0]), [-0.0], ["-0"], ["-0.0"], [Decimal("-0")]):
        assert math.copysign(1, read(real(0, 1), zeros).values[0]) == 1


def test_long_doubles_saturate_quietly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        huge = np.array([np.finfo(np.longdouble).max, 1])
        assert listed(real(0, 1), huge)[1] == 1.0
        assert listed(whole(0, 9), huge) == [9, 1]
        assert listed(real(0, 1), list(huge))[1] == 1.0


MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("bounds", "given_values", "expected"),
    [
        ((-5, 8), [0.5, 1.5, 2.5, -0.5, 99, -99, INF, -INF, math.nan, None], [0, 2, 2, 0, 8, -5, 8, -5, None, None]),
        ((-5, 8), np.array([0.5, 1.5, 2.5, 99, -INF, math.nan, 1e300]), [0, 2, 2, 8, -5, None, 8]),
        ((-5, 8), [2**63, 10**400, -(10**400), "9" * 5000, Decimal("1e999999999")], [8, 8, -5, 8, 8]),
        ((-5, 8), [Fraction(5, 2), Decimal("3.5"), Decimal("1e-999999999"), "2.5", b" 7 "], [2, 4, 0, 2, 7]),
        ((-5, 8), np.array([0, 2**64 - 1], dtype=np.uint64), [0, 8]),
        ((-5, 8), np.array([-128, 127], dtype=np.int8), [-5, 8]),
        ((300, 400), np.array([0, 255], dtype=np.uint8), [300, 300]),
        ((-5, 8), np.array([True, False]), [1, 0]),
        ((-5, 8), np.array([1.5, math.nan], dtype=np.float16), [2, None]),
        ((-(2**63), MOST), np.array([2.0**63, -(2.0**63), 1e300, -1e300]), [MOST, -(2**63), MOST, -(2**63)]),
        ((-(2**63), MOST), np.array([2**64 - 1, 2**63, 5], dtype=np.uint64), [MOST, MOST, 5]),
        ((-(2**63), MOST), [2**53 + 1, 0.5, "9007199254740993", 2**63], [2**53 + 1, 0, 2**53 + 1, MOST]),
        ((2**53 + 1, 2**53 + 3), np.array([2.0**53, 2.0**53 + 2, 2.0**60]), [2**53 + 1, 2**53 + 2, 2**53 + 3]),
        ((-5, 8), np.ma.array([1, 2], mask=[False, True]), [1, None]),
        ((-5, 8), np.array(["2020-01-01"], dtype="M8[D]"), [None]),
    ],
)
def test_wholes(bounds: tuple[int, int], given_values: Any, expected: list[int | None]) -> None:
    assert listed(whole(*bounds), given_values) == expected


def test_categories() -> None:
    text = category(["red", "12", ""])
    cells = [
        "red",
        Shade.RED,
        b"red",
        np.str_("red"),
        "Red",
        12,
        12.0,
        "12",
        True,
        "",
        None,
        math.nan,
        [1],
        2.5,
        10**99,
    ]
    assert listed(text, cells) == [0, 0, 0, 0, None, 1, 1, 1, None, 2, None, None, None, None, None]
    assert listed(text, np.array(["red", "blue", ""])) == [0, None, 2]
    assert listed(text, np.array([b"red", b"\xff"])) == [0, None]
    assert listed(text, np.array([12, 13])) == [1, None]
    numbers = category([7, 12, 2**70])
    cells = [7, 7.0, "7", " 12 ", Decimal(12), 2**70, 7.5, INF, Decimal("1e999999999"), "x", None, Decimal("snan")]
    assert listed(numbers, cells) == [0, 0, 0, 1, 1, 2] + [None] * 6
    assert listed(numbers, np.array([7.0, math.nan, 12.0, 1.5])) == [0, None, 1, None]
    assert listed(category([True, False]), [True, 0, "yes", None, 2]) == [0, 1, 0, None, None]


def test_flags() -> None:
    cells = [True, False, 1, 0.0, "TRUE", " no ", b"t", "maybe", 2, math.nan, None, np.bool_(True), Decimal(1)]
    assert listed(flag(), cells) == [1, 0, 1, 0, 1, 0, 1, None, None, None, None, 1, 1]
    assert listed(flag(), np.array([True, False])) == [1, 0]
    assert listed(flag(), np.array([0.0, 1.0, math.nan, 0.5])) == [0, 1, None, None]
    assert listed(flag(), np.array(["true", "x"])) == [1, None]


@pytest.mark.parametrize(
    ("given_values", "groups"),
    [
        ([5, "a", 5.0, "5", b"5", Decimal(5), None, "a", b"a", "05", math.nan], "0100002112"),
        (np.array([3, 1, 3]), "010"),
        (np.array(["b", "a", "b", ""]), "0102"),
        (np.array([b"b", b"\xff", b"b"]), "0-0"),
        (np.array(["b", "\ud800", "b"]), "0-0"),
        (["b", "\ud800", b"\xff", "b"], "0--0"),
        (np.array([0.0, -0.0, math.nan, 1.0]), "00-1"),
        (np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="M8[ns]"), "0-0"),
        (np.ma.array([1, 1, 2], mask=[False, True, False]), "0-1"),
        ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 1), uuid.UUID(int=5), np.datetime64("NaT")], "001-"),
        ([Hostile(), (1, 2), [1, 2], (1, 2), np.array([1]), "-0", 0, "0", "-7", -7], "-010-23344"),
        ([2**70, float(2**70), str(2**70)], "000"),
    ],
)
def test_keys(given_values: Any, groups: str) -> None:
    series = read(key(), given_values)
    codes = [c if ok else None for c, ok in zip(series.values.tolist(), series.valid.tolist(), strict=True)]
    if groups == "0100002112":  # the long mixed case, spelt out
        assert codes == [0, 1, 0, 0, 0, 0, None, 1, 1, 2, None]
        return
    names: dict[int | None, str] = {None: "-"}
    assert "".join(names.setdefault(c, str(len(names) - 1)) for c in codes) == groups


def test_stand_ins_replace_nulls() -> None:
    assert listed(real(0, 10, nulls=2.5), [None, 1, "x"]) == [2.5, 1.0, 2.5]
    assert listed(whole(0, 10, nulls=4), np.array([math.nan, 1])) == [4, 1]
    assert listed(category(["a", "b"], nulls="b"), ["z", "a", None]) == [1, 0, 1]
    assert listed(flag(nulls=True), np.ma.array([0, 0], mask=[True, False])) == [1, 0]


@pytest.mark.parametrize("kind", [Arrow, Polars, Pandas])
def test_one_null_does_not_round_the_others(kind: Any) -> None:
    large = 2**60 + 1
    assert listed(whole(0, 2**62), kind([large, None])) == [large, None]
    assert listed(whole(0, 2**62), kind([3, 4])) == [3, 4]
    assert len(set(listed(key(), kind([large, large + 1, None])))) == 3


@pytest.mark.parametrize("column", COLUMNS, ids=str)
def test_every_junk_cell_reads_the_same_alone_and_in_company(column: Column) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = listed(column, JUNK)
        alone = [listed(column, [cell])[0] for cell in JUNK]
    if column.type == "key":
        together, alone = ([None if c is None else 0 for c in codes] for codes in (together, alone))
    assert together == alone
    if column.type == "whole":
        low, high = column.interval
        assert all(low <= v <= high for v in together if v is not None)
    assert not any(isinstance(v, float) and math.isnan(v) for v in together)


cells = st.one_of(
    st.sampled_from(JUNK),
    st.none(),
    st.floats(),
    st.integers(),
    st.text("0123456789.-e xé\x00", max_size=4),
    st.binary(max_size=3),
    st.decimals(),
    st.fractions(),
)


def entries(column: Column, series: Series, drop: int) -> list[Any]:
    """All entries but one; keys as the partition they make."""
    pairs = list(zip(series.values.tolist(), series.valid.tolist(), strict=True))
    del pairs[drop]
    if column.type != "key":
        return pairs
    first: dict[int, int] = {}
    return [(first.setdefault(code, len(first)) if ok else 0, ok) for code, ok in pairs]


@timeless
@given(st.lists(cells, min_size=1, max_size=8), cells, st.data(), st.sampled_from(COLUMNS))
def test_changing_one_row_changes_only_that_row(
    raw: list[Any], other: Any, data: st.DataObject, column: Column
) -> None:
    place = data.draw(st.integers(0, len(raw) - 1))
    changed = [*raw[:place], other, *raw[place + 1 :]]
    before, after = read(column, raw), read(column, changed)
    assert entries(column, before, place) == entries(column, after, place)


@timeless
@given(
    st.sampled_from(["f8", "f4", "i8", "u8", "u1", "?", "U5", "S5"]),
    st.lists(st.floats(width=16) | st.integers(0, 100).map(float), max_size=8),
    st.sampled_from(COLUMNS),
)
def test_block_and_cell_reading_agree(dtype: str, numbers: list[float], column: Column) -> None:
    if dtype[0] in "iu":
        numbers = [float(int(abs(n)) % 256) if math.isfinite(n) else 255.0 for n in numbers]
    array = np.array(numbers).astype(dtype)
    block, cell = read(column, array), read(column, array.tolist())
    if column.type == "key":
        assert block.valid.tolist() == cell.valid.tolist()
        pairs = set(zip(block.values[block.valid].tolist(), cell.values[cell.valid].tolist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    else:
        assert block.values.tolist() == cell.values.tolist() and block.valid.tolist() == cell.valid.tolist()


def test_clean_arrays_are_read_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("read cell by cell")

    monkeypatch.setattr(cell_values, "number_of", refuse)
    values = np.arange(10**6) / 7
    monkeypatch.setattr(block_reading, "cell_by_cell", refuse)
    assert len(read(real(0, 1), values)) == 10**6
    assert len(read(whole(0, 9), values)) == 10**6
    assert len(read(key(), np.arange(10**6))) == 10**6


def test_categories_of_a_clean_array_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    name = block_reading.name_of
    monkeypatch.setattr(block_reading, "name_of", lambda cell: seen.append(cell) or name(cell))  # type: ignore[func-returns-value]
    assert read(category(["a", "b"]), np.array(["a", "b"] * 1000)).valid.all()
    assert seen == ["a", "b"]


LABELS: list[tuple[Any, Any]] = [
    (12, 12), (12.0, 12), ("12", 12), (b"12", 12), (Decimal("12.0"), 12), (Fraction(12), 12), (np.int8(12), 12),
    (True, 1), (np.bool_(False), 0), (-0.0, 0), ("-0", "-0"), ("012", "012"), (" 12", " 12"), ("-7", -7),
    (1.5, 1.5), (np.float32(1.5), 1.5), (Decimal("1.50"), 1.5), (Fraction(3, 2), 1.5), ("1.5", "1.5"),
    (0.1, 0.1), (Decimal("0.1"), "0.1"), (Fraction(1, 10), "0.1"), (Decimal("-12.10"), "-12.1"),
    (Fraction(1, 3), "1/3"), ("1/3", "1/3"),
    (INF, "inf"), (Decimal("-inf"), "-inf"), ("inf", "inf"), (2**70, 2**70), (1e22, 10**22),
    (10**38, 10**38), (10**39, "1" + "0" * 39), ("1" + "0" * 39, "1" + "0" * 39), (1e40, str(int(1e40))),
    (datetime.date(2020, 1, 1), "2020-01-01"), ("2020-01-01", "2020-01-01"),
    (np.datetime64("2020-01-01"), "2020-01-01"),
    ((1, 2), "(1, 2)"), (uuid.UUID(int=5), str(uuid.UUID(int=5))), (1j, "1j"), (complex(-0.0, 1), "1j"),
    ("", ""), (b"\xff", None), ("\ud800", None), (Shade.RED, "red"), (np.str_("red"), "red"),
    (10**500, f"number {hash(10**500)}"), (Decimal("1e500"), f"number {hash(10**500)}"),
    (Decimal("1e-999999"), f"number {hash(Decimal('1e-999999'))}"),
    (None, None), (math.nan, None), (np.datetime64("NaT"), None), (np.array([1]), None),
]  # fmt: skip


def labels(cells: Any) -> list[Any]:
    """The label of each cell; None where it is NULL."""
    series = read(key(), cells)
    named = iter(series.label(series.values[series.valid]))
    return [next(named) if ok else None for ok in series.valid.tolist()]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("turn", [1, -1])
def test_labels(turn: int) -> None:
    cells, expected = zip(*LABELS[::turn], strict=True)
    assert all(map(same, labels(list(cells)), expected))
    for cell, label in LABELS:
        assert same(labels([cell])[0], label)
    series = read(key(), list(cells))
    codes = series.values[series.valid]
    assert len(set(codes.tolist())) == len({label for label in expected if label is not None})


@timeless
@given(st.lists(cells, max_size=8), st.randoms())
def test_labels_are_plain_and_do_not_depend_on_company_or_order(raw: list[Any], random: Any) -> None:
    together, order = labels(raw), list(range(len(raw)))
    random.shuffle(order)
    again = labels([raw[i] for i in order])
    for place, i in enumerate(order):
        alone = labels([raw[i]])[0]
        assert same(together[i], alone) and same(again[place], alone)
        assert alone is None or type(alone) in (int, str) or (type(alone) is float and math.isfinite(alone))
    series = read(key(), raw)
    pairs = set(zip(series.values[series.valid].tolist(), (x for x in together if x is not None), strict=True))
    assert len(pairs) == len({code for code, _ in pairs}) == len({label for _, label in pairs})


@pytest.mark.parametrize(
    "array",
    [
        np.array([3, -1, 3]),
        np.array([2**64 - 1, 5], dtype=np.uint64),
        np.array([True, False]),
        np.array([0.0, -0.0, 1.5, math.nan, INF, 1e300, 7.0]),
        np.array([1.5, 2.0], dtype=np.float16),
        np.array([1, 2], dtype=np.longdouble) / 3,
        np.array(["b", "12", "", "012", "1e3"]),
        np.array([b"b", b"12", b"\xff"]),
        np.array([1j, complex(-0.0, 1), complex(math.nan, 0)]),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([5, 7], dtype="m8[s]"),
        np.array([2**62, -(2**62)], dtype="M8[Y]"),
        np.ma.array([1, 1, 2], mask=[False, True, False]),
    ],
    ids=lambda a: a.dtype.str,
)
def test_blocks_have_the_labels_of_their_cells(array: Any) -> None:
    found = labels(array)
    expected = labels([None if x is np.ma.masked else x for x in array])
    assert all(map(same, found, expected))


def test_a_time_has_one_text_whoever_holds_it() -> None:
    noon = datetime.datetime(2026, 1, 1, 12, 0, 0, 500_000)
    zoned = noon.replace(tzinfo=datetime.UTC).astimezone(datetime.timezone(datetime.timedelta(hours=3)))
    for unit in ("ms", "us", "ns"):
        assert labels(np.array([noon], dtype=f"M8[{unit}]")) == ["2026-01-01 12:00:00.5"]
    assert labels([noon, zoned, np.datetime64(noon)]) == ["2026-01-01 12:00:00.5"] * 3
    assert labels(np.array(["2026-01-01T12"], dtype="M8[h]")) == ["2026-01-01 12:00:00"]
    assert labels(np.array(["2026-01"], dtype="M8[M]")) == ["2026-01-01"]
    far = np.array([2**62, -(2**62), 0], dtype="M8[s]")
    assert labels(far) == labels(list(far)) == [None, None, "1970-01-01 00:00:00"]
    lasts = datetime.timedelta(days=-2, microseconds=10)
    assert labels([lasts, np.timedelta64(lasts), np.timedelta64(2, "D"), datetime.time(8, 0, 0, 250_000)]) == [
        "-47:59:59.99999", "-47:59:59.99999", "48:00:00", "08:00:00.25"
    ]  # fmt: skip
    assert labels(np.array([1, 2], dtype="m8[M]")) == [None, None]  # months have no length


def test_labels_stay_with_their_rows() -> None:
    rows = Rows.read(Table({"x": key()}), {"x": ["c", None, "a", "c", 5]}, BY_ROW)
    kept = rows.keep([False, True, True, True, False]).keep([False, True, True])
    assert kept["x"].label(kept["x"].values) == ["a", "c"]
    with pytest.raises(PlanError, match="key column"):
        read(real(0, 1), [1]).label(np.array([0]))


WHOLES = [0, 1, -1, 2, 3, 7, 12, 99, 100, 127, -128, 255, 256, 2**31, 2**53, 2**53 + 1]
WHOLES += [2**63 - 1, -(2**63), 2**63, 2**64 - 1]
COARSE = [
    category(range(100)),
    category(range(-3, 5)),
    category(range(7, 0, -1)),
    category([7, 12, 2**70]),
    category([2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
    category(range(2**64 - 5, 2**64 + 5)),
    category(range(-(2**63) - 2, -(2**63) + 2)),
    category(range(2**63 - 2, 2**63 + 2)),
    category([0, 10**12, -(10**12), 5]),
    category(["12", "7", "07", "x", "-1", str(2**63), str(2**63 - 1)]),
    category(["x"]),
    category([True, False]),
    category([False]),
    category(range(10), nulls=3),
    flag(),
]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i8", ">u4", "?"])
@pytest.mark.parametrize("column", COARSE, ids=str)
def test_whole_numbers_are_looked_up_as_they_are_read_one_by_one(column: Column, dtype: str) -> None:
    kind = np.dtype(dtype)
    low, high = (0, 1) if dtype == "?" else (np.iinfo(kind).min, np.iinfo(kind).max)
    array = np.array([n for n in WHOLES if low <= n <= high], dtype=kind)
    for part in (array, array[::2], array[:0], np.ma.array(array, mask=array == 1)):
        assert listed(column, part) == listed(column, [None if x is np.ma.masked else x for x in part.tolist()])


@timeless
@given(st.lists(st.integers(-20, 20), unique=True, min_size=1), st.lists(st.integers(-30, 30)), st.integers(0, 2**21))
def test_any_categories_are_looked_up(values: list[int], numbers: list[int], apart: int) -> None:
    array = np.array(numbers, dtype=np.int64) * apart
    column = category([value * max(apart, 1) for value in values])
    assert listed(column, array) == listed(column, array.tolist())


def test_whole_number_categories_are_read_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("sorted, or read cell by cell")

    monkeypatch.setattr(block_reading, "cell_by_cell", refuse)
    monkeypatch.setattr(block_reading.np, "unique", refuse)
    array = np.arange(10**6) % 10**5
    assert read(category(range(10**5)), array).values.tolist() == array.tolist()


VISITS = Table({"user": key(), "cost": real(0, 100), "ward": category(["n", "s"])}, unit="user")
OF_ROWS = replace(VISITS, unit=None)
RAW = {"user": ["u", "v", None, "u", "w"], "cost": [1, 2, 3, 4, 5], "ward": ["n", "s", "n", "x", "n"]}


def test_rows_of_nobody_are_dropped_and_units_are_dense() -> None:
    rows = Rows.read(VISITS, RAW, BY_USER)
    assert len(rows) == 4 and rows.unit_count == 3
    assert rows["cost"].values.tolist() == [1, 2, 4, 5]
    assert rows.units.dtype == np.int64 and rows.units.tolist() == [0, 1, 0, 2]
    assert list(rows) == ["user", "cost", "ward"] and "cost" in rows and "age" not in rows
    by_row = Rows.read(OF_ROWS, RAW, BY_ROW)
    assert len(by_row) == by_row.unit_count == 5 and by_row.units.tolist() == [0, 1, 2, 3, 4]


def test_a_category_can_name_the_unit() -> None:
    rows = Rows.read(OF_ROWS, RAW, Unit("user:ward"))
    assert rows.units.tolist() == [0, 1, 0, 0] and rows.unit_count == 2


def test_keep_keeps_units_together() -> None:
    rows = Rows.read(VISITS, RAW, BY_USER)
    kept = rows.keep(np.array([True, False, True, True]))
    assert kept["cost"].values.tolist() == [1, 4, 5] and kept.units.tolist() == [0, 0, 1] and kept.unit_count == 2
    assert kept["user"].values.tolist()[0] == kept["user"].values.tolist()[1]
    again = kept.keep(kept["cost"].values > 4)
    assert again.units.tolist() == [0] and again.unit_count == len(again) == 1
    assert kept.keep(np.zeros(3, dtype=bool)).unit_count == 0
    by_row = Rows.read(OF_ROWS, RAW, BY_ROW).keep([False, True, True, False, True])
    assert by_row.units.tolist() == [0, 1, 2] and by_row.unit_count == 3
    assert len(rows) == 4


@timeless
@given(st.lists(st.tuples(st.sampled_from(["a", "b", 3, None, "3"]), st.booleans(), st.booleans()), max_size=12))
def test_units_survive_any_two_masks(people: list[tuple[Any, bool, bool]]) -> None:
    table = Table({"user": key(), "place": whole(0, 99)}, unit="user")
    rows = Rows.read(table, {"user": [p[0] for p in people], "place": list(range(len(people)))}, BY_USER)
    for turn in (1, 2):
        rows = rows.keep(np.array([people[i][turn] for i in rows["place"].values], dtype=bool))
    owners = [str(people[i][0]) for i in rows["place"].values]
    pairs = set(zip(owners, rows.units.tolist(), strict=True))
    assert len(pairs) == len(set(owners)) == rows.unit_count
    assert sorted(code for _, code in pairs) == list(range(rows.unit_count))


def test_the_only_errors() -> None:
    with pytest.raises(PlanError, match="no column 'cost'"):
        Rows.read(VISITS, {"user": ["u"], "ward": ["n"]}, BY_USER)
    with pytest.raises(PlanError, match="no column 'person'"):
        Rows.read(OF_ROWS, RAW, Unit("user:person"))
    with pytest.raises(PlanError, match="'cost' cannot name units"):
        Rows.read(OF_ROWS, RAW, Unit("user:cost"))
    with pytest.raises(PlanError, match="'user' names the unit of its rows, and 'ward' is the unit"):
        Rows.read(VISITS, RAW, Unit("user:ward"))
    with pytest.raises(PlanError, match="the unit given is a row"):
        Rows.read(VISITS, RAW, BY_ROW)
    with pytest.raises(PlanError, match="need the unit's own column 'person'"):
        Rows.read(replace(VISITS, names="person"), RAW, Unit("user:person"))
    with pytest.raises(DataError) as caught:
        Rows.read(VISITS, {**RAW, "cost": [1, 2]}, BY_USER)
    assert str(caught.value) == DataError.TEXT
    for no_column in (5, None, np.array(3.0), Hostile()):
        with pytest.raises(DataError) as caught:
            Rows.read(VISITS, {**RAW, "cost": no_column}, BY_USER)
        assert "secret" not in "".join(traceback.format_exception(caught.value))
    rows = Rows.read(VISITS, RAW, BY_USER)
    with pytest.raises(DataError):
        rows.keep(np.ones(3, dtype=bool))
    with pytest.raises(ArgumentError, match="booleans"):
        rows.keep([0, 1])
    with pytest.raises(PlanError, match="no column 'age'"):
        rows["age"]


def test_prints_hold_no_data() -> None:
    rows = Rows.read(VISITS, {name: values * 777 for name, values in RAW.items()}, BY_USER)
    assert repr(rows) == str(rows) == "<Rows of table 'data': columns user, cost, ward>"
    assert repr(rows["cost"]) == "<Series of float64>"
    assert "array" not in repr(rows.series) and "777" not in repr(rows.series)


def test_nothing_can_be_written_and_the_raw_stays_apart() -> None:
    raw = {"user": np.array([1, 2]), "cost": np.array([1.0, 2.0]), "ward": np.array(["n", "s"])}
    for table, unit in ((VISITS, BY_USER), (OF_ROWS, BY_ROW)):
        rows = Rows.read(table, raw, unit)
        for array in (rows["cost"].values, rows["cost"].valid, rows.units):
            with pytest.raises(ValueError):
                array[0] = 0
        with pytest.raises(TypeError):
            rows.series["cost"] = rows["cost"]  # type: ignore[index]
    raw["cost"][0] = 50.0
    assert rows["cost"].values.tolist() == [1.0, 2.0]
    own = np.zeros(2)
    Series(own, np.ones(2, dtype=bool))
    own[0] = 1  # the maker's own array stays writable


def test_made_up_rows_read() -> None:
    table = Table(
        {"user": key(), "x": real(0, 1), "n": whole(0, 9, constant=True), "c": category(["a"]), "f": flag()},
        unit="user",
    )

    def words(count: int) -> Any:
        return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    rows = Rows.read(table, table.make_up(120, words), BY_USER)
    assert 90 < len(rows) < 120 and rows.unit_count <= 40
    pairs = set(zip(rows.units.tolist(), rows["n"].values.tolist(), rows["n"].valid.tolist(), strict=True))
    assert len(pairs) == rows.unit_count
