"""What a replay found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ... import display
from ...events import Event
from .recording import KINDS, Finding

_FORMAT = "sfumato-replay/1"


@dataclass(frozen=True)
class Replayed:
    """The verdict on a pipeline: what neighbours tell apart, the gravest first.

    findings  each with its kind, its place in the pipeline and the change of the data that showed it
    notes     what nothing can be said of
    calls     the mechanisms that were recorded, in their order, with what each costs
    pairs     neighbouring tables that were tried; `runs` of the pipeline in all
    blind     nothing can be said: it never came to its end, or asks for something else in every run
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    calls: tuple[tuple[str, Event | None], ...]
    pairs: int
    runs: int
    seconds: float
    blind: bool = False

    @classmethod
    def of(cls, findings: Iterable[Finding], notes: tuple[str, ...], **more: Any) -> Replayed:
        """With the findings in order."""
        ordered = sorted(findings, key=lambda finding: (KINDS.index(finding.kind), finding.where))
        return cls(tuple(ordered), notes, **more)

    @property
    def broken(self) -> bool:
        return any(each.breaks for each in self.findings)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of findings."""
        return frozenset(each.kind for each in self.findings)

    @property
    def verdict(self) -> str:
        if self.broken:
            return "broken"
        if self.blind:
            return "could not be judged"
        return "nothing found" if self.calls else "nothing was recorded"

    def __str__(self) -> str:
        lines = [f"replay: {self.verdict}. {self._tried}"]
        for finding in self.findings:
            lines.append(f"  {finding.kind}")
            lines.append(f"    at     {finding.where}")
            lines.append(f"    what   {finding.words}")
            lines += [f"    shown  {finding.pair}"] if finding.pair else []
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def facts(self) -> Mapping[str, Any]:
        """The same as plain values, for programs."""
        return {
            "is": _FORMAT,
            "verdict": self.verdict,
            "broken": self.broken,
            "findings": [
                {"kind": each.kind, "where": each.where, "words": each.words, "pair": each.pair, "breaks": each.breaks}
                | ({"ratio": each.ratio if math.isfinite(each.ratio) else None} if each.ratio is not None else {})
                for each in self.findings
            ],
            "notes": list(self.notes),
            "calls": [{"name": name, "event": None if event is None else str(event)} for name, event in self.calls],
            "pairs": self.pairs,
            "runs": self.runs,
            "seconds": round(self.seconds, 3),
        }

    def _repr_html_(self) -> str:
        rows = [(each.kind, each.where, each.words, each.pair) for each in self.findings]
        parts = [display.table(("what", "where", "how", "shown by"), rows)] if rows else []
        parts += [display.paragraph(note, quiet=True) for note in self.notes]
        return display.card(f"Replay: {self.verdict}", *parts, note=self._tried)

    @property
    def _tried(self) -> str:
        named = f"{len(self.calls)} mechanism call{'' if len(self.calls) == 1 else 's'}"
        return f"{named} recorded, {self.pairs} pairs of tables, {self.runs} runs."
