"""Toy plans that run in steps, each with noise of its own, and keep a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from sfumato import checks, events
from sfumato.laws import RoundedGaussian
from sfumato.plan import Plan, Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.units import Unit
from tests.helpers import BY_PATIENT

STOP = "stop"


@record("test-stepping/1")
@dataclass(frozen=True, kw_only=True)
class Stepping(Plan[Rows, Any]):
    """A noisy count of units per step, added up: a training run without the model.

    times     steps in all; `at_once` of them are drawn together
    tau       the chance, per step, with which a step may fail altogether
    tag       names a hook of the test's, called as hook(rows, run) after each draw; it may answer STOP. The hook "tag
              ran" is called before a checkpoint is written
    place     the folder of its checkpoint, if it has one
    """

    times: int = 6
    at_once: int = 1
    rate: Any = None
    multiplier: Any = 4
    fails: Any = Fraction(1, 10**6)
    tau: Any = None
    fast: bool = False
    tag: str = ""
    place: str = ""
    protects: Unit = BY_PATIENT
    hooks: ClassVar[dict[str, Callable[[Rows, Run], Any]]] = {}

    def __post_init__(self) -> None:
        for name in ("rate", "multiplier", "fails", "tau"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.rational(value, name, "a number"))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def step(self) -> events.Event:
        one: events.Event = events.Gaussian(multiplier=self.multiplier, relation=self.unit.change)
        if self.rate is not None:
            one = events.Poisson(one, self.rate)
        if self.tau is None:
            return one
        return events.Sequence((one, events.Approximate(epsilon=0, delta=self.tau, relation=self.unit.change)))

    @property
    def event(self) -> events.Repeat:
        return events.Repeat(self.step, self.times)

    @property
    def delta(self) -> Fraction:
        return self.fails

    @property
    def steps(self) -> int:
        return self.times

    @property
    def block(self) -> int:
        return self.at_once

    @property
    def grade(self) -> str:
        return "float" if self.fast else "exact"

    def _run(self, rows: Rows, run: Run) -> Any:
        return self._finished(self._loop(rows, run))

    def _finished(self, loop: Loop) -> Any:
        for _ in loop:
            """Until no step is left."""
        return {"steps": loop.done, "total": loop.total}

    def _loop(self, rows: Rows, run: Run) -> Loop:
        return Loop(self, rows, run.steps_of(self))


class Loop:
    """Draws a block, runs it, keeps what it released; begins with what was kept."""

    def __init__(self, plan: Stepping, rows: Rows, run: Run) -> None:
        self.plan, self.rows, self.run = plan, rows, run
        kept = Path(plan.place) / "checkpoint" if plan.place else None
        self._kept, self.over = kept, False
        self.done, self.total = json.loads(kept.read_text()) if kept is not None and kept.exists() else (0, 0)

    def __iter__(self) -> Loop:
        return self

    def close(self) -> None:
        """The run itself draws nothing more."""

    def __next__(self) -> int:
        if self.over or not self.run.left or self.done >= self.plan.times:
            raise StopIteration
        steps = min(self.plan.block, self.run.left, self.plan.times - self.done)
        self.run.draw(steps)
        if self.plan.tag and self.plan.hooks[self.plan.tag](self.rows, self.run) == STOP:
            self.over = True
        noise = self.run.noise.draw(RoundedGaussian(float(self.plan.multiplier)), steps)
        self.total += int(noise.sum()) + steps * self.rows.unit_count
        self.done += steps
        if self._kept is not None:
            _line(self._kept.with_name("executed"), steps)
            self.plan.hooks.get(f"{self.plan.tag} ran", _nothing)(self.rows, self.run)
            fresh = self._kept.with_name("fresh")
            fresh.write_text(json.dumps([self.done, self.total]))
            fresh.replace(self._kept)
        return self.done


def _nothing(rows: Rows, run: Run) -> None:
    """No hook."""


def _line(path: Path, steps: int) -> None:
    """What was really run, told so that a kill loses nothing of it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{steps}\n".encode())
    os.close(handle)


def stepping(hook: Callable[[Rows, Run], Any] | None = None, **fields: Any) -> Stepping:
    if hook is None:
        return Stepping(**fields)
    tag = fields.pop("tag", hook.__name__)
    Stepping.hooks[tag] = hook
    return Stepping(tag=tag, **fields)
