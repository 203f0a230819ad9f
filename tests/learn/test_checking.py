"""The validator: every form of what mixes records is refused, by name and with what to do; honest models pass."""

import random
import warnings
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sfumato.errors import ArgumentError, PlanError  # noqa: E402
from sfumato.learn.checking import Findings, check, explain, look, per_record  # noqa: E402
from sfumato.learn.clipping import Automatic, Flat, PerGroup, PerLayer  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from tests.learn import models  # noqa: E402
from tests.learn.models import Case, Written, cross_entropy, labels  # noqa: E402

ONE = Flat(norm=1)


def engine(model: Any, *inputs: Any, target: Any = None, loss: Any = cross_entropy, **options: Any) -> Engine:
    return Engine(model, loss, examples=(inputs, labels(len(inputs[0])) if target is None else target), **options)


def told(model: Any, *inputs: Any, **options: Any) -> str:
    """The refusal's text; and that it comes as an error from check."""
    made = engine(model, *inputs, **options)
    found = look(made, clipping=ONE)
    assert found.refused, "was not refused"
    with pytest.raises(PlanError, match="cannot be trained privately"):
        check(made, clipping=ONE)
    return explain(Findings(found.refused))


def image_model(norm: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.Sequential(norm, nn.ReLU()), nn.Flatten(), nn.Linear(64, 3))


def images() -> Any:
    return torch.randn(4, 2, 6, 6)


# BatchNorm, in every form


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}])
def test_batch_norm_is_refused_in_every_form(options: dict[str, Any], frozen: bool, training: bool) -> None:
    norm = nn.BatchNorm2d(4, **options).requires_grad_(not frozen)
    model = image_model(norm)
    norm.train(training)
    text = told(model, images())
    assert "1.0: BatchNorm2d is not allowed" in text and "learn.fix(model) replaces it by GroupNorm" in text
    assert ("public_statistics=True" in text) == (not training)


def test_other_batch_norms_and_inside_of_anything() -> None:
    assert "1.0: SyncBatchNorm" in told(image_model(nn.SyncBatchNorm(4)), images())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = nn.LazyBatchNorm2d()
    assert "1.0: LazyBatchNorm2d is not allowed" in told(image_model(lazy), images())

    class Ours(nn.BatchNorm2d):
        pass

    assert "1.0: Ours is not allowed" in told(image_model(Ours(4)), images())
    deep = nn.ModuleDict({"a": nn.ModuleList([nn.Sequential(nn.BatchNorm1d(3))])})
    model = Written(lambda parts, x: parts[0](x), nn.Linear(6, 3))
    model.deep = deep  # never even used
    assert "deep.a.0.0: BatchNorm1d" in told(model, torch.randn(4, 6))


def test_batch_norm_as_a_function_is_found_by_trying() -> None:
    before = Written(lambda parts, x: parts[0](functional.batch_norm(x, None, None, training=True)), nn.Linear(6, 3))
    assert "moves with another record" in told(before, torch.randn(4, 6)), "no trainable parameter lies before it"
    after = Written(lambda parts, x: functional.batch_norm(parts[0](x), None, None, training=True), nn.Linear(6, 3))
    assert "record" in told(after, torch.randn(4, 6))


def test_instance_norm_with_running_statistics() -> None:
    text = told(image_model(nn.InstanceNorm2d(4, track_running_stats=True)), images())
    assert "1.0: InstanceNorm2d" in text and "InstanceNorm without running statistics" in text
    check(engine(image_model(nn.InstanceNorm2d(4, affine=True)), images()), clipping=ONE)


# types


def test_wrapped_models() -> None:
    inner = image_model(nn.Identity())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of things that are on their way out
        wrapped = nn.DataParallel(inner)
        script = torch.jit.trace(nn.Linear(6, 3), torch.randn(4, 6))
        assert "before torch.jit" in told(script, torch.randn(4, 6))
    assert "DataParallel is not supported" in told(wrapped, images()) and "model.module" in told(wrapped, images())
    # what torch.compile gives, by its name: to import the compiler takes seconds
    compiled = type("OptimizedModule", (Written,), {})(lambda parts, x: parts[0](x), inner)
    assert "model._orig_mod" in told(compiled, images())


