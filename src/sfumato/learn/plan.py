"""DP-SGD as a plan: public fields, what they cost, and the training that they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from .. import checks, events
from ..checks import Exact
from ..errors import ArgumentError
from ..noise import SeededBits
from ..plan import Plan, Run
from ..questions import COARSE, PRICE, REACH
from ..record import LIVE, record
from ..rows import Rows
from ..schema import Column, Table
from ..units import Unit, rows_or_users
from . import checkpoints
from .aside import Aside
from .blurring import Blur
from .chance import apart
from .clipping import Adaptive, Clipping
from .engine import Engine
from .features import Features, Target
from .live import Loss, Model, Optimiser
from .sampling import Sampling
from .trained import Trained

_EXAMPLES = 16  # made-up records: enough to look at a model with


@record("plan-sgd/1")
@dataclass(frozen=True, kw_only=True)
class SGD(Plan[Rows, dict[str, Any]]):
    """Train a model by DP-SGD: every step releases the clipped sum of the drawn units' gradients, with Gaussian noise.

    Guarantee: `times` steps of the sampled Gaussian mechanism of `multiplier`, at the rate of `sampling`, for units
    that
        are each clipped to `clip`; (epsilon, delta) by the accountant, fixed in advance.
    Needs: a model whose loss for a record depends on that record alone. It is checked on made-up records.
    Paper: Abadi et al. 2016; Bu, Wang, Zha, Karypis 2022 (one backward pass); Mironov 2017, Koskela et al. 2020
    (price).

    Proof sketch. Given the parameters, a step is Gaussian noise on a sum in which a unit's part is at most clip (1 +
    eta): engine.py for the sum as floats, sampling.py for who takes part and where they sit, blurring.py for grid and
    noise. The parameters of the next step are post-processing of the noisy sums so far, so steps compose adaptively.
    Optimiser, schedule, averaging and stopping read nothing else; the divisor is the expected batch, never what was
    drawn.

    protects    the unit; with a column of users, all rows of a user are clipped together
    per_unit    at most so many rows of a user are read in a step
    micro       units of one pass through the model: what memory allows
    eta         the share of the clip norm that is set aside for float errors
    count       the standard deviation of the noise on the count of records that are not clipped, in records; None
                leaves the count out. Adaptive clipping needs it
    noise       "exact" on a grid from the secure source, or "fast": floats from torch, named in the receipt
    strict      per-record gradients as whole numbers: their norms are exact, and nothing is set aside
    average     the decay of a running average of the weights, which is what is released then
    draws       steps that are paid for at once
    """

    protects: Unit = field(metadata=PRICE)
    model: Model = field(metadata=LIVE)
    loss: Loss = field(metadata=LIVE)
    inputs: tuple[Features, ...]
    target: Target
    reads: Mapping[str, Column]
    sampling: Sampling
    times: int = field(metadata=PRICE)
    clip: Clipping
    multiplier: Exact = field(metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)  # checked: never left out
    optimiser: Optimiser
    schedule: Callable[[torch.optim.Optimizer], Any] | None = field(default=None, metadata=LIVE)
    per_unit: int = field(default=1, metadata=REACH)
    micro: int = field(default=64, metadata=PRICE)
    eta: Exact = field(default=Fraction(1, 64), metadata=COARSE)
    count: Exact = field(default=None, metadata=PRICE)
    noise: Literal["exact", "fast"] = field(default="exact", metadata=PRICE)
    strict: bool = field(default=False, metadata=PRICE)
    average: Exact = field(default=None, metadata=COARSE)
    cast: Literal["bfloat16"] | None = field(default=None, metadata=PRICE)
    draws: int = field(default=1, metadata=PRICE)

    def __post_init__(self) -> None:
        rows_or_users(self.protects)
        if self.protects.group > 1:
            raise checks.refuse("unit", self.protects, "group = 1: sampled groups have no price here")
        for name, kind in (("model", Model), ("loss", Loss), ("target", Target), ("sampling", Sampling)):
            checks.instance(getattr(self, name), kind, name, f"a learn.{kind.__name__}")
        checks.instance(self.clip, Clipping, "clip", "a number, or a rule such as learn.Flat(norm=1)")
        checks.instance(self.optimiser, Optimiser, "optimiser", "learn.optimiser('SGD', lr=0.1)")
        if (
            not isinstance(self.inputs, tuple)
            or not self.inputs
            or not all(isinstance(x, Features) for x in self.inputs)
        ):
            raise checks.refuse("inputs", self.inputs, "at least one learn.Features")
        object.__setattr__(self, "reads", dict(self.reads))
        for name, most in (("times", 10**7), ("per_unit", 10**4), ("micro", 2**16), ("draws", 10**6)):
            object.__setattr__(self, name, checks.whole(getattr(self, name), name, most=most))
        object.__setattr__(self, "multiplier", checks.positive(self.multiplier, "multiplier"))
        object.__setattr__(self, "delta", checks.delta(self.delta))
        object.__setattr__(self, "eta", checks.bound(self.eta, "eta"))
        checks.one_of(self.noise, "noise", ("exact", "fast"))
        checks.flag(self.strict, "strict")
        if self.strict and self.noise != "exact":
            raise ArgumentError("strict is not allowed with fast noise: exact sums would get inexact noise.")
        if self.count is not None:
            object.__setattr__(self, "count", checks.positive(self.count, "count"))
        elif isinstance(self.clip, Adaptive):
            raise ArgumentError("count is missing: adaptive clipping follows the noisy count of unclipped records.")
        if self.average is not None:
            average = checks.positive(self.average, "average")
            if average >= 1:
                raise checks.refuse("average", self.average, "a decay above 0 and below 1")
            object.__setattr__(self, "average", average)
        if self.cast is not None:
            checks.one_of(self.cast, "cast", ("bfloat16",))
        if self.protects.column is None and self.per_unit != 1:
            raise checks.refuse("per_unit", self.per_unit, "1 where the unit is a row")
        for feature in self.inputs:
            feature.check(self.table)
        self.target.check(self.table)
        _ = self.blur, self.event

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def step(self) -> events.Event:
        """What one step costs."""
        return self.sampling.step(events.Gaussian(multiplier=self.multiplier, relation=self.unit.change))

    @property
    def event(self) -> events.Event:
        return events.Repeat(self.step, self.times)

    @property
    def steps(self) -> int:
        return self.times

    @property
    def block(self) -> int:
        return self.draws

    @property
    def grade(self) -> str:
        return "exact" if self.noise == "exact" else "float"

    @property
    def needs_whole(self) -> bool:
        return True

    @property
    def columns(self) -> dict[str, Column]:
        return dict(self.reads)

    @cached_property
    def table(self) -> Table:
        """The columns that are read, as a table."""
        return Table(dict(self.reads))

    @cached_property
    def blur(self) -> Blur:
        """The noise of a step."""
        return Blur(
            parameters=sum(each.numel() for each in self.model.original.parameters() if each.requires_grad),
            sensitivity=Fraction(1) if self.strict else 1 + self.eta,
            multiplier=self.multiplier,
            count=self.count,
            changes=2 if self.unit.change == "replace" else 1,
            whole=self.strict,
        )

    @property
    def arguments(self) -> dict[str, Features]:
        """The inputs by the model's arguments, in their order."""
        return {f"argument {place}": each for place, each in enumerate(self.inputs)}

    def examples(self) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Made-up records, from the schema alone; the same every time."""
        return made_up(self.inputs, self.target, self.table)

    def engine(self, model: torch.nn.Module) -> Engine:
        """The engine for this plan's model, or a copy of it."""
        cast = torch.bfloat16 if self.cast == "bfloat16" else None
        return Engine(model, self.loss.call, examples=self.examples(), rows_per_unit=self.per_unit, cast=cast)

    @property
    def divisor(self) -> float:
        """What the noisy sum is divided by: the expected number of units in a batch."""
        return float(self.sampling.expected)

    def watched(self, **aside: Any) -> SGD:
        """The same plan with something to look at beside it, or a place for checkpoints: see `Aside`. None of it reads
        private data, and none of it changes the plan."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__["_aside"] = beside = Aside(**aside)
        if beside.checkpoint is not None:
            checkpoints.refuse_other(Path(beside.checkpoint), plan=self.hash)
        return other

    @property
    def aside(self) -> Aside:
        chosen: Aside = self.__dict__.get("_aside") or Aside()
        return chosen

    def _run(self, rows: Rows, run: Run) -> dict[str, Any]:
        from .training import train

        return train(self, rows, run.steps_of(self))

    def _loop(self, rows: Rows, run: Run) -> Any:
        from .looping import Loop

        self.model.check()
        return Loop(self, rows, run)

    def finish(self, raw: dict[str, Any]) -> Trained:
        return Trained(self.model, raw)

    def expected_work(self) -> Mapping[str, str]:
        """Time and memory, measured once on a micro-batch of made-up records."""
        from .forecasting import forecast

        if "_work" not in self.__dict__:
            self.__dict__["_work"] = forecast(self).in_words()
        work: Mapping[str, str] = self.__dict__["_work"]
        return work

    def explain(self) -> list[str]:
        blur, norm = self.blur, float(self.clip.norm)
        named = "exact Gaussian noise" if self.noise == "exact" else "float-grade Gaussian noise (not exact)"
        who = "user" if self.unit.column else "record"
        doubt = "exactly" if self.strict else f"with {float(self.eta):.3%} more for float errors"
        steps = [
            f"train {type(self.model.original).__name__} ({blur.parameters:,} parameters) for {self.times} steps; "
            + self.sampling.in_words(),
            f"clip each {who}'s gradient: {type(self.clip).__name__}, norm {norm:g}, {doubt}",
            f"add {named} of standard deviation {blur.deviation(norm):.4g} to each coordinate of the sum, "
            f"and divide by {self.divisor:.6g}, the expected batch",
            f"update by {self.optimiser.name}",
        ]
        if self.count is not None:
            steps.insert(3, f"count the {who}s that were not clipped, with noise of {float(self.count):.4g}")
        if self.average is not None:
            steps.append(f"release the running average of the weights (decay {float(self.average):g})")
        return steps

    @classmethod
    def sample(cls) -> SGD:
        from .samples import one_step

        return one_step()


def made_up(
    inputs: tuple[Features, ...], target: Target, table: Table, count: int = _EXAMPLES
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """Made-up inputs and targets, from the schema alone; the same every time."""
    words = SeededBits(1).words
    return tuple(each.made_up(table, count, words) for each in inputs), target.made_up(table, count, words)


def check_model(plan: SGD) -> None:
    """Refuse a model that mixes records, or that the optimiser cannot update, before anything is paid for."""
    from .checking import check
    from .training import try_updates

    try_updates(plan)
    with apart():
        findings = check(plan.engine(plan.model.fresh()), clipping=plan.clip)
    for warning in findings.warnings:
        warnings.warn(str(warning), UserWarning, stacklevel=3)
