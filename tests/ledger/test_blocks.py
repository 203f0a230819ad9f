"""A budget per block: a release is charged to each block that it reads, and to the data set once."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Unit, events, reserve
from sfumato.errors import ArgumentError, BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy import approvals
from sfumato.ledger.proof import birth
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.memory import MemoryStore
from tests.helpers import account_of, laplace
from tests.ledger.stores import ROW, Stores

MONTHS = ("jan", "feb", "mar")


def blocked(stores: Stores | None, **more: Any) -> Ledger:
    ledger = Ledger(MemoryStore() if stores is None else stores.new())
    ledger.open_account("visits", Budget(epsilon=5), level="data set", **more)
    for month in MONTHS:
        ledger.open_block("visits", month, Budget(epsilon=1))
    return ledger


def spend(ledger: Ledger, epsilon: Any, *blocks: str, accounts: tuple[str, ...] = (), unit: Unit = ROW) -> Any:
    data = "visits@1" + ("#" + ",".join(blocks) if blocks else "")
    return ledger.spend(accounts, laplace(epsilon, unit), data=data, grade="exact", note="")


def totals(ledger: Ledger) -> list[Fraction]:
    return [ledger.spent(name)[0].spent for name in ("visits", *(f"visits#{month}" for month in MONTHS))]


def test_each_named_block_and_the_data_set_once(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    spend(ledger, 0.5, "jan", "feb")
    assert totals(ledger) == [Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), 0]
    spend(ledger, 0.5, "jan", "jan")
    assert totals(ledger) == [1, 1, Fraction(1, 2), 0], "a block that is named twice is read once"
    with pytest.raises(BudgetError, match="does not cover"):
        spend(ledger, 0.1, "jan", "mar")
    assert totals(ledger) == [1, 1, Fraction(1, 2), 0]
    spend(ledger, 1, "mar")
    assert account_of(ledger, "visits#jan").level == "block" and verify(ledger._store).ok


def test_the_data_set_sums_its_blocks(ledgers: Stores) -> None:
    """Its limit is that of a unit's whole life, whatever the blocks still have."""
    ledger = blocked(ledgers)
    ledger.change_limit("visits", Budget(epsilon=2), reason="less")
    for month in MONTHS[:2]:
        spend(ledger, 1, month)
    with pytest.raises(BudgetError):
        spend(ledger, Fraction(1, 100), "mar")
    assert totals(ledger) == [2, 1, 1, 0]


