"""Ledgers that earlier versions wrote: today's opens them, and nothing that was spent comes free (L14).

They lie beside attack L14, one for each version of the schema and for each time that entries came to say more;
golden/make.py wrote them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Curator, questions, record
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
from sfumato.report import account_report
from sfumato.report.accounts.releases import releases
from sfumato_referee.attacks.ledger.migrating import FILES, GOLDEN, lost, told
from tests.helpers import laplace
from tests.ledger.golden import clinic
from tests.ledger.golden.make import TODAY, life, stated
from tests.ledger.stores import login, new_database, run, server
from tests.report.reading import document

VERSIONS = sorted(path.name for path in GOLDEN.glob("schema-*"))
STATED = ("schema-2-stated",)  # whose entries hold what plans say of themselves
MORE = Fraction(1, 1000)  # so little that no member of an account is closed by it
NEWER = "written by a newer version of sfumato"
TABLE = "CREATE TABLE {}remarks (entry bigint PRIMARY KEY, remark text NOT NULL);"
FORGETS = "UPDATE accounts SET totals = (SELECT totals FROM accounts WHERE name = 'old') WHERE name = 'ana''s';"
FAILS = "CREATE TABLE half (n INTEGER); INSERT INTO nowhere VALUES (1);"


class Golden:
    """A copy of one of them."""

    def __init__(self, version: str, folder: Path) -> None:
        self.name, self._from, self._folder = version, GOLDEN / version, folder
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
    schemas = [f"schema-{number + 1}" for number in range(len(migrations("sqlite")))]
    assert sorted({*schemas, *STATED}) == VERSIONS and TODAY in STATED
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


def test_what_is_read_of_its_releases_stays(golden: Golden) -> None:
    """Their questions, bounds and words: stored in entries, or read from the plans of those that have none."""
    with golden.store() as store:
        readings, entries = stated(store), [record.parse(body, dict) for _, body in store.entries()]
        plans = [entry for entry in entries if "plan" in entry]
        assert len(readings) == len(plans) > 0
        texts = {"question", "limits", "afterwards"}
        assert {len(texts & set(entry)) for entry in plans} == {3 if golden.name in STATED else 0}
        counts = Counter(question for _, question, _, _ in readings)
        assert counts[questions.digest(laplace(1).asks())] > 5  # one question, at many prices
        assert golden.told.get("stated", readings) == readings
        with Ledger(store) as ledger:
            for account in golden.told["spent"]:
                assert document(account_report(ledger, account))["releases"] is not None
            assert ledger.export(golden.path.with_name("releases.ndjson"), price=False).rows == len(plans)


@pytest.fixture(params=STATED)
def stated_golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(request.param, tmp_path)


def test_a_query_of_before_is_answered_again_for_free(stated_golden: Golden, tmp_path: Path) -> None:
    key = Key.make(tmp_path / "key")
    with stated_golden.store() as place:
        store = AnchoredStore(place, stated_golden.anchor, key, principal="ana", trusted=(stated_golden.public,))
        curator, before = Curator(clinic.clinic(), Ledger(store, principal="ana")), told(place)
        answers = [curator.release(plan) for plan in clinic.asked()]
        assert told(place) == before
        paid = {row.id: row for row in releases(store, data="clinic", price=False)}
        for answer in answers:
            assert answer.receipt is not None and answer.value
            assert paid.pop(answer.receipt.id).plan_hash == answer.plan.hash
        assert not paid
        curator.release(clinic.tidy(Fraction(1, 5)), note="one more")  # another price is another release
        assert told(place)["spent"]["clinic"] != before["spent"]["clinic"]


def test_a_question_of_before_is_known_again_and_told_in_its_own_words(stated_golden: Golden) -> None:
    with stated_golden.store() as store:
        rows = sorted((row for row in releases(store) if row.data == "clinic@1"), key=lambda row: row.number)
        for row, plan in zip(rows, clinic.asked(), strict=True):
            assert row.question == questions.digest(plan.asks())
            assert (row.bounds, row.afterwards) == (plan.contribution_bounds(), plan.afterwards())
        first, tidied, again = rows
        assert first.question == again.question == questions.digest(clinic.query(2).asks()) != tidied.question
        report = document(account_report(Ledger(store), "clinic"))
        checklist = {line["field"]: line["account"] for line in report["checklist"]["fields"]}
        for step in (
            "ORDER BY and LIMIT",
            "below 0 raised to 0 (2)",
            "limits are estimated to take",
            "made non-negative",
        ):
            assert step in checklist["post-processing"]
        assert "cost, where it is added up or ranked, is clamped to 0 ... 100" in checklist["contribution bounds"]
        assert "one patient counts in full up to 4 row(s) over all groups" in checklist["contribution bounds"]


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
