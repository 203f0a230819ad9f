"""L9 and L10: an old copy of the ledger is not spent from, and of two copies at most one is.

Claim. Before each commit the chain must hold the last entry that the anchor outside has seen; a restored backup lacks
it, and is refused until two persons accept it. Who begins to write publishes an entry of its own first, its token: so
as soon as a writer of a second copy has entered, the first is refused. (What remains, one transaction in flight and
machines that are copied while they run, is in the docstring of `proof.anchored`.)

L9 spends, puts an older copy back in several ways (over the closed file, into the open one, with a longer chain grown
on it), and spends again. L10 lets two writers go on from two copies of one ledger, in turn. The planted bugs never look
at the anchor, and publish no token.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.stores import NeverLooks, NoToken
from ..verdict import Verdict
from .ground import count, folder, pay

Kind = Callable[..., AnchoredStore]


class House:
    """A folder for ledgers, one outside it for the anchor, and a key."""

    def __init__(self, home: Path, kind: Kind = AnchoredStore) -> None:
        (home / "outside").mkdir(parents=True)
        self.home, self._kind = home, kind
        self.key, self.anchor = Key.make(home / "key"), FileAnchor(home / "outside" / "anchor")

    def store(self, name: str = "ledger", key: Key | None = None, **more: Any) -> AnchoredStore:
        plain = SQLiteStore(self.home / name, create=True)
        try:
            return self._kind(plain, self.anchor, key or self.key, **more)
        except BaseException:
            plain.close()
            raise

    def ledger(self, name: str = "ledger", **more: Any) -> Ledger:
        """With the account "a", which whoever comes first opens."""
        ledger = Ledger(self.store(name, **more))
        with surface.store_of(ledger).reading() as book:
            fresh = not book.accounts()
        if fresh:
            ledger.open_account("a", Budget(epsilon=9))
        return ledger

    def spends(self, name: str = "ledger", times: int = 1) -> int:
        """How many of so many spends pass, in a process that opens the ledger anew."""
        with suppress(LedgerError), self.ledger(name) as ledger:
            return sum(passes(ledger) for _ in range(times))
        return 0

    def copy(self, source: str, target: str) -> None:
        """As a backup does it: a consistent image of the store."""
        self.clear(target)
        with closing(sqlite3.connect(self.home / source)) as old, closing(sqlite3.connect(self.home / target)) as new:
            old.backup(new)

    def clear(self, name: str) -> None:
        for end in ("", "-wal", "-shm"):
            (self.home / (name + end)).unlink(missing_ok=True)


def passes(ledger: Ledger) -> bool:
    try:
        pay(ledger, count(0.01))
        return True
    except LedgerError:
        return False


def attack(*, kind: Kind = AnchoredStore, spends: int = 10) -> Verdict:
    """L9: so many spends, an older copy in their place, and one more spend. None may pass, again and again."""
    ways = {"over the file": _over, "into the open file": _into, "with a longer chain": _longer, "twice": _twice}
    passed: dict[str, int] = {}
    with folder() as home:
        for number, (name, restore) in enumerate(ways.items()):
            house = House(home / str(number), kind)
            house.spends()
            house.copy("ledger", "backup")
            passed[name] = restore(house, spends)
    broken = [name for name, times in passed.items() if times]
    words = f"Older copies were put back in {len(ways)} ways: "
    words += f"put back {broken[0]}, it was spent from." if broken else "none was spent from."
    return Verdict("L9", bool(broken), words, {f"spends that passed, {name}": times for name, times in passed.items()})


def _over(house: House, spends: int) -> int:
    house.spends(times=spends)
    house.copy("backup", "ledger")
    return house.spends(times=3)


def _into(house: House, spends: int) -> int:
    """As `cp backup ledger` does it, below a process that has it open."""
    with house.ledger() as ledger:
        before = sum(passes(ledger) for _ in range(spends))
        with closing(sqlite3.connect(house.home / "ledger")) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(house.home / "backup", house.home / "ledger")
        with suppress(LedgerError):
            return sum(passes(ledger) for _ in range(3)) if before == spends else spends
    return 0


def _longer(house: House, spends: int) -> int:
    """The old copy grows again, without the anchor, until it is the longer one."""
    house.spends(times=spends)
    house.copy("backup", "ledger")
    with closing(sqlite3.connect(house.home / "ledger", isolation_level=None)) as forged:
        grown = "INSERT INTO entries SELECT number + ?, hash, body FROM entries WHERE number = ?"
        (last,) = forged.execute("SELECT max(number) FROM entries").fetchone()
        for number in range(1, 3 * spends):
            forged.execute(grown, (number, last))
    return house.spends(times=3)


def _twice(house: House, spends: int) -> int:
    """A copy of a copy, and the backup of an hour later."""
    house.spends(times=spends)
    house.copy("ledger", "later")
    house.spends(times=spends)
    passed = 0
    for name in ("later", "backup"):
        house.copy(name, "ledger")
        passed += house.spends(times=3)
    return passed


def control() -> Verdict:
    return attack(kind=NeverLooks)


def two_copies(*, kind: Kind = AnchoredStore, rounds: int = 5, longer: int = 3) -> Verdict:
    """L10: two writers on two copies of one ledger, in turn: as soon as the second has entered, the first is out, also
    where it is the longer one."""
    with folder() as home:
        house = House(home / "house", kind)
        house.spends()
        one: Any = house.ledger()
        passes(one)
        house.copy("ledger", "second")
        for _ in range(longer):
            passes(one)
        with suppress(LedgerError), house.ledger("second") as two:
            both = [(passes(two), passes(one)) for _ in range(rounds)]
        with suppress(LedgerError):
            one.shut()
        fresh = [house.spends(name) for name in ("ledger", "second")]
    doubled = sum(first and second for first, second in both)
    words = f"In {rounds} rounds both copies were written {doubled} times; opened anew, {sum(fresh)} of them were."
    figures = {"both written": doubled, "written when opened anew": sum(fresh)}
    return Verdict("L10", doubled > 0 or sum(fresh) > 1, words, figures)


def two_copies_control() -> Verdict:
    return two_copies(kind=NoToken)
