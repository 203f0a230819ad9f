"""The head outside the store: no answer outlives its charge, whatever the store loses."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato import Budget, open_ledger
from sfumato.errors import LedgerError
from sfumato.ledger import FileAnchor, Key
from sfumato.ledger.__main__ import main
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof import head as heads
from sfumato.ledger.proof.chain import GENESIS, Link
from sfumato.ledger.proof.head import PLACE, HeadFile
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import laplace
from tests.ledger.stores import answered, pay

TWO = ("omar", "pia")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with one release."""
    place = tmp_path / "ledger"
    with open_ledger(place, create=True) as ledger:
        ledger.open_account("a", Budget(epsilon=3))
        answered(ledger, laplace(0.5))
    return place


def head(path: Path) -> HeadFile:
    return HeadFile(f"{path}-head")


def last(path: Path) -> Link:
    with closing(sqlite3.connect(path)) as connection:
        return Link(*connection.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone())


def cut(path: Path, entries: int) -> None:
    """The end is lost, and the state is what it was then."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER entries_last")
        connection.execute("DELETE FROM entries WHERE number > (SELECT max(number) FROM entries) - ?", (entries,))
        connection.commit()


def test_every_write_is_told_and_what_opens_data_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(file) or sync(file))
    with open_ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.open_account("a", Budget(epsilon=3))
        synced.clear()
        told = []
        receipt = pay(ledger, laplace(0.5))
        told.append((head(tmp_path / "ledger").read(), len(synced)))
        ledger.open(receipt)
        told.append((head(tmp_path / "ledger").read(), len(synced)))
        ledger.settle(receipt, "answered", b"1")
        told.append((head(tmp_path / "ledger").read(), len(synced)))
        chain = [link for link, _ in ledger._store.entries()]
    assert told == [(chain[-3], 0), (chain[-2], 1), (chain[-1], 1)]


def test_a_chain_that_lost_its_end_is_refused_and_condemned(path: Path) -> None:
    cut(path, 3)
    with open_ledger(path) as ledger:
        assert not ledger.continues
        with pytest.raises(LedgerError, match=r"lacks entries that were written|not what the last of them left"):
            pay(ledger, laplace(0.25))
        report = ledger.verify()
        assert not report.ok and any("the head names entry 5" in str(each) for each in report.problems), report
    assert main(["verify", str(path)]) == 1


def test_a_chain_that_was_written_anew_is_refused(path: Path) -> None:
    """With hashes that fit, as many entries, and another end."""
    shutil.copytree(path.parent, path.parent.parent / "other")
    with open_ledger(path.parent.parent / "other" / "ledger") as ledger:
        answered(ledger, laplace(0.25))
    with open_ledger(path) as ledger:
        answered(ledger, laplace(0.125))
    shutil.copy(path.parent.parent / "other" / "ledger", path)
    with open_ledger(path) as ledger:
        with pytest.raises(LedgerError, match="does not hold it"):
            pay(ledger, laplace(0.25))
        assert any("written anew" in str(each) for each in ledger.verify().problems)


def test_two_persons_accept_what_is_left(path: Path) -> None:
    with open_ledger(path, principal="omar") as ledger, pytest.raises(LedgerError, match="nothing to accept"):
        ledger.accept_restore("the disk broke", TWO)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with open_ledger(path) as ledger:
        answered(ledger, laplace(0.25))
    shutil.copy(copy, path)
    with open_ledger(path, principal="omar") as ledger:
        with pytest.raises(LedgerError, match="lacks entries"):
            pay(ledger, laplace(0.25))
        ledger.accept_restore("the disk broke", TWO)
        answered(ledger, laplace(0.25))
        assert ledger.continues and ledger.verify().ok, ledger.verify()
    assert head(path).read() == last(path)


def test_a_lost_head_is_told_and_not_made_anew(path: Path) -> None:
    head(path).path.unlink()
    with open_ledger(path, principal="omar") as ledger:
        assert not ledger.continues
        with pytest.raises(LedgerError, match="ledger-head, is missing"):
            pay(ledger, laplace(0.25))
        assert not ledger.verify().ok and not head(path).exists()
        ledger.accept_restore("it was moved without it", TWO)
        pay(ledger, laplace(0.25))
        assert ledger.verify().ok
    assert main(["verify", str(path)]) == 0


def test_it_moves_with_its_ledger(path: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    for end in ("", "-head"):
        Path(f"{path}{end}").rename(tmp_path / "new" / f"budget{end}")
    with open_ledger(tmp_path / "new" / "budget") as ledger:
        answered(ledger, laplace(0.25))
        assert ledger.verify().ok


def test_a_ledger_of_an_earlier_version_gets_one_at_its_first_write(tmp_path: Path) -> None:
    with Ledger(SQLiteStore(tmp_path / "ledger", create=True)) as ledger:  # without a head, as they were
        ledger.open_account("a", Budget(epsilon=3))
    with open_ledger(tmp_path / "ledger", read_only=True) as ledger:
        assert ledger.continues and ledger.verify().ok
    assert not head(tmp_path / "ledger").exists()
    with open_ledger(tmp_path / "ledger") as ledger:
        pay(ledger, laplace(0.25))
    assert head(tmp_path / "ledger").read() == last(tmp_path / "ledger")


def test_a_new_ledger_in_the_place_of_one_that_was_lost_is_refused(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    with open_ledger(path, create=True) as ledger, pytest.raises(LedgerError, match="remove that file first"):
        ledger.open_account("a", Budget(epsilon=3))


def test_whoever_only_reads_writes_none(path: Path) -> None:
    before = head(path).path.read_bytes()
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.continues and ledger.verify().ok
    assert head(path).path.read_bytes() == before
    cut(path, 1)
    with open_ledger(path, read_only=True) as ledger:
        assert not ledger.continues and not ledger.verify().ok


def test_with_an_anchor_it_lies_there(tmp_path: Path) -> None:
    place, anchor = tmp_path / "store" / "ledger", tmp_path / "outside" / "anchor"
    for folder in (place.parent, anchor.parent):
        folder.mkdir()
    key = Key.make(tmp_path / "key")
    with open_ledger(place, create=True) as ledger:  # at first without one
        ledger.open_account("a", Budget(epsilon=3))
    with open_ledger(place, anchor=anchor, key=key, principal="omar") as ledger:
        answered(ledger, laplace(0.5))
    assert HeadFile(f"{anchor}-head").read() == last(place)
    shutil.copy(place, tmp_path / "copy")
    with open_ledger(place, anchor=anchor, key=key, principal="omar") as ledger:
        answered(ledger, laplace(0.25))
        ledger._store._store._store.close()  # type: ignore[attr-defined]  # no checkpoint: the process is gone
    shutil.copy(tmp_path / "copy", place)
    with closing(SQLiteStore(place, read_only=True)) as store:
        from sfumato.ledger.proof.verify import verify

        assert any("names entry" in str(each) for each in verify(store, FileAnchor(anchor)).problems)
    with open_ledger(place, anchor=anchor, key=key, principal="omar") as ledger:
        with pytest.raises(LedgerError, match=r"lacks entries|does not continue its anchor"):
            pay(ledger, laplace(0.25))
        ledger.accept_restore("the disk broke", TWO)
        pay(ledger, laplace(0.25))
        assert ledger.verify().ok, ledger.verify()


# The file


def link(number: int) -> Link:
    return Link(number, number.to_bytes(32, "big"))


@pytest.fixture
def file(tmp_path: Path) -> HeadFile:
    found = HeadFile(tmp_path / "head")
    found.begin(GENESIS)
    return found


def test_it_never_goes_back(file: HeadFile) -> None:
    file.write(link(7), sync=False)
    file.write(link(5), sync=True)
    assert file.read() == link(7)
    file.reset(link(3))
    assert file.read() == link(3)


def test_what_was_synced_is_never_the_place_that_is_written(file: HeadFile) -> None:
    """Whichever writes were cut short since the last sync, the last synced head is read."""
    file.write(link(1), sync=True)
    synced = file.path.read_bytes()
    for number in range(2, 6):
        file.write(link(number), sync=False)
        now = file.path.read_bytes()
        places = [place for place in (0, PLACE) if now[place : place + PLACE] != synced[place : place + PLACE]]
        assert len(places) == 1
        for torn in (b"", b"\0" * 40, b"\xff" * 511):
            half = bytearray(now)
            half[places[0] : places[0] + len(torn)] = torn
            file.path.write_bytes(bytes(half))
            assert file.read() in (link(1), link(number))
        file.path.write_bytes(now)


def test_each_flipped_bit_of_a_place_is_seen(file: HeadFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_PAUSE", 0)
    file.write(link(9), sync=True)
    good = file.path.read_bytes()
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 1
        file.path.write_bytes(bytes(bad))
        assert file.torn() and file.read() in (GENESIS, link(9))


def test_a_file_of_which_nothing_is_whole_is_refused(file: HeadFile) -> None:
    for content in (b"", b"x" * 1024, file.path.read_bytes()[:100]):
        file.path.write_bytes(content)
        for work in (file.read, lambda: file.write(link(1), sync=True)):
            with pytest.raises(LedgerError, match="damaged"):
                work()


def test_a_head_that_cannot_be_written_releases_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_ledger(path) as ledger:
        receipt = pay(ledger, laplace(0.25))

        def fails(file: int) -> None:
            raise OSError(5, "no")

        monkeypatch.setattr(os, "fdatasync", fails)
        with pytest.raises(LedgerError, match="head cannot be used"):
            ledger.open(receipt)
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="head cannot be used"):
            pay(ledger, laplace(0.25))
    with open_ledger(path) as ledger:
        pay(ledger, laplace(0.25))
        assert ledger.verify().ok
