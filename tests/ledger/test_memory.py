"""The ledger in memory, against the invariants of section L."""

from __future__ import annotations

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, events, partition, repeat, reserve
from sfumato import mechanisms as m
from sfumato.accounting.calibrate import calibrate
from sfumato.errors import ArgumentError, BudgetError, DataError, ReceiptError, SfumatoError
from sfumato.plan import Plan, Receipt
from tests.helpers import AGES, BY_PATIENT, PATIENTS, delta_spent, few, hooked, laplace, many, spent

ROW = Unit()


def pay(ledger: MemoryLedger, plan: Plan[Any], *accounts: str, data: str = "d@1") -> Receipt:
    return ledger.spend(accounts or ("a",), plan, data=data, grade="exact", note="")


def held(ledger: MemoryLedger, budget: Budget, *accounts: str, unit: Unit = ROW) -> Receipt:
    plan = reserve(unit=unit, budget=budget)
    receipt = ledger.hold(accounts or ("a",), plan, data="d@1", grade="exact", note="")
    ledger.open(receipt)
    return receipt


def answered(ledger: MemoryLedger, plan: Plan[Any], *accounts: str, data: str = "d@1", answer: bytes = b"1") -> Receipt:
    receipt = pay(ledger, plan, *accounts, data=data)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", answer)
    return receipt


# L2, L11


def test_l2_sixteen_threads_spend_exactly_the_budget() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
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


def test_l11_ten_tenths_fit_and_the_eleventh_does_not() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1), "thirds": Budget(epsilon=1)})
    for _ in range(10):
        pay(ledger, laplace(0.1))
    with pytest.raises(BudgetError, match=r"asked 0\.1, spent 1, left 0"):
        pay(ledger, laplace(0.1))
    for _ in range(3):
        pay(ledger, laplace(Fraction(1, 3)), "thirds")
    with pytest.raises(BudgetError):
        pay(ledger, laplace(1e-9), "thirds")
    other = MemoryLedger({"a": Budget(epsilon=1)})
    for _ in range(10):
        pay(other, repeat(laplace(1e-6), 10**5))
    assert spent(other, "a") == [1]


def test_the_textbook_budget_denies_the_fifth_query() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    for epsilon in (0.5, 1.0, 0.8, 1.5):
        pay(ledger, laplace(epsilon))
    with pytest.raises(BudgetError, match=r"asked 2, spent 3\.8, left 1\.2"):
        pay(ledger, laplace(2.0))
    assert spent(ledger, "a") == [Fraction(38, 10)] and ledger.left("a") == "1.2 of 5 epsilon left"


# L3: receipts open once, answers are kept


def test_l3_a_receipt_opens_once_and_answers_once() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    receipt = pay(ledger, laplace())
    with pytest.raises(ReceiptError, match="opened receipt can be answered"):
        ledger.settle(receipt, "answered", b"x")
    ledger.open(receipt)
    with pytest.raises(ReceiptError, match="opened before"):
        ledger.open(receipt)
    ledger.settle(receipt, "answered", b"x")
    for again in (lambda: ledger.open(receipt), lambda: ledger.settle(receipt, "answered", b"y")):
        with pytest.raises(ReceiptError):
            again()
    found = ledger.answer(("a",), receipt.plan_hash, "d@1")
    assert found == (receipt, b"x")


def test_l3_a_failed_receipt_never_answers() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    receipt = pay(ledger, laplace())
    ledger.open(receipt)
    ledger.settle(receipt, "failed")
    for again in (lambda: ledger.open(receipt), lambda: ledger.settle(receipt, "answered", b"y")):
        with pytest.raises(ReceiptError):
            again()
    assert ledger.answer(("a",), receipt.plan_hash, "d@1") is None
    never = pay(ledger, laplace())
    ledger.settle(never, "failed")  # died between paying and opening
    with pytest.raises(ReceiptError):
        ledger.open(never)


def test_l3_a_failure_with_bytes_is_not_an_answer() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    receipt = pay(ledger, laplace())
    ledger.open(receipt)
    ledger.settle(receipt, "failed", b"half an answer")
    assert ledger.answer(("a",), receipt.plan_hash, "d@1") is None


def test_l3_an_answer_once_given_stays() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    receipt = answered(ledger, laplace())
    with pytest.raises(ReceiptError):
        ledger.settle(receipt, "failed")
    assert ledger.answer(("a",), receipt.plan_hash, "d@1") == (receipt, b"1")


