"""The run: every mutant in a child of its own, two at a time; the honest library in children without any."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from sfumato.audit.scripted import TooManyError

from ..attacks.verdict import CouldNotRunError
from . import detectors
from .mutant import Mutant

Ending = Literal["killed", "survived", "could not run"]
Progress = Callable[[float, str], None]

HONEST = "nothing planted"
MOST_SECONDS = 240.0  # of one child; what is not done by then could not run


@dataclass(frozen=True)
class Opinion:
    """What one detector said: noticed, or passed, or could not run."""

    detector: str
    verdict: Literal["noticed", "passed", "could not run"]
    text: str
    seconds: float


@dataclass(frozen=True)
class Tried:
    """One mutant, or (area "", no name but HONEST) the honest library, and what every detector said of it."""

    area: str
    name: str
    opinions: tuple[Opinion, ...] = ()
    problem: str = ""  # why nothing, or not all, could be tried

    @property
    def ending(self) -> Ending:
        if any(each.verdict == "noticed" for each in self.opinions):
            return "killed"
        lame = self.problem or not self.opinions or any(each.verdict == "could not run" for each in self.opinions)
        return "could not run" if lame else "survived"

    @property
    def killers(self) -> tuple[str, ...]:
        return tuple(each.detector for each in self.opinions if each.verdict == "noticed")

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.opinions)


@dataclass(frozen=True)
class MutationRun:
    """The whole run."""

    tried: tuple[Tried, ...]
    honest: tuple[Tried, ...]
    seconds: float = field(default=0.0, compare=False)

    def ended(self, ending: Ending) -> list[Tried]:
        return [each for each in self.tried if each.ending == ending]

    @property
    def accused(self) -> list[str]:
        """Detectors that accuse the honest library. None may."""
        return [name for each in self.honest for name in each.killers]

    @property
    def share(self) -> float:
        """Killed, of all that could run."""
        ran = len(self.tried) - len(self.ended("could not run"))
        return len(self.ended("killed")) / ran if ran else 0.0


def run(
    mutants: Sequence[Mutant],
    *,
    jobs: int = 2,
    every: bool = False,
    blind: bool = False,
    seconds: float = MOST_SECONDS,
    progress: Progress | None = None,
) -> MutationRun:
    """Try all of them, and the honest library on every detector that any of them is tried on.

    every     try all of a mutant's detectors, also when one has noticed it
    blind     detectors that always pass: the control of the run itself
    progress  called with the share that is done, and what was done last
    """
    began = time.monotonic()
    names = [] if blind else list(dict.fromkeys(name for each in mutants for name in each.by))
    work = [_Piece(each.area, each.name, each.by, each) for each in mutants]
    honest = [_Piece("", HONEST, (name,), None) for name in names]
    done: dict[int, Tried] = {}
    everything = [*work, *honest]
    for place, tried in _children(everything, jobs, every, blind, seconds):
        done[place] = tried
        if progress is not None:
            progress(len(done) / len(everything), f"{tried.name}: {tried.ending}")
    in_order = [done[place] for place in range(len(everything))]
    return MutationRun(tuple(in_order[: len(work)]), tuple(in_order[len(work) :]), time.monotonic() - began)


@dataclass(frozen=True)
class _Piece:
    area: str
    name: str
    by: tuple[str, ...]
    mutant: Mutant | None


@dataclass
class _Child:
    place: int
    work: _Piece
    process: Any
    ends: float
    opinions: list[Opinion] = field(default_factory=list)
    problem: str = ""
    over: bool = False

    def hear(self, pipe: Connection) -> None:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            self.over = True
            return
        if isinstance(message, Opinion):
            self.opinions.append(message)
        else:
            self.problem = str(message)

    def tried(self) -> Tried:
        noticed = any(opinion.verdict == "noticed" for opinion in self.opinions)
        lacking = 0 if noticed else len(self.work.by) - len(self.opinions)
        problem = self.problem or (f"the process ended before {lacking} detector(s) did" if lacking else "")
        return Tried(self.work.area, self.work.name, tuple(self.opinions), problem)


def _children(
    work: Sequence[_Piece], jobs: int, every: bool, blind: bool, seconds: float
) -> Iterator[tuple[int, Tried]]:
    """Each piece of work in a fresh process; what is done as it is done."""
    context = _context()
    waiting, running = list(enumerate(work)), dict[Any, _Child]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                place, piece = waiting.pop(0)
                if piece.mutant is not None and piece.mutant.needs and find_spec(piece.mutant.needs) is None:
                    yield place, Tried(piece.area, piece.name, (), f"it needs {piece.mutant.needs}")
                    continue
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(there, piece, every, blind))
                process.start()
                there.close()
                running[here] = _Child(place, piece, process, time.monotonic() + seconds)
            for pipe in wait(list(running), timeout=1.0):
                running[pipe].hear(pipe)  # type: ignore[arg-type]
            now = time.monotonic()
            for pipe in [pipe for pipe, child in running.items() if child.over or now > child.ends]:
                child = running.pop(pipe)
                if not child.over:
                    child.problem = f"it took more than {seconds:g} seconds"
                    child.process.kill()
                child.process.join()
                pipe.close()
                yield child.place, child.tried()
    finally:
        for pipe, child in running.items():
            child.process.kill()
            child.process.join()
            pipe.close()


def _context() -> Any:
    """Children forked from a server that has imported the library and done nothing else: no threads of this process,
    no caches, and no second for the imports."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sfumato_referee.mutation.detectors", "sfumato_referee.mutation.shelf"])
    return context


def _child(pipe: Connection, work: _Piece, every: bool, blind: bool) -> None:
    """In the child: plant, then let the detectors look, one after the other."""
    if work.mutant is not None:
        try:
            work.mutant.plant()
        except Exception as problem:  # the library has moved on, and the fault fits nowhere
            pipe.send(f"it could not be planted: {type(problem).__name__}: {problem}")
            pipe.close()
            return
    for name in work.by:
        opinion = looked(name, blind=blind)
        pipe.send(opinion)
        if opinion.verdict == "noticed" and not every:
            break
    pipe.close()


def looked(name: str, *, blind: bool = False) -> Opinion:
    """What one detector says of the library as it is in this process. One that falls over has noticed something: it
    does not fall over on the honest library."""
    began = time.monotonic()
    outcome: Literal["noticed", "passed", "could not run"] = "passed"
    text = ""
    try:
        if not blind:
            text = detectors.look_up(name)() or ""
            outcome = "noticed" if text else "passed"
    except (CouldNotRunError, ImportError, TooManyError) as problem:  # outcomes that cannot be listed prove nothing
        outcome, text = "could not run", str(problem)
    except Exception as problem:
        outcome, text = "noticed", f"{type(problem).__name__}: {problem}"
    return Opinion(name, outcome, " ".join(text.split())[:300], time.monotonic() - began)


def summed_up(ran: MutationRun) -> str:
    """The table: area, fault, how it ended, by whom, seconds; and last the honest library."""
    rows = [("area", "fault", "ended", "by", "seconds")]
    rows += [(t.area, t.name, t.ending, ", ".join(t.killers) or t.problem, f"{t.seconds:.1f}") for t in ran.tried]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), *row[3:]]) for row in rows]
    counts = {"killed": 0, "survived": 0, "could not run": 0} | Counter(each.ending for each in ran.tried)
    lines.append(", ".join(f"{count} {ending}" for ending, count in counts.items()) + f", in {ran.seconds:.0f} s")
    accused = ", ".join(ran.accused)
    lines.append(f"the honest library is accused by {accused}" if accused else "the honest library passes all of them")
    return "\n".join(lines)
