"""Work in steps, on every store: held whole, drawn in blocks, priced member by member, opened again until it ends."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato import Budget, events
from sfumato.accounting.filters import AdaptiveSum, Block, Concentrated, GaussianSum, HeldSteps, PlanSum, RenyiOrder
from sfumato.accounting.holds import own_delta
from sfumato.errors import ArgumentError, BudgetError, PlanError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Receipt
from tests.helpers import Bite, account_of, common, delta_spent, few, laplace, spent
from tests.ledger.stores import ROW, Stores, held, pay
from tests.stepping import Stepping

RHO = Fraction(1, 32)
TAU = Fraction(1, 10**9)
DELTA = Fraction(1, 10**6)


def work(**fields: Any) -> Stepping:
    return Stepping(protects=ROW, **fields)


def begin(ledger: Ledger, plan: Stepping, *accounts: str, key: str | None = None) -> Receipt:
    path = accounts or ("a",)
    receipt = ledger.hold(path, plan, data=f"{path[0]}@1", grade="exact", note="", key=key, trusted=False)
    ledger.open(receipt)
    return receipt


def members(ledger: Ledger, name: str = "a") -> dict[str, Fraction]:
    return {member.name: member.spent for member in account_of(ledger, name).filter.open}  # type: ignore[union-attr]


def holds(ledger: Ledger) -> None:
    report = ledger.verify()
    assert report.ok, report


def test_room_is_held_whole_drawn_in_blocks_and_freed_by_the_end(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(rho=10 * RHO)})
    receipt = begin(ledger, work(times=8))
    assert spent(ledger, "a") == [0] and ledger.steps(receipt) == (0, 8)
    with pytest.raises(BudgetError, match="held"):
        begin(ledger, work(times=3))
    assert ledger.draw_steps(receipt, 3) == (3, 5) and spent(ledger, "a") == [3 * RHO]
    assert ledger.draw_steps(receipt, 1) == (4, 4) == ledger.steps(receipt)
    with pytest.raises(BudgetError):
        begin(ledger, work(times=3))
    with pytest.raises(BudgetError, match="4 of 8 are left"):
        ledger.draw_steps(receipt, 5)
    ledger.settle(receipt, "answered", b"1")
    assert ledger.held("a") == () and spent(ledger, "a") == [4 * RHO]
    with pytest.raises(ReceiptError, match="nothing is held"):
        ledger.draw_steps(receipt, 1)
    begin(ledger, work(times=6))
    holds(ledger)


def test_where_plans_add_up_the_first_draw_pays_for_all(ledgers: Stores) -> None:
    plan = work(times=50, rate=Fraction(1, 50), tau=TAU)
    ledger = ledgers({"a": Budget(epsilon=plan.price(), delta=plan.delta)})
    receipt = begin(ledger, plan)
    assert members(ledger) == {"plans": 0}
    for drawn in (1, 20, 45, 50):
        before = ledger.steps(receipt).drawn
        ledger.draw_steps(receipt, drawn - before)
        assert members(ledger) == {"plans": plan.price()} and delta_spent(ledger, "a") == plan.delta
    with pytest.raises(BudgetError):
        pay(ledger, laplace(0.0001))
    ledger.settle(receipt, "failed")
    holds(ledger)


def test_members_that_add_up_pay_by_the_step(ledgers: Stores) -> None:
    plan = work(times=10, rate=Fraction(1, 50), tau=TAU)
    ledger = ledgers({"a": Budget(epsilon=3, delta=1e-5)})
    receipt = begin(ledger, plan)
    orders = [member for member in account_of(ledger, "a").filter.open if isinstance(member, RenyiOrder)]  # type: ignore[union-attr]
    prices = {member.name: member.price(plan.step, plan.delta) for member in orders}
    for drawn, block in ((4, 4), (5, 1), (10, 5)):
        ledger.draw_steps(receipt, block)
        now = members(ledger)
        counted = plan.delta - (10 - drawn) * TAU
        assert now["plans"] == plan.price() and delta_spent(ledger, "a") == counted, "failures are counted once"
        assert {name: now[name] for name in prices} == {name: drawn * each for name, each in prices.items()}
    smoothed = next(m for m in account_of(ledger, "a").filter.open if m.name == "smoothed")  # type: ignore[union-attr]
    assert now["smoothed"] == smoothed.price(plan.event, plan.delta), "the whole, with the first draw"
    for member in orders:
        assert 10 * prices[member.name] <= member.price(plan.event, plan.delta), "no more than the whole at once"
    holds(ledger)


def test_without_a_member_for_plans_failures_come_step_by_step(ledgers: Stores) -> None:
    """The account has no room for the plan's own (epsilon, delta), and much for its Renyi divergence."""
    plan = work(times=10, rate=Fraction(1, 50), tau=TAU, fails=Fraction(1, 10**12) + 10 * TAU)
    ledger = ledgers({"a": common(plan.price() * 3 / 4, 1e-4)})
    receipt = begin(ledger, plan)
    ledger.draw_steps(receipt, 4)
    open_ = account_of(ledger, "a").filter.open  # type: ignore[union-attr]
    assert not any(member.by_plan for member in open_) and open_
    assert {member.delta_spent for member in open_} == {4 * TAU}
    ledger.draw_steps(receipt, 6)
    assert {m.delta_spent for m in account_of(ledger, "a").filter.open} == {10 * TAU}  # type: ignore[union-attr]
    holds(ledger)