def test_l3_one_failure_is_counted_once() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    receipt = pay(ledger, laplace())
    ledger.open(receipt)
    for _ in range(3):
        with contextlib.suppress(ReceiptError):
            ledger.settle(receipt, "failed")
    pay(ledger, laplace(0.1))  # not locked


def test_l3_receipts_that_this_ledger_did_not_write_are_refused() -> None:
    ledger, other = (MemoryLedger({"a": Budget(epsilon=5)}) for _ in range(2))
    receipt = pay(other, laplace())
    forged = replace(pay(ledger, laplace()), plan_hash="0" * 64)
    for bad in (receipt, forged, replace(forged, id="x")):
        for use in (ledger.open, lambda r: ledger.settle(r, "failed"), lambda r: ledger.draw(r, r.event, Fraction(0))):
            with pytest.raises(ReceiptError, match="did not write"):
                use(bad)


def test_l3_stored_answers_belong_to_the_plan_the_data_and_the_accounts_that_paid() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5), "b": Budget(epsilon=5), "c": Budget(epsilon=5)})
    receipt = answered(ledger, laplace(1), "a", "b", answer=b"the answer")
    digest = receipt.plan_hash
    for accounts in (("a",), ("b",), ("a", "b"), ("b", "a")):
        assert ledger.answer(accounts, digest, "d@1") == (receipt, b"the answer")
    for accounts in (("c",), ("a", "c"), ("a", "b", "c")):
        assert ledger.answer(accounts, digest, "d@1") is None
    assert ledger.answer(("a",), digest, "d@2") is None
    assert ledger.answer(("a",), laplace(2).hash, "d@1") is None


def test_every_receipt_has_its_own_name() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    ids = {pay(ledger, laplace(0.001)).id for _ in range(200)}
    assert len(ids) == 200 and all(len(id_) == 32 for id_ in ids)


# L4: spent never falls


def test_l4_spent_never_falls_whatever_happens() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10)})
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
    assert {entry.state for entry in ledger._entries.values()} == {"failed"}


def gauges(ledger: MemoryLedger) -> dict[tuple[str, str], Fraction]:
    return {(name, gauge.currency): gauge.spent for name in "ab" for gauge in ledger.spent(name)}


actions = st.lists(
    st.tuples(
        st.sampled_from(["spend", "hold", "open", "settle", "fail", "draw", "close", "unlock", "quote"]),
        st.integers(0, 5),
        st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2), Fraction(1, 100)]),
    ),
    max_size=40,
)


@many
@given(actions, st.sampled_from([Budget(epsilon=2), Budget(epsilon=2, delta=1e-6), Budget(rho=1)]))
def test_l4_no_history_lowers_what_was_spent_or_passes_the_limit(history: list[Any], budget: Budget) -> None:
    ledger = MemoryLedger({"a": budget, "b": Budget(epsilon=1)})
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
                receipts.append(ledger.hold(path, plan, data="d@1", grade="exact", note=""))
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
        for member in ledger._accounts[account].filter.open:
            assert member.spent <= member.limit


# Paths of several accounts


def test_a_path_is_charged_whole_or_not_at_all() -> None:
    ledger = MemoryLedger({"team": Budget(epsilon=3), "org": Budget(epsilon=1), "rho": Budget(rho=1)})
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
            ledger.hold(path, reserve(unit=ROW, budget=Budget(epsilon=0.75)), data="d@1", grade="exact", note="")
    assert [spent(ledger, name) for name in ("team", "org", "rho")] == [
        [Fraction(1, 2)],
        [Fraction(1, 2)],
        [Fraction(1, 8)],
    ]
    assert not any(account.held for account in ledger._accounts.values())


def test_each_account_prices_in_its_own_currency() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=10, delta=1e-5), "rho": Budget(rho=1)})
    pay(ledger, m.Gaussian(query=bounds.count(ROW), epsilon=1, delta=1e-6), "a", "rho")
    sums, mu_squared, *_ = spent(ledger, "a")
    assert sums == 1 and delta_spent(ledger, "a") == Fraction(1, 10**6)
    assert mu_squared == 2 * spent(ledger, "rho")[0] > 0
    with pytest.raises(BudgetError, match="no pure epsilon"):
        pay(MemoryLedger({"a": Budget(epsilon=10)}), m.Gaussian(query=bounds.count(ROW), multiplier=50))


