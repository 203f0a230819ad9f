"""What takes the consent of others: so many, each another person, for exactly that act, once, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, Unit
from sfumato import mechanisms as m
from sfumato.bounds import count
from sfumato.errors import BudgetError, PolicyError
from sfumato.ledger import desk
from sfumato.ledger.policy import approvals
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import AccountRule, Band
from sfumato.ledger.proof import birth
from tests.helpers import BY_PATIENT, account_of, laplace
from tests.ledger.offices import PEOPLE, Office, act_of, ask, governed, policy
from tests.ledger.stores import ROW, Stores

BANDS = (
    Band(above=Fraction(1, 2), approvals=1),
    Band(above=1, approvals=2),
    Band(above=Fraction(3, 2), approvals=None),
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the clock by so many days from now."""
    moved = [0.0]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + timedelta(days=moved[0])

    for module in (birth, approvals, desk):
        monkeypatch.setattr(module, "datetime", Clock)
    return lambda days: moved.__setitem__(0, days)


def heads(office: Office) -> Any:
    with office.store.reading() as book:
        return book.head, book.facts("approval"), {name: book.account(name) for name in book.accounts()}


# raising a limit


def test_a_limit_is_raised_by_two_others(ledgers: Stores) -> None:
    office = governed(ledgers)
    more = Budget(epsilon=3)
    with pytest.raises(PolicyError, match=r"needs 2 approval\(s\) of others, and has 0") as refused:
        office["adam"].change_limit("visits", more, reason="more")
    act = act_of(refused)
    assert act == Act.limit("visits", more)
    office.approve(act, "adam", "paula")
    with pytest.raises(PolicyError, match="and has 1"):
        office["adam"].change_limit("visits", more, reason="more")
    office.approve(act, "adam", "paula")  # again: still one person
    with pytest.raises(PolicyError, match="and has 1"):
        office["adam"].change_limit("visits", more, reason="more")
    office.approve(act, "adam", "dora")
    before = heads(office)
    for other in (Budget(epsilon=4), Budget(epsilon=Fraction(31, 10)), Budget(epsilon=3, delta=1e-9)):
        with pytest.raises(BudgetError):
            office["adam"].change_limit("visits", other, reason="more")
    with pytest.raises(PolicyError, match="and has 0"):
        office["adam"].change_limit("org", Budget(epsilon=10, delta=1e-9), reason="more")
    assert heads(office) == before, "a refusal uses no approval up"
    office["adam"].change_limit("visits", more, reason="more")
    assert account_of(office["adam"], "visits").filter.budget == more
    office["adam"].change_limit("visits", Budget(epsilon=2), reason="lowering takes nobody")
    with pytest.raises(PolicyError, match="and has 0"):
        office["adam"].change_limit("visits", more, reason="an approval serves once")
    office.check()


def test_whoever_does_it_does_not_approve_it(ledgers: Stores) -> None:
    """Also where one person may do both."""
    both = {**PEOPLE, "adam": ("budget administrator", "privacy officer")}
    office = governed(ledgers, people=both)
    act = Act.limit("visits", Budget(epsilon=3))
    office.approve(act, "adam", "adam", "paula")
    with pytest.raises(PolicyError, match="and has 1"):
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.approve(act, "adam", "dora")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.check()


def test_more_persons_where_the_policy_says_so(ledgers: Stores) -> None:
    office = governed(ledgers, needed={"raise": 4})
    act = Act.limit("visits", Budget(epsilon=3))
    office.approve(act, "adam", "paula", "peter", "dora")
    with pytest.raises(PolicyError, match=r"needs 4 .* has 3"):
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.approve(act, "adam", "doris")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.check()


def test_a_cap_is_not_raised_by_moving_what_one_person_just_gave(ledgers: Stores) -> None:
    office = governed(ledgers)
    adam = office["adam"]
    adam.open_account("purse", Budget(epsilon=10), parent="org")
    with pytest.raises(PolicyError, match="raising the limit of 'visits'") as refused:
        adam.move("purse", "visits", epsilon=1, reason="more")
    office.approve(act_of(refused), "adam", "paula", "peter")
    adam.move("purse", "visits", epsilon=1, reason="more")
    assert account_of(adam, "visits").filter.budget.epsilon == 3
    for team in ("one", "two"):
        adam.open_account(team, Budget(epsilon=1), parent="visits", level="team")
    adam.move("one", "two", epsilon=Fraction(1, 2), reason="teams share what the data has")
    office.check()


