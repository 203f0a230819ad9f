"""Forecasts: how often a plan still fits, counted by leaps and checked by counting; and dates, which need a clock."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Unit, events
from sfumato import mechanisms as m
from sfumato.accounting.filters import Filter, Hold
from sfumato.bounds import Count
from sfumato.errors import ArgumentError, BudgetError
from sfumato.ledger.counting import MOST, narrowest_counts, times
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof import birth
from sfumato.ledger.stores.base import Account
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import forecast
from tests.helpers import few, laplace
from tests.ledger.stores import Stores, held, pay

DELTA = Fraction(1, 10**6)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def _account(budget: Budget, *spent: tuple[events.Event, Fraction], holds: tuple[Hold, ...] = ()) -> Account:
    filter_ = Filter.of(budget)
    for event, delta in spent:
        filter_ = filter_.spend(event, delta)
    return Account(name="a", filter=filter_, held={str(k): hold for k, hold in enumerate(holds)})


def _counted(account: Account, event: events.Event, delta: Fraction) -> int:
    """One by one."""
    filter_, holds = account.filter, list(account.held.values())
    assert filter_ is not None
    count = 0
    while True:
        try:
            filter_ = filter_.spend(event, delta, holds)
        except BudgetError:
            return count
        count += 1


def test_ten_tenths_make_one() -> None:
    assert times(_account(Budget(epsilon=1)), events.Laplace(epsilon=Fraction(1, 10)), Fraction(0)) == 10
    assert times(_account(Budget(epsilon=1)), events.Laplace(epsilon=Fraction(1, 3)), Fraction(0)) == 3
    assert times(_account(Budget(epsilon=1)), events.Laplace(epsilon=2), Fraction(0)) == 0


@settings(few, derandomize=True)
@given(
    budget=st.sampled_from(
        [
            Budget(epsilon=1),
            Budget(epsilon=2, delta=DELTA),
            Budget(
                epsilon=Fraction(1, 2),
                delta=Fraction(1, 1000),
                shares={"plans": Fraction(1, 2), "adaptive": Fraction(1, 2)},
            ),
            Budget(rho=Fraction(1, 10)),
        ]
    ),
    event=st.sampled_from(
        [
            events.Laplace(epsilon=Fraction(1, 30)),
            events.Gaussian(multiplier=25),
            events.Approximate(epsilon=Fraction(1, 20), delta=Fraction(1, 10**8)),
            events.Exponential(epsilon=Fraction(1, 9)),
        ]
    ),
    delta=st.sampled_from([Fraction(0), Fraction(1, 10**8), Fraction(1, 3 * 10**7)]),
    before=st.integers(0, 2),
    hold=st.booleans(),
)
def test_leaps_count_what_counting_does(
    budget: Budget, event: events.Event, delta: Fraction, before: int, hold: bool
) -> None:
    held_ = (Hold(events.Laplace(epsilon=Fraction(1, 8)), Fraction(0)),) if hold else ()
    spent = [(events.Laplace(epsilon=Fraction(1, 7)), Fraction(0))] * before
    account = _account(budget, *spent, holds=held_)
    assert times(account, event, delta) == _counted(account, event, delta)


def test_members_close_one_after_the_other() -> None:
    """The plans' sum runs out of delta long before the Gaussian gauge is full."""
    account = _account(Budget(epsilon=1, delta=DELTA))
    event, delta = events.Gaussian(multiplier=40), Fraction(1, 10**8)
    found = times(account, event, delta)
    assert found == _counted(account, event, delta) > 50


def test_failures_are_counted_by_the_member_that_sees_most() -> None:
    """The Gaussian gauge, which sees none, closes first; the plans' sum then runs out of delta."""
    account = _account(Budget(epsilon=1, delta=DELTA, shares={"plans": 0.5, "gaussian": 0.5}))
    event, delta = events.Laplace(epsilon=Fraction(1, 15)), Fraction(1, 15 * 10**6)
    assert times(account, event, delta) == _counted(account, event, delta) == 7


def test_a_billion_are_counted_at_once() -> None:
    assert times(_account(Budget(epsilon=1)), events.Laplace(epsilon=Fraction(1, 10**9)), Fraction(0)) == 10**9
    assert times(Account(name="a", filter=None), events.Laplace(epsilon=1), Fraction(0)) == MOST