def test_apart_failures_come_step_by_step_whoever_is_open(ledgers: Stores) -> None:
    plan = work(times=10, rate=Fraction(1, 50), tau=TAU, fails=Fraction(1, 10**12) + 10 * TAU)
    ledger = ledgers({"a": Budget(epsilon=plan.price() * 3 / 4, delta=1e-4)})
    receipt = begin(ledger, plan)
    for drawn, block in ((4, 4), (10, 6)):
        ledger.draw_steps(receipt, block)
        open_ = account_of(ledger, "a").filter.open  # type: ignore[union-attr]
        assert not any(member.by_plan for member in open_) and open_[-1].required
        assert open_[-1].spent == drawn * TAU
    holds(ledger)


SHARES = {
    "pure": (Budget(epsilon=6), events.Laplace(epsilon=Fraction(1, 2)), Fraction(0)),
    "rho": (Budget(rho=1), events.Gaussian(multiplier=4), DELTA),
    "adaptive": (
        Budget(epsilon=3, delta=1e-5, shares={"plans": Fraction(1, 4), "adaptive": Fraction(1, 2)}),
        events.Poisson(events.Gaussian(multiplier=4), Fraction(1, 50)),
        DELTA,
    ),
}


@pytest.mark.parametrize("kind", SHARES)
def test_each_member_is_charged_by_its_own_rule(kind: str) -> None:
    budget, step, delta = SHARES[kind]
    whole = events.Repeat(step, 5)
    hold = HeldSteps(whole, delta)
    for member in budget.members():
        if member.charge(step, delta) is None:
            continue
        first, later = member.charge(hold.block(2), delta), member.charge(Block(whole, 3, False, True), delta)
        assert first is not None and later is not None
        if isinstance(member, PlanSum | AdaptiveSum):
            assert first == member.charge(whole, delta) and later == (0, 0)
            assert hold.room(member) == first and hold.after(hold.block(2), True).room(member) == (0, 0)
        else:
            each = member.price(step, delta)
            assert (first[0], later[0]) == (2 * each, 3 * each)
            assert hold.room(member)[0] == 5 * each and hold.after(hold.block(2), False).room(member)[0] == 3 * each


