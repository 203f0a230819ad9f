"""L17: no answer outlives its charge, whatever the store loses.

Claim. The number and hash of the last entry are durable outside the store before an answer leaves. Who opens the ledger
holds its chain to them: where it ends before, or goes another way, nothing is released and `verify` says so.

The attack takes the files of a ledger as they are after `kill -9` of its writer, who has answered several releases, and
flips single bytes of SQLite's write-ahead log: SQLite takes a broken frame for the log's end, and silently drops what
comes after. It cuts the end off, writes the last entry anew with a hash that fits, and takes the log away. Wherever the
ledger lacks an entry then, one more spend must be refused and `verify` must not hold. The planted bug looks at the
store alone.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

from sfumato.accounting.filters import Budget
from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.opening import open_ledger
from sfumato.ledger.proof.chain import Link
from sfumato.ledger.stores.sqlite import SQLiteStore

from ..verdict import Verdict
from .ground import Choices, count, folder, pay

Open = Callable[[Path], Ledger]
_ENDS = ("", "-wal", "-shm", "-head")


def alone(path: Path) -> Ledger:
    """The planted bug: the store is believed."""
    return Ledger(SQLiteStore(path))


def attack(*, opened: Open = open_ledger, every: int = 11, releases: int = 6, seed: int = 1) -> Verdict:
    """Every so-manieth byte of the log."""
    lost, unseen, spent, tried = 0, 0, 0, 0
    with folder() as home:
        image = _crashed(home, releases)
        before = _found(image)
        for spoil in (*_flips(image, every, seed), *_EDITS):
            tried += 1
            place = home / "spoilt"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(image, place)
            spoil(place / "ledger")
            if _found(place)[: len(before)] == before:
                continue
            lost += 1
            with suppress(SfumatoError):  # where the account itself was lost, the planted bug has nothing to pay from
                with opened(place / "ledger") as ledger:
                    unseen += ledger.verify().ok
                    pay(ledger, count(Fraction(1, 64)))
                spent += 1
    words = f"{tried} flips and edits after a crash, {lost} of which lost entries: "
    words += f"{unseen} were called sound, and {spent} were spent from." if unseen or spent else "each was refused."
    figures = {"tried": tried, "lost entries": lost, "called sound": unseen, "spent from": spent}
    return Verdict("L17", bool(unseen or spent) or not lost, words, figures)


def control() -> Verdict:
    return attack(opened=alone, every=997)


def _crashed(home: Path, releases: int) -> Path:
    """The files as they are when the writer is killed: whatever was written is there, and nobody closes them."""
    live, image = home / "live", home / "image"
    live.mkdir()
    with closing(sqlite3.connect(live / "ledger")) as small:
        small.execute("PRAGMA page_size = 1024")
        small.execute("VACUUM")
    with open_ledger(live / "ledger", create=True) as ledger:
        ledger.open_account("a", Budget(epsilon=9))
        for number in range(releases):
            receipt = pay(ledger, count(Fraction(1, 8 + number)))
            ledger.open(receipt)
            ledger.settle(receipt, "answered", b"1")
        shutil.copytree(live, image)
    return image


def _flips(image: Path, every: int, seed: int) -> Iterator[Callable[[Path], None]]:
    choose = Choices(seed)
    for place in range(choose.below(every), Path(f"{image / 'ledger'}-wal").stat().st_size, every):
        yield _flip(place, 1 << choose.below(8))


def _flip(place: int, bit: int) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        with Path(f"{path}-wal").open("r+b") as log:
            log.seek(place)
            (byte,) = log.read(1)
            log.seek(place)
            log.write(bytes([byte ^ bit]))

    return spoil


def _no_log(path: Path) -> None:
    for end in _ENDS[1:3]:
        Path(f"{path}{end}").unlink()


def _cut(path: Path) -> None:
    """By somebody who knows the tables: the last release is gone, with all that it changed."""
    _as_administrator(path, "DELETE FROM entries WHERE number > (SELECT max(number) FROM entries) - 3")


def _written_anew(path: Path) -> None:
    """The last entry says something else, and its hash fits."""
    entries = _chain(path)
    body = entries[-1][1].replace(b"answered", b"released")
    link = entries[-2][0].next(body)
    _as_administrator(path, "UPDATE entries SET hash = ?, body = ? WHERE number = ?", (link.hash, body, link.number))


def _as_administrator(path: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute(statement, values)
        for _, sql in triggers:
            connection.execute(sql)


_EDITS: tuple[Callable[[Path], None], ...] = (_no_log, _cut, _written_anew)


def _found(place: Path) -> list[tuple[Link, bytes]]:
    """What a process finds that opens a copy of the files: opening folds the log in."""
    copy = place.with_name("looked at")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place, copy)
    return _chain(copy / "ledger")


def _chain(path: Path) -> list[tuple[Link, bytes]]:
    try:
        with closing(SQLiteStore(path)) as store:
            return list(store.entries())
    except LedgerError:
        return []