def _ledger(budget: Budget | None = None) -> Ledger:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", budget or Budget(epsilon=1))
    return ledger


def test_the_narrowest_account_of_the_path_binds(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    ledger.open_account("team", Budget(epsilon=Fraction(1, 2)), parent="a")
    plan = laplace(Fraction(1, 10))
    found = forecast(ledger._store, "team", plan=plan).more[0]
    assert (found.count, found.binding) == (5, "team")
    for _ in range(7):
        pay(ledger, plan, "a")
    found = forecast(ledger._store, "team", plan=plan).more[0]
    assert (found.count, found.binding) == (3, "a")
    assert str(found) == "3 more of: Laplace (account 'a' binds)"
    for _ in range(found.count):
        pay(ledger, plan, "team", data="a@1")
    with pytest.raises(BudgetError):
        pay(ledger, plan, "team", data="a@1")
    assert forecast(ledger._store, "team", plan=plan).more[0].reason == "account 'a' has no room"


def test_the_data_pays_too() -> None:
    ledger = _ledger()
    ledger.open_account("team", Budget(epsilon=5), reason="its own people")
    plan = laplace(Fraction(1, 10))
    assert forecast(ledger._store, "team", plan=plan).more[0].count == 50
    found = forecast(ledger._store, "team", plan=plan, data="a@1").more[0]
    assert (found.count, found.binding) == (10, "a")


def test_room_that_is_held_is_not_free() -> None:
    ledger = _ledger()
    held(ledger, Budget(epsilon=Fraction(1, 2)))
    assert forecast(ledger._store, "a", plan=laplace(Fraction(1, 10))).more[0].count == 5


def test_accounts_that_take_nothing() -> None:
    ledger = _ledger()
    plan = laplace(Fraction(1, 100))
    pay(ledger, plan)
    other = forecast(ledger._store, "a", plan=laplace(Fraction(1, 100), Unit(change="replace"))).more[0]
    assert other.count == 0 and other.reason is not None and "protects [one row, present or absent]" in other.reason
    for _ in range(3):
        receipt = pay(ledger, plan)
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    assert forecast(ledger._store, "a", plan=plan).more[0].reason == "account 'a' is locked"
    ledger.close_account("a", reason="done")
    assert forecast(ledger._store, "a", plan=plan).more[0].reason == "account 'a' is closed"
    with pytest.raises(BudgetError, match="no account 'b'"):
        forecast(ledger._store, "b")


@pytest.mark.parametrize("within", [2.0, 25.0, 1000.0])
def test_counts_have_as_much_noise_as_the_error_allows(within: float) -> None:
    found = dict(narrowest_counts(Unit(), within, 0.05))
    assert set(found) == {"Laplace", "Gaussian"}
    for plan in found.values():
        width = plan.expected_error(0.05)
        assert width is not None and 0.98 * within < width <= within


def test_counts_at_an_error() -> None:
    ledger = _ledger()
    found = forecast(ledger._store, "a", error=30).more[0]
    assert found.what == "Laplace counts at +-30 (95 %)"
    assert found.count == math.floor(30 / math.log(20))  # noise of scale b is within b ln 20, at 95 %
    relative = forecast(ledger._store, "a", error=0.05, size=600).more[0]
    assert relative.count == found.count and "+-5 % of 600" in relative.what
    wide = _ledger(Budget(epsilon=1, delta=DELTA))
    best = forecast(wide._store, "a", error=100).more[0]
    assert "Gaussian" in best.what and best.count > 33
    plan = dict(narrowest_counts(Unit(), 100, 0.05))["Gaussian"]
    assert best.count == _counted(_account(Budget(epsilon=1, delta=DELTA)), plan.event, Fraction(0))


@pytest.mark.parametrize("wrong", [{"error": 0}, {"error": -1}, {"error": 5, "alpha": 1}, {"error": 5, "size": 0}])
def test_bad_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=list(wrong)[-1]):
        forecast(_ledger()._store, "a", **wrong)
    with pytest.raises(ArgumentError, match="window"):
        forecast(_ledger()._store, "a", window=timedelta(0))


