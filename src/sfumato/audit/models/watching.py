"""A training as it is run, with somebody who watches every noisy gradient: the white-box attacker.

The steps are those of a release: the plan's own Stepper with its sampling, clipping and exact noise, and the plan's own
updates. Only the ledger is missing: an audit is no release, and what it shows of its data is nobody's to publish unless
the data is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ... import checks, exact
from ...accounting import approximate
from ...accounting.tradeoff import Tradeoff, tradeoff
from ...errors import ArgumentError, UnsupportedEventError
from ...events import Event, Gaussian
from ...learn.plan import SGD
from ...learn.sampling import Fixed, Poisson, Sampling
from ...learn.stepping import Stepper
from ...learn.training import _Course
from ...noise import Noise
from ...rows import Rows

Steps = Callable[..., Stepper]
Columns = Mapping[str, Any]
_DELTAS = (1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.15, 0.2, 0.3, 0.45)
_LATE = Fraction(1, 2**20)  # of delta, for batches that are too large for their slots


@dataclass(frozen=True)
class WatchedStep:
    """What one step shows: the noisy gradient, by parameter, and the public numbers that it was made with."""

    gradients: list[torch.Tensor]
    norm: float


def trained(
    plan: SGD, rows: Rows, noise: Noise, *, stepper: Steps = Stepper, see: Callable[[WatchedStep], Any] | None = None
) -> torch.nn.Module:
    """Run all steps of the plan; the model that comes out, ready for use."""
    if not callable(stepper):
        raise checks.refuse("stepper", stepper, "the class of a step, or leave it out")
    course = _Course(plan)
    steps = stepper(plan, rows, noise, course.model)
    course.model.train(plan.model.original.training)
    try:
        for _ in range(plan.steps):
            norm = steps.norm
            gradients = steps.step()
            if see is not None:
                see(WatchedStep(gradients, norm))
            course.update(gradients)
    finally:
        steps.close()
    state = course.raw()["state"]
    return plan.model.loaded(state)


@contextmanager
def on_one_thread() -> Iterator[None]:
    """For many small trainings: threads cost more than they bring."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def claimed(plan: SGD) -> tuple[float, float]:
    """(epsilon, delta) of the plan, by the accountant."""
    return _priced(plan.event, plan.delta), float(plan.delta)


@lru_cache(maxsize=64)
def _priced(event: Event, delta: Fraction) -> float:
    return float(approximate.epsilon(event, delta))


def curve_of(plan: SGD) -> Tradeoff:
    """The trade-off that the plan's event is sold with, or a curve below it that is quick to find."""
    return tradeoff(plan.event) if isinstance(plan.step, Gaussian) else _curve(plan.event)


@lru_cache(maxsize=64)
def _curve(event: Event) -> Tradeoff:
    points: dict[float, float] = {}
    for delta in sorted(_DELTAS, reverse=True):
        with suppress(UnsupportedEventError):
            points[exact.float_above(approximate.epsilon(event, Fraction(str(delta))))] = delta
    if not points:
        return tradeoff(event)
    order = sorted(points)  # where two deltas have the same epsilon, the smaller one stays
    return Tradeoff(event, tuple(order), tuple(points[each] for each in order))


def seats_for(sampling: Sampling, many: int, spread: int, delta: Fraction) -> Sampling:
    """The same sampling for about so many units, a few more or less; its rate is the same."""
    if isinstance(sampling, Fixed):
        return Fixed(size=max(1, sampling.size * many // sampling.population), population=many)
    if not isinstance(sampling, Poisson):
        raise checks.refuse("plan", type(sampling).__name__, "a plan that draws by Poisson or fixed-size sampling")
    population = many + spread
    if sampling.rate == 1:
        return Poisson(rate=Fraction(1), population=population, room=Poisson.most_of(population))
    return Poisson.of(sampling.rate, population, delta * _LATE)


def rows_of(plan: SGD, columns: Columns) -> Rows:
    return Rows.read(plan.table, {name: columns[name] for name in plan.reads}, plan.unit)


def joined(first: Columns, second: Columns, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    """The first rows, and the chosen ones of the second."""
    out: dict[str, Any] = {}
    for name, values in first.items():
        one, other = as_array(values), as_array(second[name])[chosen]
        out[name] = np.concatenate([one, other]) if len(one) else other
    return out


def check_columns(plan: SGD, table: Any, name: str) -> int:
    """How many records there are; refuses what is not the columns that the plan reads, before anything is trained."""
    if not isinstance(table, Mapping) and not hasattr(table, "columns"):
        raise checks.refuse(name, type(table).__name__, "columns by name, such as {'x': ..., 'y': ...}, or a frame")
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    if missing := [each for each in plan.reads if each not in names]:
        listing = ", ".join(map(str, names))
        raise checks.refuse(name, listing, f"the columns that the plan reads, with {missing[0]!r}")
    lengths = set()
    for column_name, column in plan.reads.items():
        cells = as_array(table[column_name])
        inner = tuple(getattr(column, "shape", ()))
        if cells.ndim == 0 or (cells.size and cells.shape[1:] != inner):
            raise ArgumentError(
                f"{name} is not allowed: column {column_name!r} holds records of another shape than {inner}."
            )
        lengths.add(len(cells))
    if len(lengths) > 1:
        raise ArgumentError(f"{name} is not allowed: its columns are of different lengths. Give one cell per record.")
    return lengths.pop()


def as_array(values: Any) -> NDArray[Any]:
    return values.numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


__all__ = [
    "Columns",
    "Steps",
    "WatchedStep",
    "check_columns",
    "claimed",
    "curve_of",
    "joined",
    "on_one_thread",
    "rows_of",
    "seats_for",
    "trained",
]
