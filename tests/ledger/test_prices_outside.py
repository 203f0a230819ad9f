"""Whoever is slow to price keeps nobody waiting: prices are worked out before the ledger is locked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, reserve
from sfumato.accounting import approximate, filters, members, pure
from sfumato.errors import BudgetError
from sfumato.ledger import pricing
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import laplace
from tests.ledger.stores import ROW, pay

SLOW = Fraction(123, 1000)


class Slow:
    """Pricing of one epsilon waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        for module in (approximate, pure):
            monkeypatch.setattr(module, "epsilon", self._waiting(module.epsilon))

    def _waiting(self, price: Callable[..., Any]) -> Callable[..., Any]:
        def waits(event: Any, *more: Any) -> Any:
            if getattr(event, "epsilon", None) == SLOW:
                self.asked.set()
                assert self.go.wait(60)
            return price(event, *more)

        return waits


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    found = Slow(monkeypatch)
    for cached in (members.plan_epsilon, members.rho, members.mu_squared):
        cached.cache_clear()
    filters._CHARGES.clear()
    pricing._WORKED_OUT.clear()
    yield found
    found.go.set()


def _work(ledger: Ledger, what: str) -> Callable[[], object]:
    if what == "spend":
        return lambda: pay(ledger, laplace(SLOW))
    if what == "hold":
        plan = reserve(unit=ROW, budget=Budget(epsilon=SLOW))
        return lambda: ledger.hold((), plan, data="a@1", grade="exact", note="")
    held = ledger.hold((), reserve(unit=ROW, budget=Budget(epsilon=1)), data="a@1", grade="exact", note="")
    ledger.open(held)
    return lambda: ledger.draw(held, laplace(SLOW).event, Fraction(0))


@pytest.mark.parametrize("what", ["spend", "hold", "draw"])
def test_others_spend_while_one_prices(tmp_path: Path, slow: Slow, what: str) -> None:
    with (
        Ledger(SQLiteStore(tmp_path / "ledger", create=True)) as ledger,
        Ledger(SQLiteStore(tmp_path / "ledger", wait=0.2)) as other,
    ):
        ledger.open_account("a", Budget(epsilon=3))
        pay(other, laplace(Fraction(1, 10)))
        failed: list[BaseException] = []

        def pays(work: Callable[[], object]) -> None:
            try:
                work()
            except BaseException as problem:
                failed.append(problem)

        thread = threading.Thread(target=pays, args=(_work(ledger, what),))
        thread.start()
        assert slow.asked.wait(60)
        before = other.spent("a")[0].spent
        pay(other, laplace(Fraction(1, 10)))
        assert thread.is_alive() and other.spent("a")[0].spent == before + Fraction(1, 10)
        slow.go.set()
        thread.join(60)
        assert not failed, failed
        assert ledger.verify().ok
        if what != "hold":
            assert other.spent("a")[0].spent == before + Fraction(1, 10) + SLOW


def test_what_was_spent_meanwhile_counts(tmp_path: Path, slow: Slow) -> None:
    """The comparison is made inside, with what is stored then: who priced for long is refused."""
    with (
        Ledger(SQLiteStore(tmp_path / "ledger", create=True)) as ledger,
        Ledger(SQLiteStore(tmp_path / "ledger", wait=0.2)) as other,
    ):
        ledger.open_account("a", Budget(epsilon=SLOW))
        refused: list[str] = []

        def pays() -> None:
            try:
                pay(ledger, laplace(SLOW))
            except BudgetError as problem:
                refused.append(str(problem))

        thread = threading.Thread(target=pays)
        thread.start()
        assert slow.asked.wait(60)
        pay(other, laplace(Fraction(1, 10)))
        slow.go.set()
        thread.join(60)
        assert len(refused) == 1 and "does not cover" in refused[0]


def test_a_known_price_takes_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(SQLiteStore(tmp_path / "ledger", create=True)) as ledger:
        ledger.open_account("a", Budget(epsilon=3))
        for _ in range(2):  # a fresh account prices in more ways
            pay(ledger, laplace(Fraction(1, 10)))
        begun: list[str] = []
        begin = SQLiteStore._transaction
        monkeypatch.setattr(SQLiteStore, "_transaction", lambda self, how: begun.append(how) or begin(self, how))
        pay(ledger, laplace(Fraction(1, 10)))
        assert begun == ["BEGIN IMMEDIATE"]
