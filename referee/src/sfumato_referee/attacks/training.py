"""T2, clipping that does not hold: one step of training, looked at from within.

A batch with and without a canary whose gradient is huge. With the noise off, the two sums differ by what the canary
really counts for: at most what the noise is made for, or the price is for something else. BatchNorm, clipping of a
whole micro-batch and weights that are used twice break that. With the noise on, its standard deviation must be that of
one draw per step, however many micro-batches there are; and the divisor must be the expected batch, or it tells how
many came. Every rule of clipping is tried, units that are replaced, users with many rows, whole-number sums, and the
count of unclipped records, which is a release too: what the canary moves of sum and count together, in units of their
noise, must stay within what the step is sold at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato import learn, schema
from sfumato.audit.silent import Silent
from sfumato.errors import PlanError
from sfumato.learn.stepping import Stepper
from sfumato.noise import Noise, SecureBits, SeededBits
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.units import Unit

from .verdict import Verdict

Vector = NDArray[np.float64]
Steps = Callable[..., Stepper]

REPEATS = 12
_WIDTH = 2048  # parameters: each draws noise of its own, so that a few steps show its standard deviation well
_NARROW = 128  # for settings that are looked at before the noise alone
PEOPLE = 8
_MICRO = 4
_HUGE = 10**6
_ROWS = 12  # of the canary, where it is a user
_MULTIPLIER = Fraction(2)
_ROW, _REPLACED, _USER = Unit(), Unit(change="replace"), Unit("user:who")
_NEAR = 0.03  # more than 5 standard errors of what REPEATS steps show, and half a percent for floats and the grid


class Line(torch.nn.Module):
    """A linear model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weight)[:, 0]


class Tied(torch.nn.Module):
    """There and back by the same weights: a gradient is the sum of two uses."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(4, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.linear(x, self.weight)
        return torch.nn.functional.linear(hidden, self.weight.t()).sum(1)


class Layers(torch.nn.Module):
    """Two lines, added up: each is a layer of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = Line(width), Line(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) + self.two(x)


MODELS: Mapping[str, Callable[[int], torch.nn.Module]] = {"a line": Line, "tied weights": Tied}
SETTINGS: Mapping[str, tuple[Callable[[int], torch.nn.Module], Unit, dict[str, Any]]] = {
    "layers that are clipped apart": (Layers, _ROW, {"clip": learn.PerLayer(norm=1)}),
    "groups with shares": (Layers, _ROW, {"clip": learn.PerGroup(norm=1, weights={"one.*": 3, "*": 4})}),
    "automatic clipping": (Line, _ROW, {"clip": learn.Automatic(norm=1)}),
    "adaptive clipping": (Line, _ROW, {"clip": learn.Adaptive(norm=1, noise=Fraction(3, 16))}),
    "whole-number sums": (Line, _ROW, {"strict": True}),
    "a unit that is replaced": (Line, _REPLACED, {}),
    "replaced, with a count": (Line, _REPLACED, {"clip": learn.Adaptive(norm=1, noise=Fraction(3, 8))}),
    "a user with many rows": (Line, _USER, {"per_unit": 3, "population": PEOPLE}),
}
"""What else a step may be: model, unit and fields."""
MIXING: Mapping[str, Callable[[int], torch.nn.Module]] = {
    "BatchNorm": lambda width: torch.nn.Sequential(torch.nn.BatchNorm1d(width), Line(width)),
    "BatchNorm without weights": lambda width: torch.nn.Sequential(
        torch.nn.BatchNorm1d(width, affine=False, track_running_stats=False), Line(width)
    ),
    "frozen BatchNorm": lambda width: torch.nn.Sequential(_frozen(torch.nn.BatchNorm1d(width)), Line(width)),
}


