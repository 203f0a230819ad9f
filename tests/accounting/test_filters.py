"""Privacy filters: exact sums, members that close for good, and no adaptive way past either."""

from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, events, record
from sfumato.accounting import approximate, gdp, members, pure, renyi, zcdp
from sfumato.accounting.budget import HalvesBudget, fresh_part
from sfumato.accounting.filters import (
    AdaptiveSum,
    Concentrated,
    Filter,
    GaussianSum,
    Hold,
    PlanSum,
    PureSum,
    RenyiOrder,
    fully_adaptive,
)
from sfumato.errors import ArgumentError, BudgetError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    Exponential,
    Gaussian,
    Laplace,
    Partition,
    Poisson,
    Pure,
    Repeat,
    Sequence,
    ZeroConcentrated,
)
from tests.helpers import common, few, many

ZERO = Fraction(0)


def spend(filter_: Filter, event: events.Event, delta: Any = ZERO, times: int = 1) -> Filter:
    for _ in range(times):
        filter_ = filter_.spend(event, Fraction(delta))
    return filter_


def fits(filter_: Filter, event: events.Event, delta: Fraction) -> bool:
    return filter_.fits(event, delta)


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


def test_a_budget_of_before_fixes_its_members_and_their_shares_at_birth() -> None:
    assert [type(member) for member in Budget(epsilon=1).members()] == [PureSum]
    assert [type(member) for member in Budget(rho=1).members()] == [Concentrated]
    sums, gaussian, high, low = common(1, 1e-6).members()
    assert isinstance(sums, PlanSum) and isinstance(gaussian, GaussianSum)
    assert isinstance(high, RenyiOrder) and isinstance(low, RenyiOrder) and high.order > low.order > 1
    assert sums.delta_limit == Fraction(1, 2 * 10**6) and sums.limit == 1
    shares = dict(common(1, 1e-6).shares)
    assert sum(shares.values()) == 1 and shares["plans"] == Fraction(1, 2)
    # each limit is what its share of delta allows, by the books
    assert gdp.least_epsilon(gaussian.limit, Fraction(1, 4 * 10**6)) <= 1 + Fraction(1, 10**9)
    for member in (high, low):
        a, d = mpmath.mpf(int(member.order)), mpmath.mpf("1e-6") / 8
        limit = 1 - mpmath.log((a - 1) / a) + (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        assert limit - 1e-10 < float(member.limit) <= limit


def test_the_higher_order_has_room_for_all_that_a_rho_gauge_of_its_share_takes() -> None:
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-6), (3, 1e-5), (8, 1e-5)):
        for budget, share in ((common(epsilon, delta), 8), (Budget(epsilon=epsilon, delta=delta), 5)):
            high = next(member for member in budget.members() if isinstance(member, RenyiOrder))
            rho = zcdp.largest_rho(budget.epsilon, budget.delta / share)
            assert high.limit / high.order > rho * Fraction(995, 1000)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1, 10, 1e3, 1e4])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 0.01, 0.9])
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_every_budget_in_range_opens_and_takes_something(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    assert sum(share for _, share in budget.shares) == 1
    for member in budget.members():
        assert member.limit > 0
    full = Filter.of(budget).spend(Laplace(epsilon=epsilon), ZERO)
    assert full.open and record.parse(record.canonical(budget), Budget) == budget


def test_shares_can_be_chosen_and_are_stored() -> None:
    budget = Budget(epsilon=1, delta=1e-6, shares={"gaussian": 0.75, "renyi:40.5": 0.25})
    gaussian, order = budget.members()
    assert isinstance(gaussian, GaussianSum) and isinstance(order, RenyiOrder)
    assert order.order == Fraction(81, 2) and order.delta_limit == 0
    assert record.parse(record.canonical(budget), Budget) == budget
    assert [type(m) for m in Budget(epsilon=1, delta=1e-6, shares={"plans": 0.5, "adaptive": 0.5}).members()] == [
        PlanSum,
        AdaptiveSum,
    ]
    for bad in (
        {"plans": 1.1},
        {"plans": 0.6, "gaussian": 0.5},
        {"plans": 0},
        {"plans": -1},
        {"magic": 0.5},
        {"renyi:1": 0.5},
        {"renyi:x": 0.5},
        {"renyi:1e9": 0.5},
        {"renyi:2": 0.1, "renyi:2.0": 0.1},
        {f"renyi:{n}": 0.01 for n in range(2, 11)},
        {"plans": math.nan},
        "plans",
        5,
    ):
        with pytest.raises(ArgumentError, match="shares"):
            Budget(epsilon=1, delta=1e-6, shares=bad)
    with pytest.raises(ArgumentError, match="no delta to divide"):
        Budget(epsilon=1, shares={"plans": 1})
    with pytest.raises(ArgumentError, match="raisable"):
        Budget(epsilon=1, raisable=1)  # type: ignore[arg-type]


def test_the_first_stored_budgets_keep_their_members() -> None:
    text = (
        b'{"delta":{"is":"exact","value":"1/1000000"},"epsilon":{"is":"exact","value":"1"},"is":"budget/1","rho":null}'
    )
    old = record.parse(text, Budget)
    assert isinstance(old, HalvesBudget) and record.canonical(old) == text
    sums, concentrated = old.members()
    share = Fraction(1, 2 * 10**6)
    assert isinstance(sums, PlanSum) and sums.delta_limit == share and isinstance(concentrated, Concentrated)
    assert concentrated.limit == zcdp.largest_rho(Fraction(1), share)
    assert record.parse(text.replace(b"1/1000000", b"0"), Budget).members() == Budget(epsilon=1).members()


def test_a_pure_budget_never_takes_what_needs_a_delta() -> None:
    filter_ = Filter.of(Budget(epsilon=1))
    for event in (Gaussian(multiplier=100), ZeroConcentrated(rho=1e-9), Approximate(epsilon=0.1, delta=1e-9)):
        with pytest.raises(BudgetError, match="no pure epsilon"):
            filter_.spend(event, Fraction(1, 1000))


def test_a_rho_budget_never_takes_what_may_fail_outright() -> None:
    with pytest.raises(BudgetError, match="no zCDP price"):
        Filter.of(Budget(rho=1)).spend(Approximate(epsilon=0.1, delta=1e-9), Fraction(1, 1000))


def test_a_member_closes_for_good() -> None:
    start = Filter.of(common(1, 1e-6))
    # A release that only the plan sum has room for: the others are gone, also for what they could take.
    one = spend(start, Laplace(epsilon=0.75))
    assert [type(member) for member in one.open] == [PlanSum]
    two = spend(one, Laplace(epsilon=0.05), times=5)
    assert [type(member) for member in two.open] == [PlanSum] and two.open[0].left == 0
    assert not fits(two, Laplace(epsilon=0.001), ZERO)
    # Many small ones that only the curve members have room for: the plan sum is gone for good.
    small = Laplace(epsilon=0.02)
    many_ = spend(start, small, times=50)
    assert [type(member) for member in many_.open] == [PlanSum, GaussianSum, RenyiOrder, RenyiOrder]
    more = spend(many_, small)
    assert PlanSum not in {type(member) for member in more.open}
    # A sampled event has no Gaussian-DP price, a rho has none either.
    sampled = Poisson(Gaussian(multiplier=4), 0.01)
    left = start.spend(sampled, Fraction(1, 10**9))
    assert GaussianSum not in {type(member) for member in left.open} and len(left.open) >= 2
    rho = start.spend(ZeroConcentrated(rho=0.001), ZERO)
    assert {type(member) for member in rho.open} == {RenyiOrder}


def test_failures_are_counted_once_for_all_members() -> None:
    filter_ = Filter.of(common(10, 1e-6))
    bite = Approximate(epsilon=0.001, delta=1e-7)
    filter_ = spend(filter_, bite, Fraction(1, 10**7), times=5)
    assert len(filter_.open) == 4  # outside its failures the event is pure: nobody closes
    assert {member.delta_spent for member in filter_.open} == {Fraction(5, 10**7)}
    with pytest.raises(BudgetError, match=r"delta: asked 1e-07, left 0 \(of the account"):
        spend(filter_, bite, Fraction(1, 10**7))
    # also where the event itself would be happy with less: the plan sum closes, the others count the event's own
    tenths = Fraction(4, 10**7)
    greedy = Filter.of(common(10, 1e-6)).spend(Laplace(epsilon=0.1), tenths)
    after = greedy.spend(Laplace(epsilon=0.1), tenths)
    assert PlanSum not in {type(member) for member in after.open}
    assert {member.delta_spent for member in after.open} == {tenths}
    with pytest.raises(BudgetError):
        after.spend(Approximate(epsilon=0.001, delta=2e-7), Fraction(2, 10**7))  # 4e-7 + 2e-7 > 5e-7
    kept = after.spend(Sequence((bite, Laplace(epsilon=0.01))), Fraction(1, 10**7))
    assert {member.delta_spent for member in kept.open} == {Fraction(5, 10**7)}


def test_an_event_is_priced_outside_its_failures() -> None:
    part = Approximate(epsilon=0.1, delta=1e-9)
    nested = Sequence((Repeat(part, 3), Laplace(epsilon=0.2), Partition("ward", (part, Laplace(epsilon=0.3)))))
    assert members.own_delta(nested) == Fraction(4, 10**9)
    twin = members.sure(nested)
    assert members.own_delta(twin) == 0 and pure.epsilon(twin) == Fraction(8, 10)
    assert members.sure(Laplace(epsilon=1)) == Laplace(epsilon=1)
    # failures under a sample have no price here: such an event closes the member
    assert members.own_delta(Poisson(part, 0.5)) == 0
    for price in (members.mu_squared, members.rho):
        with pytest.raises(UnsupportedEventError):
            price(members.sure(Poisson(part, 0.5)))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 9.99e-5, 1e-4, 1.01e-4, 0.1, 1, 5, 30, 700, 1e4])
