"""A YAML file of a project, read with its line numbers. Also for other files than sfumato.yaml: plans of releases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import plain_yaml
from ..plain_yaml import YamlError
from .problems import Fault, ProjectError, faulty

_LARGEST = 2_000_000  # bytes


@dataclass(frozen=True)
class Text:
    """A file as it was read: what it says, and where it says it."""

    file: str
    lined: plain_yaml.Lined

    def fault(self, path: plain_yaml.Path, cause: str, fix: str) -> Fault:
        """A fault at that place, or at the nearest one above it that the file has."""
        place = self.lined.nearest(path)
        return Fault(plain_yaml.where(place) if place else "", cause, fix, self.lined.lines[place])

    def wrong(self, path: plain_yaml.Path, cause: str, fix: str) -> ProjectError:
        """The error for one place; the caller raises it."""
        return faulty(self.file, [self.fault(path, cause, fix)])

    @property
    def value(self) -> Any:
        return self.lined.value


def load(path: str | Path) -> Text:
    """Read a file. Refuses what is not text in UTF-8, and what is not plain YAML."""
    name = Path(path).name
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise ProjectError(
            f"there is no {name}", f"{str(path)!r} does not exist", "give the path of one that does", file=name
        ) from None
    except (OSError, ValueError):
        raise ProjectError(
            f"{name} cannot be read",
            f"{str(path)!r} is no file that this user may read",
            "give another path",
            file=name,
        ) from None
    if len(data) > _LARGEST:
        fix = f"keep it below {_LARGEST} bytes"
        raise ProjectError(f"{name} is too long", "nobody writes so long a file by hand", fix, file=name)
    try:
        return parse(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise faulty(name, [Fault("", "this is not text in UTF-8", "save the file as UTF-8", line)]) from None


def parse(text: str, file: str) -> Text:
    """The same, of a text; `file` is what messages call it."""
    try:
        return Text(file, plain_yaml.read(text))
    except YamlError as problem:
        place = plain_yaml.where(problem.path) if problem.path else ""
        raise faulty(file, [Fault(place, problem.cause, problem.fix or "", problem.line)]) from None
