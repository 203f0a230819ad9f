"""A policy is a value with rules: who may do what, what is forbidden, and what takes approvals. And when two plans ask
the same question."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Unit, bounds, partition, questions, record, repeat, sequence
from sfumato.errors import ArgumentError, BudgetError, PolicyError, RecordError
from sfumato.ledger.policy.policy import (
    ACTS,
    DUTIES,
    ROLES,
    AccountRule,
    AlertRule,
    Asked,
    Band,
    Policy,
    kinds_within,
)
from sfumato.mechanisms import (
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    PermuteAndFlip,
    Quantile,
    QuantileTree,
    SmoothMedian,
    TopK,
)
from sfumato.plan import Plan
from sfumato.report.accounts import old_entries
from sfumato.tidy import Tidy
from tests.rules.test_kind_rules import EXAMPLES

ROW, REPLACE, USER = Unit(), Unit(change="replace"), Unit("user:id")
PEOPLE = {
    "ana": ("analyst",),
    "milo": ("ML engineer",),
    "robot": ("service account",),
    "bea": ("budget administrator",),
    "dora": ("data owner",),
    "omar": ("privacy officer",),
    "pia": ("privacy officer", "data owner"),
    "ivo": ("auditor",),
}


def policy(**fields: Any) -> Policy:
    return Policy(**{"people": PEOPLE, **fields})


def asked(rules: Policy, **fields: Any) -> Asked:
    usual: dict[str, Any] = {
        "accounts": ("a",), "plan": "plan-laplace/1", "grade": "exact", "epsilon": Fraction(1, 10),
        "delta": Fraction(0), "purpose": "monthly report",
    }  # fmt: skip
    return rules.asked(**{**usual, **fields})


# who may do what


@pytest.mark.parametrize("duty", DUTIES)
def test_the_table_of_duties_is_what_is_obeyed(duty: str) -> None:
    rules = policy()
    for name, roles in PEOPLE.items():
        allowed = any(role in DUTIES[duty] for role in roles)
        refusal = rules.refusal(name, duty)
        assert (refusal is None) == allowed
        assert allowed or name in str(refusal)


def test_duties_are_those_that_were_decided() -> None:
    may = {role: {duty for duty, roles in DUTIES.items() if role in roles} for role in ROLES}
    assert may == {
        "data owner": {"register", "approve", "declare", "read"},
        "privacy officer": {"approve", "unlock", "adopt", "declare", "restore", "read"},
        "budget administrator": {"grant", "read"},
        "analyst": {"spend", "read"},
        "ML engineer": {"spend", "read"},
        "service account": {"spend", "read"},
        "auditor": {"read"},
    }


@pytest.mark.parametrize("stranger", ["", "Ana", "ana ", "nobody", None, 3, ("analyst",)])
def test_a_stranger_may_do_nothing(stranger: Any) -> None:
    assert all(policy().refusal(stranger, duty) is not None for duty in DUTIES)


@pytest.mark.parametrize("duty", ["", "spending", "root", None])
def test_an_unknown_duty_is_no_duty(duty: Any) -> None:
    with pytest.raises(ArgumentError, match="duty"):
        policy().refusal("omar", duty)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.sets(st.sampled_from(ROLES), min_size=1))
def test_who_grants_or_approves_may_not_spend(roles: set[str]) -> None:
    """At birth, whatever roles somebody is given: either it is refused, or nobody has duties that must be apart."""
    try:
        rules = policy(people={**PEOPLE, "eve": tuple(roles)})
    except ArgumentError as refusal:
        assert "eve" in str(refusal)
        assert len(roles) > 1
        return
    may = {duty for duty in DUTIES if rules.refusal("eve", duty) is None}
    assert not {"grant", "spend"} <= may
    assert not {"approve", "spend"} <= may
    assert may == {"read"} or "auditor" not in roles


@pytest.mark.parametrize("twin", ["ANA", "ana ", "\uff41na", "aNa"])
def test_one_person_is_not_two_by_spelling(twin: str) -> None:
    with pytest.raises(ArgumentError, match="how it is written"):
        policy(people={**PEOPLE, twin: ("budget administrator",)})


@pytest.mark.parametrize(
    "people",
    [
        {},
        {"omar": ("privacy officer",)},
        {"omar": ("privacy officer",), "pia": ("privacy officer",)},  # whoever adopts, only one other could approve
        {"d": ("data owner",), "e": ("data owner",), "f": ("data owner",)},
        {"omar": (), "pia": ("privacy officer",)},
        {"omar": "privacy officer"},
        {"omar": ("boss",)},
        {"": ("analyst",)},
        {"a\nb": ("analyst",)},
        None,
        [("a",)],
        {3: ("analyst",)},
    ],
)
def test_people_that_make_no_policy(people: Any) -> None:
    with pytest.raises(ArgumentError, match="people"):
        policy(people=people)


# how many must approve


def test_approvals_may_be_more_and_never_fewer() -> None:
    assert {act: policy().approvals(act) for act in ACTS} == {
        "raise": 2, "reset": 2, "weaken unit": 2, "without DP": 2, "invariant": 2, "adopt": 2, "restore": 2, "delta": 1
    }  # fmt: skip
    assert policy(needed={"raise": 3}).approvals("raise") == 3
    for act, least in ACTS.items():
        for fewer in (least - 1, 0, -1, True, 1.5, "2", None):
            with pytest.raises(ArgumentError, match="needed"):
                policy(needed={act: fewer})
    with pytest.raises(ArgumentError, match="act"):
        policy().approvals("everything")
    with pytest.raises(ArgumentError, match="needed"):
        policy(needed={"everything": 2})
    with pytest.raises(ArgumentError, match="never be changed"):
        policy(needed={"adopt": 4})


def test_bands_need_approvals_above_them() -> None:
    rules = policy(bands=(Band(above=0.5), Band(above=1, approvals=2), Band(above=2, approvals=None)))
    prices = {"0.5": 0, "0.500001": 1, "1": 1, "1.1": 2, "2": 2}
    assert {price: asked(rules, epsilon=Fraction(price)).approvals for price in prices} == prices
    for price in (Fraction(2000001, 1000000), None):
        with pytest.raises(PolicyError, match="refuses a release above epsilon = 2"):
            asked(rules, epsilon=price)
    assert asked(policy(), epsilon=None) == Asked(0, ())


def test_the_strictest_band_on_the_path_holds() -> None:
    strict = AccountRule(name="strict", bands=(Band(above=0.1, approvals=3),))
    loose = AccountRule(name="loose", bands=(Band(above=100),))
    rules = policy(accounts=(strict, loose), bands=(Band(above=0.5),))
    assert asked(rules, accounts=("loose",), epsilon=1).approvals == 1  # an account cannot be looser than all
    both = asked(rules, accounts=("loose", "strict"), epsilon=1)
    assert both.approvals == 3
    assert len(both.reasons) == 2
    assert asked(rules, accounts=("unknown",), epsilon=Fraction("0.3")) == Asked(0, ())


@pytest.mark.parametrize(
    "bands",
    [
        (Band(above=1), Band(above=1)),
        (Band(above=2), Band(above=1)),
        (Band(above=1, approvals=2), Band(above=2, approvals=1)),
        (Band(above=1, approvals=None), Band(above=2, approvals=1)),
        (Band(above=1, approvals=None), Band(above=2, approvals=None)),
        ("above 1",),
        None,
    ],
)
def test_bands_out_of_order_are_refused(bands: Any) -> None:
    for make in (lambda: policy(bands=bands), lambda: AccountRule(name="a", bands=bands)):
        with pytest.raises(ArgumentError, match="bands"):
            make()


def test_a_delta_above_one_over_n_takes_an_approval() -> None:
    rules = policy(accounts=(AccountRule(name="a", rows=1000), AccountRule(name="b")))
    assert asked(rules, delta=Fraction(1, 1000)) == Asked(0, ())
    above = asked(rules, delta=Fraction(1001, 1000**2))
    assert above.approvals == 1
    assert "1/n" in above.reasons[0]
    assert asked(rules, accounts=("b",), delta=Fraction(1, 2)).approvals == 0  # n is not known
    refusing = replace(rules, delta_above="refuse")
    with pytest.raises(PolicyError, match="smaller delta"):
        asked(refusing, delta=Fraction(1, 999))


def test_the_delta_of_a_limit_is_held_to_one_over_n_too() -> None:
    big = AccountRule(name="a", rows=1000, limit=Budget(epsilon=1, delta=Fraction(1, 100)))
    assert policy(accounts=(big,)).limit_asked("a", Budget(epsilon=1, delta=Fraction(1, 100))).approvals == 1
    with pytest.raises(ArgumentError, match="above 1/n"):
        policy(accounts=(big,), delta_above="refuse")


def test_no_limit_is_above_that_of_the_policy() -> None:
    rules = policy(accounts=(AccountRule(name="a", limit=Budget(epsilon=2, delta=1e-6)), AccountRule(name="free")))
    assert rules.limit_asked("a", Budget(epsilon=2, delta=1e-6)) == Asked(0, ())
    assert rules.limit_asked("a", Budget(epsilon=1)) == Asked(0, ())
    assert rules.limit_asked("free", Budget(epsilon=9)) == rules.limit_asked("new", Budget(rho=9)) == Asked(0, ())
    for more in (Budget(epsilon=2.1, delta=1e-6), Budget(epsilon=1, delta=1e-5), Budget(rho=0.1)):
        with pytest.raises(PolicyError, match="adopt another policy"):
            rules.limit_asked("a", more)


# what is allowed


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        ("laplace/*", True),
        ("plan-laplace/1", True),
        ("lap*", True),
        ("laplace/2", False),
        ("gaussian/*", False),
        ("Laplace/*", False),
        ("place/*", False),
    ],
)
def test_mechanisms_by_pattern(pattern: str, allowed: bool) -> None:
    for rules in (
        policy(mechanisms=(pattern,)),
        policy(accounts=(AccountRule(name="a", mechanisms=(pattern,)),)),
        policy(mechanisms=("laplace/*", pattern), accounts=(AccountRule(name="a", mechanisms=(pattern,)),)),
    ):
        if allowed:
            assert asked(rules) == Asked(0, ())
        else:
            with pytest.raises(PolicyError, match="does not allow plan-laplace/1"):
                asked(rules)


def test_what_wraps_is_as_allowed_as_what_is_inside() -> None:
    count = Laplace(query=bounds.count(ROW), epsilon=1)
    noisy = Gaussian(query=bounds.count(ROW), epsilon=1, delta=1e-6)
    rules = policy(mechanisms=("laplace/*",))

    def ask(plan: Plan[Any, Any]) -> Asked:
        return asked(rules, plan=kinds_within(record.canonical(plan).decode()))

    for plan in (count, sequence(a=count), repeat(count, 3), partition("ward", ("e", "w"), sequence(b=count))):
        assert ask(plan) == Asked(0, ())
    for plan in (noisy, sequence(a=count, b=noisy), repeat(repeat(noisy, 2), 2), EXAMPLES[next(reversed(EXAMPLES))]()):
        with pytest.raises(PolicyError, match="does not allow"):
            ask(plan)
    for alone in ("plan-sequence/1", (), ("plan-repeat/1", "plan-tidy/1")):  # nothing is known of what is inside
        for some in (rules, policy(mechanisms=("laplace/*", "sequence/*", "*/*"))):
            with pytest.raises(PolicyError, match="does not allow"):
                asked(some, plan=alone)
        assert asked(policy(), plan=alone) == Asked(0, ())


def test_grades_and_purpose() -> None:
    with pytest.raises(PolicyError, match="grade exact only"):
        asked(policy(), grade="float")
    assert asked(policy(grades=("exact", "float")), grade="float") == Asked(0, ())
    for purpose in ("", " \t", None):
        with pytest.raises(PolicyError, match="what a release is for"):
            asked(policy(), purpose=purpose)
    assert asked(policy(purpose=False), purpose="") == Asked(0, ())
    for grades in ((), ("seeded",), ("exact", "exact"), "exact", None):
        with pytest.raises(ArgumentError, match="grades"):
            policy(grades=grades)


def test_a_refusal_by_policy_is_one_by_the_ledger() -> None:
    assert issubclass(PolicyError, BudgetError)


# accounts


def test_a_tree_has_parents_and_no_circles() -> None:
    top = AccountRule(name="top")
    for wrong, words in (
        ((AccountRule(name="a", parent="b"),), "not listed"),
        ((AccountRule(name="a", parent="a"),), "its own parent"),
        ((AccountRule(name="a", parent="b"), AccountRule(name="b", parent="a")), "its own parent"),
        ((top, top), "one name"),
        (tuple(AccountRule(name=str(n), parent=str(n - 1) if n else None) for n in range(30)), "flatter"),
        (("top",), "AccountRules"),
    ):
        with pytest.raises(ArgumentError, match=words):
            policy(accounts=wrong)
    rules = policy(
        accounts=(AccountRule(name="a", parent="z"), AccountRule(name="z", parent="b"), AccountRule(name="b"))
    )
    assert [rule.name for rule in rules.from_the_top()] == ["b", "z", "a"]
    assert rules.account("z") == AccountRule(name="z", parent="b")
    assert rules.account("nobody") is None


def test_no_limit_is_above_its_parent_and_overcommitting_is_a_choice() -> None:
    top = AccountRule(name="top", limit=Budget(epsilon=2, delta=1e-6))
    folder = AccountRule(name="folder", parent="top")

    def below(name: str, epsilon: float, delta: float = 0) -> AccountRule:
        return AccountRule(name=name, parent="folder", limit=Budget(epsilon=epsilon, delta=delta))

    for more in (below("a", 2.1), below("a", 1, 1e-5)):
        with pytest.raises(ArgumentError, match="which binds"):
            policy(accounts=(top, folder, more))
    rules = policy(accounts=(top, folder, below("a", 1.5), below("b", 1.5)))
    with pytest.raises(ArgumentError, match="more epsilon than it has"):
        replace(rules, overcommit=False)
    assert policy(accounts=(top, folder, below("a", 1.5, 5e-7), below("b", 0.5, 5e-7)), overcommit=False)
    with pytest.raises(ArgumentError, match="more rho than it has"):
        rho = AccountRule(name="r", parent="top", limit=Budget(rho=0.01))
        policy(accounts=(top, rho), overcommit=False)


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": 0}, {"rows": 1.5}, {"rows": True}, {"level": "galaxy"}, {"limit": 3}, {"name": ""}, {"name": "a\0"},
        {"protects": "row"}, {"mechanisms": "laplace/*"}, {"mechanisms": ("a b",)}, {"mechanisms": ("x" * 500,)},
        {"parent": ""}, {"people": "ana"}, {"people": ("ana", "ana")}, {"people": ("",)}, {"people": (3,)},
        {"people": {"ana": ("analyst",)}},
    ],
)  # fmt: skip
def test_rules_of_an_account_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        AccountRule(**{"name": "a", **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"spent": (0.8, 0.5)}, {"spent": (0,)}, {"spent": (1.1,)}, {"spent": 0.5}, {"burn": 0}, {"burn": "x"},
        {"alike": 1},
        {"days": 0}, {"failures": 0}, {"failures": 4}, {"lock_after": 0}, {"lock_after": 11}, {"log": 1},
        {"terminal": "x"},
        {"header": "X: y"}, {"header": "Host"}, {"header": ""}, {"secret": "not a name"}, {"secret": "Bearer abc"},
    ],
)  # fmt: skip
def test_rules_of_alerts_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as refusal:
        AlertRule(**fields)
    assert "Bearer" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/hook", "https://", "file:///etc/passwd", "ftp://example.org", "https://user:pw@example.org",
        "http://localhost.example.org", "http://localhost@example.org", "http://127.0.0.1.example.org", "javascript:1",
        "https://exa mple.org", "https://example.org\r\nX: y", "https://example.org:99999", "//example.org", "", 3,
        "http://localhost\\@example.org", "https://example.org/#x", "gopher://localhost", "http://[::1", "http://2130706433/",
    ],
)  # fmt: skip
def test_where_alerts_do_not_go(address: Any) -> None:
    with pytest.raises(ArgumentError, match="webhook") as refusal:
        AlertRule(webhook=address)
    assert "pw" not in str(refusal.value)


@pytest.mark.parametrize(
    "address", ["https://example.org/a?b=c", "http://localhost:8080/", "http://127.0.0.1:1/x", "http://[::1]:9/"]
)
def test_where_alerts_may_go(address: str) -> None:
    assert AlertRule(webhook=address).webhook == address


def test_a_policy_is_a_value() -> None:
    unit = Unit("user:id", change="replace", group=2)
    whole = AccountRule(
        name="a", level="data set", limit=Budget(epsilon=Fraction(1, 3), delta=1e-6, raisable=True), protects=unit,
        rows=10, bands=(Band(above=0.1), Band(above=1, approvals=None)), mechanisms=("laplace/*",),
    )  # fmt: skip
    rules = policy(
        accounts=(whole,), needed={"raise": 3, "reset": 2}, alerts=AlertRule(burn=None, webhook="https://x.org")
    )
    again = record.parse(record.canonical(rules), Policy)
    assert again == rules
    assert hash(again) == hash(rules)
    assert record.canonical(again) == record.canonical(rules)
    assert pickle.loads(pickle.dumps(rules)) == rules
    assert rules == replace(rules, people=dict(reversed(PEOPLE.items())))
    assert record.canonical(rules) == record.canonical(replace(rules, people=dict(reversed(PEOPLE.items()))))
    assert rules.lock_after == 3
    assert whole.unit == str(unit)


# the same question


def digest(plan: Plan[Any, Any]) -> str:
    """What is counted; for these plans, entries that were written before plans said it themselves tell the same."""
    asked = questions.digest(plan.asks())
    assert asked == old_entries.question(record.canonical(plan).decode("ascii"))
    return asked


def count(epsilon: float = 1, **where: Any) -> Laplace:
    return Laplace(query=bounds.count_where(ROW, where) if where else bounds.count(ROW), epsilon=epsilon)


WARDS = ("east", "north", "west")
SAME: dict[str, tuple[Callable[[], Plan[Any, Any]], ...]] = {
    "other noise": (
        lambda: count(1),
        lambda: count(0.9),
        lambda: Geometric(query=bounds.count(ROW), epsilon=1),
        lambda: Gaussian(query=bounds.count(ROW), epsilon=1, delta=1e-6),
        lambda: Gaussian(query=bounds.count(ROW), rho=0.5),
        lambda: Gaussian(query=bounds.count(REPLACE), multiplier=3),
        lambda: Laplace(query=bounds.count(USER, per_unit=5), epsilon=1),
    ),
    "wrapped": (
        lambda: count(),
        lambda: sequence(x=count()),
        lambda: sequence(another_name=count(), twice=count(0.1)),
        lambda: repeat(count(), 7),
        lambda: sequence(a=repeat(sequence(b=count()), 2)),
    ),
    "clipping": tuple(
        (lambda upper=upper, low=low: Laplace(query=bounds.mean("age", low, upper, ROW), epsilon=1))
        for upper, low in ((120, 0), (121, 0), (119.5, 0), (Fraction(1201, 10), 0))
    ),
    "order of keys": (
        lambda: Laplace(query=bounds.histogram("ward", WARDS, ROW), epsilon=1),
        lambda: Laplace(query=bounds.histogram("ward", WARDS[::-1], ROW), epsilon=1),
    ),
    "order of parts": (
        lambda: sequence(a=count(), b=count(ward=("east",))),
        lambda: sequence(c=count(0.2, ward=("east",)), d=count(0.3)),
    ),
    "best": (
        lambda: Exponential(query=bounds.votes("ward", WARDS, ROW), epsilon=1),
        lambda: PermuteAndFlip(query=bounds.votes("ward", WARDS, ROW), epsilon=0.3),
        lambda: TopK(query=bounds.votes("ward", WARDS, ROW), epsilon=1, k=1),
    ),
    "median": (
        lambda: Quantile(column="age", lower=0, upper=120, q=(0.5,), epsilon=1, protects=ROW),
        lambda: SmoothMedian(column="age", lower=0, upper=120, epsilon=1, protects=REPLACE),
        lambda: QuantileTree(column="age", lower=0, upper=120, q=(0.5,), epsilon=1, protects=REPLACE),
    ),
    "filter, hardly moved": (lambda: count(age=(65, None)), lambda: count(age=(Fraction("65.0001"), None))),
    "tidied": (
        lambda: Laplace(query=bounds.histogram("ward", WARDS, ROW), epsilon=1),
        lambda: Tidy(plan=Laplace(query=bounds.histogram("ward", WARDS, ROW), epsilon=0.5), whole=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_same_question_at_other_noise_is_alike(name: str) -> None:
    assert len({digest(make()) for make in SAME[name]}) == 1


def test_other_questions_are_not_alike() -> None:
    def histogram(column: str, keys: tuple[Any, ...]) -> Laplace:
        return Laplace(query=bounds.histogram(column, keys, ROW), epsilon=1)

    plans = [
        count(),
        count(ward=("east",)),
        count(ward=("west",)),
        count(room=("west",)),
        count(ward=("east", "west")),
        count(ward=("east",), age=(65, None)),
        count(age=(65, None)),
        count(age=(66, None)),
        count(age=(None, 65)),
        count(year=(2023, None)),
        count(year=(2024, None)),
        count(day=(19001, None)),
        count(day=(19002, None)),
        Laplace(query=bounds.mean("age", 0, 120, ROW), epsilon=1),
        Laplace(query=bounds.mean("cost", 0, 120, ROW), epsilon=1),
        Laplace(query=bounds.clipped_sum("age", 0, 120, ROW), epsilon=1),
        Laplace(query=bounds.mean("age", 0, 1000, ROW), epsilon=1),
        histogram("ward", WARDS),
        histogram("ward", WARDS[:2]),
        histogram("room", WARDS),
        histogram("ward", (11, 12)),
        histogram("ward", (11, 13)),
        histogram("ward", ("11", "12")),
        histogram("ward", (False, True)),
        histogram("ward", (0, 1)),
        Laplace(query=bounds.cross({"ward": (11, 12), "on": (False, True)}, ROW), epsilon=1),
        Laplace(query=bounds.cross({"ward": (11, 13), "on": (False, True)}, ROW), epsilon=1),
        Exponential(query=bounds.votes("ward", WARDS, ROW), epsilon=1),
        Quantile(column="age", lower=0, upper=120, q=(0.5,), epsilon=1, protects=ROW),
        Quantile(column="age", lower=0, upper=120, q=(0.9,), epsilon=1, protects=ROW),
        Quantile(column="age", lower=0, upper=120, q=(0.95,), epsilon=1, protects=ROW),
        Laplace(query=bounds.bins_between("age", 0, 120, 12, ROW), epsilon=1),
        Laplace(query=bounds.bins_between("age", 0, 120, 13, ROW), epsilon=1),
        Laplace(query=bounds.bins("age", (0, 18, 65), ROW), epsilon=1),
        Laplace(query=bounds.bins("age", (0, 19, 65), ROW), epsilon=1),
        partition("ward", ("east", "west"), count()),
        partition("ward", ("east", "north"), count()),
        partition("ward", (11, 12), count()),
        partition("ward", (11, 13), count()),
        partition("room", ("east", "west"), count()),
        sequence(a=count(), b=count(ward=("east",))),
    ]
    digests = [digest(plan) for plan in plans]
    twins = [(a, b) for a in range(len(plans)) for b in range(a) if digests[a] == digests[b]]
    assert [(plans[a], plans[b]) for a, b in twins] == []


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda cls: cls.__name__)
def test_every_kind_of_plan_has_a_digest(cls: type[Plan[Any, Any]]) -> None:
    plan = EXAMPLES[cls]()
    text = record.canonical(plan).decode("ascii")
    for asked in (questions.digest(plan.asks()), old_entries.question(text)):
        assert len(asked) == 64
    assert questions.digest(plan.asks()) == questions.digest(EXAMPLES[cls]().asks())
    assert old_entries.question(text) == old_entries.question(text)
    assert kinds_within(text)[0] == cls.kind  # type: ignore[attr-defined]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=10), st.integers(1, 9))
def test_no_epsilon_and_no_bound_on_contributions_makes_it_another_question(epsilon: Fraction, per_unit: int) -> None:
    plan = Laplace(query=bounds.clipped_sum("age", 0, 120, USER, per_unit=per_unit), epsilon=epsilon)
    assert digest(plan) == digest(Laplace(query=bounds.clipped_sum("age", 0, 120, USER), epsilon=1))


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "null", '"x"', "{", '{"is":"plan-repeat/1"}', "[" * 5000, '{"is":"exact"}']
)
def test_what_is_no_plan_has_no_digest(text: str) -> None:
    if text == '{"is":"exact"}':
        assert old_entries.question(text)  # a name that is not known is asked about as it stands
        return
    with pytest.raises(RecordError, match="no plan"):
        old_entries.question(text)
