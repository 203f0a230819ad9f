"""Recorded charges: adding them up gives the same filter as pricing the events did, and no charge gives room back."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, events, record
from sfumato.accounting import filters
from sfumato.accounting.budget import common_shares
from sfumato.accounting.filters import Charge, Failures, Filter, GaussianSum, Hold, PlanSum, PureSum, SmoothedSum
from sfumato.errors import BudgetError, RecordError

settled = settings(derandomize=True, deadline=None, max_examples=120)
NOTHING = Fraction(0)

BUDGETS = (
    Budget(epsilon=1),
    Budget(epsilon=2, delta=1e-6),
    Budget(epsilon=2, delta=1e-6, shares=common_shares(Fraction(2), Fraction(1, 10**6))),
    Budget(epsilon=1, delta=1e-6, raisable=True),
    Budget(epsilon=1, delta=1e-6, shares={"plans": 1}),
    Budget(rho=0.1),
)
RELEASES: tuple[tuple[events.Event, Fraction], ...] = (
    (events.Laplace(epsilon=0.25), NOTHING),
    (events.Pure(epsilon=0.1), NOTHING),
    (events.Gaussian(multiplier=20), NOTHING),
    (events.Gaussian(multiplier=10), Fraction(1, 10**8)),
    (events.Gaussian(multiplier=5), Fraction(1, 10**6)),
    (events.Approximate(epsilon=1, delta=1e-6), Fraction(1, 10**6)),  # takes all of delta: only a first release can
    (events.ZeroConcentrated(rho=0.001), NOTHING),
    (events.Approximate(epsilon=0.2, delta=1e-8), Fraction(1, 10**8)),
)
budgets = st.sampled_from(BUDGETS)
releases = st.lists(st.sampled_from(RELEASES), max_size=12)


def spend_of_before(filter_: Filter, event: events.Event, delta: Fraction, holds: Any = ()) -> Filter:
    """`Filter.spend` as it was before charges were written down, word by word."""
    for shape in filter_.shapes():
        after = []
        for member in shape.open:
            try:
                price, failure = member.price(event, delta), member.failure(event, delta)
            except Exception:
                continue
            grown = member.add((price, failure))
            if grown is not None:
                after.append(grown)
        if shape.open[-1].apart:  # each member counts by itself, and failures have one that must stay
            alive = any(not member.required for member in after)
            members = tuple(after) if alive and any(member.required for member in after) else ()
            if members and (not holds or filters.backed(members, holds)):
                return replace(shape, open=members, count=filter_.count + 1)
            continue
        failed = max((member.delta_spent for member in after), default=NOTHING)
        members = tuple(m if m.delta_spent == failed else replace(m, delta_spent=failed) for m in after)
        if members and (not holds or any(member.backs(holds) for member in members)):
            return replace(shape, open=members, count=filter_.count + 1)
    raise BudgetError("refused")


@settled
@given(budgets, releases)
def test_spending_gives_what_it_gave_before(budget: Budget, history: list[Any]) -> None:
    now = old = Filter.of(budget)
    for event, delta in history:
        try:
            old = spend_of_before(old, event, delta)
        except BudgetError:
            with pytest.raises(BudgetError):
                now.spend(event, delta)
        else:
            now = now.spend(event, delta)
        assert now == old


@settled
@given(budgets, releases)
def test_recorded_charges_add_up_to_the_same_filter(budget: Budget, history: list[Any]) -> None:
    """Through JSON, and with an accountant that has forgotten every price."""
    spending = Filter.of(budget)
    written = []
    for event, delta in history:
        with contextlib.suppress(BudgetError):
            charge = spending.charge(event, delta)
            spending = spending.after(charge)
            written.append(record.canonical(charge))
    replayed = Filter.of(budget)
    with pytest.MonkeyPatch.context() as patched:
        for kind in (PlanSum, PureSum, GaussianSum, SmoothedSum, Failures):
            patched.setattr(kind, "price", None)
        for body in written:
            replayed = replayed.after(record.parse(body, Charge))
    assert replayed == spending and replayed.count == len(written)


@settled
@given(budgets, releases, st.sampled_from(RELEASES))
def test_what_others_hold_is_left_alone(budget: Budget, history: list[Any], held: Any) -> None:
    filter_, hold = Filter.of(budget), Hold(*held)
    try:
        filter_ = filter_.shaped(*held)
    except BudgetError:
        return
    for event, delta in history:
        with contextlib.suppress(BudgetError):
            filter_ = filter_.after(filter_.charge(event, delta, [hold]))
            assert filters.backed(filter_.open, [hold])


def charged(budget: Budget = BUDGETS[1]) -> tuple[Filter, Charge]:
    filter_ = Filter.of(budget)
    return filter_, filter_.charge(*RELEASES[0])


def test_asking_the_price_costs_nothing() -> None:
    filter_, charge = charged()
    assert charge == filter_.charge(*RELEASES[0]) and filter_ == Filter.of(BUDGETS[1]) and charge.shape is None


@pytest.mark.parametrize("wrong", [(Fraction(-1, 9), NOTHING), (NOTHING, Fraction(-1, 9)), (0.1, NOTHING), (NOTHING,)])
def test_a_charge_below_nothing_is_no_charge(wrong: Any) -> None:
    with pytest.raises(BudgetError, match="less than nothing"):
        Charge((wrong,))
    body = record.canonical(charged()[1]).replace(b'"1/4"', b'"-1/4"')
    with contextlib.suppress(RecordError, BudgetError):
        assert record.parse(body, Charge) == charged()[1], "it was not changed"
        pytest.fail("a negative charge was read back")


def test_a_charge_for_fewer_or_more_members_is_refused() -> None:
    filter_, charge = charged()
    assert len(charge.prices) > 1
    for prices in ((), charge.prices[:-1], (*charge.prices, charge.prices[0]), (None,) * len(charge.prices)):
        with pytest.raises(BudgetError, match="does not cover"):
            filter_.after(Charge(prices))


def test_a_charge_above_the_budget_is_refused() -> None:
    filter_, charge = charged()
    with pytest.raises(BudgetError, match="does not cover"):
        filter_.after(Charge(tuple((Fraction(3), NOTHING) for _ in charge.prices)))
    with pytest.raises(BudgetError, match="does not cover"):
        filter_.after(Charge(tuple((NOTHING, Fraction(1, 2)) for _ in charge.prices)))


def test_only_the_first_release_chooses_members_and_only_of_its_own_budget() -> None:
    fresh, _ = charged()
    first = fresh.charge(events.Approximate(epsilon=2, delta=1e-6), Fraction(1, 10**6))
    assert first.shape is not None and first.shape in fresh.shapes()
    after = fresh.after(first)
    assert after.count == 1 and len(after.open) == 1
    used = fresh.spend(*RELEASES[0])
    richer = Filter.of(Budget(epsilon=9, delta=1e-6))
    for filter_, shape in (
        (used, first.shape),  # after a release
        (fresh, richer),  # another budget
        (fresh, replace(first.shape, count=1)),
        (fresh, replace(first.shape, version=2)),
        (replace(fresh, version=2), first.shape),  # after a raise
    ):
        prices = tuple((NOTHING, NOTHING) for _ in shape.open)
        with pytest.raises(BudgetError, match="does not cover"):
            filter_.after(Charge(prices, shape))


@settled
@given(budgets, releases)
def test_the_part_used_never_falls_and_is_one_at_most(budget: Budget, history: list[Any]) -> None:
    filter_ = Filter.of(budget)
    for event, delta in history:
        before = {type(m): m.spent for m in filter_.open}
        with contextlib.suppress(BudgetError):
            filter_ = filter_.spend(event, delta)
        assert 0 <= filter_.used <= 1
        assert all(m.spent >= before.get(type(m), NOTHING) for m in filter_.open if len(before) == len(filter_.open))


# remembered prices


def without_plans(shares: dict[str, float]) -> Filter:
    """An account whose sum of plans is closed: what is left still allows failures."""
    filter_ = Filter.of(Budget(epsilon=1, delta=1e-6, shares=shares))
    while any(member.by_plan for member in filter_.open):
        filter_ = filter_.spend(events.Gaussian(multiplier=40), Fraction(1, 10**8))
    return filter_


FAILING = events.Approximate(epsilon=0.01, delta=1e-9), Fraction(1, 10**9)
ALIKE = (  # members of the same names, with room for failures and without
    (without_plans({"plans": 0.2, "concentrated": 0.8}), Filter.of(Budget(rho=1))),
    (
        without_plans({"plans": 0.2, "gaussian": 0.4, "concentrated": 0.4}),
        Filter.of(Budget(epsilon=1, delta=1e-6, shares={"gaussian": 0.5, "concentrated": 0.5})),
    ),
)


@pytest.mark.parametrize(("allowing", "strict"), ALIKE)
@pytest.mark.parametrize("strict_first", [True, False])
def test_what_another_account_was_charged_changes_no_price(
    allowing: Filter, strict: Filter, strict_first: bool
) -> None:
    assert [m.name for m in allowing.open] == [m.name for m in strict.open]

    def answers(*asked: Filter) -> dict[Filter, Any]:
        filters._CHARGES.clear()
        found: dict[Filter, Any] = {}
        for filter_ in asked:
            try:
                found[filter_] = filter_.charge(*FAILING)
            except BudgetError as problem:
                found[filter_] = str(problem)
        return found

    together = answers(strict, allowing) if strict_first else answers(allowing, strict)
    assert together == answers(strict) | answers(allowing)
    assert isinstance(together[allowing], Charge) and None not in together[allowing].prices


def test_a_price_that_is_known_lets_no_float_delta_in() -> None:
    filter_ = Filter.of(Budget(epsilon=1))
    for _ in range(2):
        with pytest.raises(BudgetError, match="less than nothing"):
            filter_.charge(events.Laplace(epsilon=0.25), 0.0)  # type: ignore[arg-type]
        filter_.charge(events.Laplace(epsilon=0.25), NOTHING)


@settled
@given(st.lists(st.tuples(budgets, st.sampled_from(RELEASES)), max_size=12))
def test_remembered_prices_are_those_that_would_be_worked_out(asked: list[Any]) -> None:
    for budget, (event, delta) in asked:
        for shape in Filter.of(budget).shapes():
            assert filters._charge(shape.open, event, delta).prices == tuple(m.charge(event, delta) for m in shape.open)


# lowered


@settled
@given(st.sampled_from([b for b in BUDGETS if b.rho is None]), releases, st.fractions(Fraction(1, 20), 1))
def test_a_lowered_filter_has_smaller_limits_and_the_same_past(
    budget: Budget, history: list[Any], part: Fraction
) -> None:
    filter_ = Filter.of(budget)
    for event, delta in history:
        with contextlib.suppress(BudgetError):
            filter_ = filter_.spend(event, delta)
    less = replace(budget, epsilon=budget.epsilon * part)
    try:
        lowered = filter_.lowered(less)
    except BudgetError:
        assert all(m.spent > 0 or m.required for m in filter_.open)
        return
    old = {(type(m), getattr(m, "order", None)): m for m in filter_.open}
    assert lowered.count == filter_.count and lowered.budget.epsilon == less.epsilon
    for member in lowered.open:
        was = old.get((type(member), getattr(member, "order", None)))
        if filter_.count:
            assert was is not None and member.limit <= was.limit
            assert (member.spent, member.delta_spent) == (was.spent, was.delta_spent)
        assert member.spent <= member.limit
    if filter_.count:  # whatever it still takes, a filter that was born so small would have taken no less strictly
        for event, delta in RELEASES:
            with contextlib.suppress(BudgetError):
                after = lowered.spend(event, delta)
                assert any(filter_.spend(event, delta).open) and after.count == lowered.count + 1


def test_lowering_neither_raises_nor_exchanges() -> None:
    used = Filter.of(Budget(epsilon=1, delta=1e-6)).spend(*RELEASES[0])
    for budget in (Budget(epsilon=2, delta=1e-6), Budget(epsilon=0.5, delta=1e-5), Budget(epsilon=0.5, delta=1e-7)):
        with pytest.raises(BudgetError, match="can be lowered at the same delta"):
            used.lowered(budget)
    with pytest.raises(BudgetError, match="what was spent already"):
        Filter.of(Budget(epsilon=1)).spend(*RELEASES[0]).lowered(Budget(epsilon=0.2))


# within


pure = st.builds(lambda e: Budget(epsilon=e), st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(1), 2]))
approximate = st.builds(
    lambda e, d: Budget(epsilon=e, delta=d), st.sampled_from([0.1, 0.5, 1, 2]), st.sampled_from([1e-9, 1e-6, 1e-5])
)
concentrated = st.builds(lambda r: Budget(rho=r), st.sampled_from([0.001, 0.005, 0.1, 0.5, 2]))
any_budget = st.one_of(pure, approximate, concentrated)


@settled
@given(any_budget, any_budget, any_budget)
def test_within_is_an_order(a: Budget, b: Budget, c: Budget) -> None:
    assert a.within(a)
    if a.within(b) and b.within(c) and (a.rho is None) == (c.rho is None):
        assert a.within(c)
    if a.within(b) and b.within(a) and (a.rho is None) == (b.rho is None):
        assert (a.epsilon, a.delta, a.rho) == (b.epsilon, b.delta, b.rho)


def test_within_across_notions() -> None:
    assert Budget(epsilon=1).within(Budget(rho=0.5)) and not Budget(epsilon=1).within(Budget(rho=0.1))
    assert not Budget(epsilon=0.001, delta=1e-9).within(Budget(rho=100))
    assert Budget(rho=0.01).within(Budget(epsilon=1, delta=1e-6)) and not Budget(rho=0.01).within(Budget(epsilon=9))
    assert not Budget(epsilon=1, delta=1e-6).within(Budget(epsilon=1))
