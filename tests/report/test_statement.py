"""Statements: the limit is the guarantee, what is spent is a gauge, and every other figure says what it is."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import pytest

from sfumato import Budget, Unit, epsilon, events
from sfumato import mechanisms as m
from sfumato.bounds import Count
from sfumato.errors import BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.birth import entry_bytes
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import Statement, releases, statement
from sfumato.report.accounts.tally import MOST_KINDS, Tally, basic, in_advance, tally
from tests.helpers import laplace
from tests.ledger.stores import Stores, answered, held, pay

DELTA = Fraction(1, 10**6)
PATIENT = Unit("user:patient")


def _ledger(budget: Budget | None = None) -> Ledger:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", budget or Budget(epsilon=1, delta=DELTA))
    return ledger


def _of(ledger: Ledger, account: str = "a") -> Statement:
    return statement(ledger._store, account)


def _gaussian(multiplier: int) -> m.Gaussian:
    return m.Gaussian(query=Count(unit=Unit()), multiplier=multiplier, delta=Fraction(1, 10**9))


def test_a_statement_on_every_store(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=DELTA)})
    answered(ledger, laplace(Fraction(1, 10)))
    pay(ledger, _gaussian(20))
    found = _of(ledger)
    assert found.guarantee.startswith("all releases on this account together, however they are chosen")
    assert "(1, 1e-06)-DP for one row, present or absent" in found.guarantee
    assert [(each.currency, each.spent, each.limit) for each in found.standing] == [
        (gauge.currency, gauge.spent, gauge.limit) for gauge in ledger.spent("a")
    ]
    assert all(each.left == each.limit - each.spent and 0 < each.share < 1 for each in found.standing)
    assert (found.releases, found.closed, found.holds, found.locked) == (2, (), 0, False)
    assert found.failures_delta == (0, DELTA / 4)
    assert found.balance is not None and 0 < found.balance.spent < 1 and found.balance.room is not None
    assert found.number == 6 and len(found.hash) == 64
    text = str(found)
    for word in ("guarantee", "spent", "room for about", "basic composition", "not a guarantee for adaptive choice"):
        assert word in text
    assert "left" in found.gauges
    back = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert back["limit"] == {"epsilon": "1", "delta": "1/1000000"}
    assert Fraction(back["members"][0]["spent"]) == found.standing[0].spent


def test_figures_beside_the_guarantee() -> None:
    ledger = _ledger()
    for _ in range(5):
        pay(ledger, laplace(Fraction(1, 10)))
    pay(ledger, _gaussian(20))
    sums, fixed = _of(ledger).beside
    one = m.Gaussian(query=Count(unit=Unit()), multiplier=20, delta=Fraction(1, 10**9)).price()
    assert sums.label.startswith("basic composition") and sums.epsilon == pytest.approx(float(Fraction(1, 2) + one))
    assert sums.delta == pytest.approx(1e-9)
    whole = events.Sequence((events.Repeat(events.Laplace(epsilon=Fraction(1, 10)), 5), events.Gaussian(multiplier=20)))
    assert fixed.label.endswith("if exactly this list had been fixed in advance; not a guarantee for adaptive choice")
    assert fixed.epsilon == pytest.approx(float(epsilon(whole, delta=DELTA)), rel=1e-6)
    assert fixed.delta == 1e-6


def test_another_delta_can_be_asked_for() -> None:
    ledger = _ledger(Budget(rho=Fraction(1, 2)))
    pay(ledger, _gaussian(4))
    assert _of(ledger).beside[1].delta == 1e-6  # budgets in rho name none
    assert statement(ledger._store, "a", delta=1e-9).beside[1].delta == 1e-9
    assert "0.5-zCDP" in _of(ledger).guarantee


def test_equal_releases_are_priced_together() -> None:
    many = Tally(Counter({(events.Laplace(epsilon=Fraction(1, 1000)), Fraction(0)): 10**5}))
    assert basic(many).epsilon == pytest.approx(100)
    direct = epsilon(events.Repeat(events.Laplace(epsilon=Fraction(1, 1000)), 10**5), delta=DELTA)
    assert in_advance(many, DELTA).epsilon == float(direct)


def test_gaussian_noise_of_many_sizes_is_one() -> None:
    """Each has its own multiplier, so none are equal; together they are one Gaussian, exactly."""
    many = Tally(Counter({(events.Gaussian(multiplier=100 + k), Fraction(0)): 1 for k in range(10 * MOST_KINDS)}))
    square = sum(Fraction(1, (100 + k) ** 2) for k in range(10 * MOST_KINDS))
    found = in_advance(many, DELTA).epsilon
    assert found is not None
    low = float(
        epsilon(events.Gaussian(multiplier=Fraction(1 / float(square) ** 0.5) * (1 + Fraction(1, 10**9))), delta=DELTA)
    )
    assert low <= found <= low * (1 + 1e-6)


def test_equal_gaussian_noise_counts_as_often_as_it_was_added() -> None:
    repeated = Counter({(events.Gaussian(multiplier=20), Fraction(0)): 7})
    repeated[events.Repeat(events.Gaussian(multiplier=20), 2), Fraction(0)] = 3
    direct = float(epsilon(events.Repeat(events.Gaussian(multiplier=20), 13), delta=DELTA))
    assert in_advance(Tally(repeated), DELTA).epsilon == pytest.approx(direct, rel=1e-6)


def test_what_cannot_be_priced_has_its_reason() -> None:
    kinds = {(events.Laplace(epsilon=Fraction(k + 1, 10**5)), Fraction(0)): 1 for k in range(MOST_KINDS + 1)}
    found = in_advance(Tally(Counter(kinds)), DELTA)
    assert found.epsilon is None and found.reason is not None and "too many" in found.reason
    gaussian = Tally(Counter({(events.Gaussian(multiplier=1), Fraction(0)): 1}))
    assert basic(gaussian).epsilon is None and basic(gaussian).reason
    unread = Tally(Counter(), unread=2)
    assert basic(unread).epsilon is None and in_advance(unread, DELTA).epsilon is None
    mixed = Counter(
        {(events.Laplace(epsilon=1), Fraction(0)): 1, (events.Laplace(epsilon=1, relation="replace"), Fraction(0)): 1}
    )
    assert in_advance(Tally(mixed), DELTA).epsilon is None


def test_nothing_released_costs_nothing() -> None:
    found = _of(_ledger())
    assert [each.epsilon for each in found.beside] == [0.0, 0.0]
    assert found.unit is None and "first release will fix" in found.guarantee


def test_draws_count_and_what_was_only_held_does_not() -> None:
    ledger = _ledger(Budget(epsilon=1))
    receipt = held(ledger, Budget(epsilon=Fraction(1, 2)))
    assert _of(ledger).holds == 1 and tally(ledger._store, "a").releases == 0
    for _ in range(2):
        ledger.draw(receipt, events.Laplace(epsilon=Fraction(1, 10)), Fraction(0))
    ledger.close(receipt)
    ledger.settle(receipt, "answered")
    found = _of(ledger)
    assert (found.holds, found.releases, found.beside[0].epsilon) == (0, 2, 0.2)
    assert found.standing[0].spent == Fraction(1, 5)


def test_the_largest_limit_stays_the_guarantee() -> None:
    ledger = _ledger(Budget(epsilon=2))
    pay(ledger, laplace(Fraction(1, 10)))
    ledger.change_limit("a", Budget(epsilon=1), reason="we need less")
    found = _of(ledger)
    assert "2-DP for" in found.guarantee and "lowered to epsilon = 1 later" in found.guarantee
    assert found.limit == Budget(epsilon=1) and found.standing[0].limit == 1
    ledger.change_limit("a", Budget(epsilon=3), reason="we need more")
    assert "3-DP for" in _of(ledger).guarantee and "lowered" not in _of(ledger).guarantee


def test_closed_members_are_named() -> None:
    ledger = _ledger()
    pay(ledger, m.Gaussian(query=Count(unit=Unit()), multiplier=20))  # no delta: the plans' sum has no price for it
    found = _of(ledger)
    assert found.closed == ("epsilon",)
    assert "epsilon" not in {each.currency for each in found.standing}
    assert "closed     epsilon" in found.gauges and "gauge" not in str(found)


def test_what_changes_of_the_limit_leave_is_followed() -> None:
    ledger = _ledger(Budget(epsilon=2, delta=DELTA, raisable=True))
    for size in (1, 3):
        pay(ledger, laplace(Fraction(1, 10)))
        ledger.change_limit("a", Budget(epsilon=size, delta=DELTA, raisable=True), reason="another plan")
    pay(ledger, laplace(Fraction(1, 10)))
    last = list(releases(ledger._store))[-1]
    assert last.after["a"] == ledger.spent("a")
    assert _of(ledger).releases == 3


def test_a_first_release_that_takes_the_whole_account() -> None:
    ledger = _ledger()
    pay(ledger, m.Gaussian(query=Count(unit=Unit()), epsilon=1, delta=DELTA))
    found = _of(ledger)
    assert [(each.currency, each.share) for each in found.standing] == [("epsilon", 1.0)]
    assert "mu^2" in found.closed and found.failures_delta == (DELTA, DELTA)
    (row,) = releases(ledger._store)
    assert row.after["a"] == ledger.spent("a")


def test_failures_lock() -> None:
    ledger = _ledger()
    for _ in range(3):
        receipt = pay(ledger, laplace(Fraction(1, 100)))
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    found = _of(ledger)
    assert (found.failures, found.locked) == (3, True) and "locked" in str(found)


def test_accounts_below_and_whether_they_promise_too_much() -> None:
    ledger = _ledger(Budget(epsilon=1))
    ledger.open_account("x", Budget(epsilon=Fraction(3, 5)), parent="a", level="team")
    assert _of(ledger).overcommitted is False
    ledger.open_account("y", Budget(epsilon=Fraction(3, 5)), parent="a", level="team")
    found = _of(ledger)
    assert [each.name for each in found.children] == ["x", "y"]
    assert (found.allocated, found.overcommitted) == ("epsilon = 1.2", True)
    assert "more than this account's own limit, which holds" in str(found)
    ledger.close_account("y", reason="done")
    assert _of(ledger).overcommitted is False and _of(ledger, "y").is_closed


def test_a_folder_has_no_limit() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("org", None, level="organisation")
    ledger.open_account("a", Budget(epsilon=1), parent="org", level="data set")
    pay(ledger, laplace(Fraction(1, 10)))
    found = _of(ledger, "org")
    assert found.limit is None and found.standing == () and "no budget of its own" in found.guarantee
    assert found.overcommitted is None and str(found)
    json.dumps(found.as_dict())


def test_blocks_protect_a_unit_within_a_block_and_the_lifetime_is_shown() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=2), level="data set", unit=PATIENT)
    for month in ("jan", "feb"):
        ledger.open_block("visits", month, Budget(epsilon=1), reason="a month")
        pay(ledger, laplace(Fraction(2, 5), PATIENT), "visits", data=f"visits@1#{month}")
    found = _of(ledger, "visits")
    assert [(each.limit, each.share) for each in found.blocks] == [("epsilon = 1", 0.4)] * 2
    assert found.children == () and found.allocated is None
    assert [each.spent for each in found.lifetime] == [Fraction(4, 5)]
    assert "lifetime loss of a unit" in str(found)
    block = _of(ledger, found.blocks[0].name)
    assert "(unit, block): everything one patient ever contributed" in block.guarantee
    assert "within this block" in block.guarantee and block.standing[0].spent == Fraction(2, 5)


def test_a_statement_of_nobody_is_refused() -> None:
    with pytest.raises(BudgetError, match="no account 'b'"):
        _of(_ledger(), "b")


def test_releases_that_cannot_be_read_are_not_left_out() -> None:
    ledger = _ledger()
    pay(ledger, laplace(Fraction(1, 10)))
    text = json.loads(entry_bytes("spend", "x", {"receipt": None, "delta": Fraction(0)}))
    newer = {"is": "receipt/1", "id": "r", "accounts": ["a"], "event": {"is": "event-from-2099/1"}}
    text["items"] = [["receipt", newer] if pair[0] == "receipt" else pair for pair in text["items"]]
    with ledger._store.writing() as book:
        book.append(json.dumps(text).encode())
    found = _of(ledger)
    assert found.releases == 2
    assert all(each.epsilon is None and each.reason and "cannot be read" in each.reason for each in found.beside)
