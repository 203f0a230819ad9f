"""What a ledger charges, on every store, against the invariants of section L."""

from __future__ import annotations

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, events, partition, repeat, reserve
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, DataError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.plan import Receipt
from sfumato_referee.attacks.ledger import parallel
from tests.helpers import (
    AGES,
    BY_PATIENT,
    PATIENTS,
    account_of,
    delta_spent,
    few,
    filed_in,
    hooked,
    laplace,
    many,
    spent,
)
from tests.ledger.stores import ROW, Stores, held, pay

# L2, L11


def test_l2_sixteen_threads_spend_exactly_the_budget(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    plan = laplace(Fraction(1, 500))
    start = threading.Barrier(16)

    def work(_: int) -> int:
        start.wait()
        won = 0
        for _ in range(100):
            try:
                pay(ledger, plan)
                won += 1
            except BudgetError:
                pass
        return won

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(16))) == 500
    assert spent(ledger, "a") == [1]


def test_l11_ten_tenths_fit_and_the_eleventh_does_not(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1), "thirds": Budget(epsilon=1)})
    for _ in range(10):
        pay(ledger, laplace(0.1))
    with pytest.raises(BudgetError, match=r"asked 0\.1, spent 1, left 0"):
        pay(ledger, laplace(0.1))
    for _ in range(3):
        pay(ledger, laplace(Fraction(1, 3)), "thirds")
    with pytest.raises(BudgetError):
        pay(ledger, laplace(1e-9), "thirds")
    other = ledgers({"a": Budget(epsilon=1)})
    for _ in range(10):
        pay(other, repeat(laplace(1e-6), 10**5))
    assert spent(other, "a") == [1]


def test_the_textbook_budget_denies_the_fifth_query(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    for epsilon in (0.5, 1.0, 0.8, 1.5):
        pay(ledger, laplace(epsilon))
    with pytest.raises(BudgetError, match=r"asked 2, spent 3\.8, left 1\.2"):
        pay(ledger, laplace(2.0))
    assert spent(ledger, "a") == [Fraction(38, 10)] and ledger.left("a") == "3.8 of 5 epsilon spent"


# L4: spent never falls


def test_l4_spent_never_falls_whatever_happens(ledgers: Stores) -> None:
    ledger = ledgers({"patients": Budget(epsilon=10)})
    curator = Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)

    def fail(problem: BaseException) -> Any:
        def hook(rows: Any, run: Any) -> Any:
            raise problem

        return hook

    problems: list[BaseException] = [
        ValueError("x"),
        KeyboardInterrupt(),
        SystemExit(1),
        MemoryError(),
        RecursionError(),
    ]
    for number, problem in enumerate(problems):
        before = spent(ledger, "patients")[0]
        with pytest.raises((DataError, KeyboardInterrupt, SystemExit)):
            curator.release(hooked(f"l4-{number}", fail(problem), epsilon=1))
        assert spent(ledger, "patients")[0] == before + 1
        ledger.unlock("patients", "looked")
    with pytest.raises(BudgetError):
        curator.release(m.Laplace(query=bounds.count(BY_PATIENT), epsilon=7))
    assert spent(ledger, "patients") == [5]
    assert {entry.state for entry in filed_in(ledger)} == {"failed"}


def gauges(ledger: Ledger) -> dict[tuple[str, str], Fraction]:
    return {(name, gauge.currency): gauge.spent for name in "ab" for gauge in ledger.spent(name)}


actions = st.lists(
    st.tuples(
        st.sampled_from(["spend", "hold", "open", "settle", "fail", "draw", "close", "unlock", "quote"]),
        st.integers(0, 5),
        st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2), Fraction(1, 100)]),
    ),
    max_size=40,
)


BUDGETS = st.sampled_from([Budget(epsilon=2), Budget(epsilon=2, delta=1e-6), Budget(rho=1)])


@many
@given(actions, BUDGETS)
def test_l4_no_history_lowers_what_was_spent_or_passes_the_limit(history: list[Any], budget: Budget) -> None:
    never_falls(MemoryLedger({"a": budget, "b": Budget(epsilon=1)}), history)


@settings(few, max_examples=12)
@given(actions, BUDGETS)
def test_l4_nor_does_one_in_a_file_or_on_a_server(all_stores: Stores, history: list[Any], budget: Budget) -> None:
    never_falls(all_stores.fresh({"a": budget, "b": Budget(epsilon=1)}), history)


