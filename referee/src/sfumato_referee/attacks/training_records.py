"""T5, records that move inside a batch, and T6, buffers that remember the records: one step of training from within.

A model may look harmless while its weights are new: a router that is still 0 sorts nobody. So every model here is tried
twice. As it is: no plan may take it. And asleep when the plan is made, awake at the step: what is checked before
anything is paid for has passed then, and only what is checked at the step itself is left. Either the step ends without
a number, or one person moves its sum by no more than the noise is made for.

For T6 a model keeps a running mean of what it sees, in a buffer. Whoever follows the advice, and puts that part into
eval mode, trains a model whose buffers are the same afterwards, and whose parts are in the modes they came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from sfumato.audit.silent import Silent
from sfumato.errors import PlanError
from sfumato.learn import training as training_loop
from sfumato.learn.stepping import Stepper
from sfumato.noise import SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.units import Unit

from .training import PEOPLE, Line, people, rows_of, summed, training
from .verdict import Verdict

Steps = Callable[..., Stepper]
_WIDTH = 8


class Moving(torch.nn.Module):
    """A line behind something that moves records, once it is awake."""

    def __init__(self, width: int, move: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], still: Any) -> None:
        super().__init__()
        self.line, self.router = Line(width), torch.nn.Parameter(torch.zeros(width))
        self.move, self.still = move, still
        self.awake = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.line((self.move if self.awake else self.still)(x, self.router))
        return outputs + x @ self.router


def _sorted(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    return x[(x @ router).argsort(stable=True)]


def _scattered(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x).index_copy(0, (x @ router).argsort(stable=True), x)


def _gathered(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    return x.gather(0, (x @ router).argsort(stable=True)[:, None].expand_as(x))


def _gated(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    """A mean over the batch, behind a gate that is still closed, and without a graph that tells of it."""
    with torch.no_grad():
        return x + router.sum() * x.mean(0)


def _in_place(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    return x[torch.arange(len(x))]


def _untouched(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x + router.sum() * x


MOVING: Mapping[str, tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor]]] = {
    "experts that sort by a router": (_sorted, _in_place),
    "rows written where a router says": (_scattered, _in_place),
    "rows gathered by a router": (_gathered, _in_place),
    "a mean behind a gate": (_gated, _untouched),
}
"""What each does, and the same without moving anybody."""


def moving(stepper: Steps = Stepper, *, seeds: int = 3) -> Verdict:
    """T5, on the library's own steps, or on what a planted bug makes of them."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    for name, (move, still) in MOVING.items():
        if _accepted(Moving(_WIDTH, move, still)):
            problems.append(f"a plan takes {name}")
        asleep = Moving(_WIDTH, move, still)
        asleep.awake = False
        plan = training(asleep, _WIDTH, micro=PEOPLE)
        allowed = plan.blur.deviation(1.0) / float(plan.multiplier)
        moved = max(_moved(plan, stepper, seed) for seed in range(seeds))
        figures[f"{name}: one person moves the sum by, as a share of what the noise is for"] = moved / allowed
        if moved > allowed:
            problems.append(f"{name}: one person moves the sum by {moved / allowed:.3g} times what the noise is for")
    text = (
        f"Records move inside a batch: {'; '.join(problems)}."
        if problems
        else "Models that move records inside a batch are refused, whatever their weights are; where one began to move "
        "them at a step, the step ended without a number."
    )
    return Verdict("T5", bool(problems), text, figures)


def moving_control() -> Verdict:
    """Steps that follow nobody's records must be found out."""
    from ..mutants.training import Unwatched

    return moving(Unwatched)


def _accepted(model: torch.nn.Module) -> bool:
    try:
        training(model, _WIDTH)
    except PlanError:
        return False
    return True


def _moved(plan: Any, stepper: Steps, seed: int) -> float:
    """How far one person moves the sum of a step for which the model woke up; 0 where the step gives nothing."""
    sums = []
    for canary in (True, False):
        model: Any = plan.model.fresh()
        steps = stepper(plan, _leaning(canary), Silent(SeededBits(seed)), model)
        model.awake = True
        with torch.no_grad():
            model.router.fill_(1.0)  # a step later
        try:
            sums.append(summed(steps))
        except PlanError:
            return 0.0
        finally:
            steps.close()
    return float(np.linalg.norm(sums[0] - sums[1])) * PEOPLE


def _leaning(canary: bool) -> Rows:
    """People who each look another way, with targets that lean to one side and the other in turn; and the canary, whom
    a sort puts behind all of them, where a free seat comes first: everybody else gets a neighbour's target."""
    axes = np.eye(_WIDTH)
    ordinary = [(axes[i] * (8 + i) / 16, 64.0 * (-1) ** i, str(i)) for i in range(PEOPLE - 1)]
    return rows_of(_WIDTH, Unit(), [*ordinary, *[(axes[-1], 64.0, "canary")] * canary])


class Remembering(torch.nn.Module):
    """Keeps a running mean of what it sees while it is in train mode, as many layers do; and notes its mode."""

    mean: torch.Tensor
    unsaved: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("unsaved", torch.zeros(width), persistent=False)
        self.modes: set[bool] = set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.modes.add(self.training)
        if self.training:
            for buffer in (self.mean, self.unsaved):
                buffer.mul_(0.5).add_(0.5 * x.detach().mean(0))
        return x


def remembering(stepper: Steps = Stepper, *, steps: int = 3) -> Verdict:
    """T6, on the library's own steps and trainings, or on what a planted bug makes of the steps."""
    problems: list[str] = []
    figures: dict[str, float] = {}
    if _accepted(torch.nn.Sequential(Remembering(_WIDTH), Line(_WIDTH))):
        problems.append("a plan takes a model that keeps a running mean of the records")
    advised = torch.nn.Sequential(Remembering(_WIDTH), Line(_WIDTH))
    advised[0].eval()
    plan = training(advised, _WIDTH, steps=steps)
    rows = people(_WIDTH, PEOPLE - 1, True)
    model: Any = plan.model.fresh()
    live = stepper(plan, rows, Silent(SeededBits(1)), model)
    try:
        for _ in range(steps):
            live.step()
    except PlanError:
        pass  # the step ended without a number; what it left behind is looked at
    finally:
        live.close()
    left = max(float(each.abs().max()) for each in model.buffers())
    figures["what a buffer holds after steps, 0 before"] = left
    if left:
        problems.append(f"a buffer holds {left:.3g} after the steps, and 0 before: the records' mean, without noise")
    if True in model[0].modes:
        problems.append("a part that came in eval mode ran in train mode")
    problems += _released(plan, rows, steps)
    text = (
        f"A model remembers the records: {'; '.join(problems)}."
        if problems
        else "Whoever follows the advice on a running mean gets it back as it was; parts stay in their modes."
    )
    return Verdict("T6", bool(problems), text, figures)


def _released(plan: Any, rows: Any, steps: int) -> list[str]:
    """The same through the training loop itself, which looks at public data in between."""
    public = (torch.ones(2, _WIDTH), torch.ones(2))
    watched = plan.watched(public=public, every=1)
    try:
        raw = training_loop.train(watched, rows, Run(Silent(SeededBits(1)), steps=steps))
    except PlanError:
        return ["a training whose parts keep their modes ends in a failure"]
    return ["a buffer is released that steps have changed"] if np.any(raw["state"]["0.mean"]) else []


def remembering_control() -> Verdict:
    """Steps that put every part into train mode must be found out."""
    from ..mutants.training import EveryPartInTrainMode

    return remembering(EveryPartInTrainMode)
