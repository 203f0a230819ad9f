"""Our private step, with fast and with exact noise, in a process of its own (see learn_jobs.py).

A step is what a training's step does with its one micro-batch: the engine's clipped sums, the noise and the division
as `sfumato.learn.blurring` and `.stepping` do them, and the optimiser.
"""

import time
from fractions import Fraction
from functools import partial

import learn_jobs
import torch
from learn_jobs import LR, Step, learn_models

from sfumato.learn.blurring import Blur, Drawn, StepSum
from sfumato.learn.clipping import Flat
from sfumato.learn.engine import ETA, Engine
from sfumato.noise import Noise, SecureBits

CLIP, MULTIPLIER = 1.0, 1.0
Tensors = list[torch.Tensor]


class Private:
    """A model, one batch, and steps on it."""

    def __init__(self, name: str) -> None:
        model, (inputs, target) = learn_models.CASES[name].made()
        self.inputs, self.target = (inputs,), target
        self.engine = Engine(model, learn_models.losses, examples=((inputs[:2],), target[:2]))
        self.optimiser = torch.optim.SGD(self.engine.parameters, lr=LR)
        self.blur = Blur(
            parameters=sum(each.numel() for each in self.engine.parameters),
            sensitivity=1 + Fraction(ETA),
            multiplier=Fraction(MULTIPLIER),
            count=None,
            changes=1,
        )
        self.deviation = self.blur.deviation(CLIP)
        self.noise = Noise(SecureBits())
        self.beside: Drawn | None = None

    def sums(self) -> Tensors:
        return self.engine.sums(self.inputs, self.target, clipping=Flat(norm=CLIP))

    def fast(self, sums: Tensors) -> Tensors:
        return [(each + torch.normal(0.0, self.deviation, each.shape)).div_(len(self.target)) for each in sums]

    def exact(self, sums: Tensors) -> Tensors:
        added = StepSum(self.engine.parameters, self.blur.exponent(CLIP))
        added.add(sums)
        drawn = self.noise.draw(self.blur.law(CLIP), self.blur.parameters)
        return added.released(drawn, float(len(self.target)))

    def noisy(self, way: str, sums: Tensors) -> Tensors:
        made = self.fast(sums) if way == "fast" else self.exact(sums)
        return [each.to(parameter.dtype) for each, parameter in zip(made, self.engine.parameters, strict=True)]

    def applied(self, gradients: Tensors) -> None:
        for parameter, gradient in zip(self.engine.parameters, gradients, strict=True):
            parameter.grad = gradient.to(parameter.dtype)
        self.optimiser.step()
        self.optimiser.zero_grad()

    def step_fast(self) -> None:
        self.applied(self.noisy("fast", self.sums()))

    def step_exact(self) -> None:
        self.applied(self.noisy("exact", self.sums()))

    def step_beside(self) -> None:
        """Exact noise drawn in a thread of its own while the model runs."""
        if self.beside is None:
            self.beside = Drawn()
        coming = self.beside.begin(self.noise, self.blur.law(CLIP), self.blur.parameters)
        added = StepSum(self.engine.parameters, self.blur.exponent(CLIP))
        added.add(self.sums())
        self.applied(added.released(coming.result(), float(len(self.target))))


def fast(name: str) -> Step:
    return Private(name).step_fast


def exact(name: str) -> Step:
    return Private(name).step_exact


class Server(learn_jobs.Server):
    """And two figures about noise that only we have."""

    _known: tuple[str, Private, Tensors] | None = None

    def forget(self) -> dict:
        self._known = None
        return super().forget()

    def blurred(self, model: str, least: float) -> dict:
        """CPU seconds of the noise alone, from the sums to the gradients, fast and exact."""
        made, sums = self._kept(model)
        return {way: learn_jobs.mean_of(partial(made.noisy, way, sums), least) for way in ("fast", "exact")}

    def beside(self, model: str, least: float) -> dict:
        """CPU seconds of the main thread alone, for a step with fast noise, and with exact noise beside it."""
        made, _ = self._kept(model)
        steps = {"fast": made.step_fast, "beside": made.step_beside}
        return {way: learn_jobs.mean_of(step, least, time.thread_time) for way, step in steps.items()}

    def _kept(self, model: str) -> tuple[Private, Tensors]:
        if self._known is None or self._known[0] != model:
            made = Private(model)
            self._known = model, made, made.sums()
            made.noisy("fast", made.sums())
            made.step_beside()
        return self._known[1], self._known[2]


if __name__ == "__main__":
    learn_jobs.serve(Server({"fast": fast, "exact": exact}))
