"""The statements of one transaction, in as few round trips as there are questions: what is only written waits for the
next question, and the commit is the last one.

psycopg's own pipeline does the same with several times the work per statement, which on a fast disk is what a spend
would wait for; so this speaks to libpq itself, through psycopg's wrapper of it. Statements are prepared once per
connection, and every value is a binary parameter.
"""

from __future__ import annotations

import itertools
import select
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, LiteralString

from ...errors import LedgerError
from .postgres_words import UNTAKEN, told

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

Value = bytes | str | int | None

# By the type's number in the server's catalogue: boolean, bytes, name, whole number, text.
_READ: dict[int, Callable[[bytes], Any]] = {
    16: lambda raw: raw != b"\0",
    17: bytes,
    19: lambda raw: raw.decode("utf-8"),
    20: lambda raw: int.from_bytes(raw, "big", signed=True),
    25: lambda raw: raw.decode("utf-8"),
}


class Wire:
    """One connection; between `begin` and `commit` or `undo` it belongs to one transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        from psycopg import OperationalError, errors, pq

        self._connection = connection
        self._line = connection.pgconn
        self._status, self._error, self._lost = pq.ExecStatus, errors.error_from_result, OperationalError
        self._prepared: dict[str, bytes] = {}
        self._number = itertools.count()
        self._new: list[str] = []  # prepared in this transaction
        self._unasked = False  # are there statements that no answer was asked for?
        self._due = 0  # answers that are not there yet
        self._failed = False
        self._torn = False  # was a step begun that did not come to its end?

    @property
    def idle(self) -> bool:
        """Is nothing under way? Otherwise an interrupt came even while a transaction was undone."""
        return not self._torn and self._line.transaction_status == 0 and self._line.pipeline_status == 0

    def begin(self, first: LiteralString, second: LiteralString) -> list[tuple[Any, ...]]:
        """Two statements in one round trip; the rows of the second."""
        with told():
            self._line.enter_pipeline_mode()
        self._failed = False
        self._new.clear()
        self.send(first)
        return self.rows(second)

    def send(self, query: LiteralString, *values: Value) -> None:
        """One statement more. If it fails, that is told with the next answer that is asked for."""
        if self._failed:  # somebody caught what the server said, and goes on
            raise LedgerError(UNTAKEN)
        with told():
            given = [_binary(value) for value in values]
            self._torn = True
            name = self._prepared.get(query)
            if name is None:
                name = self._prepared[query] = b"sfumato%d" % next(self._number)
                self._new.append(query)
                self._line.send_prepare(name, query.encode())
            self._line.send_query_prepared(name, given, [1] * len(given), result_format=1)
            self._unasked = True
            self._torn = False

    def rows(self, query: LiteralString, *values: Value) -> list[tuple[Any, ...]]:
        self.send(query, *values)
        with told():
            found = self._answer()
            read = [_READ[found.ftype(column)] for column in range(found.nfields)]
            return [
                tuple(None if (raw := found.get_value(row, at)) is None else to(raw) for at, to in enumerate(read))
                for row in range(found.ntuples)
            ]

    def commit(self) -> None:
        self.send("COMMIT")
        with told():
            # After a statement that failed, the server answers COMMIT with "ROLLBACK" and without an error.
            if self._answer().command_status != b"COMMIT":
                raise LedgerError(UNTAKEN)
            self._line.exit_pipeline_mode()

    def undo(self, problem: BaseException) -> None:
        """Roll back; or close the connection where that is not sure, and the server undoes what it hears no end of."""
        done = False
        try:
            if isinstance(problem, Exception) and not self._torn:  # an interrupt may have come between any two steps
                with suppress(Exception):
                    if self._due or self._unasked:
                        with suppress(LedgerError), told():
                            self._answer()
                    self._line.exit_pipeline_mode()
                    self._connection.execute("ROLLBACK")
                    done = True
        finally:  # or comes now
            if not done:
                self._connection.close()

    def _answer(self) -> PGresult:
        """Send all that waits, and wait for the answers. The last one; an error, if one of them is."""
        status, last, wrong = self._status, None, None
        self._torn = True
        if self._unasked:
            self._line.pipeline_sync()
            self._unasked = False
            self._due += 1
        while self._due:
            answer = self._next()
            if answer is None:
                continue
            if answer.status == status.PIPELINE_SYNC:
                self._due -= 1
            elif answer.status in (status.COMMAND_OK, status.TUPLES_OK):
                last = answer
            elif wrong is None and answer.status != status.PIPELINE_ABORTED:
                wrong = answer
        self._torn = False
        if wrong is not None or last is None:
            self._failed = True
            while self._new:  # perhaps prepared and perhaps not
                self._prepared.pop(self._new.pop(), None)
            raise LedgerError(UNTAKEN) if wrong is None else self._error(wrong)
        return last

    def _next(self) -> PGresult | None:
        """The next answer; None between the answers to two statements."""
        line = self._line
        while (unsent := line.flush()) or line.is_busy():
            if _wait(line.socket, sending=bool(unsent)):
                line.consume_input()
        answer = line.get_result()
        if line.status != 0:
            raise self._lost
        return answer


def _binary(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode("utf-8") if isinstance(value, str) else value.to_bytes(8, "big", signed=True)


def _wait(handle: int, sending: bool) -> bool:
    """Until there is something to read (True), or room to send."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN | (select.POLLOUT if sending else 0))
    return any(events & ~select.POLLOUT for _, events in waiting.poll())