def test_no_way_to_a_limit_above_the_policys(ledgers: Stores) -> None:
    rules = (
        AccountRule(name="org", limit=Budget(epsilon=10), level="organisation"),
        AccountRule(name="visits", parent="org", limit=Budget(epsilon=2), level="data set"),
        AccountRule(name="team", parent="visits", limit=Budget(epsilon=1), level="team"),
    )
    office = governed(ledgers, accounts=rules)
    adam = office["adam"]
    with pytest.raises(PolicyError, match="the policy gives account 'team'"):
        adam.open_account("team", Budget(epsilon=2), parent="visits", level="team")
    adam.open_account("team", Budget(epsilon=1), parent="visits", level="team")
    adam.open_account("other", Budget(epsilon=1), parent="visits", level="team")
    with pytest.raises(PolicyError, match="adopt another policy"):
        adam.move("other", "team", epsilon=Fraction(1, 2), reason="more")
    act = Act.limit("team", Budget(epsilon=2))
    office.approve(act, "adam", "paula", "peter")
    with pytest.raises(PolicyError, match="adopt another policy"):
        adam.change_limit("team", Budget(epsilon=2), reason="more")
    office.check()


# a release


@pytest.mark.parametrize(("epsilon", "needed"), [(Fraction(1, 2), 0), (Fraction(3, 4), 1), (1, 1), (Fraction(5, 4), 2)])
def test_bands(ledgers: Stores, epsilon: Any, needed: int) -> None:
    office = governed(ledgers, bands=BANDS)
    plan = laplace(epsilon)
    for given in range(needed):
        with pytest.raises(PolicyError, match=rf"needs {needed} .* has {given};") as refused:
            ask(office["ana"], plan)
        office.approve(act_of(refused), "ana", ("paula", "dora")[given])
    receipt = ask(office["ana"], plan)
    assert len(office.entries()[-1]["approvals"]) == needed
    if needed:
        with pytest.raises(PolicyError, match="has 0;"):
            ask(office["ana"], plan)
    office["ana"].open(receipt)
    office["ana"].settle(receipt, "answered", b"[1]")
    assert office["ana"].answer((), plan.hash, "visits@1") is not None
    office.check()


def test_a_release_above_the_last_band_is_refused_whoever_approves(ledgers: Stores) -> None:
    office = governed(ledgers, bands=BANDS)
    act = Act.spend(laplace(1.6).hash, "visits@1", ("visits", "org"))
    office.approve(act, "ana", "paula", "peter", "dora", "doris")
    with pytest.raises(PolicyError, match="refuses a release above"):
        ask(office["ana"], laplace(1.6))
    office.check()


def test_an_approved_release_is_that_plan_on_that_data_by_those_accounts(ledgers: Stores) -> None:
    office = governed(ledgers, bands=BANDS)
    office["adam"].open_account("labs", Budget(epsilon=2), parent="org", level="data set", unit=ROW)
    office["adam"].open_account("team", Budget(epsilon=2), parent="visits", level="team")
    plan = laplace(0.75)
    office.approve(Act.spend(plan.hash, "visits@1", ("visits", "org")), "ana", "paula")
    for other, accounts, data in (
        (laplace(0.8), (), "visits@1"),
        (plan, (), "visits@2"),
        (plan, (), "labs@1"),
        (plan, ("team",), "visits@1"),
        (plan, (), "visits@1&labs@1"),
    ):
        with pytest.raises(PolicyError, match="has 0;"):
            ask(office["ana"], other, *accounts, data=data)
    ask(office["ana"], plan, key="k")
    assert ask(office["ana"], plan, key="k").id, "a retry under its key needs no second approval"
    office.check()


