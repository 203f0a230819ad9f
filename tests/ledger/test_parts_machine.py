"""Lists, parts and releases in any order, beside a model that only adds up: nothing runs that was not paid for."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from sfumato import Budget, sequence
from sfumato.errors import BudgetError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Receipt
from tests.helpers import few, laplace, spent

SIZES = [Fraction(1, n) for n in (40, 50, 60, 70)]
DATA = ("a@1", "a@2")
TEAMS = ("t", "u")
size, data, team = st.sampled_from(SIZES), st.sampled_from(DATA), st.sampled_from(TEAMS)
Part = tuple[str, str, Fraction]


class Lists(RuleBasedStateMachine):
    """The model: what each team has paid, which parts wait, and which runs were paid for."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(MemoryStore())
        self.ledger.open_account("a", Budget(epsilon=1))
        for name in TEAMS:
            self.ledger.open_account(name, Budget(epsilon=Fraction(1, 2)), parent="a")
        self.paid: Counter[str] = Counter()
        self.waiting: set[Part] = set()
        self.answers: set[Part] = set()
        self.bought: Counter[tuple[str, Fraction]] = Counter()
        self.opened: Counter[tuple[str, Fraction]] = Counter()
        self.under_way: list[tuple[Receipt, Part]] = []
        self.lists: list[Receipt] = []

    @rule(team=team, data=data, sizes=st.lists(size, min_size=1, max_size=3, unique=True))
    def prepay(self, team: str, data: str, sizes: list[Fraction]) -> None:
        parts = {(team, data, each) for each in sizes}
        plans = sequence(**{f"p{each.denominator}": laplace(each) for each in sizes})
        try:
            paid = self.ledger.prepay((team,), plans, data=data, grade="exact", note="")
        except ReceiptError:
            assert parts & (self.waiting | self.answers)
            return
        except BudgetError:
            assert self.paid[team] + sum(sizes) > Fraction(1, 2)
            return
        assert not parts & (self.waiting | self.answers)
        self.lists.append(paid)
        self.paid[team] += sum(sizes)
        self.waiting |= parts
        self.bought.update((data, each) for each in sizes)

    @rule(team=team, data=data, size=size)
    def spend(self, team: str, data: str, size: Fraction) -> None:
        part = (team, data, size)
        assert (self.ledger.prepaid((team,), laplace(size), data=data) is not None) == (part in self.waiting)
        fits = self.ledger.quote((team,), laplace(size), data=data)
        try:
            receipt = self.ledger.spend((team,), laplace(size), data=data, grade="exact", note="")
        except BudgetError:
            assert not fits and part not in self.waiting and self.paid[team] + size > Fraction(1, 2)
            return
        assert fits and (receipt.loop == "part") == (part in self.waiting)
        if part in self.waiting:
            self.waiting.remove(part)
        else:
            self.paid[team] += size
            self.bought[data, size] += 1
        self.under_way.append((receipt, part))

    @precondition(lambda self: self.under_way)
    @rule(draw=st.data())
    def run(self, draw: st.DataObject) -> None:
        receipt, part = self.under_way.pop(draw.draw(st.integers(0, len(self.under_way) - 1)))
        self.ledger.open(receipt)
        self.opened[part[1:]] += 1
        self.ledger.settle(receipt, "answered", b"1")
        self.answers.add(part)
        for again in (self.ledger.open, lambda each: self.ledger.settle(each, "failed")):
            try:
                again(receipt)
            except ReceiptError:
                continue
            raise AssertionError("it ran twice")

    @precondition(lambda self: self.lists)
    @rule()
    def a_list_opens_nothing(self) -> None:
        try:
            self.ledger.open(self.lists[-1])
        except ReceiptError:
            return
        raise AssertionError("a list was opened")

    @invariant()
    def what_is_spent_is_what_was_paid(self) -> None:
        for name in TEAMS:
            assert spent(self.ledger, name) == [self.paid[name]]
        assert spent(self.ledger, "a") == [self.paid.total()]

    @invariant()
    def nothing_runs_more_often_than_it_was_paid_for(self) -> None:
        assert self.opened <= self.bought

    def teardown(self) -> None:
        report = self.ledger.verify()
        assert report.ok, report
        rows = list(self.ledger.releases())
        assert sum(row.loop == "parts" for row in rows) == len(self.lists)
        assert self.ledger.statement("a").releases == sum(row.loop != "parts" for row in rows)


@pytest.mark.slow
def test_lists_and_parts_in_any_order() -> None:
    run_state_machine_as_test(Lists, settings=few)  # type: ignore[no-untyped-call]
