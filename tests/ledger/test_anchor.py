"""What stands outside the store: keys, checkpoints, and copies that are not written (L9, L10)."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget
from sfumato.errors import ArgumentError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof import anchor as anchors
from sfumato.ledger.proof import anchored, files
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.birth import UNANCHORED
from sfumato.ledger.proof.keys import Key, signed_by
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Receipt
from sfumato_referee.attacks.ledger import backups
from sfumato_referee.mutants.stores import NeverLooks
from tests.helpers import laplace


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class House(backups.House):
    """As attacks L9 and L10 have it, with a clock that stands still, and stores that are closed at the end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder, self.clock = folder, Clock()
        self.open: list[AnchoredStore] = []

    def store(self, name: str = "ledger", key: Key | None = None, **more: Any) -> AnchoredStore:
        self.open.append(store := super().store(name, key, clock=self.clock, **more))
        return store

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line)["checkpoint"] for line in self.anchor.lines()]

    def report(self, name: str = "ledger") -> Any:
        store = SQLiteStore(self.folder / name)
        try:
            return verify(store, self.anchor, trusted=[self.key.public])
        finally:
            store.close()


@pytest.fixture
def house(tmp_path: Path) -> Any:
    made = House(tmp_path)
    yield made
    for store in made.open:
        store._store.close()


def pay(ledger: Ledger, note: str = "") -> Receipt:
    return ledger.spend(("a",), laplace(0.01), data="a@1", grade="exact", note=note)


def refused(ledger: Ledger, text: str = anchored.STALE) -> None:
    """Every write, with one message, and nothing changes."""
    with ledger._store.reading() as book:
        before = book.head
    writes: tuple[Callable[[], object], ...] = (
        lambda: pay(ledger),
        lambda: ledger.unlock("a", "none"),
        lambda: ledger.open_account("b", Budget(epsilon=1), reason="other people"),
    )
    for write in (*writes, *writes):
        with pytest.raises(LedgerError) as problem:
            write()
        assert str(problem.value) == text
    with ledger._store.reading() as book:
        assert book.head == before and book.accounts() == ("a",)


# keys


