"""An exception between any two steps of a PostgreSQL transaction: nothing is half written, nothing that failed is
written later, and the connection goes on or is made anew (L1, L3, L4)."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, record
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores import postgres, postgres_book, postgres_wire
from sfumato.ledger.stores.postgres import PostgresStore
from tests.helpers import laplace
from tests.ledger.stores import Stores, server

FILES = {module.__file__ for module in (postgres, postgres_book, postgres_wire)}
PRICE = Fraction(1, 10_000)


@pytest.fixture
def stores(tmp_path: Any) -> Iterator[Stores]:
    server()
    made = Stores("postgres", tmp_path)
    yield made
    made.done()


@pytest.fixture
def place(stores: Stores) -> str:
    found = stores.place()
    Ledger(stores.again(found)).open_account("a", Budget(epsilon=10))
    return found


class Struck:
    """Raises at the n-th line of the store's own code, once; without n it counts them."""

    def __init__(self, at: int = 0, problem: type[BaseException] = KeyboardInterrupt) -> None:
        self.lines, self._at, self._problem = 0, at, problem

    def _enter(self, frame: Any, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in FILES else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        # One line cannot be struck: a store that takes itself for busy refuses from then on, which is safe.
        if event == "line" and "_inside = False" not in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            self.lines += 1
            if self.lines == self._at:
                sys.settrace(None)
                raise self._problem
        return self._line

    def __enter__(self) -> Struck:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


def paying(ledger: Ledger, key: str) -> None:
    ledger.spend(("a",), laplace(PRICE), data="a@1", grade="exact", note="", key=key)


def failing(ledger: Ledger, key: str) -> None:
    """A transaction that has written when it is given up."""
    with pytest.raises(LedgerError, match="given up"), ledger._store.writing() as book:
        book.append(record.canonical({"kind": "given up", "by": ledger._store.principal}))
        assert book.filed("nobody's") is None
        book.append(record.canonical({"kind": "given up", "by": ledger._store.principal}))
        raise LedgerError("given up")


@pytest.mark.parametrize("problem", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("work", [paying, failing])
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_an_exception_at_any_line_leaves_a_ledger_that_goes_on(
    place: str, stores: Stores, work: Callable[[Ledger, str], None], problem: type[BaseException], step: int
) -> None:
    """TimeoutError stands for what a signal handler raises that is no interrupt to `except Exception`."""
    ledger, other = Ledger(stores.again(place)), Ledger(PostgresStore(place, wait=5))
    try:
        work(ledger, "first")
        with Struck() as counting:
            work(ledger, "second")
        assert counting.lines > 60
        paid = {"first", "second"} if work is paying else set[str]()
        for at in range(1, counting.lines + 1, step):
            try:
                with Struck(at, problem):
                    work(ledger, f"key {at}")
            except problem:
                pass
            if work is paying:
                paying(ledger, f"key {at}")  # a retry is paid once, whatever became of the first one
                paid.add(f"key {at}")
            paying(ledger, f"after {at}")
            paying(other, f"beside {at}")  # the lock was let go
            paid |= {f"after {at}", f"beside {at}"}
        kinds = [record.parse(body, dict) for _, body in other._store.entries()]
        assert not [entry for entry in kinds if entry["kind"] == "given up"]
        assert [entry["key"] for entry in kinds if entry["kind"] == "spend"].count("first") == (work is paying)
        assert {entry["key"] for entry in kinds if entry["kind"] == "spend"} == paid
        assert len(paid) == sum(entry["kind"] == "spend" for entry in kinds)
        assert [gauge.spent for gauge in other.spent("a")] == [len(paid) * PRICE]
        assert other.verify().ok
    finally:
        other.shut()


def test_an_interrupt_while_a_refusal_is_undone_writes_nothing_later(
    place: str, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.again(place)
    before = list(store.entries())

    class Once:
        """The connection, interrupted when it is asked to roll back."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def execute(self, *_: Any) -> None:
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    assert isinstance(store, PostgresStore)
    monkeypatch.setattr(store._wire, "_connection", Once(store._connection))
    with pytest.raises(KeyboardInterrupt), store.writing() as book:
        book.append(record.canonical({"kind": "given up", "by": store.principal}))
        raise LedgerError("given up")
    ledger = Ledger(store)
    assert list(store.entries()) == before
    paying(ledger, "next")
    assert [record.parse(body, dict)["kind"] for _, body in list(store.entries())[len(before) :]] == ["spend"]
    assert ledger.verify().ok
