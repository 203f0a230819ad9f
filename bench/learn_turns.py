"""Steps of training in turn with Opacus': CPU time in one interleaved run, and memory in fresh processes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .learn_pipe import Worker

OPACUS = ("hooks", "functorch", "ew", "ghost")
OURS = ("ordinary", "fast", "exact")
SCOUTED = 2  # rounds with all modes of Opacus; then only those stay that could still be its best
NEAR = 1.5
LEAST = 0.15  # seconds that the steps of one mode take in one round, at the least


@dataclass
class Turns:
    """CPU seconds for a step by mode, one for each round; what is missing failed, and `absent` says why."""

    ours: dict[str, list[float]] = field(default_factory=dict)
    opacus: dict[str, list[float]] = field(default_factory=dict)
    blurred: dict[str, list[float]] = field(default_factory=dict)  # the noise alone, fast and exact
    beside: dict[str, list[float]] = field(default_factory=dict)  # a whole step, main thread alone
    absent: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Our private step with fast noise to the ordinary one, the median over rounds."""
        return _ratio(self.ours.get("fast"), self.ours.get("ordinary"))

    @property
    def best(self) -> str | None:
        """The quickest mode of Opacus, found after the fact."""
        done = {mode: statistics.median(took) for mode, took in self.opacus.items() if mode in OPACUS and took}
        return min(done, key=lambda mode: done[mode]) if done else None

    @property
    def faster(self) -> float | None:
        """How many times as long as ours the best private step of Opacus takes."""
        return _ratio(self.opacus[self.best], self.ours.get("fast")) if self.best else None

    def opacus_ratio(self, mode: str) -> float | None:
        return _ratio(self.opacus.get(mode), self.opacus.get("ordinary"))

    def more(self, parameters: int) -> float | None:
        """Seconds that exact noise takes more than fast noise, for each parameter."""
        return _more(self.blurred.get("exact"), self.blurred.get("fast"), parameters)

    def more_in_front(self, parameters: int) -> float | None:
        """The same on the main thread, where exact noise is drawn beside it."""
        return _more(self.beside.get("beside"), self.beside.get("fast"), parameters)


@dataclass
class Peaks:
    """Bytes above the start, by mode."""

    ours: dict[str, int] = field(default_factory=dict)
    opacus: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        found = self.ours.get("fast"), self.ours.get("ordinary")
        return None if found[0] is None or not found[1] else found[0] / found[1]


def take_turns(name: str, rounds: int, say: Callable[[str], object]) -> Turns:
    """All modes of both sides in every round, one after the other; nobody else of ours runs meanwhile."""
    turns = Turns()
    with Worker("learn_sfumato") as ours, Worker("learn_opacus", "opacus") as opacus:
        modes = list(OPACUS)
        for number in range(rounds):
            for mode in OURS:
                say(f"{name}, round {number + 1} of {rounds}: {mode}")
                _note(turns, turns.ours, mode, ours.ask("round", model=name, mode=mode, least=LEAST))
            _noise(turns, name, ours)
            for mode in ("ordinary", *modes):
                say(f"{name}, round {number + 1} of {rounds}: Opacus {mode}")
                _note(turns, turns.opacus, mode, opacus.ask("round", model=name, mode=mode, least=LEAST))
            if number + 1 == SCOUTED:
                modes = _near(turns.opacus, modes)
    return turns


def peaks(name: str, times: int, opacus_modes: Sequence[str], say: Callable[[str], object]) -> Peaks:
    """Each figure from a process that has done nothing else, the median of some."""
    found = Peaks()
    wanted = [("ours", mode) for mode in ("ordinary", "fast")] + [("opacus", mode) for mode in opacus_modes]
    for side, mode in wanted:
        say(f"{name}, memory: {side} {mode}")
        each = [_peak(side, name, mode) for _ in range(times)]
        known = [peak for peak in each if peak is not None]
        if known:
            getattr(found, side)[mode] = int(statistics.median(known))
    return found


def _peak(side: str, name: str, mode: str) -> int | None:
    with Worker("learn_sfumato") if side == "ours" else Worker("learn_opacus", "opacus") as worker:
        return worker.ask("memory", model=name, mode=mode).get("peak")


def _note(turns: Turns, into: dict[str, list[float]], mode: str, answer: dict) -> None:
    if "failed" in answer:
        turns.absent[f"{'sfumato' if into is turns.ours else 'Opacus'} {mode}"] = answer["failed"]
    else:
        into.setdefault(mode, []).append(answer["seconds"])


def _noise(turns: Turns, name: str, ours: Worker) -> None:
    for what, into in (("blurred", turns.blurred), ("beside", turns.beside)):
        answer = ours.ask(what, model=name, least=LEAST)
        if "failed" in answer:
            turns.absent[f"sfumato {what}"] = answer["failed"]
            continue
        for mode, seconds in answer.items():
            into.setdefault(mode, []).append(seconds)


def _near(took: dict[str, list[float]], modes: list[str]) -> list[str]:
    least = {mode: min(took[mode]) for mode in modes if took.get(mode)}
    return [mode for mode, seconds in least.items() if seconds <= NEAR * min(least.values())]


def _ratio(above: list[float] | None, below: list[float] | None) -> float | None:
    """Of the same round, so that a busy minute hits both."""
    if not above or not below:
        return None
    return statistics.median(a / b for a, b in zip(above, below, strict=False))


def _more(above: list[float] | None, below: list[float] | None, parameters: int) -> float | None:
    if not above or not below:
        return None
    return statistics.median((a - b) / parameters for a, b in zip(above, below, strict=False))