def test_a_pure_epsilon_as_gaussian_dp_meets_the_corner_of_its_trade_off(epsilon: float) -> None:
    mu = members.pure_mu(Fraction(repr(epsilon)))
    with mpmath.workdps(60):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(repr(epsilon))))
        z = mpmath.mpf(mu.numerator) / mu.denominator / 2
        tail = mpmath.ncdf(-z) if z < 30 else mpmath.erfc(z / mpmath.sqrt(2)) / 2
        assert tail <= corner  # G_mu passes at or below the corner
        assert mpmath.log(tail) > mpmath.log(corner) - 1e-8 * max(1, epsilon)


def test_a_refusal_says_what_was_asked_spent_and_left() -> None:
    filter_ = spend(Filter.of(Budget(epsilon=1, delta=1e-6)), Laplace(epsilon=0.75))
    with pytest.raises(BudgetError) as caught:
        filter_.spend(Laplace(epsilon=2), ZERO)
    text = str(caught.value)
    assert "budget of epsilon = 1, delta = 1e-06 does not cover" in text and "nothing was charged" in text
    assert "epsilon: asked 2, spent 0.75, left 0.25 of 1; with this one it would be 2.75" in text
    assert "delta: asked 0 for unknown keys and the like, left 2.5e-07 of 2.5e-07" in text
    gauges = filter_.gauges(Laplace(epsilon=2), ZERO)
    assert "epsilon: asked 2, spent 0.75, left 0.25; delta: asked 0, left 1e-07" in gauges
    assert "mu^2" not in text  # that member closed with the first release
    assert "Fix: ask for less" in text
    several = spend(Filter.of(Budget(epsilon=1, delta=1e-6)), Laplace(epsilon=0.05))
    assert re.search(
        r"mu\^2: asked 3\.\d+, spent 0\.0028\d+, left ", "\n".join(several.gauges(Laplace(epsilon=2), ZERO))
    )
    with pytest.raises(
        BudgetError, match=r"epsilon: asked 2, spent 0\.05, left 0\.95 of 1; with this one it would be 2"
    ):
        several.spend(Laplace(epsilon=2), ZERO)