def test_blocks_have_to_be_named_and_known(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    with pytest.raises(BudgetError, match="say which blocks"):
        spend(ledger, 0.1)
    for blocks in (("dec",), ("jan", "dec"), ("JAN",), ("jan ",)):
        with pytest.raises(BudgetError, match=r"no block .* yet"):
            spend(ledger, 0.1, *blocks)
    assert totals(ledger) == [0, 0, 0, 0]


def test_a_block_is_opened_once_and_never_above_its_data_set(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    with pytest.raises(BudgetError, match="already"):
        ledger.open_block("visits", "jan", Budget(epsilon=2))
    with pytest.raises(BudgetError, match="above what 'visits' has"):
        ledger.open_block("visits", "apr", Budget(epsilon=6))
    with pytest.raises(BudgetError, match="knows no data set 'labs'"):
        ledger.open_block("labs", "jan", Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="an account of the data set"):
        ledger.open_block("visits", "apr", Budget(epsilon=1), account="visits#jan")
    for block in ("", " ", "\n", 7):
        with pytest.raises(ArgumentError):
            ledger.open_block("visits", block, Budget(epsilon=1))  # type: ignore[arg-type]
    ledger.close_account("visits#jan", reason="old")
    with pytest.raises(BudgetError, match="already"):
        ledger.open_block("visits", "jan", Budget(epsilon=1))
    with pytest.raises(BudgetError, match="is closed"):
        spend(ledger, 0.1, "jan")
    spend(ledger, 0.1, "feb")
    assert verify(ledger._store).ok


def test_strange_names_of_blocks_stay_apart(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    for block in ("a,b", "a", "b", "a#b", "a%2Cb", "@", "&"):
        ledger.open_block("visits", block, Budget(epsilon=1))
    receipt = ledger.spend((), laplace(1), data="visits@1#a%2Cb", grade="exact", note="")
    assert set(receipt.accounts) == {"visits", "visits#a%2Cb"}
    assert set(spend(ledger, 0.5, "a", "b").accounts) == {"visits", "visits#a", "visits#b"}
    with pytest.raises(BudgetError, match="already"):
        ledger.open_account("visits#a", Budget(epsilon=1), parent="visits")
    assert verify(ledger._store).ok


@pytest.mark.parametrize("change", ["replace", "zero-out"])
def test_a_unit_that_may_leave_its_block_has_none(ledgers: Stores, change: Any) -> None:
    ledger = Ledger(ledgers.new())
    ledger.open_account("visits", Budget(epsilon=1), unit=Unit(change=change))
    with pytest.raises(BudgetError, match="added or removed"):
        ledger.open_block("visits", "jan", Budget(epsilon=1))
    later = blocked(ledgers)  # the unit is not known before the first spend
    with pytest.raises(BudgetError, match="added or removed"):
        spend(later, 0.1, "jan", unit=Unit(change=change))
    assert totals(later) == [0, 0, 0, 0] and verify(later._store).ok


def test_a_copy_has_the_blocks_of_its_original_and_no_others(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    ledger.register("view", same_as="visits", reason="a view")
    ledger.open_block("visits", "apr", Budget(epsilon=1))
    for block in ("jan", "apr"):
        receipt = ledger.spend((), laplace(1), data=f"view@1#{block}", grade="exact", note="")
        assert set(receipt.accounts) == {"visits", f"visits#{block}"}
        with pytest.raises(BudgetError, match="does not cover"):
            spend(ledger, 0.1, block)
    with pytest.raises(BudgetError, match="is a copy: open the block on 'visits'"):
        ledger.open_block("view", "may", Budget(epsilon=1))
    ledger.open_account("labs", Budget(epsilon=1), reason="others")
    ledger.open_block("labs", "jan", Budget(epsilon=1))
    with pytest.raises(BudgetError, match="blocks of its own"):
        ledger.register("labs", same_as="visits", reason="a copy after all")
    assert verify(ledger._store).ok


def test_data_of_the_name_of_a_block_is_no_data_set(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    with pytest.raises(BudgetError, match="knows no data set 'visits#jan'"):
        ledger.spend((), laplace(0.1), data="visits%23jan@1", grade="exact", note="")


def test_a_hold_on_blocks_is_drawn_on_blocks(ledgers: Stores) -> None:
    ledger = blocked(ledgers)
    plan = reserve(unit=ROW, budget=Budget(epsilon=1))
    receipt = ledger.hold((), plan, data="visits@1#jan,feb", grade="exact", note="")
    ledger.open(receipt)
    with pytest.raises(BudgetError):
        spend(ledger, 0.1, "jan")
    spend(ledger, 1, "mar")
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    ledger.close(receipt)
    assert totals(ledger) == [Fraction(3, 2), Fraction(1, 2), Fraction(1, 2), 1]
    assert verify(ledger._store).ok


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.sets(st.sampled_from(MONTHS), min_size=1)), max_size=12))
def test_blocks_and_data_set_by_hand(asked: list[tuple[int, set[str]]]) -> None:
    ledger = blocked(None)
    ledger.change_limit("visits", Budget(epsilon=2), reason="less")
    by_hand = dict.fromkeys(("visits", *MONTHS), Fraction(0))
    for tenths, blocks in asked:
        price, named = Fraction(tenths, 5), sorted(blocks)
        fits = by_hand["visits"] + price <= 2 and all(by_hand[block] + price <= 1 for block in named)
        if fits:
            spend(ledger, price, *named)
            for name in ("visits", *named):
                by_hand[name] += price
        else:
            with pytest.raises(BudgetError):
                spend(ledger, price, *named)
    assert totals(ledger) == list(by_hand.values())


def test_the_clock_opens_no_block(ledgers: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = blocked(ledgers)
    spend(ledger, 1, "jan")

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2199, 1, 1, tzinfo=UTC)

    for module in (birth, approvals):
        monkeypatch.setattr(module, "datetime", Later)
    with pytest.raises(BudgetError, match="does not cover"):
        spend(ledger, 0.1, "jan")
    with pytest.raises(BudgetError, match="no block 'dec' yet"):
        spend(ledger, 0.1, "dec")