def test_failures_that_were_counted_are_not_counted_again() -> None:
    step = events.Sequence((events.Gaussian(multiplier=9), events.Approximate(epsilon=0, delta=TAU)))
    whole = events.Repeat(step, 5)
    assert own_delta(step) == TAU
    for kind in (GaussianSum, Concentrated):
        member = kind(limit=Fraction(9), delta_limit=DELTA)
        assert member.charge(Block(whole, 2, True), DELTA)[1] == 2 * TAU  # type: ignore[index]
        assert member.charge(Block(whole, 2, False), DELTA)[1] == 2 * TAU  # type: ignore[index]
        assert member.charge(Block(whole, 2, False, True), DELTA)[1] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("steps", lambda: Block(events.Repeat(events.Laplace(epsilon=1), 3), 4, True)),
        ("steps", lambda: Block(events.Repeat(events.Laplace(epsilon=1), 3), 0, False)),
        ("counted", lambda: Block(events.Repeat(events.Laplace(epsilon=1), 3), 1, True, True)),
        ("event", lambda: HeldSteps(events.Laplace(epsilon=1), Fraction(0))),  # type: ignore[arg-type]
        ("taken", lambda: HeldSteps(events.Repeat(events.Laplace(epsilon=1), 3), Fraction(0), 4)),
        ("taken", lambda: HeldSteps(events.Repeat(events.Laplace(epsilon=1), 3), Fraction(0), -1)),
    ],
)
def test_what_cannot_be_held_is_refused(what: str, make: Any) -> None:
    with pytest.raises(ArgumentError, match=what):
        make()


def test_steps_are_drawn_as_steps_and_children_as_children(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(rho=1), "b": Budget(epsilon=1)})
    steps, loop = begin(ledger, work()), held(ledger, Budget(epsilon=Fraction(1, 2)), "b")
    with pytest.raises(ReceiptError, match="in steps"):
        ledger.draw(steps, events.Gaussian(multiplier=4), Fraction(0))
    with pytest.raises(ReceiptError, match="not drawn in steps"):
        ledger.draw_steps(loop, 1)
    with pytest.raises(ReceiptError, match="no steps"):
        ledger.steps(loop)
    with pytest.raises(PlanError, match="no steps"):
        ledger.hold(("b",), laplace(0.1), data="b@1", grade="exact", note="", trusted=False)
    for steps_ in (0, -1, True, 1.5, None):
        with pytest.raises(ArgumentError, match="steps"):
            ledger.draw_steps(steps, steps_)  # type: ignore[arg-type]
    holds(ledger)


def test_it_opens_again_until_it_is_settled(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(rho=1)})
    plan = work()
    receipt = begin(ledger, plan, key="k")
    ledger.draw_steps(receipt, 2)
    for _ in range(2):
        assert ledger.paid("k", ("a",), plan, data="a@1") == (receipt, None)
        assert ledger.hold(("a",), plan, data="a@1", grade="exact", note="", key="k", trusted=False) == receipt
        ledger.open(receipt)
    assert ledger.steps(receipt) == (2, 4)
    ledger.settle(receipt, "answered", b"7")
    with pytest.raises(ReceiptError, match="opened before"):
        ledger.open(receipt)
    assert ledger.paid("k", ("a",), plan, data="a@1") == (receipt, b"7")
    other = begin(ledger, work(times=2), key="l")
    ledger.settle(other, "failed")
    with pytest.raises(ReceiptError, match="new key"):
        ledger.paid("l", ("a",), work(times=2), data="a@1")
    holds(ledger)


def test_every_account_on_the_path_pays_by_its_own_members(ledgers: Stores) -> None:
    """One account adds up plans, the other one rho: each is charged as if it were alone."""
    plan = work(times=6)
    ledger = ledgers({"a": Budget(epsilon=plan.price(), delta=plan.delta), "b": Budget(rho=6 * RHO)})
    receipt = begin(ledger, plan, "b", "a")
    for drawn in range(1, 7):
        ledger.draw_steps(receipt, 1)
        assert spent(ledger, "b") == [drawn * RHO] and members(ledger)["plans"] == plan.price()
    assert account_of(ledger, "a").held[receipt.id].counted and not account_of(ledger, "b").held[receipt.id].counted  # type: ignore[union-attr]
    holds(ledger)