# The first release


def test_one_plan_calibrated_to_the_budget_fits_it() -> None:
    multiplier = gdp.least_multiplier(Fraction(1), Fraction(1, 10**6))
    event, delta = Gaussian(multiplier=multiplier), Fraction(1, 10**6)
    budget = Budget(epsilon=1, delta=1e-6)
    assert Filter.of(budget).fits(event, delta)
    after = Filter.of(budget).spend(event, delta)
    assert [type(member) for member in after.open] == [PlanSum] and after.open[0].left == 0
    assert not after.fits(Laplace(epsilon=1e-9), ZERO)
    # given by its multiplier alone, it has no plan price, and Gaussian DP takes it
    after = Filter.of(budget).spend(event, ZERO)
    assert [type(member) for member in after.open] == [GaussianSum]
    for slightly in (Gaussian(multiplier=multiplier * Fraction(999, 1000)), Laplace(epsilon=1.001)):
        assert not Filter.of(budget).fits(slightly, delta)
    whole = budget.event("add-remove")
    assert Filter.of(budget).spend(whole, delta).open[0].delta_spent == delta


def test_only_the_first_release_may_choose() -> None:
    multiplier = gdp.least_multiplier(Fraction(98, 100), Fraction(98, 10**8))
    event, delta = Gaussian(multiplier=multiplier), Fraction(98, 10**8)
    start = Filter.of(Budget(epsilon=1, delta=1e-6))
    assert start.fits(event, delta)
    later = start.spend(Laplace(epsilon=0.001), ZERO)
    assert not later.fits(event, delta)
    with pytest.raises(BudgetError):
        later.spend(event, delta)


