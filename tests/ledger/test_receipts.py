"""Receipts open once and answer once; failures lock; what is left is told. On every store."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest

from sfumato import Budget, events, reserve
from sfumato.accounting.calibrate import calibrate
from sfumato.errors import ArgumentError, BudgetError, ReceiptError
from sfumato_referee.attacks.ledger import retrying
from tests.helpers import BY_PATIENT, laplace, spent
from tests.ledger.stores import ROW, Stores, answered, held, pay

# L3: receipts open once, answers are kept


WORDS = {
    "was answered and not opened": "opened receipt can be answered",
    "was opened twice": "opened before",
    **dict.fromkeys(("was opened", "was settled", "was drawn on"), "did not write"),
}


def test_l3_a_receipt_opens_once_and_answers_once_and_nobody_else_s_does(ledgers: Stores) -> None:
    """Whatever attack L3 does with a receipt, on every store; and what it is told."""
    ledger, other = ledgers({}), ledgers({})
    for what, act in retrying.misuses(ledger, other):
        words = next((words for end, words in WORDS.items() if what.endswith(end)), None)
        with pytest.raises(ReceiptError, match=words):
            act()
    assert retrying.answered_for(ledger) == b"x"
    plans = [laplace(epsilon, BY_PATIENT).hash for epsilon in (1, 2, 3)]
    assert [ledger.answer(("patients",), digest, "patients@1") is None for digest in plans] == [False, True, True]
    assert ledger.verify().ok


def test_l3_one_failure_is_counted_once(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    receipt = pay(ledger, laplace())
    ledger.open(receipt)
    for _ in range(3):
        with contextlib.suppress(ReceiptError):
            ledger.settle(receipt, "failed")
    pay(ledger, laplace(0.1))  # not locked


def test_l3_stored_answers_belong_to_the_plan_the_data_and_the_accounts_that_paid(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5), "b": Budget(epsilon=5), "c": Budget(epsilon=5)})
    receipt = answered(ledger, laplace(1), "a", "b", answer=b"the answer")
    digest = receipt.plan_hash
    for accounts in (("a",), ("b",), ("a", "b"), ("b", "a")):
        assert ledger.answer(accounts, digest, "a@1") == (receipt, b"the answer")
    for accounts in (("c",), ("a", "c"), ("a", "b", "c")):
        assert ledger.answer(accounts, digest, "a@1") is None
    assert ledger.answer(("a",), digest, "a@2") is None
    assert ledger.answer(("a",), laplace(2).hash, "a@1") is None


def test_every_receipt_has_its_own_name(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    ids = {pay(ledger, laplace(0.001)).id for _ in range(200)}
    assert len(ids) == 200 and all(len(id_) == 32 for id_ in ids)


# Locks


def test_an_account_locks_after_three_failures_until_somebody_looks(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=10), "b": Budget(epsilon=10)})
    hold = held(ledger, Budget(epsilon=1))
    for number in range(3):
        receipt = pay(ledger, laplace(1), *(("a", "b") if number else ("a",)))
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    for refused in (
        lambda: pay(ledger, laplace(1)),
        lambda: pay(ledger, laplace(1), "b", "a"),
        lambda: held(ledger, Budget(epsilon=1)),
    ):
        with pytest.raises(BudgetError, match="account 'a' is locked after 3 failures"):
            refused()
    assert not ledger.quote(("a",), laplace(1))
    pay(ledger, laplace(1), "b")
    ledger.draw(hold, events.Laplace(epsilon=0.1), Fraction(0))  # what was granted before goes on
    for reason in ("", None, "\n"):
        with pytest.raises(ArgumentError, match="reason"):
            ledger.unlock("a", reason)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="no account 'nobody'"):
        ledger.unlock("nobody", "looked")
    ledger.unlock("a", "a typing error in the ward column")
    pay(ledger, laplace(1))


def test_only_what_failed_with_the_data_open_counts_towards_the_lock(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=10)})
    for _ in range(4):
        receipt = pay(ledger, laplace(0.1))
        ledger.open(receipt)
        ledger.settle(receipt, "interrupted")
        with pytest.raises(ReceiptError):
            ledger.settle(receipt, "failed")
        ledger.settle(pay(ledger, laplace(0.1)), "failed")  # which was never opened
        ledger.settle(pay(ledger, laplace(0.1)), "interrupted")
    statement = ledger.statement("a")
    assert statement.failures == 0 and not statement.locked
    assert spent(ledger, "a") == [Fraction(12, 10)]  # the charges stay
    outcomes = [entry.outcome for entry in ledger.history(kind="settle")]
    assert outcomes == ["interrupted", "unopened", "unopened"] * 4
    assert {row.state for row in ledger.releases()} == {"failed"}
    assert "interrupted" in str(next(ledger.history(kind="settle")))
    assert ledger.verify().ok


def test_answers_do_not_count_as_failures(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=10)})
    for _ in range(10):
        answered(ledger, laplace(1))


def test_what_is_left_is_told_in_words(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(0.01))
    assert ledger.left("a") == "0.01 of 1 epsilon spent at delta 1e-06"
    with pytest.raises(BudgetError, match="no account 'b'"):
        ledger.left("b")


def test_settling_knows_two_outcomes(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    with pytest.raises(ArgumentError, match="outcome"):
        ledger.settle(pay(ledger, laplace(0.1)), "refunded")
    assert not hasattr(ledger, "refund")


def test_calibration_aims_at_what_an_account_still_accepts(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(Fraction(1, 2)), "a")

    def noise(multiplier: float) -> events.Event:
        return events.Gaussian(multiplier=multiplier)

    found = calibrate(noise, account=ledger.room("a"), delta=1e-7)
    assert ledger.room("a").fits(found.event, Fraction(1, 10**7))
    assert not ledger.room("a").fits(noise(found.parameter * 0.99), Fraction(1, 10**7))
    assert ledger.spent("a")[0].spent == Fraction(1, 2)  # asking costs nothing
    with pytest.raises(BudgetError, match="no account"):
        ledger.room("b")


def test_room_that_is_held_is_not_offered_to_a_calibration(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    event = events.Laplace(epsilon=Fraction(1, 2))
    assert ledger.room("a").fits(event, Fraction(0))
    plan = reserve(unit=ROW, budget=Budget(epsilon=Fraction(3, 4)))
    receipt = ledger.hold(("a",), plan, data="a@1", grade="exact", note="")
    assert not ledger.room("a").fits(event, Fraction(0))
    ledger.close(receipt)
    assert ledger.room("a").fits(event, Fraction(0))
