"""Files that are linked, swapped, mounted or restored below a ledger, and anchors that are not its own."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof import anchor as anchors
from sfumato.ledger.proof import anchored
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores import sqlite_file
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.ledger.stores.sqlite_book import SHRUNK
from tests.helpers import laplace, spent
from tests.ledger.stores import pay


@pytest.fixture
def path(quick: Path) -> Path:
    (quick / "ledgers").mkdir()
    path = quick / "ledgers" / "ledger"
    with closing(SQLiteStore(path, create=True)) as store:
        ledger = Ledger(store)
        ledger.open_account("a", Budget(epsilon=9))
        pay(ledger, laplace(1))
    return path


@contextmanager
def opened(path: Path) -> Iterator[Ledger]:
    with closing(SQLiteStore(path)) as store:
        yield Ledger(store)


def refused(ledger: Ledger, text: str) -> None:
    for _ in range(2):
        with pytest.raises(LedgerError) as problem:
            pay(ledger, laplace(1))
        assert str(problem.value) == text


# names


def test_a_ledger_is_the_same_through_a_symbolic_link(path: Path) -> None:
    link = path.parent.parent / "link"
    link.symlink_to(path)
    with opened(path) as real, opened(link) as linked:
        pay(real, laplace(1))
        pay(linked, laplace(1))
        assert spent(real, "a") == spent(linked, "a") == [3]
        assert not Path(f"{link}-wal").exists()
        shutil.copy(path, path.with_name("copy"))
        link.unlink()
        link.symlink_to(path.with_name("copy"))
        refused(linked, sqlite_file.MOVED)
        pay(real, laplace(1))


def test_a_second_name_is_refused(path: Path) -> None:
    """SQLite would keep the last entries of each name apart: both would pay from one budget, and break the file."""
    second = path.with_name("second")
    with opened(path) as ledger:
        pay(ledger, laplace(1))
        os.link(path, second)
        refused(ledger, sqlite_file.TWO_NAMES)
        for name in (path, second):
            for read_only in (True, False):
                with pytest.raises(LedgerError) as problem:
                    SQLiteStore(name, read_only=read_only)
                assert str(problem.value) == sqlite_file.TWO_NAMES
        second.unlink()
        pay(ledger, laplace(1))
        assert spent(ledger, "a") == [3]


def test_a_file_that_is_mounted_alone_is_refused(path: Path, quick: Path) -> None:
    alone = quick / "alone"
    alone.touch()
    mount = ["mount", "--bind", str(path), str(alone)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only an administrator may mount")
    try:
        with pytest.raises(LedgerError) as problem:
            SQLiteStore(alone)
        assert str(problem.value) == sqlite_file.TWO_NAMES
    finally:
        subprocess.run(["umount", str(alone)], check=True)
    with opened(path) as ledger:
        pay(ledger, laplace(1))


@pytest.mark.parametrize(("kind", "kept"), [("ext4", True), ("tmpfs", True), ("nfs4", False), ("fuse.sshfs", False)])
def test_a_disk_of_another_machine_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, kept: bool
) -> None:
    """Two machines do not see each other's locks and index there."""
    monkeypatch.setattr(sqlite_file, "_mounts", lambda: {"/": "nfs", str(path.parent): kind})
    if kept:
        SQLiteStore(path).close()
        return
    with pytest.raises(LedgerError) as problem:
        SQLiteStore(path)
    assert str(problem.value) == sqlite_file.NO_PLACE


# content


@pytest.mark.parametrize("longer", [False, True])
def test_an_old_copy_put_into_the_same_file_is_refused_by_whoever_saw_more(path: Path, longer: bool) -> None:
    """As `cp backup ledger` does it: the file is the same one, and nothing was moved."""
    backup = path.read_bytes()
    with opened(path) as ledger:
        pay(ledger, laplace(1))
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.write_bytes(backup)
        Path(f"{path}-shm").write_bytes(Path(f"{path}-shm").read_bytes())
        if longer:
            with opened(path) as forked:
                for _ in range(3):
                    pay(forked, laplace(0.5))
        with pytest.raises(LedgerError) as problem:
            for _ in range(2):
                ledger.spent("a")
                pay(ledger, laplace(1))
        assert str(problem.value) == SHRUNK


