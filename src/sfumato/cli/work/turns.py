"""Whose turn it is: one training or list of releases at a time works on a project."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ...display import printable
from ...project import Project
from ..screen import say
from ..telling import screen

_LONGEST = 100


def turn(project: Project, command: str, file: Path, wait: float) -> AbstractContextManager[None]:
    """Wait for it, and say whom for."""

    def waits(holder: str) -> None:
        text = f"{holder} is at work on this project: waiting for it, {wait:g} seconds at most"
        say(screen(errors=True), text, first="note  ", style="yellow")

    return project.alone(f"sfumato {command} {printable(file.name)[:_LONGEST]}", wait=wait, waits=waits)
