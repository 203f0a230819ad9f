"""A plan whose answers are the test's own: what sessions are tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato import Unit, bounds, events
from sfumato.interactive import Conversation, Interactive, accept_query
from sfumato.plan import Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import Table
from tests.helpers import BY_PATIENT

Talk = Callable[[Rows, Any, int], Any]


@record("test-talking/1")
@dataclass(frozen=True, kw_only=True)
class Talking(Interactive):
    """A plan whose answers are the test's own function of (rows, question, number of answers before)."""

    tag: str
    most: int = 10**6
    questions: tuple[Any, ...] = ()
    protects: Unit = BY_PATIENT
    talks: ClassVar[dict[str, Talk]] = {}

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.Event:
        return events.Pure(epsilon=Fraction(1, 10), relation=self.protects.change)

    @property
    def agenda(self) -> tuple[Any, ...]:
        return self.questions

    def accept(self, question: Any, table: Table) -> Any:
        return accept_query(question, self, table) if isinstance(question, bounds.Bounded) else question

    def _begin(self, run: Run) -> Conversation:
        return _Talk(self, run)

    def finish(self, raw: list[Any]) -> list[Any]:
        return [("said", each) for each in raw]


class _Talk(Conversation):
    def __init__(self, plan: Talking, run: Run) -> None:
        self.plan, self.run, self.said = plan, run, 0
        Talking.talks[plan.tag](None, "begin", 0)  # type: ignore[arg-type]

    @property
    def over(self) -> bool:
        return self.said >= self.plan.most

    def answer(self, rows: Rows, question: Any) -> Any:
        self.said += 1
        return self.plan.talks[self.plan.tag](rows, question, self.said - 1)


def talking(tag: str, talk: Talk = lambda rows, question, before: before, **fields: Any) -> Talking:
    Talking.talks[tag] = talk
    return Talking(tag=tag, **fields)
