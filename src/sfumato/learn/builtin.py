"""Small models for people who bring none: linear, logistic, mlp, cnn. Their first weights are public, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import nn

from .. import checks
from ..errors import PlanError
from .chance import apart

NAMES = ("linear", "logistic", "mlp", "cnn")
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}
_HIDDEN = {"mlp": (64,), "cnn": (16, 32)}
_SMALL = 16  # pixels of a side: below, windows are smaller


def builtin(
    name: str,
    inputs: Sequence[int],
    outputs: int,
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "tanh",
    seed: int = 1,
) -> nn.Module:
    """A model by its name.

    linear    one layer, for numbers or classes; `logistic` is the same for classes
    mlp       layers of `hidden` sizes, (64,) by default
    cnn       two windows over an image (channels, height, width), with `hidden` channels, (16, 32) by default
    inputs    the shape of one record, `outputs` how many numbers it is to tell
    seed      of the first weights, which are public: the same model in every process, so that a training that was
              stopped can go on
    """
    checks.one_of(name, "model", NAMES)
    checks.one_of(activation, "activation", tuple(ACTIVATIONS))
    shape = tuple(checks.whole(side, "inputs") for side in inputs)
    checks.whole(outputs, "outputs")
    if hidden is not None and name not in _HIDDEN:
        raise checks.refuse("hidden", tuple(hidden), f"no hidden sizes: a {name} model has one layer")
    sizes = tuple(
        checks.whole(each, "hidden", most=2**20) for each in (_HIDDEN.get(name, ()) if hidden is None else hidden)
    )
    with apart(checks.whole(seed, "seed", least=0)):
        if name == "cnn":
            return _cnn(shape, outputs, sizes, ACTIVATIONS[activation])
        return _layers(shape, outputs, sizes, ACTIVATIONS[activation])


def seeded(make: Callable[[], object], seed: int) -> nn.Module:
    """A model that a function of the user's own makes, with first weights from a seed, as long as it draws them from
    torch: then it is the same in every process."""
    with apart(checks.whole(seed, "seed", least=0)):
        model = make()
    if not isinstance(model, nn.Module):
        raise PlanError(f"the function gives a {type(model).__name__}, which is no model: return a torch.nn.Module")
    return model


def _layers(shape: tuple[int, ...], outputs: int, hidden: tuple[int, ...], activation: type[nn.Module]) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    width = prod(shape)
    for size in hidden:
        layers += [nn.Linear(width, size), activation()]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def _cnn(shape: tuple[int, ...], outputs: int, channels: tuple[int, ...], activation: type[nn.Module]) -> nn.Module:
    """Bounded activations and few weights, which noise suits (Papernot et al. 2021)."""
    if len(shape) != 3 or min(shape[1:]) < 4:
        raise PlanError(
            "a cnn reads images: give it one tensor column of shape (channels, height, width), with sides of 4 at "
            "least; for columns of single values use model: mlp"
        )
    if not channels:
        raise checks.refuse("hidden", channels, "at least one number of channels, such as [16, 32]")
    layers: list[nn.Module] = []
    width, (height, breadth) = shape[0], shape[1:]
    for size in channels:
        side = 5 if min(height, breadth) >= _SMALL else 3
        stride = 2 if min(height, breadth) >= 4 else 1
        layers += [nn.Conv2d(width, size, side, stride=stride, padding=side // 2), activation()]
        width, height, breadth = size, (height - 1) // stride + 1, (breadth - 1) // stride + 1
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width * height * breadth, outputs))


# Losses by name: each gives one number for a record. A model of numbers tells one in a row of its own.


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output, target, reduction="none")


def mse(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(output.reshape(target.shape), target, reduction="none")


def l1(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.l1_loss(output.reshape(target.shape), target, reduction="none")


def huber(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.huber_loss(output.reshape(target.shape), target, reduction="none")


LOSSES = {each.__name__: each for each in (cross_entropy, mse, l1, huber)}
