"""Open-ended releases: paid once, then answering one question after another while they last.

An `Interactive` plan costs what its Event says, whatever is asked: that holds for questions chosen after seeing earlier
answers, and each such mechanism proves it. `curator.session(plan)` asks as you go; `curator.release(plan)` asks the
plan's own `questions`, fixed in advance.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from . import record
from .bounds import Bounded
from .errors import PlanError, ended_by, guarded
from .plan import Plan, Receipt, Run, fits
from .process import Home
from .release import Release
from .rows import Rows
from .schema import Column, Table


class Conversation(ABC):
    """The private side of a session: it keeps its state between questions. What it answers is already paid for."""

    @abstractmethod
    def answer(self, rows: Rows, question: Any) -> Any:
        """One answer, raw. `question` has passed `plan.accept`."""

    @property
    def over(self) -> bool:
        """Is nothing more answered? A function of the answers given, never of the data behind them."""
        return False


@dataclass(frozen=True, kw_only=True)
class Interactive(Plan[Rows, list[Any]]):
    """A plan with a conversation. `finish` and `error` take the answers so far and give as many."""

    rereads: ClassVar[bool] = False  # is the data read anew for each question, as it grows?

    @property
    @abstractmethod
    def agenda(self) -> tuple[Any, ...]:
        """The questions that `release` asks; empty where they are only asked in a session."""

    @abstractmethod
    def _begin(self, run: Run) -> Conversation:
        """A fresh conversation; noise comes only from `run.noise`."""

    def accept(self, question: Any, table: Table) -> Any:
        """The question in the form that the conversation takes, or a refusal. Compares public things only."""
        return accept_query(question, self, table)

    def latest(self, answers: list[Any]) -> Any:
        """The last of the answers so far, finished. To be overridden where finishing one needs none of the others."""
        return self.finish(answers)[-1]

    @property
    def columns(self) -> dict[str, Column]:
        columns = super().columns
        for query in self._queries:
            columns.update(query.columns)
        return columns

    @property
    def needs_whole(self) -> bool:
        vouched = self.unit.change != "add-remove" and any(query.vouched for query in self._queries)
        return vouched or super().needs_whole

    @property
    def _queries(self) -> Iterator[Bounded]:
        """The bounded queries that the agenda asks, with or without something beside them."""
        for question in self.agenda:
            parts = question if isinstance(question, tuple) else (question,)
            yield from (part for part in parts if isinstance(part, Bounded))

    def check(self, table: Table) -> None:
        super().check(table)
        for question in self.agenda:
            self.accept(question, table)

    def _run(self, rows: Rows, run: Run) -> list[Any]:
        conversation = self._begin(run)
        answers: list[Any] = []
        for question in self._accepted(rows.table):
            if conversation.over:
                break
            answers.append(conversation.answer(rows, question))
        return answers

    def _accepted(self, table: Table) -> list[Any]:
        """The agenda in accepted form, worked out once for each table."""
        cached: tuple[Table, list[Any]] | None = self.__dict__.get("_known")
        if cached is None or cached[0] is not table:
            cached = (table, [self.accept(question, table) for question in self.agenda])
            self.__dict__["_known"] = cached
        return cached[1]


def accept_query(question: Any, plan: Plan[Any, Any], table: Table) -> Bounded:
    """A bounded query of the plan's own unit, about columns that the table has."""
    if not isinstance(question, Bounded):
        raise PlanError("a question is a bounded query, such as bounds.count(unit)")
    if question.unit != plan.unit:
        raise PlanError(f"the question protects [{question.unit}], the session protects [{plan.unit}]")
    fits(plan.unit, question.columns, table)
    return question


class Session:
    """A conversation with private data: `ask` until it is over. Every answer is covered by the one price."""

    def __init__(self, plan: Interactive, run: Run, receipt: Receipt, table: Table, rows: Callable[[], Rows]) -> None:
        self.plan = plan
        self.receipt = receipt
        self.ended = "answered"
        self._table = table
        self._rows = rows
        self._conversation: Conversation | None = guarded(lambda: plan._begin(run))
        self._answers: list[Any] = []
        self._lock = threading.RLock()  # a loop may ask from several threads
        self._home = Home()

    @property
    def failed(self) -> bool:
        """Did a question end without an answer?"""
        return self.ended != "answered"

    @property
    def over(self) -> bool:
        """Is nothing more answered?"""
        conversation = self._conversation
        return conversation is None or conversation.over

    def ask(self, question: Any = None) -> Any:
        """The answer to one question."""
        if self._home.left:  # else each process would go on with the same noise, and count for itself
            raise PlanError("a session is asked in the process that opened it")
        with self._lock:
            conversation = self._conversation
            if conversation is None or conversation.over:
                raise PlanError("this session is over: open another one, which is paid for anew")
            accepted = self.plan.accept(question, self._table)
            try:
                answer = guarded(lambda: record.canonical(conversation.answer(self._rows(), accepted)))
            except BaseException as problem:
                # An interrupt ends it too: half an answer may have changed the conversation.
                self.ended = ended_by(problem)
                self.close()
                raise
            self._answers.append(record.parse(answer))
            return self.plan.latest(self._answers)

    @property
    def release(self) -> Release:
        """All answers so far, with error bars."""
        return Release(self.plan, list(self._answers), self.receipt)

    def close(self) -> None:
        """End it. Waits for an answer that another thread is being given; from then on nothing holds the data."""
        with self._lock:
            self._conversation = None
            self._rows = _no_rows

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session is not pickled or copied: a copy would count its own answers")


def _no_rows() -> Rows:
    raise PlanError("this session is over: its data is closed")
