"""Room that is set aside for long work, on every store."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, bounds, events, reserve
from sfumato import mechanisms as m
from sfumato.errors import BudgetError, ReceiptError
from tests.helpers import (
    Bite,
    few,
    laplace,
    spent,
)
from tests.ledger.stores import ROW, Stores, held, pay

# Holds


def test_a_hold_blocks_others_draws_spend_and_closing_frees_the_rest(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    receipt = held(ledger, Budget(epsilon=0.75))
    assert receipt.loop == "trusted loop" and spent(ledger, "a") == [0]  # a hold is not a spend
    assert ledger.left("a") == "0 of 1 epsilon spent, 1 hold(s) open"
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.5))
    assert not ledger.quote(("a",), laplace(0.5))
    pay(ledger, laplace(0.25))
    ledger.draw(receipt, events.Laplace(epsilon=0.25), Fraction(0))
    assert spent(ledger, "a") == [Fraction(1, 2)]
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.01))
    ledger.close(receipt)
    assert spent(ledger, "a") == [Fraction(1, 2)]
    with pytest.raises(ReceiptError, match="nothing is held"):
        ledger.draw(receipt, events.Laplace(epsilon=0.25), Fraction(0))
    pay(ledger, laplace(0.5))
    assert spent(ledger, "a") == [1]


def test_a_hold_after_draws_still_blocks_what_is_left_of_it(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    receipt = held(ledger, Budget(epsilon=1))
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.5))  # the other half is still held
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=1e-9), Fraction(0))


def test_two_holds_cannot_hold_the_same_room(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    first = held(ledger, Budget(epsilon=0.6))
    with pytest.raises(BudgetError):
        held(ledger, Budget(epsilon=0.6))
    second = held(ledger, Budget(epsilon=0.4))
    for receipt, epsilon in ((first, 0.6), (second, 0.4)):
        ledger.draw(receipt, events.Laplace(epsilon=epsilon), Fraction(0))
    assert spent(ledger, "a") == [1]


@pytest.mark.parametrize(
    ("budget", "child"),
    [
        (Budget(rho=0.01), m.Gaussian(query=bounds.count(ROW), rho=0.01)),
        (Budget(epsilon=0.25, delta=1e-7), m.Gaussian(query=bounds.count(ROW), epsilon=0.25, delta=1e-8)),
        (Budget(epsilon=0.5), laplace(0.5)),
    ],
    ids=["rho", "delta", "pure"],
)
@pytest.mark.parametrize(
    "bites",
    [
        [(events.Approximate(epsilon=0.01, delta=1e-8), Fraction(1, 10**8))],
        [(events.Laplace(epsilon=0.05), Fraction(0))] * 40,
        [(events.Gaussian(multiplier=30), Fraction(0))] * 40,
        [(events.Laplace(epsilon=0.1), Fraction(0))] * 12,
    ],
    ids=["closes rho", "many small", "many gaussians", "closes the sum"],
)
def test_whatever_others_spend_what_is_held_can_still_be_drawn(
    ledgers: Stores, budget: Budget, child: Any, bites: Any
) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    receipt = held(ledger, budget)
    for bite in bites:
        with contextlib.suppress(BudgetError):
            ledger.spend(("a",), Bite(*bite), data="a@1", grade="exact", note="")
    ledger.draw(receipt, child.event, child.delta)


def test_a_draw_never_takes_the_room_that_another_holds(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    first, _ = held(ledger, Budget(epsilon=0.5)), held(ledger, Budget(epsilon=0.5))
    with pytest.raises(BudgetError):
        ledger.draw(first, events.Laplace(epsilon=0.6), Fraction(0))
    assert spent(ledger, "a") == [0]


def test_a_draw_needs_an_opened_hold(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    spend_receipt = pay(ledger, laplace(0.1))
    ledger.open(spend_receipt)
    unopened = ledger.hold(("a",), reserve(unit=ROW, budget=Budget(epsilon=0.1)), data="a@1", grade="exact", note="")
    for receipt in (spend_receipt, unopened):
        with pytest.raises(ReceiptError, match="nothing is held"):
            ledger.draw(receipt, events.Laplace(epsilon=0.1), Fraction(0))
    settled = held(ledger, Budget(epsilon=0.1))
    ledger.settle(settled, "answered")
    with pytest.raises(ReceiptError):
        ledger.draw(settled, events.Laplace(epsilon=0.1), Fraction(0))


def test_a_draw_is_charged_on_every_account_of_the_path_or_on_none(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1), "b": Budget(epsilon=2)})
    receipt = held(ledger, Budget(epsilon=1), "b", "a")
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=0.75), Fraction(0))
    assert spent(ledger, "a") == spent(ledger, "b") == [Fraction(1, 2)]


@settings(few, max_examples=25)
@given(st.lists(st.sampled_from([0.1, 0.25, 0.3, 0.6]), max_size=8), st.lists(st.sampled_from([0.1, 0.3]), max_size=8))
def test_holds_draws_and_spends_together_never_pass_the_budget(
    all_stores: Stores, holds: list[float], spends: list[float]
) -> None:
    ledger = all_stores.fresh({"a": Budget(epsilon=1)})
    receipts = []
    for size in holds:
        with contextlib.suppress(BudgetError):
            receipts.append((held(ledger, Budget(epsilon=size)), Fraction(repr(size))))
    for epsilon in spends:
        with contextlib.suppress(BudgetError):
            pay(ledger, laplace(epsilon))
    for receipt, size in receipts:  # whatever was held can be drawn, to the last
        ledger.draw(receipt, events.Laplace(epsilon=size), Fraction(0))
    assert spent(ledger, "a")[0] <= 1
