"""Clipped sums against plain autograd, element by element, for every layer and model of the zoo, and random shapes."""

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from sfumato.learn.clipping import Automatic, Flat, PerGroup, PerLayer  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from tests.learn import models, oracle  # noqa: E402
from tests.learn.models import CLASSES, Case, Written, labels  # noqa: E402

ALL = {**models.ZOO, **models.RECURRENT}


def made(name: str) -> Case:
    torch.manual_seed(sum(map(ord, name)))
    return ALL[name]()


def engine(case: Case, **options: Any) -> Engine:
    return Engine(case.model, case.loss, examples=(case.inputs, case.target), **options)


def agree(case: Case, close: float = 1e-5) -> None:
    """The engine's clipped sums are the oracle's, for every rule of clipping, at a norm that clips some records."""
    each = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    ours = engine(case)
    size = sum(one.double().reshape(len(one), -1).square().sum(1) for one in each).sqrt()  # type: ignore[union-attr]
    norm = max(float(size.median()), 2.0**-20)  # of a model that hardly moves, nothing is clipped
    for clipping in (Flat(norm=norm), PerLayer(norm=norm), Automatic(norm=norm), Flat(norm=1e6)):
        got = ours.sums(case.inputs, case.target, clipping=clipping)
        assert oracle.miss(got, clipping, ours.names, each) <= close, type(clipping).__name__


