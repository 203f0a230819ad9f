"""Parts that no ledger would have handed out, in a chain that holds: `verify` names the entry."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, events, record, sequence
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import BY_PATIENT, laplace
from tests.ledger.offices import Office, governed
from tests.ledger.stores import ROW
from tests.ledger.test_prepaying import FOUR, LIST, ONE, TWO, prepay, take
from tests.ledger.test_replay_rules import Edit, Entry, chained, found_wrong, free, put, receipt, small

OTHER = laplace(Fraction(1, 7))


def text(plan: Any) -> str:
    return record.canonical(plan).decode()


def lived(office: Office) -> list[Entry]:
    """A list is paid by a team, and two of its parts are taken and answered."""
    ana = office["ana"]
    prepay(ana, LIST, "team", data="visits@1")
    for plan in (ONE, TWO):
        part = take(ana, plan, "team", data="visits@1")
        ana.open(part)
        ana.settle(part, "answered", b"1")
    office.check()
    return office.entries()


def last(entries: list[Entry], kind: str) -> int:
    return max(n for n, entry in enumerate(entries) if entry["kind"] == kind)


def as_plan(plan: Any) -> Edit:
    """The part of another plan, consistent in itself."""
    return lambda e: {
        **e,
        "plan": text(plan),
        "delta": plan.delta,
        "receipt": replace(e["receipt"], plan_hash=plan.hash, event=plan.event),
    }


FORGED: dict[str, tuple[str, Edit, str]] = {
    "a plan that is not in the list": ("part", as_plan(OTHER), "not a part of the list"),
    "the list as its own part": ("part", as_plan(LIST), "not a part of the list"),
    "a plan that was taken before": ("part", as_plan(ONE), "taken before"),
    "only the plan's text": ("part", put(plan=text(FOUR)), "not the one that was paid for"),
    "only the plan's hash": ("part", receipt(plan_hash=FOUR.hash), "not the one that was paid for"),
    "another event": ("part", receipt(event=events.Laplace(epsilon=Fraction(1, 99))), "event is not that of the part"),
    "another delta": ("part", put(delta=Fraction(1, 100)), "event is not that of its plan"),
    "another version of the data": ("part", receipt(data="visits@2"), "differs in its data"),
    "other data": ("part", receipt(data="labs@1"), "does not charge the accounts of the data"),
    "another unit": ("part", receipt(unit=BY_PATIENT), "does not charge the accounts of the data"),
    "other noise": ("part", receipt(grade="float"), "differs in its grade"),
    "fewer accounts": ("part", receipt(accounts=("visits", "org")), "differs in its accounts"),
    "another team": ("part", receipt(accounts=("mate", "visits", "org")), "differs in its accounts"),
    "nobody": ("part", receipt(accounts=()), "names who pays"),
    "called a plan": ("part", receipt(loop="plan"), "pays for no list"),
    "called a list": ("part", receipt(loop="parts"), "pays for no list"),
    "of no receipt": ("part", put(of="0" * 32), "never written"),
    "the list is said to be a plan": ("spend", receipt(loop="plan"), ""),
    "the list is said to be a part": ("spend", receipt(loop="part"), "paid whole, or as a list"),
    "a list with other parts": ("spend", put(plan=text(sequence(one=OTHER, two=TWO, four=FOUR))), "not the one that"),
    "a list that is none": ("spend", lambda e: {**as_plan(OTHER)(e)}, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("make", [free, lambda: small(governed())], ids=["free", "policy"])
def test_a_forged_part_is_named(make: Callable[[], Office], what: str) -> None:
    entries = lived(make())
    kind, edit, words = FORGED[what]
    at = last(entries, kind)
    changed = edit(dict(entries[at]))
    assert changed is not None
    report = chained([*entries[:at], changed, *entries[at + 1 :]])
    # a list that is called a plan is a spend like any other: then its first part is the wrong entry
    number = at + 1 if what != "the list is said to be a plan" else last(entries[:-3], "part") + 1
    assert report.first_bad == number and words in found_wrong(report, number), report


def test_a_list_is_never_opened_or_settled() -> None:
    office = free()
    entries = lived(office)
    paid = entries[last(entries, "spend")]["receipt"].id
    for kind, more in (("open", {}), ("settle", {"outcome": "failed"}), ("settle", {"outcome": "answered"})):
        forged = {**entries[last(entries, kind)], "receipt": paid, **more}
        assert "opens nothing itself" in found_wrong(chained([*entries, forged]), len(entries) + 1)


def test_a_part_that_is_taken_twice_is_named() -> None:
    entries = lived(free())
    again = {**entries[last(entries, "part")]}
    assert "written once" in found_wrong(chained([*entries, again]), len(entries) + 1)
    fresh = {**again, "receipt": replace(again["receipt"], id="1" * 32)}
    assert "taken before" in found_wrong(chained([*entries, fresh]), len(entries) + 1)


def test_a_part_before_its_list_is_named() -> None:
    entries = lived(free())
    at, part = last(entries, "spend"), entries[last(entries, "part")]
    assert "never written" in found_wrong(chained([*entries[:at], part, *entries[at:]]), at + 1)


def test_a_part_on_a_closed_account_is_named() -> None:
    office = free()
    lived(office)
    office["adam"].close_account("team", reason="over")
    entries = office.entries()
    forged = {**entries[last(entries, "part")]}
    forged = as_plan(FOUR)({**forged, "receipt": replace(forged["receipt"], id="1" * 32)}) or {}
    assert "account that is closed" in found_wrong(chained([*entries, forged]), len(entries) + 1)


def test_a_part_taken_by_who_may_not_spend_is_named() -> None:
    entries = lived(small(governed()))
    at = last(entries, "part")
    for who, words in (("rita", "not allowed"), ("adam", "not allowed"), ("nobody", "not allowed")):
        report = chained([*entries[:at], {**entries[at], "by": who}, *entries[at + 1 :]])
        assert words in found_wrong(report, at + 1)


def test_a_part_after_the_data_s_accounts_grew_is_named() -> None:
    office = free()
    lived(office)
    office["adam"].open_account("people", Budget(epsilon=1), reason="the same people", unit=ROW)
    office["dora"].register("visits", accounts=("people",), reason="they are counted there too")
    entries = office.entries()
    forged = {**entries[last(entries, "part")]}
    forged = as_plan(FOUR)({**forged, "receipt": replace(forged["receipt"], id="1" * 32)}) or {}
    assert "does not charge the accounts" in found_wrong(chained([*entries, forged]), len(entries) + 1)


@pytest.mark.parametrize("body", ["[]", "7", "[" * 10**5, '{"is":"plan-sequence/1"}', '{"is":["x"]}'])
def test_nonsense_for_a_list_is_named(body: str) -> None:
    import hashlib

    entries = lived(free())
    at = last(entries, "spend")
    digest = hashlib.sha256(body.encode()).hexdigest()
    changed = {**entries[at], "plan": body, "receipt": replace(entries[at]["receipt"], plan_hash=digest)}
    assert chained([*entries[:at], changed]).first_bad == at + 1


def test_what_waits_is_compared_with_what_is_stored(tmp_path: Path) -> None:
    """Whoever puts a part back into the list, or takes one out, is found; the chain itself is whole."""
    place = tmp_path / "ledger"
    ledger = Ledger(SQLiteStore(place, create=True))
    ledger.open_account("a", Budget(epsilon=5))
    paid = prepay(ledger)
    take(ledger, ONE)
    ledger.shut()
    connection = sqlite3.connect(place)
    names = dict(connection.execute("SELECT name, state FROM facts WHERE kind = 'part'").fetchall())
    assert len(names) == 4 and names[""] == b"2"
    gone = next(name for name, state in names.items() if state == b"[]")
    for name, state in ((gone, json.dumps([paid.id]).encode()), ("", b"3"), (gone, json.dumps(["0" * 32]).encode())):
        connection.execute("UPDATE facts SET state = ? WHERE kind = 'part' AND name = ?", (state, name))
        connection.commit()
        store = SQLiteStore(place)
        assert "is not what the entries amount to" in str(verify(store))
        store.close()
        connection.execute("UPDATE facts SET state = ? WHERE kind = 'part' AND name = ?", (names[name], name))
        connection.commit()
    connection.execute("INSERT INTO facts VALUES ('part', 'x', ?)", (json.dumps([paid.id]).encode(),))
    connection.commit()
    connection.close()
    store = SQLiteStore(place)
    assert not verify(store).ok
    store.close()


def test_ledgers_without_lists_have_no_such_facts() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1))
    take(ledger, ONE)
    with ledger._store.reading() as book:
        assert book.facts("part") == {}
    assert ledger.verify().ok
