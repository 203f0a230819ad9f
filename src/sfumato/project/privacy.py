"""What releases and training take by default, as the project says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from .. import events
from ..units import Relation
from .problems import ProjectError

Wrong = Callable[[str, str], ProjectError]


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The `privacy` section.

    target_epsilon    of a release, or of a whole training; None where the file does not say
    noise_multiplier  None stands for auto: the least that the target allows
    relation          what neighbours differ by, from the unit
    """

    target_epsilon: Fraction | None
    target_delta: Fraction | None
    accounting_mode: str
    secure_mode: Literal[True]
    noise_multiplier: Fraction | None
    max_grad_norm: Fraction | None
    sample_rate: Fraction | None
    steps: int | None
    relation: Relation
    _wrong: Wrong = field(repr=False, compare=False)

    @property
    def target(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta, of which neither may be missing."""
        self._need("a target", "target_epsilon", "target_delta")
        assert self.target_epsilon is not None and self.target_delta is not None
        return self.target_epsilon, self.target_delta

    def event(self, multiplier: Any = None) -> events.Event:
        """The whole training at that noise, as an event; without one, at the noise that the file gives."""
        self._need("the price of training", "sample_rate", "steps")
        if multiplier is None:
            if self.noise_multiplier is None:
                raise self._wrong(
                    "noise_multiplier is auto, so it is not known yet",
                    "calibrate it with `sfumato calibrate --project .`, or write a number",
                )
            multiplier = self.noise_multiplier
        step: events.Event = events.Gaussian(multiplier=multiplier, relation=self.relation)
        if self.sample_rate != 1:
            step = events.Poisson(step, self.sample_rate)
        assert self.steps is not None
        return events.Repeat(step, self.steps)

    def _need(self, what: str, *names: str) -> None:
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise self._wrong(f"{what} needs {' and '.join(missing)}", f"add {' and '.join(missing)}")