def test_entries_before_the_first_are_found(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as odd:
        with pytest.raises(sqlite3.IntegrityError):
            odd.execute("INSERT INTO entries VALUES (-1, zeroblob(32), x'00')")
        odd.execute("PRAGMA ignore_check_constraints = ON")
        odd.execute("INSERT INTO entries VALUES (0, zeroblob(32), x'00')")
    with closing(SQLiteStore(path, read_only=True)) as store:
        assert not verify(store).ok


def test_verify_reads_what_is_stored_not_what_a_running_process_remembers(path: Path) -> None:
    with opened(path) as ledger:
        pay(ledger, laplace(1))
        assert verify(ledger._store).ok
        with closing(sqlite3.connect(path, isolation_level=None)) as administrator:
            administrator.execute("UPDATE accounts SET totals = CAST(replace(totals, ',0,[', ',1,[') AS BLOB)")
        assert "account 'a' is not what the entries amount to" in str(verify(ledger._store))


def test_a_transaction_inside_another_is_refused_and_undoes_neither(path: Path) -> None:
    with closing(SQLiteStore(path)) as store:
        with store.writing() as book:
            book.put_fact("data", "x", 1)
            for inside in (store.reading, store.writing):
                with pytest.raises(LedgerError, match="end that first"), inside():
                    pass
            assert [link.number for link, _ in store.entries()] == [1, 2, 3]
        with store.reading() as book:
            assert book.fact("data", "x") == 1


def test_facts_are_kept_with_the_rest(path: Path) -> None:
    with closing(SQLiteStore(path)) as one, closing(SQLiteStore(path)) as two:
        with pytest.raises(ZeroDivisionError), one.writing() as book:
            book.put_fact("data", "x", 1)
            raise ZeroDivisionError
        for value in (1, {"a": (1, 2)}, "'; DROP TABLE facts; --"):
            with one.writing() as book:
                assert book.fact("data", "x") != value
                book.append(b"{}")
                book.put_fact("data", "x", value)
                book.put_fact("policy", "", "one")
                assert book.fact("data", "x") == value
            with two.reading() as book:
                assert book.fact("data", "x") == value and book.facts("data") == {"x": value}
                assert book.fact("data", "y") is None and book.facts("watch") == {}


# anchors


def test_an_anchor_in_the_ledger_s_folder_is_refused(path: Path) -> None:
    link = path.parent.parent / "link"
    link.symlink_to(path.parent)
    for place in (path.with_name("anchor"), link / "anchor"):
        with closing(SQLiteStore(path)) as store:
            with pytest.raises(LedgerError) as problem:
                AnchoredStore(store, FileAnchor(place), Key.make(path.with_name(f"key {place.parent.name}")))
            assert str(problem.value) == anchored.BESIDE and not place.exists()


@pytest.mark.parametrize("text", [b"a table without an end of line", b'{"checkpoint":{"at":"' + b"x" * 100_001])
def test_a_file_that_is_no_anchor_is_left_as_it_is(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "data").write_bytes(text)
    with pytest.raises(LedgerError) as problem:
        store = AnchoredStore(MemoryStore(), FileAnchor(tmp_path / "data"), Key.make(tmp_path / "key"))
        Ledger(store).open_account("a", Budget(epsilon=1))
    assert str(problem.value) == anchors.DAMAGED and (tmp_path / "data").read_bytes() == text


def test_an_anchor_of_another_key_does_not_prove_a_shorter_chain(tmp_path: Path) -> None:
    """Whoever cannot write the anchor brings one of his own: without keys to trust, the ledger's first entry tells."""
    key, other = Key.make(tmp_path / "key"), Key.make(tmp_path / "other")
    store, anchor, made = MemoryStore(), FileAnchor(tmp_path / "anchor"), FileAnchor(tmp_path / "made")
    ledger = Ledger(AnchoredStore(store, anchor, key, every=1))
    ledger.open_account("a", Budget(epsilon=9))
    pay(ledger, laplace(1))
    assert verify(store, anchor).ok
    lines = [anchors.read(line.rstrip(b"\n"), [key.public]) for line in anchor.lines()]
    last = None
    for line in lines[:-1]:
        fields = vars(line) | {"key": other.public, "before": anchors.fingerprint(last)}
        forged = anchors.Checkpoint(**fields).signed(other)
        assert made.add(forged, last)
        last = forged
    del store._kept.chain[lines[-2].number :]
    report = verify(store, made, state=False)
    assert not report.ok and "begun with another key" in str(report)
    assert not verify(store, anchor, state=False).ok
    assert "made with an anchor" in str(verify(store, state=False))


@pytest.mark.parametrize("again", [3, 7])
def test_a_store_that_lost_entries_and_grew_longer_is_refused(tmp_path: Path, again: int) -> None:
    store, anchor = MemoryStore(), FileAnchor(tmp_path / "anchor")
    ledger = Ledger(AnchoredStore(store, anchor, Key.make(tmp_path / "key")))
    ledger.open_account("a", Budget(epsilon=9))
    for _ in range(2):
        pay(ledger, laplace(1))
    del store._kept.chain[-2:]
    with store.writing() as book:
        for _ in range(again):
            book.append(b"another")
    refused(ledger, anchored.STALE)
    assert len(list(anchor.lines())) == 1
