"""What an audit of one plan found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, Literal

from .. import display

Verdict = Literal["within", "broken"]


@dataclass(frozen=True)
class Point:
    """One point of the curve: what is claimed at delta, and what was proven there at least."""

    delta: float
    claim: float
    shown: float


@dataclass(frozen=True)
class Found:
    """The best that one way of looking has shown: `way` is "exact law", "histogram", "classifier", "renyi", ..."""

    way: str
    epsilon: float
    claim: float
    delta: float
    words: str
    broken: bool


@dataclass(frozen=True)
class Result:
    """The verdict on a plan: the lower bound beside the claim, where it was worst, and how to see it again.

    epsilon   proven at least, at `delta`, for the pair `pair` and the event `event`; `claim` is the price there. An
              honest plan is called broken with chance at most `false_alarm`
    curve     the same at every delta that was looked at
    found     what each way of looking has shown by itself
    evidence  the worst pair and event as a JSON value: `save(path)` writes it, `audit.reproduce(path)` counts it again
    """

    kind: str
    hash: str | None
    epsilon: float
    claim: float
    delta: float
    pair: str
    event: str
    curve: tuple[Point, ...]
    found: tuple[Found, ...]
    runs: int
    pairs: int
    false_alarm: float
    seconds: float
    evidence: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def broken(self) -> bool:
        return any(each.broken for each in self.found)

    @property
    def verdict(self) -> Verdict:
        return "broken" if self.broken else "within"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the worst pair and event to a file, for `audit.reproduce(path)`. It holds made-up rows, or a pair that
        you gave."""
        from . import evidence

        evidence.save(self.evidence, path)

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self._headline}", *(f"  {name:8} {text}" for name, text in self._facts())])

    @property
    def _headline(self) -> str:
        words = {"within": "within its claim", "broken": "BROKEN"}[self.verdict]
        return f"{words}, epsilon >= {self.epsilon:.4g} where {self.claim:.4g} is claimed{_at(self.delta)}"

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "pair", self.pair
        yield "event", self.event
        for finding in self.found:
            outcome = finding.words if finding.way in ("hockey stick", "renyi", "exact loss") else _short(finding)
            yield "way", f"{finding.way}: {outcome}{', BROKEN' if finding.broken else ''}"
        yield "runs", f"{self.runs} on each side, {self.pairs} pairs tried, {self.seconds:.1f} s"
        yield "error", f"an honest plan is called broken with chance at most {self.false_alarm:.3g}"

    def _repr_html_(self) -> str:
        from ..report import svg_audit

        points = [(f"{point.delta:.3g}", _number(point.claim), f"{point.shown:.4g}") for point in self.curve]
        return display.card(
            f"Audit of {self.kind}: {self._headline}",
            display.facts(self._facts()),
            display.Html(svg_audit.curve(map(asdict, self.curve), alone=True)),
            display.table(("delta", "claimed epsilon", "shown at least"), points, right=(0, 1, 2)),
            note="Red: the claim. Blue: proven at least. What was not found may still be there.",
        )


def _at(delta: float) -> str:
    return f" at delta = {delta:.3g}" if delta else ""


def _short(finding: Found) -> str:
    return f"epsilon >= {finding.epsilon:.4g} of {finding.claim:.4g}{_at(finding.delta)}"


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "none"
