"""The user's own loop: three lines change.

    with curator.supervise(plan) as run:              # instead of nothing
        for batch in run.batches():                   # instead of a DataLoader
            for x, y in batch:                        # as much at once as memory allows
                batch.backward(loss(model(x), y))     # instead of .backward(): one loss for each record
            optimizer.step()

A batch is drawn from the secure source and paid for before it is given out; after the last of its parts `.grad` holds
the noisy gradient, and any optimiser of torch takes it from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ..errors import PlanError
from ..plan import Run
from ..rows import Rows
from . import recurrent
from .owners import OwnerWatch
from .stepping import Batch, MicroBatch, Stepper, applied

if TYPE_CHECKING:
    from .plan import SGD


class LoopBatch:
    """One step's batch: iterate over its parts, and call `backward` once for each."""

    def __init__(self, stepper: Stepper, calls: Any, watch: OwnerWatch) -> None:
        self._stepper, self._calls, self._watch = stepper, calls, watch
        self._batch: Batch = stepper.batch()
        self._part: MicroBatch | None = None
        self._open = True

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        for part in self._batch.parts:
            if self._part is not None:
                raise PlanError("a part of this batch was given out and never came back: call batch.backward(losses)")
            self._part = part
            self._watch.open((*part.inputs, part.target), len(part.present))
            yield (*part.inputs, part.target)
        if self._part is not None or self._batch.left:
            raise PlanError("a part of this batch was given out and never came back: call batch.backward(losses)")

    def backward(self, losses: torch.Tensor) -> None:
        """From one loss for each record of the part to its clipped sum; after the last part, to noisy gradients."""
        part = self._part
        if part is None or not self._open:
            raise PlanError("backward is called once for each part of a batch, while the batch is open")
        losses = losses.flatten(1).mean(1) if losses.dim() > 1 else losses
        if losses.dim() != 1 or len(losses) != len(part.target):
            raise PlanError("backward takes one loss for each record: use reduction='none'")
        self._watch.close()
        self._watch.settle(losses)
        done = self._stepper.engine.backward_from(losses, part.weights, self._calls.taken())
        self._batch.add(done, part.present)
        self._part = None
        if not self._batch.left:
            applied(self._stepper.engine.parameters, self._batch.released())
            self._open = False

    @property
    def whole(self) -> bool:
        """Did every part come back?"""
        return not self._open


class Loop:
    """What `curator.supervise(plan)` gives for a training plan."""

    def __init__(self, plan: SGD, rows: Rows, run: Run) -> None:
        if plan.micro == 1:
            raise PlanError("micro is 1, and a loop of your own needs at least 2: one record alone makes another graph")
        self._plan, self._run = plan, run
        self._stepper: Stepper | None = Stepper(plan, rows, run.noise, plan.model.original)
        self._watch = OwnerWatch(strict=False)

    @property
    def left(self) -> int:
        """How many steps are left."""
        return self._run.left

    @property
    def norm(self) -> float:
        """The clip norm now."""
        return self._live.norm

    @property
    def unclipped(self) -> float | None:
        """The noisy share of unclipped records in the last batch, where they are counted."""
        return self._live.unclipped

    @property
    def _live(self) -> Stepper:
        if self._stepper is None:
            raise PlanError("this block is over: the data is closed again")
        return self._stepper

    def batches(self) -> Iterator[LoopBatch]:
        """One batch for each step, paid for before it is given out. Leaving early frees the steps that are left: this
        is sound as long as the decision reads released values (the weights, measures on public data) alone."""
        stepper = self._live
        with recurrent.recorded(stepper.model) as calls:
            while self._run.left:
                block = min(self._plan.block, self._run.left)
                self._run.draw(block)
                for _ in range(block):
                    batch = LoopBatch(stepper, calls, self._watch)
                    yield batch
                    if not batch.whole:
                        raise PlanError("a batch was given out and not summed: iterate over it, and call backward")
                    if stepper is not self._stepper:
                        return

    def close(self) -> None:
        """Let go of the data."""
        self._watch.close()
        if self._stepper is not None:
            self._stepper.close()
            self._stepper = None
