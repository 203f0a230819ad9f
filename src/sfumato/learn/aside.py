"""What goes on beside a training: progress, public test data, checkpoints. None of it reads private data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .. import checks
from .modes import in_use


class Progress(NamedTuple):
    """Where a training stands. Everything in it is public: released already, or about public data.

    epsilon    what the steps so far cost, if just so many had been fixed in advance
    loss       on the public data; None without any
    accuracy   the same, where the target is a class
    norm       the clip norm
    unclipped  the noisy share of records that were not clipped, where they are counted
    signal     the length of the noisy sum over the length that noise alone would have: near 1, steps are mostly noise
    seconds    that are still to come, as far as one can tell
    """

    step: int
    steps: int
    epsilon: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    norm: float = 0.0
    unclipped: float | None = None
    signal: float | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        parts = [f"step {self.step}/{self.steps}"]
        parts += [f"epsilon {self.epsilon:.3f}"] if self.epsilon is not None else []
        parts += [f"loss {self.loss:.4f}"] if self.loss is not None else []
        parts += [f"accuracy {self.accuracy:.2%}"] if self.accuracy is not None else []
        parts += [f"unclipped {self.unclipped:.0%}"] if self.unclipped is not None else []
        parts += [f"signal {self.signal:.2f}"] if self.signal is not None else []
        parts += [f"{_time(self.seconds)} left"] if self.seconds is not None else []
        return "  ".join(parts)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@dataclass(frozen=True, kw_only=True)
class Aside:
    """
    progress    True shows a line on the terminal; or a function that is told each Progress
    public      (inputs, target) of public data, encoded as the model takes them, to measure loss and accuracy on
    every       steps between two looks at the public data
    stop        a function of the Progress so far: True ends the training, and what was not drawn is freed. It is given
                nothing but released values and measures on public data
    checkpoint  a file that is written after each block of steps: weights and optimiser, no randomness, no batch
    """

    progress: bool | Callable[[Progress], Any] = False
    public: tuple[Any, torch.Tensor] | None = None
    every: int | None = None
    stop: Callable[[list[Progress]], bool] | None = None
    checkpoint: Path | str | None = None

    def __post_init__(self) -> None:
        for name in ("progress", "stop"):
            value = getattr(self, name)
            if value not in (None, True, False) and not callable(value):
                raise checks.refuse(name, value, "a function" if name == "stop" else "True, False or a function")
        if self.every is not None:
            checks.whole(self.every, "every")
        if self.public is not None:
            if not isinstance(self.public, tuple) or len(self.public) != 2:
                raise checks.refuse("public", type(self.public).__name__, "(inputs, target) as tensors")
            inputs, target = self.public
            object.__setattr__(self, "public", (inputs if isinstance(inputs, tuple) else (inputs,), target))

    def tell(self, progress: Progress) -> None:
        if callable(self.progress):
            self.progress(progress)
        elif self.progress and sys.stderr.isatty():
            end = "\n" if progress.step == progress.steps else ""
            print(f"\r{progress!s:<100}", end=end, file=sys.stderr, flush=True)


class StepClock:
    """Guesses the time that is left, from the time that was taken."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._done = 0

    def left(self, more: int) -> float | None:
        self._done += 1
        return (time.monotonic() - self._began) / self._done * more


def measured(
    model: torch.nn.Module, loss: Callable[[Any, torch.Tensor], torch.Tensor], public: tuple[Any, torch.Tensor]
) -> tuple[float, float | None]:
    """Mean loss and, for classes, accuracy on public data."""
    inputs, target = public
    total, right, seen = 0.0, 0, 0
    with in_use(model), torch.no_grad():
        for start in range(0, len(target), 1024):
            part = slice(start, start + 1024)
            outputs = model(*[each[part] for each in inputs])
            total += float(loss(outputs, target[part]).double().sum())
            seen += loss(outputs, target[part]).numel()
            if target.dtype == torch.int64 and target.dim() == 1 and outputs.dim() == 2:
                right += int((outputs.argmax(1) == target[part]).sum())
    counted = target.dtype == torch.int64 and target.dim() == 1
    return total / max(seen, 1), right / max(len(target), 1) if counted else None
