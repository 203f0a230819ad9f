"""One step of training: draw units, sum their clipped gradients, blur, update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import PlanError
from ..noise import Noise
from ..rows import Rows
from .blurring import Drawn, StepSum
from .chance import fast, normal
from .clipping import Adaptive
from .datasets import Encoded
from .engine import Pass
from .modes import Buffers
from .sampling import FREE, Slots, packed
from .whole import whole_sums

if TYPE_CHECKING:
    from .plan import SGD

_MANY = 2**16  # numbers for which a thread of their own is worth its while
_PACE = 16  # an adaptive norm moves on the powers of 2^(1/16): few noise laws, each worked out once


class MicroBatch(NamedTuple):
    """One micro-batch: rows, their weights, and which units are there."""

    inputs: tuple[torch.Tensor, ...]
    target: torch.Tensor
    weights: torch.Tensor
    present: torch.Tensor


class Stepper:
    """Private data on one side, noisy gradients on the other."""

    def __init__(self, plan: SGD, rows: Rows, noise: Noise, model: torch.nn.Module, *, rehearsal: bool = False) -> None:
        self.plan, self.model = plan, model
        self.engine = plan.engine(model)
        self.norm = float(plan.clip.norm)
        self.unclipped: float | None = None
        self.signal: float | None = None
        self._noise = noise
        self._data: Encoded | None = Encoded(rows, plan.arguments, plan.target)
        self.buffers = Buffers(model)
        self.engine.survey(plan.micro)  # now: it moves the parameters for a moment, which no open graph would survive
        self._members = members(rows, plan.per_unit, noise)
        if rehearsal and len(self._members):  # made-up units are as many as the public number says
            self._members = self._members[np.arange(plan.sampling.rehearsed(len(self._members))) % len(self._members)]
        self._beside = Drawn() if plan.noise == "exact" else None
        self._fast = None
        if plan.noise == "fast":
            self._fast = fast(noise)

    def close(self) -> None:
        """Let go of the data."""
        if self._beside is not None:
            self._beside.close()
        self._data = None
        self.buffers.restore()

    # a batch

    def drawn(self) -> Slots:
        """Who takes part, by slot."""
        slots = self.plan.sampling.draw(len(self._members), self._noise)
        size = self.plan.micro
        if self._fast is not None:
            return packed(slots, size)
        more = -len(slots) % size
        return np.concatenate([slots, np.full(more, FREE, dtype=np.int64)]) if more else slots

    def parts(self, slots: Slots) -> Iterator[MicroBatch]:
        for start in range(0, len(slots), self.plan.micro):
            yield self._part(slots[start : start + self.plan.micro])

    def _part(self, units: Slots) -> MicroBatch:
        """A unit's rows count alike, and together for 1; rows that cannot be read for nothing."""
        if self._data is None:
            raise PlanError("this block is over: the data is closed again")
        rows = np.full((len(units), self.plan.per_unit), FREE)
        rows[units != FREE] = self._members[units[units != FREE]]
        taken = self._data.take(rows.reshape(-1))
        there = taken.weights.reshape(rows.shape)
        weights = there / there.sum(1, keepdim=True).clamp_min(1)
        assert isinstance(taken.inputs, dict) and taken.targets is not None
        return MicroBatch(tuple(taken.inputs.values()), taken.targets, weights.reshape(-1), there.any(1))

    # a step

    def step(self) -> list[torch.Tensor]:
        """The noisy gradient of one step, for each trainable parameter."""
        batch = self.batch()
        for part in batch.parts:
            batch.add(self.engine.backward(part.inputs, part.target, part.weights), part.present)
        return batch.released()

    def batch(self) -> Batch:
        return Batch(self)

    def moved(self) -> None:
        """The norm after a step, where it follows a quantile."""
        clip = self.plan.clip
        if isinstance(clip, Adaptive) and self.unclipped is not None:
            exponent = np.log2(self.norm) - float(clip.pace) * (self.unclipped - float(clip.quantile)) / np.log(2)
            self.norm = float(2.0 ** (np.round(np.clip(exponent, -30, 30) * _PACE) / _PACE))


