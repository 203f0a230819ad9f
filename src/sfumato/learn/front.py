"""The front of private training: `sgd` makes a plan from what people want to say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Protocol

import torch

from .. import checks, events
from ..accounting.calibrate import calibrate
from ..errors import ArgumentError, PlanError
from ..schema import Schema, Table
from ..units import Unit
from .chance import apart
from .checking import check, check_parts
from .clipping import Adaptive, Clipping, Flat
from .engine import Engine
from .features import Features, Target
from .live import Loss, Model, Optimiser, optimiser
from .plan import SGD, check_model, made_up
from .sampling import Fixed, Poisson, Sampling
from .sizing import micro_batch

_LATE = 1024  # the part of delta that batches which are too large for their slots may take: 1 / so many
_BLOCKS = 200  # a training is paid for in about so many draws


class Described(Protocol):
    """Anything that says what its data looks like, such as a Private."""

    unit: Unit
    schema: Schema


def sgd(
    model: torch.nn.Module,
    loss: Any,
    *,
    data: Described,
    inputs: Any,
    target: str | Target,
    clip: Any,
    delta: Any,
    epsilon: Any = None,
    multiplier: Any = None,
    rate: Any = None,
    batch_size: int | None = None,
    epochs: Any = None,
    steps: int | None = None,
    population: int | None = None,
    sampling: Literal["poisson", "fixed"] = "poisson",
    optimiser: Optimiser | None = None,
    schedule: Callable[[torch.optim.Optimizer], Any] | None = None,
    per_unit: int = 1,
    count: Any = None,
    noise: Literal["exact", "fast"] = "exact",
    strict: bool = False,
    average: Any = None,
    cast: Literal["bfloat16"] | None = None,
    micro: int | None = None,
    draws: int | None = None,
) -> SGD:
    """A training by DP-SGD as a plan: quote it, rehearse it, release it, or supervise a loop of your own with it.

    model, loss  as always in torch; the loss by its usual name (torch.nn.functional.cross_entropy) or any function of
                 output and target that gives one number for each record
    data         the Private that it will run on, of which the unit and the schema are read, and nothing else
    inputs       the columns that the model reads: a name, a list of names, or learn.Features (several for several
                 arguments); `target` is the column that it learns to tell
    clip         the norm that a unit's gradient is clipped to, or a rule: learn.PerLayer(norm=1),
                 learn.Automatic(norm=1) ...
    epsilon      the guarantee that the noise is chosen for, at `delta`; or give the noise itself, as `multiplier`
    rate         the probability with which a unit joins a step; or `batch_size`, which needs to know how many there are
    population   how many units there are, a public number; the schema's `rows` where a row is the unit. It is what the
                 expected batch is worked out from
    steps        or epochs: passes over the data, as many as the rate makes of them
    sampling     "poisson", or "fixed" for batches of exactly `batch_size` (units that are replaced)
    optimiser    learn.optimiser("SGD", lr=0.1) and the like; `schedule` makes a torch scheduler from it
    per_unit     rows of a user that a step reads at most, where the unit is a user
    count        the standard deviation of the noise on the count of unclipped records, as a part of the expected batch;
                 it shows whether `clip` is well chosen, and is paid for with the step
    """
    table, reads = described(data, inputs)
    tells = target if isinstance(target, Target) else Target(target)
    rule = clip if isinstance(clip, Clipping) else Flat(norm=checks.positive(clip, "clip"))
    if (epsilon is None) == (multiplier is None):
        raise ArgumentError("say how much noise in one way: epsilon (with delta), or multiplier.")
    allowed = checks.delta(delta)
    drawn, share = _rate(data.unit, table, rate, batch_size, population, sampling)
    times = _times(steps, epochs, share)
    live_model, named = Model(model), Loss(loss)
    check_parts(model)
    tells.check(table)
    examples = made_up(reads, tells, table)
    engine = partial(Engine, loss=named.call, examples=examples, rows_per_unit=per_unit, cast=_cast(cast))
    try:
        sized = micro_batch(engine(live_model.fresh()), math.ceil(drawn.expected), micro)
    except PlanError:
        with apart():
            check(engine(live_model.fresh()), clipping=rule)  # which says where, and what to do
        raise
    if isinstance(drawn, Poisson):
        drawn = Poisson.of(share, drawn.population, allowed / (_LATE * times))
    passes = -(-drawn.slots // sized.micro)
    at_once = max(2, -(-drawn.slots // passes))  # equal passes, with hardly a free slot more than it takes
    seats = drawn if isinstance(drawn, Fixed) else replace(drawn, room=passes * at_once)
    seats.step(events.Gaussian(multiplier=1, relation=data.unit.change))  # refuses units that it cannot draw
    counted = _counted(rule, count, seats)
    if multiplier is None:

        def event(noise: float) -> events.Event:
            step = seats.step(events.Gaussian(multiplier=noise, relation=data.unit.change))
            return events.Repeat(step, times)

        multiplier = calibrate(event, epsilon=epsilon, delta=allowed).parameter
    columns = {
        name: table.column(name) for name in dict.fromkeys([*(n for x in reads for n in x.columns), tells.column])
    }
    if data.unit.column is not None:
        columns[data.unit.column] = table.column(data.unit.column)
    plan = SGD(
        protects=data.unit, model=live_model, loss=named, inputs=reads, target=tells, reads=columns, sampling=seats,
        times=times, clip=rule, multiplier=multiplier, delta=allowed,
        optimiser=optimiser or Optimiser("SGD", {"lr": 0.1}), schedule=schedule, per_unit=per_unit, micro=at_once,
        eta=sized.eta, count=counted, noise=noise, strict=strict, average=average, cast=cast,
        draws=draws or max(1, times // _BLOCKS),
    )  # fmt: skip
    check_model(plan)
    return plan


def described(data: Described, inputs: Any) -> tuple[Table, tuple[Features, ...]]:
    """The table that a plan will read, and what a model reads of it."""
    unit, schema = getattr(data, "unit", None), getattr(data, "schema", None)
    if not isinstance(unit, Unit) or not isinstance(schema, Schema):
        raise checks.refuse("data", type(data).__name__, "the Private that the plan will run on")
    reads = tuple(_features(each) for each in (inputs if _several(inputs) else (inputs,)))
    table = schema.table()
    for feature in reads:
        feature.check(table)
    return table, reads


def _several(inputs: Any) -> bool:
    return isinstance(inputs, tuple | list) and bool(inputs) and all(isinstance(each, Features) for each in inputs)


def _features(columns: Any) -> Features:
    if isinstance(columns, Features):
        return columns
    return Features((columns,) if isinstance(columns, str) else tuple(columns))


def _rate(
    unit: Unit, table: Table, rate: Any, batch_size: int | None, population: int | None, sampling: str
) -> tuple[Any, Fraction]:
    """How units are drawn, before it is known how many slots that takes; and their rate."""
    checks.one_of(sampling, "sampling", ("poisson", "fixed"))
    if (rate is None) == (batch_size is None):
        raise ArgumentError("say who takes part in a step in one way: rate, or batch_size.")
    if population is None and unit.column is None:
        population = table.rows
    if population is None:
        raise ArgumentError(
            "population is missing: how many units there are, as a public number (or rows= in the schema). Where it is "
            "not public, release a noisy count first, and give a number that is surely above it."
        )
    checks.whole(population, "population")
    if sampling == "fixed":
        if batch_size is None:
            raise ArgumentError("batch_size is missing: sampling of a fixed size needs one.")
        return Fixed(size=batch_size, population=population), Fraction(batch_size, population)
    if batch_size is not None:
        share = Fraction(checks.whole(batch_size, "batch_size", most=population), population)
    else:
        share = checks.positive(rate, "rate")
    return Poisson(rate=share, population=population, room=Poisson.most_of(population)), share


def _times(steps: int | None, epochs: Any, share: Fraction) -> int:
    if (steps is None) == (epochs is None):
        raise ArgumentError("say how long to train in one way: steps, or epochs.")
    if steps is not None:
        return checks.whole(steps, "steps")
    return max(1, math.ceil(checks.positive(epochs, "epochs") / share))


def _counted(rule: Clipping, count: Any, seats: Sampling) -> Fraction | None:
    if count is None and isinstance(rule, Adaptive):
        count = rule.noise
    return None if count is None else checks.positive(count, "count") * seats.expected


def _cast(cast: str | None) -> torch.dtype | None:
    return torch.bfloat16 if cast == "bfloat16" else None


__all__ = ["optimiser", "sgd"]