def test_what_is_held_on_a_fresh_account_keeps_its_room() -> None:
    start = Filter.of(Budget(epsilon=1, delta=1e-6))
    held = Hold(Approximate(epsilon=0.9, delta=9e-7), Fraction(9, 10**7))
    shape = start.shaped(held.event, held.delta)
    assert [type(member) for member in shape.open] == [PlanSum] and shape.count == 0
    other = shape.spend(Laplace(epsilon=0.05), ZERO, [held])  # somebody else spends first, within what is left
    assert other.open[0].delta_limit == Fraction(1, 10**6)
    drawn = other.spend(Approximate(epsilon=0.9, delta=9e-7), Fraction(9, 10**7))
    assert drawn.open
    assert start.spend(Laplace(epsilon=0.05), ZERO, [held]).open == other.open  # the hold decides, also unshaped
    with pytest.raises(BudgetError, match="Room is held"):
        shape.spend(Laplace(epsilon=0.2), ZERO, [held])
    assert (
        len(shape.spend(Gaussian(multiplier=40), ZERO).open) == 3
    )  # the hold was given up: the account is still fresh


# Raising


def test_the_parts_of_all_versions_make_one() -> None:
    exact_part = [6 / (math.pi * k) ** 2 for k in range(1, 6)]
    for k, part in enumerate(exact_part, 1):
        assert part - 1e-15 < float(fresh_part(k)) <= part
        assert fresh_part(k) * Fraction(math.pi) ** 2 * k**2 < 6  # the float pi is below pi
    assert 0.999 < float(sum(fresh_part(k) for k in range(1, 1000))) < 1


def test_a_limit_is_raised_with_a_fresh_share() -> None:
    budget = common(1, 1e-6, raisable=True)
    start = Filter.of(budget)
    gaussian = next(m for m in start.open if isinstance(m, GaussianSum))
    share = budget.delta / 4 * fresh_part(1)
    assert gaussian.limit == 1 / gdp.least_multiplier(Fraction(1), share) ** 2
    past: list[tuple[events.Event, Fraction]] = [(Gaussian(multiplier=40), Fraction(1, 10**9))] * 20
    now = start
    for event, delta in past:
        now = now.spend(event, delta)
    version = now
    for k in range(2, 6):
        version = version.raised(common(k, 1e-6, raisable=True), past)
        assert version.version == k and version.count == 20
        gaussian = next(m for m in version.open if isinstance(m, GaussianSum))
        share = Fraction(1, 4 * 10**6) * fresh_part(k)
        assert gaussian.limit == 1 / gdp.least_multiplier(Fraction(k), share) ** 2
        assert gaussian.spent == 20 * Fraction(1, 1600)
        assert version.shared + Fraction(1, 2 * 10**6) < Fraction(1, 10**6)
        if any(isinstance(m, PlanSum) for m in now.open):
            sums = next(m for m in version.open if isinstance(m, PlanSum))
            before = next(m for m in now.open if isinstance(m, PlanSum))
            assert sums.spent == before.spent and sums.delta_spent == before.delta_spent and sums.limit == k