@pytest.mark.parametrize("use", ["spend", "hold", "answer"])
def test_a_path_without_accounts_pays_nothing_and_gets_nothing(use: str) -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    receipt = answered(ledger, laplace(1))
    if use == "answer":
        assert ledger.answer((), receipt.plan_hash, "d@1") is None
        return
    plan = laplace(1) if use == "spend" else reserve(unit=ROW, budget=Budget(epsilon=1))
    with pytest.raises(SfumatoError):
        getattr(ledger, use)((), plan, data="d@1", grade="exact", note="")


def test_an_account_named_twice_on_a_path_is_charged_at_least_once() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    pay(ledger, laplace(0.5), "a", "a")
    assert spent(ledger, "a")[0] >= Fraction(1, 2)


# Units


@pytest.mark.parametrize(
    "other", [Unit(change="replace"), Unit(change="zero-out"), Unit("user:u"), Unit(group=2)], ids=str
)
def test_an_account_protects_one_unit_for_good(other: Unit) -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    pay(ledger, laplace(1))
    for refused in (
        lambda: pay(ledger, laplace(1, other)),
        lambda: ledger.hold(("a",), reserve(unit=other, budget=Budget(epsilon=1)), data="d@1", grade="exact", note=""),
    ):
        with pytest.raises(BudgetError, match="different units do not add up"):
            refused()
    assert not ledger.quote(("a",), laplace(1, other)) and ledger.quote(("a",), laplace(1))
    assert spent(ledger, "a") == [1]


def test_an_event_between_other_neighbours_than_the_unit_s_is_refused() -> None:
    class Liar(m.Laplace):
        event = property(lambda self: events.Laplace(epsilon=self.epsilon, relation="replace"))  # type: ignore[assignment]

    ledger = MemoryLedger({"a": Budget(epsilon=5)})
    with pytest.raises(BudgetError):
        pay(ledger, Liar(query=bounds.count(ROW), epsilon=1))
    receipt = held(ledger, Budget(epsilon=1))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=0.1, relation="replace"), Fraction(0))
    assert spent(ledger, "a") == [0]


# L12: fuzz


def test_l12_nothing_odd_is_ever_accepted() -> None:
    class Strange(events.Event):
        relation = "add-remove"

    class Fake:
        unit, delta, hash = ROW, Fraction(0), "0" * 64

        def __init__(self, event: Any, delta: Any = Fraction(0)) -> None:
            self.event, self.delta = event, delta

    ledger = MemoryLedger({"a": Budget(epsilon=1), "b": Budget(epsilon=1, delta=1e-6), "c": Budget(rho=1)})
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
            ledger.spend((rng.choice("abc"),), Fake(event), data="d@1", grade="exact", note="")  # type: ignore[arg-type]
            accepted += 1
        except Exception:
            pass
    assert accepted == 0
    assert not any(any(spent(ledger, name)) for name in "abc") and not ledger._entries


def test_l12_a_delta_that_is_no_number_buys_nothing_from_a_sum() -> None:
    class Fake:
        unit, hash = ROW, "0" * 64

        def __init__(self, delta: Any) -> None:
            self.event, self.delta = events.Laplace(epsilon=0.5), delta

    for bad in (float("nan"), float("inf"), -1, Fraction(-1, 10**9), 2):
        ledger = MemoryLedger({"b": Budget(epsilon=1, delta=1e-6)})
        for _ in range(10):
            with contextlib.suppress(Exception):
                ledger.spend(("b",), Fake(bad), data="d@1", grade="exact", note="")  # type: ignore[arg-type]
        members = ledger._accounts["b"].filter.open
        assert all(member.spent <= member.limit for member in members)
        assert delta_spent(ledger, "b") in (0,) or delta_spent(ledger, "b") <= Fraction(1, 2 * 10**6)


# L13: parallel prices only where the plan itself keeps the parts apart


def test_l13_a_partition_is_charged_its_dearest_part_and_overlapping_counts_their_sum() -> None:
    ledger = MemoryLedger({"split": Budget(epsilon=5), "apart": Budget(epsilon=5), "swap": Budget(epsilon=5)})
    count = laplace(1, BY_PATIENT)
    pay(ledger, partition("ward", ["north", "south"], count), "split")
    assert spent(ledger, "split") == [1]
    for ward in ("north", "south"):  # the same two counts, asked one by one: the ledger cannot know they are apart
        pay(ledger, m.Laplace(query=bounds.histogram("ward", [ward], BY_PATIENT), epsilon=1), "apart")
    assert spent(ledger, "apart") == [2]
    swap = laplace(1, Unit("user:patient", "replace"))
    pay(ledger, partition("ward", ["north", "south", "east"], swap), "swap")
    assert spent(ledger, "swap") == [2]