def test_a_draw_is_paid_on_every_account_or_on_none(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(rho=1), "b": Budget(rho=1)})
    receipt = begin(ledger, work(), "b", "a")
    ledger.draw_steps(receipt, 1)
    ledger.close_account("b", reason="over")
    with pytest.raises(BudgetError, match="closed"):
        ledger.draw_steps(receipt, 1)
    assert ledger.steps(receipt) == (1, 5) and spent(ledger, "a") == [RHO]
    holds(ledger)


def test_raising_a_limit_while_steps_are_held(ledgers: Stores) -> None:
    plan = work(times=10, rate=Fraction(1, 50), tau=TAU)
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-5, raisable=True)})
    receipt = begin(ledger, plan)
    with pytest.raises(BudgetError, match="held"):
        ledger.change_limit("a", Budget(epsilon=Fraction(1, 2), delta=1e-5), reason="less")
    ledger.draw_steps(receipt, 4)
    before = members(ledger)
    ledger.change_limit("a", Budget(epsilon=2, delta=1e-5, raisable=True), reason="more")
    after = members(ledger)
    assert after["plans"] == before["plans"] == plan.price(), "the whole work is paid for, in the new version too"
    ledger.draw_steps(receipt, 6)
    assert members(ledger)["plans"] == plan.price() and delta_spent(ledger, "a") == plan.delta
    for member in account_of(ledger, "a").filter.open:  # type: ignore[union-attr]
        if isinstance(member, RenyiOrder):
            assert member.spent == 10 * member.price(plan.step, plan.delta)
    with pytest.raises(BudgetError):
        ledger.draw_steps(receipt, 1)
    holds(ledger)
    ledger.settle(receipt, "answered", b"1")
    ledger.change_limit("a", Budget(epsilon=1, delta=1e-5, raisable=True), reason="less again")
    holds(ledger)


def test_raising_between_the_hold_and_its_first_draw(ledgers: Stores) -> None:
    plan = work(times=10, rate=Fraction(1, 50))
    ledger = ledgers({"a": Budget(epsilon=1, delta=1e-5, raisable=True)})
    receipt = begin(ledger, plan)
    ledger.change_limit("a", Budget(epsilon=2, delta=1e-5, raisable=True), reason="more")
    ledger.draw_steps(receipt, 10)
    assert members(ledger)["plans"] == plan.price()
    holds(ledger)


BITES = [
    Bite(events.Approximate(epsilon=0.01, delta=1e-8), Fraction(1, 10**8)),
    Bite(events.Laplace(epsilon=0.05), Fraction(0)),
    Bite(events.Gaussian(multiplier=30), Fraction(0)),
    Bite(events.ZeroConcentrated(rho=0.001), Fraction(1, 10**8)),
    Bite(events.Laplace(epsilon=0.4), Fraction(0)),
]
ACCOUNTS = [Budget(epsilon=1, delta=1e-5), Budget(epsilon=2, delta=1e-5, raisable=True)]
WORKS = [
    work(times=7, multiplier=20),
    work(times=7, multiplier=2, rate=Fraction(1, 20)),
    work(times=7, multiplier=2, rate=Fraction(1, 20), tau=TAU),
    work(times=7, multiplier=2, rate=Fraction(1, 20), tau=TAU, fails=Fraction(1, 10**7)),
]
DOINGS = st.lists(
    st.one_of(
        st.tuples(st.just("spend"), st.integers(0, len(BITES) - 1)),
        st.tuples(st.just("draw"), st.integers(1, 4)),
        st.tuples(st.just("hold"), st.integers(0, len(WORKS) - 1)),
        st.tuples(st.just("raise"), st.just(0)),
    ),
    max_size=25,
)


