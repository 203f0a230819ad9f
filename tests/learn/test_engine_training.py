"""The engine in use: without noise and without clipping it is plain training; micro-batches, empty batches,
placeholders, users, frozen parts and mixed precision do not change what a record contributes."""

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from sfumato.errors import ArgumentError, PlanError  # noqa: E402
from sfumato.learn.clipping import Automatic, Flat, PerGroup, PerLayer  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from tests.learn import models, oracle  # noqa: E402
from tests.learn.models import Case, Written, cross_entropy, labels  # noqa: E402

HUGE = Flat(norm=1e6)  # clips nothing


def engine(case: Case, **options: Any) -> Engine:
    return Engine(case.model, case.loss, examples=(case.inputs, case.target), **options)


def made(name: str) -> Case:
    torch.manual_seed(3)
    return {**models.ZOO, **models.RECURRENT}[name]()


@pytest.mark.parametrize("optimiser", [("SGD", {"lr": 0.3, "momentum": 0.9}), ("Adam", {"lr": 0.01})])
@pytest.mark.parametrize(
    "name",
    ["linear rank 2", "conv2d stride 2, padding 1", "transformer encoder layer", "a language model with tied words",
     "embedding with a padding row", "adapters only", "parameters of its own", "GRU plain"],
)  # fmt: skip
def test_without_noise_and_clipping_it_is_plain_training(name: str, optimiser: tuple[str, dict[str, Any]]) -> None:
    case = made(name).double()
    plain = copy.deepcopy(case.model)
    kind, settings = optimiser
    one = getattr(torch.optim, kind)(case.model.parameters(), **settings)
    two = getattr(torch.optim, kind)(plain.parameters(), **settings)
    ours = engine(case)
    for _ in range(5):
        sums = ours.sums(case.inputs, case.target, clipping=HUGE)
        for parameter, total in zip(ours.parameters, sums, strict=True):
            parameter.grad = total / len(case.target)
        one.step()
        two.zero_grad()
        oracle.losses(plain, case.loss, case.inputs, case.target).mean().backward()
        two.step()
    assert case.model.state_dict().keys() == plain.state_dict().keys()
    for name_, each in plain.state_dict().items():
        torch.testing.assert_close(case.model.state_dict()[name_], each, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["linear rank 3", "conv2d plain", "position ids [1, T]", "attention, cross", "LSTM plain"]
)
@pytest.mark.parametrize("clipping", [Flat(norm=0.1), PerLayer(norm=0.1), Automatic(norm=0.1)])
def test_the_size_of_micro_batches_does_not_matter(name: str, clipping: Any) -> None:
    case = made(name).double()
    ours = engine(case)
    whole = ours.sums(case.inputs, case.target, clipping=clipping)
    each = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    for size in (1, 2, 3, 4):
        parts: Any = [torch.zeros_like(each) for each in whole]
        for start in range(0, models.RECORDS, size):
            some = slice(start, start + size)
            got = ours.sums(tuple(each[some] for each in case.inputs), case.target[some], clipping=clipping)
            parts = [one + two for one, two in zip(parts, got, strict=True)]
        assert oracle.miss(parts, clipping, ours.names, each) <= 1e-5


@pytest.mark.parametrize("name", ["linear rank 3", "conv2d plain", "embedding", "GRU plain", "parameters of its own"])
def test_an_empty_batch_sums_to_0_in_the_same_shapes(name: str) -> None:
    case = made(name)
    ours = engine(case)
    sums = ours.sums(tuple(each[:0] for each in case.inputs), case.target[:0], clipping=Flat(norm=1))
    assert [tuple(each.shape) for each in sums] == [tuple(each.shape) for each in ours.parameters]
    assert not any(bool(each.any()) for each in sums)


@pytest.mark.parametrize(
    "name", ["linear rank 3", "conv2d plain", "embedding", "group norm", "transformer encoder layer"]
)
def test_placeholders_leave_nothing(name: str) -> None:
    """A slot of weight 0 adds nothing, whatever it holds: to the last bit."""
    case = made(name)
    ours, clipping = engine(case), Flat(norm=0.1)
    weights = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    first = ours.sums(case.inputs, case.target, weights, clipping=clipping)
    held = tuple(each.clone() for each in case.inputs)
    for each in held:
        each[1], each[3] = each[0].clone(), torch.zeros_like(each[0])
    second = ours.sums(held, case.target, weights, clipping=clipping)
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))
    nobody = ours.sums(case.inputs, case.target, torch.zeros(5), clipping=clipping)
    assert not any(bool(each.any()) for each in nobody)


@pytest.mark.parametrize(
    "name", ["linear rank 2", "conv2d plain", "embedding", "layer norm", "transformer encoder layer"]
)
def test_one_record_alone(name: str) -> None:
    case = made(name).double()
    one = Case(case.model, tuple(each[:1] for each in case.inputs), case.target[:1], case.loss)
    ours = engine(one)
    each = oracle.gradients(one.model, one.loss, one.inputs, one.target)
    clipping = Flat(norm=0.1)
    assert oracle.miss(ours.sums(one.inputs, one.target, clipping=clipping), clipping, ours.names, each) <= 1e-5


def test_users_of_several_rows_are_clipped_as_one() -> None:
    case = models.of_rank(3, records=6).double()
    ours = engine(case, rows_per_unit=3)
    rows = torch.tensor([1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2, 0.0])  # the second user has two rows
    done = ours.backward(case.inputs, case.target, rows)
    sums, norms = ours.summed(done, torch.ones(2), clipping=Flat(norm=0.05), norm=None, eta=1 / 64)
    single = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    users = [
        (one * rows.double().reshape(-1, *[1] * (one.dim() - 1))).reshape(2, 3, *one.shape[1:]).sum(1) for one in single
    ]
    assert oracle.miss(sums, Flat(norm=0.05), ours.names, users) <= 1e-5
    sizes = sum(each.reshape(2, -1).square().sum(1) for each in users)
    torch.testing.assert_close(norms.double(), torch.as_tensor(sizes).sqrt(), rtol=1e-5, atol=1e-9)


