"""The training loop: pay for a block of steps, run it, write a checkpoint; go on from where it was stopped."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..accounting import approximate
from ..errors import ArgumentError
from ..events import Repeat
from ..plan import Run
from ..rows import Rows
from . import checkpoints
from .aside import Progress, StepClock, measured
from .stepping import Stepper, applied

if TYPE_CHECKING:
    from .plan import SGD

_REHEARSED = 3  # steps of a rehearsal: enough to see that it runs


class _Course:
    """A model in training: all that a checkpoint keeps."""

    def __init__(self, plan: SGD) -> None:
        self.plan = plan
        self.model = plan.model.fresh()
        self.parameters = [each for each in self.model.parameters() if each.requires_grad]
        self.optimiser = plan.optimiser.build(self.parameters)
        self.schedule = None if plan.schedule is None else plan.schedule(self.optimiser)
        self.done = 0
        self.norm = float(plan.clip.norm)
        self.unclipped: list[float] = []
        named = self.model.named_parameters(remove_duplicate=False)
        self._learnt = {name for name, each in named if each.requires_grad}
        state = self.model.state_dict()
        self._fixed = copy.deepcopy({name: each for name, each in state.items() if name not in self._learnt})
        decay = plan.average
        self.average = None if decay is None else {name: each.clone() for name, each in self.weights().items()}

    def update(self, gradients: list[torch.Tensor]) -> None:
        applied(self.parameters, gradients)
        self.optimiser.step()
        self.optimiser.zero_grad()
        if self.schedule is not None:
            self.schedule.step()
        self.done += 1
        if self.average is not None:
            keep = min(float(self.plan.average), self.done / (self.done + 9))  # early steps are forgotten sooner
            for name, weight in self.weights().items():
                if name in self._learnt:
                    self.average[name].mul_(keep).add_(weight, alpha=1 - keep)

    def weights(self) -> dict[str, Any]:
        """What leaves: the parameters that noisy gradients moved. All else (buffers, frozen weights) is as it came."""
        state = self.model.state_dict()
        return {name: state[name] if name in self._learnt else self._fixed[name] for name in state}

    def state(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "norm": self.norm,
            "unclipped": self.unclipped,
            "model": self.weights(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "average": self.average,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.done, self.norm, self.unclipped = state["done"], state["norm"], list(state["unclipped"])
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.average = state["average"]

    def raw(self) -> dict[str, Any]:
        state = self.weights() if self.average is None else self.average
        plain = {name: (each.float() if each.dtype == torch.bfloat16 else each) for name, each in state.items()}
        weights = {name: each.detach().contiguous().numpy() for name, each in plain.items()}
        return {"state": weights, "steps": self.done, "norm": self.norm, "unclipped": self.unclipped}


def try_updates(plan: SGD) -> None:
    """Refuse an optimiser or schedule that cannot go on from gradients alone, before anything is paid for."""
    try:
        course = _Course(plan)
        course.update([torch.zeros_like(each) for each in course.parameters])
    except (TypeError, ValueError, RuntimeError, AttributeError) as problem:  # no word about data: there is none yet
        raise ArgumentError(
            f"optimiser or schedule is not allowed: it cannot update this model from its gradients alone: {problem}"
        ) from None


def train(plan: SGD, rows: Rows, run: Run) -> dict[str, Any]:
    """Run the steps that are left, and release the weights."""
    course = _Course(plan)
    path = None if plan.aside.checkpoint is None or run.rehearsal else Path(plan.aside.checkpoint)
    receipt = getattr(getattr(run, "receipt", None), "id", "")
    if path is not None and (saved := checkpoints.load(path, plan=plan.hash, receipt=receipt)) is not None:
        course.load(saved)
    if run.left:
        stepper = Stepper(plan, rows, run.noise, course.model, rehearsal=run.rehearsal)
        try:
            _steps(plan, course, stepper, run, path, receipt)
        finally:
            stepper.close()
    return course.raw()


def _steps(plan: SGD, course: _Course, stepper: Stepper, run: Run, path: Path | None, receipt: str) -> None:
    stepper.norm = course.norm
    watch, seen, last = StepClock(), list[Progress](), plan.steps
    while run.left:
        block = min(plan.block, run.left, *([_REHEARSED - course.done] if run.rehearsal else []))
        if block <= 0:
            break
        run.draw(block)
        for _ in range(block):
            course.update(stepper.step())
            course.norm = stepper.norm
            if stepper.unclipped is not None:
                course.unclipped.append(stepper.unclipped)
            seen.append(_look(plan, course, stepper, run, watch, last))
            plan.aside.tell(seen[-1])
        if path is not None:
            checkpoints.save(path, plan=plan.hash, receipt=receipt, state=course.state())
        if plan.aside.stop is not None and plan.aside.stop(seen):
            break


def _look(plan: SGD, course: _Course, stepper: Stepper, run: Run, watch: StepClock, last: int) -> Progress:
    """How it stands; with measures on public data every so often."""
    seconds = watch.left(last - course.done)
    aside, step = plan.aside, course.done
    every = aside.every or max(last // 20, 1)
    loss = accuracy = epsilon = None
    if step % every == 0 or step == last:
        if aside.public is not None:
            loss, accuracy = measured(course.model, plan.loss.call, aside.public)
        if aside.progress or aside.stop is not None:
            drawn = max(run.drawn, step)
            epsilon = float(approximate.epsilon(Repeat(plan.step, min(drawn, last)), plan.delta))
    return Progress(step, last, epsilon, loss, accuracy, stepper.norm, stepper.unclipped, stepper.signal, seconds)
