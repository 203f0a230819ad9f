"""L5: no entry is changed, lost, moved or added unseen.

Claim. Each entry carries the hash of the one before it, so a change shows at that entry, unless everything after it is
hashed anew; then the signed checkpoints outside tell, up to the last of them. What is stored beside the entries is what
they amount to, and `verify` computes it again.

Two attacks on a ledger with an anchor. Bytes of its file are flipped, one at a time: where the logical content of a
table has changed, or the file cannot be read, `verify` must say so; every other byte that it does not see must be one
of those that are named as harmless (pages.py). And somebody who may write the file edits it: entries are changed,
dropped, exchanged, added, cut off, also with all hashes written anew, and accounts, receipts, answers and facts are
changed beside them. Of entries the first bad one must be named, or, where all hashes fit again, one before it: the
first that no checkpoint proves. The planted bug follows the hashes and stops there.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.combine import reserve, sequence
from sfumato.errors import LedgerError
from sfumato.events import Pure
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.chain import GENESIS
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.ledgers import hashes_alone
from ..verdict import Verdict
from . import beside
from .ground import ROW, Choices, count, folder, pay
from .pages import HARMLESS, region

Verify = Callable[..., Any]
TABLES = ("entries", "accounts", "receipts", "facts")
BY_INDEX = (
    "SELECT key, id FROM receipts INDEXED BY receipts_by_key WHERE key IS NOT NULL ORDER BY key",
    "SELECT plan_hash, data, id FROM receipts INDEXED BY receipts_by_plan WHERE answer IS NOT NULL ORDER BY plan_hash",
    "SELECT id FROM receipts INDEXED BY receipts_live WHERE state IN ('spent', 'held', 'opened') ORDER BY id",
    "SELECT kind, name, rowid FROM facts INDEXED BY sqlite_autoindex_facts_1 ORDER BY kind, name",
)


def attack(*, check: Verify = verify, every: int = 1, seed: int = 1) -> Verdict:
    """Flip each byte, or every so-manieth, and make each edit."""
    with folder() as home:
        book = Spoilt(home, check)
        if not book.holds(book.path):
            return Verdict("L5", True, "A ledger that nobody touched does not verify.", {})
        flips, unseen, harmless = flip_bytes(book, every, seed)
        edits, missed, unnamed = 0, [], []
        for name, made, first in _edits(book):
            edits += 1
            if made and book.holds(book.copy):
                missed.append(name)
            elif made and first and book.first_bad not in first:
                unnamed.append(f"{name} (entry {book.first_bad} was named)")
    words = f"{flips} flipped bytes that changed something, {edits} edits: "
    unseen += [place for name, places in harmless.items() if name not in HARMLESS for place in places]
    unnoticed = [f"byte {number}" for number in unseen] + missed
    words += f"{len(unnoticed)} went unnoticed, {unnoticed[0]} first" if unnoticed else "none went unnoticed"
    words += f"; {len(unnamed)} were not named, {unnamed[0]} first." if unnamed else "."
    figures = {"flips that changed something": flips, "flips unseen": len(unseen), "edits": edits}
    figures |= {"edits unseen": len(missed), "edits that are not named": len(unnamed)}
    figures |= {f"harmless flips, {name}": len(places) for name, places in harmless.items()}
    return Verdict("L5", bool(unnoticed or unnamed), words, figures)


def control() -> Verdict:
    return attack(check=hashes_alone, every=997)


class Spoilt:
    """A ledger with an anchor and something of everything, and a copy of its file to spoil."""

    def __init__(self, home: Path, check: Verify, life: Callable[[Ledger], None] | None = None) -> None:
        self.path, self.copy, self._check = home / "ledger", home / "copy", check
        (home / "outside").mkdir()
        with closing(sqlite3.connect(self.path)) as small:
            small.execute("PRAGMA page_size = 512")
            small.execute("VACUUM")
        self._key, self._anchor = Key.make(home / "key"), FileAnchor(home / "outside" / "anchor")
        with closing(AnchoredStore(SQLiteStore(self.path, create=True), self._anchor, self._key, every=3)) as store:
            (life or _life)(Ledger(store))
        self.good = self.path.read_bytes()
        self.content = content(self.path)

    def holds(self, path: Path) -> bool:
        """Does `verify` find nothing? What it names first is kept."""
        self.first_bad: int | None = None
        try:
            with closing(SQLiteStore(path, read_only=True)) as store:
                report = self._check(store, self._anchor, trusted=[self._key.public])
        except LedgerError:
            return False
        self.first_bad = report.first_bad
        return bool(report.ok)

    def fresh_copy(self) -> None:
        shutil.copyfile(self.path, self.copy)

    def settled(self) -> bool:
        """Nothing is left beside the copy; was anything changed in it?"""
        for name in ("copy-wal", "copy-shm"):
            self.copy.with_name(name).unlink(missing_ok=True)
        return bool(content(self.copy) != self.content)

    def spoil(self, start: int, new: bytes) -> None:
        self.copy.write_bytes(self.good[:start] + new + self.good[start + len(new) :])


def _life(ledger: Ledger) -> None:
    ledger.open_account("a", Budget(epsilon=9, delta=1e-6))
    ledger.open_account("b", Budget(epsilon=3), parent="a")
    for number in (1, 2):
        receipt = pay(ledger, count(Fraction(number, 10)), "b", key=f"key {number}")
        ledger.open(receipt)
        ledger.settle(receipt, "answered" if number > 1 else "failed", b"[1]" if number > 1 else None)
    held = ledger.hold(("b",), reserve(unit=ROW, budget=Budget(epsilon=1)), data="a@1", grade="exact", note="long work")
    ledger.open(held)
    ledger.draw(held, Pure(epsilon=Fraction(1, 2)), Fraction(0))
    both = sequence(one=count(Fraction(1, 3)), two=count(Fraction(1, 7)))
    ledger.prepay((), both, data="a@2", grade="exact", note="")
    ledger.register("view", same_as="a", reason="the same people")
    pay(ledger, count(Fraction(1, 100)))


def content(path: Path) -> Any:
    """Everything that the tables say; None where they cannot be read."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        try:
            made = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
            settings = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
            rows = [connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in TABLES]
            found = [connection.execute(look).fetchall() for look in BY_INDEX]
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            return None
        return made, settings, rows, found


