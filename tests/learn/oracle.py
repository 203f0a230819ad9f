"""What the engine must agree with: every record's gradient by plain autograd, one record at a time, and clipping in
exact or double arithmetic. Slow, and written without a look at the engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import torch

from sfumato.learn.clipping import Automatic, Clipping


def losses(model: Any, loss: Any, inputs: Sequence[Any], target: Any) -> Any:
    made = loss(model(*inputs), target)
    return made.flatten(1).mean(1) if made.dim() > 1 else made


def trainable(model: Any) -> list[Any]:
    return [each for each in model.parameters() if each.requires_grad]


def gradients(model: Any, loss: Any, inputs: Sequence[Any], target: Any) -> list[Any]:
    """(records, *shape) for each trainable parameter: a loop over batches of one record."""
    found = []
    for i in range(len(target)):
        one = losses(model, loss, [each[i : i + 1] for each in inputs], target[i : i + 1])
        found.append(torch.autograd.grad(one.sum(), trainable(model), allow_unused=True, materialize_grads=True))
    return [
        torch.stack([each[k].to_dense() for each in found]) if found else torch.zeros(0, *parameter.shape)
        for k, parameter in enumerate(trainable(model))
    ]


def mapped(model: Any, loss: Any, inputs: Sequence[Any], target: Any) -> list[Any]:
    """The same by vmap(grad)."""
    held = {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}
    rest = {name: each.detach() for name, each in model.named_parameters() if not each.requires_grad}

    def one(parameters: Any, row: Any, goal: Any) -> Any:
        rows = tuple(each.unsqueeze(0) for each in row)
        output = torch.func.functional_call(model, {**rest, **parameters}, rows)
        made = loss(output, goal.unsqueeze(0))
        return made.flatten(1).mean(1).sum() if made.dim() > 1 else made.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some operations have no batched form: slow, and right
        got = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))(held, tuple(inputs), target)
    return [got[name] for name in held]


def factors(clipping: Clipping, names: Sequence[str], each: Sequence[Any]) -> list[Any]:
    """The weights of the records for each parameter, in double precision."""
    groups = clipping.groups(names)
    shares = clipping.shares(max(groups) + 1)  # a rule of patterns gives as many as it has
    norm = float(clipping.norm)
    weights = []
    for group in groups:
        squares = sum(
            one.double().reshape(len(one), -1).square().sum(1)
            for one, other in zip(each, groups, strict=True)
            if other == group
        )
        size = torch.as_tensor(squares).sqrt()
        if isinstance(clipping, Automatic):
            weights.append(norm * shares[group] / (size + float(clipping.stability)))
        else:
            weights.append((norm * shares[group] / size).clamp_max(1.0))
    return weights


def clipped(clipping: Clipping, names: Sequence[str], each: Sequence[Any]) -> list[Any]:
    """The clipped sum, in double precision."""
    return [
        (one.double() * weights.reshape(-1, *[1] * (one.dim() - 1))).sum(0)
        for one, weights in zip(each, factors(clipping, names, each), strict=True)
    ]


def miss(got: Sequence[Any], clipping: Clipping, names: Sequence[str], each: Sequence[Any]) -> float:
    """How far these sums are from the clipped sum, at worst, as a share of what was added up to it (weights are off by
    their own rounding, which shows where records cancel)."""
    worst, wanted = 0.0, clipped(clipping, names, each)
    least = 1e-6 * max((float(one.abs().max()) for one in each if one.numel()), default=0.0)
    for one, two, added in zip(got, wanted, clipped_sizes(clipping, names, each), strict=True):
        assert one.shape == two.shape
        away = float((one - two).abs().max()) if two.numel() else 0.0
        assert away == away
        worst = max(worst, away / max(added, least) if away else 0.0)
    return worst


def clipped_sizes(clipping: Clipping, names: Sequence[str], each: Sequence[Any]) -> list[float]:
    """The largest coordinate of the clipped sum of the gradients' sizes, for each parameter."""
    return [float(one.max()) if one.numel() else 0.0 for one in clipped(clipping, names, [g.abs() for g in each])]


def length(tensors: Sequence[Any]) -> float:
    return distance(tensors, [torch.zeros_like(each) for each in tensors])


def distance(one: Sequence[Any], two: Sequence[Any]) -> float:
    """The L2 distance of two lists of float tensors, rounded only by double precision sums."""
    return float(sum((a.double() - b.double()).square().sum() for a, b in zip(one, two, strict=True)) ** 0.5)


def exact_square(one: Sequence[Any], two: Sequence[Any]) -> Fraction:
    """The squared L2 distance of two lists of float tensors, without any rounding."""
    total = Fraction(0)
    for a, b in zip(one, two, strict=True):
        for x, y in zip(a.flatten().tolist(), b.flatten().tolist(), strict=True):
            total += (Fraction(x) - Fraction(y)) ** 2
    return total
