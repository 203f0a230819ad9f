"""Ledgers that earlier versions wrote: today's opens them, and nothing that was spent comes free (L14).

They lie beside attack L14, in schema-N, one for each version of the schema; golden/make.py wrote them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import Report, verify
from sfumato.ledger.stores import postgres, sqlite
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.schema import migrations
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato_referee.attacks.ledger.migrating import FILES, GOLDEN, lost, told
from tests.helpers import laplace
from tests.ledger.golden.make import life
from tests.ledger.stores import login, new_database, run, server

VERSIONS = sorted(path.name for path in GOLDEN.glob("schema-*"))
MORE = Fraction(1, 1000)  # so little that no member of an account is closed by it
NEWER = "written by a newer version of sfumato"
TABLE = "CREATE TABLE {}remarks (entry bigint PRIMARY KEY, remark text NOT NULL);"
FORGETS = "UPDATE accounts SET totals = (SELECT totals FROM accounts WHERE name = 'old') WHERE name = 'ana''s';"
FAILS = "CREATE TABLE half (n INTEGER); INSERT INTO nowhere VALUES (1);"


class Golden:
    """A copy of one of them."""

    def __init__(self, version: str, folder: Path) -> None:
        self._from, self._folder = GOLDEN / version, folder
        (folder / "outside").mkdir()
        self.path = folder / "ledger"
        shutil.copyfile(self._from / "ledger", self.path)
        shutil.copyfile(self._from / "anchor", folder / "outside" / "anchor")
        self.anchor = FileAnchor(folder / "outside" / "anchor")
        self.public = (self._from / "public").read_text(encoding="utf-8").strip()
        self.told: dict[str, Any] = json.loads((self._from / "told.json").read_text(encoding="utf-8"))

    @contextmanager
    def store(self, **how: Any) -> Iterator[SQLiteStore]:
        store = SQLiteStore(self.path, **how)
        try:
            yield store
        finally:
            store.close()

    def report(self, store: Store, *keys: str) -> Report:
        return verify(store, self.anchor, trusted=[self.public, *keys])

    def version(self) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(request.param, tmp_path)


def no_less(now: dict[str, Any], before: dict[str, Any]) -> None:
    """No account has spent less, in any currency, or was lost."""
    assert lost(now, before) == []


def test_there_is_one_of_each_version() -> None:
    assert [f"schema-{number + 1}" for number in range(len(migrations("sqlite")))] == VERSIONS
    for version in VERSIONS:
        assert sorted(path.name for path in (GOLDEN / version).iterdir()) == sorted(FILES)


def test_it_opens_and_holds(golden: Golden) -> None:
    with golden.store() as store:
        report = golden.report(store)
        assert report.ok and report.head.number == golden.told["entries"], report
        now = told(store)
        no_less(now, golden.told)
        assert now["kinds"] == golden.told["kinds"]
    with golden.store(read_only=True) as store:
        assert golden.report(store).ok


def test_one_more_spend_is_paid_on_top(golden: Golden, tmp_path: Path) -> None:
    key = Key.make(tmp_path / "key")
    with golden.store() as place:
        store = AnchoredStore(place, golden.anchor, key, principal="ana", trusted=(golden.public,))
        ledger = Ledger(store, principal="ana")
        receipt = ledger.spend(("ana's",), laplace(MORE), data="visits@2", grade="exact", note="one more")
        ledger.open(receipt)
        ledger.settle(receipt, "answered", b"[7]")
        store.checkpoint()
        now = told(store)
        no_less(now, golden.told)
        for account in ("ana's", "north", "visits"):
            before, after = (Fraction(each["spent"][account]["epsilon"]) for each in (golden.told, now))
            assert after == before + MORE
        report = golden.report(place, key.public)
        assert report.ok, report


def test_what_was_answered_before_is_answered_again(golden: Golden) -> None:
    """Stored answers and keys are found by what an earlier version wrote."""
    plan = laplace(Fraction(1, 4))
    with golden.store() as store:
        paid = Ledger(store, principal="ana").paid("first", ("ana's",), plan, data="visits@1")
        assert paid is not None and paid[1] == b"[1,2,3]"
        found = Ledger(store, principal="ana").answer(("ana's",), plan.hash, "visits@1")
        assert found == paid


def _upgraded(monkeypatch: pytest.MonkeyPatch, kind: str, step: str) -> int:
    """From now on there is one more migration; the version it leads to."""
    steps = (*migrations(kind), step)
    monkeypatch.setattr({"sqlite": sqlite, "postgres": postgres}[kind], "migrations", lambda _: steps)
    return len(steps)


def test_an_upgrade_in_place_keeps_what_was_spent(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    _upgrade(golden, monkeypatch, TABLE.format("").replace("bigint", "INTEGER"))


def _upgrade(golden: Golden, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with golden.store():
        """Today's version."""
    today = golden.version()
    number = _upgraded(monkeypatch, "sqlite", step)
    with pytest.raises(LedgerError, match="older version"), golden.store(read_only=True):
        """Who may not write upgrades nothing."""
    assert golden.version() == today
    for _ in range(2):  # the second time there is nothing left to do
        with golden.store() as store:
            no_less(told(store), golden.told)
            report = golden.report(store)
            assert report.ok, report
        assert golden.version() == number == today + 1
    monkeypatch.undo()
    kept = golden.path.read_bytes()
    for how in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(LedgerError, match=NEWER), golden.store(**how):
            """Not by today's version, which does not know what was added."""
    assert golden.path.read_bytes() == kept


def test_an_upgrade_that_forgets_is_caught(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="ana's has forgotten epsilon"):
        _upgrade(golden, monkeypatch, FORGETS)


def test_an_upgrade_that_fails_changes_nothing(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    with golden.store() as store:
        before, version = told(store), golden.version()
    _upgraded(monkeypatch, "sqlite", FAILS)
    with pytest.raises(LedgerError), golden.store():
        """Half of it was done."""
    monkeypatch.undo()
    assert golden.version() == version
    with golden.store() as store:
        assert told(store) == before
        assert golden.report(store).ok


def test_an_upgrade_on_a_server_keeps_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    server()
    place = new_database()
    desks: dict[str, Ledger] = {}

    def desk(who: str) -> Ledger:
        if who not in desks:
            desks[who] = Ledger(PostgresStore(login(place, who, "sfumato_writer")))
        return desks[who]

    life(desk)
    before = told(desk("ana")._store)
    for each in desks.values():
        each.shut()
    desks.clear()
    number = _upgraded(monkeypatch, "postgres", TABLE.format("sfumato."))
    monkeypatch.setattr(postgres, "difference", lambda lines: None)  # its list is that of today's tables
    with Ledger(PostgresStore(place)) as ledger:
        assert told(ledger._store) == before
        assert ledger.verify().ok
        assert run(place, "SELECT max(number) FROM sfumato.migrations") == [(number,)]
    with desk("ana") as ana:
        ana.spend(("ana's",), laplace(MORE), data="visits@2", grade="exact", note="one more")
        now = told(ana._store)
        no_less(now, before)
        spent = [Fraction(each["spent"]["ana's"]["epsilon"]) for each in (before, now)]
        assert spent[1] == spent[0] + MORE
        assert ana.verify().ok
    monkeypatch.undo()
    with pytest.raises(LedgerError, match=NEWER):
        PostgresStore(place)