def never_falls(ledger: Ledger, history: list[Any]) -> None:
    receipts: list[Receipt] = []
    before = gauges(ledger)
    for action, number, epsilon in history:
        path = [("a",), ("a", "b"), ("b", "a")][number % 3]
        receipt = receipts[number % len(receipts)] if receipts else None
        try:
            if action == "spend":
                receipts.append(pay(ledger, laplace(epsilon), *path))
            elif action == "hold":
                plan = reserve(unit=ROW, budget=Budget(epsilon=epsilon))
                receipts.append(ledger.hold(path, plan, data="a@1", grade="exact", note=""))
            elif action == "quote":
                ledger.quote(path, laplace(epsilon))
            elif action == "unlock":
                ledger.unlock("a", "looked")
            elif receipt is not None:
                {
                    "open": lambda r: ledger.open(r),
                    "settle": lambda r: ledger.settle(r, "answered", b"1"),
                    "fail": lambda r: ledger.settle(r, "failed"),
                    "draw": lambda r, e=epsilon: ledger.draw(r, events.Laplace(epsilon=e), Fraction(0)),
                    "close": lambda r: ledger.close(r),
                }[action](receipt)
        except SfumatoError:
            pass
        now = gauges(ledger)
        assert all(before.get(gauge, 0) <= value for gauge, value in now.items()), (action, before, now)
        before = before | now  # a gauge that closes may not come back with less
    for account in "ab":
        for member in account_of(ledger, account).filter.open:
            assert member.spent <= member.limit


# Paths of several accounts


def test_a_path_is_charged_whole_or_not_at_all(ledgers: Stores) -> None:
    ledger = ledgers({"team": Budget(epsilon=3), "org": Budget(epsilon=1), "rho": Budget(rho=1)})
    pay(ledger, laplace(0.5), "team", "org", "rho")
    assert [spent(ledger, name) for name in ("team", "org", "rho")] == [
        [Fraction(1, 2)],
        [Fraction(1, 2)],
        [Fraction(1, 8)],
    ]
    for path in (("team", "org"), ("org", "team"), ("rho", "team", "org"), ("team", "nobody"), ("nobody", "team")):
        with pytest.raises(BudgetError):
            pay(ledger, laplace(0.75), *path)
        with pytest.raises(BudgetError):
            ledger.hold(path, reserve(unit=ROW, budget=Budget(epsilon=0.75)), data="a@1", grade="exact", note="")
    assert [spent(ledger, name) for name in ("team", "org", "rho")] == [
        [Fraction(1, 2)],
        [Fraction(1, 2)],
        [Fraction(1, 8)],
    ]
    assert not any(account.held for account in (account_of(ledger, name) for name in ("team", "org", "rho")))


def test_each_account_prices_in_its_own_currency(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=10, delta=1e-5), "rho": Budget(rho=1)})
    pay(ledger, m.Gaussian(query=bounds.count(ROW), epsilon=1, delta=1e-6), "a", "rho")
    sums, mu_squared, *_ = spent(ledger, "a")
    assert sums == 1 and delta_spent(ledger, "a") == Fraction(1, 10**6)
    assert mu_squared == 2 * spent(ledger, "rho")[0] > 0
    with pytest.raises(BudgetError, match="no pure epsilon"):
        pay(ledgers({"a": Budget(epsilon=10)}), m.Gaussian(query=bounds.count(ROW), multiplier=50))


@pytest.mark.parametrize("use", ["spend", "hold"])
def test_where_nobody_is_named_the_data_pays(ledgers: Stores, use: str) -> None:
    ledger = ledgers({"a": Budget(epsilon=1), "b": Budget(epsilon=1)})
    plan = laplace(1) if use == "spend" else reserve(unit=ROW, budget=Budget(epsilon=1))
    receipt = getattr(ledger, use)((), plan, data="a@1", grade="exact", note="")
    assert receipt.accounts == ("a",)
    for data in ("", "c@1", "a", "@1", "a@1&c@1"):
        with pytest.raises(SfumatoError):
            getattr(ledger, use)((), plan, data=data, grade="exact", note="")
    assert not ledger.quote((), laplace(0.1))