def test_a_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    key = Key.make(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    again = Key.load(tmp_path / "key")
    assert again.public == key.public and signed_by(key.public, again.sign(b"x"), b"x")
    assert not signed_by(key.public, again.sign(b"x"), b"y") and not signed_by("zz", "", b"x")
    with pytest.raises(LedgerError, match="never overwritten"):
        Key.make(tmp_path / "key")
    for mode in (0o644, 0o604, 0o640, 0o602):
        (tmp_path / "key").chmod(mode)
        with pytest.raises(LedgerError, match="others may read"):
            Key.load(tmp_path / "key")


def test_what_is_no_key_is_refused_and_a_key_shows_its_public_half_only(tmp_path: Path) -> None:
    for text in (b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"\xff" * 99):
        (tmp_path / "no").write_bytes(text)
        (tmp_path / "no").chmod(0o600)
        with pytest.raises(LedgerError, match="no Ed25519 key"):
            Key.load(tmp_path / "no")
    for make in (lambda: Key.load(tmp_path / "none"), lambda: Key.make(tmp_path / "none" / "key")):
        with pytest.raises(LedgerError):
            make()
    key = Key.make(tmp_path / "key")
    assert key.public[:16] in repr(key) and "PRIVATE" not in repr(key)
    with pytest.raises(TypeError):
        key.__reduce__()


# checkpoints


def test_a_ledger_has_an_id_from_birth_and_the_anchor_names_it(house: House) -> None:
    ledger = house.ledger()
    with ledger._store.reading() as book:
        first = book.entry(1)
    assert first is not None and b"birth" in first[1]
    (line,) = house.lines()  # the writer entered before the first entry of its own
    assert line["ledger"].encode() in first[1] and line["number"] == 2 and line["epoch"] == 1
    assert line["key"] == house.key.public


def test_checkpoints_come_every_hundred_entries_or_sixty_seconds_and_on_close(house: House) -> None:
    ledger = house.ledger()
    while len(house.lines()) < 3:
        pay(ledger)
    numbers = [line["number"] for line in house.lines()]
    assert numbers == [2, 102, 202]
    pay(ledger)
    house.clock.now += 59
    pay(ledger)
    assert len(house.lines()) == 3
    house.clock.now += 1
    pay(ledger)
    assert [line["number"] for line in house.lines()][3:] == [205]
    pay(ledger)
    ledger._store.close()
    assert [line["number"] for line in house.lines()][4:] == [206]
    assert house.report().ok and house.report().checkpoints == 5


def test_reading_writes_no_entry_and_no_checkpoint(house: House) -> None:
    pay(house.ledger())
    before = house.lines()
    reader = Ledger(house.store())
    assert reader.spent("a") and reader.quote(("a",), laplace(1)) and not reader.quote(("a",), laplace(10))
    reader._store.close()
    assert house.lines() == before


def test_sixteen_threads_and_two_stores_share_one_anchor(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WAIT", 300.0)  # on a slow disk fifteen others take their time
    ledgers = [house.ledger(every=5), house.ledger(every=5)]
    start = threading.Barrier(16)

    def work(index: int) -> None:
        start.wait()
        for _ in range(8):
            pay(ledgers[index % 2])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    for ledger in ledgers:
        ledger._store.close()
    report = house.report()
    assert report.ok, report
    assert report.receipts == 128 and report.checkpoints >= 128 // 16
    numbers = [line["number"] for line in house.lines()]
    assert numbers == sorted(set(numbers)) and max(b - a for a, b in pairwise(numbers)) < 25


def test_an_anchor_that_cannot_be_written_stops_the_next_write_not_this_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = house.ledger(every=3)
    whole = FileAnchor.add

    def full(*_: object) -> bool:
        raise LedgerError(anchors.UNUSABLE)

    monkeypatch.setattr(FileAnchor, "add", full)
    notes = []
    with pytest.raises(LedgerError, match="the anchor cannot be used"):
        for index in range(9):
            notes.append(pay(ledger, str(index)).note)
    assert notes == ["0", "1"]  # the one that was paid is told; nothing more is written after it
    with pytest.raises(LedgerError, match="the anchor cannot be used"):
        pay(ledger)
    monkeypatch.setattr(FileAnchor, "add", whole)
    pay(ledger)
    ledger._store.close()
    report = house.report()
    assert report.ok and report.receipts == 3


def test_a_writer_that_cannot_publish_its_token_writes_nothing_but_its_entry(house: House) -> None:
    outside = house.folder / "outside"
    outside.rename(house.folder / "away")
    store = house.store()
    for _ in range(3):
        with pytest.raises(LedgerError, match="the anchor cannot be used"):
            Ledger(store).open_account("a", Budget(epsilon=1))
    assert len(list(store.entries())) == 2
    (house.folder / "away").rename(outside)
    Ledger(house.store()).open_account("a", Budget(epsilon=1))  # another process: nobody has done more than enter
    Ledger(store).open_account("b", Budget(epsilon=1), reason="other people")
    assert house.report().ok


def test_a_line_cut_short_by_a_crash_is_mended(house: House) -> None:
    ledger = house.ledger()
    path = house.folder / "outside" / "anchor"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])
    assert house.anchor.last() == whole.rstrip(b"\n")
    assert not house.report().ok
    ledger._store.close()
    assert house.report().ok and path.read_bytes().startswith(whole) and len(house.lines()) == 2


def test_the_last_line_is_found_however_long_lines_are(tmp_path: Path) -> None:
    anchor = FileAnchor(tmp_path / "anchor")
    assert anchor.last() is None and anchor.mark() is None and list(anchor.lines()) == []
    after, marks = None, set()
    for size in (1, 4094, 4095, 4096, 4097, 9000, 0, 3):
        line = b"x" * size
        assert anchor.add(line, after) and anchor.last() == line
        assert not anchor.add(b"other", b"not the last")
        after = line
        marks.add(anchor.mark())
    assert len(marks) == 8 and len(list(anchor.lines())) == 8


