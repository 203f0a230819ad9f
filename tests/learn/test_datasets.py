"""What people have as data: tensors, data sets, Arrow; read whole, each record by itself, taken slot by slot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    random_split,
)

from sfumato import Private, Unit
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.learn.datasets import FREE, encode
from sfumato.learn.features import Features, Target
from sfumato.openings import ROWS
from sfumato.rows import Rows
from sfumato.schema import Schema, Table, category, key, real, tensor
from sfumato.sources import Examples, columns_of, connect, source

SCHEMA = Schema.of(image=tensor((1, 2, 2), 0, 1), label=category([0, 1, 2]))
TABLE = SCHEMA.table()
IMAGES = torch.arange(24.0).reshape(6, 1, 2, 2) / 24
LABELS = torch.tensor([0, 1, 2, 0, 1, 7])
KNOWN = [True] * 5 + [False]


def opened(data: Any, table: Table = TABLE, unit: Unit | None = None) -> Rows:
    place = source(data)
    place.check(table)
    return Rows.read(table, columns_of(table, place), unit or Unit())


class Listed(Dataset[Any]):
    """Records of a list; an error where one is an exception."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Any:
        if isinstance(self.items[place], Exception):
            raise self.items[place]
        return self.items[place]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([4711])


class Own:
    """Not a Dataset, but of its form."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, place: int) -> Any:
        return {"label": LABELS[place], "image": IMAGES[place], "more": "4711"}


PAIRS = list(zip(IMAGES, LABELS, strict=True))
GIVEN: dict[str, Any] = {
    "tensors by name": {"image": IMAGES, "label": LABELS},
    "arrays by name": {"image": IMAGES.numpy(), "label": LABELS.numpy()},
    "flat": {"image": IMAGES.reshape(6, 4), "label": LABELS.tolist()},
    "a list of tensors": {"image": list(IMAGES), "label": LABELS.tolist()},
    "needs grad": {"image": IMAGES.clone().requires_grad_(), "label": LABELS},
    "a parameter": {"image": torch.nn.Parameter(IMAGES.clone()), "label": LABELS},
    "not contiguous": {"image": IMAGES.repeat(1, 1, 1, 2)[..., :2], "label": LABELS.repeat_interleave(2)[::2]},
    "double": {"image": IMAGES.double(), "label": LABELS.to(torch.int8)},
    "sparse": {"image": IMAGES.to_sparse(), "label": LABELS},
    "float labels": {"image": IMAGES, "label": LABELS.float()},
    "TensorDataset": TensorDataset(IMAGES, LABELS),
    "map style": Listed(PAIRS),
    "lists": Listed([[image.tolist(), int(label)] for image, label in PAIRS]),
    "by name": Listed([{"label": label, "image": image.numpy(), "more": 1} for image, label in PAIRS]),
    "labels of one": Listed([(image, label.reshape(1)) for image, label in PAIRS]),
    "of its form": Own(),
    "subset": Subset(TensorDataset(IMAGES.flip(0), LABELS.flip(0)), [5, 4, 3, 2, 1, 0]),
    "subset of a subset": Subset(Subset(TensorDataset(IMAGES, LABELS), list(range(6))), np.arange(6)),  # type: ignore[arg-type]
    "concatenated": ConcatDataset([TensorDataset(IMAGES[:2], LABELS[:2]), Listed(PAIRS[2:])]),
    "arrow": pyarrow.table({
        "image": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(IMAGES.numpy()), "label": LABELS.numpy()
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_everything_reads_the_same(name: str) -> None:
    rows = opened(GIVEN[name])
    assert rows["image"].valid.tolist() == [True] * 6 and rows["label"].valid.tolist() == KNOWN
    assert np.allclose(rows["image"].values, IMAGES.numpy()) and rows["label"].values.tolist() == [0, 1, 2, 0, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.uint8, torch.bool, torch.int32, torch.uint16])
def test_every_type_of_torch(dtype: torch.dtype) -> None:
    cells = torch.tensor([[[[0, 1], [1, 0]]]] * 6).to(dtype)
    rows = opened({"image": cells, "label": LABELS})
    assert rows["image"].values.tolist() == [[[[0, 1], [1, 0]]]] * 6
    each = opened(Listed(list(zip(cells, LABELS.to(torch.bfloat16), strict=True))))
    assert each["image"].values.tolist() == [[[[0, 1], [1, 0]]]] * 6 and each["label"].valid.tolist() == KNOWN


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch gives up quantized tensors
def test_quantized_and_conjugated_tensors() -> None:
    quantized = torch.quantize_per_tensor(IMAGES, 1 / 24, 0, torch.quint8)
    assert np.allclose(opened({"image": quantized, "label": LABELS})["image"].values, IMAGES.numpy(), atol=0.01)
    turned = torch.complex(torch.zeros(6), -LABELS.float()).conj().imag  # has its sign in a bit
    assert turned.is_neg() and opened({"image": IMAGES, "label": turned})["label"].valid.tolist() == KNOWN


def test_a_tensor_is_not_copied() -> None:
    for data in ({"image": IMAGES, "label": LABELS}, TensorDataset(IMAGES, LABELS)):
        rows = opened(data)
        assert np.shares_memory(rows["image"].values, IMAGES.numpy())
        assert Features("image").tensor(rows).data_ptr() == IMAGES.data_ptr()


BAD = [
    RuntimeError("secret 4711"), None, (), (IMAGES[0],), {"image": IMAGES[0]}, {}, 3, (IMAGES[0], 1, 2), (None, None),
    (torch.zeros(2, 2), 1), (torch.zeros(1, 2, 2, dtype=torch.complex64), 9), ("x", [1, 2]), {"image": 1, "label": "x"},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_bad_record_is_one_row_of_nulls(bad: Any, place: int) -> None:
    items: list[Any] = list(PAIRS)
    items.insert(place, bad)
    rows, clean = opened(Listed(items)), opened(Listed(PAIRS))
    assert len(rows) == 7
    others = np.delete(np.arange(7), place)
    for name in TABLE.columns:
        assert np.array_equal(rows[name].values[others], clean[name].values)
        assert np.array_equal(rows[name].valid[others], clean[name].valid)
    whole = encode(rows, TABLE, Features("image"), Target("label")).whole()
    assert whole.weights[place] == 0 and whole.weights.sum() == 5


@given(items=st.lists(st.sampled_from([*BAD, *PAIRS]), max_size=6))
def test_every_record_reads_the_same_alone_and_in_company(items: list[Any]) -> None:
    rows = opened(Listed(items))
    for place, item in enumerate(items):
        alone = opened(Listed([item]))
        for name in TABLE.columns:
            assert np.array_equal(alone[name].values[0], rows[name].values[place])
            assert alone[name].valid[0] == rows[name].valid[place]


def test_a_subset_with_a_place_that_is_not_there() -> None:
    rows = opened(Subset(TensorDataset(IMAGES, LABELS), [1, 99, 0]))
    assert rows["image"].valid.tolist() == [True, False, True] and rows["label"].values.tolist() == [1, 0, 0]


def test_a_data_set_that_somebody_changed_is_asked_for_its_records() -> None:
    class Turned(TensorDataset):
        def __getitem__(self, place: Any) -> Any:
            image, label = super().__getitem__(place)
            return 1 - image, label

    rows = opened(Turned(IMAGES, LABELS))
    assert np.allclose(rows["image"].values, 1 - IMAGES.numpy())


def test_one_column_needs_no_tuple() -> None:
    rows = opened(Listed([IMAGES[0], (IMAGES[1],), None]), Table({"image": TABLE.columns["image"]}))
    assert rows["image"].valid.tolist() == [True, True, False]


def test_an_empty_data_set() -> None:
    rows = opened(Listed([]))
    assert len(rows) == 0 and rows["image"].values.shape == (0, 1, 2, 2)
    batch = encode(rows, TABLE, Features("image"), Target("label")).take([FREE, FREE])
    assert batch.inputs.shape == (2, 1, 2, 2) and batch.weights.tolist() == [0, 0]  # type: ignore[union-attr]
    assert batch.targets is not None and batch.targets.tolist() == [0, 0]
    assert len(encode(rows, TABLE, Features("image")).whole().weights) == 0


# ------------------------------------------------------------------------------------------------ refusals

LOADED = TensorDataset(IMAGES, LABELS)


@pytest.mark.parametrize(
    "data",
    [DataLoader(LOADED, shuffle=True), iter(DataLoader(LOADED)), Stream(), RandomSampler(LOADED), DataLoader(Stream())],
    ids=lambda data: type(data).__name__,
)
def test_loaders_and_streams_are_refused_with_what_to_give(data: Any) -> None:
    with pytest.raises(ArgumentError, match=r"source .*loader\.dataset.*no Poisson sample") as refused:
        Private("digits", data, unit=Unit(), schema=SCHEMA)
    assert "4711" not in str(refused.value)


class Pair(NamedTuple):
    images: Any
    labels: Any


@pytest.mark.parametrize(
    "data",
    [IMAGES, [IMAGES], (IMAGES, LABELS), Pair(IMAGES, LABELS), range(3), iter([1]), "data.pt", torch.nn.Sequential(),
     Rows.read(TABLE, {"image": [], "label": []}, Unit())],
    ids=lambda data: type(data).__name__,
)  # fmt: skip
def test_anything_else_is_still_refused(data: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^source "):
        source(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"image": torch.zeros(6, 2, 3), "label": LABELS}, r"shape \(2, 3\), and the schema says \(1, 2, 2\)"),
        ({"image": torch.zeros(6), "label": LABELS}, "shape"),
        ({"image": torch.zeros(6, 1, 2, 2, dtype=torch.complex64), "label": LABELS}, "complex64"),
        ({"image": IMAGES, "label": LABELS[:, None]}, "squeeze"),
        (TensorDataset(IMAGES), "1 tensors for the columns 'image', 'label'"),
        (TensorDataset(LABELS, IMAGES), "does not fit"),
        (Subset(TensorDataset(LABELS, IMAGES), [0]), "does not fit"),
        ({"image": IMAGES}, "no column 'label'"),
    ],
)
def test_a_shape_that_differs_is_refused_before_anything_is_read(data: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Private("digits", data, unit=Unit(), schema=SCHEMA)


def test_columns_of_different_length_fail_without_a_word() -> None:
    with pytest.raises(DataError) as caught:
        opened({"image": IMAGES, "label": LABELS[:3]})
    assert str(caught.value) == DataError.TEXT


def test_prints_hold_no_data() -> None:
    assert repr(source(Listed([4711]))) == "<Examples of a Listed>"
    assert repr(encode(LOADED, TABLE, Features("image"))) == "<Encoded rows of table 'data'>"
    with pytest.raises(ArgumentError, match="items"):
        Examples(4711)


# ------------------------------------------------------------------------------------------------ at work


def test_private_data_opens_and_rehearses() -> None:
    private = Private("digits", LOADED, unit=Unit(), schema=SCHEMA)
    assert "digits" in repr(private)
    from sfumato.noise.bits import SeededBits

    made = private.rehearsal(40, SeededBits(1).words, ROWS)
    assert made["image"].values.shape == (40, 1, 2, 2) and 0 < made["image"].valid.sum() < 40


def test_users_have_their_records() -> None:
    table = Table({"who": key(), "image": TABLE.columns["image"], "label": category([0, 1, 2])}, unit="who")
    users = torch.tensor([7, 3, 7, 7, 3, 9])
    for data in ({"who": users, "image": IMAGES, "label": LABELS}, TensorDataset(users, IMAGES, LABELS)):
        rows = opened(data, table, Unit("user:who"))
        assert rows.unit_count == 3 and [rows.units.tolist().count(code) for code in range(3)] == [2, 3, 1]
    broken = Listed([(7, IMAGES[0], 1), RuntimeError(), (None, IMAGES[1], 1), (3, None, 2), (7, IMAGES[2], 0)])
    rows = opened(broken, table, Unit("user:who"))
    assert len(rows) == 3 and rows.unit_count == 2 and rows["image"].valid.tolist() == [True, False, True]


def test_slots_hold_their_own_record_and_free_ones_nothing() -> None:
    encoded = encode(LOADED, SCHEMA, Features("image"), Target("label"))
    batch = encoded.take([4, FREE, 5, 0])
    assert torch.equal(batch.inputs[0], IMAGES[4]) and torch.equal(batch.inputs[3], IMAGES[0])  # type: ignore[index]
    assert not batch.inputs[1].any()  # type: ignore[index]
    assert batch.weights.tolist() == [1, 0, 0, 1]  # label 7 is no class: its record counts for nothing
    assert batch.targets is not None and batch.targets.tolist() == [1, 0, 0, 0]
    batch.inputs.fill_(9)  # type: ignore[union-attr]
    assert IMAGES.max() < 1
    assert torch.equal(encoded.take(torch.tensor([4])).inputs[0], IMAGES[4])  # type: ignore[index]


@pytest.mark.parametrize(
    "features", [Features("image"), Features("image", scale=(0.1, 0.7)), Features(("age", "ward"), indicators=True)]
)
@given(data=st.data())
def test_a_slot_does_not_depend_on_its_neighbours(features: Features, data: Any) -> None:
    table = Table({"image": TABLE.columns["image"], "age": real(0, 9), "ward": category(["a", "b"])})
    raw = {"image": IMAGES, "age": [1.1, None, 3, 4.7, 5, 99], "ward": ["a", "b", "c", None, "a", "b"]}
    encoded = encode(raw, table, features)
    places = data.draw(st.lists(st.integers(-1, 5), min_size=1, max_size=6))
    slot = data.draw(st.integers(0, len(places) - 1))
    changed = [each if number == slot else data.draw(st.integers(-1, 5)) for number, each in enumerate(places)]
    first, second = encoded.take(places), encoded.take(changed)
    assert torch.equal(first.inputs[slot], second.inputs[slot])  # type: ignore[index]
    assert first.weights[slot] == second.weights[slot] == (places[slot] >= 0)


def test_models_with_several_inputs() -> None:
    table = Table({"ids": tensor((2,), 1, 9, whole=True), "age": real(0, 2), "y": category([0, 1])})
    raw = {"ids": [[1, 2], None, [3, 4]], "age": [0, 1, None], "y": [0, 1, 1]}
    batch = encode(raw, table, {"tokens": Features("ids"), "facts": Features("age")}, Target("y")).take([0, 1, 2, FREE])
    assert isinstance(batch.inputs, dict) and batch.inputs["tokens"].tolist() == [[1, 2], [1, 1], [3, 4], [1, 1]]
    assert batch.inputs["facts"].tolist() == [[-1], [0], [0], [0]] and batch.weights.tolist() == [1, 0, 1, 0]
    for wrong in ({}, {"": Features("age")}, {"a": Target("y")}, 3):
        with pytest.raises(ArgumentError):
            encode(raw, table, wrong)  # type: ignore[arg-type]


def test_public_data_needs_only_what_is_read(tmp_path: Path) -> None:
    table = Table({"who": key(), "image": TABLE.columns["image"], "label": category([0, 1, 2])}, unit="who")
    features, target = Features("image"), Target("label")
    held = encode({"image": IMAGES, "label": LABELS}, table, features, target).whole()
    pyarrow.parquet.write_table(GIVEN["arrow"], tmp_path / "test.parquet")
    filed = encode(tmp_path / "test.parquet", Schema({"data": table}), features, target).whole()
    for first, second in zip(held, filed, strict=True):
        assert torch.equal(first, second)  # type: ignore[arg-type]
    assert encode({"image": IMAGES}, table, features).whole().targets is None


def test_random_parts_are_parts() -> None:
    parts = random_split(LOADED, [4, 2], generator=torch.Generator().manual_seed(1))
    together = np.concatenate([opened(part)["image"].values for part in parts])
    assert sorted(together[:, 0, 0, 0].tolist()) == sorted(IMAGES[:, 0, 0, 0].tolist())


def test_an_engine_reads_the_other_columns_of_a_data_set() -> None:
    exp = pytest.importorskip("sqlglot").exp
    for data in (LOADED, Listed(PAIRS), {"image": IMAGES, "label": LABELS}):
        session = connect({"data": (TABLE, source(data))})
        try:
            labels = session.run(exp.select(exp.column("label")).from_("data"))
            assert sum(int(label) for label in labels.column(0).to_pylist() if label is not None) == 4
        finally:
            session.close()


@pytest.mark.slow
def test_nobody_else_needs_torch() -> None:
    code = (
        "import sys\nimport numpy as np\nfrom sfumato import Private, Unit, schema\n"
        "made = schema.Schema.of(x=schema.tensor((2,), 0, 1))\n"
        "Private('a', {'x': np.zeros((3, 2))}, unit=Unit(), schema=made)\n"
        "class Own:\n    def __len__(self): return 1\n    def __getitem__(self, place): return [0, 1]\n"
        "Private('b', Own(), unit=Unit(), schema=made)\n"
        "import sfumato.learn.features, sfumato.learn.datasets\n"
        "print('torch' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False", "False"]
