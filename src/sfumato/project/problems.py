"""What is wrong with a file of a project: where, why, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import SfumatoError

_MOST = 20  # faults that are told; the rest is counted


class Fault(NamedTuple):
    """One thing that is wrong in a file."""

    place: str
    cause: str
    fix: str
    line: int | None = None


class ProjectError(SfumatoError):
    """A project cannot be used as it is written.

    what, why, fix   one or more lines each, for people
    file, line       where the first fault is, where that is known
    """

    def __init__(
        self, what: str, why: str, fix: str, *, file: str | None = None, line: int | None = None, text: str = ""
    ) -> None:
        super().__init__(text or f"{what}: {why}: {fix}", cause=why, fix=fix)
        self.what, self.why, self.file, self.line = what, why, file, line


def faulty(file: str, faults: Sequence[Fault]) -> ProjectError:
    """The error for all faults of a file, in the order of their lines; the caller raises it."""
    ordered = sorted(faults, key=lambda fault: fault.line or 0)
    first = ordered[0]
    texts = [f"{_place(file, each)}: {each.cause}: {each.fix}" for each in ordered[:_MOST]]
    if len(ordered) > _MOST:
        texts.append(f"{file}: and {len(ordered) - _MOST} more")
    text = "\n".join(texts)
    if len(ordered) == 1:
        return ProjectError(_place(file, first), first.cause, first.fix, file=file, line=first.line, text=text)
    fix = f"correct these lines of {file}"
    return ProjectError(f"{file} has {len(ordered)} faults", text, fix, file=file, line=first.line, text=text)


def _place(file: str, fault: Fault) -> str:
    return (file if fault.line is None else f"{file}:{fault.line}") + (f": {fault.place}" if fault.place else "")
