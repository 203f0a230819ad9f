"""What `fix` replaces, and that it leaves the caller's model alone."""

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from sfumato.errors import ArgumentError, PlanError  # noqa: E402
from sfumato.learn.checking import look  # noqa: E402
from sfumato.learn.clipping import Flat  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from sfumato.learn.fixing import FixedNorm, fix, fixes  # noqa: E402
from tests.learn.models import cross_entropy  # noqa: E402


def network(norm: nn.Module, channels: int = 8) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, channels, 3), norm, nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(channels * 16, 3)
    )


def state(model: nn.Module) -> dict[str, Any]:
    return {name: each.clone() for name, each in model.state_dict().items()}


def test_batch_norm_becomes_group_norm_with_its_weights_and_type() -> None:
    norm = nn.BatchNorm2d(8, eps=1e-3).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    norm.weight.requires_grad_(False)
    norm.eval()
    model = network(norm).eval()
    before = state(model)
    made = fix(model)
    new = made[1]  # type: ignore[index]
    assert type(new) is nn.GroupNorm and new.num_groups == 8 and new.eps == 1e-3 and not new.training
    assert (
        torch.equal(new.weight, norm.weight) and torch.equal(new.bias, norm.bias) and new.weight.dtype == torch.float64
    )
    assert not new.weight.requires_grad and new.bias.requires_grad
    assert new.weight is not norm.weight, "the copy has parameters of its own"
    assert model[1] is norm and all(torch.equal(before[name], each) for name, each in model.state_dict().items())  # type: ignore[index]
    assert str(fixes(model)[0]).startswith("1: BatchNorm2d(8")
    assert "GroupNorm(8, 8" in str(fixes(model)[0])


@pytest.mark.parametrize(("channels", "groups"), [(8, 8), (32, 32), (64, 32), (48, 24), (37, 1), (1, 1), (50, 25)])
def test_the_groups_are_the_largest_divisor_up_to_32(channels: int, groups: int) -> None:
    assert fix(nn.Sequential(nn.BatchNorm2d(channels)))[0].num_groups == groups  # type: ignore[index]


def test_on_vectors_all_channels_are_one_group() -> None:
    """A group of one number would always be 0."""
    made = fix(nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16)))
    assert made[1].num_groups == 1  # type: ignore[index]
    assert made(torch.randn(5, 4)).std() > 0.1


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm1d(8), nn.BatchNorm2d(8), nn.BatchNorm3d(8), nn.SyncBatchNorm(8), nn.BatchNorm2d(8, affine=False),
        nn.BatchNorm2d(8, track_running_stats=False), nn.BatchNorm2d(8, affine=False, track_running_stats=False),
    ],
    ids=repr,
)  # fmt: skip
def test_every_form_of_batch_norm(norm: Any) -> None:
    made = fix(norm)
    assert type(made) is nn.GroupNorm and made.affine == norm.affine


@pytest.mark.parametrize("kind", [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d])
@pytest.mark.parametrize("affine", [True, False])
def test_instance_norm_loses_its_running_statistics_alone(kind: Any, affine: bool) -> None:
    norm = kind(4, affine=affine, track_running_stats=True)
    if affine:
        nn.init.normal_(norm.weight)
    x = torch.randn(3, 4, *[5] * (1 + [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d].index(kind)))
    made = fix(norm)
    assert type(made) is kind and not made.track_running_stats and made.affine == affine
    assert torch.equal(made(x), norm(x))
    assert fixes(kind(4, affine=affine)) == ()


def test_local_classes_and_shared_modules() -> None:
    class Local(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.again = self.norm
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
            self.two.weight = self.one.weight

        def forward(self, x: Any) -> Any:
            return self.two(self.again(self.one(self.norm(x))))

    model = Local()
    made: Any = fix(model)
    assert type(made) is Local and made.norm is made.again and type(made.norm) is nn.GroupNorm
    assert made.one.weight is made.two.weight and made.one.weight is not model.one.weight
    assert type(model.norm) is nn.BatchNorm1d
    assert [each.where for each in fixes(model)] == ["norm", "again"]


def test_public_statistics_stay_for_good() -> None:
    norm = nn.BatchNorm2d(8)
    model = network(norm)
    for _ in range(3):
        model(torch.randn(6, 2, 6, 6) * 2 + 1)
    model.eval()
    x = torch.randn(4, 2, 6, 6)
    wanted = model(x)
    made: Any = fix(model, public_statistics=True)
    assert type(made[1]) is FixedNorm
    assert torch.equal(made(x), wanted)
    made.train()
    assert torch.equal(made(x), wanted), "in train mode, too"
    assert set(made.state_dict()) == set(model.state_dict()) - {"1.num_batches_tracked"}
    made.load_state_dict(model.state_dict())
    assert "num_batches_tracked" in " ".join(model.state_dict()), "the caller's weights stay whole"
    again = fix(network(nn.BatchNorm2d(8, track_running_stats=False)), public_statistics=True)
    assert type(again[1]) is nn.GroupNorm, "there are no statistics to keep"  # type: ignore[index]
    engine = Engine(made, cross_entropy, examples=((x,), torch.tensor([0, 1, 2, 0])))
    assert look(engine, clipping=Flat(norm=1)).refused == ()


def test_a_fixed_model_passes_the_check() -> None:
    model = network(nn.BatchNorm2d(8))
    examples = ((torch.randn(4, 2, 6, 6),), torch.tensor([0, 1, 2, 0]))
    assert look(Engine(model, cross_entropy, examples=examples), clipping=Flat(norm=1)).refused
    assert not look(Engine(fix(model), cross_entropy, examples=examples), clipping=Flat(norm=1)).refused


def test_what_cannot_be_fixed_says_why() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = nn.Sequential(nn.LazyBatchNorm2d())
    with pytest.raises(PlanError, match="no shape yet: run the model once"):
        fix(lazy)
    kept = nn.Linear(2, 2)
    kept.seen = kept(torch.randn(1, 2))  # type: ignore[assignment]
    with pytest.raises(PlanError, match="cannot be copied"):
        fix(kept)
    with pytest.raises(ArgumentError, match="model"):
        fix("a model")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="public_statistics"):
        fix(nn.Linear(2, 2), public_statistics="yes")  # type: ignore[arg-type]
