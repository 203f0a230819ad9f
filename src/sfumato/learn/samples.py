"""The least training there is: one step of a line through made-up points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..schema import Schema, real
from ..units import Unit
from .front import sgd
from .plan import SGD


def line() -> torch.nn.Module:
    """The least model that can be trained."""
    model = torch.nn.Linear(1, 1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(0.5)
    return model


def squared_error(output: Any, target: Any) -> Any:
    return (output[:, 0] - target) ** 2


@dataclass
class Points:
    """What is known of them in public."""

    unit: Unit
    schema: Schema


def points(rows: int) -> Points:
    return Points(Unit(), Schema.of(x=real(-1, 1), y=real(-3, 3), rows=rows))


def one_step() -> SGD:
    """Their slots in one micro-batch."""
    more: dict[str, Any] = {"clip": 1, "multiplier": 1, "delta": 1e-3, "micro": 76}
    return sgd(line(), squared_error, data=points(60), inputs="x", target="y", rate=0.5, steps=1, **more)