def test_an_account_that_kept_nothing_back_is_raised_only_with_more_delta() -> None:
    start = Filter.of(common(1, 1e-6)).spend(Laplace(epsilon=0.1), ZERO)
    past = [(Laplace(epsilon=0.1), ZERO)]
    with pytest.raises(BudgetError, match="fresh share of delta"):
        start.raised(Budget(epsilon=2, delta=1e-6), past)
    more = start.raised(Budget(epsilon=2, delta=1.2e-6), past)
    assert more.open[0].limit == 2 and more.shared == Fraction(5, 10**7) + Fraction(6, 10**7) * fresh_part(2)


def test_raising_refuses_a_wrong_past_or_a_lower_limit() -> None:
    start = Filter.of(Budget(epsilon=1, delta=1e-6, raisable=True)).spend(Laplace(epsilon=0.1), ZERO)
    past = [(Laplace(epsilon=0.1), ZERO)]
    for wrong in ([], past * 2):
        with pytest.raises(BudgetError, match="the past has"):
            start.raised(Budget(epsilon=2, delta=1e-6, raisable=True), wrong)
    for lower in (Budget(epsilon=0.5, delta=1e-6), Budget(epsilon=2, delta=1e-7), Budget(rho=1), Budget(epsilon=2)):
        with pytest.raises(BudgetError, match="raised, not lowered"):
            start.raised(lower, past)


def test_plans_that_failed_uncounted_never_come_back() -> None:
    budget = common(1, 1e-6, raisable=True)
    past: list[tuple[events.Event, Fraction]] = [(Gaussian(multiplier=40), Fraction(1, 10**7))] * 6
    now = Filter.of(budget)
    for event, delta in past:
        now = now.spend(event, delta)  # six times 1e-7 close the plans' sum, which has 5e-7
    assert PlanSum not in {type(m) for m in now.open} and now.open[0].delta_spent == Fraction(5, 10**7)
    wide = Budget(epsilon=9, delta=1e-5, shares={"plans": 0.5, "adaptive": 0.1, "gaussian": 0.4})
    assert [type(m) for m in now.raised(wide, past).open] == [GaussianSum]


def test_pure_and_rho_budgets_are_raised_for_nothing() -> None:
    for small, large, event in (
        (Budget(epsilon=1), Budget(epsilon=2), Laplace(epsilon=0.5)),
        (Budget(rho=1), Budget(rho=2), ZeroConcentrated(rho=0.5)),
    ):
        now = Filter.of(small).spend(event, ZERO).spend(event, ZERO)
        assert not now.fits(event, ZERO)
        more = now.raised(large, [(event, ZERO)] * 2)
        assert more.open[0].left == 1 and more.spend(event, ZERO).spend(event, ZERO).open[0].left == 0
    grown = Filter.of(Budget(epsilon=1)).spend(Laplace(epsilon=0.5), ZERO)
    sums = grown.raised(Budget(epsilon=1, delta=1e-6), [(Laplace(epsilon=0.5), ZERO)]).open[0]
    assert isinstance(sums, PlanSum) and sums.spent == Fraction(1, 2) and sums.delta_spent == 0


# The state stays small


def test_the_state_after_many_events_is_as_small_as_after_few() -> None:
    filter_ = Filter.of(Budget(epsilon=8, delta=1e-5))
    kinds = [(Gaussian(multiplier=Fraction(10**6 + 7 * i, 10**3)), Fraction(1, 10**12 + 39 * i)) for i in range(50)] + [
        (Repeat(Laplace(epsilon=Fraction(1, 10**5 + 3 * i)), 2), ZERO) for i in range(50)
    ]
    few_events = filter_
    for event, delta in kinds:
        few_events = few_events.spend(event, delta)
    many_events = few_events
    for _ in range(20):
        for event, delta in kinds:
            many_events = many_events.spend(event, delta)
    assert len(many_events.open) == 4 and many_events.count == 2100
    assert len(pickle.dumps(many_events)) <= len(pickle.dumps(few_events)) + 64
    for member in many_events.open:
        assert member.spent.denominator.bit_length() <= 513 and member.delta_spent.denominator.bit_length() <= 513