def test_types_of_parameters() -> None:
    text = told(nn.Linear(6, 3).half(), torch.randn(4, 6).half())
    assert "weight: a parameter of type torch.float16" in text and "bfloat16" in text
    model = Written(lambda parts, x: parts[0](x), nn.Linear(6, 3))
    model.extra = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    assert "extra: a parameter of type torch.complex64" in told(model, torch.randn(4, 6))
    model.extra = nn.Parameter(torch.zeros(2, dtype=torch.complex64), requires_grad=False)
    check(engine(model, torch.randn(4, 6)), clipping=ONE)
    assert "weight: a parameter that is no ordinary one" in told(nn.Linear(6, 3, device="meta"), torch.randn(4, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = nn.LazyLinear(3)
    assert "LazyLinear has no shape yet" in told(lazy, torch.randn(4, 6))


def test_sparse_embeddings_and_shared_parameters_are_fine() -> None:
    for name in ("embedding, sparse", "a language model with tied words", "a layer used twice"):
        case = models.ZOO[name]()
        assert look(Engine(case.model, case.loss, examples=(case.inputs, case.target)), clipping=ONE).all == ()


# what the model keeps


class Keeps(nn.Module):
    """Remembers something of what it saw."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.how = how
        self.register_buffer("mean", torch.zeros(6))
        self.seen: Any = None
        self.total = 0.0
        self.runs = 0
        self.log: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.runs += 1
        if self.how == "buffer":
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
        elif self.how == "another buffer":
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        elif self.how == "attribute":
            self.seen = x.detach()
        elif self.how == "number":
            self.total += float(x.detach().sum())
        elif self.how == "list":
            self.log.append(x.detach())
        elif self.how == "once" and self.seen is None:
            self.seen = torch.arange(6.0)  # a table that is made in the first run
        return self.layer(x - (self.mean if "buffer" in self.how else 0))


@pytest.mark.parametrize(
    ("how", "name"),
    [("buffer", "mean"), ("another buffer", "mean"), ("attribute", "seen"), ("number", "total"), ("list", "log")],
)
def test_models_that_remember_are_refused(how: str, name: str) -> None:
    model = Keeps(how)
    text = told(model, torch.randn(4, 6))
    assert f"{'buffer' if 'buffer' in how else 'attribute'} '{name}" in text
    if how == "buffer":
        assert not model.mean.any(), "the buffer is as it was"


@pytest.mark.parametrize("how", ["nothing", "once"])
def test_models_that_keep_nothing_of_records_pass(how: str) -> None:
    assert look(engine(Keeps(how), torch.randn(4, 6)), clipping=ONE).all == ()


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_tables_that_do_more_than_look_up_are_refused(kind: Any) -> None:
    forward = lambda parts, x: parts[1](parts[0](x).reshape(len(x), -1, 5).mean(1))  # noqa: E731
    ids = torch.randint(0, 9, (4, 6))
    text = told(Written(forward, kind(9, 5, max_norm=1.0), nn.Linear(5, 3)), ids)
    assert f"parts.0: {kind.__name__} with max_norm" in text and "without noise" in text
    options = {"mode": "sum"} if kind is nn.EmbeddingBag else {}
    text = told(Written(forward, kind(9, 5, scale_grad_by_freq=True, **options), nn.Linear(5, 3)), ids)
    assert "with scale_grad_by_freq" in text


def test_a_forward_pass_that_changes_parameters_is_refused() -> None:
    def shortened(parts: Any, x: Any) -> Any:
        return parts[1](functional.embedding(x, parts[0].weight, max_norm=50.0).mean(1))

    def assigned(parts: Any, x: Any) -> Any:
        parts[0].weight.data += 1e-3 * x.float().mean()
        return parts[1](parts[0](x).mean(1))

    for forward in (shortened, assigned):
        model = Written(forward, nn.Embedding(9, 5), nn.Linear(5, 3))
        before = model.parts[0].weight.detach().clone()  # type: ignore[union-attr]
        assert "parts.0.weight: the forward pass changes this parameter" in told(model, torch.randint(0, 9, (4, 6)))
        assert torch.equal(before, model.parts[0].weight), "and all is put back"  # type: ignore[union-attr]


def test_spectral_norm_is_refused_until_it_stands_still() -> None:
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3)))
    text = told(model, torch.randn(4, 6))
    assert "0: spectral_norm" in text and "model.0.parametrizations.weight.0.eval()" in text
    model[0].parametrizations.weight[0].eval()  # type: ignore[union-attr,index]
    check(engine(model, torch.randn(4, 6)), clipping=ONE)


# records that meet


def centred(parts: Any, x: Any) -> Any:
    z = parts[0](x)
    return parts[1](z - z.mean(0))


def attending(parts: Any, x: Any) -> Any:
    made, _ = parts[0](x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0))  # the batch taken for a sequence
    return parts[1](made[0])


def paired(parts: Any, x: Any) -> Any:
    return parts[0](x) + 1e-4 * parts[0](x).roll(1, 0)


def quietly(parts: Any, x: Any) -> Any:
    return parts[0](x + 1e-3 * x.detach().flip(0))  # on the way there alone: no gradient tells


@pytest.mark.parametrize("forward", [centred, attending, paired, quietly])
def test_records_that_meet_are_found(forward: Any) -> None:
    first = nn.MultiheadAttention(6, 2, batch_first=True) if forward is attending else nn.Linear(6, 6)
    model = Written(forward, first, nn.Linear(6, 6))
    assert "record" in told(model, torch.randn(4, 6), target=labels(4))


def test_where_records_meet_is_named() -> None:
    class Centre(nn.Module):
        def forward(self, x: Any) -> Any:
            return x - x.detach().mean(0)

    model = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.Tanh(), Centre()), nn.Linear(6, 3))
    assert "1.1: a record's loss moves with another record" in told(model, torch.randn(4, 6))


def test_only_extreme_records_meet() -> None:
    """A record that is large enough switches something for all."""

    def forward(parts: Any, x: Any) -> Any:
        return parts[0](x) * (2.0 if bool((x.detach().abs() > 30).any()) else 1.0)

    assert "moves with another record" in told(Written(forward, nn.Linear(6, 3)), torch.randn(4, 6))


def test_dropout_is_held_equal_and_passes() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3), nn.Dropout(0.1))
    assert look(engine(model, torch.randn(4, 6)), clipping=ONE).all == ()


def test_randomness_that_no_seed_holds_is_refused() -> None:
    forward = lambda parts, x: parts[0](x) * random.random()  # noqa: E731
    assert "two runs on the same records" in told(Written(forward, nn.Linear(6, 3)), torch.randn(4, 6))


def test_checkpoints_in_the_old_way_are_refused() -> None:
    from torch.utils.checkpoint import checkpoint

    forward = lambda parts, x: parts[2](checkpoint(parts[1], parts[0](x), use_reentrant=True))  # noqa: E731
    model = Written(forward, nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3))
    assert "use_reentrant=False" in told(model, torch.randn(4, 6))


def test_shapes_that_follow_the_data_are_refused_or_contained() -> None:
    """Experts that each see the rows they are given: how many depends on the records."""

    def forward(parts: Any, x: Any) -> Any:
        out = torch.zeros(len(x), 3)
        first = x.detach()[:, 0] > 0
        out[first] = parts[0](x[first])
        out[~first] = parts[1](x[~first])
        return out

    assert told(Written(forward, nn.Linear(6, 3), nn.Linear(6, 3)), torch.randn(4, 6))


def test_errors_of_the_model_itself_come_through() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        look(engine(nn.Linear(5, 3), torch.randn(4, 6)), clipping=ONE)


# losses


@pytest.mark.parametrize(
    "loss",
    [functional.cross_entropy, nn.CrossEntropyLoss(), lambda o, t: functional.cross_entropy(o, t, reduction="sum")],
)
def test_one_loss_for_all_is_refused(loss: Any) -> None:
    assert "reduction='none'" in told(nn.Linear(6, 3), torch.randn(4, 6), loss=loss)


def test_other_losses_that_mix() -> None:
    spread = lambda o, t: functional.cross_entropy(o, t).expand(len(t))  # noqa: E731
    assert "record" in told(nn.Linear(6, 3), torch.randn(4, 6), loss=spread)
    short = lambda o, t: functional.cross_entropy(o, t, reduction="none")[:1]  # noqa: E731
    assert "one number for each record" in told(nn.Linear(6, 3), torch.randn(4, 6), loss=short)
    everyone = lambda o, t: (o - t) ** 2  # noqa: E731  # (n, 1) - (n,): all pairs
    text = told(nn.Linear(6, 1), torch.randn(4, 6), target=torch.randn(4), loss=everyone)
    assert "target of another record" in text and "(n, 1)" in text


# parameters that get nothing, and honest models


def test_unused_parameters_are_named() -> None:
    model = Written(lambda parts, x: parts[0](x), nn.Linear(6, 3), nn.Linear(2, 2))
    found = check(engine(model, torch.randn(4, 6)), clipping=ONE)
    assert [each.where for each in found.warnings] == ["parts.1.weight", "parts.1.bias"]
    assert "requires_grad_(False)" in str(found)


def test_hooks_and_eval_mode_are_worth_knowing() -> None:
    model = nn.Linear(6, 3).eval()
    model.weight.register_hook(lambda g: g * 2)
    text = str(check(engine(model, torch.randn(4, 6)), clipping=ONE))
    assert "eval mode" in text and "weight: a hook" in text


@pytest.mark.parametrize("clipping", [ONE, PerLayer(norm=1), Automatic(norm=1), PerGroup(norm=1, weights={"*": 1})])
@pytest.mark.parametrize(
    "name",
    ["linear rank 3", "conv2d padding 1, padding_mode circular", "layer norm", "embedding", "position ids [1, T]",
     "transformer encoder layer", "adapters only", "parameters of its own", "prelu, one slope"],
)  # fmt: skip
def test_honest_models_pass_and_are_left_as_they_were(name: str, clipping: Any) -> None:
    case = models.ZOO[name]()
    before = {key: each.clone() for key, each in case.model.state_dict().items()}
    found = check(Engine(case.model, case.loss, examples=(case.inputs, case.target)), clipping=clipping)
    assert found.refused == ()
    assert all(torch.equal(before[key], each) for key, each in case.model.state_dict().items())
    assert all(each.grad is None for each in case.model.parameters())
    assert name == "adapters only" or str(found).startswith("nothing found")


def test_bf16_users_and_one_example() -> None:
    case = models.of_rank(2, records=6)
    check(Engine(case.model, case.loss, examples=(case.inputs, case.target), cast=torch.bfloat16), clipping=ONE)
    check(Engine(case.model, case.loss, examples=(case.inputs, case.target), rows_per_unit=2), clipping=ONE)
    alone = (tuple(each[:1] for each in case.inputs), case.target[:1])
    check(Engine(case.model, case.loss, examples=alone), clipping=ONE)


def test_an_engine_that_counts_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share test against planted faults: a sum that is too long, and one that points elsewhere."""
    case = models.of_rank(2)
    right = Engine.summed

    def longer(self: Any, *args: Any, **options: Any) -> Any:
        sums, norms = right(self, *args, **options)
        return [each * 1.4 for each in sums], norms

    def bent(self: Any, *args: Any, **options: Any) -> Any:
        sums, norms = right(self, *args, **options)
        return [each.flip(0) * 0.5 for each in sums], norms

    made = Engine(case.model, case.loss, examples=(case.inputs, case.target))
    monkeypatch.setattr(Engine, "summed", longer)
    assert "more than the clip norm" in str(look(made, clipping=ONE))
    monkeypatch.setattr(Engine, "summed", bent)
    assert "not the one of plain autograd" in str(look(made, clipping=ONE))


# per_record


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(reduction="none"),
        functional.cross_entropy,
        partial(functional.cross_entropy, label_smoothing=0.0),
        partial(functional.cross_entropy, reduction="sum"),
        cross_entropy,
    ],
)
def test_per_record_of_classes(loss: Any) -> None:
    output, target = torch.randn(5, 3), labels(5)
    made = per_record(loss)
    assert torch.equal(made(output, target), cross_entropy(output, target))
    assert per_record(made) is made or not hasattr(made, "loss")
    if isinstance(loss, nn.Module):
        assert loss.reduction in ("mean", "sum", "none")


