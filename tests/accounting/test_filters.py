"""Privacy filters: exact sums, members that close for good, and no adaptive way past either."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, events, record
from sfumato.accounting import approximate, pure, zcdp
from sfumato.accounting.filters import Concentrated, Filter, PlanSum, PureSum
from sfumato.errors import BudgetError, UnsupportedEventError
from sfumato.events import Approximate, Exponential, Gaussian, Laplace, Pure, Repeat, Sequence, ZeroConcentrated
from tests.helpers import few, many

ZERO = Fraction(0)


def spend(filter_: Filter, event: events.Event, delta: Any = ZERO, times: int = 1) -> Filter:
    for _ in range(times):
        filter_ = filter_.spend(event, Fraction(delta))
    return filter_


def fits(filter_: Filter, event: events.Event, delta: Fraction) -> bool:
    return any(member.add(event, delta) is not None for member in filter_.open)


# L11: exactness


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.1, 10), (Fraction(1, 3), 3), (0.01, 100), (0.001, 1000), (Fraction(1, 7), 7)]
)
def test_l11_a_budget_of_one_takes_exactly_that_many(epsilon: Any, times: int) -> None:
    full = spend(Filter.of(Budget(epsilon=1)), Laplace(epsilon=epsilon), times=times)
    assert full.open[0].left == 0
    assert not fits(full, Laplace(epsilon=1e-9), ZERO)
    with pytest.raises(BudgetError):
        full.spend(Laplace(epsilon=epsilon), ZERO)


def test_l11_a_million_millionths_make_one() -> None:
    millionths = Repeat(Laplace(epsilon=1e-6), 10**4)
    full = spend(Filter.of(Budget(epsilon=1)), millionths, times=100)
    assert full.open[0].spent == 1 and not fits(full, Laplace(epsilon=1e-9), ZERO)


def test_l11_floats_would_not_have_added_up() -> None:
    assert sum([0.1] * 10) != 1.0 and sum([0.1] * 3) > 0.3


def test_l11_rho_adds_exactly_too() -> None:
    full = spend(Filter.of(Budget(rho=1)), ZeroConcentrated(rho=0.1), times=10)
    assert full.open[0].left == 0 and not fits(full, Gaussian(multiplier=10**6), ZERO)
    assert spend(Filter.of(Budget(rho=1)), Gaussian(multiplier=2), times=8).open[0].left == 0


def test_the_textbook_budget_denies_the_fifth_query() -> None:
    filter_ = Filter.of(Budget(epsilon=5))
    for epsilon in (0.5, 1.0, 0.8, 1.5):
        filter_ = spend(filter_, Laplace(epsilon=epsilon))
    with pytest.raises(BudgetError, match=r"asked 2, spent 3\.8, left 1\.2"):
        spend(filter_, Laplace(epsilon=2.0))
    assert spend(filter_, Laplace(epsilon=1.2)).open[0].left == 0  # a refusal changes nothing


# Members


def test_a_budget_fixes_its_members_and_their_shares_at_birth() -> None:
    assert [type(member) for member in Budget(epsilon=1).members()] == [PureSum]
    assert [type(member) for member in Budget(rho=1).members()] == [Concentrated]
    sums, concentrated = Budget(epsilon=1, delta=1e-6).members()
    assert isinstance(sums, PlanSum) and isinstance(concentrated, Concentrated)
    share = Fraction(1, 2 * 10**6)
    assert sums.delta_limit == share and sums.limit == 1
    assert concentrated.limit == zcdp.largest_rho(Fraction(1), share)
    assert zcdp.epsilon(concentrated.limit, share) <= 1  # the two shares make the whole delta, no more


def test_a_pure_budget_never_takes_what_needs_a_delta() -> None:
    filter_ = Filter.of(Budget(epsilon=1))
    for event in (Gaussian(multiplier=100), ZeroConcentrated(rho=1e-9), Approximate(epsilon=0.1, delta=1e-9)):
        with pytest.raises(BudgetError, match="no pure epsilon"):
            filter_.spend(event, Fraction(1, 1000))


def test_a_rho_budget_never_takes_what_may_fail_outright() -> None:
    with pytest.raises(BudgetError, match="no zCDP price"):
        Filter.of(Budget(rho=1)).spend(Approximate(epsilon=0.1, delta=1e-9), Fraction(1, 1000))


def test_a_member_closes_for_good() -> None:
    start = Filter.of(Budget(epsilon=1, delta=1e-6))
    # A release that only the plan sum can price: the concentrated member is gone, also for what it could price.
    one = spend(start, Approximate(epsilon=0.5, delta=1e-8), 1e-8)
    assert [type(member) for member in one.open] == [PlanSum]
    two = spend(one, Laplace(epsilon=0.1), times=5)
    assert [type(member) for member in two.open] == [PlanSum] and two.open[0].left == 0
    assert not fits(two, Laplace(epsilon=0.001), ZERO)
    # Many small ones that only the concentrated member has room for: the plan sum is gone for good.
    small = Laplace(epsilon=0.02)
    many_ = spend(start, small, times=50)
    assert len(many_.open) == 2
    more = spend(many_, small)
    assert [type(member) for member in more.open] == [Concentrated]
    with pytest.raises(BudgetError):
        spend(more, Approximate(epsilon=1e-9, delta=1e-12), 1e-12)


def test_the_delta_of_plans_is_counted_within_its_share() -> None:
    filter_ = Filter.of(Budget(epsilon=10, delta=1e-6))
    bite = Approximate(epsilon=0.001, delta=1e-7)
    filter_ = spend(filter_, bite, Fraction(1, 10**7), times=5)
    with pytest.raises(BudgetError, match=r"delta: asked 1e-07, left 0 \(of the account"):
        spend(filter_, bite, Fraction(1, 10**7))
    # also where the event itself would be happy with less
    greedy = Filter.of(Budget(epsilon=10, delta=1e-6))
    after = greedy.spend(Laplace(epsilon=0.1), Fraction(4, 10**7)).spend(Laplace(epsilon=0.1), Fraction(4, 10**7))
    assert [type(member) for member in after.open] == [Concentrated]


def test_a_refusal_says_what_was_asked_spent_and_left() -> None:
    filter_ = spend(Filter.of(Budget(epsilon=1, delta=1e-6)), Laplace(epsilon=0.75))
    with pytest.raises(BudgetError) as caught:
        filter_.spend(Laplace(epsilon=2), ZERO)
    text = str(caught.value)
    assert "budget of epsilon = 1, delta = 1e-06 does not cover" in text and "nothing was charged" in text
    assert "epsilon: asked 2, spent 0.75, left 0.25; delta: asked 0, left 5e-07" in text
    assert "rho: asked 2, spent 0.28125, left " not in text  # that member closed with the first release
    assert "Fix: ask for less" in text
    with pytest.raises(BudgetError, match=r"rho: asked 2, spent 0\.00125, left "):
        spend(Filter.of(Budget(epsilon=1, delta=1e-6)), Laplace(epsilon=0.05)).spend(Laplace(epsilon=2), ZERO)


def test_budgets_are_values_in_words() -> None:
    assert str(Budget(epsilon=0.1)) == "epsilon = 0.1" and str(Budget(rho=2)) == "rho = 2"
    assert str(Budget(epsilon=1, delta=1e-6)) == "epsilon = 1, delta = 1e-06"
    for budget in (Budget(epsilon=0.1), Budget(epsilon=1, delta=1e-6), Budget(rho=0.5)):
        assert record.parse(record.canonical(budget), Budget) == budget


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=0.5)])
def test_a_whole_budget_is_one_event(budget: Budget) -> None:
    event = budget.event("replace")
    assert event.relation == "replace"
    assert isinstance(
        event, {True: ZeroConcentrated}.get(budget.rho is not None, Approximate if budget.delta else Pure)
    )
    roomy = Budget(epsilon=1, delta=4e-6) if budget.delta else budget
    assert fits(Filter.of(roomy), event, budget.delta)


def test_tiny_budgets_still_have_a_member() -> None:
    for budget in (Budget(epsilon=1e-9, delta=1e-100), Budget(epsilon=1e-9), Budget(rho=1e-90)):
        assert Filter.of(budget).open
    hard = Filter.of(Budget(epsilon=1e-9, delta=1e-100))
    assert spend(hard, Laplace(epsilon=1e-9)).open


# An adaptive adversary

MENU: list[tuple[events.Event, Fraction]] = [
    (Laplace(epsilon=0.1), ZERO),
    (Laplace(epsilon=0.5), ZERO),
    (Laplace(epsilon=0.013), Fraction(1, 10**7)),
    (Exponential(epsilon=0.2), ZERO),
    (Gaussian(multiplier=4), Fraction(1, 10**8)),
    (Gaussian(multiplier=20), ZERO),
    (Gaussian(multiplier=3), Fraction(1, 10**7)),
    (ZeroConcentrated(rho=0.01), ZERO),
    (Approximate(epsilon=0.05, delta=1e-8), Fraction(1, 10**8)),
    (Repeat(Gaussian(multiplier=30), 10), ZERO),
    (Sequence((Laplace(epsilon=0.1), Gaussian(multiplier=8))), Fraction(1, 10**8)),
    (Laplace(epsilon=9), ZERO),
]


BUDGETS = [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(epsilon=0.3, delta=1e-4), Budget(rho=0.05)]


def sums(taken: list[tuple[events.Event, Fraction]], kind: type[Any]) -> tuple[Any, Fraction]:
    """What an outsider adds up for one member; infinity where one of them has no price there."""
    total, deltas = Fraction(0), Fraction(0)
    for event, delta in taken:
        deltas += delta
        try:
            if kind is PureSum:
                total += pure.epsilon(event)
            else:
                total += approximate.epsilon(event, delta) if kind is PlanSum else zcdp.rho(event)
        except UnsupportedEventError:
            return math.inf, deltas
    return total, deltas


@many
@given(
    st.sampled_from(
        [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(epsilon=0.3, delta=1e-4), Budget(rho=0.05)]
    ),
    st.lists(st.integers(0, len(MENU) - 1), max_size=40),
)
def test_no_choice_of_releases_exceeds_a_member(budget: Budget, picks: list[int]) -> None:
    filter_, taken = Filter.of(budget), []
    kinds = {type(member) for member in filter_.open}
    for pick in picks:
        event, delta = MENU[pick]
        room = fits(filter_, event, delta)
        try:
            after = filter_.spend(event, delta)
        except BudgetError:
            assert not room
            continue
        assert room
        taken.append((event, delta))
        now = {type(member) for member in after.open}
        assert now and now <= kinds  # some member holds, and none comes back
        kinds, filter_ = now, after
        for member in filter_.open:
            total, deltas = sums(taken, type(member))
            assert member.spent == total <= member.limit
            if isinstance(member, PlanSum):
                assert member.delta_spent == deltas <= member.delta_limit
    # what was refused at the end would have passed every member's limit, or closed the last one
    for event, delta in MENU:
        if not fits(filter_, event, delta):
            for member in filter_.open:
                total, deltas = sums([*taken, (event, delta)], type(member))
                over = isinstance(member, PlanSum) and deltas > member.delta_limit
                assert total > member.limit or over


@few
@given(st.lists(st.integers(0, len(MENU) - 1), max_size=15), st.integers(0, len(MENU) - 1))
def test_spending_is_a_function_without_side_effects(picks: list[int], last: int) -> None:
    filter_ = Filter.of(Budget(epsilon=2, delta=1e-6))
    for pick in picks:
        if fits(filter_, *MENU[pick]):
            filter_ = filter_.spend(*MENU[pick])
    before = repr(filter_)
    try:
        first, second = filter_.spend(*MENU[last]), filter_.spend(*MENU[last])
        assert first == second
    except BudgetError:
        pass
    assert repr(filter_) == before


@pytest.mark.parametrize("bad", [Fraction(-1), Fraction(-1, 10**12), 1, 2, math.nan, math.inf, -math.inf, "0", None])
@pytest.mark.parametrize(
    "event", [Laplace(epsilon=0.01), Gaussian(multiplier=50), Approximate(epsilon=0.1, delta=1e-9)]
)
def test_l12_an_impossible_delta_is_refused_or_closes_the_plan_sum(event: events.Event, bad: Any) -> None:
    start = Filter.of(Budget(epsilon=1, delta=1e-6))
    try:
        after = start.spend(event, bad)
    except Exception:  # any refusal will do
        return
    assert [type(member) for member in after.open] == [Concentrated] and after.open[0].spent == zcdp.rho(event)


def test_l12_an_event_that_claims_a_negative_price_is_refused() -> None:
    class Refund(Laplace):
        epsilon = property(lambda self: Fraction(-1), lambda self, value: None)  # type: ignore[assignment]

    refund = object.__new__(Refund)
    object.__setattr__(refund, "relation", "add-remove")
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)):
        with pytest.raises(Exception):  # noqa: B017
            Filter.of(budget).spend(refund, ZERO)
