"""Budgets belong to the data: a view, a copy or another account of it is charged where the original is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, Curator, Private, Unit
from sfumato.errors import ArgumentError, BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.verify import verify
from tests.helpers import AGES, BY_PATIENT, PATIENTS, laplace
from tests.ledger.stores import ROW, Stores


def spend(ledger: Ledger, epsilon: Any, *accounts: str, data: str = "visits@1", unit: Unit = ROW) -> Any:
    return ledger.spend(accounts, laplace(epsilon, unit), data=data, grade="exact", note="")


def total(ledger: Ledger, account: str) -> Fraction:
    return ledger.spent(account)[0].spent


def opened(stores: Stores) -> Ledger:
    return stores({"visits": Budget(epsilon=2), "labs": Budget(epsilon=2)})


def facts(ledger: Ledger) -> Any:
    with ledger._store.reading() as book:
        return book.head, book.facts("data")


def test_data_that_nobody_has_entered_is_refused(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    before = facts(ledger)
    for accounts in ((), ("visits",), ("visits", "labs")):
        with pytest.raises(BudgetError, match="knows no data set 'patients': open an account"):
            spend(ledger, 0.1, *accounts, data="patients@1")
    curator = Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger, accounts=("visits",))
    with pytest.raises(BudgetError, match="knows no data set"):
        curator.release(laplace(1, BY_PATIENT))
    assert facts(ledger) == before


@pytest.mark.parametrize("version", ["1", "2", "tomorrow"])
def test_another_version_is_no_fresh_budget(ledgers: Stores, version: str) -> None:
    ledger = opened(ledgers)
    spend(ledger, 2)
    with pytest.raises(BudgetError, match="does not cover"):
        spend(ledger, 0.1, data=f"visits@{version}")


def test_a_view_and_a_view_of_it_charge_the_original(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("view", same_as="visits", reason="a view")
    ledger.register("view of it", same_as="view", reason="a view")
    for data in ("visits@1", "view@1", "view of it@1"):
        spend(ledger, 0.5, data=data)
    assert total(ledger, "visits") == Fraction(3, 2) and total(ledger, "labs") == 0
    with pytest.raises(BudgetError, match="does not cover"):
        spend(ledger, 0.6, "labs", data="view of it@1")
    assert total(ledger, "labs") == 0 and verify(ledger._store).ok


def test_a_copy_of_what_is_closed_is_closed(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("view", same_as="visits", reason="a view")
    ledger.close_account("visits", reason="done")
    for accounts in ((), ("labs",)):
        with pytest.raises(BudgetError, match="'visits' is closed"):
            spend(ledger, 0.1, *accounts, data="view@1")
    ledger.register("view", accounts=("labs",), reason="an account that is open")
    with pytest.raises(BudgetError, match="'visits' is closed"):
        spend(ledger, 0.1, data="view@1")


def test_whatever_is_added_later_to_the_original_holds_for_its_copies(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("view", same_as="visits", reason="a view")
    ledger.register("visits", accounts=("labs",), reason="the same people")
    spend(ledger, 0.5, data="view@1")
    assert total(ledger, "labs") == total(ledger, "visits") == Fraction(1, 2)
    ledger.open_block("visits", "jan", Budget(epsilon=1))
    with pytest.raises(BudgetError, match="say which blocks"):
        spend(ledger, 0.5, data="view@1")
    receipt = spend(ledger, 1, data="view@1#jan")
    assert set(receipt.accounts) == {"visits", "labs", "visits#jan"}
    with pytest.raises(BudgetError):
        spend(ledger, 0.1, data="view@1#jan")
    assert verify(ledger._store).ok


def test_registering_never_takes_a_charge_away(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("people", accounts=("visits",), reason="first")
    ledger.register("people", accounts=("labs",), reason="also there")
    assert set(spend(ledger, 0.5, data="people@1").accounts) == {"visits", "labs"}
    ledger.register("visits", accounts=("labs",), reason="the same people")
    assert set(spend(ledger, 0.5).accounts) == {"visits", "labs"}
    ledger.open_account("people", Budget(epsilon=1), parent="labs", unit=ROW)
    assert set(spend(ledger, 0.5, data="people@1").accounts) == {"visits", "labs", "people"}
    assert verify(ledger._store).ok


def test_what_registers_nothing_is_refused(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("view", same_as="visits", reason="a view")
    before = facts(ledger)
    for more in ({}, {"accounts": ()}, {"accounts": ("visits",)}, {"same_as": "visits"}, {"same_as": "view"}):
        with pytest.raises(ArgumentError, match="accounts to add"):
            ledger.register("view", **more, reason="again")  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="no account 'nobody'"):
        ledger.register("view", accounts=("nobody",), reason="x")
    with pytest.raises(BudgetError, match="knows no data set 'nothing'"):
        ledger.register("view", same_as="nothing", reason="x")
    for reason in ("", " ", "\n", 7):
        with pytest.raises(ArgumentError, match="reason"):
            ledger.register("view", accounts=("labs",), reason=reason)  # type: ignore[arg-type]
    assert facts(ledger) == before


def test_copies_of_one_another_end_somewhere(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    ledger.register("visits", same_as="labs", reason="the same people")
    ledger.register("labs", same_as="visits", reason="the same people")
    for data in ("visits@1", "labs@1"):
        assert set(spend(ledger, 0.5, data=data).accounts) == {"visits", "labs"}
    assert verify(ledger._store).ok


def test_an_account_by_the_name_of_the_data_brings_in_no_other_unit(ledgers: Stores) -> None:
    """Else the rows of data that is protected by person could be asked for, at the cost of a new account."""
    ledger = Ledger(ledgers.new())
    ledger.open_account("people", Budget(epsilon=1), unit=BY_PATIENT)
    ledger.register("visits", accounts=("people",), reason="the same people")
    for unit in (ROW, None):
        with pytest.raises(BudgetError, match="protect another unit"):
            ledger.open_account("visits", Budget(epsilon=1), unit=unit, reason="fresh")
    with pytest.raises(BudgetError, match="no budget that protects"):
        spend(ledger, 0.1)
    ledger.open_account("visits", Budget(epsilon=1), parent="people", unit=BY_PATIENT)
    assert set(spend(ledger, 0.1, unit=BY_PATIENT).accounts) == {"people", "visits"}
    assert verify(ledger._store).ok


def test_an_answer_is_served_only_where_all_have_paid_for_it(ledgers: Stores) -> None:
    ledger = opened(ledgers)
    receipt = spend(ledger, 1)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"[1]")
    found = laplace(1).hash
    assert ledger.answer((), found, "visits@1") is not None and ledger.answer(("labs",), found, "visits@1") is None
    assert ledger.answer((), found, "visits@2") is None
    ledger.register("visits", accounts=("labs",), reason="the same people")
    assert ledger.answer((), found, "visits@1") is None, "labs has not paid for it"
