"""A ledger in PostgreSQL: for many writers on many machines.

Who writes takes the lock of one row, the chain's head, and keeps it until the commit: writers stand in line, and nobody
has to try again. The database itself holds what it can: entries are only inserted, each continues the chain, and each
is signed by the role that is logged in. A server that is down, read-only, full, unsynced or of a newer version is
refused with one message and no release.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

from ...errors import ArgumentError, LedgerError, install_line
from ...process import Home
from ..proof.chain import Link
from .base import Book
from .postgres_book import BLOCK, Known, PostgresBook
from .postgres_made import HEAD, LINES, difference
from .postgres_wire import Wire
from .postgres_words import UNREACHED, told
from .schema import migrations
from .words import CLOSED, FORKED, NEWER

if TYPE_CHECKING:
    import psycopg

_WAIT = 30.0  # seconds for the writers before us
_IDLE = 120  # seconds until the server ends a writer who went silent with the lock
_MIGRATING = 0x5F0A70  # the advisory lock under which a ledger is made or upgraded
# Unless the address says otherwise. A server that vanished is missed within a minute, not after hours.
_PATIENCE = {"connect_timeout": 20, "keepalives_idle": 30, "keepalives_interval": 10, "tcp_user_timeout": 60_000}

# Read committed: after the wait for the head, every statement sees what the writer before us wrote. A stricter level
# would refuse whoever had to wait.
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresStore:
    """One ledger in one database.

    address  as PostgreSQL writes it: "postgresql://role@host/database" or "host=... dbname=..."
    create   make a new, empty ledger where there is none; otherwise that is refused
    wait     how long, in seconds, to wait for other writers
    """

    _take_head: LiteralString = "SELECT number, hash FROM sfumato.take_head()"

    def __init__(self, address: str, *, create: bool = False, wait: float = _WAIT) -> None:
        self._wait = wait
        self._address = address
        self._lock = threading.RLock()
        self._home = Home()
        self._inside = False
        self._over = False
        self._known = Known()
        with told():
            self._connect()
            try:
                self._prepare(create)
                row = self._connection.execute("SELECT session_user::text").fetchone()
            except BaseException:
                self._connection.close()
                raise
        self.principal = str(row and row[0])

    def _connect(self) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError:
            raise LedgerError(f"PostgreSQL needs the psycopg package: {install_line('postgres')}") from None
        try:
            given = {**_PATIENCE, **conninfo_to_dict(self._address), "client_encoding": "utf8"}
            connection = psycopg.connect(make_conninfo("", **given), autocommit=True)
        except psycopg.Error:
            raise LedgerError(UNREACHED) from None
        try:
            _durable(connection, self._wait)
        except BaseException:
            connection.close()
            raise
        self._connection, self._wire = connection, Wire(connection)

    def _prepare(self, create: bool) -> None:
        version, steps = _version(self._connection), migrations("postgres")
        if version == 0 and not create:
            raise LedgerError(
                "there is no ledger in that database: give the right one, or create=True for a new ledger",
                code="no-ledger",
            )
        if version > len(steps):
            raise LedgerError(NEWER)
        for number, step in enumerate(steps[version:], version + 1):
            with self._connection.transaction():
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
                if _version(self._connection) < number:  # nobody else did it while we waited
                    self._connection.execute(step.encode())
                    self._connection.execute("INSERT INTO sfumato.migrations (number) VALUES (%s)", (number,))

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._transaction(_READ, "SELECT number, hash FROM sfumato.head") as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self._transaction(_WRITE, self._take_head) as book:
            yield book

    @contextmanager
    def _transaction(self, begin: LiteralString, head: LiteralString) -> Iterator[PostgresBook]:
        self._at_home()
        with self._lock:
            self._ready()
            try:
                self._inside = True
                book = PostgresBook(self._wire, begin, head, self._known, writes=begin == _WRITE)
                yield book
                self._at_home()
                self._known = book.commit()
            except BaseException as problem:
                self._wire.undo(problem)
                raise
            finally:
                self._inside = False

    def _at_home(self) -> None:
        if self._home.left:  # before the lock, which another thread may have held at the fork
            raise LedgerError(FORKED)

    def _ready(self) -> None:
        self._at_home()
        if self._over:
            raise LedgerError(CLOSED)
        if self._inside:
            raise LedgerError("the ledger is being written by this thread: end that first")
        if not self._wire.idle:
            self._connection.close()
        if self._connection.closed:  # lost: whatever was open is undone, and the head tells what was written
            with told():
                self._connect()

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        while True:
            with self._lock:
                self._ready()
                with told():
                    block = self._connection.execute(
                        "SELECT number, hash, body FROM sfumato.entries WHERE number >= %s ORDER BY number LIMIT %s",
                        (first, BLOCK),
                        binary=True,
                    ).fetchall()
            for number, digest, body in block:
                yield Link(number, digest), body
            if len(block) < BLOCK:
                return
            first = block[-1][0] + 1

    def damage(self) -> str | None:
        """What the database itself shows, below what it says: other tables, triggers, functions or rights than those
        that were made, or a head that is not the last entry."""
        with self._lock:
            self._ready()
            self._known = Known()  # whoever asks next reads what is stored
            with told():
                lines = [line for (line,) in self._connection.execute(LINES)]
                if (odd := difference(lines)) is not None:
                    return odd
                (row,) = self._connection.execute(HEAD).fetchall() or [(False,)]
                return None if row[0] else "the head of the chain is not the last entry"

    def close(self) -> None:
        if self._home.left:
            return
        with self._lock:
            self._over = True
            self._connection.close()


def _durable(connection: psycopg.Connection[Any], wait: float) -> None:
    """A commit is on the disk before it returns, and nobody waits, or makes others wait, for ever."""
    row = connection.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
    if row is None or row[0] != "on":
        raise LedgerError("the ledger's server does not sync to its disk: set fsync = on there")
    wanted = {
        "lock_timeout": f"{max(1, round(1000 * wait))}ms",
        "idle_in_transaction_session_timeout": f"{_IDLE}s",
        "search_path": "",
    }
    if row[1] != "remote_apply":  # the one setting that waits for more
        wanted["synchronous_commit"] = "on"
    for name, value in wanted.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _version(connection: psycopg.Connection[Any]) -> int:
    if connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'sfumato'").fetchone() is None:
        return 0
    row = connection.execute("SELECT max(number) FROM sfumato.migrations").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def open_store(place: str, *, create: bool, wait: float, read_only: bool) -> PostgresStore:
    if read_only:
        raise ArgumentError("read_only is for files: on a server, log in with a role that has sfumato_reader.")
    return PostgresStore(place, create=create, wait=wait)
