"""Wrong ledgers whose faults show in one process: each invariant holds on the ledger, and fails on its mutant."""

from __future__ import annotations

import pytest

from sfumato import Budget, sequence
from sfumato.errors import BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato_referee.mutants.ledgers import NamedOnly, PaidForGood, Refunded
from tests.helpers import laplace, spent


def asked_by_a_team_elsewhere(kind: type[Ledger]) -> int:
    """How often may a team that stands beside the data ask, where the data has room for three?"""
    ledger = kind(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=3), level="data set")
    ledger.open_account("team", Budget(epsilon=10), level="team", reason="they also work on other data")
    for number in range(8):
        try:
            ledger.spend(("team",), laplace(1), data=f"visits@{number}", grade="exact", note="")
        except BudgetError:
            return number
    return 8


def failed_again_and_again(kind: type[Ledger]) -> list[object]:
    """What is spent after each of two releases that fail on the data's side."""
    ledger = kind(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=3))
    told: list[object] = []
    for number in range(2):
        receipt = ledger.spend((), laplace(1), data=f"visits@{number}", grade="exact", note="")
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
        told += spent(ledger, "visits")
    return told


def test_the_data_s_own_account_is_charged_whoever_asks() -> None:
    assert asked_by_a_team_elsewhere(Ledger) == 3
    assert asked_by_a_team_elsewhere(NamedOnly) == 8


def test_a_failed_release_stays_paid() -> None:
    assert failed_again_and_again(Ledger) == [1, 2]
    assert failed_again_and_again(Refunded) == [0, 0]


@pytest.mark.parametrize("kind", [NamedOnly, Refunded])
def test_verify_finds_what_they_leave_behind(kind: type[Ledger]) -> None:
    ledger = kind(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=3), level="data set")
    ledger.open_account("team", Budget(epsilon=10), level="team", reason="they also work on other data")
    receipt = ledger.spend(("team",), laplace(1), data="visits@1", grade="exact", note="")
    ledger.open(receipt)
    ledger.settle(receipt, "failed")
    assert not ledger.verify().ok


def released_from_one_payment(kind: type[Ledger]) -> tuple[list[object], Ledger]:
    """A list of two is paid; one of its parts is asked for three times. What is spent after each."""
    ledger = kind(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=9), level="data set")
    ledger.prepay((), sequence(one=laplace(1), two=laplace(2)), data="visits@1", grade="exact", note="")
    told: list[object] = []
    for _ in range(3):
        receipt = ledger.spend((), laplace(1), data="visits@1", grade="exact", note="")
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
        told += spent(ledger, "visits")
    return told, ledger


def test_a_part_of_a_list_is_released_once() -> None:
    told, ledger = released_from_one_payment(Ledger)
    assert told == [3, 4, 5] and ledger.verify().ok
    told, ledger = released_from_one_payment(PaidForGood)
    assert told == [3, 3, 3] and not ledger.verify().ok
