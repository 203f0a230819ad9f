"""A ledger's file that somebody changed, and an anchor that somebody wrote: told in words, never by a stray error.

An input is a list of changes. Each is of the file's bytes (where, and which), or of what an entry, a receipt or an
account says (which, where in its text, and what stands there instead).
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from sfumato import Budget, Curator, Private, bounds, record, sequence
from sfumato import mechanisms as m
from sfumato.ledger import open_ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.keys import Key
from tests.fuzz.watching import Choices, attempt
from tests.helpers import AGES, BY_PATIENT, PATIENTS

_TEXTS = {"entries": ("number", "body"), "receipts": ("id", "receipt"), "accounts": ("name", "state")}
_WORDS = (
    b"", b"0", b"-1", b"null", b"1e999", b"[]", b"{}", b'""', b'"is"', b'"map"', b'"exact"', b"9" * 5000, b'"\\ud800"',
    b"NaN", b"true", b'{"is":"exact","value":"1/3"}', b'"receipt/1"', b"[" * 3000, b'"gaussian/1"', b"\xff", b"\0",
)  # fmt: skip


@cache
def folder() -> Path:
    """A small ledger with everything that a reader meets: answered, failed, held, prepaid."""
    place = Path(tempfile.mkdtemp(prefix="fuzz-ledger-"))
    key = Key.make(place / "key")
    (place / "anchor").mkdir()
    ledger = open_ledger(place / "whole.ledger", create=True, anchor=place / "anchor" / "lines", key=key)
    ledger.open_account("clinic", Budget(epsilon=5, delta=1e-6))
    ledger.open_account("team", Budget(epsilon=2, delta=1e-7), parent="clinic")
    private = Private("clinic", AGES, unit=BY_PATIENT, schema=PATIENTS)
    curator = Curator(private, ledger, accounts=("team",))
    count = bounds.count(BY_PATIENT)
    curator.release(m.Laplace(query=count, epsilon=0.5), note="how many")
    curator.release(m.Gaussian(query=count, epsilon=0.5, delta=1e-8), key="k")
    curator.prepay(sequence(a=m.Laplace(query=count, epsilon=0.1), b=m.Laplace(query=count, epsilon=0.2)))
    curator.release(m.Laplace(query=count, epsilon=0.1))
    ledger.shut()
    return place


def changed(data: bytes) -> Path:
    """A copy of the ledger with the changes that an input says."""
    whole, copy = folder() / "whole.ledger", folder() / "changed.ledger"
    for each in folder().glob("changed.ledger*"):
        each.unlink()
    shutil.copy(whole, copy)
    choices = Choices(data)
    for _ in range(6):
        if choices.done:
            break
        kind = choices.byte() % 4
        if kind == 0:
            size = copy.stat().st_size
            with copy.open("r+b") as file:
                file.seek((choices.byte() << 16 | choices.byte() << 8 | choices.byte()) % size)
                file.write(bytes(choices.byte() for _ in range(1 + choices.byte() % 8)))
        else:
            _reword(copy, tuple(_TEXTS)[kind - 1], choices)
    return copy


def _reword(copy: Path, table: str, choices: Choices) -> None:
    """One text of a table, with other words in one place. Triggers that refuse it are dropped, as a forger would."""
    name, column = _TEXTS[table]
    con = sqlite3.connect(copy)
    try:
        with con:
            for (each,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                con.execute(f'DROP TRIGGER "{each}"')
            rows = con.execute(f"SELECT {name}, {column} FROM {table}").fetchall()
            if not rows:
                return
            which, text = choices.of(rows)
            text = text if isinstance(text, bytes) else str(text).encode()
            at = (choices.byte() << 8 | choices.byte()) % (len(text) + 1)
            gone = choices.byte() % 16
            new = text[:at] + choices.of(_WORDS) + text[at + gone :]
            con.execute(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (new, which))
    except (sqlite3.Error, UnicodeDecodeError):  # the bytes that were changed before made it no database
        return
    finally:
        con.close()


def fuzz_ledger(data: bytes) -> None:
    """Everything that reads a ledger, on one that was changed."""
    place = changed(data)
    ledger = attempt("open", lambda: open_ledger(place, read_only=True))
    if isinstance(ledger, BaseException):
        return
    try:
        attempt("verify", ledger.verify)
        attempt("verify with the anchor", lambda: ledger.verify(anchor=FileAnchor(folder() / "anchor" / "lines")))
        attempt("history", lambda: [f"{each}" for each in ledger.history()])
        rows = attempt("releases", lambda: list(ledger.releases()))
        for account in ("clinic", "team"):
            attempt("statement", lambda account=account: str(ledger.statement(account)))  # type: ignore[misc]
            attempt("forecast", lambda account=account: str(ledger.forecast(account)))  # type: ignore[misc]
            attempt("spent", lambda account=account: ledger.spent(account))  # type: ignore[misc]
            attempt("left", lambda account=account: ledger.left(account))  # type: ignore[misc]
        attempt("overview", lambda: str(ledger.overview()))
        for ending in ("ndjson", "csv"):
            out = folder() / f"out.{ending}"
            attempt("export", lambda out=out: ledger.export(out, overwrite=True))  # type: ignore[misc]
        for row in [] if isinstance(rows, BaseException) else rows[:6]:
            id = row.id
            attempt("entry", lambda id=id: ledger.entry(id))  # type: ignore[misc]
            attempt("evidence", lambda id=id: ledger.evidence(id))  # type: ignore[misc]
        attempt("html", ledger._repr_html_)
    finally:
        ledger.shut()


def fuzz_anchor(data: bytes) -> None:
    """An anchor's lines, beside the ledger that they are of."""
    lines = folder() / "anchor" / "given"
    lines.write_bytes(data)
    with open_ledger(folder() / "whole.ledger", read_only=True) as ledger:
        report = attempt("verify", lambda: ledger.verify(anchor=FileAnchor(lines)))
        attempt("report", lambda: str(report))


def seeds() -> dict[str, bytes]:
    """A true anchor, for a fuzzer to begin with: signatures cannot be guessed."""
    return {"true": (folder() / "anchor" / "lines").read_bytes(), "record": record.canonical(("a", 1, None))}
