"""One run of a pipeline, on tape, with everything that anybody could see of it."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from ... import events
from ...accounting.filters import Budget
from ...ledger import MemoryLedger
from ...plan import Plan, Receipt, Steps
from ...private import Private
from .curating import TapedCurator
from .foreign import Recorder
from .outside import together
from .recording import DivergedError, Tape


@dataclass(frozen=True)
class Ran:
    """What a run let be seen: the tape, what came back, was printed, warned of and raised."""

    tape: Tape
    result: Any
    printed: list[str]
    warned: list[str]
    problem: tuple[str, str] | None
    secure: int  # words of secure noise that were drawn outside a mechanism
    stand: tuple[str, ...]  # where generators outside mechanisms came to stand


@dataclass(frozen=True)
class PipelineStage:
    """Where a pipeline runs: what it is given, and how a table becomes that."""

    pipeline: Callable[..., Any]
    takes: tuple[str, ...]
    recorder: Recorder | None
    shaped: Callable[[Any], Any]
    private: Callable[[Any], Private]
    accounts: Mapping[str, Budget]
    shown: bool

    def run(self, table: Any, recorded: Tape | None, seed: int, outside: int) -> Ran:
        """Run it once. The table is copied: what one run does to it, no other sees."""
        tape = Tape(recorded, shown=self.shown)
        recorder = self.recorder if self.recorder is not None else Recorder()
        raw = self.shaped(copy.deepcopy(table)) if "data" in self.takes or self.recorder is not None else None
        arguments: dict[str, Any] = {"data": raw, "recorder": recorder}
        if "curator" in self.takes:
            ledger = TapedLedger(self.accounts, tape)
            arguments["curator"] = TapedCurator(self.private(copy.deepcopy(table)), ledger, tape, seed)
        result: Any = None
        problem: tuple[str, str] | None = None
        printed = io.StringIO()
        with (
            _attached(recorder, tape, raw),
            together(outside, lambda: tape.inside) as drawn,
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            try:
                result = self.pipeline(**{name: arguments[name] for name in self.takes})
                result = list(result) if isinstance(result, Iterator) else result  # before the data is gone
            except DivergedError:
                pass
            except (Exception, SystemExit) as raised:
                problem = type(raised).__name__, str(raised)
        tape.close()
        warned = [f"{each.category.__name__}: {each.message}" for each in caught]
        return Ran(tape, result, printed.getvalue().splitlines(), warned, problem, drawn.words, drawn.stand)


@contextmanager
def _attached(recorder: Recorder, tape: Tape, table: Any) -> Iterator[None]:
    recorder._attach(tape, table)
    try:
        yield
    finally:
        recorder._detach()


class TapedLedger(MemoryLedger):
    """A ledger in memory that also writes down on the tape what was charged."""

    def __init__(self, accounts: Mapping[str, Budget], tape: Tape) -> None:
        super().__init__(accounts)
        self._tape = tape
        self._seen: set[str] = set()

    def spend(self, accounts: tuple[str, ...], plan: Plan[Any, Any], **how: Any) -> Receipt:
        receipt = super().spend(accounts, plan, **how)
        if receipt.loop != "part":
            self._charged(receipt)
        return receipt

    def prepay(self, accounts: tuple[str, ...], plan: Plan[Any, Any], **how: Any) -> Receipt:
        receipt = super().prepay(accounts, plan, **how)
        self._charged(receipt)
        return receipt

    def draw(self, receipt: Receipt, event: events.Event, delta: Any) -> None:
        super().draw(receipt, event, delta)
        self._tape.charges.append(event)

    def draw_steps(self, receipt: Receipt, steps: int) -> Steps:
        drawn = super().draw_steps(receipt, steps)
        assert isinstance(receipt.event, events.Repeat)
        self._tape.charges.append(events.Repeat(receipt.event.event, steps))
        return drawn

    def _charged(self, receipt: Receipt) -> None:
        if receipt.id not in self._seen:  # under a key, once
            self._seen.add(receipt.id)
            self._tape.charges.append(receipt.event)
