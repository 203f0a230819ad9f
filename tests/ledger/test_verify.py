"""L5: whatever is changed in a ledger or its anchor is found, and the first bad entry is named."""

from __future__ import annotations

import ast
import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import sfumato
from sfumato import Budget, Unit, record, reserve
from sfumato.errors import LedgerError
from sfumato.events import Pure
from sfumato.ledger.__main__ import main
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.memory import MemoryLedger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.chain import GENESIS, Link
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.replay import RULES, replay
from sfumato.ledger.proof.verify import Report, verify
from sfumato.ledger.stores import digest
from sfumato.ledger.stores.base import Filed
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato_referee.attacks.ledger import beside, chain
from tests.helpers import laplace
from tests.ledger.stores import Stores

COUNT = laplace(0.25)
LAST = 18  # entries of the case below


def live(ledger: Ledger) -> None:
    """A little of everything that a ledger writes."""
    ledger.open_account("a", Budget(epsilon=3, delta=1e-6), reason="other people")
    ledger.open_account("b", Budget(epsilon=2), parent="a")
    paid = ledger.spend(("a", "b"), COUNT, data="a@1", grade="exact", note="", key="once")
    ledger.open(paid)
    ledger.settle(paid, "answered", b"[1,2,3]")
    lost = ledger.spend(("b",), laplace(0.5), data="b@1", grade="exact", note="")
    ledger.open(lost)
    ledger.settle(lost, "failed")
    ledger.unlock("b", "looked at it")
    long = ledger.hold(("b",), reserve(unit=Unit(), budget=Budget(epsilon=1)), data="b@1", grade="exact", note="")
    ledger.open(long)
    ledger.draw(long, Pure(epsilon=0.125, relation="add-remove"), COUNT.delta)
    ledger.spend(("a",), laplace(0.125), data="a@2", grade="exact", note="", key="never opened")
    ledger.open_account("c", Budget(epsilon=1), parent="b")
    ledger.register("view", same_as="a", reason="the same people")
    ledger.change_limit("c", Budget(epsilon=0.5), reason="less will do")


class Changed(MemoryStore):
    """A chain without its state."""

    def __init__(self, chain: list[tuple[Link, bytes]]) -> None:
        super().__init__()
        self._kept.chain = chain


class Case:
    """A small ledger in a file, closed, with its anchor; checkpoints at entries 2, 7, 12, 17 and the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.anchor_path = folder / "ledger", folder / "outside" / "anchor"

    def make(self) -> Case:
        with closing(sqlite3.connect(self.path)) as small:
            small.execute("PRAGMA page_size = 512")
            small.execute("VACUUM")
        self.anchor_path.parent.mkdir()
        key = Key.make(self.folder / "key")
        ledger = Ledger(AnchoredStore(SQLiteStore(self.path, create=True), FileAnchor(self.anchor_path), key, every=5))
        live(ledger)
        ledger._store.close()
        (self.folder / "public").write_text(key.public)
        return self

    def copy(self, folder: Path) -> Case:
        (folder / "outside").mkdir(parents=True, exist_ok=True)
        for name in ("ledger", "outside/anchor", "public"):
            shutil.copy(self.folder / name, folder / name)
        for end in ("-wal", "-shm"):
            (folder / f"ledger{end}").unlink(missing_ok=True)
        return Case(folder)

    @property
    def public(self) -> str:
        return (self.folder / "public").read_text()

    def run(self, *statements: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """As an administrator would, who takes the triggers away and puts them back."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            rows = [connection.execute(each, values).fetchall() for each in statements]
            for _, text in triggers:
                connection.execute(text)
        return rows[-1] if rows else []

    def verify(self, *, anchored: bool = True) -> Report:
        store = SQLiteStore(self.path, read_only=True)
        try:
            return verify(store, FileAnchor(self.anchor_path) if anchored else None, trusted=[self.public])
        finally:
            store.close()

    def entries(self) -> list[tuple[int, bytes, bytes]]:
        return self.run("SELECT number, hash, body FROM entries ORDER BY number")

    def rewrite(self, bodies: list[bytes]) -> None:
        """Another history, with hashes that fit."""
        link, rows = GENESIS, []
        for body in bodies:
            link = link.next(body)
            rows.append((*link, body))
        self.run("DELETE FROM entries")
        for row in rows:
            self.run("INSERT INTO entries VALUES (?, ?, ?)", values=row)

    def content(self) -> Any:
        """Everything that the file says."""
        return chain.content(self.path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("original")).make()


@pytest.fixture
def case(original: Case, tmp_path: Path) -> Case:
    return original.copy(tmp_path)