def test_another_key_or_another_ledger_s_anchor_is_refused_at_once(house: House) -> None:
    house.ledger()._store.close()
    other = Key.make(house.folder / "other")
    with pytest.raises(LedgerError) as problem:
        house.store(key=other)
    assert str(problem.value) == anchors.STRANGE_KEY
    pay(house.ledger(key=other, trusted=(house.key.public,)))  # a new key, when the old one is known
    house.open[-1].close()
    plain = Ledger(SQLiteStore(house.folder / "second", create=True))
    plain.open_account("a", Budget(epsilon=1))
    plain._store.close()
    with pytest.raises(LedgerError) as problem:
        house.store("second", trusted=(other.public,))
    assert str(problem.value) == anchored.STRANGE


def test_a_ledger_born_with_an_anchor_is_not_written_without(house: House) -> None:
    pay(house.ledger())
    house.open[-1].close()
    plain = Ledger(SQLiteStore(house.folder / "ledger"))
    refused(plain, UNANCHORED)
    assert plain.spent("a")
    plain._store.close()
    (house.folder / "outside" / "anchor").unlink()
    ledger = Ledger(house.store())
    refused(ledger, anchored.MISSING)
    ledger.accept_restore("the anchor's disk is lost", ("officer", "owner"))
    pay(ledger)
    assert house.report().ok


def test_an_anchor_that_goes_back_while_we_look_is_refused(house: House) -> None:
    ledger = house.ledger(every=2)
    path = house.folder / "outside" / "anchor"
    first = path.read_bytes()
    for _ in range(4):
        pay(ledger)
    path.write_bytes(first)
    refused(ledger, anchored.MISSING)
    path.unlink()
    refused(ledger, anchored.MISSING)


# L9: an old backup


def test_l9_an_old_backup_is_refused_until_two_persons_accept_it(house: House) -> None:
    ledger = house.ledger()
    pay(ledger)
    house.copy("ledger", "backup")
    pay(ledger, "after the backup")
    ledger._store.close()
    house.copy("backup", "ledger")
    restored = house.ledger()
    refused(restored)
    assert not house.report().ok and house.report().first_bad == 5
    for principals in (("a",), ("a", "a"), ["a", "b"], ("a", ""), "ab", ("a", "b", "c"), ("a", 7)):
        with pytest.raises(ArgumentError):
            restored.accept_restore("the disk broke", principals)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        restored.accept_restore("", ("officer", "owner"))
    refused(restored)
    restored.accept_restore("the disk broke", ("officer", "owner"))
    pay(restored)
    with pytest.raises(LedgerError, match="nothing to accept"):
        restored.accept_restore("again", ("officer", "owner"))
    report = house.report()
    assert report.ok and "an older copy was accepted at entry 5" in str(report)
    assert house.lines()[-1]["restored"]


def test_l9_a_running_ledger_is_refused_once_another_copy_was_accepted(house: House) -> None:
    ledger = house.ledger()
    house.copy("ledger", "second")
    pay(ledger)
    ledger._store.close()
    running = house.ledger()
    pay(running)
    second = house.ledger("second")
    refused(second)
    second.accept_restore("it is the right one", ("officer", "owner"))
    pay(second)
    refused(running)
    assert house.report("second").ok and not house.report().ok


def test_l9_an_entry_after_the_last_checkpoint_is_the_window(house: House) -> None:
    """What anchored.py says remains: a cut behind the last checkpoint shows only once somebody entered or closed."""
    ledger = house.ledger()
    house.copy("ledger", "backup")
    pay(ledger)  # no checkpoint after it, as if the machine had died here
    house.copy("backup", "ledger2")
    assert house.report("ledger2").ok