def test_a_plan_without_an_epsilon_is_above_every_band(ledgers: Stores) -> None:
    office = governed(ledgers, bands=(Band(above=100, approvals=1),))
    office.fresh("rhos", Budget(rho=1))
    plan = m.Gaussian(query=count(ROW), rho=Fraction(1, 1000))
    if plan.delta:
        pytest.skip("this plan has a delta")
    with pytest.raises(PolicyError, match="above the band") as refused:
        ask(office["ana"], plan, data="rhos@1")
    office.approve(act_of(refused), "ana", "paula")
    ask(office["ana"], plan, data="rhos@1")
    office.check()


# delta and the number of units


def test_a_delta_above_one_in_n_takes_an_approval(ledgers: Stores) -> None:
    rules = (
        AccountRule(name="org", limit=Budget(epsilon=10, delta=1e-2)),
        AccountRule(name="small", parent="org", rows=1000),
    )
    office = Office(ledgers)
    office["paula"].adopt(policy(accounts=rules), reason="first")
    office["adam"].open_account("org", Budget(epsilon=10, delta=1e-2))
    with pytest.raises(PolicyError, match="above 1/n") as refused:
        office["adam"].open_account("small", Budget(epsilon=1, delta=1e-2), parent="org")
    office.approve(act_of(refused), "adam", "paula")
    office["adam"].open_account("small", Budget(epsilon=1, delta=1e-2), parent="org")
    plan = m.Gaussian(query=count(ROW), epsilon=Fraction(1, 10), delta=Fraction(1, 500))
    with pytest.raises(PolicyError, match="above 1/n") as refused:
        ask(office["ana"], plan, data="small@1")
    office.approve(act_of(refused), "ana", "dora")
    ask(office["ana"], plan, data="small@1")
    office.check()


# time


def test_approvals_run_out_in_ledger_time(ledgers: Stores, clock: Callable[[float], None]) -> None:
    office = governed(ledgers, approval_days=30)
    act = Act.limit("visits", Budget(epsilon=3))
    office.approve(act, "adam", "paula", "dora")
    clock(31)
    with pytest.raises(PolicyError, match="and has 0"):
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="late")
    ask(office["ana"], laplace(0.1))  # an entry of that day
    clock(1)
    ask(office["ana"], laplace(0.1))  # and one after the clock was put back
    office["adam"].ask(act, reason="still?")
    with pytest.raises(PolicyError, match="and has 0"):
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="a clock makes nothing younger")
    office.approve(act, "adam", "peter", "doris")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="anew")
    office.check()


def test_an_approval_that_has_not_run_out_holds(ledgers: Stores, clock: Callable[[float], None]) -> None:
    office = governed(ledgers, approval_days=30)
    act = Act.limit("visits", Budget(epsilon=3))
    office.approve(act, "adam", "paula")
    clock(20)
    office.approve(act, "adam", "dora")
    clock(29)
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="in time")
    clock(-4000)
    office.approve(act, "adam", "paula", "dora")
    clock(58)
    office["adam"].change_limit("visits", Budget(epsilon=2), reason="less")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="given in ledger time, not ten years ago")
    office.check()


# roles that change, and policies


def test_an_approval_of_somebody_who_lost_the_role_counts_no_more(ledgers: Stores) -> None:
    office = governed(ledgers)
    act = Act.limit("visits", Budget(epsilon=3))
    office.approve(act, "adam", "peter", "dora")
    after = policy(people={**PEOPLE, "peter": ("auditor",)})
    with pytest.raises(PolicyError) as refused:
        office["paula"].adopt(after, reason="peter left")
    office.approve(act_of(refused), "paula", "dora", "doris")
    office["paula"].adopt(after, reason="peter left")
    with pytest.raises(PolicyError, match="and has 1"):
        office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    with pytest.raises(PolicyError, match="may not approve"):
        office.approve(act, "adam", "peter")
    office.approve(act, "adam", "doris")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")
    office.check()