def test_an_untouched_ledger_holds(case: Case) -> None:
    report = case.verify()
    assert report.ok and report.first_bad is None, report
    assert (report.accounts, report.receipts, report.checkpoints) == (3, 4, 5) and report.head.number == LAST
    assert str(report).startswith("the ledger holds: 18 entries")
    assert case.verify(anchored=False).ok


# the chain


def test_every_byte_of_every_entry_and_hash_counts(case: Case) -> None:
    """At the level of rows, in memory: each byte of each body, and of each hash, in turn."""
    rows = [(Link(number, digest), body) for number, digest, body in case.entries()]

    assert verify(Changed(rows), state=False).ok
    for place, (link, body) in enumerate(rows):
        for at in range(len(body)):
            wrong = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            report = verify(Changed([*rows[:place], (link, wrong), *rows[place + 1 :]]), state=False)
            assert not report.ok and report.first_bad == link.number
        for at in range(32):
            wrong = link.hash[:at] + bytes([link.hash[at] ^ 128]) + link.hash[at + 1 :]
            report = verify(
                Changed([*rows[:place], (link._replace(hash=wrong), body), *rows[place + 1 :]]), state=False
            )
            assert report.first_bad == link.number


def test_an_entry_that_is_edited_is_named(case: Case) -> None:
    case.run(
        "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'answered', 'failed') AS BLOB) WHERE number = 7"
    )
    case.run("UPDATE entries SET body = CAST(CAST(body AS TEXT) || ' ' AS BLOB) WHERE number = 9")
    assert case.verify(anchored=False).first_bad == case.verify().first_bad == 7


@pytest.mark.parametrize("number", [1, 2, 8, 14])
def test_an_entry_that_is_deleted_is_named(case: Case, number: int) -> None:
    case.run("DELETE FROM entries WHERE number = ?", values=(number,))
    for anchored in (True, False):
        report = case.verify(anchored=anchored)
        assert report.first_bad == number and f"entry {number}: it is missing" in str(report)


def test_entries_that_changed_places_are_named(case: Case) -> None:
    for number, other in ((5, -6), (6, 5), (-6, 6)):
        case.run(f"UPDATE entries SET number = {other} WHERE number = {number}")
    assert case.verify(anchored=False).first_bad == 5


def test_bodies_that_changed_places_with_their_hashes_are_named(case: Case) -> None:
    """What a hash of the body alone would not see."""
    rows = {number: (digest, body) for number, digest, body in case.entries()}
    for number, other in ((9, 10), (10, 9)):
        case.run("UPDATE entries SET hash = ?, body = ? WHERE number = ?", values=(*rows[other], number))
    report = case.verify(anchored=False)
    assert report.first_bad == 9 and "does not continue the chain" in str(report)


@pytest.mark.parametrize("last", [False, True])
def test_an_entry_that_is_inserted_is_named(case: Case, last: bool) -> None:
    number, digest, body = case.entries()[-1 if last else 7]
    if last:
        case.run("INSERT INTO entries VALUES (?, ?, ?)", values=(number + 1, digest, body))
        assert case.verify(anchored=False).first_bad == number + 1
        return
    case.run("UPDATE entries SET number = -number WHERE number >= ?", values=(number,))
    case.run("UPDATE entries SET number = 1 - number WHERE number < 0")
    case.run("INSERT INTO entries VALUES (?, ?, ?)", values=(number, digest, body))
    assert case.verify(anchored=False).first_bad == number + 1


@pytest.mark.parametrize("gone", [1, 2, 5, LAST])
def test_an_end_that_is_cut_off_is_named(case: Case, gone: int) -> None:
    """With the state that belongs to the shorter chain: only the anchor tells."""
    bodies = [body for _, _, body in case.entries()][:-gone]
    store = SQLiteStore(case.path)
    try:
        state = replay(enumerate(bodies, 1))
        case.run("DELETE FROM accounts", "DELETE FROM receipts", "DELETE FROM facts")
        case.rewrite(bodies)
        anything = mock.patch.object(digest, "begun", lambda head, ends, rows: digest.Digest.of(head, rows))
        with anything, store.writing() as book:
            for account in state.accounts.values():
                book.put_account(account)
            for settled in state.receipts.values():
                answer = b"[1,2,3]" if settled.answer else None
                book.file(Filed(settled.receipt, settled.state, settled.key, answer))
            for (kind, name), value in state.facts.items():
                book.put_fact(kind, name, value)
    finally:
        store.close()
    assert case.verify(anchored=False).ok
    report = case.verify()
    assert report.first_bad == LAST + 1 - gone and "the end was cut off" in str(report)


