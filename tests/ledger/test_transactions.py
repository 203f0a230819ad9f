"""How often the ledger is asked, counted: each transaction may be a round trip, and one that writes a sync."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, Private, Schema, Unit, sequence
from sfumato.errors import BudgetError, LedgerError, ReceiptError
from sfumato.ledger import pricing
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.payments import Payments
from sfumato.ledger.stores.base import Book, Store
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Receipt
from sfumato.schema import real
from tests.helpers import laplace

UNIT = Unit()


class Counted:
    """A store that writes down which transactions are begun."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.begun: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def reading(self) -> Iterator[Book]:
        self.begun.append("read")
        with self._store.reading() as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        self.begun.append("write")
        with self._store.writing() as book:
            yield book


class Watched(Private):
    """Data that writes down when it is opened, in the same list."""

    log: list[str]

    def _open(self, receipt: Receipt, opens: Any, empty: Any = None) -> Any:
        self.log.append("data")
        return super()._open(receipt, opens, empty)


@pytest.fixture(params=["memory", "sqlite"])
def counted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Counted]:
    store = Counted(MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "ledger", create=True))
    yield store
    store.close()


def curator(store: Counted) -> Curator:
    """Of data that stands under a hospital."""
    ledger = Ledger(store)  # type: ignore[arg-type]
    ledger.open_account("hospital", Budget(epsilon=9), level="organisation")
    ledger.open_account("visits", Budget(epsilon=8), parent="hospital", level="data set")
    private = Watched("visits", {"x": [1.0, 2.0]}, unit=UNIT, schema=Schema.of(x=real(0, 10)))
    private.log = store.begun
    return Curator(private, ledger)


def begun_by(store: Counted, act: Callable[[], object]) -> list[str]:
    store.begun.clear()
    act()
    return list(store.begun)


def test_a_quote_takes_one_read(counted: Counted) -> None:
    door, plan = curator(counted), laplace(Fraction(1, 5))
    door.release(laplace(Fraction(1, 7)))  # a fresh account prices in more ways
    door.quote(plan)  # where a price is not known yet, it is worked out between two reads
    assert begun_by(counted, lambda: door.quote(plan)) == ["read"]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_release_takes_one_read_and_one_write_before_the_data_opens(counted: Counted, key: str | None) -> None:
    door, plan = curator(counted), laplace(Fraction(1, 5))
    door.release(laplace(Fraction(1, 7)))
    door.quote(plan)
    assert begun_by(counted, lambda: door.release(plan, key=key)) == ["read", "write", "data", "write"]
    assert begun_by(counted, lambda: door.release(plan, key=key)) == ["read"]
    report = door.ledger.verify()  # type: ignore[attr-defined]
    assert report.ok, report


def test_a_part_of_a_list_takes_no_more(counted: Counted) -> None:
    door, plan = curator(counted), laplace(Fraction(1, 5))
    door.prepay(sequence(a=plan, b=laplace(Fraction(1, 7))))
    assert begun_by(counted, lambda: door.release(plan)) == ["read", "write", "data", "write"]
    assert door.ledger.verify().ok  # type: ignore[attr-defined]


def test_a_price_that_is_not_known_is_worked_out_outside_of_both(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun is undone meanwhile, and nothing of it is written."""
    door, plan = curator(counted), laplace(Fraction(1, 5))
    inside: list[int] = []
    work_out = pricing.UnpricedError.work_out

    def noticed(missing: pricing.UnpricedError) -> None:
        with door.ledger._store.writing() as book:  # type: ignore[attr-defined]  # nobody is in the way
            inside.append(book.head.number)
        work_out(missing)

    monkeypatch.setattr(pricing.UnpricedError, "work_out", noticed)
    pricing._WORKED_OUT.clear()
    door.quote(plan)
    pricing._WORKED_OUT.clear()
    door.release(plan)
    assert len(inside) >= 2 and len(set(inside)) == 1  # entries were only ever added at the end


def test_what_cannot_be_opened_was_not_paid(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    door = curator(counted)
    before = [body for _, body in counted.entries()]

    def refuses(self: Payments, receipt: Receipt) -> None:
        raise ReceiptError("not now")

    monkeypatch.setattr(Payments, "open", refuses)
    with pytest.raises(ReceiptError, match="not now"):
        door.release(laplace(Fraction(1, 5)))
    assert [body for _, body in counted.entries()] == before and "data" not in counted.begun


def test_alerts_are_told_after_the_transaction(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(counted)  # type: ignore[arg-type]
    sent: list[object] = []
    monkeypatch.setattr("sfumato.ledger.desk.send", lambda alerts, policy: sent.append(alerts))
    alerts, policy = (object(),), object()

    def act() -> str:
        ledger._desk.tell(policy, alerts)  # type: ignore[arg-type]
        assert not sent
        return "done"

    assert ledger.transaction(lambda: ledger.transaction(act)) == "done" and sent == [alerts]

    def undone() -> None:
        ledger._desk.tell(policy, alerts)  # type: ignore[arg-type]
        raise BudgetError("no")

    with pytest.raises(BudgetError):
        ledger.transaction(undone)
    assert len(sent) == 1


def test_nothing_is_written_in_a_snapshot(counted: Counted) -> None:
    door = curator(counted)
    plan = laplace(Fraction(1, 5))
    with pytest.raises(LedgerError, match="is being read by this thread"):
        door.ledger.snapshot(lambda: door.ledger.spend((), plan, data=door.private.address, grade="exact", note=""))
    assert door.ledger.spent("visits")[0].spent == 0
