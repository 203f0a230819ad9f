"""Who pays from what, what a data set protects, and what a fresh budget takes, under a policy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, Unit, record, reserve
from sfumato.errors import ArgumentError, PolicyError
from sfumato.ledger.policy import paying
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import AccountRule, Policy
from tests.helpers import BY_PATIENT, account_of, laplace
from tests.ledger.offices import PEOPLE, Office, act_of, ask, governed, policy
from tests.ledger.stores import ROW, Stores
from tests.ledger.test_replay_rules import forged, only, put

STAFF = {**PEOPLE, "eve": ("analyst",)}
NAME_IT = "name the account that you pay from"


def rule(name: str, parent: str | None, *people: str, **fields: Any) -> AccountRule:
    return AccountRule(name=name, parent=parent, people=people, **fields)


TREE = (
    rule("org", None),
    rule("visits", "org"),
    rule("team", "visits", "ana"),
    rule("mates", "visits", "max"),
)


def staffed(stores: Stores | None = None, rules: tuple[AccountRule, ...] = TREE) -> Office:
    """Teams "team", with a project below it, "mates" and "free" under "visits"; a data set "labs" without teams."""
    office = governed(stores, people=STAFF, accounts=rules)
    adam = office["adam"]
    for name in ("team", "mates", "free"):
        adam.open_account(name, Budget(epsilon=1), parent="visits", level="team")
    adam.open_account("project", Budget(epsilon=1), parent="team", level="project")
    adam.open_account("labs", Budget(epsilon=2), parent="org", level="data set", unit=ROW)
    return office


def refused(office: Office, who: str, *accounts: str, words: str = NAME_IT, data: str = "visits@1") -> None:
    before = len(office.entries())
    with pytest.raises(PolicyError, match=words):
        ask(office[who], laplace(0.1), *accounts, data=data)
    with pytest.raises(PolicyError, match=words):
        office[who].hold(
            accounts, reserve(unit=ROW, budget=Budget(epsilon=0.1)), data=data, grade="exact", note="a test"
        )
    assert len(office.entries()) == before and account_of(office["paula"], "visits").filter.fresh


def test_nobody_leaves_their_own_cap_out(ledgers: Stores) -> None:
    office = staffed(ledgers)
    for accounts in ((), ("visits",), ("org",), ("free",)):
        refused(office, "ana", *accounts, words=f"{NAME_IT}: 'team', or one below")
    for who, named in (("ana", ("mates",)), ("ana", ("team", "mates")), ("max", ("project",)), ("eve", ("team",))):
        refused(office, who, *named, words="is not yours to pay from")
    for named in ((), ("visits",), ("free",)):
        refused(office, "eve", *named, words="lists who pays for 'visits', and you nowhere there")
    refused(office, "ana", data="visits@1&labs@1")
    for who, named in (("ana", ("team",)), ("ana", ("project",)), ("ana", ("free", "team")), ("max", ("mates",))):
        assert set(named) <= set(ask(office[who], laplace(0.1), *named).accounts)
    ask(office["ana"], laplace(0.1), "team", data="visits@1&labs@1")
    ask(office["eve"], laplace(0.1), data="labs@1")  # nobody is listed there
    assert account_of(office["ana"], "team").filter.open[0].spent == Fraction(4, 10)
    office.check()


def test_a_view_is_read_by_those_who_read_the_data(ledgers: Stores) -> None:
    office = staffed(ledgers)
    office["dora"].register("view", same_as="visits", reason="a view")
    refused(office, "eve", data="view@1")
    refused(office, "ana", data="view@1")
    ask(office["ana"], laplace(0.1), "team", data="view@1")
    office["dora"].register("labs", accounts=("visits",), reason="the same people")
    with pytest.raises(PolicyError, match=NAME_IT):
        ask(office["eve"], laplace(0.1), data="labs@1")
    office.check()


def test_blocks_are_read_from_the_same_accounts(ledgers: Stores) -> None:
    office = staffed(ledgers)
    office["dora"].open_block("visits", "jan", Budget(epsilon=1))
    refused(office, "ana", data="visits@1#jan")
    ask(office["ana"], laplace(0.1), "team", data="visits@1#jan")
    office.check()


def test_whoever_is_listed_twice_pays_from_the_lower_one(ledgers: Stores) -> None:
    rules = (rule("org", None), rule("visits", "org", "ana", "max"), rule("team", "visits", "ana"))
    office = staffed(ledgers, rules)
    refused(office, "ana", words=f"{NAME_IT}: 'team', or one below")
    refused(office, "eve", words="'visits' is not yours")
    refused(office, "eve", "free", words="'visits' is not yours")
    ask(office["max"], laplace(0.1))
    ask(office["max"], laplace(0.1), "free")
    ask(office["ana"], laplace(0.1), "project")
    office.check()


def test_an_account_above_the_data_can_list_people_too(ledgers: Stores) -> None:
    office = staffed(ledgers, (rule("org", None, "ana"),))
    refused(office, "max", words="'org' is not yours")
    refused(office, "max", "team", data="labs@1", words="'org' is not yours")
    ask(office["ana"], laplace(0.1))
    office.check()


def test_people_on_a_folder_pay_from_what_is_below_it(ledgers: Stores) -> None:
    office = governed(ledgers, accounts=(rule("org", None), rule("visits", "org"), rule("folder", "visits", "ana")))
    office["adam"].open_account("folder", None, parent="visits", level="team")
    office["adam"].open_account("cap", Budget(epsilon=1), parent="folder", level="project")
    for named in ((), ("folder",)):
        refused(office, "ana", *named)
    refused(office, "max", "cap", words="'folder' is not yours")
    ask(office["ana"], laplace(0.1), "cap")
    office.check()


def test_a_cap_that_is_not_open_yet_or_no_more_frees_nobody(ledgers: Stores) -> None:
    office = governed(ledgers, accounts=TREE)
    refused(office, "ana")
    office["adam"].open_account("team", Budget(epsilon=1), parent="org", level="team")  # not where the policy says
    refused(office, "ana")
    receipt = ask(office["ana"], laplace(0.1), "team")
    assert set(receipt.accounts) == {"team", "org", "visits"}
    office["adam"].close_account("team", reason="done")
    before = len(office.entries())
    with pytest.raises(PolicyError, match=NAME_IT):
        ask(office["ana"], laplace(0.1))
    assert len(office.entries()) == before
    office.check()


def test_without_people_everything_is_as_before(ledgers: Stores) -> None:
    office = staffed(ledgers, (rule("org", None), rule("visits", "org"), rule("team", "visits")))
    for named in ((), ("team",), ("project", "mates")):
        ask(office["eve"], laplace(0.1), *named)
    office.check()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((rule("a", None, "nobody"),), "does not list 'nobody'"),
        ((rule("a", None, "rita"),), "may not spend"),
        ((rule("a", None, "adam"),), "may not spend"),
        ((rule("a", None, "ana"), rule("b", "a"), rule("c", "b", "ana", "max")), "'max' pays from it, and so from 'a'"),
    ],
)
def test_people_of_accounts_are_people_who_may_pay(rules: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        policy(accounts=rules)


def test_two_trees_that_contradict_each_other_end() -> None:
    """The ledger has the accounts the other way round than the policy."""
    rules: Policy = policy(accounts=(rule("a", None, "ana"), rule("b", "a", "ana")))
    upside_down = {"a": "b", "b": None}
    assert paying.refusal(rules, "ana", ("a", "b"), ("a",), upside_down.get) is None
    assert paying.refusal(rules, "max", ("a", "b"), ("a",), upside_down.get) is not None


def pays(*accounts: str) -> Any:
    return lambda office: ask(office["ana"], laplace(0.1), *accounts)


def holds(office: Office) -> None:
    plan = reserve(unit=ROW, budget=Budget(epsilon=0.5))
    office["ana"].hold(("team",), plan, data="visits@1", grade="exact", note="a test")


@pytest.mark.parametrize("who", ["max", "eve"])
def test_a_forged_payer_is_named(who: str) -> None:
    assert "not theirs" in forged(staffed(), pays("team"), put(by=who))
    assert "not theirs" in forged(staffed(), holds, put(by=who), "hold")


def test_a_forged_spend_that_leaves_the_cap_out_is_named() -> None:
    assert "leaves their own out" in forged(staffed(), pays("team"), only("visits", "org"))
    assert "leaves their own out" in forged(staffed(), pays("team", "free"), only("visits", "org", "free"))


# what a data set protects


def test_a_data_set_says_what_it_protects(ledgers: Stores) -> None:
    rules = (rule("org", None), rule("labs", "org", level="data set", protects=BY_PATIENT), rule("new", "org"))
    office = governed(ledgers, accounts=rules)
    adam, before = office["adam"], len(office.entries())
    for name in ("new", "other"):
        with pytest.raises(PolicyError, match=f"say which unit data set '{name}' protects"):
            adam.open_account(name, Budget(epsilon=1), parent="org", level="data set")
    with pytest.raises(PolicyError, match="the policy says that account 'labs' protects"):
        adam.open_account("labs", Budget(epsilon=1), parent="org", level="data set", unit=ROW)
    assert len(office.entries()) == before
    adam.open_account("labs", Budget(epsilon=1), parent="org", level="data set")
    assert account_of(adam, "labs").unit == BY_PATIENT
    adam.open_account("new", Budget(epsilon=1), parent="org", level="data set", unit=ROW)
    adam.open_account("folder", None, parent="org", level="data set")
    adam.open_account("team", Budget(epsilon=1), parent="labs", level="team")
    office.check()


def test_without_a_policy_the_first_release_says_it(ledgers: Stores) -> None:
    office = Office(ledgers)
    office["adam"].open_account("visits", Budget(epsilon=1), level="data set")
    ask(office["ana"], laplace(0.1))
    assert account_of(office["ana"], "visits").unit == Unit()
    office.check()


def test_a_forged_data_set_without_its_unit_is_named() -> None:
    rules = (rule("org", None), rule("labs", "org", level="data set", protects=BY_PATIENT))

    def opened(name: str, **how: Any) -> Any:
        return lambda o: o["adam"].open_account(name, Budget(epsilon=1), parent="org", level="data set", **how)

    assert "which unit" in forged(governed(), opened("new", unit=ROW), put(unit=None))
    for unit in (None, ROW):
        assert "another unit" in forged(governed(accounts=rules), opened("labs"), put(unit=unit))


# a fresh budget


ONE = Budget(epsilon=1)


def test_a_fresh_budget_takes_two_others(ledgers: Stores) -> None:
    office = governed(ledgers)
    adam = office["adam"]
    adam.open_account("folder", None)
    before = len(office.entries())
    for parent in (None, "folder"):
        with pytest.raises(PolicyError, match=r"a fresh budget.* 'new': it needs 2 approval\(s\)") as refusal:
            adam.open_account("new", ONE, parent=parent, reason="other people")
    assert len(office.entries()) == before
    act = act_of(refusal)
    assert act == Act.reset("new", ONE) == Act(do="reset", on="new", what=record.digest(ONE)) != Act.limit("new", ONE)
    office.approve(act, "adam", "paula", "dora")
    for name, budget in (("newer", ONE), ("new", Budget(epsilon=2))):
        with pytest.raises(PolicyError, match="has 0"):
            adam.open_account(name, budget, reason="other people")
    adam.open_account("new", ONE, reason="other people")
    assert len(office.entries()[-1]["approvals"]) == 2
    adam.open_account("part", ONE, parent="new")  # no fresh budget
    office.check()


def test_approvals_of_a_raise_open_no_fresh_budget(ledgers: Stores) -> None:
    office = governed(ledgers)
    office.approve(Act.limit("new", ONE), "adam", "paula", "dora")
    with pytest.raises(PolicyError, match="has 0"):
        office["adam"].open_account("new", ONE, reason="other people")
    office.check()


def test_a_fresh_budget_after_all_others_were_closed_is_one_too(ledgers: Stores) -> None:
    office = governed(ledgers)
    for name in ("visits", "org"):
        office["adam"].close_account(name, reason="begin anew")
    with pytest.raises(PolicyError, match="a fresh budget"):
        office["adam"].open_account("visits2", ONE, reason="begin anew")
    office.check()


def test_what_the_policy_lists_was_approved_with_it(ledgers: Stores) -> None:
    rules = (
        rule("org", None, limit=Budget(epsilon=10)),
        rule("new", None, limit=ONE),
        rule("more", None, limit=Budget(epsilon=2)),
        rule("inside", "org", limit=ONE),
    )
    office = governed(ledgers, accounts=rules)
    adam = office["adam"]
    for name, parent in (("more", None), ("inside", None)):  # another limit, another place
        with pytest.raises(PolicyError, match="a fresh budget"):
            adam.open_account(name, ONE, parent=parent, reason="other people")
    adam.open_account("new", ONE, reason="listed")
    assert set(adam.provision()) == {"opened more", "opened inside"}
    office.check()


def test_a_fresh_budget_with_a_large_delta_takes_the_larger_number(ledgers: Stores) -> None:
    office = governed(ledgers, accounts=(rule("new", None, rows=1000),), needed={"delta": 3})
    large = Budget(epsilon=1, delta=1e-2)
    with pytest.raises(PolicyError, match=r"a fresh budget.*above 1/n.*needs 3") as refusal:
        office["adam"].open_account("new", large, reason="other people")
    assert act_of(refusal) == Act.reset("new", large)
    office.approve(act_of(refusal), "adam", "paula", "dora", "doris")
    office["adam"].open_account("new", large, reason="other people")
    office.check()


def test_a_forged_fresh_budget_is_named() -> None:
    def inside(office: Office) -> None:
        office["adam"].open_account("new", ONE, parent="org")

    def beside(office: Office) -> None:
        office.fresh("new", ONE)

    assert "lacks approvals" in forged(governed(), inside, put(parent=None), "open account")
    assert "lacks approvals" in forged(governed(), beside, put(approvals=()), "open account")
    for edit in (
        lambda e: {**e, "approvals": e["approvals"][:1]},
        lambda e: {**e, "approvals": e["approvals"][:1] * 2},
    ):
        assert "lacks approvals" in forged(governed(), beside, edit, "open account")
    listed = (rule("org", None, limit=Budget(epsilon=10)), rule("new", "org", limit=ONE))
    assert "lacks approvals" in forged(governed(accounts=listed), inside, put(parent=None), "open account")