def flip_bytes(book: Spoilt, every: int, seed: int) -> tuple[int, list[int], dict[str, list[int]]]:
    """How many flipped bytes changed the content, those among them that nobody saw, and the others that nobody saw, by
    what they are: they must be harmless."""
    choose, changed, unseen = Choices(seed), 0, []
    others: dict[str, list[int]] = {}
    for place in range(choose.below(every), len(book.good), every):
        book.spoil(place, bytes([book.good[place] ^ (1 << choose.below(8))]))
        if content(book.copy) != book.content:
            changed += 1
            if book.holds(book.copy):
                unseen.append(place)
        elif book.holds(book.copy):
            others.setdefault(region(book.good, place), []).append(place)
    return changed, unseen, others


def _edits(book: Spoilt) -> Iterator[tuple[str, bool, Sequence[int] | None]]:
    """Each edit, made on a fresh copy; was anything changed by it, and which entries may be named for it?"""
    with closing(sqlite3.connect(f"file:{book.path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT number, hash, body FROM entries ORDER BY number").fetchall()
    last = rows[-1][0]
    bodies = [body for *_, body in rows]
    for number in range(1, last + 1):
        here, digits = bodies[number - 1], _other_digit(bodies[number - 1])
        this, before, after = range(number, number + 1), range(1, number + 1), range(1, number + 2)
        changed, dropped = "UPDATE entries SET body = ? WHERE number = ?", "DELETE FROM entries WHERE number = ?"
        yield f"entry {number} changed", _made(book, [(digits, number)], changed), this
        yield f"entry {number} dropped", _made(book, [(number,)], dropped), this if number < last else before
        again = [*bodies[: number - 1], digits, *bodies[number:]]
        yield f"entry {number} changed, and all hashes after it", _rewritten(book, again), before
        left = [body for body in bodies if body is not here]
        named = (*before, last)  # the end of a chain that is one short is missing, whatever was left out
        yield f"entry {number} left out, and all hashes after it", _rewritten(book, left), named
        if number < last:
            swapped = [*bodies[: number - 1], bodies[number], here, *bodies[number + 1 :]]
            yield f"entries {number} and the next exchanged, with all hashes", _rewritten(book, swapped), before
            yield f"cut off after entry {number}", _rewritten(book, bodies[:number]), after
        twice = [*bodies[:number], here, *bodies[number:]]
        yield f"entry {number} twice, with all hashes", _rewritten(book, twice), after
    for table, column in (("accounts", "state"), ("accounts", "totals"), ("receipts", "receipt"), ("facts", "state")):
        for value in _values(book, table, column):
            other = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
            yield f"{column} of a row of {table} changed", _made(book, [(_other_digit(value), value)], other), None
    yield "parts that wait lost", _made(book, [()], "DELETE FROM facts WHERE kind = 'part'"), None
    for name in beside.EDITS:
        book.fresh_copy()
        with closing(sqlite3.connect(book.copy, isolation_level=None)) as administrator:
            beside.make(name, administrator)
        yield name, book.settled(), None


def _values(book: Spoilt, table: str, column: str) -> list[bytes]:
    with closing(sqlite3.connect(f"file:{book.path}?mode=ro", uri=True)) as connection:
        return [value for (value,) in connection.execute(f"SELECT {column} FROM {table}")]


def _other_digit(body: bytes) -> bytes:
    """The first digit from the middle on, one higher; the middle byte where there is none."""
    middle = len(body) // 2
    place = next((n for n in range(middle, len(body)) if body[n : n + 1].isdigit()), middle)
    return body[:place] + bytes([48 + (body[place] - 47) % 10]) + body[place + 1 :]


def _rewritten(book: Spoilt, bodies: list[bytes]) -> bool:
    """The chain written anew with these bodies, and hashes that fit."""
    link, rows = GENESIS, []
    for body in bodies:
        link = link.next(body)
        rows.append((*link, body))
    return _made(book, rows, "INSERT INTO entries VALUES (?, ?, ?)", first="DELETE FROM entries")


def _made(book: Spoilt, values: list[tuple[Any, ...]], statement: str, first: str = "") -> bool:
    """By somebody who may do everything to the file: triggers are taken off, and put back as they were."""
    book.fresh_copy()
    with closing(sqlite3.connect(book.copy, isolation_level=None)) as administrator:
        run = administrator.execute
        triggers = run("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            run(f'DROP TRIGGER "{name}"')
        with contextlib.suppress(sqlite3.IntegrityError):
            run("BEGIN")
            if first:
                run(first)
            for each in values:
                run(statement, each)
            run("COMMIT")
        for _, sql in triggers:
            run(sql)
    return book.settled()
