"""An account is stored in two parts, what moves and what stays: nothing else moves unseen, and no pair is made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Unit, events, record
from sfumato.accounting.filters import Filter, Hold
from sfumato.errors import BudgetError, LedgerError, RecordError
from sfumato.ledger.stores.base import Account, only_moved, rest, totals, whole
from tests.helpers import laplace
from tests.ledger.stores import Stores

NOTHING = Fraction(0)
HOLD = Hold(events.Laplace(epsilon=0.1), NOTHING)
RELEASES: tuple[tuple[events.Event, Fraction], ...] = (
    (events.Laplace(epsilon=0.25), NOTHING),
    (events.Gaussian(multiplier=5), Fraction(1, 10**7)),
    (events.Gaussian(multiplier=20), Fraction(1, 10**8)),
    (events.Approximate(epsilon=0.2, delta=1e-8), Fraction(1, 10**8)),
    (events.Approximate(epsilon=1, delta=1e-6), Fraction(1, 10**6)),
)
BUDGETS = (
    Budget(epsilon=1),
    Budget(rho=0.1),
    Budget(epsilon=2, delta=1e-6),
    Budget(epsilon=1, delta=1e-6, shares={"plans": 1}),
)


def account(budget: Budget | None = BUDGETS[2]) -> Account:
    return Account(
        name="a", filter=None if budget is None else Filter.of(budget), parent="p", level="team", unit=Unit(),
        promised=budget, granted=("ann",), held={"1": HOLD},
    )  # fmt: skip


def spend(before: Account, event: events.Event, delta: Fraction) -> Account:
    assert before.filter is not None
    return record.moved(before, filter=before.filter.spend(event, delta))


FILTERS: dict[str, Callable[[Filter], Filter]] = {
    "budget": lambda f: replace(f, budget=Budget(epsilon=3, delta=1e-6)),
    "version": lambda f: replace(f, version=2),
    "shared": lambda f: replace(f, shared=f.shared / 2),
    "reversed": lambda f: replace(f, open=f.open[::-1]),
    "closed": lambda f: replace(f, open=f.open[1:]),
    "none left": lambda f: replace(f, open=()),
    "limit": lambda f: replace(f, open=(replace(f.open[0], limit=f.open[0].limit * 2), *f.open[1:])),
    "delta_limit": lambda f: replace(f, open=(*f.open[:-1], replace(f.open[-1], delta_limit=Fraction(1)))),
    "order": lambda f: replace(f, open=(*f.open[:2], replace(f.open[2], order=Fraction(99)), f.open[3])),  # type: ignore[call-arg]
    "kept back": lambda f: replace(f, open=(f.open[0], replace(f.open[1], kept=Fraction(9)), *f.open[2:])),  # type: ignore[call-arg]
    "apart": lambda f: replace(f, open=(replace(f.open[0], apart=False), *f.open[1:])),
}
OTHERS: dict[str, dict[str, Any]] = {
    "filter": {"filter": None},
    "parent": {"parent": None},
    "level": {"level": "project"},
    "unit": {"unit": None},
    "promised": {"promised": BUDGETS[0]},
    "granted": {"granted": ("ann", "bob")},
    "held": {"held": {}},
    "closed": {"closed": True},
}


@pytest.mark.parametrize("change", FILTERS)
def test_a_filter_that_changes_in_more_than_totals_is_stored_whole(change: str) -> None:
    before = spend(account(), *RELEASES[0])
    assert before.filter is not None
    after = replace(before, filter=FILTERS[change](before.filter))
    assert rest(after) != rest(before) and not only_moved(before, after)


@pytest.mark.parametrize("change", OTHERS)
def test_an_account_that_changes_in_more_than_totals_is_stored_whole(change: str) -> None:
    before = account()
    after = replace(before, **OTHERS[change])
    assert rest(after) != rest(before) and not only_moved(before, after) and not only_moved(None, after)


def test_every_field_was_changed() -> None:
    assert {f.name for f in fields(Account)} - {"name", "failures"} <= set(OTHERS)
    assert {f.name for f in fields(Filter)} - {"open", "count"} <= set(FILTERS)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.sampled_from([*BUDGETS, None]), st.lists(st.sampled_from(RELEASES), max_size=8), st.integers(0, 3))
def test_the_two_parts_make_the_account_again(budget: Budget | None, history: list[Any], failures: int) -> None:
    now = account(budget)
    for event, delta in history if budget else ():
        try:
            after = spend(now, event, delta)
        except BudgetError:
            continue
        if only_moved(now, after):
            assert rest(after) == rest(now)
        now = after
    now = replace(now, failures=failures)
    again = whole(rest(now), totals(now))
    assert again == now and record.canonical(again) == record.canonical(now)


def numbers(text: bytes, place: int, value: Any) -> bytes:
    made = json.loads(text)
    made[place] = value
    return json.dumps(made).encode()


EXACT = {"is": "exact", "value": "-1/4"}
WRONG: tuple[tuple[int, Any], ...] = (
    *((0, value) for value in (-1, "1", True, 0.5, None, [], EXACT)),
    *((1, value) for value in (-1, "1", None)),
    *((2, value) for value in ([], [EXACT], [0.25], ["1/4"], [0], [None], None, 3, {"is": "exact", "value": "1/4"})),
    *((3, value) for value in ([], [EXACT], [0.0], [True], None)),
)


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_totals_that_are_no_totals_are_refused(place: int, value: Any) -> None:
    now = spend(account(BUDGETS[0]), *RELEASES[0])
    with pytest.raises(RecordError):
        whole(rest(now), numbers(totals(now), place, value))


def test_parts_that_do_not_belong_together_are_refused() -> None:
    one, other = account(BUDGETS[0]), account(BUDGETS[2])
    with pytest.raises(RecordError):
        whole(rest(one), totals(other))
    with pytest.raises(RecordError):
        whole(record.canonical(spend(one, *RELEASES[0])), totals(one))
    for text in (b"[]", b"[0,0,[]]", b"[0,0,[],[],[]]", b"{}", b"3", b""):
        with pytest.raises(RecordError):
            whole(rest(one), text)


def test_what_a_failed_transaction_put_is_not_remembered(durable: Stores) -> None:
    place = durable.place()
    store, other = durable.again(place), durable.again(place)
    by = store.principal or "somebody"
    first = replace(account(BUDGETS[0]), held={})
    with store.writing() as book:
        book.append(record.canonical({"by": by, "n": 1}))
        book.put_account(first)
        book.put_fact("k", "n", 1)
    later = spend(first, *RELEASES[0])
    for _ in range(2):
        with pytest.raises(LedgerError, match="enough"), store.writing() as book:
            book.append(record.canonical({"by": by, "n": 2}))
            book.put_account(later)
            book.put_fact("k", "n", 2)
            assert (book.account("a"), book.fact("k", "n")) == (later, 2)
            raise LedgerError("enough")
        for each in (store, other):
            with each.reading() as book:
                assert (book.account("a"), book.fact("k", "n"), book.head.number) == (first, 1, 1)
    with other.writing() as book:
        book.append(record.canonical({"by": by, "n": 2}))
        book.put_account(later)
        book.put_fact("k", "n", 3)
    with store.reading() as book:
        assert (book.account("a"), book.fact("k", "n"), book.head.number) == (later, 3, 2)


def test_a_receipt_that_another_writer_opened_is_not_remembered_as_unopened(durable: Stores) -> None:
    from sfumato.errors import ReceiptError
    from sfumato.ledger.ledger import Ledger

    place = durable.place()
    one, other = Ledger(durable.again(place)), Ledger(durable.again(place))
    one.open_account("patients", Budget(epsilon=1), reason="a test")
    plan = laplace(0.25)
    paid = one.spend(("patients",), plan, data="patients@1", grade="exact", note="")
    other.open(paid)
    for ledger in (one, other):
        with pytest.raises(ReceiptError, match="opened before"):
            ledger.open(paid)