def attack(stepper: Steps = Stepper, *, repeats: int = REPEATS, width: int = _WIDTH) -> Verdict:
    """The library's own steps, or what a planted bug makes of them."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    for name, kind in MODELS.items():
        plan = training(kind(width), width)
        allowed = plan.blur.deviation(1.0) / float(_MULTIPLIER)
        moved = max(_moved(plan, stepper, width, seed) for seed in range(4))
        figures[f"{name}: the canary moves the sum by, as a share of what the noise is for"] = moved / allowed
        if moved > allowed:
            problems.append(
                f"a canary moves the sum of {name} by {moved / allowed:.3g} times what the noise is made for"
            )
    for name in SETTINGS:
        share = _told(name, stepper, min(width, _NARROW))
        figures[f"{name}: what the canary moves, as a share of what is paid for"] = share
        if share > 1:
            problems.append(f"{name}: a canary moves {share:.3g} times what is paid for")
    plan = training(Line(width), width)
    for many in (0, 1, PEOPLE):
        share = _spread(plan, stepper, width, many, repeats) * PEOPLE / float(_MULTIPLIER)
        figures[f"{many} in the batch: standard deviation over multiplier times clip norm"] = share
        if abs(share - 1) > _NEAR:
            problems.append(f"with {many} in the batch the noise is {share:.3g} times the promised one")
    for many in (1, 3):
        scale = _scale(plan, stepper, width, many)
        figures[f"{many} in the batch: divided by"] = scale
        if abs(scale / PEOPLE - 1) > _NEAR:
            problems.append(f"a batch of {many} is divided by {scale:.3g}, and {PEOPLE} are expected")
    for name, kind in MIXING.items():
        if _accepted(kind):
            problems.append(f"a model with {name} is accepted")
    text = (
        f"One step gives the canary away: {'; '.join(problems)}."
        if problems
        else "A canary of huge gradient counts for no more than the clip norm; noise comes once a step, of the "
        "promised size; the divisor is the expected batch; models that mix records are refused."
    )
    return Verdict("T2", bool(problems), text, figures)


def control() -> Verdict:
    """Every planted bug must be found."""
    from ..mutants.training import STEPPERS

    verdicts = {name: attack(kind, repeats=4, width=1024) for name, kind in STEPPERS.items()}
    missed = [name for name, verdict in verdicts.items() if not verdict.broken]
    summary = "; ".join(f"{name}: {verdict.text}" for name, verdict in verdicts.items() if verdict.broken)
    return Verdict("T2", not missed, f"Not found: {', '.join(missed)}." if missed else summary)


def training(model: torch.nn.Module, width: int, unit: Unit = _ROW, **more: Any) -> Any:
    """A step in which everybody takes part, over several micro-batches."""
    fields: dict[str, Any] = {
        "rate": 1, "steps": 1, "clip": 1, "multiplier": _MULTIPLIER, "delta": 1e-6, "micro": _MICRO, **more,
    }  # fmt: skip
    return learn.sgd(model, times, data=_TensorData(width, unit), inputs="x", target="y", **fields)


def times(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss whose gradient is the record itself, as often as its target says."""
    return output * target


class _TensorData:
    """What the data looks like."""

    def __init__(self, width: int, unit: Unit = _ROW) -> None:
        columns = {"x": schema.tensor((width,), -1, 1), "y": schema.real(-_HUGE, _HUGE)}
        if unit.column is not None:
            columns[unit.column] = schema.key()
        self.unit = unit
        self.schema = Schema.of(columns, unit=unit.column, rows=PEOPLE * (1 if unit.column is None else _ROWS))


def _frozen(module: torch.nn.Module) -> torch.nn.Module:
    return module.requires_grad_(False)


def people(width: int, ordinary: int, canary: bool) -> Rows:
    """Ordinary people lean all to one side; the canary, last, to the other."""
    ramp = np.linspace(0.1, 1.0, width)
    x = [ramp / np.linalg.norm(ramp) * (1 + i / 16) for i in range(ordinary)] + [-ramp] * canary
    y = [0.75] * ordinary + [float(_HUGE)] * canary
    table = _TensorData(width).schema.table()
    return Rows.read(table, {"x": np.reshape(x, (-1, width)).astype(np.float32), "y": y}, Unit())


def _stepped(plan: Any, stepper: Steps, rows: Rows, noise: Noise) -> Vector:
    return _counted(plan, stepper, rows, noise)[0]