def test_an_account_named_twice_on_a_path_is_charged_at_least_once(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    pay(ledger, laplace(0.5), "a", "a")
    assert spent(ledger, "a")[0] >= Fraction(1, 2)


# Units


@pytest.mark.parametrize(
    "other", [Unit(change="replace"), Unit(change="zero-out"), Unit("user:u"), Unit(group=2)], ids=str
)
def test_an_account_protects_one_unit_for_good(ledgers: Stores, other: Unit) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    pay(ledger, laplace(1))
    for refused in (
        lambda: pay(ledger, laplace(1, other)),
        lambda: ledger.hold(("a",), reserve(unit=other, budget=Budget(epsilon=1)), data="a@1", grade="exact", note=""),
    ):
        with pytest.raises(BudgetError, match="different units do not add up"):
            refused()
    assert not ledger.quote(("a",), laplace(1, other)) and ledger.quote(("a",), laplace(1))
    assert spent(ledger, "a") == [1]


def test_an_event_between_other_neighbours_than_the_unit_s_is_refused(ledgers: Stores) -> None:
    class Liar(m.Laplace):
        event = property(lambda self: events.Laplace(epsilon=self.epsilon, relation="replace"))  # type: ignore[assignment]

    ledger = ledgers({"a": Budget(epsilon=5)})
    with pytest.raises(BudgetError):
        pay(ledger, Liar(query=bounds.count(ROW), epsilon=1))
    receipt = held(ledger, Budget(epsilon=1))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=0.1, relation="replace"), Fraction(0))
    assert spent(ledger, "a") == [0]


# L12: fuzz


def test_l12_nothing_odd_is_ever_accepted(ledgers: Stores) -> None:
    class Strange(events.Event):
        relation = "add-remove"

    class Fake:
        unit, delta, hash = ROW, Fraction(0), "0" * 64

        def __init__(self, event: Any, delta: Any = Fraction(0)) -> None:
            self.event, self.delta = event, delta

    ledger = ledgers({"a": Budget(epsilon=1), "b": Budget(epsilon=1, delta=1e-6), "c": Budget(rho=1)})
    rng = random.Random(2)
    odd: list[Any] = [None, 0, -1, 0.1, float("nan"), "laplace", Strange(), events.Laplace, (), object(), True]
    accepted = 0
    for _ in range(3000):
        event = rng.choice(odd)
        if rng.random() < 0.5:
            try:
                bad = rng.choice(
                    [0, -rng.random(), float("nan"), float("inf"), -float("inf"), 1e300, 1e-320, "1", None]
                )
                event = rng.choice([events.Laplace, events.Pure, events.Exponential])(epsilon=bad)
            except ArgumentError:
                continue
        try:
            ledger.spend((rng.choice("abc"),), Fake(event), data="a@1", grade="exact", note="")  # type: ignore[arg-type]
            accepted += 1
        except Exception:
            pass
    assert accepted == 0
    assert not any(any(spent(ledger, name)) for name in "abc") and not filed_in(ledger)


def test_l12_a_delta_that_is_no_number_buys_nothing_from_a_sum(ledgers: Stores) -> None:
    class Fake:
        unit, hash = ROW, "0" * 64

        def __init__(self, delta: Any) -> None:
            self.event, self.delta = events.Laplace(epsilon=0.5), delta

    for bad in (float("nan"), float("inf"), -1, Fraction(-1, 10**9), 2):
        ledger = ledgers({"b": Budget(epsilon=1, delta=1e-6)})
        for _ in range(10):
            with contextlib.suppress(Exception):
                ledger.spend(("b",), Fake(bad), data="a@1", grade="exact", note="")  # type: ignore[arg-type]
        members = account_of(ledger, "b").filter.open
        assert all(member.spent <= member.limit for member in members)
        assert delta_spent(ledger, "b") in (0,) or delta_spent(ledger, "b") <= Fraction(1, 2 * 10**6)


# L13: parallel prices only where the plan itself keeps the parts apart


def test_l13_only_a_partition_is_charged_its_dearest_part(ledgers: Stores) -> None:
    """Whatever attack L13 asks for, on every store: of parts that only a filter keeps apart, the sum."""
    for way, (plans, times, unit) in parallel.ASKED.items():
        assert parallel.charged_for(ledgers.fresh({}), plans, unit) == times * parallel.EACH, way


def test_l13_under_replace_the_two_dearest_of_several_parts_are_charged(ledgers: Stores) -> None:
    ledger = ledgers({"swap": Budget(epsilon=5)})
    swap = laplace(1, Unit("user:patient", "replace"))
    pay(ledger, partition("ward", ["north", "south", "east"], swap), "swap")
    assert spent(ledger, "swap") == [2]