Clock = Callable[[datetime], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the time that entries are told at."""
    now = [NOON]

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return now[0]

    monkeypatch.setattr(birth, "datetime", Stopped)

    def at(time: datetime) -> None:
        now[0] = time

    return at


def _daily(clock: Clock, ledger: Ledger, days: int, size: Fraction = Fraction(1, 100), account: str = "a") -> datetime:
    for day in range(1, days + 1):
        clock(NOON + day * DAY)
        pay(ledger, laplace(size), account, data="a@1")
    return NOON + days * DAY


def test_at_this_rate(clock: Clock) -> None:
    ledger = _ledger()
    now = _daily(clock, ledger, 10)  # 0.1 in ten days
    found = forecast(ledger._store, "a", now=now)
    assert found.exhausted == NOON + 100 * DAY and found.binding == "a" and found.reason is None
    assert (found.since, found.releases) == (NOON, 10)
    assert "at this rate exhausted on 2026-06-09" in str(found) and "10 releases since 2026-03-01 12:00" in str(found)
    assert json.loads(json.dumps(found.as_dict()))["exhausted"].startswith("2026-06-09")


def test_only_the_window_counts(clock: Clock) -> None:
    ledger = _ledger()
    now = _daily(clock, ledger, 20)
    later = now + 10 * DAY
    found = forecast(ledger._store, "a", now=later, window=15 * DAY)  # six in 15 days, with the one at its very start
    assert found.releases == 6
    assert found.exhausted == later + (80 / 6 * 15) * DAY


def test_an_account_above_may_run_out_first(clock: Clock) -> None:
    ledger = _ledger()
    ledger.open_account("team", Budget(epsilon=1), parent="a")
    _daily(clock, ledger, 10, account="team")
    for _ in range(5):
        pay(ledger, laplace(Fraction(1, 10)), "a")  # others
    found = forecast(ledger._store, "team", now=NOON + 10 * DAY)
    assert found.binding == "a" and found.releases == 10
    assert found.exhausted is not None and found.exhausted < NOON + 20 * DAY


def test_a_rate_needs_releases_and_time(clock: Clock) -> None:
    ledger = _ledger()
    assert "fewer than 3" in str(forecast(ledger._store, "a", now=NOON + DAY).reason)
    for _ in range(5):
        pay(ledger, laplace(Fraction(1, 100)))
    assert "less than an hour" in str(forecast(ledger._store, "a", now=NOON + DAY / 48).reason)
    assert forecast(ledger._store, "a", now=NOON + DAY).exhausted is not None
    assert "no rate" in str(forecast(ledger._store, "a", now=NOON + 400 * DAY))


def test_a_clock_that_went_back_gives_no_rate(clock: Clock) -> None:
    ledger = _ledger()
    now = _daily(clock, ledger, 5)
    assert forecast(ledger._store, "a", now=now).exhausted is not None
    clock(NOON + 2 * DAY)
    pay(ledger, laplace(Fraction(1, 100)))
    found = forecast(ledger._store, "a", now=now)
    assert found.exhausted is None and "clock went back" in str(found)


def test_a_clock_behind_the_entries_gives_no_rate(clock: Clock) -> None:
    ledger = _ledger()
    _daily(clock, ledger, 5)
    assert "clock went back" in str(forecast(ledger._store, "a", now=NOON + DAY))


def test_far_ahead_is_said_in_words(clock: Clock) -> None:
    ledger = _ledger()
    now = _daily(clock, ledger, 5, Fraction(1, 10**6))
    found = forecast(ledger._store, "a", now=now)
    assert found.exhausted is None and found.reason == "at this rate not exhausted within 10 years"


def test_draws_are_spent_too(clock: Clock) -> None:
    ledger = _ledger()
    receipt = held(ledger, Budget(epsilon=Fraction(1, 2)))
    for day in range(1, 5):
        clock(NOON + day * DAY)
        ledger.draw(receipt, events.Laplace(epsilon=Fraction(1, 20)), Fraction(0))
    found = forecast(ledger._store, "a", now=NOON + 4 * DAY)
    assert found.releases == 4 and found.exhausted == NOON + 20 * DAY
    # of a hold that was made before the window
    assert forecast(ledger._store, "a", now=NOON + 4 * DAY, window=3 * DAY).releases == 4


def test_plans_that_only_a_count_was_asked_of() -> None:
    plan = m.Laplace(query=Count(unit=Unit()), epsilon=Fraction(1, 10))
    assert forecast(_ledger()._store, "a", plan=plan, error=30).more[0].count == 10
