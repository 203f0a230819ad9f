"""Parameters that meet records in odd ways: no layer, no rule of their own; the general way must be right, and contain
bad records."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sfumato.errors import PlanError  # noqa: E402
from sfumato.learn.clipping import Flat  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from tests.learn import oracle  # noqa: E402
from tests.learn.models import CLASSES, Own, Written, cross_entropy, labels  # noqa: E402


def written_into(own: Any, x: Any) -> Any:
    z = x.clone()
    z[:, 0] = own.scale[0]
    z[:, 1:3] = own.scale[1:3]
    return z


def changed_in_place(own: Any, x: Any) -> Any:
    return (x * 1.0).add_(own.scale).mul_(own.heat)


def taken_apart(own: Any, x: Any) -> Any:
    first, second = own.scale.expand(len(x), -1).chunk(2, 1)
    return torch.cat([second, first], 1) * x


def in_halves(own: Any, x: Any) -> Any:
    return functional.linear(x[:, :3], own.weight[:, :3]) + functional.linear(x[:, 3:], own.weight[:, 3:])


def added_to_products(own: Any, x: Any) -> Any:
    return torch.baddbmm(own.scale, x.unsqueeze(1), own.weight.expand(len(x), -1, -1)).squeeze(1)


def transformed(own: Any, x: Any) -> Any:
    return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(own.scale), n=6)


ODD: dict[str, Callable[[Any, Any], Any]] = {
    "written into a batch": written_into,
    "in place of some values": lambda own, x: torch.where(x > 0.5, own.scale, x),
    "a filling": lambda own, x: x.masked_fill(x > 0.5, own.heat),
    "rows by index": lambda own, x: x + own.weight[(x[:, 0] > 0).long() + 1],
    "gathered": lambda own, x: x + torch.gather(own.weight[:1].expand(len(x), -1), 1, (x > 0).long()),
    "repeated": lambda own, x: x + own.scale.repeat(len(x), 1),
    "stacked beside": lambda own, x: torch.tanh(torch.stack([x, own.scale.expand(len(x), -1)], 1)).mean(1),
    "an outer product": lambda own, x: torch.einsum("b,d->bd", x[:, 0], own.scale),
    "an exponent": lambda own, x: x.abs() ** own.scale.exp(),
    "above the line": lambda own, x: own.scale / (x.abs() + 1),
    "below the line": lambda own, x: x / (own.scale.abs() + 1),
    "a system to solve": lambda own, x: torch.linalg.solve(own.weight + 5 * torch.eye(6).to(x), x.unsqueeze(2)).squeeze(
        2
    ),
    "points to be near to": lambda own, x: torch.cdist(x, own.weight),
    "changed in place": changed_in_place,
    "taken apart": taken_apart,
    "in halves": in_halves,
    "added to products": added_to_products,
    "scale and shift of a norm at once": lambda own, x: functional.layer_norm(x, (6,), own.scale, own.scale),
    "a threshold": lambda own, x: torch.maximum(x, own.scale),
    "transformed": transformed,
}


def model(way: Callable[[Any, Any], Any]) -> Any:
    torch.manual_seed(1)
    return Written(lambda parts, x: parts[1](torch.tanh(way(parts[0], x))), Own(), nn.Linear(6, CLASSES))


@pytest.mark.parametrize("name", ODD)
def test_parameters_met_in_odd_ways(name: str) -> None:
    made = model(ODD[name]).double()
    x, y, clipping = torch.randn(5, 6).double(), labels(), Flat(norm=0.1)
    each = oracle.gradients(made, cross_entropy, (x,), y)
    ours = Engine(made, cross_entropy, examples=((x,), y))
    assert oracle.miss(ours.sums((x,), y, clipping=clipping), clipping, ours.names, each) <= 1e-5


@pytest.mark.parametrize("name", ODD)
def test_bad_records_are_contained_in_odd_ways(name: str) -> None:
    made = model(ODD[name])
    x, y, clipping = torch.randn(5, 6), labels(), Flat(norm=0.1)
    ours = Engine(made, cross_entropy, examples=((x,), y))
    weights = torch.tensor([1.0, 0, 1, 1, 1])
    wanted = ours.sums((x,), y, weights, clipping=clipping)
    for bad in (float("nan"), float("inf"), -3e38):
        spoilt = x.clone()
        spoilt[1] = bad
        got = ours.sums((spoilt,), y, weights, clipping=clipping)
        assert all(torch.equal(one, two) for one, two in zip(got, wanted, strict=True))
        assert oracle.distance(ours.sums((spoilt,), y, clipping=clipping), wanted) <= 0.1 * (1 + 1 / 64)


class Two(torch.autograd.Function):
    """An operation with two results, and a parameter."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return x * weight, x * weight * weight

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight = ctx.saved_tensors
        one, two = grads
        return one * weight + two * weight * weight, (one * x + two * 2 * x * weight).sum(0)


@pytest.mark.parametrize("which", [slice(0, 2), slice(1, 2)])
def test_an_operation_with_two_results_is_right_or_refused(which: slice) -> None:
    made = model(lambda own, x: sum(Two.apply(x, own.scale)[which])).double()
    x, y, clipping = torch.randn(5, 6).double(), labels(), Flat(norm=0.1)
    ours = Engine(made, cross_entropy, examples=((x,), y))
    try:
        sums = ours.sums((x,), y, clipping=clipping)
    except PlanError as refused:
        assert "Two" in str(refused)
        return
    assert oracle.miss(sums, clipping, ours.names, oracle.gradients(made, cross_entropy, (x,), y)) <= 1e-5