@pytest.mark.parametrize("name", ALL)
def test_clipped_sums_are_those_of_a_loop_over_records(name: str) -> None:
    """In double precision, where the bounds of float errors leave the weights as good as they are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using padding='same' with even kernel")
        agree(made(name).double())


FLOAT = (
    "linear rank 3", "linear, wide and long: the gradient is never formed", "conv2d padding 1, padding_mode circular",
    "conv2d groups 2", "embedding of long records", "group norm", "attention, self", "a language model with tied words",
    "functional.linear on another module's weight", "parameters of its own", "adapters only", "LSTM plain",
)  # fmt: skip


@pytest.mark.parametrize("name", FLOAT)
def test_in_single_precision_the_weights_lose_little(name: str) -> None:
    """What is set aside for float errors makes a record count for less, but by less than one part in 500."""
    agree(made(name), close=2e-3)


MAPPED = (
    "linear rank 4", "conv1d plain", "conv2d dilation 2, padding 2", "conv3d groups 2", "layer norm", "group norm",
    "instance norm 2d", "rms norm", "embedding", "a language model with tied words", "transformer encoder layer",
    "a layer used twice", "bilinear", "adapters only", "position ids [1, T]", "parameters of its own",
)  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_clipped_sums_are_those_of_vmap(name: str) -> None:
    case = made(name).double()
    each = oracle.mapped(case.model, case.loss, case.inputs, case.target)
    ours, clipping = engine(case), Flat(norm=0.5)
    got = ours.sums(case.inputs, case.target, clipping=clipping)
    assert oracle.miss(got, clipping, ours.names, each) <= 1e-5


def test_the_two_oracles_agree() -> None:
    for name in ("conv2d plain", "transformer encoder layer", "adapters only"):
        case = made(name).double()
        pairs = zip(
            oracle.gradients(case.model, case.loss, case.inputs, case.target),
            oracle.mapped(case.model, case.loss, case.inputs, case.target),
            strict=True,
        )
        for one, two in pairs:
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


# random shapes

sizes = st.integers(1, 6)
shapes = settings(deadline=None, max_examples=25)


@shapes
@given(records=st.integers(1, 5), places=st.lists(sizes, max_size=3), wide=sizes, high=sizes, bias=st.booleans())
def test_linear_of_any_shape(records: int, places: list[int], wide: int, high: int, bias: bool) -> None:
    def forward(parts: Any, x: Any) -> Any:
        z = torch.tanh(parts[0](x))
        return parts[1](z.flatten(1, -2).sum(1) if z.dim() > 2 else z)

    model = Written(forward, nn.Linear(wide, high, bias=bias), nn.Linear(high, CLASSES))
    agree(Case(model, (torch.randn(records, *places, wide),), labels(records)).double())


@shapes
@given(data=st.data())
def test_convolutions_of_any_shape(data: Any) -> None:
    dims, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    per = st.tuples(*[st.integers(1, 3)] * dims)
    kernel, stride, dilation = data.draw(per), data.draw(per), data.draw(per)
    padding = data.draw(st.tuples(*[st.integers(0, 2)] * dims))
    room = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [each + data.draw(st.integers(0, 3)) for each in room]
    kind: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    modes = ["zeros", "replicate"] + ["circular"] * all(p <= s for p, s in zip(padding, size, strict=True))
    layer = kind(
        groups * data.draw(st.integers(1, 2)), groups * data.draw(st.integers(1, 3)), kernel, stride=stride,
        padding=padding, dilation=dilation, groups=groups, bias=data.draw(st.booleans()),
        padding_mode=data.draw(st.sampled_from(modes)),
    )  # fmt: skip
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)).flatten(2).sum(2))  # noqa: E731
    model = Written(forward, layer, nn.Linear(layer.out_channels, CLASSES))
    records = data.draw(st.integers(1, 4))
    agree(Case(model, (torch.randn(records, layer.in_channels, *size),), labels(records)).double())


@shapes
@given(
    records=st.integers(1, 5), places=st.integers(1, 12), rows=sizes, wide=sizes, pad=st.booleans(), tied=st.booleans()
)
def test_tables_of_any_shape(records: int, places: int, rows: int, wide: int, pad: bool, tied: bool) -> None:
    def forward(parts: Any, x: Any) -> Any:
        z = torch.tanh(parts[0](x)).cumsum(1)
        return parts[1]((z @ parts[0].weight.t() if tied else z).sum(1))

    table = nn.Embedding(rows, wide, padding_idx=rows - 1 if pad else None)
    model = Written(forward, table, nn.Linear(rows if tied else wide, CLASSES))
    agree(Case(model, (torch.randint(0, rows, (records, places)),), labels(records)).double())


@shapes
@given(
    records=st.integers(1, 4),
    wide=st.integers(2, 4),
    groups=sizes,
    size=st.lists(sizes, max_size=2),
    kind=st.integers(0, 3),
)
def test_norms_of_any_shape(records: int, wide: int, groups: int, size: list[int], kind: int) -> None:
    channels = wide * groups
    layer: Any = (
        nn.GroupNorm(groups, channels), nn.LayerNorm((channels, *size)), nn.LayerNorm(([channels, *size])[-1:]),
        nn.RMSNorm(([channels, *size])[-1:]),
    )[kind]  # fmt: skip
    x = torch.randn(records, channels, *size)
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)).flatten(1))  # noqa: E731
    model = models.spread(Written(forward, layer, nn.Linear(x[0].numel(), CLASSES)))
    agree(Case(model, (x,), labels(records)).double(), close=1e-4)


@shapes
@given(before=sizes, records=st.integers(2, 4), after=sizes)
def test_records_anywhere_along_a_dimension(before: int, records: int, after: int) -> None:
    """Records that take turns, in blocks: (before, records, after) flattened into one dimension of rows."""

    def forward(parts: Any, x: Any) -> Any:
        rows = x.transpose(0, 1).reshape(-1, 6)
        z = torch.tanh(parts[0](rows)).reshape(x.shape[1], len(x), x.shape[2], 4)
        return parts[1](z.sum((0, 2)))

    model = Written(forward, nn.Linear(6, 4), nn.Linear(4, CLASSES))
    agree(Case(model, (torch.randn(records, before, after, 6),), labels(records)).double())


def test_groups_by_patterns_of_names() -> None:
    case = made("transformer encoder layer").double()
    each = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    ours = engine(case)
    clipping = PerGroup(norm=0.3, weights={"*.self_attn.*": 2, "*norm*": 1, "*": 4})
    got = ours.sums(case.inputs, case.target, clipping=clipping)
    assert oracle.miss(got, clipping, ours.names, each) <= 1e-5