class Batch:
    """The sum of one step, while its micro-batches come in."""

    def __init__(self, stepper: Stepper) -> None:
        plan = stepper.plan
        self._stepper, self._norm = stepper, stepper.norm
        slots = stepper.drawn()
        self.parts = stepper.parts(slots)
        self.left = -(-len(slots) // plan.micro)
        self._halves = 0
        parameters = stepper.engine.parameters
        self._sum = StepSum(parameters, plan.blur.exponent(self._norm))
        self._floats: list[torch.Tensor] | None = None
        self._coming = None
        if stepper._beside is not None and plan.blur.parameters >= _MANY:  # beside the passes through the model
            self._coming = stepper._beside.begin(stepper._noise, plan.blur.law(self._norm), plan.blur.parameters)

    def add(self, done: Pass, present: torch.Tensor) -> None:
        """One micro-batch more."""
        stepper, plan = self._stepper, self._stepper.plan
        engine, weights = stepper.engine, present.float()
        if plan.strict:
            steps, norms = whole_sums(engine, done, weights, plan.clip, self._norm, plan.blur.exponent(self._norm))
            self._sum.add_steps(steps)
        else:
            sums, norms = engine.summed(done, weights, clipping=plan.clip, norm=self._norm, eta=float(plan.eta))
            if stepper._fast is None:
                self._sum.add(sums)
            elif self._floats is None:
                self._floats = list(sums)
            else:
                self._floats = [one + two for one, two in zip(self._floats, sums, strict=True)]
        if plan.count is not None:
            signs = torch.where(norms <= self._norm, 1, -1)
            self._halves += int(signs[present].sum())
        self.left -= 1

    def released(self) -> list[torch.Tensor]:
        """Noise, once; then the division by the expected batch. Nothing else of the records leaves: buffers are those
        from before."""
        stepper, plan = self._stepper, self._stepper.plan
        stepper.buffers.check()
        blur, divisor = plan.blur, plan.divisor
        deviation = blur.deviation(self._norm)
        if plan.noise == "exact":
            law = blur.law(self._norm)
            coming = self._coming
            drawn = stepper._noise.draw(law, blur.parameters) if coming is None else coming.result()
            out = self._sum.released(drawn, divisor)
        else:
            assert stepper._fast is not None
            sums = self._floats or [torch.zeros_like(each) for each in stepper.engine.parameters]
            out = [(each + normal(each, deviation, stepper._fast)).div_(divisor) for each in sums]
        if plan.count is not None:
            noisy = self._halves + int(stepper._noise.draw(blur.count_law, 1)[0])
            stepper.unclipped = noisy / (2 * divisor) + 0.5
        length = float(
            torch.sqrt(sum((each.double().square().sum() for each in out), torch.zeros((), dtype=torch.float64)))
        )
        alone = deviation * blur.parameters**0.5 / divisor
        stepper.signal = length / alone
        stepper.moved()
        return [each.to(p.dtype) for each, p in zip(out, stepper.engine.parameters, strict=True)]


def members(rows: Rows, most: int, noise: Noise) -> NDArray[np.int64]:
    """The rows of each unit, at most so many: which ones is chosen at random, once. FREE where there are fewer."""
    count = len(rows)
    if rows.unit.column is None:
        return np.arange(count, dtype=np.int64)[:, None]
    order = noise.permutation(count)
    order = order[np.argsort(rows.units[order], kind="stable")]
    sorted_units = rows.units[order]
    first = np.searchsorted(sorted_units, np.arange(rows.unit_count))
    rank = np.arange(count) - first[sorted_units]
    chosen = rank < most
    out = np.full((rows.unit_count, most), FREE, dtype=np.int64)
    out[sorted_units[chosen], rank[chosen]] = order[chosen]
    return out


def applied(parameters: Any, gradients: list[torch.Tensor]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