def test_per_record_leaves_the_given_module_alone() -> None:
    loss = nn.MSELoss()
    per_record(loss)
    assert loss.reduction == "mean" and loss(torch.ones(2), torch.zeros(2)) == 1


def test_per_record_over_places() -> None:
    output, target = torch.randn(4, 9, 6), torch.randint(0, 9, (4, 6))
    target[0, :3] = -100
    each = functional.cross_entropy(output, target, reduction="none")
    assert torch.equal(per_record(nn.CrossEntropyLoss())(output, target), each.mean(1))
    assert torch.equal(per_record(nn.CrossEntropyLoss(reduction="sum"))(output, target), each.sum(1))
    assert each[0, :3].eq(0).all(), "what is ignored counts as 0"
    p, q = torch.randn(4, 5).log_softmax(1), torch.rand(4, 5).softmax(1)
    wanted = functional.kl_div(p, q, reduction="none").sum(1)
    assert torch.allclose(per_record(nn.KLDivLoss(reduction="batchmean"))(p, q), wanted)
    assert torch.allclose(per_record(partial(functional.kl_div, reduction="batchmean"))(p, q), wanted)


@pytest.mark.parametrize(
    "loss", [nn.MSELoss(), nn.BCEWithLogitsLoss(), nn.SmoothL1Loss(), functional.huber_loss, nn.L1Loss()]
)
def test_per_record_of_numbers(loss: Any) -> None:
    made = per_record(loss)
    output, target = torch.randn(4, 2), torch.rand(4, 2)
    assert torch.allclose(made(output, target).mean(), loss(output, target)) and made(output, target).shape == (4,)


def test_per_record_refuses() -> None:
    with pytest.raises(ArgumentError, match=r"CrossEntropyLoss\(\)"):
        per_record(nn.CrossEntropyLoss)
    with pytest.raises(ArgumentError, match="a function of output and target"):
        per_record("mse")

    class Scalar(nn.Module):
        reduction = "mean"

        def forward(self, output: Any, target: Any) -> Any:
            return (output - target).square().mean()

    with pytest.raises(PlanError, match="mixes records"):
        per_record(Scalar())(torch.ones(3), torch.ones(3))


def test_findings_hold_no_values() -> None:
    case = Case(nn.Linear(6, 1), (torch.full((4, 6), 4711.5),), torch.full((4,), 4711.5))
    text = told(case.model, *case.inputs, target=case.target, loss=lambda o, t: (o - t).square().mean())
    assert "4711" not in text
