"""Faults of private training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.audit import seams, surface

from ..mutant import Shelf, attacks, plant, swap, swap_everywhere

FAULTS = Shelf("training", needs="torch")


@FAULTS.fault("records are not clipped", by=attacks("T2"))
def not_clipped() -> None:
    from sfumato.learn import clipping

    def skip_clipping(factor: Any) -> Any:
        return lambda self, norms, most: factor(self, norms, 2.0**60)

    swap(clipping.Clipping, "factor", skip_clipping)


@FAULTS.fault("records are clipped to twice the norm", by=attacks("T2"))
def twice_the_norm() -> None:
    from sfumato.learn import clipping

    swap(clipping.Clipping, "factor", lambda factor: lambda self, norms, most: factor(self, norms, 2 * most))


@FAULTS.fault("micro-batches are clipped, not records", by=attacks("T2"))
def micro_batches() -> None:
    from sfumato.learn import stepping

    from ...mutants.training import ClipsMicroBatches

    swap(stepping.Batch, "add", lambda _: vars(ClipsMicroBatches.kind)["add"])


@FAULTS.fault("noise at the first step only", by=attacks("T1", "T2"))
def first_step() -> None:
    from sfumato.learn import blurring

    def blur_first_step_only(released: Any) -> Callable[..., Any]:
        seen: list[int] = []

        def later(self: Any, noise: Any, divisor: float) -> Any:
            seen.append(1)
            return released(self, noise if len(seen) == 1 else 0 * noise, divisor)

        return later

    swap(blurring.StepSum, "released", blur_first_step_only)


@FAULTS.fault("the divisor is what was drawn", by=attacks("T2"))
def actual() -> None:
    """The sum is divided by how many came."""
    from sfumato.learn import stepping

    def counting(add: Any) -> Any:
        def add_and_count(self: Any, done: Any, present: Any) -> None:
            add(self, done, present)
            self.came = getattr(self, "came", 0) + int(present.sum())

        return add_and_count

    def divided(released: Any) -> Any:
        def by_them(self: Any) -> Any:
            return [each * (surface.step_of(self).stepper.plan.divisor / max(self.came, 1)) for each in released(self)]

        return by_them

    swap(stepping.Batch, "add", counting)
    swap(stepping.Batch, "released", divided)


@FAULTS.fault("BatchNorm is let in", by=attacks("T2"))
def batch_norm() -> None:
    from sfumato.learn import checking, front

    assert front is not None  # which has taken one of them by name
    unwatched()
    swap_everywhere(checking.check, lambda _: lambda engine, *, clipping: checking.Findings(()))
    swap_everywhere(checking.check_parts, lambda _: lambda model: None)


@FAULTS.fault("records are not followed through a step", by=attacks("T5"))
def unwatched() -> None:
    """Row i of a batch is taken for record i."""
    from sfumato.learn.owners import watching

    swap(watching.OwnerWatch, "settle", lambda _: lambda self, losses: self.trace)
    swap_everywhere(watching.same, lambda _: lambda trace, surveyed: None)


@FAULTS.fault("every part of a model is put into train mode", by=attacks("T6"))
def train_mode() -> None:
    from sfumato.learn import stepping

    def switch_to_train_mode(step: Any) -> Any:
        def whole(self: Any) -> Any:
            self.model.train()
            return step(self)

        return whole

    swap(stepping.Stepper, "step", switch_to_train_mode)


@FAULTS.fault("half the noise of a step", by=attacks("T2"))
def half_the_noise() -> None:
    from sfumato.learn import blurring

    swap(blurring.StepSum, "released", lambda one: lambda self, noise, divisor: one(self, noise // 2, divisor))


@FAULTS.fault("batches of a shuffled order", by=attacks("T1"))
def shuffled() -> None:
    from sfumato.learn import sampling

    from ...mutants.training import ShuffledSampling

    waiting: list[int] = []

    def draw(self: Any, units: int, noise: Any) -> Any:
        object.__setattr__(self, "waiting", waiting)
        return vars(ShuffledSampling)["draw"](self, units, noise)

    swap(sampling.Poisson, "draw", lambda _: draw)


@FAULTS.fault("who is drawn sits one after the other", by=attacks("T1"))
def packed() -> None:
    from sfumato.learn import sampling

    def close_ranks(draw: Any) -> Any:
        def close(self: Any, units: int, noise: Any) -> Any:
            slots = draw(self, units, noise)
            return np.sort(slots)[::-1].copy()  # whoever is there comes first; free seats are -1

        return close

    swap(sampling.Poisson, "draw", close_ranks)


@FAULTS.fault("the count of unclipped records is free", by=attacks("T2"))
def free_count() -> None:
    from sfumato.learn import blurring

    swap(blurring.Blur, "ratio_squared", lambda _: lambda self: 1 / self.multiplier**2)


@FAULTS.fault("who is replaced moves a sum once", by=attacks("T2"))
def once() -> None:
    from sfumato.learn import plan

    swap(plan.SGD, "blur", lambda blur: lambda self: replace(blur(self), changes=1))


@FAULTS.fault("every row of a user is clipped by itself", by=attacks("T2"))
def rows_for_users() -> None:
    from sfumato.learn import stepping

    def take_rows_for_users(_: Any) -> Any:
        return lambda rows, most, noise: np.pad(
            np.arange(len(rows))[:, None], ((0, 0), (0, most - 1)), constant_values=-1
        )

    swap_everywhere(stepping.members, take_rows_for_users)


@FAULTS.fault("steps are counted, and not drawn in the ledger", by=attacks("B4"))
def free_steps() -> None:
    plant(seams.STEPS_DRAWN, lambda _: seams.STEPS_COUNTED.value())
