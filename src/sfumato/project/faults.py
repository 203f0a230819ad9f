"""Faults that are found while a project is built: gathered, so that all of them are told together."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from pydantic_core import PydanticCustomError

from ..checks import VALUE
from ..errors import ArgumentError, PlanError, SfumatoError
from ..plain_yaml import Path
from .lines import Text
from .problems import Fault, faulty

T = TypeVar("T")

_NAME = re.compile(r"(?:[a-z]+ )?([a-z_]+)")  # "lower", "column lower"
_CALLED = {"categories": "values", "protects": "unit"}  # fields that a file calls by another name
_FRACTION = re.compile(r"Fraction\((-?\d+), (\d+)\)")


def _as_written(match: re.Match[str]) -> str:
    return str(Fraction(int(match.group(1)), int(match.group(2))))


class Faults:
    """What is wrong with a file, so far."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._found: list[Fault] = []

    @property
    def count(self) -> int:
        return len(self._found)

    def line(self, path: Path) -> int:
        """Where a place is in the file."""
        return self._text.lined.line(path)

    def add(self, path: Path, cause: str, fix: str) -> None:
        self._found.append(self._text.fault(path, cause, fix))

    def trying(self, path: Path, make: Callable[[], T]) -> T | None:
        """What it makes, or None and a fault at that place."""
        try:
            return make()
        except PydanticCustomError as problem:
            words = problem.context or {}
            self.add(path, words["cause"], words["fix"])
        except (ArgumentError, PlanError) as problem:
            self._refused(path, problem)
        return None

    def _refused(self, path: Path, problem: SfumatoError) -> None:
        """What the library refuses, at the field that it speaks of."""
        named = _NAME.fullmatch(problem.argument or "") if problem.code == VALUE else None
        if named is None:
            self.add(path, problem.cause, problem.fix or "correct it")
            return
        place = (*path, _CALLED.get(named[1], named[1]))
        written = self._text.lined.at(place)
        cause = f"{written[:80]} is not allowed" if isinstance(written, str) else f"{place[-1]} cannot be so"
        self.add(place, cause, _FRACTION.sub(_as_written, problem.fix or ""))

    def raise_any(self) -> None:
        if self._found:
            raise faulty(self._text.file, self._found)