# Holds


def test_a_hold_blocks_others_draws_spend_and_closing_frees_the_rest() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    receipt = held(ledger, Budget(epsilon=0.75))
    assert receipt.loop == "trusted loop" and spent(ledger, "a") == [0]  # a hold is not a spend
    assert ledger.left("a") == "1 of 1 epsilon left, 1 hold(s) open"
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.5))
    assert not ledger.quote(("a",), laplace(0.5))
    pay(ledger, laplace(0.25))
    ledger.draw(receipt, events.Laplace(epsilon=0.25), Fraction(0))
    assert spent(ledger, "a") == [Fraction(1, 2)]
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.01))
    ledger.close(receipt)
    assert spent(ledger, "a") == [Fraction(1, 2)]
    with pytest.raises(ReceiptError, match="nothing is held"):
        ledger.draw(receipt, events.Laplace(epsilon=0.25), Fraction(0))
    pay(ledger, laplace(0.5))
    assert spent(ledger, "a") == [1]


def test_a_hold_after_draws_still_blocks_what_is_left_of_it() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    receipt = held(ledger, Budget(epsilon=1))
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.5))  # the other half is still held
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=1e-9), Fraction(0))


def test_two_holds_cannot_hold_the_same_room() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    first = held(ledger, Budget(epsilon=0.6))
    with pytest.raises(BudgetError):
        held(ledger, Budget(epsilon=0.6))
    second = held(ledger, Budget(epsilon=0.4))
    for receipt, epsilon in ((first, 0.6), (second, 0.4)):
        ledger.draw(receipt, events.Laplace(epsilon=epsilon), Fraction(0))
    assert spent(ledger, "a") == [1]


@pytest.mark.parametrize(
    ("budget", "child"),
    [
        (Budget(rho=0.01), m.Gaussian(query=bounds.count(ROW), rho=0.01)),
        (Budget(epsilon=0.25, delta=1e-7), m.Gaussian(query=bounds.count(ROW), epsilon=0.25, delta=1e-8)),
        (Budget(epsilon=0.5), laplace(0.5)),
    ],
    ids=["rho", "delta", "pure"],
)
@pytest.mark.parametrize(
    "bites",
    [
        [(events.Approximate(epsilon=0.01, delta=1e-8), Fraction(1, 10**8))],
        [(events.Laplace(epsilon=0.05), Fraction(0))] * 40,
        [(events.Gaussian(multiplier=30), Fraction(0))] * 40,
        [(events.Laplace(epsilon=0.1), Fraction(0))] * 12,
    ],
    ids=["closes rho", "many small", "many gaussians", "closes the sum"],
)
def test_whatever_others_spend_what_is_held_can_still_be_drawn(budget: Budget, child: Any, bites: Any) -> None:
    class Bite:
        unit, hash = ROW, "0" * 64

        def __init__(self, event: Any, delta: Any) -> None:
            self.event, self.delta = event, delta

    ledger = MemoryLedger({"a": Budget(epsilon=1, delta=1e-6)})
    receipt = held(ledger, budget)
    for bite in bites:
        with contextlib.suppress(BudgetError):
            ledger.spend(("a",), Bite(*bite), data="d@1", grade="exact", note="")  # type: ignore[arg-type]
    ledger.draw(receipt, child.event, child.delta)


def test_a_draw_never_takes_the_room_that_another_holds() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    first, _ = held(ledger, Budget(epsilon=0.5)), held(ledger, Budget(epsilon=0.5))
    with pytest.raises(BudgetError):
        ledger.draw(first, events.Laplace(epsilon=0.6), Fraction(0))
    assert spent(ledger, "a") == [0]


def test_a_draw_needs_an_opened_hold() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    spend_receipt = pay(ledger, laplace(0.1))
    ledger.open(spend_receipt)
    unopened = ledger.hold(("a",), reserve(unit=ROW, budget=Budget(epsilon=0.1)), data="d@1", grade="exact", note="")
    for receipt in (spend_receipt, unopened):
        with pytest.raises(ReceiptError, match="nothing is held"):
            ledger.draw(receipt, events.Laplace(epsilon=0.1), Fraction(0))
    settled = held(ledger, Budget(epsilon=0.1))
    ledger.settle(settled, "answered")
    with pytest.raises(ReceiptError):
        ledger.draw(settled, events.Laplace(epsilon=0.1), Fraction(0))


