"""A tape of every mechanism that a pipeline calls, and its replay.

Recording on a table D writes down each call: its name, its public parameters, what it costs, the value before noise,
and what it gave out. Replaying on a neighbour D' gives out *what was recorded*, whatever the data is now. So all that
the pipeline decides from noisy answers it decides alike, and whatever still differs was read from the data itself.

Claim (what a clean replay shows, for this pair and these answers): given the same answers, the pipeline asks the same
questions and returns the same result. If that holds for all neighbours and answers, and each mechanism is private for
its declared sensitivity, the pipeline is the adaptive composition of its mechanisms and post-processing of it, and the
sum of their events is its price. The method is that of arXiv 2602.17454; what it finds are counterexamples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...events import Event
from .differences import differences

RESULT = "result reads data"
MOVES = "moves further than declared"
OVERSPENT = "spent more than charged"
TWICE = "mechanism used twice on one charge"
OUTSIDE = "noise drawn outside a mechanism"
LESS_NOISE = "less noise than the event says"
PUBLIC = "public parameter depends on data"
SHAPE = "shape depends on data"
NUMBER = "number of calls depends on data"
ORDER = "call order depends on data"
EXCEPTION = "an exception that tells"
UNUSED = "charged but not run"

KINDS = (
    RESULT, MOVES, OVERSPENT, TWICE, OUTSIDE, LESS_NOISE, PUBLIC, SHAPE, NUMBER, ORDER, EXCEPTION, UNUSED
)  # fmt: skip
"""What can be found, the gravest first. The last one wastes budget and tells nothing."""

_ROUNDING = 1e-9  # of a declared sensitivity, and of float sums
_FLOAT = 1e-12


@dataclass(frozen=True)
class Finding:
    """Something that neighbours tell apart: what kind, where in the pipeline, and for which change of the data."""

    kind: str
    where: str
    words: str
    pair: str = ""
    ratio: float | None = None

    @property
    def breaks(self) -> bool:
        """Does it break the guarantee? Budget that is only wasted does not."""
        return self.kind != UNUSED

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.where

    def __str__(self) -> str:
        return f"{self.kind}, at {self.where}: {self.words}"


class DivergedError(BaseException):
    """The replay asks for something that was never recorded, so there is no answer to give. Not an Exception: no
    handler of the pipeline's is to go on from here."""


@dataclass(frozen=True)
class Move:
    """How far a value moved in one norm, in declared sensitivities."""

    norm: str
    ratio: float

    @property
    def broken(self) -> bool:
        return not self.ratio <= 1 + _ROUNDING  # also where it is no number


Measure = Callable[[Any, Any], Iterator[Move]]


@dataclass(eq=False)
class Call:
    """One call of a mechanism. `value` is what noise is added to; it stays in the audit."""

    name: str
    public: Mapping[str, Any]
    event: Event | None = None
    value: Any = None
    output: Any = None
    problem: Exception | None = None
    ran: bool = False
    drawn: int = 0  # steps, of a plan that pays step by step
    moved: float = 0.0  # of a replayed call: how far its value is from the recorded one, in sensitivities
    twin: Call | None = field(default=None, repr=False)  # of a replayed call: the recorded one


