"""The training of a project, with what the options say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...events import Event
from .events_from import TypedEvent
from .numbers import exact, exact_or_none

if TYPE_CHECKING:
    from ...project import Project


@dataclass(frozen=True)
class PlannedTraining:
    """A project, for its `privacy` fields."""

    project: Project

    @property
    def epsilon(self) -> Fraction | None:
        return self.project.privacy.target_epsilon

    @property
    def delta(self) -> Fraction | None:
        return self.project.privacy.target_delta

    def trains(self, typed: TypedEvent) -> bool:
        """Is there anything about sampling or steps? Without, a project has releases only."""
        privacy = self.project.privacy
        return any(each is not None for each in (typed.rate, typed.steps, privacy.sample_rate, privacy.steps))

    def event(self, typed: TypedEvent, noise: Any = None, steps: int | None = None) -> Event:
        """The whole training, at the noise that is given, typed or written in the file."""
        changes: dict[str, Any] = {"sample_rate": exact_or_none(typed.rate, "--rate"), "steps": steps or typed.steps}
        changes["relation"] = typed.relation
        privacy = replace(self.project.privacy, **{name: value for name, value in changes.items() if value is not None})
        if noise is None and typed.gaussian is not None:
            noise = exact(typed.gaussian, "--gaussian")
        return privacy.event(noise)


def training(place: Path) -> PlannedTraining:
    from ...project import open_project  # a price that needs no project does not wait for what reads one

    return PlannedTraining(open_project(place))
