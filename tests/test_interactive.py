"""Open-ended plans: paid once and first, refused questions are free, failures end it, and nothing is served twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, partition, sequence
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError
from sfumato.interactive import Session
from sfumato.plan import Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import real
from tests.helpers import (
    AGES,
    BY_PATIENT,
    PATIENTS,
    SECRET,
    Columns,
    SpyLedger,
    SpyPrivate,
    everything_said,
    laplace,
    spent,
)
from tests.talking import Talking, talking


class House:
    def __init__(self, budget: Budget | None = None) -> None:
        self.log: list[str] = []
        self.columns = Columns(AGES)
        self.ledger = SpyLedger({"patients": budget or Budget(epsilon=10)}, self.log)
        self.private = SpyPrivate("patients", self.columns, unit=BY_PATIENT, schema=PATIENTS)
        self.private.log = self.log
        self.curator = Curator(self.private, self.ledger)


def test_a_session_pays_once_and_before_the_data_is_opened() -> None:
    house = House()
    with house.curator.session(talking("once")) as session:
        assert house.log == ["spend", "open", "_open"] and spent(house.ledger, "patients") == [Fraction(1, 10)]
        assert [session.ask(i) for i in range(5)] == [("said", i) for i in range(5)]
        assert session.receipt.event == session.plan.event
    assert house.log == ["spend", "open", "_open", "settle answered"]
    assert spent(house.ledger, "patients") == [Fraction(1, 10)]


def test_what_cannot_be_paid_is_never_opened() -> None:
    house = House(Budget(epsilon=0.05))
    with pytest.raises(BudgetError), house.curator.session(talking("dear")):
        raise AssertionError("the block ran")
    assert house.log == ["spend"]
    assert house.columns.reads == 0  # not even around the door


def test_every_session_pays_for_itself_and_is_never_a_stored_release() -> None:
    house = House()
    plan = talking("again", questions=(1, 2))
    with house.curator.session(plan) as session:
        session.ask(1)
    assert house.ledger.answer(("patients",), plan.hash, house.private.address) is None
    released = house.curator.release(plan)
    assert released.value == [("said", 0), ("said", 1)]
    with house.curator.session(plan) as session:  # nor does the stored release serve a session
        session.ask(2)
    assert spent(house.ledger, "patients") == [Fraction(3, 10)]
    assert house.curator.release(plan).receipt == released.receipt  # the release itself is stored
    assert spent(house.ledger, "patients") == [Fraction(3, 10)]


def test_a_rehearsal_needs_an_agenda_too() -> None:
    with pytest.raises(PlanError, match="names no questions"):
        House().curator.rehearse(talking("rehearsed"))


def test_release_needs_an_agenda_and_session_an_interactive_plan() -> None:
    house = House()
    with pytest.raises(PlanError, match="names no questions"):
        house.curator.release(talking("no agenda"))
    with pytest.raises(PlanError, match="takes no questions"), house.curator.session(laplace(unit=BY_PATIENT)):  # type: ignore[arg-type]
        raise AssertionError("the block ran")
    assert house.log == []


def test_refused_questions_cost_nothing_and_do_not_end_it() -> None:
    house = House()
    asked: list[Any] = []
    plan = talking("refusing", lambda rows, question, before: asked.append(question) or before)
    with house.curator.session(plan) as session:
        for wrong in (
            bounds.count(Unit()),
            bounds.clipped_sum("no such column", 0, 1, BY_PATIENT),
            bounds.histogram("age", ["x"], BY_PATIENT),
        ):
            with pytest.raises(PlanError):
                session.ask(wrong)
        assert asked[1:] == [] and not session.over and not session.failed
        assert session.ask(bounds.count(BY_PATIENT)) == ("said", 0)
    assert house.log[-1] == "settle answered" and spent(house.ledger, "patients") == [Fraction(1, 10)]


def test_the_agenda_is_checked_before_anything_is_charged() -> None:
    house = House()
    for wrong in (bounds.count(Unit()), bounds.clipped_sum("no such column", 0, 1, BY_PATIENT)):
        for questions in ((wrong,), ((wrong, 3),)):
            plan = talking("bad agenda", questions=questions)
            if isinstance(questions[0], tuple) and wrong.unit != BY_PATIENT:
                continue  # what stands beside a query is the plan's own business
            with pytest.raises(PlanError):
                house.curator.release(plan)
    assert house.log == [] or set(house.log) == {"answer"}


def test_a_query_in_a_pair_counts_as_what_the_plan_reads() -> None:
    declared = bounds.declared(len, Unit(change="replace"), reads={"x": real(0, 1)}, labels=["n"], l1=1, l2=1, linf=1)
    plan = talking("pairs", questions=((declared, 5),), protects=Unit(change="replace"))
    assert set(plan.columns) == {"x"} and plan.needs_whole
    assert not talking("pairs", questions=(), protects=Unit(change="replace")).needs_whole


@pytest.mark.parametrize("problem", [ValueError(SECRET), KeyError(SECRET), PlanError(SECRET), SystemExit(SECRET)])
def test_a_failure_on_the_data_s_side_ends_it_with_the_fixed_text(problem: BaseException) -> None:
    house = House()

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question == "fail":
            raise problem
        return before

    with house.curator.session(talking("failing", talk)) as session:
        session.ask("fine")
        with pytest.raises(DataError) as caught:
            session.ask("fail")
        assert str(caught.value) == DataError.TEXT and SECRET not in everything_said(caught.value)
        assert session.over
        with pytest.raises(PlanError, match="over"):
            session.ask("fine")
        assert session.release.value == [("said", 0)]  # what was said before stays
    assert house.log[-1] == "settle failed" and spent(house.ledger, "patients") == [Fraction(1, 10)]


def test_a_failure_at_the_start_keeps_the_charge() -> None:
    house = House()

    def talk(rows: Rows, question: Any, before: int) -> Any:
        raise ValueError(SECRET)

    with pytest.raises(DataError) as caught, house.curator.session(talking("stillborn", talk)):
        raise AssertionError("the block ran")
    assert SECRET not in everything_said(caught.value)
    assert house.log[-1] == "settle failed" and spent(house.ledger, "patients") == [Fraction(1, 10)]


def test_an_interrupt_ends_it_and_counts_towards_no_lock() -> None:
    house = House()

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question == "wait":
            raise KeyboardInterrupt(SECRET)
        return before

    with pytest.raises(KeyboardInterrupt) as caught, house.curator.session(talking("interrupted", talk)) as session:
        session.ask("wait")
    assert SECRET not in everything_said(caught.value) and house.log[-1] == "settle interrupted"
    assert house.ledger.statement("patients").failures == 0


def test_an_error_of_the_analyst_s_own_is_no_failure_of_the_data() -> None:
    house = House()
    with pytest.raises(ZeroDivisionError), house.curator.session(talking("own error")) as session:
        session.ask(1)
        _ = 1 / 0
    assert house.log[-1] == "settle answered" and session.over


def test_failures_lock_the_account_in_the_end() -> None:
    house = House()

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question != "begin":
            raise ValueError
        return None

    for _ in range(3):
        with house.curator.session(talking("locking", talk)) as session, pytest.raises(DataError):
            session.ask(1)
    with pytest.raises(BudgetError), house.curator.session(talking("locking", talk)):
        raise AssertionError("the block ran")


def test_nothing_is_answered_after_the_block() -> None:
    house = House()
    with house.curator.session(talking("closing")) as session:
        session.ask(1)
    assert session.over
    with pytest.raises(PlanError, match="over"):
        session.ask(1)
    with pytest.raises(PlanError, match="over"):
        session._rows()  # the data is let go of
    assert session.release.value == [("said", 0)] and session.release.receipt == session.receipt


def test_it_is_over_when_the_conversation_says_so() -> None:
    house = House()
    plan = talking("short", most=2, questions=(1, 2, 3, 4))
    with house.curator.session(plan) as session:
        session.ask(1), session.ask(2)
        assert session.over
        with pytest.raises(PlanError, match="over"):
            session.ask(3)
    assert house.log[-1] == "settle answered"
    assert len(house.curator.release(plan).value) == 2  # a release stops there, too


def test_several_threads_ask_one_after_the_other() -> None:
    house = House()
    inside, worst = [0], [0]

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question == "begin":
            return None
        inside[0] += 1
        worst[0] = max(worst[0], inside[0])
        threading.Event().wait(0.001)
        inside[0] -= 1
        return before

    with house.curator.session(talking("threads", talk, most=40)) as session, ThreadPoolExecutor(8) as pool:
        said = list(pool.map(session.ask, range(40)))
    assert worst == [1] and sorted(said) == [("said", i) for i in range(40)]
    assert len(session.release.value) == 40


def test_leaving_the_block_waits_for_an_answer_under_way() -> None:
    house = House()
    started = threading.Event()

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question == "slow":
            started.set()
            threading.Event().wait(0.05)
            house.log.append("answered")
        return before

    with ThreadPoolExecutor(1) as pool:
        with house.curator.session(talking("slow", talk)) as session:
            answer = pool.submit(session.ask, "slow")
            started.wait()
        assert house.log[-2:] == ["answered", "settle answered"]
        assert answer.result() == ("said", 0)


def test_answers_are_values() -> None:
    house = House()
    kept = np.zeros(3)

    def talk(rows: Rows, question: Any, before: int) -> Any:
        return {"begin": None, "array": kept, "frame": rows, "lazy": (i for i in range(3)), "nan": float("nan")}[
            question
        ]

    with house.curator.session(talking("values", talk)) as session:
        said = session.ask("array")[1]
        kept[0] = 7
        assert said.tolist() == [0, 0, 0] and session.release.raw[0].tolist() == [0, 0, 0]
    for unfit in ("frame", "lazy", "nan"):
        curator = Curator(house.private, MemoryLedger({"patients": Budget(epsilon=1)}))
        with curator.session(talking("values", talk)) as session, pytest.raises(DataError):
            session.ask(unfit)


def test_data_is_opened_once_or_anew_for_each_question() -> None:
    house = House()
    with house.curator.session(talking("opened once")) as session:
        session.ask(1), session.ask(2)
    assert house.log.count("_open") == 1

    class Growing(Talking):
        rereads: ClassVar[bool] = True

    house = House()
    Talking.talks["growing"] = lambda rows, question, before: 0 if rows is None else len(rows)
    plan = Growing(tag="growing")
    record_kinds = record("test-growing/1")(dataclass(frozen=True, kw_only=True)(Growing))
    assert record_kinds is Growing
    with house.curator.session(plan) as session:
        assert session.ask(1) == ("said", 4)
        house.columns._columns = {name: cells * 2 for name, cells in house.columns._columns.items()}
        assert session.ask(2) == ("said", 8)
    assert house.log.count("_open") == 3


def test_data_of_another_unit_is_refused_unread() -> None:
    house = House()
    with (
        pytest.raises(PlanError, match="protects"),
        house.curator.session(talking("other unit", protects=Unit("user:patient", "replace"))),
    ):
        raise AssertionError("the block ran")
    assert house.log == []


def test_an_interactive_plan_is_a_part_like_any_other() -> None:
    house = House()
    plan = talking("part", questions=(1, 2))
    both = house.curator.release(sequence(talk=plan, count=laplace(unit=BY_PATIENT)))
    assert both.value["talk"] == [("said", 0), ("said", 1)]
    assert house.curator.quote(plan).affordable
    assert house.curator.rehearse(plan).value == [("said", 0), ("said", 1)]
    schema = Schema.of(w=real(0, 1))
    curator = Curator(Private("p", {"w": [0.5]}, unit=Unit(), schema=schema), MemoryLedger({"p": Budget(epsilon=1)}))
    with pytest.raises((PlanError, ArgumentError)):
        curator.release(partition("w", ["x"], talking("part", questions=(1,), protects=Unit())))


def test_latest_may_be_cheaper_than_finish_and_says_the_same() -> None:
    class Latest(Talking):
        def latest(self, answers: list[Any]) -> Any:
            return ("said", answers[-1])

    Talking.talks["latest"] = lambda rows, question, before: before
    session = Session(Latest(tag="latest"), Run(None), None, PATIENTS.table(), lambda: None)  # type: ignore[arg-type, return-value]
    assert [session.ask(i) for i in range(3)] == session.plan.finish([0, 1, 2])
