"""A curator whose every release is on a tape: what a pipeline of sfumato's is recorded and replayed with.

It is the real Curator, with the real ledger, on made-up rows. Only what a plan gives out goes through the tape: a plan
is handed on as its own double, equal in every field, whose `_run` records or replays. Children of a reserve, of a loop
of the user's own and of a session are on the tape one by one; the body between them runs as it is, in both runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ... import grid
from ...bounds import Bounded
from ...combine import Repeat, Reserve, Sequence
from ...curator import Curator
from ...errors import DataError
from ...interactive import Conversation, Interactive, Session
from ...noise import SeededBits
from ...noise.bits import Words
from ...plan import Ledger, Plan, Run
from ...private import Private
from ...record import moved
from ...release import Release
from ...rows import Rows
from ...schema import Named
from ..stages import queries
from .differences import public_fields
from .recording import Call, Move, Tape

_FINER = 20


class Together:
    """Bits that are the same in every run, call by call, so that what is drawn beside a mechanism's answer (who is in a
    batch) is the same on neighbours too. For made-up rows only; nobody knows the seed."""

    grade = "exact"  # a Curator takes no other

    def __init__(self, seed: int) -> None:
        self._seed, self._calls = seed, 0
        self._bits = SeededBits(seed)

    def begin(self) -> None:
        """The next call, with bits of its own: how many an earlier one drew does not matter."""
        self._calls += 1
        self._bits = SeededBits(self._seed + self._calls)

    def words(self, count: int) -> Words:
        return self._bits.words(count)


class TapedCurator(Curator):
    """A Curator on a tape."""

    def __init__(self, private: Private, ledger: Ledger, tape: Tape, seed: int) -> None:
        bits = Together(seed)
        super().__init__(private, ledger, bits=bits)
        self._tape, self._together = tape, bits

    def rehearse(self, plan: Plan[Any, Any], *, rows: int | None = None) -> Release:
        self._check(plan)
        call = self._begin(plan, "rehearsal of ", rows=rows)
        call.event = None if call.twin is None else call.twin.event
        done: list[Release] = []
        raw = self._tape.give(call, None, lambda: _kept(done, super(TapedCurator, self).rehearse(plan, rows=rows)), _no)
        return done[0] if done else Release(plan, raw, None)

    def release(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Release:
        if not isinstance(plan, Plan) or plan.supervised is not None:
            return super().release(plan, note=note, key=key)  # refused
        double = self._double(plan, note=note, key=key)
        return replace(super().release(double, note=note, key=key), plan=plan)

    def prepay(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Any:
        if isinstance(plan, Plan):
            self._begin(plan, "list of ", note=note, key=key)
        return super().prepay(plan, note=note, key=key)

    @contextmanager
    def supervise(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Iterator[Any]:
        call = self._begin(plan, "loop of ", note=note, key=key) if isinstance(plan, Plan) else None
        with super().supervise(plan, note=note, key=key) as run:
            if isinstance(run, Run):
                _tape_children(run, self._double)
            elif call is not None:
                self._tape_steps(run, call)
            yield run

    @contextmanager
    def session(self, plan: Interactive, *, note: str = "", key: str | None = None) -> Iterator[Session]:
        if isinstance(plan, Plan):
            self._begin(plan, "session of ", note=note, key=key)
        with super().session(plan, note=note, key=key) as session:
            assert session._conversation is not None
            session._conversation = _Taped(session._conversation, self._tape)
            yield session

    def _begin(self, plan: Plan[Any, Any], how: str = "", **public: Any) -> Call:
        self._together.begin()
        public = {"plan": public_fields(plan), "accounts": self.accounts, **public}
        return self._tape.begin(f"{how}{type(plan).__name__}", public, plan.event)

    def _double(self, plan: Plan[Any, Any], **public: Any) -> Plan[Any, Any]:
        """The plan, with a tape in its place where it runs. Plans that hold a body are taped inside."""
        if _has_body(plan):
            self._begin(plan, "body of ", **public)
            return self._with_body(plan)
        call = self._begin(plan, **public)

        def run_taped(rows: Any, run: Run) -> Any:
            bounded = queries(plan) if isinstance(rows, Rows) else []
            if call.twin is not None and call.twin.drawn:
                run.draw(call.twin.drawn)  # paid step by step, though nothing runs
            try:
                return self._tape.give(call, rows, lambda: plan._run(rows, run), _moves_of(bounded))
            finally:
                call.drawn = run.drawn

        return moved(plan, _run=run_taped)  # no field: it stands in for the method of this one plan

    def _with_body(self, plan: Plan[Any, Any]) -> Plan[Any, Any]:
        """Runs a double whose children and bodies are taped; to the ledger it is the plan itself."""
        if isinstance(plan, Reserve) and plan.body is not None:
            body = plan.body
            inner: Plan[Any, Any] = moved(plan, body=lambda run: body(_tape_children(run, self._double)))
        elif isinstance(plan, Sequence):
            inner = moved(plan, plans=Named({name: self._double(each) for name, each in plan.plans.items()}))
        else:
            assert isinstance(plan, Repeat)
            inner = moved(plan, plan=_again(plan.plan, self._double))
        return moved(plan, _run=lambda rows, run: inner._run(rows, run))

    def _tape_steps(self, loop: Any, call: Call) -> None:
        """The noisy gradient of each step of a training loop goes through the tape."""
        stepper = getattr(loop, "_stepper", None)
        if stepper is None:
            return
        began = stepper.batch

        def batch() -> Any:
            step = self._tape.begin(f"step of {call.name}", {"norm": stepper.norm, "left": loop.left})
            self._together.begin()
            drawn = began()
            released = drawn.released

            def taped() -> Any:
                fresh = released() if self._tape.replays else None  # the same bits are drawn in both runs
                del fresh
                state = self._tape.give(step, None, lambda: (released(), *_state(stepper)), _no)
                gradients, stepper.norm, stepper.unclipped, stepper.signal = state
                return gradients

            drawn.released = taped
            return drawn

        stepper.batch = batch


def _state(stepper: Any) -> tuple[Any, ...]:
    return stepper.norm, stepper.unclipped, stepper.signal


class _Taped(Conversation):
    """A conversation whose answers are on the tape."""

    def __init__(self, conversation: Conversation, tape: Tape) -> None:
        self._conversation, self._tape = conversation, tape
        self._over = conversation.over

    def answer(self, rows: Rows, question: Any) -> Any:
        query = getattr(question, "query", question)
        bounded = [query] if isinstance(query, Bounded) else []
        call = self._tape.begin("question", {"question": question})
        answer, self._over = self._tape.give(call, rows, lambda: self._answered(rows, question), _moves_of(bounded))
        return answer

    def _answered(self, rows: Rows, question: Any) -> tuple[Any, bool]:
        return self._conversation.answer(rows, question), self._conversation.over

    @property
    def over(self) -> bool:
        return self._over


def _tape_children(run: Any, double: Callable[[Plan[Any, Any]], Plan[Any, Any]]) -> Any:
    """The same run; what it releases is taped."""
    release = run.release

    def taped(child: Plan[Any, Any]) -> Any:
        if not isinstance(child, Plan) or child.supervised is not None:
            return release(child)  # refused
        return release(double(child))

    run.release = taped
    return run


def _has_body(plan: Plan[Any, Any]) -> bool:
    if isinstance(plan, Reserve):
        return plan.body is not None
    return isinstance(plan, Sequence | Repeat) and any(_has_body(child) for child in plan.children)


def _again(plan: Plan[Any, Any], double: Callable[[Plan[Any, Any]], Plan[Any, Any]]) -> Plan[Any, Any]:
    """A plan that is taped anew whenever it runs."""
    return moved(plan, _run=lambda rows, run: double(plan)._run(rows, run))


def _kept(done: list[Release], release: Release) -> Any:
    done.append(release)
    return release.raw


def _no(before: Any, after: Any) -> Iterator[Move]:
    """Nothing of it is measured."""
    return iter(())


def _moves_of(bounded: list[Bounded]) -> Any:
    def measure(before: Any, after: Any) -> Iterator[Move]:
        for query in bounded:
            yield from query_moves(query, before, after)

    return measure


def query_moves(query: Bounded, before: Rows, after: Rows) -> Iterator[Move]:
    """How far a bounded query moved between two tables, in what it declares, exactly."""
    exponent = grid.floor_log2(query.largest) - _FINER
    if query.coarsest is not None:
        exponent = min(exponent, query.coarsest)
    one, other = (_steps(query, rows, exponent) for rows in (before, after))
    shift = [b - a for a, b in zip(one, other, strict=True)]
    declared = query.in_steps(exponent)
    name = type(query).__name__
    yield Move(f"L1 ({name})", float(Fraction(sum(map(abs, shift))) / declared.l1))
    # of squares: the root of a share above 1 is above 1
    yield Move(f"L2 ({name})", float(Fraction(sum(x * x for x in shift)) / declared.l2_squared) ** 0.5)
    yield Move(f"L-infinity ({name})", float(Fraction(max(map(abs, shift), default=0)) / declared.linf))


def _steps(query: Bounded, rows: Rows, exponent: int) -> list[int]:
    try:
        return list(map(int, query.steps(rows, exponent)))
    except Exception as problem:
        raise DataError from problem
