"""Reading entries and releases: what is told, to whom, in which order; and that nothing is guessed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from itertools import islice, pairwise
from typing import Any

import pytest

from sfumato import Budget, Unit, events, record
from sfumato import mechanisms as m
from sfumato.bounds import Count
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.policy import AccountRule, Policy
from sfumato.ledger.proof.birth import entry_bytes
from sfumato.ledger.proof.chain import GENESIS, Link
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import Released, history, releases
from sfumato.report.accounts.history import Place, places
from sfumato.report.accounts.variants import proven
from tests.helpers import laplace
from tests.ledger.stores import Stores, answered, held, pay

NASTY = "it's; DROP TABLE entries;--\"=1+1"


def _ledger(**accounts: Budget) -> Ledger:
    ledger = Ledger(MemoryStore())
    for name, budget in accounts.items():
        ledger.open_account(name, budget, reason="other people")
    return ledger


def _rows(ledger: Ledger, **asked: Any) -> list[Released]:
    return list(releases(ledger._store, **asked))


def test_entries_come_in_order_on_every_store(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    receipt = answered(ledger, laplace(Fraction(1, 10)), answer=b"42")
    found = list(history(ledger._store))
    assert [each.kind for each in found] == ["birth", "open account", "spend", "open", "settle"]
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert found[0].previous == GENESIS.hash.hex()
    assert [each.previous for each in found[1:]] == [each.hash for each in found[:-1]]
    assert found[2].accounts == ("a",) and found[3].receipt == found[4].receipt == receipt.id
    assert found[4].fields["answer"] == hashlib.sha256(b"42").hexdigest()
    assert all(each.time is not None and each.time.tzinfo is not None for each in found)
    assert json.loads(json.dumps(found[2].as_dict()))["fields"]["receipt"]["id"] == receipt.id
    assert "spend" in str(found[2]) and "a" in str(found[2])


def test_it_starts_where_it_is_asked_to() -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    answered(ledger, laplace(Fraction(1, 10)))
    whole = list(history(ledger._store))
    assert list(history(ledger._store, first=4)) == whole[3:]
    assert list(history(ledger._store, last=2)) == whole[:2]
    assert list(history(ledger._store, first=99)) == []
    with pytest.raises(ValueError, match="first"):
        list(history(ledger._store, first=0))


def test_an_entry_about_a_receipt_is_about_its_accounts_and_its_data() -> None:
    ledger = _ledger(a=Budget(epsilon=1), b=Budget(epsilon=1))
    answered(ledger, laplace(Fraction(1, 10)), "a", data="a@7")
    answered(ledger, laplace(Fraction(1, 10)), "b")
    kinds = ["open account", "spend", "open", "settle"]
    assert [each.kind for each in history(ledger._store, account="a")] == kinds
    assert [each.kind for each in history(ledger._store, account="b")] == kinds
    assert [each.kind for each in history(ledger._store, data="a")] == kinds[1:]
    assert [each.kind for each in history(ledger._store, data="a@7")] == kinds[1:]
    assert not list(history(ledger._store, data="a@1"))
    # the receipt was written before the first entry that is read
    assert [each.kind for each in history(ledger._store, account="a", first=5)] == ["open", "settle"]
    assert [each.number for each in history(ledger._store, account="b", kind="settle")] == [9]


def test_who_wrote_it() -> None:
    store = MemoryStore()
    Ledger(store, principal="ada").open_account("a", Budget(epsilon=1))
    pay(Ledger(store, principal="bob"), laplace(Fraction(1, 10)))
    assert [each.kind for each in history(store, by="bob")] == ["spend"]
    assert [row.actor for row in releases(store, by="bob")] == ["bob"]
    assert not list(releases(store, by="ada"))


def test_what_this_version_does_not_know_is_shown_as_it_is() -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    strange = [["kind", "moonshot"], ["by", "x"], ["at", "noon"], ["thing", {"is": "from-2099/1", "x": 1}]]
    with ledger._store.writing() as book:
        book.append(json.dumps({"is": "map", "items": strange}).encode())
        book.append(b"\xff not JSON")
        book.append(b'["a list"]')
    new, raw, other = list(history(ledger._store))[-3:]
    assert (new.kind, new.by, new.at, new.time) == ("moonshot", "x", "noon", None)
    assert new.fields["thing"] == {"is": "from-2099/1", "x": 1}
    assert raw.kind == other.kind == "unreadable"
    assert "not JSON" in raw.fields["raw"]
    for each in (new, raw, other):
        json.dumps(each.as_dict() if each is not new else [each.kind, str(each)])


def test_a_long_history_is_not_read_ahead() -> None:
    class Endless(MemoryStore):
        given = 0

        def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
            link = GENESIS
            while True:
                body = entry_bytes("note", "x", {})
                link = link.next(body)
                self.given += 1
                yield link, body

    store = Endless()
    assert len(list(islice(history(store), 5))) == 5
    assert store.given == 5


def test_addresses() -> None:
    assert places("a@1") == (Place("a", "1"),)
    assert places("a%40b@1#x,y&c@2") == (Place("a@b", "1", ("x", "y")), Place("c", "2"))
    assert places("of another make") == (Place("of another make", None),)


def test_a_release_has_every_field_that_its_entries_give(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1, delta=Fraction(1, 10**6))})
    plan = m.Gaussian(query=Count(unit=Unit()), epsilon=Fraction(1, 2), delta=Fraction(1, 10**8))
    receipt = ledger.spend(("a",), plan, data="a@1", grade="exact", note=NASTY, key="k")
    (row,) = _rows(ledger)
    assert row.state == "spent" and row.opened is None and row.answer is None
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"42")
    (row,) = _rows(ledger)
    spend = next(history(ledger._store, kind="spend"))
    assert (row.number, row.hash, row.previous, row.at) == (spend.number, spend.hash, spend.previous, spend.at)
    assert (row.id, row.data, row.places, row.purpose, row.key) == (receipt.id, "a@1", (Place("a", "1"),), NASTY, "k")
    assert (row.unit, row.neighbours) == (Unit(), "one row, present or absent")
    assert row.bounds == ({"of": "query", "kind": "count/1", "per_unit": 1},)
    assert row.plan_hash == plan.hash and row.plan == record.canonical(plan).decode()
    assert row.words == tuple(plan.explain())
    assert row.mechanism == "plan-gaussian/1"
    assert row.parameters == {"epsilon": "1/2", "delta": "1/100000000"}
    assert row.library is not None and row.library.startswith("sfumato ")
    assert row.grade == "exact" and row.randomness is not None and "AES" in row.randomness
    assert row.event == plan.event and (row.epsilon, row.delta) == (Fraction(1, 2), Fraction(1, 10**8))
    assert row.variant == "GDP" and row.native == {"mu^2": 1 / plan.event.multiplier**2}
    assert row.adaptivity == "filter, adaptively chosen" and row.role is None
    assert row.state == "answered" and row.answer == hashlib.sha256(b"42").hexdigest()
    assert row.opened is not None and row.settled is not None and row.opened <= row.settled
    before, after = row.before["a"], row.after["a"]
    assert before is not None and {gauge.spent for gauge in before} == {Fraction(0)}
    assert after == ledger.spent("a")
    prices = row.charged["a"]
    assert prices is not None and prices[0] == ("epsilon", Fraction(1, 2), Fraction(1, 10**8))
    json.dumps(row.as_dict(), allow_nan=False)


def test_totals_go_on_from_one_release_to_the_next() -> None:
    ledger = _ledger(a=Budget(epsilon=1, delta=Fraction(1, 10**6)), b=Budget(epsilon=2))
    for epsilon in (Fraction(1, 10), Fraction(1, 5), Fraction(1, 7)):
        pay(ledger, laplace(epsilon), "a", "b")
    rows = _rows(ledger)
    for old, new in pairwise(rows):
        assert old.after == new.before
    assert {name: rows[-1].after[name] for name in ("a", "b")} == {name: ledger.spent(name) for name in ("a", "b")}


def test_a_hold_is_one_row_with_the_sum_of_its_draws() -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    receipt = held(ledger, Budget(epsilon=Fraction(1, 2)))
    for _ in range(3):
        ledger.draw(receipt, events.Laplace(epsilon=Fraction(1, 10)), Fraction(0))
    pay(ledger, laplace(Fraction(1, 4)))
    (row,) = [each for each in _rows(ledger) if each.loop == "trusted loop"]
    assert (row.state, row.draws) == ("opened", 3)
    assert row.charged["a"] == (("epsilon", Fraction(3, 10), Fraction(0)),)
    assert row.after["a"] is not None and row.after["a"][0].spent == Fraction(3, 10)
    ledger.close(receipt)
    ledger.settle(receipt, "answered")
    first, last = _rows(ledger)
    assert first.loop == "trusted loop" and first.state == "answered" and first.answer is None
    assert last.after["a"] == ledger.spent("a")


def test_draws_of_releases_that_are_not_asked_for_count_in_the_totals() -> None:
    store = MemoryStore()
    Ledger(store, principal="ada").open_account("a", Budget(epsilon=1))
    ada, bob = Ledger(store, principal="ada"), Ledger(store, principal="bob")
    receipt = held(ada, Budget(epsilon=Fraction(1, 2)))
    ada.draw(receipt, events.Laplace(epsilon=Fraction(1, 10)), Fraction(0))
    pay(bob, laplace(Fraction(1, 5)))
    (row,) = releases(store, by="bob")
    assert row.before["a"] is not None and row.before["a"][0].spent == Fraction(1, 10)


def test_totals_are_not_guessed_after_an_entry_that_cannot_be_followed() -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    pay(ledger, laplace(Fraction(1, 10)))
    with ledger._store.writing() as book:
        book.append(entry_bytes("moonshot", "x", {"account": "a"}))
    pay(ledger, laplace(Fraction(1, 5)))
    first, second = _rows(ledger)
    assert first.after["a"] is not None
    assert second.before["a"] is None and second.after["a"] is None and second.charged["a"] is None
    assert second.epsilon == Fraction(1, 5)


def test_a_plan_that_cannot_be_built_again_has_its_json() -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    receipt = pay(ledger, laplace(Fraction(1, 10)))
    text = '{"is": "plan-from-2099/1", "epsilon": {"is": "exact", "value": "1/3"}}'
    newer = record.parse(record.canonical(receipt))
    with ledger._store.writing() as book:
        book.append(entry_bytes("spend", "x", {"receipt": newer, "delta": Fraction(0), "plan": text, "key": None}))
    row = _rows(ledger)[-1]
    assert row.words is None and row.plan == text
    assert row.mechanism == "plan-from-2099/1" and row.parameters == {"epsilon": "1/3"}


@pytest.mark.parametrize(
    ("event", "variant"),
    [
        (events.Laplace(epsilon=1), "pure"),
        (events.Repeat(events.Exponential(epsilon=1), 3), "pure"),
        (events.Approximate(epsilon=1, delta=Fraction(1, 10**6)), "approximate"),
        (events.Sequence((events.Gaussian(multiplier=1), events.Repeat(events.Gaussian(multiplier=2), 4))), "GDP"),
        (events.Sequence((events.Gaussian(multiplier=1), events.Laplace(epsilon=1))), "zCDP"),
        (events.DiscreteGaussian(variance=4), "zCDP"),
        (events.Poisson(events.Gaussian(multiplier=1), Fraction(1, 10)), "Renyi"),
    ],
)
def test_what_is_proven_of_an_event(event: events.Event, variant: str) -> None:
    found, native = proven(event)
    assert found == variant
    if variant == "GDP":
        assert native == {"mu^2": Fraction(2)}


def test_roles_are_those_of_the_policy_in_force_then() -> None:
    store = MemoryStore()
    people = {
        "olga": ("privacy officer",),
        "dora": ("data owner",),
        "pia": ("privacy officer",),
        "bert": ("budget administrator",),
        "ana": ("analyst",),
    }
    listed = (AccountRule(name="b", limit=Budget(epsilon=1)),)
    Ledger(store, principal="ana").open_account("a", Budget(epsilon=1))
    pay(Ledger(store, principal="pia"), laplace(Fraction(1, 10)))
    Ledger(store, principal="olga").adopt(Policy(people=people, accounts=listed, purpose=False), reason="start")
    first = next(releases(store))
    assert first.role is None
    Ledger(store, principal="bert").open_account("b", Budget(epsilon=1), reason="other people")
    Ledger(store, principal="ana").spend(("b",), laplace(Fraction(1, 10)), data="b@1", grade="exact", note="x")
    assert [row.role for row in releases(store)] == [None, "analyst"]


def test_no_more_rows_are_kept_than_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = _ledger(a=Budget(epsilon=1))
    spent = [pay(ledger, laplace(Fraction(1, 100))) for _ in range(6)]
    ledger.open(spent[0])
    ledger.settle(spent[0], "failed")
    module = import_module("sfumato.report.accounts.releases")
    assert [row.state for row in _rows(ledger)] == ["failed", *["spent"] * 5]
    monkeypatch.setattr(module, "_UNDER_WAY", 2)
    rows = _rows(ledger)
    assert [row.id for row in rows] == [receipt.id for receipt in spent]
    assert [row.state for row in rows] == ["failed", *["spent"] * 5]


def test_only_what_is_asked_for() -> None:
    ledger = _ledger(a=Budget(epsilon=1), b=Budget(epsilon=1))
    one, other = pay(ledger, laplace(Fraction(1, 10)), "a"), pay(ledger, laplace(Fraction(1, 10)), "b")
    assert [row.id for row in _rows(ledger, account="a")] == [one.id]
    assert [row.id for row in _rows(ledger, data="b")] == [other.id]
    assert [row.id for row in _rows(ledger, data="b@1")] == [other.id]
    assert _rows(ledger, data="c") == []
