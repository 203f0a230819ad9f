"""What the attacks on ledgers share: four made-up rows, the plainest plans, a folder, and choices from a seed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Several
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import bounds, record
from sfumato.audit import surface
from sfumato.curator import Curator
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.base import Account, Store
from sfumato.mechanisms import Laplace
from sfumato.noise import SeededBits
from sfumato.plan import Receipt
from sfumato.private import Private
from sfumato.schema import Schema, category, key, real
from sfumato.units import Unit

ROW, PATIENT = Unit(), Unit("user:patient")
TABLE = Schema.of(
    patient=key(), age=real(0, 120), ward=category(["north", "south"], constant=True), unit="patient", rows=10_000
)
ROWS: Mapping[str, Any] = {
    "patient": [1, 1, 2, 3],
    "age": [30.5, 31.5, 64.25, 99.0],
    "ward": ["north", "north", "south", "north"],
}


def count(epsilon: Any, unit: Unit = ROW) -> Laplace:
    """The plainest plan."""
    return Laplace(query=bounds.count(unit), epsilon=epsilon)


def total_age(number: int, epsilon: Any) -> Laplace:
    """One of many plans that cost the same and are not the same."""
    return Laplace(query=bounds.clipped_sum("age", 0, 120 + number, PATIENT), epsilon=epsilon)


class Watched(Mapping[str, Any]):
    """Columns that call somebody whenever they are read, once they are private."""

    def __init__(self, seen: Callable[[], object]) -> None:
        self._seen, self.private = seen, False

    def __getitem__(self, name: str) -> Any:
        if self.private:
            self._seen()
        return ROWS[name]

    def __iter__(self) -> Iterator[str]:
        return iter(ROWS)

    def __len__(self) -> int:
        return len(ROWS)


def patients(seen: Callable[[], object] = lambda: None, name: str = "patients") -> Private:
    """The rows; `seen` is called when they are opened."""
    columns = Watched(seen)
    private = Private(name, columns, unit=PATIENT, schema=TABLE)
    columns.private = True
    return private


def curator(ledger: Ledger, seen: Callable[[], object] = lambda: None) -> Curator:
    return Curator(patients(seen), ledger)


def pay(ledger: Ledger, plan: Any, *accounts: str, data: str = "a@1", key: str | None = None) -> Receipt:
    return ledger.spend(accounts, plan, data=data, grade="exact", note="", key=key)


def account_of(ledger: Ledger, name: str) -> Account:
    with surface.store_of(ledger).reading() as book:
        found = book.account(name)
    assert found is not None
    return found


def spent(ledger: Ledger, account: str) -> Fraction:
    """What the account's first member has spent."""
    return ledger.spent(account)[0].spent


def entries_of(store: Store) -> list[Any]:
    return [record.parse(body) for _, body in store.entries()]


@contextmanager
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: the system calls are the same, and a sync costs nothing."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


class Choices:
    """What an attack tries next, the same in every run of one seed. Never noise."""

    def __init__(self, seed: int) -> None:
        self._bits, self._words = SeededBits(seed), list[int]()

    def _word(self) -> int:
        if not self._words:
            self._words = self._bits.words(256).tolist()
        return self._words.pop()

    def below(self, end: int) -> int:
        return self._word() % end

    def share(self) -> float:
        """From 0 to 1."""
        return self._word() / 2**64

    def one(self, of: Several[Any]) -> Any:
        return of[self.below(len(of))]