def test_a_draw_is_charged_on_every_account_of_the_path_or_on_none() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1), "b": Budget(epsilon=2)})
    receipt = held(ledger, Budget(epsilon=1), "b", "a")
    ledger.draw(receipt, events.Laplace(epsilon=0.5), Fraction(0))
    with pytest.raises(BudgetError):
        ledger.draw(receipt, events.Laplace(epsilon=0.75), Fraction(0))
    assert spent(ledger, "a") == spent(ledger, "b") == [Fraction(1, 2)]


@few
@given(st.lists(st.sampled_from([0.1, 0.25, 0.3, 0.6]), max_size=8), st.lists(st.sampled_from([0.1, 0.3]), max_size=8))
def test_holds_draws_and_spends_together_never_pass_the_budget(holds: list[float], spends: list[float]) -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    receipts = []
    for size in holds:
        with contextlib.suppress(BudgetError):
            receipts.append((held(ledger, Budget(epsilon=size)), Fraction(repr(size))))
    for epsilon in spends:
        with contextlib.suppress(BudgetError):
            pay(ledger, laplace(epsilon))
    for receipt, size in receipts:  # whatever was held can be drawn, to the last
        ledger.draw(receipt, events.Laplace(epsilon=size), Fraction(0))
    assert spent(ledger, "a")[0] <= 1


# Locks


def test_an_account_locks_after_three_failures_until_somebody_looks() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=10), "b": Budget(epsilon=10)})
    hold = held(ledger, Budget(epsilon=1))
    for number in range(3):
        receipt = pay(ledger, laplace(1), *(("a", "b") if number else ("a",)))
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    for refused in (
        lambda: pay(ledger, laplace(1)),
        lambda: pay(ledger, laplace(1), "b", "a"),
        lambda: held(ledger, Budget(epsilon=1)),
    ):
        with pytest.raises(BudgetError, match="account 'a' is locked after 3 failures"):
            refused()
    assert not ledger.quote(("a",), laplace(1))
    pay(ledger, laplace(1), "b")
    ledger.draw(hold, events.Laplace(epsilon=0.1), Fraction(0))  # what was granted before goes on
    for reason in ("", None, "\n"):
        with pytest.raises(ArgumentError, match="reason"):
            ledger.unlock("a", reason)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="no account 'nobody'"):
        ledger.unlock("nobody", "looked")
    ledger.unlock("a", "a typing error in the ward column")
    pay(ledger, laplace(1))


def test_answers_do_not_count_as_failures() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=10)})
    for _ in range(10):
        answered(ledger, laplace(1))


def test_what_is_left_is_told_in_words() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(0.01))
    assert ledger.left("a") == "0.99 of 1 epsilon left (or 3 other gauges: see ledger.spent)"
    with pytest.raises(BudgetError, match="no account 'b'"):
        ledger.left("b")


def test_settling_knows_two_outcomes() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    with pytest.raises(ArgumentError, match="outcome"):
        ledger.settle(pay(ledger, laplace(0.1)), "refunded")
    assert not hasattr(ledger, "refund")


def test_calibration_aims_at_what_an_account_still_accepts() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1, delta=1e-6)})
    pay(ledger, laplace(Fraction(1, 2)), "a")

    def noise(multiplier: float) -> events.Event:
        return events.Gaussian(multiplier=multiplier)

    found = calibrate(noise, account=ledger.room("a"), delta=1e-7)
    assert ledger.room("a").fits(found.event, Fraction(1, 10**7))
    assert not ledger.room("a").fits(noise(found.parameter * 0.99), Fraction(1, 10**7))
    assert ledger.spent("a")[0].spent == Fraction(1, 2)  # asking costs nothing
    with pytest.raises(BudgetError, match="no account"):
        ledger.room("b")


def test_room_that_is_held_is_not_offered_to_a_calibration() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    event = events.Laplace(epsilon=Fraction(1, 2))
    assert ledger.room("a").fits(event, Fraction(0))
    plan = reserve(unit=ROW, budget=Budget(epsilon=Fraction(3, 4)))
    receipt = ledger.hold(("a",), plan, data="d@1", grade="exact", note="")
    assert not ledger.room("a").fits(event, Fraction(0))
    ledger.close(receipt)
    assert ledger.room("a").fits(event, Fraction(0))