def test_another_policy_takes_two_others_under_the_one_before(ledgers: Stores) -> None:
    office = governed(ledgers)
    looser = policy(people={**PEOPLE, "friend": ("privacy officer",), "other": ("privacy officer",)})
    with pytest.raises(PolicyError, match="needs 2") as refused:
        office["paula"].adopt(looser, reason="mine")
    act = act_of(refused)
    office["paula"].ask(act, reason="please")
    for stranger in ("friend", "other"):
        with pytest.raises(PolicyError, match="does not list"):
            office.approve(act, "paula", stranger)
    office.approve(act, "paula", "paula", "peter")
    with pytest.raises(PolicyError, match="has 1"):
        office["paula"].adopt(looser, reason="mine")
    office.approve(act, "paula", "dora")
    with pytest.raises(PolicyError, match="has 0"):
        office["paula"].adopt(policy(purpose=True), reason="another one than was approved")
    with pytest.raises(PolicyError, match="may not adopt"):
        office["dora"].adopt(looser, reason="not hers")
    office["paula"].adopt(looser, reason="approved")
    assert office["rita"].policy() == looser
    office.check()


def test_the_first_policy_is_adopted_by_an_adopter_in_it(ledgers: Stores) -> None:
    office = Office(ledgers)
    for who in ("ana", "adam", "rita", "stranger"):
        with pytest.raises(PolicyError):
            office[who].adopt(policy(), reason="first")
    with pytest.raises(PolicyError, match="no policy in force"):
        office["paula"].ask(Act.limit("visits", Budget(epsilon=3)), reason="please")
    assert office["paula"].policy() is None
    office["paula"].adopt(policy(), reason="first")
    office.check()


# the unit


@pytest.mark.parametrize("way", ["accounts", "same_as"])
def test_a_weaker_unit_takes_two_others_by_whatever_way(ledgers: Stores, way: str) -> None:
    office = governed(ledgers)
    dora = office["dora"]
    office.fresh("people", Budget(epsilon=1), unit=BY_PATIENT)
    office.fresh("rows", Budget(epsilon=1), unit=ROW)
    dora.register("notes", accounts=("people",), reason="their notes")
    more: Any = {"accounts": ("rows",)} if way == "accounts" else {"same_as": "rows"}
    with pytest.raises(PolicyError, match="another unit of data set 'notes'") as refused:
        dora.register("notes", **more, reason="rows are enough")
    with pytest.raises(BudgetError, match="no budget that protects"):
        ask(office["ana"], laplace(0.1), data="notes@1")
    office.approve(act_of(refused), "dora", "paula", "doris")
    dora.register("notes", **more, reason="rows are enough")
    assert ask(office["ana"], laplace(0.1), data="notes@1").accounts == ("rows",)
    assert ask(office["ana"], laplace(0.1, BY_PATIENT), data="notes@1").accounts == ("people",)
    office.check()


def test_an_account_whose_unit_is_open_might_become_a_weaker_one(ledgers: Stores) -> None:
    office = governed(ledgers)
    office.fresh("open", Budget(epsilon=1))
    with pytest.raises(PolicyError, match="another unit"):
        office["dora"].register("visits", accounts=("open",), reason="also there")
    office["dora"].register("new", accounts=("open",), reason="data that is new has no unit yet")
    office.check()


@pytest.mark.parametrize("kind", ["without DP", "invariant"])
def test_what_leaves_without_privacy_takes_two_others(ledgers: Stores, kind: str) -> None:
    office = governed(ledgers)

    def declare(text: str = "the number of wards", to: str = "the ministry", data: str = "visits@1") -> None:
        office["dora"].declare(data, kind, text, recipients=to, reason="the law")

    with pytest.raises(PolicyError, match="needs 2") as refused:
        declare()
    office.approve(act_of(refused), "dora", "paula", "doris")
    for other in ({"text": "all names"}, {"to": "everybody"}, {"data": "visits@2"}):
        with pytest.raises(PolicyError, match="has 0"):
            declare(**other)
    declare()
    with pytest.raises(PolicyError, match="has 0"):
        declare()
    assert office.entries()[-1]["kind"] == "declare"
    office.check()


def test_unit_words() -> None:
    """Two data sets, the same accounts: two acts."""
    assert Act.weaken("a", ("x", "y")) == Act.weaken("a", ("y", "x")) != Act.weaken("b", ("x", "y"))
    assert Act.limit("a", Budget(epsilon=1)) != Act.limit("a", Budget(epsilon=1, delta=1e-9))
    assert Act.spend("h", "d", ("a", "b")) == Act.spend("h", "d", ("b", "a")) != Act.spend("h", "d", ("a",))
    assert Unit() == ROW