def test_frozen_and_unused_parameters() -> None:
    model = Written(
        lambda parts, x: parts[1](torch.tanh(parts[0](x))), nn.Linear(6, 4), nn.Linear(4, 3), nn.Linear(2, 2)
    )
    model.parts[0].weight.requires_grad_(False)  # type: ignore[union-attr]
    case = Case(model, (torch.randn(5, 6),), labels())
    ours = engine(case)
    assert ours.names == ("parts.0.bias", "parts.1.weight", "parts.1.bias", "parts.2.weight", "parts.2.bias")
    sums = ours.sums(case.inputs, case.target, clipping=HUGE)
    assert not sums[3].any() and not sums[4].any() and sums[3].shape == (2, 2)
    assert all(each.grad is None for each in model.parameters()), "nothing is written to the model"
    with pytest.raises(PlanError, match="no trainable parameter"):
        engine(Case(model.requires_grad_(False), case.inputs, case.target))


def test_the_model_is_left_as_it_was() -> None:
    case = made("LSTM plain")
    before = {name: each.clone() for name, each in case.model.state_dict().items()}
    engine(case).sums(case.inputs, case.target, clipping=HUGE)
    after = case.model.state_dict()
    assert list(before) == list(after) and all(torch.equal(before[name], after[name]) for name in before)
    assert "forward" not in vars(case.model.parts[0]), "a replaced forward is put back"


@pytest.mark.parametrize(
    "name", ["linear rank 3", "conv2d plain", "transformer encoder layer", "embedding", "layer norm"]
)
def test_mixed_precision(name: str) -> None:
    """bf16 autocast: close to plain autocast training, and one record still counts for the clip norm at most."""
    case = made(name)
    ours = engine(case, cast=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        each = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    clipping = Flat(norm=0.1)
    wanted = oracle.clipped(clipping, ours.names, each)
    got = ours.sums(case.inputs, case.target, clipping=clipping)
    assert all(one.dtype in (torch.float32, torch.float64) for one in got)
    assert oracle.distance(got, wanted) < 0.05 * oracle.length(wanted)
    for record in range(models.RECORDS):
        weights = torch.zeros(models.RECORDS)
        weights[record] = 1
        alone = ours.sums(case.inputs, case.target, weights, clipping=clipping)
        assert oracle.length(alone) <= 0.1 * (1 + 1e-6)


def test_dropout_draws_one_mask_for_each_record() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()
    x, y = torch.randn(5, 6).double(), labels()
    ours = Engine(model, cross_entropy, examples=((x,), y))
    ours.survey(5)  # made before: it runs the model, too
    torch.manual_seed(1)
    got = ours.sums((x,), y, clipping=HUGE)
    torch.manual_seed(1)
    wanted = torch.autograd.grad(cross_entropy(model(x), y).sum(), list(model.parameters()))
    for one, two in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-9)


def test_a_model_whose_steps_depend_on_the_data_is_refused_without_a_value() -> None:
    def forward(parts: Any, x: Any) -> Any:
        return parts[0](x).tanh() if bool(x.detach().sum() > 4000) else parts[0](x)

    x = torch.randn(5, 6)
    ours = Engine(Written(forward, nn.Linear(6, 3)), cross_entropy, examples=((x,), labels()))
    with pytest.raises(PlanError, match="depend on the data") as caught:
        ours.sums((torch.full((5, 6), 4711.0),), labels(), clipping=HUGE)
    assert "4711" not in str(caught.value)


def test_tensors_that_are_no_parameters_are_refused() -> None:
    stray = torch.randn(6, requires_grad=True)
    model = Written(lambda parts, x: parts[0](x * stray), nn.Linear(6, 3))
    with pytest.raises(PlanError, match="no parameter of the model"):
        Engine(model, cross_entropy, examples=((torch.randn(5, 6),), labels())).survey(5)


def test_strange_clipping_is_refused_or_safe() -> None:
    """A rule whose weights do not fit into a float must not make the sum nan."""
    case = made("linear rank 2")
    ours = engine(case)
    for options in (
        {"norm": 1e30},
        {"norm": 1e-30},
        {"norm": 1, "stability": 1e-30},
        {"norm": 1e30, "stability": 1e-30},
    ):
        with pytest.raises(ArgumentError, match="is not allowed"):
            Automatic(**options)
    for clipping in (Automatic(norm=1e9, stability=1e-9), Automatic(norm=1e-9, stability=1e-9), Flat(norm=1e-9)):
        for weights in (torch.zeros(5), torch.ones(5)):
            sums = ours.sums(case.inputs, case.target, weights, clipping=clipping)
            assert all(bool(each.isfinite().all()) for each in sums)
            assert oracle.length(sums) <= 5 * float(clipping.norm) * (1 + 1e-6)


def test_a_pattern_that_fits_no_parameter_does_no_harm() -> None:
    case = models.of_rank(2, bias=False).double()
    ours = engine(case)
    clipping = PerGroup(norm=0.1, weights={"*weight": 3, "*bias": 4})
    each = oracle.gradients(case.model, case.loss, case.inputs, case.target)
    assert oracle.miss(ours.sums(case.inputs, case.target, clipping=clipping), clipping, ours.names, each) <= 1e-5
