"""L18: what a spend believes is what the last entry left.

Claim. The state beside the entries (totals, limits, members and holds of accounts, receipts that are open, data sets,
owners, policy, approvals, parts that wait) is under the hash of the last entry. A row that was changed by hand is
refused at the next spend, without reading the chain.

The attack edits the rows of a ledger in every way that would give room, or an answer for free, and pays. It also puts
the row of an earlier moment back. The planted bug believes what is stored, and leaves it to `verify`.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

from sfumato.accounting.filters import Budget
from sfumato.combine import reserve, sequence
from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.opening import open_ledger
from sfumato.ledger.stores import digest

from ..verdict import Verdict
from .ground import ROW, count, folder, pay

_EARLIER = "(SELECT {column} FROM earlier.{table} AS e WHERE e.{key} = {table}.{key})"
EDITS = {
    "totals of nothing": "UPDATE accounts SET totals = (SELECT totals FROM accounts WHERE name = 'fresh')",
    "totals of an earlier moment": f"UPDATE accounts SET totals = "
    f"{_EARLIER.format(column='totals', table='accounts', key='name')} WHERE name = 'a'",
    "a wider limit": "UPDATE accounts SET state = (SELECT state FROM accounts WHERE name = 'wide') WHERE name = 'a'",
    "holds of an earlier moment": f"UPDATE accounts SET state = "
    f"{_EARLIER.format(column='state', table='accounts', key='name')} WHERE name = 'a'",
    "an account more": "INSERT INTO accounts SELECT 'c', state, totals FROM accounts WHERE name = 'fresh'",
    "an account less": "DELETE FROM accounts WHERE name = 'fresh'",
    "a receipt that opens again": "UPDATE receipts SET state = 'spent' WHERE state = 'opened'",
    "an answered receipt that opens again": "UPDATE receipts SET state = 'spent' WHERE state = 'answered'",
    "a hold less": "DELETE FROM receipts WHERE state = 'held'",
    "a key that is free again": "UPDATE receipts SET key = NULL WHERE key = 'opened'",
    "a data set that is charged elsewhere": "DELETE FROM facts WHERE kind = 'data'",
    "a part that waits again": "UPDATE facts SET state = (SELECT state FROM earlier.facts AS e WHERE e.kind = 'part' "
    "AND e.name = facts.name) WHERE kind = 'part'",
}


def attack(*, believing: bool = False) -> Verdict:
    passed: list[str] = []
    with folder() as home, _nobody_compares(believing):
        _life(home)
        for number, (name, edit) in enumerate(EDITS.items()):
            place = home / str(number)
            place.mkdir()
            for end in ("", "-head"):
                shutil.copyfile(home / f"ledger{end}", place / f"ledger{end}")
            _edit(place / "ledger", edit, home / "earlier")
            if _pays(place / "ledger"):
                passed.append(name)
    words = f"{len(EDITS)} edits of what is stored beside the entries: "
    words += f"{len(passed)} were believed, {passed[0]} first." if passed else "each was refused at the next spend."
    return Verdict("L18", bool(passed), words, {"edits": len(EDITS), "believed": len(passed)})


def control() -> Verdict:
    return attack(believing=True)


@contextmanager
def _nobody_compares(planted: bool) -> Iterator[None]:
    begun, check = digest.begun, digest.Tally.check
    if planted:
        digest.begun = lambda head, last, rows: digest.Digest.of(head, rows)
        digest.Tally.check = lambda self, name, of: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        digest.begun, digest.Tally.check = begun, check  # type: ignore[method-assign]


def _life(home: Path) -> None:
    both = sequence(one=count(Fraction(1, 32)), two=count(Fraction(1, 64)))
    with open_ledger(home / "ledger", create=True) as ledger:
        ledger.open_account("a", Budget(epsilon=3))
        for name, epsilon in (("fresh", 3), ("wide", 9)):
            ledger.open_account(name, Budget(epsilon=epsilon), reason="other people")
        ledger.register("view", same_as="a", reason="the same people")
        ledger.prepay((), both, data="a@2", grade="exact", note="")
    shutil.copyfile(home / "ledger", home / "earlier")
    with open_ledger(home / "ledger") as ledger:
        receipt = pay(ledger, count(Fraction(1, 2)))
        ledger.open(receipt)
        ledger.settle(receipt, "answered", b"1")
        ledger.open(pay(ledger, count(Fraction(1, 4)), key="opened"))
        pay(ledger, count(Fraction(1, 32)), data="a@2")  # one part is taken
        ledger.hold((), reserve(unit=ROW, budget=Budget(epsilon=1)), data="a@1", grade="exact", note="")


def _edit(path: Path, statement: str, earlier: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ATTACH ? AS earlier", (str(earlier),))
        assert connection.execute(statement).rowcount, statement


def _pays(path: Path) -> bool:
    with open_ledger(path) as ledger:
        try:
            pay(ledger, count(Fraction(1, 128)))
        except LedgerError:
            return False
        except SfumatoError:
            return True  # it was believed, and refused for something else
    return True
