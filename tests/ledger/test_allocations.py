"""Limits that are given, lowered, raised, moved and closed: never above the parent, and spent never falls."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from sfumato import Budget, events, record, reserve
from sfumato.accounting.filters import Filter
from sfumato.errors import ArgumentError, BudgetError, SfumatoError
from sfumato.ledger.grants import past
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.replay import replay
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Account
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Plan, Receipt
from tests.helpers import Bite, account_of, laplace
from tests.ledger.stores import ROW, Stores, held, pay

SMALL = Fraction(1, 10**8)


def filter_of(ledger: Ledger, name: str) -> Filter:
    found = account_of(ledger, name).filter
    assert found is not None
    return found


def limit(ledger: Ledger, name: str) -> Any:
    return filter_of(ledger, name).budget.epsilon


def state(ledger: Ledger) -> Any:
    with ledger._store.reading() as book:
        return book.head, {name: book.account(name) for name in book.accounts()}


def family(stores: Stores, **more: Any) -> Ledger:
    ledger = stores({"a": Budget(epsilon=4, **more)})
    for name in ("b", "c"):
        ledger.open_account(name, Budget(epsilon=2, **more), parent="a")
    return ledger


# lowered


def test_a_lowered_limit_holds_at_once_and_what_was_spent_stays(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=2)})
    pay(ledger, laplace(0.5))
    ledger.change_limit("a", Budget(epsilon=1), reason="less")
    assert ledger.spent("a")[0][1:] == (Fraction(1, 2), 1)
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.6))
    with pytest.raises(BudgetError, match="what was spent already does not fit"):
        ledger.change_limit("a", Budget(epsilon=0.4), reason="too little")
    pay(ledger, laplace(0.5))
    assert account_of(ledger, "a").promised == Budget(epsilon=2), "the promise is the largest that there was"
    assert verify(ledger._store).ok


def test_lowering_an_account_that_nobody_used_is_opening_it_smaller(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=2, delta=1e-6)})
    ledger.change_limit("a", Budget(epsilon=1, delta=1e-7), reason="less")
    assert filter_of(ledger, "a") == Filter.of(Budget(epsilon=1, delta=1e-7))
    assert account_of(ledger, "a").promised == Budget(epsilon=1, delta=1e-7)
    pay(ledger, laplace(0.1))
    for other in (Budget(epsilon=0.5, delta=1e-8), Budget(epsilon=0.5), Budget(rho=0.001)):
        with pytest.raises(SfumatoError):
            ledger.change_limit("a", other, reason="another kind")
    assert verify(ledger._store).ok


def test_nothing_is_lowered_below_what_stands_under_it(ledgers: Stores) -> None:
    ledger = family(ledgers)
    before = state(ledger)
    with pytest.raises(BudgetError, match="below it has more"):
        ledger.change_limit("a", Budget(epsilon=1), reason="less")
    assert state(ledger) == before
    for name in ("b", "c"):
        ledger.change_limit(name, Budget(epsilon=1), reason="less")
    ledger.change_limit("a", Budget(epsilon=1), reason="less")
    assert verify(ledger._store).ok


def test_less_epsilon_and_more_delta_is_no_way_below_a_child(ledgers: Stores) -> None:
    """Neither lower nor higher: on an account that nobody used, such a change is allowed, and its children count."""
    ledger = ledgers({"a": Budget(epsilon=2, delta=1e-6)})
    ledger.open_account("b", Budget(epsilon=1), parent="a")
    with pytest.raises(BudgetError, match="'b' below it has more"):
        ledger.change_limit("a", Budget(epsilon=0.5, delta=1e-5), reason="another")
    ledger.change_limit("a", Budget(epsilon=1, delta=1e-5), reason="another")
    assert verify(ledger._store).ok


# raised


def test_a_raise_takes_a_fresh_share_of_delta_or_is_refused(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(0.5))
    before = state(ledger)
    with pytest.raises(BudgetError, match="takes a fresh share of delta"):
        ledger.change_limit("a", Budget(epsilon=2, delta=1e-6), reason="more")
    assert state(ledger) == before
    ledger.change_limit("a", Budget(epsilon=2, delta=2e-6), reason="more")
    after = filter_of(ledger, "a")
    assert after.version == 2 and after.shared + after.budget.failures <= after.budget.delta
    assert account_of(ledger, "a").promised == Budget(epsilon=2, delta=2e-6)
    assert verify(ledger._store).ok


def test_what_is_raisable_is_raised_many_times_and_is_what_a_recomputation_gives(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6, raisable=True)})
    for tenths in range(11, 19):
        pay(ledger, laplace(Fraction(1, 10)))
        ledger.spend(("a",), Bite(events.Gaussian(multiplier=30), SMALL), data="a@1", grade="exact", note="")
        old, budget = filter_of(ledger, "a"), Budget(epsilon=Fraction(tenths, 10), delta=1e-6, raisable=True)
        with ledger._store.reading() as book:
            releases = list(past(book, "a"))
        ledger.change_limit("a", budget, reason="more")
        now = filter_of(ledger, "a")
        assert now == old.raised(budget, releases) and now.count == old.count == len(releases)
        assert now.version == old.version + 1 and now.shared + budget.failures <= budget.delta
        assert {m.spent for m in now.open if m.currency == "epsilon"} == {
            m.spent for m in old.open if m.currency == "epsilon"
        }
    assert verify(ledger._store).ok


def test_a_raise_never_goes_above_the_parent(ledgers: Stores) -> None:
    ledger = family(ledgers)
    with pytest.raises(BudgetError, match="above what 'a' has"):
        ledger.change_limit("b", Budget(epsilon=5), reason="more")
    ledger.change_limit("b", Budget(epsilon=4), reason="more")
    pay(ledger, laplace(4), "b", data="a@1")
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.1), "c", data="a@1")
    assert verify(ledger._store).ok


def test_lowered_and_raised_in_another_direction_promises_both(ledgers: Stores) -> None:
    """(2, 1e-6), then (1, 1e-6), then (1.5, 1e-5): which of them binds was decided after seeing answers."""
    ledger = ledgers({"a": Budget(epsilon=2, delta=1e-6)})
    pay(ledger, laplace(0.5))
    ledger.change_limit("a", Budget(epsilon=1, delta=1e-6), reason="less")
    ledger.change_limit("a", Budget(epsilon=1.5, delta=1e-5), reason="more")
    promised = account_of(ledger, "a").promised
    assert promised is not None and (promised.epsilon, promised.delta) == (2, Fraction(1, 10**5))
    assert verify(ledger._store).ok


# moved


def test_a_part_that_is_moved_leaves_the_sum_as_it_was(ledgers: Stores) -> None:
    ledger = family(ledgers)
    pay(ledger, laplace(1), "b", data="a@1")
    ledger.move("b", "c", epsilon=0.5, reason="c needs it")
    assert (limit(ledger, "b"), limit(ledger, "c")) == (Fraction(3, 2), Fraction(5, 2))
    ledger.move("c", "b", epsilon=0.5, reason="and back")
    assert (limit(ledger, "b"), limit(ledger, "c")) == (2, 2)
    assert verify(ledger._store).ok


@pytest.mark.parametrize(
    ("source", "target", "size"),
    [
        ("a", "b", {"epsilon": 1}),
        ("b", "a", {"epsilon": 1}),
        ("b", "b", {"epsilon": 1}),
        ("b", "d", {"epsilon": 1}),
        ("b", "c", {"epsilon": 2}),
        ("b", "c", {"epsilon": 3}),
        ("b", "c", {"rho": 1}),
        ("b", "c", {}),
        ("b", "c", {"epsilon": 1, "rho": 1}),
        ("b", "c", {"epsilon": -1}),
        ("b", "c", {"epsilon": 0}),
        ("b", "c", {"epsilon": 1.5}),  # 1 was spent
        ("b", "folder", {"epsilon": 0.5}),
        ("b", "closed", {"epsilon": 0.5}),
        ("closed", "b", {"epsilon": 0.5}),
        ("b", "nobody", {"epsilon": 0.5}),
    ],
)
def test_what_cannot_be_moved(ledgers: Stores, source: str, target: str, size: Any) -> None:
    ledger = family(ledgers)
    ledger.open_account("d", Budget(epsilon=1), parent="b")
    ledger.close_account("d", reason="done")
    ledger.open_account("folder", None, parent="a")
    ledger.open_account("closed", Budget(epsilon=1), parent="a")
    ledger.close_account("closed", reason="done")
    pay(ledger, laplace(1), "b", data="a@1")
    before = state(ledger)
    with pytest.raises((BudgetError, ArgumentError)):
        ledger.move(source, target, **size, reason="x")
    assert state(ledger) == before


def test_a_move_whose_raise_is_refused_lowers_nothing(ledgers: Stores) -> None:
    """Both at one delta: c has used its shares, and a raise of it would need a fresh one."""
    ledger = family(ledgers, delta=1e-6)
    for name in ("b", "c"):
        pay(ledger, laplace(0.1), name, data="a@1")
    before = state(ledger)
    with pytest.raises(BudgetError, match="fresh share of delta"):
        ledger.move("b", "c", epsilon=0.5, reason="c needs it")
    assert state(ledger) == before and limit(ledger, "b") == 2
    assert verify(ledger._store).ok


# holds


def test_a_limit_is_not_lowered_under_what_is_held(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=2)})
    receipt = held(ledger, Budget(epsilon=1))
    with pytest.raises(BudgetError, match="room is held"):
        ledger.change_limit("a", Budget(epsilon=1.5), reason="less")
    ledger.change_limit("a", Budget(epsilon=3), reason="more")
    ledger.draw(receipt, events.Laplace(epsilon=1), Fraction(0))
    ledger.close(receipt)
    ledger.change_limit("a", Budget(epsilon=1), reason="less")
    assert ledger.spent("a")[0][1:] == (1, 1) and verify(ledger._store).ok


@pytest.mark.parametrize("delta", [2e-6, 1e-5])
def test_whatever_is_raised_what_is_held_can_still_be_drawn(ledgers: Stores, delta: float) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(0.25))
    receipt = held(ledger, Budget(epsilon=0.5))
    with contextlib.suppress(BudgetError):
        ledger.change_limit("a", Budget(epsilon=2, delta=delta), reason="more")
    for _ in range(20):
        with contextlib.suppress(BudgetError):
            pay(ledger, laplace(0.1))
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    assert verify(ledger._store).ok


def test_a_raise_that_would_leave_no_room_for_what_is_held_is_refused(ledgers: Stores) -> None:
    """A little more epsilon, and much smaller shares of delta: the member that backs the hold would shrink."""
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(0.01))
    receipt = held(ledger, Budget(rho=0.0205))
    before = state(ledger)
    with pytest.raises(BudgetError, match="what is held on account 'a' would have no room"):
        ledger.change_limit("a", Budget(epsilon=1.01, delta=2e-6), reason="more")
    assert state(ledger) == before
    ledger.draw(receipt, events.ZeroConcentrated(rho=0.0205), Fraction(0))
    ledger.close(receipt)
    assert verify(ledger._store).ok


def test_every_change_has_a_reason(ledgers: Stores) -> None:
    ledger = family(ledgers)
    before = state(ledger)
    for reason in ("", "  ", None, "\n"):
        bad: Any = reason
        for change in (
            lambda bad=bad: ledger.change_limit("b", Budget(epsilon=1), reason=bad),
            lambda bad=bad: ledger.move("b", "c", epsilon=1, reason=bad),
            lambda bad=bad: ledger.close_account("b", reason=bad),
        ):
            with pytest.raises(ArgumentError, match="reason"):
                change()
    assert state(ledger) == before


# any sequence


NAMES = ("a", "b", "c", "d", "e")
KINDS: tuple[Any, ...] = ({}, {"delta": 1e-6, "raisable": True}, {"delta": 1e-6})
BITES: tuple[Any, ...] = (
    (events.Laplace(epsilon=0.25), Fraction(0)),
    (events.Laplace(epsilon=1), Fraction(0)),
    (events.Gaussian(multiplier=20), SMALL),
    (events.Approximate(epsilon=0.5, delta=1e-7), Fraction(1, 10**7)),
)
sizes = st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)])
names = st.sampled_from(NAMES)


class Trees(RuleBasedStateMachine):
    """Random trees and random work on them. What is refused changes nothing; what is done keeps every rule."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(MemoryStore())
        self.ledger.open_account("a", Budget(epsilon=3, delta=1e-6, raisable=True))
        self.holds: list[Receipt] = []
        self.spent: dict[str, int] = {}
        self.steps = 0

    def tried(self, work: Any) -> None:
        before = state(self.ledger)
        try:
            work()
        except SfumatoError:
            assert state(self.ledger) == before, "a refusal changes nothing"

    @rule(name=names, parent=names, size=sizes, kind=st.sampled_from([*KINDS, None]))
    def open(self, name: str, parent: str, size: Fraction, kind: Any) -> None:
        budget = None if kind is None else Budget(epsilon=size, **kind)
        self.tried(lambda: self.ledger.open_account(name, budget, parent=parent))

    @rule(name=names, size=sizes, kind=st.sampled_from(KINDS), more=st.sampled_from([1, 2, 10]))
    def change(self, name: str, size: Fraction, kind: Any, more: int) -> None:
        delta = {"delta": kind["delta"] * more} if kind else {}
        self.tried(lambda: self.ledger.change_limit(name, Budget(epsilon=size, **{**kind, **delta}), reason="x"))

    @rule(source=names, to=names, size=sizes)
    def move(self, source: str, to: str, size: Fraction) -> None:
        with self.ledger._store.reading() as book:
            old = [book.account(name) for name in (source, to)]
        self.tried(lambda: self.ledger.move(source, to, epsilon=size, reason="x"))
        now = [account and account_of(self.ledger, account.name) for account in old]
        sums = [sum(each.filter.budget.epsilon for each in pair if each and each.filter) for pair in (old, now)]
        assert sums[0] == sums[1], "a move keeps the sum"

    @precondition(lambda self: self.steps % 7 == 6)
    @rule(name=st.sampled_from(NAMES[1:]))
    def shut(self, name: str) -> None:
        self.tried(lambda: self.ledger.close_account(name, reason="x"))

    @rule(name=names, bite=st.sampled_from(BITES))
    def spend(self, name: str, bite: Any) -> None:
        plan: Plan[Any, Any] = Bite(*bite)
        self.tried(lambda: self.ledger.spend((name,), plan, data="a@1", grade="exact", note=""))

    @rule(name=names, size=sizes)
    def hold(self, name: str, size: Fraction) -> None:
        def work() -> None:
            plan = reserve(unit=ROW, budget=Budget(epsilon=size))
            receipt = self.ledger.hold((name,), plan, data="a@1", grade="exact", note="")
            self.holds.append(receipt)
            self.ledger.open(receipt)

        self.tried(work)

    @precondition(lambda self: self.holds)
    @rule(at=st.integers(0, 9), bite=st.sampled_from(BITES))
    def draw(self, at: int, bite: Any) -> None:
        self.tried(lambda: self.ledger.draw(self.holds[at % len(self.holds)], *bite))

    @precondition(lambda self: self.holds)
    @rule(at=st.integers(0, 9))
    def free(self, at: int) -> None:
        self.tried(lambda: self.ledger.close(self.holds.pop(at % len(self.holds))))

    @invariant()
    def every_rule_holds(self) -> None:
        self.steps += 1
        accounts: dict[str, Account] = state(self.ledger)[1]
        for name, account in accounts.items():
            if account.filter is None:
                continue
            now = account.filter
            assert now.open and all(m.spent <= m.limit and m.delta_spent <= m.delta_limit for m in now.open)
            assert now.count >= self.spent.get(name, 0), "what was spent stays spent"
            self.spent[name] = now.count
            assert now.shared + max(m.delta_limit for m in now.open) <= now.budget.delta, "delta is not overdrawn"
            assert account.promised is not None and now.budget.within(account.promised)
            if account.held and not account.closed:
                assert any(m.backs(list(account.held.values())) for m in now.open), "what is held can be drawn"
            over: Account | None = account
            while over is not None and not account.closed:
                over = accounts[over.parent] if over.parent else None
                if over is not None and over.closed:
                    break
                if over is not None and over.filter is not None:
                    assert now.budget.within(over.filter.budget), "never above the parent"
                    assert now.count <= over.filter.count, "what a child spends is spent above it"
                    break

    @invariant()
    def the_entries_alone_give_the_same(self) -> None:
        found = replay((link.number, body) for link, body in self.ledger._store.entries())
        accounts = state(self.ledger)[1]
        assert found.wrong is None, found.wrong
        assert {n: record.canonical(a) for n, a in found.accounts.items()} == {
            n: record.canonical(a) for n, a in accounts.items()
        }

    def teardown(self) -> None:
        report = verify(self.ledger._store)
        assert report.ok, report


Trees.TestCase.settings = settings(derandomize=True, deadline=None, max_examples=40, stateful_step_count=30)
TestTrees = Trees.TestCase


@pytest.mark.slow
def test_trees_for_long() -> None:
    run_state_machine_as_test(Trees, settings=settings(deadline=None, max_examples=600, stateful_step_count=60))