def test_a_history_written_anew_is_found_between_two_checkpoints(case: Case) -> None:
    bodies = [body for _, _, body in case.entries()]
    bodies[9] = bodies[9].replace(b"failed", b"FAILED")
    case.rewrite(bodies)
    report = case.verify()
    assert report.first_bad == 8 and "written anew between entries 8 and 12" in str(report)


def test_an_end_that_is_missing_proves_nothing_of_what_is_before_it(case: Case) -> None:
    """Entry 13 left out, behind a good checkpoint, and the last one too: what is missing is the end."""
    bodies = [body for _, _, body in case.entries()]
    case.rewrite([*bodies[:12], *bodies[13:16]])
    with closing(SQLiteStore(case.path, read_only=True)) as store:
        report = verify(store, FileAnchor(case.anchor_path), trusted=[case.public], state=False)
    assert report.first_bad == 16 and "entries from 13 on are not proven either" in str(report)


# the state beside the chain


@pytest.mark.parametrize("name", beside.EDITS)
def test_a_state_that_is_not_what_the_entries_amount_to_is_found(case: Case, name: str) -> None:
    """Whatever attack L5 changes beside the entries, and no entry is named for it."""
    before = case.content()
    with closing(sqlite3.connect(case.path, isolation_level=None)) as administrator:
        beside.make(name, administrator)
    assert case.content() != before
    report = case.verify()
    assert not report.ok and report.first_bad is None, name


# the file and the anchor, byte by byte