def test_l9_a_store_that_shrinks_under_a_running_ledger_is_refused(tmp_path: Path) -> None:
    """As a database that is restored while its clients wait: also behind the last checkpoint."""
    for again in (0, 1, 2):
        store = MemoryStore()
        anchor = FileAnchor(tmp_path / f"anchor {again}")
        ledger = Ledger(AnchoredStore(store, anchor, Key.make(tmp_path / f"key {again}")))
        ledger.open_account("a", Budget(epsilon=9))
        for _ in range(2):
            pay(ledger)
        del store._kept.chain[-2:]
        with store.writing() as book:
            for _ in range(again):
                book.append(b"another")  # by somebody who knows nothing of the anchor
        refused(ledger)
        ledger.accept_restore("the disk broke", ("officer", "owner"))
        pay(ledger)


def test_a_checkpoint_can_be_asked_for(house: House) -> None:
    ledger = house.ledger()
    store = ledger._store
    assert isinstance(store, AnchoredStore)
    pay(ledger)
    store.checkpoint()
    store.checkpoint()
    assert [line["number"] for line in house.lines()] == [2, 4]


# L10: two copies


def test_l10_of_two_copies_only_the_last_that_entered_is_written(house: House) -> None:
    first = house.ledger()
    pay(first)
    house.copy("ledger", "second")
    for _ in range(3):
        pay(first)  # it is the longer one: length proves nothing
    second = house.ledger("second")
    pay(second)  # enters: publishes its token first
    refused(first)
    pay(second)
    third = house.ledger("ledger")
    refused(third)
    second._store.close()
    assert house.report("second").ok and not house.report().ok


def test_l10_a_copy_from_before_the_other_entered_is_refused_at_once(house: House) -> None:
    house.ledger()._store.close()
    house.copy("ledger", "second")
    first = house.ledger()
    pay(first)
    second = Ledger(house.store("second"))
    refused(second)
    pay(first)


def test_l10_a_process_copied_while_it_runs_is_told_apart_at_the_first_checkpoint(house: House) -> None:
    """Neither enters anew, as after a snapshot of a machine: the window is up to one checkpoint."""
    first = house.ledger(every=4)
    house.copy("ledger", "second")
    second = Ledger(house.store("second", every=4))
    store = second._store
    assert isinstance(store, AnchoredStore) and isinstance(first._store, AnchoredStore)
    store._entered, store._writer = True, first._store._writer
    done = 0
    with pytest.raises(LedgerError) as problem:
        for _ in range(9):
            pay(first, "first")
            pay(second, "second")
            done += 1
    assert str(problem.value) == anchored.STALE and done <= 4
    stopped, going = (first, second) if not first._store.continues else (second, first)
    refused(stopped)
    pay(going)


class LengthOnly(AnchoredStore):
    """A mutant: long enough is good enough."""

    def _judge(self, book: Any, seen: Any) -> None:
        if seen.checkpoint is not None and book.head.number < seen.checkpoint.number:
            raise LedgerError(anchored.STALE)
        self._seen = seen


@pytest.mark.parametrize("kind", [NeverLooks, LengthOnly])
def test_wrong_designs_let_a_second_copy_write(kind: type[AnchoredStore]) -> None:
    """By attack L10, which finds by itself that no token was published."""
    assert backups.two_copies(kind=kind).broken


def test_a_ledger_without_an_anchor_has_nothing_to_accept() -> None:
    with pytest.raises(LedgerError, match="neither an anchor nor a head"):
        Ledger(MemoryStore()).accept_restore("why", ("a", "b"))


def test_a_copied_folder_is_no_second_ledger(house: House) -> None:
    """The whole folder, live files and all."""
    ledger = house.ledger()
    pay(ledger)
    ledger._store.close()
    shutil.copy(house.folder / "ledger", house.folder / "copy")
    pay(house.ledger("copy"))
    refused(Ledger(house.store("ledger")))
