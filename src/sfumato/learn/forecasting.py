"""How long a training will take, and how much memory: one micro-batch of made-up records, measured here and now.

Nothing private is read. The figures are those of this machine in this moment, for planning; nothing is decided by them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import torch

from .. import checks
from ..noise import Noise, SecureBits
from .blurring import StepSum
from .chance import apart, normal, seeded
from .sizing import kept_bytes
from .whole import whole_sums

if TYPE_CHECKING:
    from .engine import Engine
    from .plan import SGD

_TRIALS = 20
_ENOUGH, _LONG = 0.3, 2.0  # seconds of trials: after the third, and before


@dataclass(frozen=True)
class Forecast:
    """What a training takes on this machine, about.

    seconds  all steps together; `step` is one of them
    bytes    memory beside what Python and PyTorch take for themselves
    """

    seconds: float
    step: float
    bytes: int

    def in_words(self) -> Mapping[str, str]:
        """In words, as a quote shows it."""
        times = max(1, round(self.seconds / self.step)) if self.step else 0
        steps = f"{times:,} steps of {duration(self.step)}, measured on made-up records"
        return {
            "time": f"about {duration(self.seconds)}: {steps}",
            "memory": f"about {size(self.bytes)}, beside Python and PyTorch",
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:9} {text}" for name, text in self.in_words().items())


def forecast(plan: SGD) -> Forecast:
    """Time and memory of a training, from one micro-batch of made-up records."""
    from .plan import SGD

    checks.instance(plan, SGD, "plan", "a training, as learn.sgd makes it")
    with apart():  # dropout draws, and nobody's stream shall move
        engine = plan.engine(plan.model.fresh())
        engine.model.train(plan.model.original.training)
        passes = _micro_batches(plan) * _timed(lambda: _micro_batch(plan, engine), warm=True)
        update, state = _update(plan, engine)
    noise = Noise(SecureBits())
    drawing = _timed(lambda: plan.sampling.draw(_units(plan), noise))
    blurring = _timed(lambda: _blur(plan, noise))
    beside = plan.noise == "exact" and (os.cpu_count() or 1) > 1  # then noise is drawn beside the passes
    step = drawing + update + (max(passes, blurring) if beside else passes + blurring)
    return Forecast(step * plan.times, step, _bytes(plan, engine, state))


def _units(plan: SGD) -> int:
    return int(getattr(plan.sampling, "population", plan.sampling.slots))


def _micro_batches(plan: SGD) -> int:
    """Of one step: every slot goes through the model, also those that are free; fast noise leaves these out."""
    units = plan.sampling.slots if plan.noise == "exact" else ceil(plan.sampling.expected)
    return max(1, ceil(units / plan.micro))


def _micro_batch(plan: SGD, engine: Engine) -> None:
    inputs, target = engine.tiled(plan.micro)
    done = engine.backward(inputs, target, torch.ones(len(target)))
    weights, norm = torch.ones(plan.micro), float(plan.clip.norm)
    exponent = plan.blur.exponent(norm)
    if plan.strict:
        steps, _ = whole_sums(engine, done, weights, plan.clip, norm, exponent)
        StepSum(engine.parameters, exponent).add_steps(steps)
        return
    sums, _ = engine.summed(done, weights, clipping=plan.clip, norm=norm, eta=float(plan.eta))
    if plan.noise == "exact":
        StepSum(engine.parameters, exponent).add(sums)


def _blur(plan: SGD, noise: Noise) -> None:
    if plan.noise == "exact":
        noise.draw(plan.blur.law(float(plan.clip.norm)), plan.blur.parameters)
    else:
        normal(torch.empty(plan.blur.parameters), 1.0, seeded(0))


def _update(plan: SGD, engine: Engine) -> tuple[float, int]:
    """The optimiser's seconds, and the bytes that it keeps. The model is a copy, which is thrown away."""
    for parameter in engine.parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimiser = plan.optimiser.build([each for each in engine.model.parameters() if each.requires_grad])
    seconds = _timed(lambda: optimiser.step(), warm=True)
    state_tensors = [
        value for state in optimiser.state.values() for value in state.values() if isinstance(value, torch.Tensor)
    ]
    return seconds, sum(each.numel() * each.element_size() for each in state_tensors)


def _bytes(plan: SGD, engine: Engine, state: int) -> int:
    """Two models (the user's own, and the copy that is trained) and the average; gradients, sum, noise and result; what
    the graph of a micro-batch keeps; the encoded records, twice while they are read."""
    weights = sum(each.numel() * each.element_size() for each in (*engine.model.parameters(), *engine.model.buffers()))
    models = weights * (2 if plan.average is None else 3)
    sums = plan.blur.parameters * (4 + 3 * 8 if plan.noise == "exact" else 4 * 4)
    inputs, target = engine.tiled(1)
    record = sum(each.numel() * each.element_size() for each in (*inputs, target))
    strict = 2 * 8 * plan.micro * plan.blur.parameters if plan.strict else 0
    return models + state + sums + plan.micro * kept_bytes(engine) + strict + 2 * record * _units(plan)


def _timed(work: Callable[[], Any], *, warm: bool = False) -> float:
    """The least of some trials, as others may keep the machine busy; `warm` leaves the first out, which also prepares
    things once for all."""
    if warm:
        work()
    best, began = float("inf"), time.perf_counter()
    for trial in range(_TRIALS):
        before = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - before)
        if now - began > (_LONG if trial < 2 else _ENOUGH):
            break
    return best


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.1 else f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def size(count: int) -> str:
    """A number of bytes as people say it."""
    number, unit = float(count), "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.2g} {unit}" if number < 10 else f"{number:.0f} {unit}"
