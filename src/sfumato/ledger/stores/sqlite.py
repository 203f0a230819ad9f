"""A ledger in one SQLite file: durable, and safe with many processes on one machine.

Every transaction is `BEGIN IMMEDIATE`: one writer at a time, who reads what the last one wrote. With `synchronous =
FULL` in write-ahead mode a commit is on the disk before it returns. A file that is locked for too long, full,
read-only, corrupt, or of a newer version, is refused with one message and no release.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ...errors import LedgerError
from ...process import Home
from ..proof.chain import Link
from .base import Book
from .schema import migrations
from .sqlite_book import UNWRITABLE, UNWRITTEN, Known, SQLiteBook, held, told
from .sqlite_file import MOVED, NO_FOLDER, NO_PLACE, UNREADABLE, LedgerFile
from .words import CLOSED, FORKED, NEWER

READ_ONLY = "the ledger was opened for reading: open it without read_only to write"
BUSY = "the ledger was written while it was read: try again"
_WAIT = 30.0  # seconds for the writer before us
_BLOCK = 10_000  # entries that are read at once
_INDEXES = {
    "receipts_by_key": "SELECT key, id FROM receipts {how} WHERE key IS NOT NULL ORDER BY key, id",
    "receipts_by_plan": "SELECT plan_hash, data, id FROM receipts {how} WHERE answer IS NOT NULL ORDER BY 1, 2, 3",
    "receipts_live": "SELECT id FROM receipts {how} WHERE state IN ('spent', 'held', 'opened') ORDER BY id",
    "sqlite_autoindex_facts_1": "SELECT kind, name, rowid FROM facts {how} ORDER BY kind, name",
}
_WRITE = "BEGIN IMMEDIATE"
_APPLICATION = 0x5F0A70  # marks the file as a ledger


class SQLiteStore:
    """One ledger in one file.

    create     make a new, empty ledger where there is no file; otherwise a missing or empty file is refused
    wait       how long, in seconds, to wait for other processes that write
    read_only  for auditors: write nothing, not even beside the file, and need no right to
    """

    principal = None  # a claim: whoever writes the file can write any name

    def __init__(self, path: str | Path, *, create: bool = False, wait: float = _WAIT, read_only: bool = False) -> None:
        self._file = LedgerFile(path)
        if (read_only or not create) and not self._file.exists():
            raise LedgerError(
                "there is no ledger at that path: give the right one, or create=True for a new ledger", code="no-ledger"
            )
        if not self._file.has_folder():
            raise LedgerError(NO_FOLDER)
        self._lock = threading.RLock()
        self._over = ""  # why nothing more is read or written from here
        self._inside = False
        self._known = Known()
        self._home = Home()
        self._wait, self._read_only = wait, read_only
        self._file.check_place()
        if read_only:
            self._open_to_read()
        else:
            self._open_to_write(create)

    def _open_to_write(self, create: bool) -> None:
        with told():
            self._connection = _connect(self._file.address("rwc" if create else "rw"), self._wait)
        try:
            with told():
                self._prepare(create)
            self._places = self._file.places()
            self._live = True
        except BaseException:
            self._connection.close()
            raise

    def _open_to_read(self) -> None:
        """As the files lie now. Where nobody was writing, a writer may come: then they are opened again."""
        self._content = self._file.content()
        address, self._live = self._file.reading_address()
        try:
            with told():
                self._connection = _connect(address, self._wait)
            try:
                with told():
                    version = self._version()
                if self._live:
                    self._places = self._file.places()
            except BaseException:
                self._connection.close()
                raise
        except LedgerError as problem:
            raise LedgerError(str(problem).replace(UNWRITABLE, UNREADABLE)) from None
        if version < len(migrations("sqlite")):
            self._connection.close()
            raise LedgerError(
                "the file is empty, or a ledger of an older version: have somebody open it who may write it, or "
                "restore it",
                code="empty-ledger",
            )

    def _prepare(self, create: bool) -> None:
        run = self._connection.execute
        run("BEGIN")  # one view: somebody else may be making the ledger now
        version = self._version()
        run("COMMIT")
        if not version and not create:
            raise LedgerError(
                "the file is empty: restore the ledger, or give create=True for a new one", code="empty-ledger"
            )
        if self._write_ahead(time.monotonic() + self._wait) != "wal":
            raise LedgerError(NO_PLACE)
        run("PRAGMA synchronous = FULL")
        run("PRAGMA foreign_keys = ON")
        run("BEGIN IMMEDIATE")  # what cannot be written shows here
        for number, step in enumerate(migrations("sqlite")[self._version() :], start=self._version() + 1):
            for statement in _statements(step):
                run(statement)
            run(f"PRAGMA user_version = {number}")
            run(f"PRAGMA application_id = {_APPLICATION}")
        run("COMMIT")

    def _write_ahead(self, until: float) -> str:
        """Switch a new file to write-ahead mode. The one step for which SQLite does not wait by itself."""
        while True:
            try:
                return str(self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as problem:
                if "locked" not in str(problem) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _version(self) -> int:
        """The version of the schema: 0 for an empty file, and for nothing else."""
        run = self._connection.execute
        (version,) = run("PRAGMA user_version").fetchone()
        (application,) = run("PRAGMA application_id").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION and (version or application or tables):
            raise LedgerError("the file is a database, but not a ledger: give the path of a ledger")
        if version > len(migrations("sqlite")):
            raise LedgerError(NEWER)
        return int(version)

    @property
    def folder(self) -> Path:
        """Where the file is: whatever else lies there is copied and restored with it."""
        return self._file.path.parent

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._transaction("BEGIN") as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        if self._read_only:
            raise LedgerError(READ_ONLY)
        with self._transaction(_WRITE) as book:
            yield book

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SQLiteBook]:
        self._at_home()
        with self._lock:
            if self._inside:
                raise LedgerError("the ledger is being read or written by this thread: end that first")
            try:
                self._inside = True
                self._check()
                self._undo()  # an interrupt may come at any time, also while a transaction is being undone
                with told():
                    self._connection.execute(begin)
                    book = SQLiteBook(self._connection, self._known, writes=begin == _WRITE)
                    self._known = self._known._replace(digest=book.digest)  # also where this one is undone
                yield book
                book.seal()
                self._commit()
                self._settled()
                self._known = book.known
            finally:
                self._inside = False
                self._undo()

    def _commit(self) -> None:
        self._at_home()
        try:
            with told():
                self._connection.execute("COMMIT")
        except LedgerError:
            # What a failed sync left on the disk is unknown: nothing more is written from here.
            self._over = UNWRITTEN
            raise

    def _at_home(self) -> None:
        """A connection does not survive a fork, and the lock may have been another thread's at that moment."""
        if self._home.left:
            raise LedgerError(FORKED)

    def _check(self) -> None:
        self._at_home()
        if self._over:
            raise LedgerError(self._over)
        if self._live:
            if self._file.places() != self._places:
                raise LedgerError(MOVED)
            return
        now = self._file.content()
        if now.place != self._content.place:
            raise LedgerError(MOVED)
        if now != self._content or self._file.written():
            self._connection.close()
            self._open_to_read()

    def _settled(self) -> None:
        """Nobody wrote into the file while it was read as it lies."""
        if not self._live and self._file.content() != self._content:
            raise LedgerError(BUSY)

    def _undo(self) -> None:
        if self._home.left:
            return  # it is the parent's transaction
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._over = self._over or UNWRITTEN

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        """Block by block: whoever reads them slowly keeps nobody from writing."""
        while True:
            block = self._block(first)
            for number, digest, body in block:
                yield Link(number, held(digest)), held(body)
            if len(block) < _BLOCK:
                return
            first = block[-1][0] + 1

    def _block(self, first: int) -> list[tuple[int, bytes, bytes]]:
        self._at_home()
        with self._lock:
            if not self._inside:
                self._check()
            with told():
                found = self._connection.execute(
                    "SELECT number, hash, body FROM entries WHERE number >= ? ORDER BY number LIMIT ?", (first, _BLOCK)
                ).fetchall()
            self._settled()
            return found

    def damage(self) -> str | None:
        """What the file itself shows, below what it says: broken pages or indexes, or tables other than ours."""
        self._at_home()
        with self._lock:
            if not self._inside:
                self._check()
            with told():
                found = self._damage()
            self._settled()
            return found

    def _damage(self) -> str | None:
        (found,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok" or not all(map(self._as_the_table, _INDEXES)):
            return "the file is damaged: a page or an index is broken"
        if self._connection.execute("SELECT 1 FROM entries WHERE number < 1").fetchone() is not None:
            return "there are entries before the first one"  # the walk along the chain begins at 1
        made = "SELECT type, name, tbl_name, rootpage > 0, sql FROM sqlite_schema ORDER BY type, name"
        with closing(sqlite3.connect(":memory:")) as fresh:
            for step in migrations("sqlite"):
                fresh.executescript(step)
            if fresh.execute(made).fetchall() == self._connection.execute(made).fetchall():
                return None
        return "the file's tables, triggers or indexes are not the ones of a ledger"

    def _as_the_table(self, index: str) -> bool:
        """Does an index say what its table says? The integrity check looks for the rows in it, and takes an entry of
        the wrong length for sound."""
        rows = _INDEXES[index]
        by_index, by_table = (
            self._connection.execute(rows.format(how=how)).fetchall() for how in (f"INDEXED BY {index}", "NOT INDEXED")
        )
        return by_index == by_table

    def close(self) -> None:
        if self._home.left:
            return
        with self._lock:
            self._over = self._over or CLOSED
            self._connection.close()


def open_store(place: str | Path, *, create: bool, wait: float, read_only: bool) -> SQLiteStore:
    return SQLiteStore(place, create=create, wait=wait, read_only=read_only)


def _connect(address: str, wait: float) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)


def _statements(script: str) -> Iterator[str]:
    """One by one, so that they run inside our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
