"""What counts towards the lock of an account: failures that the data may have caused, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import sqlglot

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, record, reserve
from sfumato.errors import BudgetError, DataError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.replay import RULES
from sfumato.ledger.proof.state import State
from sfumato.plan import Run
from sfumato.query import Limits, sql
from sfumato.rows import Rows
from sfumato.schema import Table, key, real
from tests.helpers import AGES, BY_PATIENT, PATIENTS, hooked, laplace, spent
from tests.ledger.stores import pay
from tests.ledger.test_replay_rules import forged, free
from tests.stepping import Stepping
from tests.talking import talking


def curator(ledger: Ledger) -> Curator:
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)


def stopped(rows: Rows, run: Run) -> Any:
    raise KeyboardInterrupt


def broken(rows: Rows, run: Run) -> Any:
    raise ValueError


def test_ctrl_c_is_paid_for_and_locks_nothing_while_failures_of_the_data_do() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10)})
    for number in range(5):
        with pytest.raises(KeyboardInterrupt):
            curator(ledger).release(hooked(f"stopped {number}", stopped, epsilon=1))
    assert ledger.statement("patients").failures == 0 and spent(ledger, "patients") == [5]
    for number in range(3):
        with pytest.raises(DataError):
            curator(ledger).release(hooked(f"broken {number}", broken, epsilon=1))
    with pytest.raises(BudgetError, match="locked after 3 failures"):
        curator(ledger).release(hooked("one more", stopped, epsilon=1))
    assert [each.outcome for each in ledger.history(kind="settle")] == ["interrupted"] * 5 + ["failed"] * 3
    assert ledger.verify().ok


def test_ctrl_c_in_a_block_counts_only_where_the_data_had_failed_before() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10)})
    room = reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))
    with pytest.raises(KeyboardInterrupt), curator(ledger).supervise(room):
        raise KeyboardInterrupt
    assert ledger.statement("patients").failures == 0
    with pytest.raises(KeyboardInterrupt), curator(ledger).supervise(room) as run:
        with contextlib.suppress(DataError):
            run.release(hooked("broken child", broken, epsilon=0.1))
        raise KeyboardInterrupt  # which does not wash the failure away
    assert ledger.statement("patients").failures == 1


def test_ctrl_c_in_an_answer_of_a_session_ends_it_and_does_not_count() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10)})

    def talk(rows: Rows, question: Any, before: int) -> Any:
        if question == "wait":
            raise KeyboardInterrupt
        if question == "break":
            raise ValueError

    for question, failures in (("wait", 0), ("break", 1)):
        with (
            pytest.raises((KeyboardInterrupt, DataError)),
            curator(ledger).session(talking(question, talk)) as session,
        ):
            session.ask(question)
        assert ledger.statement("patients").failures == failures


def test_an_engine_that_ctrl_c_stops_is_interrupted_and_one_that_is_late_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine says in its own words that it was stopped, which were taken for a failure of the data."""
    schema = Schema({"t": Table({"who": key(), "x": real(0, 9)}, unit="who")})
    rows = {"who": list(range(3000)), "x": [1.0] * 3000}
    unit = Unit("user:who")
    text = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.who = b.who AND a.x <= b.x"
    plan = sql(text, schema, unit=unit, epsilon=1, limits=Limits())
    ledger = MemoryLedger({"d": Budget(epsilon=10)})
    door = Curator(Private("d", rows, unit=unit, schema=schema), ledger)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    opened = Private._open

    def slow(self: Any, receipt: Any, opens: str, *empty: Any) -> Any:
        session = opened(self, receipt, opens, *empty)
        run = session.run
        tree = sqlglot.parse_one("SELECT COUNT(*) FROM t AS a, t AS b, t AS c WHERE a.x * b.x * c.x < 0")

        def first_a_slow_one(asked: Any) -> Any:
            if self.version == "1":
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            run(tree)
            return run(asked)

        session.run = first_a_slow_one
        return session

    late = Curator(Private("d", rows, unit=unit, schema=schema, version="2", engine={"seconds": 0.3}), ledger)
    monkeypatch.setattr(Private, "_open", slow)
    try:
        with pytest.raises(KeyboardInterrupt):
            door.release(plan)
    finally:
        signal.signal(signal.SIGINT, before)
    assert spent(ledger, "d") == [1] and ledger.statement("d").failures == 0
    with pytest.raises(DataError):
        late.release(plan)
    assert [each.outcome for each in ledger.history(kind="settle")] == ["interrupted", "failed"]
    assert ledger.statement("d").failures == 1


def test_steps_that_ctrl_c_stops_without_a_key_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10, delta=1e-5)})
    monkeypatch.setitem(Stepping.hooks, "stopped", stopped)
    with pytest.raises(KeyboardInterrupt):
        curator(ledger).release(Stepping(tag="stopped"))
    assert [each.outcome for each in ledger.history(kind="settle")] == ["interrupted"]
    assert ledger.statement("patients").failures == 0


# What `verify` says


@pytest.mark.parametrize("outcome", ["answered", "interrupted", "unopened", "lucky"])
def test_an_entry_that_ends_a_receipt_as_it_cannot_have_ended_is_named(outcome: str) -> None:
    def ended(office: Any, *, opened: bool = True) -> None:
        receipt = pay(office["ana"], laplace(Fraction(1, 10)), "team", data="visits@1")
        if opened:
            office["ana"].open(receipt)
        office["ana"].settle(receipt, "failed")

    words = forged(free(), ended, lambda entry: {**entry, "outcome": outcome}, "settle")
    assert bool(words) == (outcome in ("unopened", "lucky"))
    words = forged(free(), lambda office: ended(office, opened=False), lambda entry: {**entry, "outcome": outcome})
    assert bool(words) == (outcome != "unopened")


def test_failures_of_old_are_read_and_count_as_they_did() -> None:
    """Before there was a word for it, what was never opened ended as "failed", and was counted."""
    ledger = MemoryLedger({"a": Budget(epsilon=10)})
    ledger.settle(pay(ledger, laplace(1)), "failed")
    with ledger._store.reading() as book:
        entries = [record.parse(stored[1], dict) for n in range(1, book.head.number + 1) if (stored := book.entry(n))]
    for outcome, failures in (("unopened", 0), ("failed", 1)):
        state = State()
        for entry in entries:
            told = entry | ({"outcome": outcome} if entry["kind"] == "settle" else {})
            RULES[told["kind"]](state, told)
        assert state.account("a").failures == failures


def test_a_count_of_failures_that_the_entries_do_not_give_is_named() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10)})
    with pytest.raises(DataError):
        curator(ledger).release(hooked("broken", broken, epsilon=1))
    with ledger._store.writing() as book:
        account = book.account("patients")
        assert account is not None and account.failures == 1
        book.put_account(replace(account, failures=0))
    assert not ledger.verify().ok
