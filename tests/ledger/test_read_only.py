"""A ledger opened for reading: whoever audits it needs no right to write, and leaves no trace."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.__main__ import main
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores import sqlite, sqlite_file
from sfumato.ledger.stores.sqlite import READ_ONLY, SQLiteStore
from tests.helpers import laplace, spent
from tests.ledger.stores import Stores, pay, server
from tests.ledger.striking import ENVIRONMENT, ROOT


@pytest.fixture
def path(quick: Path) -> Path:
    """A ledger with one spend, closed by everybody."""
    folder = quick / "ledgers"
    folder.mkdir()
    with closing(SQLiteStore(folder / "ledger", create=True)) as store:
        ledger = Ledger(store)
        ledger.open_account("a", Budget(epsilon=9))
        pay(ledger, laplace(1))
    return folder / "ledger"


def files(path: Path) -> dict[str, tuple[bytes, int]]:
    found = [file for file in path.parent.iterdir() if file.is_file()]
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in found}


def looked_at(path: Path) -> None:
    """Everything that a reader can do."""
    with closing(SQLiteStore(path, read_only=True)) as store:
        ledger = Ledger(store)
        assert ledger.spent("a") and ledger.quote(("a",), laplace(1)) and list(store.entries())
        with store.reading() as book:
            assert book.fact("no", "such") is None and book.facts("no") == {}
        assert verify(store).ok


@pytest.mark.parametrize("state", ["closed", "open", "left by a crash"])
def test_reading_changes_no_file(path: Path, state: str) -> None:
    store = SQLiteStore(path)
    pay(Ledger(store), laplace(1))
    if state == "closed":
        store.close()
    elif state == "left by a crash":
        for file in list(path.parent.iterdir()):
            shutil.copy2(file, path.parent.parent / file.name)
        path = path.parent.parent / "ledger"
    before = files(path)
    looked_at(path)
    after = files(path)
    store.close()
    if state == "open":  # within one process, the reader shares the writer's index
        assert before.pop("ledger-shm") and after.pop("ledger-shm")
    assert before == after and (len(after) > 1) == (state != "closed")


def test_nothing_can_be_written(path: Path) -> None:
    before = files(path)
    with closing(SQLiteStore(path, read_only=True, create=True)) as store:
        ledger = Ledger(store)
        for write in (
            lambda: pay(ledger, laplace(1)),
            lambda: ledger.open_account("b", Budget(epsilon=1), reason="more"),
            lambda: ledger.unlock("a", "why"),
        ):
            with pytest.raises(LedgerError) as refusal:
                write()
            assert str(refusal.value) == READ_ONLY
        with pytest.raises(sqlite3.OperationalError):
            store._connection.execute("DELETE FROM accounts")
    with pytest.raises(LedgerError, match="there is no ledger at that path"):
        SQLiteStore(path.with_name("none"), read_only=True, create=True)
    assert files(path) == before


AUDITOR = """
import json, os, sys, tempfile
from sfumato import Budget, kinds
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.ledger.proof.verify import verify
kinds.load()
with tempfile.TemporaryDirectory() as other:  # whatever is imported late is imported now
    store = SQLiteStore(other + "/ledger", create=True)
    Ledger(store).open_account("a", Budget(epsilon=1))
    verify(store)
    store.close()
for user in [int(text) for text in sys.argv[2:]]:
    os.setgroups([]); os.setgid(user); os.setuid(user)
try:
    store = SQLiteStore(sys.argv[1], read_only=True)
    report = verify(store)
    print(json.dumps(["ok" if report.ok else str(report), report.head.number]))
except LedgerError as problem:
    print(json.dumps([str(problem), 0]))
