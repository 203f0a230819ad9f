"""Failures counted apart: plain counts take nothing from what unknown keys need, and every count keeps its limit."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, record
from sfumato.accounting import approximate, gdp, members, price, renyi, smoothing
from sfumato.accounting.budget import HalvesBudget, common_shares, fresh_part
from sfumato.accounting.filters import (
    Failures,
    Filter,
    HeldSteps,
    Hold,
    PlanSum,
    RenyiOrder,
    SmoothedSum,
    backed,
)
from sfumato.errors import ArgumentError, BudgetError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    Bundle,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Poisson,
    Pure,
    Repeat,
    Sequence,
    ZeroConcentrated,
)
from tests.helpers import few, many

ZERO = Fraction(0)
BUDGET = Budget(epsilon=2, delta=1e-6)


def keys(multiplier: Any, delta: Fraction) -> tuple[Event, Fraction]:
    """A query whose groups are not known."""
    return Bundle((Gaussian(multiplier=multiplier), Approximate(epsilon=0, delta=delta / 2))), delta


def member(filter_: Filter, kind: type[Any]) -> Any:
    return next(each for each in filter_.open if isinstance(each, kind))


def test_the_default_shares_name_what_is_for_failures() -> None:
    assert [(name.partition(":")[0], share) for name, share in BUDGET.shares] == [
        ("plans", Fraction(1, 10)),
        ("smoothed", Fraction(9, 20)),
        ("renyi", Fraction(1, 5)),
        ("failures", Fraction(1, 4)),
    ]
    start = Filter.of(BUDGET)
    assert [type(each) for each in start.open] == [PlanSum, SmoothedSum, RenyiOrder, Failures]
    assert member(start, Failures).limit == Fraction(25, 10**8)
    smoothed = member(start, SmoothedSum)
    # the curve gets ten elevenths of its share; a twenty-fifth of its mu^2 is kept back
    whole = smoothed.limit + 1 / smoothed.kept**2
    assert gdp.least_epsilon(whole, Fraction(9, 22 * 10**6)) <= 2 + Fraction(1, 10**9)
    assert 1 / smoothed.kept**2 / whole == pytest.approx(1 / 25, rel=1e-9)
    assert smoothed.delta_limit == 32 * smoothed.cut == Fraction(9, 22 * 10**7)
    assert BUDGET.whole == BUDGET.delta


def test_plain_counts_leave_room_for_unknown_keys() -> None:
    """The wall that there was: six counts of a tenth of delta each, and no query with unknown keys at any price."""
    tenth = BUDGET.delta / 10
    count = Gaussian(multiplier=gdp.least_multiplier(Fraction(2, 5), tenth)), tenth
    asked = keys(gdp.least_multiplier(Fraction(2, 5), tenth / 2), tenth)
    for budget, wall in ((Budget(2, 1e-6, shares=common_shares(Fraction(2), BUDGET.delta)), True), (BUDGET, False)):
        account = Filter.of(budget)
        for _ in range(6):
            account = account.spend(*count)
        assert account.fits(*asked) is not wall
        assert account.fits(*keys(400, tenth)) is not wall  # at no price
    assert member(account, Failures).spent == 0  # counts took nothing of it


def test_what_fails_by_itself_is_refused_where_its_count_is_full_whoever_else_has_room() -> None:
    account = Filter.of(BUDGET)
    for _ in range(5):
        account = account.spend(*keys(100, Fraction(1, 10**7)))
    assert member(account, Failures).left == 0
    with pytest.raises(BudgetError, match="delta"):
        account.spend(*keys(100, Fraction(1, 10**9)))
    assert account.fits(Gaussian(multiplier=100), Fraction(1, 10**9))


def test_plans_close_by_their_own_delta_and_take_nothing_along() -> None:
    account = Filter.of(BUDGET).spend(Gaussian(multiplier=50), Fraction(9, 10**8))
    assert member(account, PlanSum).delta_spent == Fraction(9, 10**8)
    account = account.spend(Gaussian(multiplier=50), Fraction(9, 10**8))
    assert PlanSum not in map(type, account.open) and member(account, Failures).spent == 0
    account = account.spend(*keys(50, Fraction(2, 10**8)))
    assert member(account, Failures).spent == Fraction(1, 10**8)


def test_a_count_of_failures_is_no_member_to_lean_on() -> None:
    for bad in ({"failures": 1}, {"smoothed": 0.9}, {"smoothed": 0.9, "plans": 0.1}):
        with pytest.raises(ArgumentError, match="shares"):
            Budget(epsilon=1, delta=1e-6, shares=bad)
    tight = Filter.of(Budget(epsilon=1, delta=1e-6, shares={"plans": 0.5, "failures": 0.5}))
    full = tight.spend(Laplace(epsilon=0.6), ZERO).spend(Laplace(epsilon=0.4), ZERO)
    with pytest.raises(BudgetError):
        full.spend(Laplace(epsilon=1e-6), ZERO)  # nothing fails, but nobody bounds the loss


def test_stored_budgets_of_before_are_read_as_they_were() -> None:
    shares = common_shares(Fraction(1), Fraction(1, 10**6))
    before = Budget(epsilon=1, delta=1e-6, shares=shares)
    assert not before.apart and shares[0] == ("plans", Fraction(1, 2)) and not HalvesBudget(1, 1e-6).apart
    text = record.canonical(Filter.of(before))
    assert b"apart" not in text and b"smoothed" not in text
    assert record.parse(text, Filter) == Filter.of(before)
    now = record.canonical(Filter.of(BUDGET))
    assert record.parse(now, Filter) == Filter.of(BUDGET) and b'"apart":true' in now


# The price beside a Gaussian that is kept back

EVENTS: list[Event] = [
    Laplace(epsilon=0.02),
    Laplace(epsilon=0.2),
    Laplace(epsilon=1.5),
    Exponential(epsilon=0.3),
    Pure(epsilon=0.1),
    Sequence((Gaussian(multiplier=20), Laplace(epsilon=0.1))),
    Repeat(Laplace(epsilon=0.05), 4),
    Repeat(Poisson(Gaussian(multiplier=2), Fraction(1, 20)), 100),
    Poisson(Laplace(epsilon=1), Fraction(1, 10)),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("kept", [Fraction(10), Fraction(3)])
def test_the_smoothed_price_lies_above_the_curve_between_all_places(event: Event, kept: Fraction) -> None:
    cut = Fraction(1, 10**9)
    cost, taken = smoothing.mu_squared(event, kept, cut)
    assert 0 < taken <= cut
    together = Sequence((event, Gaussian(multiplier=kept)))
    last = price.epsilon(together, delta=taken).upper
    places = [
        last * x for x in (0.0, 0.0013, 0.0171, 0.0719, 0.1337, 0.2221, 0.3719, 0.5003, 0.7177, 0.9191, 0.9973, 1.1)
    ]
    for place in places:
        mine = gdp.delta(math.sqrt(float(cost + 1 / kept**2)), place)
        there = price.delta(together, epsilon=place).lower
        assert there <= float(taken) + (1 - float(taken)) * mine * (1 + 1e-6)
    short = gdp.delta(math.sqrt(0.85 * float(cost) + float(1 / kept**2)), 0.0)
    tail = [gdp.delta(math.sqrt(0.85 * float(cost) + float(1 / kept**2)), x) + float(taken) for x in places]
    # and not far above it: a price a little lower would lie below the curve somewhere
    known = [price.delta(together, epsilon=x).upper for x in places]
    assert short < known[0] * (1 + 1e-9) or any(a < b for a, b in zip(tail, known, strict=True))


def test_gaussians_cost_what_they_are_and_pure_releases_less_than_alone() -> None:
    kept, cut = Fraction(10), Fraction(1, 10**9)
    assert smoothing.mu_squared(Gaussian(multiplier=7), kept, cut) == (Fraction(1, 49), 0)
    for epsilon in (0.02, 0.1, 0.5):
        event = Laplace(epsilon=epsilon)
        alone = members.mu_squared(event)
        assert epsilon**2 * 0.95 < smoothing.mu_squared(event, kept, cut)[0] < alone
    assert (
        smoothing.mu_squared(Laplace(epsilon=0.02), kept, cut)[0]
        < 1.02 * 0.0004
        < members.mu_squared(Laplace(epsilon=0.02))
    )
    with pytest.raises(UnsupportedEventError):
        smoothing.mu_squared(Laplace(epsilon=5000), kept, cut)


# An outsider adds up the same

MENU: list[tuple[Event, Fraction]] = [
    (Laplace(epsilon=0.1), ZERO),
    (Exponential(epsilon=0.3), ZERO),
    (Gaussian(multiplier=6), Fraction(1, 10**9)),
    (Gaussian(multiplier=4), Fraction(6, 10**8)),
    keys(9, Fraction(2, 10**8)),
    (Approximate(epsilon=0.05, delta=4e-8), Fraction(5, 10**8)),
    (Repeat(Poisson(Gaussian(multiplier=2), Fraction(1, 50)), 50), Fraction(1, 10**8)),
    (ZeroConcentrated(rho=0.002), ZERO),
    (Laplace(epsilon=5), ZERO),
]


def outsider(each: Any, taken: list[tuple[Event, Fraction]]) -> tuple[Any, Any]:
    """Price and what it leaves out, from the definitions."""
    total, left_out = ZERO, ZERO
    for event, delta in taken:
        own = members.own_delta(event)
        try:
            if isinstance(each, Failures):
                total += own
            elif isinstance(each, PlanSum):
                total, left_out = total + approximate.epsilon(event, delta), left_out + delta - own
            elif isinstance(each, SmoothedSum):
                cost, cut = smoothing.mu_squared(members.sure(event), each.kept, each.cut)
                total, left_out = total + cost, left_out + cut
            else:
                total += Fraction(renyi.divergence(members.sure(event), float(each.order)))
        except UnsupportedEventError:
            return math.inf, math.inf
    return total, left_out


@many
@given(st.lists(st.integers(0, len(MENU) - 1), max_size=25))
def test_no_choice_of_releases_exceeds_a_count(picks: list[int]) -> None:
    filter_, taken = Filter.of(BUDGET), []
    for pick in picks:
        try:
            after = filter_.spend(*MENU[pick])
        except BudgetError:
            if not filter_.open[-1].apart:
                continue
            trial = [(outsider(each, [*taken, MENU[pick]]), each) for each in filter_.open]
            full = any(each.required and total > each.limit for (total, _), each in trial)
            assert full or all(
                total > each.limit or left_out > each.delta_limit
                for (total, left_out), each in trial
                if not each.required
            )
            continue
        taken.append(MENU[pick])
        filter_ = after
        if not filter_.open[-1].apart:
            continue  # the first release asked for the whole of delta: one member, counted together
        assert any(not each.required for each in filter_.open) and filter_.open[-1].required
        for each in filter_.open:
            total, left_out = outsider(each, taken)
            assert each.spent == total <= each.limit and each.delta_spent == left_out <= each.delta_limit


@few
@given(st.lists(st.integers(0, len(MENU) - 1), max_size=12), st.integers(0, len(MENU) - 1))
def test_what_is_held_can_be_drawn(picks: list[int], held: int) -> None:
    start, hold = Filter.of(BUDGET), Hold(*MENU[held])
    try:
        account = start.shaped(*MENU[held])
    except BudgetError:
        return
    if not backed(account.open, [hold]):
        return
    for pick in picks:
        try:
            account = account.spend(*MENU[pick], [hold])
        except BudgetError:
            continue
        assert backed(account.open, [hold])
    assert account.spend(*MENU[held]).open


def test_steps_count_their_own_failures_as_they_come() -> None:
    step = Bundle((Gaussian(multiplier=30), Approximate(epsilon=0, delta=1e-10)))
    work = HeldSteps(Repeat(step, 100), Fraction(2, 10**8))
    account = Filter.of(BUDGET)
    for number in range(1, 11):
        block = work.block(10)
        account = account.charged(block, work.delta, drawing=True)[1]
        work = work.after(block, any(each.by_plan and not each.apart for each in account.open))
        assert member(account, Failures).spent == number * 10 * Fraction(1, 10**10) and not work.counted
        assert member(account, PlanSum).delta_spent == Fraction(1, 10**8)  # of the whole, with the first
        assert member(account, SmoothedSum).spent == 100 * Fraction(1, 900)


# Raising and lowering


def test_raising_goes_on_with_the_counts_and_replays_the_rest() -> None:
    budget = Budget(epsilon=1, delta=1e-6, raisable=True)
    past = [(Laplace(epsilon=0.05), ZERO), keys(30, Fraction(2, 10**8)), (Gaussian(multiplier=20), Fraction(1, 10**8))]
    account = Filter.of(budget)
    for event, delta in past:
        account = account.spend(event, delta)
    for k in (2, 3, 4):
        account = account.raised(Budget(epsilon=k, delta=1e-6, raisable=True), past)
        steady = member(account, Failures), member(account, PlanSum)
        assert steady[0].limit == Fraction(25, 10**8) and steady[0].spent == Fraction(1, 10**8)
        assert steady[1].limit == k and steady[1].delta_spent == Fraction(2, 10**8)
        smoothed = member(account, SmoothedSum)
        share = Fraction(9, 22 * 10**6) * fresh_part(k)
        assert gdp.least_epsilon(smoothed.limit + 1 / smoothed.kept**2, share) <= k + Fraction(1, 10**9)
        assert smoothed.spent == sum(
            smoothing.mu_squared(members.sure(event), smoothed.kept, smoothed.cut)[0] for event, _ in past
        )
        assert account.shared + steady[0].limit + steady[1].delta_limit < budget.delta
    with pytest.raises(BudgetError, match="fresh share"):
        Filter.of(BUDGET).spend(*past[0]).raised(Budget(epsilon=3, delta=1e-6), past[:1])


def test_an_account_of_before_goes_on_counting_as_it_did() -> None:
    shares = common_shares(Fraction(1), Fraction(1, 10**6))
    before = Filter.of(Budget(epsilon=1, delta=1e-6, shares=shares, raisable=True)).spend(Laplace(epsilon=0.1), ZERO)
    after = before.raised(Budget(epsilon=2, delta=1e-6, raisable=True), [(Laplace(epsilon=0.1), ZERO)])
    assert not after.budget.apart and Failures not in map(type, after.open)
    chosen = Budget(epsilon=2, delta=1e-6, raisable=True, shares={"failures": 0.5, "plans": 0.5})
    with pytest.raises(ArgumentError, match="shares without 'failures'"):
        before.raised(chosen, [(Laplace(epsilon=0.1), ZERO)])
    now = Filter.of(Budget(epsilon=1, delta=1e-6, raisable=True)).spend(Laplace(epsilon=0.1), ZERO)
    with pytest.raises(ArgumentError, match="shares with 'failures'"):
        now.raised(Budget(epsilon=2, delta=1e-6, shares={"plans": 1}), [(Laplace(epsilon=0.1), ZERO)])


def test_a_first_release_that_took_all_of_delta_is_counted_when_the_account_is_raised() -> None:
    first = Approximate(epsilon=0.9, delta=9e-7), Fraction(9, 10**7)
    account = Filter.of(Budget(epsilon=1, delta=1e-6)).spend(*first)
    assert [type(each) for each in account.open] == [PlanSum] and not account.open[0].apart
    with pytest.raises(BudgetError, match="larger delta"):
        account.raised(Budget(epsilon=2, delta=1e-6), [first])
    wide = account.raised(Budget(epsilon=2, delta=1e-5), [first])
    assert member(wide, Failures).spent == Fraction(9, 10**7) and member(wide, Failures).limit == Fraction(25, 10**7)
    assert member(wide, PlanSum).spent == Fraction(9, 10)


def test_lowering_keeps_back_what_was_kept_back() -> None:
    account = Filter.of(BUDGET).spend(Laplace(epsilon=0.1), ZERO)
    less = account.lowered(Budget(epsilon=1, delta=1e-6))
    old, new = member(account, SmoothedSum), member(less, SmoothedSum)
    assert new.kept == old.kept and new.spent == old.spent
    fresh = member(Filter.of(Budget(epsilon=1, delta=1e-6)), SmoothedSum)
    assert new.limit == fresh.limit + 1 / fresh.kept**2 - 1 / old.kept**2
    assert member(less, Failures).limit == member(account, Failures).limit


def test_a_year_of_five_mixes_uses_nine_tenths() -> None:
    from bench import budget as bench

    figures = [bench.measure(BUDGET, mix, 0) for mix in bench.mixes(BUDGET)]
    assert len(figures) == 5 and all(figure.used >= 0.9 for figure in figures)
    assert all(figure.epsilon <= 2 for figure in figures)
    counted = Counter(figure.refused for figure in figures)
    assert sum(counted.values()) == 5
    # the same mixes, as accounts divided delta before: three of them meet the wall
    before = Budget(epsilon=2, delta=1e-6, shares=common_shares(BUDGET.epsilon, BUDGET.delta))
    trainings = bench.measure(before, bench.mixes(before)[3], 0)
    assert trainings.used < 0.9
