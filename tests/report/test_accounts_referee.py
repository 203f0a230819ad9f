"""Readings against brute force: what a forecast says is really accepted, totals are those of a replay, and no more is
told than the entries say."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Unit, events, record, reserve, sequence
from sfumato import mechanisms as m
from sfumato.bounds import Count
from sfumato.errors import BudgetError, PolicyError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.policy import AccountRule, Band
from sfumato.ledger.proof.chain import Link
from sfumato.ledger.proof.replay import replay
from sfumato.ledger.proof.state import State
from sfumato.ledger.stores.memory import MemoryStore, Pages
from sfumato.plan import Gauge, Plan, Receipt
from sfumato.report.accounts import About, checklist, declared, export, forecast, history, registry, releases, statement
from sfumato.report.accounts.export import from_cell
from sfumato.report.accounts.statement import digits_above
from tests.helpers import laplace
from tests.ledger.offices import ask, governed
from tests.ledger.stores import answered, pay

DELTA = Fraction(1, 10**6)
PLANS: list[Plan[Any, Any]] = [
    laplace(Fraction(1, 10)),
    laplace(Fraction(1, 7)),
    m.Gaussian(query=Count(unit=Unit()), epsilon=Fraction(1, 4), delta=Fraction(1, 10**8)),
    m.Gaussian(query=Count(unit=Unit()), multiplier=Fraction(20)),
]
WAYS = [  # who pays, on which data
    (("visits",), "visits@1#jan"),
    (("team",), "visits@1#jan,feb"),
    (("project",), "visits@2#feb"),
    (("other",), "copy@1#jan"),
]


class Once(MemoryStore):
    """Counts how often the chain is begun to be read."""

    reads = 0

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        self.reads += 1
        return super().entries(first)


def _copied(store: MemoryStore) -> MemoryStore:
    other = MemoryStore()
    kept = {each.name: getattr(store._kept, each.name).copy() for each in fields(Pages)}
    other._kept = Pages(**kept | {"plans": {}})
    return other


def _really(store: MemoryStore, who: str, accounts: tuple[str, ...], plan: Plan[Any, Any], data: str) -> int:
    """One by one, until one is refused."""
    ledger, count = Ledger(_copied(store), principal=who), 0
    while count < 500:
        try:
            receipt = ledger.spend(accounts, plan, data=data, grade="exact", note="x")
        except SfumatoError:
            return count
        count += receipt.loop == "plan"  # what is prepaid comes on top
    return count


def _tree(budget: Budget) -> Ledger:
    ledger = Ledger(MemoryStore())
    ledger.open_account("org", replace(budget, epsilon=6), level="organisation")
    ledger.open_account("visits", replace(budget, epsilon=4), parent="org", level="data set")
    for block in ("jan", "feb"):
        ledger.open_block("visits", block, replace(budget, epsilon=2))
    ledger.open_account("teams", None, parent="visits")
    ledger.open_account("team", replace(budget, epsilon=2), parent="teams", level="team")
    ledger.open_account("other", replace(budget, epsilon=1), parent="teams", level="team")
    ledger.open_account("project", replace(budget, epsilon=1), parent="team", level="project")
    ledger.register("copy", same_as="visits", reason="a view")
    return ledger


def _lived(ledger: Ledger, seed: int, steps: int) -> Ledger:
    """Anything that may happen; what is refused changes nothing."""
    chance, holds = random.Random(seed), list[Receipt]()
    for _ in range(steps):
        do = chance.choice(
            ["spend"] * 6
            + ["prepay", "prepay", "hold", "draw", "draw", "close", "limit", "move", "fail", "shut", "unlock"]
        )
        (accounts, data), plan = chance.choice(WAYS), chance.choice(PLANS)
        name = chance.choice(["org", "visits", "team", "other", "project", "visits#jan"])
        try:
            if do == "spend":
                receipt = ledger.spend(accounts, plan, data=data, grade="exact", note="")
                if chance.random() < 0.7:
                    ledger.open(receipt)
                    ledger.settle(receipt, "answered", b"1")
            elif do == "prepay":
                pair = sequence(a=plan, b=laplace(Fraction(1, 8 + chance.randrange(30))))
                ledger.prepay(accounts, pair, data=data, grade="exact", note="")
            elif do == "hold":
                room = reserve(unit=Unit(), budget=Budget(epsilon=Fraction(1, 4)))
                holds.append(ledger.hold(accounts, room, data=data, grade="exact", note=""))
                ledger.open(holds[-1])
            elif do == "draw" and holds:
                ledger.draw(chance.choice(holds), events.Laplace(epsilon=Fraction(1, 16)), Fraction(0))
            elif do == "close" and holds:
                gone = holds.pop()
                ledger.close(gone)
                ledger.settle(gone, "answered")
            elif do == "limit":
                now = ledger.statement(name).limit
                assert now is not None
                part = Fraction(chance.choice([7, 9, 12, 15]), 10)
                more = now.delta * 4 if part > 1 else now.delta
                ledger.change_limit(name, replace(now, epsilon=now.epsilon * part, delta=more), reason="x")
            elif do == "move":
                ledger.move("team", "other", epsilon=Fraction(1, 20), reason="x")
            elif do == "fail":
                receipt = ledger.spend(accounts, plan, data=data, grade="exact", note="")
                ledger.open(receipt)
                ledger.settle(receipt, "failed")
            elif do == "unlock":
                ledger.unlock(name, "looked")
            elif do == "shut" and chance.random() < 0.1:
                ledger.close_account(name, reason="x")
        except SfumatoError:
            pass
    return ledger


BUDGETS = [Budget(epsilon=1), Budget(epsilon=1, delta=DELTA), Budget(epsilon=1, delta=DELTA, raisable=True)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "delta", "raisable"])
def test_a_forecast_counts_what_is_really_accepted(budget: Budget, seed: int) -> None:
    ledger = _lived(_tree(budget), seed, 12 + 8 * (seed % 3))
    store = ledger._store
    assert isinstance(store, MemoryStore)
    for accounts, data in WAYS:
        plan = PLANS[seed % len(PLANS)]
        said = forecast(store, accounts[0], plan=plan, data=data).more[0]
        assert min(said.count, 500) == _really(store, "somebody", accounts, plan, data), (said, accounts)


def _gauges(state: State, names: tuple[str, ...]) -> dict[str, tuple[Gauge, ...]]:
    found = {}
    for name in names:
        filter_ = state.accounts[name].filter
        assert filter_ is not None
        found[name] = tuple(Gauge(each.currency, each.spent, each.limit) for each in filter_.open if not each.required)
    return found


def _follows(store: MemoryStore) -> int:
    """Before and after every release, as a replay of the entries up to there has it."""
    rows = {row.number: row for row in releases(store, price=False)}
    draws: dict[str, int] = {}
    for link, body in store.entries():
        entry = record.parse(body, dict)
        if entry["kind"] == "draw":
            draws[entry["receipt"]] = link.number
    ends = {draws.get(row.id, row.number): row for row in rows.values()}
    state, seen = State(), 0
    for link, body in store.entries():
        row = rows.get(link.number)
        if row is not None and row.loop != "trusted loop":
            assert row.before == _gauges(state, row.accounts), link.number
        state = replay([(link.number, body)], state)
        assert state.wrong is None
        if row is not None and row.loop == "trusted loop":
            assert row.before == _gauges(state, row.accounts), link.number
        if (ended := ends.get(link.number)) is not None:
            assert ended.after == _gauges(state, ended.accounts), link.number
            seen += 1
    for name, account in state.accounts.items():
        told = statement(store, name)
        members = () if account.filter is None else account.filter.open
        assert [(each.spent, each.left) for each in told.standing] == [
            (each.spent, each.left) for each in members if not each.required
        ]
        charged = 0 if account.filter is None else account.filter.count
        lists, parts = (sum(r.loop == loop for r in rows.values() if name in r.accounts) for loop in ("parts", "part"))
        assert told.releases == charged - lists + parts
        assert told.largest == account.promised
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_totals_are_those_of_a_replay_at_every_entry(seed: int) -> None:
    ledger = _lived(_tree(BUDGETS[seed % 3]), seed + 100, 40)
    assert isinstance(ledger._store, MemoryStore)
    assert _follows(ledger._store) > 3


def test_totals_go_on_under_a_policy() -> None:
    office = governed()
    office["adam"].open_account("t1", Budget(epsilon=1), parent="visits", level="team")
    office["adam"].open_account("t2", Budget(epsilon=1), parent="visits", level="team")
    ask(office["ana"], laplace(Fraction(1, 10)), "t1")
    office["adam"].move("t1", "t2", epsilon=Fraction(1, 4), reason="they need it")
    ask(office["ana"], laplace(Fraction(1, 5)), "t2")
    with pytest.raises(PolicyError) as refused:
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.approve(refused.value.act, "adam", "paula", "dora")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office["dora"].register("copy", same_as="visits", reason="a view")
    ask(office["ana"], laplace(Fraction(1, 7)), "t2", data="copy@1")
    assert isinstance(office.store, MemoryStore)
    assert _follows(office.store) == 3
    kinds = [each.kind for each in history(office.store, account="t1")]
    assert kinds == ["open account", "spend", "move"]
    about = [each.kind for each in history(office.store, account="visits") if each.kind in ("ask", "approve", "limit")]
    assert about == ["ask", "approve", "approve", "limit"]


def test_what_the_policy_asks_is_said_with_the_number() -> None:
    office = governed(
        bands=(Band(above=Fraction(1, 10), approvals=1), Band(above=1, approvals=None)),
        accounts=(AccountRule(name="visits", people=("ana",)),),
    )
    small, large, huge = (forecast(office.store, "visits", plan=laplace(each)).more[0] for each in (0.1, 0.2, 1.5))
    assert (small.count, small.needs) == (20, None)
    assert large.count == 10 and large.needs is not None and "each needs 1 approval(s)" in str(large)
    assert huge.count == 0 and "the policy refuses a release above epsilon = 1" in str(huge)
    strict = governed(mechanisms=("gaussian/*",))
    noise = forecast(strict.store, "visits", plan=laplace(0.1)).more[0]
    assert noise.count == 0 and "does not allow" in str(noise.reason)
    store = office.store
    assert isinstance(store, MemoryStore)
    assert _really(store, "ana", ("visits",), laplace(0.1), "visits@1") == 20
    assert _really(store, "ana", ("visits",), laplace(0.2), "visits@1") == 0  # approvals first
    assert _really(store, "max", ("visits",), laplace(0.1), "visits@1") == 0  # not listed: no forecast knows who asks


@pytest.mark.parametrize("how", ["closed", "locked", "closed above"])
def test_nothing_runs_out_where_nothing_is_paid(how: str) -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("top", None)
    ledger.open_account("a", Budget(epsilon=1), parent="top")
    for _ in range(3):
        receipt = pay(ledger, laplace(Fraction(1, 100)))
        ledger.open(receipt)
        if how == "locked":
            ledger.settle(receipt, "failed")
    if how != "locked":
        ledger.close_account("a" if how == "closed" else "top", reason="x")
    found = forecast(ledger._store, "a", plan=laplace(Fraction(1, 100)))
    assert found.exhausted is None and "nothing more is paid" in str(found)
    assert found.more[0].count == 0 and str(found.more[0].reason) in str(found.reason)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2, 3), Fraction(10000001, 10**7), Fraction(1), DELTA / 7])
def test_a_promise_is_never_told_smaller_than_it_is(value: Fraction) -> None:
    assert value <= Fraction(digits_above(value)) <= value * (1 + Fraction(1, 10**5))
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=value))
    assert f"are {digits_above(value)}-DP" in statement(ledger._store, "a").guarantee
    assert checklist(ledger._store, "a").as_dict()["fields"]["epsilon and delta"] == f"epsilon = {digits_above(value)}"


def test_the_guarantee_in_every_case() -> None:
    ledger = _tree(Budget(epsilon=1))
    assert "no budget of its own" in statement(ledger._store, "teams").guarantee
    assert statement(ledger._store, "teams").beside == ()
    assert forecast(ledger._store, "teams").reason == "no rate: account 'teams' has no budget of its own"
    assert "a unit that the first release will fix" in statement(ledger._store, "visits").guarantee
    ledger.change_limit("visits", Budget(epsilon=3), reason="unused: nothing was promised with it")
    assert "are 3-DP" in statement(ledger._store, "visits").guarantee
    pay(ledger, laplace(Fraction(1, 10)), "team", data="visits@1#jan")
    ledger.change_limit("team", Budget(epsilon=Fraction(3, 2)), reason="less")
    assert "are 2-DP" in (text := statement(ledger._store, "team").guarantee) and "lowered to epsilon = 1.5" in text
    ledger.change_limit("team", Budget(epsilon=3), reason="more")
    assert "are 3-DP" in (text := statement(ledger._store, "team").guarantee) and "lowered" not in text
    assert "within this block" in statement(ledger._store, "visits#jan").guarantee
    assert "within this block" in checklist(ledger._store, "visits#jan").as_dict()["fields"]["unit"]
    assert "within this block" in registry(ledger._store, "visits#jan").split("privacy_unit:")[1].split("\n")[0]
    ledger.close_account("team", reason="done")
    assert "are 3-DP" in statement(ledger._store, "team").guarantee


def test_another_kind_of_budget_is_refused_in_words() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(rho=1))
    pay(ledger, laplace(Fraction(1, 10)))
    with pytest.raises(BudgetError, match="not changed to"):
        ledger.change_limit("a", Budget(epsilon=Fraction(1, 2)), reason="x")


def test_what_is_in_folders_is_given_away_too() -> None:
    ledger = _tree(Budget(epsilon=1))
    found = statement(ledger._store, "visits")
    assert (found.allocated, found.overcommitted) == ("epsilon = 3", False)


def test_a_part_below_is_as_spent_as_its_delta_is() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=2, delta=DELTA))
    ledger.open_account("b", Budget(epsilon=1, delta=DELTA, shares={"plans": 1}), parent="a")
    plan = m.Gaussian(query=Count(unit=Unit()), epsilon=Fraction(1, 100), delta=DELTA / 2)
    pay(ledger, plan, "b", data="a@1")
    (below,) = statement(ledger._store, "a").children
    assert below.share == 0.5


def test_the_register_follows_copies_to_where_their_people_are_now() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=1), level="data set")
    ledger.register("copy", same_as="visits", reason="a view")
    ledger.register("view", same_as="copy", reason="a view of it")
    ledger.open_account("staff", Budget(epsilon=1), reason="other people")
    ledger.register("visits", accounts=("staff",), reason="they are in it too")
    ledger.open_account("team", Budget(epsilon=1), parent="visits", level="team")
    for name in ("visits", "copy", "view", "staff"):
        ledger.declare(f"{name}@1", "invariant", f"of {name}", recipients="all", reason="law")
    for name in ("visits", "copy", "view", "staff"):
        assert len(list(declared(ledger._store, data=name))) == 4, name
    for account in ("visits", "team", "staff"):  # also where nothing was released yet
        assert "of view" in checklist(ledger._store, account).as_dict()["fields"]["other releases"], account


def test_nothing_is_said_that_nobody_knows() -> None:
    office = governed()
    office["adam"].open_account("t", Budget(epsilon=1), parent="visits", level="team")
    empty = registry(office.store, "t")
    assert 'release_type: "not stated"' in empty and 'publication_date: "not stated"' in empty
    assert 'model_name: "not stated"' in empty and 'model_name: "Central"' in registry(office.store, "t", About())
    assert "all analysts together" not in empty and "the accounts above it (visits, org)" in empty
    controls = {each.number: each.control for each in checklist(office.store, "visits").hazards}
    assert "exact noise" not in controls[21]  # nothing was released
    assert controls[1] == "none: the policy has no bands"
    ask(office["ana"], laplace(Fraction(1, 10)), "t")
    assert 'publication_date: "not stated"' in registry(office.store, "t")
    assert "all analysts together" in registry(office.store, "visits")
    folder = Ledger(MemoryStore())
    folder.open_account("f", None)
    folder.open_account("a", Budget(epsilon=1), parent="f")
    pay(folder, laplace(Fraction(1, 10)))
    told = checklist(folder._store, "f").as_dict()["fields"]
    assert told["releases"] == told["composition"] == "not stated"


def test_a_long_list_says_that_it_goes_on() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1))
    for number in range(25):
        ledger.spend(("a",), laplace(Fraction(1, 100)), data="a@1", grade="exact", note=f"p{number}")
    assert checklist(ledger._store, "a").as_dict()["fields"]["purposes"].endswith("and 5 more")


def test_the_chain_is_read_once(tmp_path: Path) -> None:
    store = Once()
    ledger = Ledger(store)
    ledger.open_account("a", Budget(epsilon=1))
    for name in ("b", "c"):
        ledger.register(name, same_as="a", reason="a copy")
        answered(ledger, laplace(Fraction(1, 10)), "a", data=f"{name}@1")
        ledger.declare(f"{name}@1", "invariant", "x", recipients="y", reason="z")
    for read in (
        lambda: statement(store, "a"),
        lambda: forecast(store, "a", plan=laplace(1), error=5),
        lambda: checklist(store, "a"),
        lambda: registry(store, "a"),
        lambda: list(declared(store, data="a")),
        lambda: list(releases(store)),
        lambda: list(history(store, account="a")),
        lambda: export(store, tmp_path / "a.csv"),
        lambda: export(store, tmp_path / "b.csv", what="entries"),
    ):
        store.reads = 0
        read()
        assert store.reads == 1


def test_many_unlike_releases_are_added_up_in_short_numbers() -> None:
    """Exact sums of unlike fractions would have denominators of thousands of digits."""
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1, delta=DELTA))
    for number in range(60):
        pay(ledger, m.Gaussian(query=Count(unit=Unit()), multiplier=Fraction(100_003 + 2 * number, 100)))
    found = statement(ledger._store, "a").beside[1]
    assert found.epsilon is not None and 0 < found.epsilon < 1


def test_three_formats_tell_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    ledger = _lived(_tree(BUDGETS[1]), 3, 30)
    ledger.declare("copy@1", "invariant", "=1+1", recipients="'all", reason="@law")
    for what in ("releases", "entries"):
        for ending in ("ndjson", "csv", "parquet"):
            export(ledger._store, tmp_path / f"{what}.{ending}", what=what)
        lines = [json.loads(line) for line in (tmp_path / f"{what}.ndjson").read_text().splitlines()]
        with (tmp_path / f"{what}.csv").open(encoding="utf-8", newline="") as file:
            cells = list(csv.DictReader(file))
        rows = parquet.read_table(tmp_path / f"{what}.parquet").to_pylist()
        assert len(lines) == len(cells) == len(rows) > 3
        for line, cell, row in zip(lines, cells, rows, strict=True):
            for name, value in line.items():
                nested = isinstance(value, dict | list)
                if value is None:
                    assert cell[name] == "" and row[name] is None
                elif nested:
                    assert json.loads(cell[name]) == value
                    assert (json.loads(row[name]) if isinstance(row[name], str) else row[name]) == value
                elif hasattr(row[name], "isoformat"):
                    assert from_cell(cell[name]) == value and row[name].isoformat() == value
                else:
                    assert from_cell(cell[name]) == str(value) and row[name] == value


def test_an_entry_that_somebody_put_there_stops_no_export(tmp_path: Path) -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1))
    strange = '{"is":"map","items":[["kind","moonshot"],["thing",{"is":"from-2099/1","x":NaN}],["y",Infinity]]}'
    with ledger._store.writing() as book:
        book.append(strange.encode())
    for ending in ("ndjson", "csv"):
        assert export(ledger._store, tmp_path / f"e.{ending}", what="entries").rows == 3
    assert "nan" in json.loads((tmp_path / "e.ndjson").read_text().splitlines()[-1])["fields"]["thing"]["x"]
