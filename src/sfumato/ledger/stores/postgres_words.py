"""Whatever a PostgreSQL server does becomes one of a few stable messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import LedgerError, RecordError
from .words import DAMAGED, LOCKED

LOST = (
    "the connection to the ledger was lost, and whether the last entry was written is not known: try again; a spend "
    "with a key is paid once"
)
UNREACHED = (
    "the ledger's server cannot be reached, or refuses the login: start it, or give the right address, role and "
    "password"
)
UNTAKEN = "the ledger did not take the entry: nothing was written; try again"
UNKEPT = "the ledger cannot keep that text: leave out characters that are not printable"
FULL = "the ledger cannot be written: the server's disk is full or failing; make room or repair it"
_READ_ONLY = "the ledger's server is read-only: connect to the one that takes writes"
_WORDS = {
    "SF001": "an entry is written in the name of the role that is logged in: leave principal out",
    "SF002": DAMAGED,
    "42501": "this role may not do that: the ledger's owner can grant it sfumato_writer, or sfumato_reader to read",
    "55P03": LOCKED,
    "25006": _READ_ONLY,
    "0A000": _READ_ONLY,  # what a standby says to BEGIN READ WRITE
    "42P01": DAMAGED,
    "42883": DAMAGED,
    "3F000": DAMAGED,
    "XX001": DAMAGED,
    "XX002": DAMAGED,
    "53100": FULL,
    "58030": FULL,
    "25P02": UNTAKEN,
    "25P03": LOST,
}


@contextmanager
def told() -> Iterator[None]:
    try:
        yield
    except RecordError:
        raise LedgerError(DAMAGED) from None
    except UnicodeEncodeError:
        raise LedgerError(UNKEPT) from None
    except Exception as problem:
        if not type(problem).__module__.startswith("psycopg"):
            raise
        raise LedgerError(words(problem)) from None


def words(problem: Any) -> str:
    import psycopg

    state = problem.sqlstate if isinstance(problem, psycopg.Error) else None
    if state in _WORDS:
        return _WORDS[state]
    if isinstance(problem, psycopg.OperationalError) and (state is None or state[:2] in ("08", "57")):
        return LOST
    if isinstance(problem, psycopg.DataError):
        return UNKEPT
    return "the ledger cannot be used: check the database, and run `verify` before anything is released"