# Published numbers


def test_a_hundred_times_a_tenth() -> None:
    tenths, delta = Repeat(Pure(epsilon=0.1), 100), Fraction(1, 10**6)
    assert fully_adaptive([0.1] * 100, 1e-6) == pytest.approx(5.756522, abs=1e-6)
    assert fully_adaptive([0.1] * 100, 1e-6) >= 5.7565
    for share, epsilon in (("concentrated", 5.221534), ("adaptive", 5.221534)):
        enough = Budget(epsilon=epsilon + 1e-5, delta=2e-6, shares={share: 0.5, "plans": 1e-9})
        short = Budget(epsilon=epsilon - 1e-5, delta=2e-6, shares={share: 0.5, "plans": 1e-9})
        member = next(m for m in enough.members() if not isinstance(m, PlanSum))
        one = [(Pure(epsilon=0.1), ZERO)] * 100
        state: Any = member
        for event, zero in one:
            state = state.add(state.charge(event, zero))
        assert state is not None
        state = next(m for m in short.members() if not isinstance(m, PlanSum))
        for event, zero in one:
            state = state and state.add(state.charge(event, zero))
        assert state is None
    assert float(zcdp.epsilon(zcdp.rho(tenths), delta)) == pytest.approx(5.221534, abs=1e-6)
    assert float(zcdp.epsilon(zcdp.rho(Repeat(Exponential(epsilon=0.1), 100)), delta)) == pytest.approx(
        2.419093, abs=1e-6
    )


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


def sums(taken: list[tuple[events.Event, Fraction]], member: Any) -> Any:
    """What an outsider adds up for one member; infinity where one of them has no price there."""
    total = Fraction(0)
    for event, delta in taken:
        try:
            if isinstance(member, PureSum):
                total += pure.epsilon(event)
            elif isinstance(member, PlanSum):
                total += approximate.epsilon(event, delta)
            elif isinstance(member, Concentrated):
                total += zcdp.rho(event)
            elif isinstance(member, GaussianSum):
                total += members.mu_squared(members.sure(event))
            else:
                total += Fraction(renyi.divergence(members.sure(event), float(member.order)))
        except UnsupportedEventError:
            return math.inf
    return total


@many
@given(
    st.sampled_from([Budget(epsilon=1), common(1, 1e-6), common(0.3, 1e-4), Budget(rho=0.05)]),
    st.lists(st.integers(0, len(MENU) - 1), max_size=40),
)
def test_no_choice_of_releases_exceeds_a_member(budget: Budget, picks: list[int]) -> None:
    filter_, taken, fine = Filter.of(budget), [], Fraction(0)
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
        assert now and (now <= kinds or filter_.count == 0)  # some member holds, and none comes back
        fine += delta if any(member.by_plan for member in after.open) else members.own_delta(event)
        kinds, filter_ = now, after
        for member in filter_.open:
            assert member.spent == sums(taken, member) <= member.limit
            if budget.delta:
                assert member.delta_spent == fine <= member.delta_limit
    # what was refused at the end would have passed every member's limit, or closed the last one
    for event, delta in MENU:
        if not fits(filter_, event, delta):
            for member in filter_.open:
                over = member.delta_spent + member.failure(event, delta) > member.delta_limit
                assert sums([*taken, (event, delta)], member) > member.limit or over


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
    assert not any(member.by_plan for member in after.open)
    for member in after.open:
        assert (member.spent > 0 or member.required) and member.spent <= member.limit
        assert member.delta_spent <= member.delta_limit


def test_l12_an_event_that_claims_a_negative_price_is_refused() -> None:
    class Refund(Laplace):
        epsilon = property(lambda self: Fraction(-1), lambda self, value: None)  # type: ignore[assignment]

    refund = object.__new__(Refund)
    object.__setattr__(refund, "relation", "add-remove")
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)):
        with pytest.raises(Exception):  # noqa: B017
            Filter.of(budget).spend(refund, ZERO)
