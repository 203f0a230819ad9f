"""Events as they are typed: noise, sampling and steps, or the JSON of any event."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import record
from ...errors import ArgumentError, RecordError
from ...events import Event, Gaussian, Laplace, Poisson, Repeat, ZeroConcentrated
from ..problems import FILE, CommandError
from .numbers import exact

_LONGEST = 10_000_000  # characters of an event's JSON


@dataclass(frozen=True)
class TypedEvent:
    """The options that say what happens; None was not given."""

    gaussian: str | None = None
    laplace: str | None = None
    rho: str | None = None
    event: str | None = None
    rate: str | None = None
    steps: int | None = None
    relation: str | None = None

    @property
    def noises(self) -> list[str]:
        named = {"--gaussian": self.gaussian, "--laplace": self.laplace, "--rho": self.rho, "--event": self.event}
        return [name for name, value in named.items() if value is not None]

    def built(self) -> Event:
        """The one event that the options describe."""
        if len(self.noises) != 1:
            raise CommandError(
                "there is nothing to price" if not self.noises else "that is more than one event",
                "no noise is named" if not self.noises else f"{' and '.join(self.noises)} are given",
                "give one of --gaussian, --laplace, --rho and --event, or --project for a project's training",
            )
        if self.event is not None:
            return self._from_json(self.event)
        return self.around(self._noise())

    def around(self, noise: Event) -> Event:
        """The noise on a sample of the units, so many times."""
        sampled = noise if self.rate is None else Poisson(noise, exact(self.rate, "--rate"))
        return sampled if self.steps is None else Repeat(sampled, self.steps)

    def gaussian_of(self, multiplier: Any) -> Gaussian:
        return Gaussian(multiplier=multiplier, **self._relation())

    def laplace_of(self, epsilon: Any) -> Laplace:
        return Laplace(epsilon=epsilon, **self._relation())

    def _noise(self) -> Event:
        if self.gaussian is not None:
            return self.gaussian_of(exact(self.gaussian, "--gaussian"))
        if self.laplace is not None:
            return self.laplace_of(exact(self.laplace, "--laplace"))
        return ZeroConcentrated(rho=exact(self.rho or "", "--rho"), **self._relation())

    def _relation(self) -> dict[str, Any]:
        return {} if self.relation is None else {"relation": self.relation}

    def _from_json(self, place: str) -> Event:
        if self.rate is not None or self.steps is not None or self.relation is not None:
            raise CommandError(
                "--event stands alone",
                "an event's JSON says its own sampling, steps and neighbours",
                "leave --rate, --steps and --relation out, or write them into the JSON",
            )
        try:
            event: Event = record.parse(_text(place), Event)
        except (RecordError, ArgumentError, RecursionError) as problem:
            raise CommandError(
                "that is no event",
                str(problem) or "it is nested too deeply",
                'write it as the ledger does, such as {"is": "gaussian/1", "multiplier": 1.1}',
                FILE,
            ) from None
        return event


def _text(place: str) -> str:
    try:
        text = sys.stdin.read(_LONGEST) if place == "-" else Path(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise CommandError(f"{place} cannot be read", why, "give the path of a JSON file, or -", FILE) from None
    return text