class Tape:
    """What one run asked for. With a `recorded` tape it is a replay: answers come from there."""

    def __init__(self, recorded: Tape | None = None, *, shown: bool = True) -> None:
        self.calls: list[Call] = []
        self.charges: list[Event] = []
        self.findings: list[Finding] = []
        self.stopped = False
        self.inside = 0  # mechanisms that run now: noise drawn meanwhile is theirs
        self._recorded = recorded
        self._left = [] if recorded is None else list(recorded.calls)
        self._shown = shown

    @property
    def replays(self) -> bool:
        return self._recorded is not None

    def begin(self, name: str, public: Mapping[str, Any], event: Event | None = None) -> Call:
        """A mechanism is asked for. What is public of it must be what was recorded."""
        if self.stopped:
            raise DivergedError
        call = Call(name, public, event)
        self.calls.append(call)
        if self._recorded is not None:
            call.twin = self._taken(name)
            self._compare(call, call.twin)
        return call

    def give(self, call: Call, value: Any, run: Callable[[], Any], measure: Measure, *, again: bool = False) -> Any:
        """What the mechanism gives out: run now, or as it was recorded.

        again  run it in a replay as well, for nothing: so it draws as much from generators that others share
        """
        call.ran = True
        twin = call.twin
        if twin is None:
            call.value = value
            call.output = self._ran(call, run)
            return copy.deepcopy(call.output)
        if not twin.ran:
            raise RuntimeError("this call did not run when it was recorded")
        if twin.problem is not None:
            self._fails_still(call, value, measure)
            raise twin.problem
        self._measure(call, twin.value, value, measure)
        if again:
            self._ran(call, run)
        return copy.deepcopy(twin.output)

    def _ran(self, call: Call, run: Callable[[], Any]) -> Any:
        self.inside += 1
        try:
            return run()
        except Exception as problem:
            call.problem = problem
            raise
        finally:
            self.inside -= 1

    def close(self) -> None:
        """The run is over: were all calls made, and in their order?"""
        if self._recorded is None:
            return
        here, there = ([call.name for call in tape.calls] for tape in (self._recorded, self))
        if here == there:
            return
        if sorted(here) == sorted(there):
            place = next(i for i, names in enumerate(zip(here, there, strict=True)) if names[0] != names[1])
            words = f"{here[place]} on one and {there[place]} on the other" if self._shown else "not the same on both"
            self.add(ORDER, "the pipeline", f"call {place + 1} is {words}")
        else:
            most = "more than " if self.stopped else ""
            words = f"{len(here)} calls on one and {most}{len(there) - self.stopped} on the other"
            unlike = sorted({name for name in {*here, *there} if here.count(name) != there.count(name)})
            self.add(NUMBER, "the pipeline", f"{words}; they differ in {', '.join(unlike)}" if self._shown else words)

    def _taken(self, name: str) -> Call:
        """The recorded call that this one stands for: the next of its name."""
        for place, call in enumerate(self._left):
            if call.name == name:
                return self._left.pop(place)
        self.stopped = True
        raise DivergedError

    def _compare(self, call: Call, twin: Call) -> None:
        where = self.where(call)
        for difference in differences(twin.public, call.public, ""):
            if difference.kind != "opaque":
                # What a parameter is made of is the parameter's business: its shape is public, like its value.
                self.add(PUBLIC, f"{where}: {difference.path.lstrip('.')}", _told(difference, self._shown))
        if twin.event != call.event:
            words = f"{twin.event} on one and {call.event} on the other" if self._shown else "it differs"
            self.add(PUBLIC, f"{where}: the event", words)

    def _measure(self, call: Call, before: Any, after: Any, measure: Measure) -> None:
        where = self.where(call)
        if isinstance(before, np.ndarray) and before.shape != np.shape(after):
            words = f"its value is of shape {before.shape} on one and {np.shape(after)} on the other"
            self.add(SHAPE, where, words)
            return
        try:
            moves = list(measure(before, after))
        except Exception as problem:
            self.add(EXCEPTION, where, f"{type(problem).__name__}, as its value is computed on one and not the other")
            return
        call.moved = max((math.inf if math.isnan(each.ratio) else each.ratio for each in moves), default=0.0)
        broken = [each for each in moves if each.broken]
        if broken:
            worst = max(broken, key=lambda move: math.inf if math.isnan(move.ratio) else move.ratio)
            words = f"the value before noise moves by {worst.ratio:.4g} times the declared {worst.norm} sensitivity"
            self.add(MOVES, where, words, worst.ratio)

    def _fails_still(self, call: Call, value: Any, measure: Measure) -> None:
        """The recorded call failed on the data: so must this one, as far as its value can be computed at all."""
        try:
            computed = list(measure(value, value))
        except Exception:
            return
        if computed:
            self.add(EXCEPTION, self.where(call), "it fails on one and not on the other")

    def where(self, call: Call) -> str:
        return f"call {self.calls.index(call) + 1}, {call.name}"

    def add(self, kind: str, where: str, words: str, ratio: float | None = None) -> None:
        self.findings.append(Finding(kind, where, words, ratio=ratio))


def _told(difference: Any, shown: bool) -> str:
    return f"{difference.here} on one and {difference.there} on the other" if shown else "it differs"


def vector_moves(sensitivity: float, norm: str) -> Measure:
    """How far a vector of floats moved in one norm, in sensitivities; float rounding is not held against it."""

    def measure(before: Any, after: Any) -> Iterator[Move]:
        one, other = (np.asarray(each, dtype=np.float64).ravel() for each in (before, after))
        both_nan = np.isnan(one) & np.isnan(other)
        with np.errstate(all="ignore"):
            apart = np.where(both_nan | (one == other), 0.0, np.abs(other - one))
        apart = np.where(np.isnan(apart), math.inf, apart)
        finite = np.abs(np.concatenate([one, other]))
        slack = _FLOAT * float(np.max(finite[np.isfinite(finite)], initial=0.0)) * max(1, one.size)
        with np.errstate(over="ignore"):
            far = {
                "l1": float(apart.sum()),
                "l2": float(np.sqrt(np.square(apart).sum())),
                "linf": float(apart.max(initial=0.0)),
            }[norm]
        far = max(0.0, far - slack)
        yield Move(norm.upper().replace("INF", "-infinity"), _share(far, sensitivity))

    return measure


def _share(far: float, sensitivity: float) -> float:
    if far == 0:
        return 0.0
    return far / sensitivity if sensitivity > 0 else math.inf