def _counted(plan: Any, stepper: Steps, rows: Rows, noise: Noise) -> tuple[Vector, float]:
    """The released sum, over the divisor; and the share of unclipped records, where they are counted."""
    steps = stepper(plan, rows, noise, plan.model.fresh())
    try:
        return summed(steps), steps.unclipped or 0.0
    finally:
        steps.close()


def summed(steps: Stepper) -> Vector:
    """One step's released sum, over the divisor, as one vector."""
    return np.concatenate([each.double().numpy().ravel() for each in steps.step()])


def _told(name: str, stepper: Steps, width: int) -> float:
    """What the canary moves of sum and count, in units of their noise, beside the multiplier that is paid for."""
    kind, unit, fields = SETTINGS[name]
    plan = training(kind(width), width, unit, **fields)
    blur, worst = plan.blur, 0.0
    for canary in _canaries(width, unit):
        (sum_, count), (sum_without, count_without) = (
            _counted(plan, stepper, rows, Silent(SeededBits(3))) for rows in canary
        )
        moved = float(np.linalg.norm(sum_ - sum_without)) * PEOPLE / blur.deviation(1.0)
        counted = abs(count - count_without) * PEOPLE * 2 / blur.count_law.std if plan.count is not None else 0.0
        worst = max(worst, math.hypot(moved, counted) * float(plan.multiplier))
    return worst


def _canaries(width: int, unit: Unit) -> Iterator[tuple[Rows, Rows]]:
    """A batch with a canary, and without it (or with another one in its place): one whose gradient is huge, and one
    that is just clipped."""
    ramp = np.linspace(0.1, 1.0, width)
    ramp /= np.linalg.norm(ramp)
    people = [(ramp * (1 + i / 16), 0.75, str(i)) for i in range(PEOPLE - 1)]
    for size in (float(_HUGE), 1.001):
        rows = _ROWS if unit.column is not None else 1
        canary, other = ([(sign * ramp, size, "canary")] * rows for sign in (-1, 1))
        # Another sign, and so small that it is not clipped, which the count tells.
        placed = [(ramp, 0.999, "canary")] if unit.change == "replace" else []
        yield rows_of(width, unit, [*people, *canary]), rows_of(width, unit, [*people, *placed])
        if placed:
            yield rows_of(width, unit, [*people, *canary]), rows_of(width, unit, [*people, *other])


def rows_of(width: int, unit: Unit, people: Sequence[tuple[Vector, float, str]]) -> Rows:
    x = np.reshape([each[0] for each in people], (-1, width)).astype(np.float32)
    columns: dict[str, Any] = {"x": x, "y": [each[1] for each in people]}
    if unit.column is not None:
        columns[unit.column] = [each[2] for each in people]
    return Rows.read(_TensorData(width, unit).schema.table(), columns, unit)


def _moved(plan: Any, stepper: Steps, width: int, seed: int) -> float:
    """How far the canary moves the sum, everybody else in the same seat."""
    with_it, without = (
        _stepped(plan, stepper, people(width, PEOPLE - 1, canary), Silent(SeededBits(seed))) for canary in (True, False)
    )
    return float(np.linalg.norm(with_it - without)) * PEOPLE


def _spread(plan: Any, stepper: Steps, width: int, many: int, repeats: int) -> float:
    rows = people(width, many, False)
    still = _stepped(plan, stepper, rows, Silent(SeededBits(1)))
    drawn = [_stepped(plan, stepper, rows, Noise(SecureBits())) - still for _ in range(repeats)]
    return float(np.sqrt(np.mean(np.square(drawn))))


def _scale(plan: Any, stepper: Steps, width: int, many: int) -> float:
    """What the sum of so many is divided by."""
    released = _stepped(plan, stepper, people(width, many, False), Silent(SeededBits(1)))
    x = people(width, many, False).series["x"].values.reshape(many, width).astype(np.float64) * 0.75
    clipped = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    return float(np.linalg.norm(clipped.sum(0)) / max(float(np.linalg.norm(released)), 1e-300))


def _accepted(kind: Callable[[int], torch.nn.Module]) -> bool:
    try:
        training(kind(8), 8)
    except PlanError:
        return False
    return True