@settings(few, max_examples=30)
@given(st.sampled_from(ACCOUNTS), st.sampled_from(WORKS), DOINGS)
@example(ACCOUNTS[1], WORKS[0], [("raise", 0), *[("hold", 0)] * 4, ("hold", 2)])  # delta runs out for plans
def test_whatever_others_do_what_is_held_can_be_drawn_to_the_last_step(
    budget: Budget, plan: Stepping, doings: list[tuple[str, int]]
) -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", budget)
    open_ = [begin(ledger, plan)]
    for number, (do, which) in enumerate(doings):
        with contextlib.suppress(BudgetError):
            if do == "spend":
                ledger.spend(("a",), BITES[which], data="a@1", grade="exact", note="")
            elif do == "hold":
                open_.append(begin(ledger, WORKS[which]))
            elif do == "raise":
                now = account_of(ledger, "a").filter.budget  # type: ignore[union-attr]
                more = Budget(epsilon=now.epsilon + 1, delta=now.delta, raisable=True)
                ledger.change_limit("a", more, reason=str(number))
        if do == "draw":
            receipt = open_[number % len(open_)]
            left = ledger.steps(receipt).left
            if left:
                ledger.draw_steps(receipt, min(which, left))
    for receipt in open_:
        if left := ledger.steps(receipt).left:
            ledger.draw_steps(receipt, left)
        assert ledger.steps(receipt) == (7, 0)
    for member in account_of(ledger, "a").filter.open:  # type: ignore[union-attr]
        assert member.spent <= member.limit and member.delta_spent <= member.delta_limit
    holds(ledger)


def test_many_at_once_draw_what_was_held_and_no_more(durable: Stores) -> None:
    place = durable.place()
    ledger = Ledger(durable.again(place))
    ledger.open_account("a", Budget(rho=1))
    receipt = begin(ledger, work(times=12), key="k")
    desks = [Ledger(durable.again(place)) for _ in range(4)]

    def draws(desk: Ledger) -> int:
        drawn = 0
        for _ in range(6):
            try:
                desk.draw_steps(receipt, 1)
            except BudgetError:
                return drawn
            drawn += 1
        return drawn

    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(draws, desks))
    assert sum(drawn) == 12 and spent(ledger, "a") == [12 * RHO]
    holds(ledger)


def test_a_ledger_opened_anew_knows_how_far_it_came(durable: Stores) -> None:
    place = durable.place()
    ledger = Ledger(durable.again(place))
    ledger.open_account("a", Budget(rho=1))
    plan = work()
    receipt = begin(ledger, plan, key="k")
    ledger.draw_steps(receipt, 4)
    ledger.shut()
    ledger = Ledger(durable.again(place))
    assert ledger.paid("k", ("a",), plan, data="a@1") == (receipt, None) and ledger.steps(receipt) == (4, 2)
    ledger.close(receipt)
    assert ledger.steps(receipt) == (4, 0), "from the entries, where nothing is held any more"
    holds(ledger)


def test_a_hold_that_was_freed_before_anything_was_drawn_is_over(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(rho=1)})
    receipt = begin(ledger, work(), key="k")
    ledger.close(receipt)
    with pytest.raises(ReceiptError, match="nothing was drawn"):
        ledger.steps(receipt)
    holds(ledger)


def test_holds_of_earlier_versions_are_read_as_they_were_written() -> None:
    """A stored account is compared with its own text: a new field in hold/1 would make every old hold unreadable."""
    from sfumato import record
    from sfumato.accounting.filters import Hold

    event = b'{"epsilon":{"is":"exact","value":"1"},"is":"laplace/1","relation":"add-remove"}'
    text = b'{"delta":{"is":"exact","value":"0"},"drawn":[],"event":' + event + b',"is":"hold/1"}'
    assert record.canonical(record.parse(text, Hold)) == text