@pytest.mark.parametrize("every", [67, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_byte_of_the_file_is_found_or_harmless(quick: Path, every: int) -> None:
    """As attack L5 flips them, on a ledger with more kinds of entries."""
    changed, unseen, others = chain.flip_bytes(chain.Spoilt(quick, verify, live), every, seed=2)
    harmless = sum(len(places) for places in others.values())
    assert changed > harmless and unseen == [] and set(others) <= set(chain.HARMLESS)


def test_every_flipped_byte_of_the_anchor_is_found(case: Case) -> None:
    whole = b"".join(case.anchor_path.read_bytes().splitlines(keepends=True)[:2])
    store = Changed([(Link(number, digest), body) for number, digest, body in case.entries()][:7])
    for at in range(len(whole)):
        case.anchor_path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        report = verify(store, FileAnchor(case.anchor_path), trusted=[case.public], state=False)
        line = whole[:at].count(b"\n") + 1
        assert not report.ok and f"line {line} of the anchor" in str(report)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: lines[:1] + lines[2:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], lines[0], *lines[1:]],
        lambda lines: [],
    ],
    ids=["first gone", "one gone", "moved", "twice", "twice at first", "empty"],
)
def test_lines_of_the_anchor_that_are_lost_or_moved_are_found(
    case: Case, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    case.anchor_path.write_bytes(b"".join(change(case.anchor_path.read_bytes().splitlines(keepends=True))))
    report = case.verify()
    assert not report.ok and "anchor" in str(report)


def test_another_key_is_found_and_an_unknown_one_is_told(case: Case, tmp_path: Path) -> None:
    other = Key.make(tmp_path / "other")
    store = SQLiteStore(case.path)
    try:
        anchor = FileAnchor(case.anchor_path)
        assert "signed with another key" in str(verify(store, anchor, trusted=[other.public]))
        trusting = verify(store, anchor)
        assert trusting.ok and f"signed with {case.public}" in str(trusting)
    finally:
        store.close()


def test_another_ledger_s_anchor_is_found(case: Case, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    second = Case(tmp_path / "second").make()
    store = SQLiteStore(case.path)
    try:
        assert not verify(store, FileAnchor(second.anchor_path), trusted=[second.public]).ok
    finally:
        store.close()


# the replay


def test_the_replay_gives_what_is_stored_and_names_what_cannot_be() -> None:
    ledger = MemoryLedger({"z": Budget(epsilon=1)})
    live(ledger)
    assert verify(ledger._store).ok
    bodies = [body for _, body in ledger._store.entries()]
    whole = replay(enumerate(bodies, 1))
    assert whole.wrong is None and whole.number == len(bodies)
    half = replay(enumerate(bodies[:9], 1))
    assert replay(enumerate(bodies[9:], 10), half) == whole
    for place, body in enumerate(bodies):
        kind = record.parse(body)["kind"]
        again = replay(enumerate([*bodies[: place + 1], body], 1)).wrong
        if kind not in ("unlock", "draw", "close", "register", "limit"):
            assert again is not None and again.number == place + 2, kind
    for strange in (b"", b"{}", b"[]", b"7", record.canonical({"kind": "gift", "by": "x", "at": ""})):
        wrong = replay([*enumerate(bodies[:3], 1), (4, strange)]).wrong
        assert wrong is not None and wrong.number == 4


def test_a_spend_beyond_the_budget_is_named_however_it_came_into_the_chain() -> None:
    """A ledger whose filter lets everything pass: the chain holds, and the replay does not."""
    rich, poor = MemoryLedger({"a": Budget(epsilon=2)}), MemoryLedger({"a": Budget(epsilon=1)})
    for _ in range(2):
        rich.spend(("a",), laplace(1), data="a@1", grade="exact", note="")
    store = poor._store
    with store.writing() as book:
        for _, body in list(rich._store.entries())[2:]:
            book.append(body)
    report = verify(store)
    assert report.first_bad == 4 and "does not fit" in str(report)


def test_every_kind_of_entry_has_a_rule() -> None:
    """A new kind of entry that the ledger writes needs a rule (replay.RULES)."""
    written = set()
    folder = Path(sfumato.__file__).parent / "ledger"
    for path in (*folder.glob("*.py"), *(folder / "proof").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                place = {"write": 1, "entry_bytes": 0}.get(name)
                if place is not None and len(node.args) > place and isinstance(node.args[place], ast.Constant):
                    written.add(node.args[place].value)
    assert {"birth", "writer", "spend", "settle"} <= written and written == set(RULES)


# wrong designs


def _of_the_body(self: Link, body: bytes) -> Link:
    return Link(self.number + 1, hashlib.sha256(body).digest())


def test_a_hash_of_the_body_alone_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["sfumato.ledger.proof.verify"]
    monkeypatch.setattr(Link, "next", _of_the_body)
    monkeypatch.setattr(module, "_digest", lambda before, number, body: hashlib.sha256(body).digest())
    made = Case(tmp_path).make()
    assert made.verify().ok
    with pytest.raises(AssertionError):
        test_bodies_that_changed_places_with_their_hashes_are_named(made)


@pytest.mark.parametrize(
    ("name", "instead", "caught"),
    [
        ("against", lambda *_, **__: (), lambda case: test_an_end_that_is_cut_off_is_named(case, 2)),
        ("against", lambda *_, **__: (), test_a_history_written_anew_is_found_between_two_checkpoints),
        ("_damage", lambda store: None, lambda case: _edited(case, "no triggers")),
        ("_state", lambda book, found, head: (), lambda case: _edited(case, "refunded")),
        ("_state", lambda book, found, head: (), lambda case: _edited(case, "answer")),
        ("_digest", lambda before, number, body: b"", test_an_untouched_ledger_holds),
    ],
)
def test_a_verify_that_looks_away_is_caught(
    case: Case, monkeypatch: pytest.MonkeyPatch, name: str, instead: Any, caught: Callable[[Case], None]
) -> None:
    monkeypatch.setattr(sys.modules["sfumato.ledger.proof.verify"], name, instead)
    with pytest.raises(AssertionError):
        caught(case)


def _edited(case: Case, name: str) -> None:
    test_a_state_that_is_not_what_the_entries_amount_to_is_found(case, name)


# the command


def test_the_command_tells_by_its_exit_code(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["verify", str(case.path), "--anchor", str(case.anchor_path), "--key", case.public]
    command = [sys.executable, "-m", "sfumato.ledger", *given]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("the ledger holds")
    assert main(["verify", str(case.path.with_name("none"))]) == 2
    assert capsys.readouterr().err.startswith("the ledger could not be checked: there is no ledger at that path")
    with pytest.raises(SystemExit) as ended:
        main(["sing"])
    assert ended.value.code == 2
    case.run(f"DELETE FROM entries WHERE number = {LAST}")
    assert main(given) == 1
    assert f"entry {LAST}: it is missing" in capsys.readouterr().out


# every store


def test_every_store_is_verified_and_anchored_alike(all_stores: Stores, tmp_path: Path) -> None:
    key, anchor = Key.make(tmp_path / "key"), FileAnchor(tmp_path / "anchor")
    store = AnchoredStore(all_stores.new(), anchor, key, every=5)
    live(Ledger(store))
    report = verify(store, anchor, trusted=[key.public])
    assert report.ok and (report.head.number, report.receipts, report.checkpoints) == (LAST, 4, 4), report
    with pytest.raises(LedgerError):
        Ledger(all_stores.new()).accept_restore("why", ("a", "b"))
    with store.writing() as book:
        account = book.account("b")
        assert account is not None
        book.put_account(replace(account, failures=7))
    assert "the stored state of account 'b'" in str(verify(store, anchor, trusted=[key.public]))