"""


def audited(path: Path) -> tuple[str, int]:
    """By a process that may only read."""
    user = ["65534"] if os.geteuid() == 0 else []
    command = [sys.executable, "-W", "ignore", "-c", AUDITOR, str(path), *user]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, number = json.loads(done.stdout)
    return told, number


@pytest.fixture
def locked_up(path: Path) -> Iterator[Path]:
    """In a folder that nobody may write, files that nobody may write."""
    path.parent.parent.chmod(0o755)
    yield path
    path.parent.chmod(0o755)


def lock_up(path: Path) -> None:
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)


@pytest.mark.slow
def test_an_auditor_needs_no_right_to_write(locked_up: Path) -> None:
    path = locked_up
    lock_up(path)
    assert audited(path) == ("ok", 3)
    path.chmod(0o000)
    assert audited(path) == (sqlite_file.UNREADABLE, 0)


@pytest.mark.slow
def test_an_auditor_sees_what_is_not_yet_in_the_first_file(locked_up: Path) -> None:
    """Beside a process that writes, and after one that died."""
    path = locked_up
    with closing(SQLiteStore(path)) as store:
        pay(Ledger(store), laplace(1))
        lock_up(path)
        assert audited(path) == ("ok", 4)
        path.parent.chmod(0o755)
        kept = path.parent / "kept"
        kept.mkdir()
        for end in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{end}", kept / f"ledger{end}")
    lock_up(kept / "ledger")
    assert audited(kept / "ledger") == ("ok", 4)
    kept.chmod(0o755)
    (kept / "ledger-shm").unlink()
    lock_up(kept / "ledger")
    assert audited(kept / "ledger") == (sqlite_file.HALF, 0), "never an older state than the files hold"
    kept.chmod(0o755)


def test_a_reader_sees_what_others_write_meanwhile(path: Path) -> None:
    with closing(SQLiteStore(path, read_only=True)) as reader:
        seen = Ledger(reader)
        assert spent(seen, "a") == [1]
        for total in (2, 3):  # first the second file appears, then the first one changes
            with closing(SQLiteStore(path)) as store:
                pay(Ledger(store), laplace(1))
                assert spent(seen, "a") == [total]
            assert spent(seen, "a") == [total] and verify(reader).ok
        path.rename(path.with_name("away"))
        with pytest.raises(LedgerError, match="moved, removed or replaced"):
            seen.spent("a")


def test_a_file_that_is_written_in_the_middle_of_a_reading_is_told(path: Path) -> None:
    with closing(SQLiteStore(path, read_only=True)) as reader:
        with pytest.raises(LedgerError) as problem, reader.reading() as book:
            assert book.head.number == 3
            with closing(SQLiteStore(path)) as store:
                pay(Ledger(store), laplace(1))
        assert str(problem.value) == sqlite.BUSY
        assert spent(Ledger(reader), "a") == [2]


def test_what_is_no_ledger_is_told_to_a_reader_too(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="the file is empty, or a ledger of an older version"):
        SQLiteStore(path, read_only=True)
    path.write_bytes(b"no database " * 999)
    with pytest.raises(LedgerError, match="the ledger is damaged"):
        SQLiteStore(path, read_only=True)


# entries, while others write


def test_whoever_reads_entries_slowly_keeps_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BLOCK", 2)
    with closing(SQLiteStore(path)) as store:
        slow = store.entries()
        assert next(slow)[0].number == 1
        done: list[Any] = []
        other = threading.Thread(target=lambda: done.append(pay(Ledger(store), laplace(1))))
        other.start()
        other.join(120)
        assert len(done) == 1, "the reader holds the lock while nobody asks it for more"
        assert [link.number for link, _ in slow] == [2, 3, 4]
        assert [link.number for link, _ in store.entries(3)] == [3, 4] and list(store.entries(9)) == []


def test_verify_holds_while_others_write(path: Path, quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BLOCK", 3)
    stop = threading.Event()

    def spender() -> None:
        with closing(SQLiteStore(path)) as store:
            ledger = Ledger(store)
            while not stop.is_set():
                pay(ledger, laplace(1e-6))

    other = threading.Thread(target=spender)
    other.start()
    try:
        with closing(SQLiteStore(path, read_only=True)) as reader:
            reports = [verify(reader) for _ in range(4)]
            while other.is_alive() and reports[-1].head.number == reports[0].head.number:
                reports.append(verify(reader))  # nothing was written meanwhile: the other had no turn yet
    finally:
        stop.set()
        other.join()
    assert all(report.ok for report in reports), reports
    assert reports[-1].head.number > reports[0].head.number


# the command


def test_the_command_tells_the_head_and_the_last_checkpoint(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (quick / "outside").mkdir()
    key, place = Key.make(quick / "key"), quick / "outside" / "anchor"
    with closing(AnchoredStore(SQLiteStore(quick / "ledger", create=True), FileAnchor(place), key)) as store:
        Ledger(store).open_account("a", Budget(epsilon=1))
        with store.reading() as book:
            head = book.head
    given = ["head", str(quick / "ledger")]
    before = files(quick / "ledger") | files(place)
    assert main(given) == 0 and capsys.readouterr().out == f"entry 3  {head.hash.hex()}\n"
    assert main([*given, "--anchor", str(place)]) == 0
    told = capsys.readouterr().out
    assert f"checkpoint 2 at entry 3  {head.hash.hex()}" in told and key.public in told
    assert main([*given, "--anchor", str(place), "--key", "00" * 32]) == 2
    assert main([*given, "--anchor", str(quick / "none")]) == 1
    assert before == files(quick / "ledger") | files(place)
    with closing(SQLiteStore(quick / "other", create=True)) as other:
        Ledger(other).open_account("a", Budget(epsilon=1))
    assert main(["head", str(quick / "other"), "--anchor", str(place)]) == 1
    assert "DOES NOT CONTINUE" in capsys.readouterr().out


def test_the_command_takes_the_address_of_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server()
    stores = Stores("postgres", tmp_path)
    try:
        place = stores.place()
        ledger = Ledger(stores.again(place))
        ledger.open_account("a", Budget(epsilon=1))
        with pytest.raises(BudgetError):
            pay(ledger, laplace(2))
    finally:
        stores.done()
    assert main(["head", place]) == 0 and capsys.readouterr().out.startswith("entry 2  ")
    assert main(["verify", place]) == 0 and capsys.readouterr().out.startswith("the ledger holds: 2 entries")
    assert main(["verify", "postgresql://nobody:@/none?host=/none"]) == 2
    assert "could not be checked" in capsys.readouterr().err
