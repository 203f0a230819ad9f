"""What an attack reports."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.errors import SfumatoError

FALSE_ALARM = 1e-6  # the chance, per run of an attack, that a sound target is called broken: at most this


@dataclass(frozen=True)
class Verdict:
    """Did the target break? `figures` are the numbers that the judgement rests on, by name."""

    id: str
    broken: bool
    text: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.id}: {'BROKEN' if self.broken else 'withstood'}. {self.text}"]
        lines += [f"  {name}: {value:.6g}" for name, value in self.figures.items()]
        return "\n".join(lines)


class CouldNotRunError(SfumatoError):
    """The attack needs something this machine does not have. It says nothing about the target."""


@contextmanager
def without_warnings(kind: type[Warning]) -> Iterator[None]:
    """An attack makes plans that a person would be warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kind)
        yield
