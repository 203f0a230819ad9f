"""Rows become tensors by public fields alone, each row by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Unit, record
from sfumato.errors import ArgumentError, PlanError
from sfumato.learn.datasets import columns_read
from sfumato.learn.features import Features, Target
from sfumato.noise.bits import SeededBits
from sfumato.rows import Rows
from sfumato.schema import Table, category, date, flag, key, moment, real, tensor, whole

NAN, INF = float("nan"), float("inf")
COLUMNS = {
    "age": real(0, 100),
    "kids": whole(0, 4, nulls=0),
    "ward": category(["north", "south", "west"]),
    "smokes": flag(),
    "seen": date("2020-01-01", "2020-01-05"),
    "at": moment("2020-01-01", "2020-01-02"),
    "who": key(),
    "image": tensor((2, 2), 0, 1),
    "ids": tensor((3,), 5, 9, whole=True),
}
TABLE = Table(COLUMNS)
RAW: dict[str, list[Any]] = {
    "age": [0, 50, 100, None, INF],
    "kids": [0, None, 4, 99, 2],
    "ward": ["north", "west", None, "east", "south"],
    "smokes": [True, False, None, "yes", 0],
    "seen": ["2020-01-01", "2020-01-03", "2020-01-05", None, "1999-01-01"],
    "at": ["2020-01-01", "2020-01-01T12:00:00", None, "2020-01-02", "2021-01-01"],
    "who": ["a", "b", "c", "d", "e"],
    "image": [np.ones((2, 2)), np.full((2, 2), 0.25), None, np.full((2, 2), NAN), np.full((2, 2), 9)],
    "ids": [[5, 6, 7], [8, 9, 10], None, [1, 2, 3], [7.0, 7.5, 8.5]],
}
ROWS = Rows.read(TABLE, RAW, Unit())


def only(name: str, **more: Any) -> list[Any]:
    return Features((name,), **more).tensor(ROWS).tolist()


def test_numbers_are_scaled_by_their_bounds() -> None:
    assert only("age") == [[-1], [0], [1], [0], [1]]
    assert only("kids") == [[-1], [-1], [1], [1], [0]]
    assert only("seen") == [[-1], [0], [1], [0], [-1]]
    assert only("at") == [[-1], [0], [0], [1], [1]]


def test_categories_are_one_hot_and_flags_are_signs() -> None:
    assert only("ward") == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert only("smokes") == [[1], [-1], [0], [1], [-1]]


def test_nulls_have_an_indicator_where_they_may_come() -> None:
    assert only("age", indicators=True) == [[-1, 0], [0, 0], [1, 0], [0, 1], [1, 0]]
    assert only("smokes", indicators=True)[2] == [0, 1]
    features = Features(("age", "kids", "ward"), indicators=True)  # NULLs of kids are read as 0
    assert features.names(TABLE) == ("age", "age is NULL", "kids", "ward=north", "ward=south", "ward=west")
    assert features.width(TABLE) == 6 and features.shape(TABLE) == (6,)
    assert features.tensor(ROWS).shape == (5, 6) and features.tensor(ROWS).dtype == torch.float32


def test_arrays_pass_and_are_not_copied() -> None:
    image = Features("image")
    assert image.shape(TABLE) == (2, 2) and image.width(TABLE) == 4
    assert image.tensor(ROWS)[:, 0, 0].tolist() == [1, 0.25, 0, 0, 1]
    assert image.readable(ROWS).tolist() == [True, True, False, True, True]
    ids = Features("ids").tensor(ROWS)
    assert ids.dtype == torch.int64 and ids.tolist() == [[5, 6, 7], [8, 9, 9], [5] * 3, [5] * 3, [7, 8, 8]]
    cells = np.zeros((3, 2, 2), dtype=np.float32)
    shared = image.tensor(Rows.read(Table({"image": COLUMNS["image"]}), {"image": cells}, Unit()))
    assert shared.data_ptr() == cells.ctypes.data
    taken = image.tensor(ROWS, np.array([1, 1]))
    taken[:] = 7  # a copy
    assert ROWS["image"].values.max() == 1
    assert image.tensor(Rows.read(TABLE, {name: [] for name in RAW}, Unit())).shape == (0, 2, 2)


def test_arrays_are_scaled_by_public_numbers() -> None:
    half = Features("image", scale=(0.5, 0.25)).tensor(ROWS)
    assert half[:, 1, 1].tolist() == [2, -1, -2, -2, 2]
    channels = Features("image", scale=((0, 1), (1, 0.5))).tensor(ROWS)
    assert channels[0].tolist() == [[1, 1], [0, 0]] and channels[1].tolist() == [[0.25, 0.25], [-1.5, -1.5]]
    assert Features("ids", scale=(5, 2)).tensor(ROWS)[0].tolist() == [0, 0.5, 1]
    assert Features("image", scale=(0.5, 0.25)).placeholder(TABLE).tolist() == [[-2, -2], [-2, -2]]


def test_targets() -> None:
    def told(name: str, **more: Any) -> tuple[Any, list[Any]]:
        found = Target(name, **more).tensor(ROWS)
        return found.dtype, found.tolist()

    assert told("ward") == (torch.int64, [0, 2, 0, 0, 1])
    assert Target("ward").readable(ROWS).tolist() == [True, True, False, False, True]
    assert told("smokes") == (torch.int64, [1, 0, 0, 1, 0])
    assert told("smokes", type="number") == (torch.float32, [1, 0, 0, 1, 0])
    assert told("smokes", type="number", scaled=True) == (torch.float32, [1, -1, 0, 1, -1])
    assert told("age") == (torch.float32, [0, 50, 100, 0, 100])
    assert told("age", scaled=True) == (torch.float32, [-1, 0, 1, 0, 1])
    assert told("kids", type="class") == (torch.int64, [0, 0, 4, 4, 2])
    assert told("seen", scaled=True)[1] == [-1, 0, 1, 0, -1]
    assert told("ids")[0] == torch.int64
    assert [Target(name).classes(TABLE) for name in ("ward", "smokes")] == [3, 2]
    assert Target("kids", type="class").classes(TABLE) == 5


def test_classes_of_whole_numbers_begin_at_the_lower_bound() -> None:
    table = Table({"y": whole(-2, 2)})
    rows = Rows.read(table, {"y": [-2, 0, None, 9]}, Unit())
    assert Target("y", type="class").tensor(rows).tolist() == [0, 2, 0, 4]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Features(()), "columns"),
        (lambda: Features(("a", "a")), "columns"),
        (lambda: Features(3), "columns"),  # type: ignore[arg-type]
        (lambda: Features((1,)), "columns"),  # type: ignore[arg-type]
        (lambda: Features("a", indicators=1), "indicators"),  # type: ignore[arg-type]
        (lambda: Features("a", scale=(1,)), "scale"),  # type: ignore[arg-type]
        (lambda: Features("a", scale=(0, 0)), "scale"),
        (lambda: Features("a", scale=(0, -1)), "scale"),
        (lambda: Features("a", scale=(NAN, 1)), "scale"),
        (lambda: Features("a", scale=(0, 1e-50)), "scale"),
        (lambda: Features("a", scale=((), 1)), "scale"),
        (lambda: Target(""), "column"),
        (lambda: Target("a", type="other"), "type"),  # type: ignore[arg-type]
        (lambda: Target("a", scaled=None), "scaled"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_refused_by_name(make: Any, named: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{named} "):
        make()


@pytest.mark.parametrize(
    ("given_fields", "words"),
    [
        (Features("nothing"), "no column 'nothing'"),
        (Features("who"), "a key"),
        (Features(("image", "age")), "stands alone"),
        (Features("age", scale=(0, 1)), "for a tensor column"),
        (Features("image", indicators=True), "single values"),
        (Features("image", scale=((0, 0, 0), 1)), "one for each channel"),
        (Target("who"), "a key"),
        (Target("ward", type="number"), "cannot be a number"),
        (Target("age", type="class"), "cannot be a class"),
        (Target("ward", scaled=True), "leave scaled out"),
        (Target("seen"), "scaled=True"),
        (Target("ids", type="class"), "as it is"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(given_fields: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        given_fields.check(TABLE)


def test_what_a_plan_needs() -> None:
    assert columns_read(TABLE, Features(("age", "ward")), Target("smokes")) == {
        name: COLUMNS[name] for name in ("age", "ward", "smokes")
    }
    assert list(columns_read(TABLE, {"a": Features("ids"), "b": Features("image")}, Target("ids"))) == ["ids", "image"]
    with pytest.raises(PlanError, match="is the target"):
        columns_read(TABLE, Features(("age", "ward")), Target("age"))
    with pytest.raises(PlanError, match="has no classes"):
        Target("age").classes(TABLE)


@pytest.mark.parametrize(
    "stored",
    [
        Features(("age", "ward"), indicators=True),
        Features("image", scale=((0.1, 0.2), 0.3)),
        Target("kids", type="class"),
    ],
)
def test_fields_survive_json(stored: Any) -> None:
    text = record.canonical(stored)
    assert record.parse(text) == stored and record.canonical(record.parse(text)) == text


def test_made_up_records() -> None:
    vectors = Features(("age", "ward", "smokes", "seen"), indicators=True).made_up(TABLE, 50, SeededBits(1).words)
    assert vectors.shape == (50, 9) and vectors.abs().max() <= 1
    assert vectors[:, 2:5].sum(1).tolist() == [1] * 50  # clean: every category is known
    images = Features("image").made_up(TABLE, 9, SeededBits(1).words)
    assert images.shape == (9, 2, 2) and images.min() >= 0 and images.max() <= 1
    classes = Target("ward").made_up(TABLE, 50, SeededBits(1).words)
    assert set(classes.tolist()) == {0, 1, 2}


ODD = st.sampled_from([None, NAN, INF, -INF, 0, -1, 3.5, "x", "north", b"\xff", True, 10**400, 1j, [1], "2020-01-02"])
READ = Features(("age", "kids", "ward", "smokes", "seen", "at"), indicators=True)


@given(rows=st.lists(st.tuples(*[ODD] * 6), min_size=1, max_size=5))
def test_every_row_is_encoded_by_itself_and_within_one(rows: list[tuple[Any, ...]]) -> None:
    table = Table({name: COLUMNS[name] for name in READ.columns})

    def encoded(part: list[tuple[Any, ...]]) -> torch.Tensor:
        raw = dict(zip(READ.columns, (list(cells) for cells in zip(*part, strict=True)), strict=True))
        return READ.tensor(Rows.read(table, raw, Unit()))

    together = encoded(rows)
    assert together.isfinite().all() and together.abs().max() <= 1
    for place, row in enumerate(rows):
        assert torch.equal(encoded([row])[0], together[place])


def test_large_bounds_stay_within_one() -> None:
    table = Table({"n": whole(-(2**63), 2**63 - 1), "x": real(-1e100, 1e100), "tiny": real(0, 1e-100)})
    raw = {"n": [-(2**63), 2**63 - 1, 0], "x": [-INF, INF, 0], "tiny": [0, 1, 5e-101]}
    found = Features(("n", "x", "tiny")).tensor(Rows.read(table, raw, Unit()))
    assert found[:2].tolist() == [[-1, -1, -1], [1, 1, 1]] and found[2].abs().max() < 1e-10
