"""A training small enough to know its law: a linear model whose gradient is the record, and noise that is watched."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import torch

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, learn, schema
from sfumato.audit.silent import Silent
from sfumato.laws import Law, RoundedGaussian
from sfumato.learn.stepping import Stepper
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato_referee.attacks.training import Line, times

__all__ = [
    "Line",
    "Recording",
    "Silent",
    "by_user",
    "columns",
    "curator",
    "plan_for",
    "rows_of",
    "shape",
    "stepped",
    "times",
]

ROW = Unit()


class Recording(Noise):
    """Seeded noise that writes down which laws were drawn from, and how many draws of each."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(SeededBits(seed))
        self.laws: list[tuple[float, int]] = []

    def draw(self, law: Law, count: int) -> Any:
        assert isinstance(law, RoundedGaussian)
        self.laws.append((law.sigma, count))
        return super().draw(law, count)


def shape(people: int, width: int = 3, reach: float = 10.0, **unit: Any) -> Schema:
    return Schema.of(x=schema.tensor((width,), -reach, reach), y=schema.real(-reach, reach), rows=people, **unit)


def columns(people: int, width: int = 3, seed: int = 0) -> dict[str, Any]:
    made = np.random.default_rng(seed).uniform(-1, 1, (people, width + 1)).astype(np.float32)
    return {"x": made[:, :width], "y": made[:, width].astype(float).tolist()}


def rows_of(given: dict[str, Any], plan: Any, people: int = 8, width: int = 3) -> Rows:
    return Rows.read(shape(people, width).table(), given, plan.unit)


class Told:
    """What data looks like, for plans that are never released."""

    def __init__(self, unit: Unit, schema: Schema) -> None:
        self.unit, self.schema = unit, schema


def plan_for(
    model: torch.nn.Module | None = None, *, people: int = 8, width: int = 3, data: Any = None, **fields: Any
) -> Any:
    told = data or Told(fields.pop("unit", ROW), shape(people, width))
    usual: dict[str, Any] = {"clip": 1, "delta": 1e-6, "loss": times, "inputs": "x", "target": "y"} | fields
    if "rate" not in usual and "batch_size" not in usual:
        usual["rate"] = 1
    if "steps" not in usual and "epochs" not in usual:
        usual["steps"] = 1
    if "epsilon" not in usual and "multiplier" not in usual:
        usual["multiplier"] = 2
    return learn.sgd(model or Line(width), usual.pop("loss"), data=told, **usual)


def stepped(plan: Any, rows: Rows, noise: Noise | None = None) -> np.ndarray[Any, Any]:
    """The gradient of one step, in one vector; without noise unless some is given."""
    stepper = Stepper(plan, rows, noise or Silent(SeededBits(1)), plan.model.fresh())
    try:
        return np.concatenate([each.double().numpy().ravel() for each in stepper.step()])
    finally:
        stepper.close()


def trained(plan: Any, rows: Rows, noise: Noise) -> dict[str, Any]:
    raw: dict[str, Any] = plan._run(rows, Run(noise, steps=plan.steps))
    return raw


def curator(
    people: int = 8, *, budget: Budget | None = None, ledger: Any = None, given: Any = None, width: int = 3
) -> Curator:
    private = Private("people", given or columns(people, width), unit=ROW, schema=shape(people, width))
    return Curator(private, ledger or MemoryLedger({"people": budget or Budget(epsilon=9, delta=Fraction(1, 10**5))}))


BY_USER = Unit("user:who")


def by_user(given: dict[str, Any], people: int = 8, unit: Unit = BY_USER) -> tuple[Told, Rows]:
    """The same with a column of users."""
    width = given["x"].shape[1]
    told = Schema.of(
        x=schema.tensor((width,), -10, 10), y=schema.real(-10, 10), who=schema.key(), unit="who", rows=1000 * people
    )
    return Told(unit, told), Rows.read(told.table(), given, unit)
