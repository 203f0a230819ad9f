"""One number for an account: what everything so far amounts to, beside the limit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato import Budget, MemoryLedger, Unit, bounds, mechanisms
from sfumato.accounting import gdp, price
from sfumato.accounting.balance import Balance, amount, amount_with, balance, digits
from sfumato.accounting.filters import Filter
from sfumato.errors import BudgetError
from sfumato.events import Approximate, Bundle, Event, Gaussian, Laplace, Poisson, Repeat, Sequence, ZeroConcentrated
from tests.helpers import common, few, laplace

ZERO = Fraction(0)
MENU: list[tuple[Event, Fraction]] = [
    (Laplace(epsilon=0.05), ZERO),
    (Laplace(epsilon=0.4), ZERO),
    (Gaussian(multiplier=15), Fraction(1, 10**9)),
    (Gaussian(multiplier=6), Fraction(1, 10**9)),
    (Bundle((Gaussian(multiplier=12), Approximate(epsilon=0, delta=5e-9))), Fraction(1, 10**8)),
    (Repeat(Poisson(Gaussian(multiplier=2), Fraction(1, 50)), 60), Fraction(1, 10**8)),
    (ZeroConcentrated(rho=0.002), ZERO),
]
BUDGETS = [
    Budget(epsilon=2, delta=1e-6),
    Budget(epsilon=1, delta=1e-6, raisable=True),
    common(1, 1e-6),
    Budget(epsilon=1, delta=1e-6, shares={"plans": 1}),
    Budget(epsilon=1, delta=1e-5, shares={"renyi:20.5": 0.4, "concentrated": 0.4, "failures": 0.2}),
    Budget(epsilon=1, delta=1e-5, shares={"adaptive": 0.5, "gaussian": 0.3, "failures": 0.2}),
    Budget(epsilon=3),
    Budget(rho=0.1),
]


@few
@given(st.sampled_from(BUDGETS), st.lists(st.integers(0, len(MENU) - 1), max_size=30))
@example(BUDGETS[5], [1])  # no member that is open lets it pass, and one that the first release may choose does
def test_it_rises_and_stays_within_the_limit_and_is_the_least_that_would_have_done(
    budget: Budget, picks: list[int]
) -> None:
    account, last, accepted = Filter.of(budget), ZERO, []
    limit = budget.epsilon if budget.rho is None else budget.rho
    assert amount(account) == 0
    for pick in picks:
        expected = amount_with(account, *MENU[pick])
        try:
            account = account.spend(*MENU[pick])
        except BudgetError:
            continue
        accepted.append(MENU[pick])
        now = amount(account)
        assert last <= now <= limit, "it rises, and releases pass only within the limit"
        assert expected is not None and expected <= now
        last = now
    if not accepted or budget.rho is not None:
        return
    whole = Sequence(tuple(event for event, _ in accepted))
    if budget.delta:  # never less than the tightest accountant says of the list
        assert float(last) >= price.epsilon(whole, delta=budget.delta).lower * (1 - 1e-9)
    roomy = [member for member in account.open if not member.required]
    for member in roomy:
        assert member.spent <= member.limit


def test_a_release_that_takes_everything_amounts_to_the_limit() -> None:
    exactly = Gaussian(multiplier=gdp.least_multiplier(Fraction(1), Fraction(1, 10**6)))
    for delta in (Fraction(1, 10**6), ZERO):  # by the plans' sum, and by Gaussian DP with the whole of delta
        full = Filter.of(Budget(epsilon=1, delta=1e-6)).spend(exactly, delta)
        assert float(amount(full)) == pytest.approx(1, abs=1e-9) and float(full.used) == pytest.approx(1, abs=1e-9)
    pure = Filter.of(Budget(epsilon=5))
    for epsilon in (0.5, 1.0, 0.8, 1.5):
        pure = pure.spend(Laplace(epsilon=epsilon), ZERO)
    assert amount(pure) == Fraction(38, 10) and str(balance(pure)) == "3.8 of 5 epsilon spent"


def test_raising_and_lowering_keep_it_beside_the_new_limit() -> None:
    start = Filter.of(Budget(epsilon=1, delta=1e-6, raisable=True))
    past = [MENU[2]] * 6
    for event, delta in past:
        start = start.spend(event, delta)
    more = start.raised(Budget(epsilon=2, delta=1e-6, raisable=True), past)
    assert amount(start) <= amount(more) <= 2, "fresh shares are smaller, so it reads a little more"
    less = start.lowered(Budget(epsilon=Fraction(9, 10), delta=1e-6))
    assert amount(less) == amount(start) <= less.budget.epsilon


def test_what_is_spent_is_told_rounded_up() -> None:
    for value, told in (("0.41", "0.41"), ("0.4101", "0.411"), ("1.9951", "2"), ("0", "0"), ("123.4", "124")):
        assert digits(Fraction(value)) == told
    assert digits(Fraction(12345)) == "12400"


def test_the_words_of_a_balance() -> None:
    now = Balance("epsilon", Fraction(41, 100), Fraction(2), Fraction(1, 10**6))
    assert str(now) == "0.41 of 2 epsilon spent at delta 1e-06" and now.words(brief=True) == "0.41 of 2 epsilon spent"
    asked: dict[str, Any] = {"after": Fraction(58, 100), "fits": True, "room": 9}
    one = Balance("epsilon", Fraction(41, 100), Fraction(2), Fraction(1, 10**6), **asked)
    assert str(one).endswith("; this one makes it 0.58; room for about 9 more like it")
    small: dict[str, Any] = {"was": Fraction(4099, 10000), "fits": True}
    assert "it was" not in str(Balance("epsilon", Fraction(41, 100), Fraction(2), ZERO, **small)), "no digit changed"
    short = Balance("rho", Fraction(1), Fraction(2), ZERO, after=Fraction(3), fits=False)
    assert str(short) == "1 of 2 rho spent; this one does not fit: it would make it 3"
    assert "no room for one more like the last one" in str(Balance("rho", Fraction(2), Fraction(2), ZERO, room=0))
    assert "more than 1e+15" in Balance("rho", ZERO, Fraction(2), ZERO, fits=True, room=10**15).more


def test_a_ledger_tells_it_with_how_many_more_fit() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1), "b": Budget(epsilon=1, delta=1e-6)})
    told = ledger.balance("a", laplace(Fraction(1, 5)))
    assert told is not None and (told.spent, told.after, told.fits, told.room) == (0, Fraction(1, 5), True, 4)
    assert ledger.left("a", laplace(2)) == "0 of 1 epsilon spent; this one does not fit: it would make it 2"
    for turn in range(5):
        ledger.spend(("a",), laplace(Fraction(1, 5)), data=f"a@{turn}", grade="exact", note="")
    assert ledger.left("a") == "1 of 1 epsilon spent" and ledger.used("a") == 1
    assert str(ledger.balances()["a"]) == "1 of 1 epsilon spent; no room for one more like the last one"
    count = mechanisms.Gaussian(query=bounds.count(Unit()), epsilon=Fraction(1, 5), delta=Fraction(1, 10**9))
    ledger.spend(("b",), count, data="b@1", grade="exact", note="")
    room = ledger.balances(["b"])["b"]
    assert room is not None and room.room is not None and room.room > 20, "many Gaussians: not five minus one"
    for turn in range(room.room):
        ledger.spend(("b",), count, data=f"b@{turn + 2}", grade="exact", note="")
    with pytest.raises(BudgetError, match=r"epsilon: asked 0\.2, spent 0\.9\d*, left(.|\n)*with ledger\.change_limit"):
        ledger.spend(("b",), count, data="b@x", grade="exact", note="")
