"""Planted bugs of private training, most of them as once shipped. None is a plan, and none can be released with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sfumato.audit import seams, surface
from sfumato.laws import Integers, Law
from sfumato.learn.clipping import Flat
from sfumato.learn.engine import Pass
from sfumato.learn.modes import Buffers
from sfumato.learn.owners import OwnerWatch, Trace
from sfumato.learn.sampling import FREE, Poisson, Slots, seated
from sfumato.learn.stepping import Batch, MicroBatch, Stepper
from sfumato.noise import Noise
from sfumato.rows import Rows

from .overriding import overriding

_UNCLIPPED = 2.0**30


class _Planted(Stepper):
    """A stepper with another batch."""

    kind: type[Batch] = Batch

    def batch(self) -> Batch:
        return self.kind(self)


class _NoisyParts(Batch):
    def add(self, done: Pass, present: torch.Tensor) -> None:
        super().add(done, present)
        step = surface.step_of(self)
        noise = step.noise.draw(step.stepper.plan.blur.law(step.norm), step.steps.size)
        np.add(step.steps, noise, out=step.steps)


class NoisePerMicroBatch(_Planted):
    """Noise is added with every micro-batch, as by workers that each add theirs."""

    kind = _NoisyParts


class _Halved(Noise):
    def __init__(self, inner: Noise) -> None:
        super().__init__(surface.bits_of(inner))
        self._inner = inner

    def draw(self, law: Law, count: int) -> Integers:
        return self._inner.draw(law, count) // 2


class HalfTheNoise(Stepper):
    """The noise is that of half the clip norm."""

    def __init__(self, plan: Any, rows: Rows, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, _Halved(noise), model)


class _Actual(Batch):
    def __init__(self, stepper: Stepper) -> None:
        super().__init__(stepper)
        self._came = 0

    def add(self, done: Pass, present: torch.Tensor) -> None:
        super().add(done, present)
        self._came += int(present.sum())

    def released(self) -> list[torch.Tensor]:
        return [each * (surface.step_of(self).stepper.plan.divisor / max(self._came, 1)) for each in super().released()]


class DividesByActual(_Planted):
    """The sum is divided by how many were drawn, which is nobody's to know."""

    kind = _Actual


class _Parts(Batch):
    def add(self, done: Pass, present: torch.Tensor) -> None:
        step = surface.step_of(self)
        sums, _ = step.stepper.engine.summed(
            done, present.float(), clipping=Flat(norm=_UNCLIPPED), norm=_UNCLIPPED, eta=1.0
        )
        norm = torch.sqrt(torch.stack([each.double().square().sum() for each in sums]).sum())
        step.sum.add([each * (step.norm / norm.clamp_min(step.norm)).to(each.dtype) for each in sums])
        self.left -= 1


class ClipsMicroBatches(_Planted):
    """The sum of a micro-batch is clipped, not each record of it."""

    kind = _Parts


def _normalised(part_of: Any) -> Any:
    def mixed(self: Stepper, units: Slots) -> MicroBatch:
        part: MicroBatch = part_of(self, units)
        return part._replace(inputs=tuple((each - each.mean(0)) / (each.std(0) + 1e-6) for each in part.inputs))

    return mixed


@overriding(seams.MICRO_BATCH, _normalised)
class BatchNormAllowed(Stepper):
    """Inputs are normalised over all that are there, as a BatchNorm in front does it."""


class _Loose(Batch):
    def add(self, done: Pass, present: torch.Tensor) -> None:
        step = surface.step_of(self)
        sums, _ = step.stepper.engine.summed(done, present.float(), clipping=Flat(norm=2), norm=2.0, eta=1.0)
        step.sum.add(sums)
        self.left -= 1


class TwiceTheNorm(_Planted):
    """Records are clipped to twice the norm that is paid for."""

    kind = _Loose


class _Blind(OwnerWatch):
    """Looks at nothing."""

    @contextmanager
    def over(self, tensors: Sequence[torch.Tensor], records: int) -> Iterator[OwnerWatch]:
        yield self

    def settle(self, losses: torch.Tensor) -> Trace:
        return self.trace


class Unwatched(Stepper):
    """Row i of a batch is taken for record i, at every step, as it was for made-up records."""

    def __init__(self, plan: Any, rows: Rows, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, noise, model)
        surface.watch_by(self.engine, _Blind())
        self.engine.survey(plan.micro)


class _Forgetful(Buffers):
    """Takes buffers as they are."""

    def restore(self) -> bool:
        return False


class EveryPartInTrainMode(Unwatched):
    """The model is put into train mode as a whole, and what its parts keep then is kept."""

    def __init__(self, plan: Any, rows: Rows, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, noise, model)
        self.buffers = _Forgetful(model)
        model.train()


STEPPERS: dict[str, Callable[..., Stepper]] = {
    "noise with every micro-batch": NoisePerMicroBatch,
    "half the noise": HalfTheNoise,
    "the divisor is what was drawn": DividesByActual,
    "micro-batches clipped, not records": ClipsMicroBatches,
    "BatchNorm": BatchNormAllowed,
    "twice the clip norm": TwiceTheNorm,
}


@dataclass(frozen=True, kw_only=True)
class ShuffledSampling(Poisson):
    """Everybody once in an epoch, in shuffled order, in batches of one size; sold at the price of Poisson sampling."""

    waiting: list[int] = field(default_factory=list, compare=False)

    def draw(self, units: int, noise: Noise) -> Slots:
        size = round(float(self.rate) * units)
        if len(self.waiting) < size:
            self.waiting[:] = noise.permutation(units).tolist()
        batch = np.array([self.waiting.pop() for _ in range(size)], dtype=np.int64)
        return seated(batch, self.room, noise)


@dataclass(frozen=True, kw_only=True)
class Packed(Poisson):
    """Who is drawn sits one after the other: one more moves everybody behind, and with them the rounding of the sum."""

    def draw(self, units: int, noise: Noise) -> Slots:
        slots = super().draw(units, noise)
        joined = np.sort(slots[slots != FREE])
        return np.concatenate([joined, np.full(self.room - len(joined), FREE, dtype=np.int64)])
