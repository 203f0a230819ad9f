"""The contract of a store, below any ledger: what is written within a block is there together, or not at all.

`SUITE` is what every store passes, and `DURABLE` what one passes that outlives its process: these tests, and those of
spending, receipts, holds, lists and steps that run on all of them. A new store joins `MEMBERS` in stores.py, and passes
them all; a test of CONTRIBUTING's recipe runs the two lists on one that was written to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato import Budget, record
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import GENESIS, first_broken
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Account, Store
from tests.helpers import laplace
from tests.ledger import test_holds, test_prepaying, test_receipts, test_spending, test_steps, test_totals
from tests.ledger.stores import Stores, answered, held, pay
from tests.ledger.test_totals import account


def entry(store: Store, number: int) -> bytes:
    return record.canonical({"by": store.principal or "somebody", "n": number})


def test_an_empty_store_has_nothing(ledgers: Stores) -> None:
    store = ledgers.new()
    with store.reading() as book:
        assert (book.head, book.entry(1), book.accounts(), book.account("a")) == (GENESIS, None, (), None)
        assert (book.filed("r"), book.filed_under("k"), list(book.answered("h", "d"))) == (None, None, [])
        assert (list(book.receipts()), book.fact("k", "n"), book.facts("k")) == ([], None, {})
    assert list(store.entries()) == []


def test_entries_continue_the_chain_and_are_read_from_any_of_them(ledgers: Stores) -> None:
    store = ledgers.new()
    for first in (1, 3):
        with store.writing() as book:
            links = [book.append(entry(store, number)) for number in (first, first + 1)]
            assert book.head == links[-1] and [link.number for link in links] == [first, first + 1]
    chain = list(store.entries())
    assert first_broken(iter(chain)) is None
    assert [record.parse(body, dict)["n"] for _, body in chain] == [1, 2, 3, 4]  # a store may add what it left behind
    assert list(store.entries(3)) == chain[2:] and list(store.entries(5)) == []
    with store.reading() as book:
        assert (book.head, book.entry(2), book.entry(0), book.entry(5)) == (chain[-1][0], chain[1], None, None)


def test_a_block_that_raises_leaves_nothing(ledgers: Stores) -> None:
    store = ledgers.new()
    for problem in (LedgerError("enough"), KeyboardInterrupt()):
        with pytest.raises(type(problem)), store.writing() as book:
            book.append(entry(store, 1))
            book.put_account(replace(account(Budget(epsilon=1)), held={}))
            book.put_fact("k", "n", 1)
            raise problem
        with store.reading() as book:
            assert (book.head, book.accounts(), book.facts("k")) == (GENESIS, (), {})


def test_state_is_what_was_put_last(ledgers: Stores) -> None:
    store = ledgers.new()
    first: Account = replace(account(Budget(epsilon=1)), held={})
    for failures in (0, 2):
        with store.writing() as book:
            book.append(entry(store, failures + 1))
            book.put_account(replace(first, failures=failures))
            book.put_fact("k", "b", (Fraction(1, 3), failures))
            book.put_fact("k", "a", None if failures else "text")
            assert book.account(first.name) == replace(first, failures=failures)
        with store.reading() as book:
            assert book.account(first.name) == replace(first, failures=failures) and book.accounts() == (first.name,)
            assert book.fact("k", "b") == (Fraction(1, 3), failures)
            assert list(book.facts("k")) == ["a", "b"] and book.facts("other") == {}


def test_receipts_are_found_by_id_key_and_plan(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    receipt = ledger.spend(("a",), laplace(1), data="a@1", grade="exact", note="", key="the key")
    store = ledger._store
    with store.reading() as book:
        assert book.filed_under("the key") == book.filed(receipt.id) and book.filed_under("another") is None
        assert list(book.answered(receipt.plan_hash, "a@1")) == []
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"\x00[1]")
    answered(ledger, laplace(2))
    with store.reading() as book:
        (filed,) = book.answered(receipt.plan_hash, "a@1")
        assert (filed.receipt, filed.state, filed.key, filed.answer) == (receipt, "answered", "the key", b"\x00[1]")
        assert {place for place, _ in book.receipts()} >= {(receipt.id, receipt.plan_hash, "a@1")}
    assert ledger.verify().ok


def test_a_state_that_the_entries_do_not_give_is_found(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    pay(ledger, laplace(1))
    store = ledger._store
    assert verify(store).ok
    with store.writing() as book:
        stored = book.account("a")
        assert stored is not None
        book.put_account(replace(stored, failures=7))
    assert "the stored state of account 'a'" in str(verify(store))


def test_what_was_written_is_there_when_it_is_opened_anew(durable: Stores) -> None:
    place = durable.place()
    with Ledger(durable.again(place)) as ledger:
        ledger.open_account("a", Budget(epsilon=5), reason="other people")
        answered(ledger, laplace(1))
        held(ledger, Budget(epsilon=1))
        before = list(ledger._store.entries())
    with Ledger(durable.again(place)) as again:
        assert list(again._store.entries()) == before and again.verify().ok
        assert again.spent("a")[0].spent == 1 and again.answer(("a",), laplace(1).hash, "a@1") is not None
        with pytest.raises(BudgetError):
            pay(again, laplace(3.5))  # what is held stays held


def test_writers_of_one_store_stand_in_line(durable: Stores) -> None:
    place = durable.place()
    with Ledger(durable.again(place)) as first:
        first.open_account("a", Budget(epsilon=1), reason="other people")
    desks, start = [Ledger(durable.again(place)) for _ in range(4)], threading.Barrier(4)

    def spends(desk: Ledger) -> int:
        start.wait()
        passed = 0
        for _ in range(5):
            try:
                pay(desk, laplace(0.1))
            except BudgetError:
                continue
            passed += 1
        return passed

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spends, desks)) == 10
    assert all(desk.spent("a")[0].spent == 1 for desk in desks) and desks[0].verify().ok


SUITE: tuple[Callable[[Stores], None], ...] = (
    test_an_empty_store_has_nothing,
    test_entries_continue_the_chain_and_are_read_from_any_of_them,
    test_a_block_that_raises_leaves_nothing,
    test_state_is_what_was_put_last,
    test_receipts_are_found_by_id_key_and_plan,
    test_a_state_that_the_entries_do_not_give_is_found,
    test_spending.test_l2_sixteen_threads_spend_exactly_the_budget,
    test_spending.test_l4_spent_never_falls_whatever_happens,
    test_spending.test_a_path_is_charged_whole_or_not_at_all,
    test_receipts.test_l3_a_receipt_opens_once_and_answers_once_and_nobody_else_s_does,
    test_receipts.test_l3_stored_answers_belong_to_the_plan_the_data_and_the_accounts_that_paid,
    test_holds.test_a_hold_blocks_others_draws_spend_and_closing_frees_the_rest,
    test_prepaying.test_a_key_takes_a_part_once,
    test_prepaying.test_one_of_many_takes_the_part,
    test_steps.test_it_opens_again_until_it_is_settled,
)
DURABLE: tuple[Callable[[Stores], None], ...] = (
    test_what_was_written_is_there_when_it_is_opened_anew,
    test_writers_of_one_store_stand_in_line,
    test_prepaying.test_another_process_s_list_is_seen,
    test_steps.test_many_at_once_draw_what_was_held_and_no_more,
    test_steps.test_a_ledger_opened_anew_knows_how_far_it_came,
    test_totals.test_what_a_failed_transaction_put_is_not_remembered,
    test_totals.test_a_receipt_that_another_writer_opened_is_not_remembered_as_unopened,
)
