"""The training of a project, with what the options say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...events import Event
from .events_from import Asked
from .numbers import exact, exact_or_none

if TYPE_CHECKING:
    from ...project import Project


@dataclass(frozen=True)
class Training:
    """A project, for its `privacy` fields."""

    project: Project

    @property
    def epsilon(self) -> Fraction | None:
        return self.project.privacy.target_epsilon

    @property
    def delta(self) -> Fraction | None:
        return self.project.privacy.target_delta

    def trains(self, asked: Asked) -> bool:
        """Is there anything about sampling or steps? Without, a project has releases only."""
        privacy = self.project.privacy
        return any(each is not None for each in (asked.rate, asked.steps, privacy.sample_rate, privacy.steps))

    def event(self, asked: Asked, noise: Any = None, steps: int | None = None) -> Event:
        """The whole training, at the noise that is given, typed or written in the file."""
        said: dict[str, Any] = {"sample_rate": exact_or_none(asked.rate, "--rate"), "steps": steps or asked.steps}
        said["relation"] = asked.relation
        privacy = replace(self.project.privacy, **{name: value for name, value in said.items() if value is not None})
        if noise is None and asked.gaussian is not None:
            noise = exact(asked.gaussian, "--gaussian")
        return privacy.event(noise)


def training(place: Path) -> Training:
    from ...project import open_project  # a price that needs no project does not wait for what reads one

    return Training(open_project(place))
