"""Entries that no ledger would have written, in a chain that holds: `verify` names each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, events, record, reserve
from sfumato._version import PRICES, VERSION
from sfumato.accounting.filters import Charge, Filter, PlanSum, PureSum
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import Band
from sfumato.ledger.proof.replay import DUTY, RULES
from sfumato.ledger.proof.verify import Report, verify
from sfumato.ledger.stores.memory import MemoryStore
from tests.helpers import BY_PATIENT, Bite, laplace
from tests.ledger.offices import PEOPLE, Office, ask, governed, policy
from tests.ledger.stores import ROW
from tests.ledger.test_approvals import BANDS

Entry = dict[str, Any]
Do = Callable[[Office], Any]
Edit = Callable[[Entry], Entry | None]
NOTHING = Fraction(0)
HIGH = Budget(epsilon=10, delta=1e-9)


def chained(bodies: list[Entry]) -> Report:
    """What `verify` says of a chain of these entries; its hashes are right."""
    store = MemoryStore()
    with store.writing() as book:
        for body in bodies:
            book.append(record.canonical(body))
    return verify(store)


def found_wrong(report: Report, number: int) -> str:
    """The words about that entry, if it is the first that is wrong."""
    return next((p.text for p in report.problems if p.entry == number), "")


def forged(office: Office, do: Do, edit: Edit, kind: str | None = None) -> str:
    """Do something honest, change the entry that it wrote, and verify. The honest one passes."""
    before = len(office.entries())
    do(office)
    office.check()
    entries = office.entries()
    at = next(n for n in range(len(entries) - 1, before - 1, -1) if kind in (None, entries[n]["kind"]))
    changed = edit(dict(entries[at]))
    report = chained([*entries[:at], *([] if changed is None else [changed]), *entries[at + 1 :]])
    assert report.first_bad is None or report.first_bad >= at + 1
    return found_wrong(report, at + 1)


def small(office: Office) -> Office:
    """Team "team" below "visits", and another data set; block "jan" of "months"."""
    adam = office["adam"]
    adam.open_account("team", Budget(epsilon=1), parent="visits", level="team")
    adam.open_account("mate", Budget(epsilon=1), parent="visits", level="team")
    office.fresh("labs", Budget(epsilon=2, delta=1e-6), level="data set", unit=ROW)
    office.fresh("months", Budget(epsilon=2), level="data set", unit=ROW)
    office["dora"].open_block("months", "jan", Budget(epsilon=1))
    office["dora"].open_block("months", "feb", Budget(epsilon=1))
    return office


def free() -> Office:
    """The same without a policy: no duty stands in the way of a forger."""
    office = Office()
    office["adam"].open_account("org", Budget(epsilon=10), level="organisation")
    office["adam"].open_account("visits", Budget(epsilon=2), parent="org", level="data set", unit=ROW)
    return small(office)


def cheaper(entry: Entry) -> Entry:
    return {**entry, "charged": {n: Charge(tuple((NOTHING, NOTHING) for _ in c.prices), c.shape)
                                 for n, c in entry["charged"].items()}}  # fmt: skip


def only(*names: str) -> Edit:
    def edit(entry: Entry) -> Entry:
        receipt = replace(entry["receipt"], accounts=names)
        return {**entry, "receipt": receipt, "charged": {name: entry["charged"][name] for name in names}}

    return edit


def receipt(**fields: Any) -> Edit:
    return lambda entry: {**entry, "receipt": replace(entry["receipt"], **fields)}


def put(**fields: Any) -> Edit:
    return lambda entry: {**entry, **fields}


def spend(epsilon: Any = Fraction(1, 2), *accounts: str, data: str = "visits@1") -> Do:
    return lambda office: ask(office["ana"], laplace(epsilon), *accounts, data=data)


SPENDS: dict[str, tuple[Do, Edit]] = {
    "charges nothing": (spend(), cheaper),
    "charges the child alone": (spend(0.5, "team"), only("team")),
    "leaves out the organisation": (spend(0.5, "team"), only("team", "visits")),
    "leaves out the data": (spend(0.5, "team", data="labs@1"), only("team", "visits", "org")),
    "leaves out a block": (spend(0.5, data="months@1#jan,feb"), only("months", "months#jan")),
    "charges nobody": (spend(), only()),
    "names no block": (spend(0.5, data="months@1#jan"), receipt(data="months@1")),
    "names an unknown block": (spend(0.5, data="months@1#jan"), receipt(data="months@1#dec")),
    "names unknown data": (spend(), receipt(data="pets@1")),
    "names no data": (spend(), receipt(data="")),
    "another event": (spend(), receipt(event=events.Laplace(epsilon=Fraction(1, 9)))),
    "another unit": (spend(), receipt(unit=BY_PATIENT)),
    "another plan's hash": (spend(), receipt(plan_hash="0" * 64)),
    "another plan": (spend(), put(plan=record.canonical(laplace(2)).decode())),
    "another delta": (spend(), put(delta=Fraction(1, 100))),
    "less than nothing": (spend(), put(charged={"visits": "x", "org": "y"})),
    "a member less": (
        spend(0.5, data="labs@1"),
        lambda e: {**e, "charged": {n: Charge(c.prices[1:]) for n, c in e["charged"].items()}},
    ),
    "closes no member that it should": (
        lambda office: ask(office["ana"], Bite(events.ZeroConcentrated(rho=0.01), Fraction(1, 10**8)), data="labs@1"),
        lambda e: {**e, "charged": {n: Charge((c.prices[0] or (NOTHING, NOTHING), *c.prices[1:-2], (NOTHING, NOTHING),
                                               c.prices[-1])) for n, c in e["charged"].items()}},
    ),
    "a foreign shape": (
        spend(0.5, data="labs@1"),
        lambda e: {**e, "charged": {"labs": Charge(((Fraction(1, 2), NOTHING),), replace(
            Filter.of(Budget(epsilon=2, delta=1e-6)), open=(PlanSum(limit=Fraction(100), delta_limit=Fraction(1, 2)),)
        ))}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SPENDS)
def test_a_forged_spend_is_named(what: str) -> None:
    assert forged(free(), *SPENDS[what]), what


@pytest.mark.parametrize("what", SPENDS)
def test_a_forged_spend_is_named_under_a_policy_too(what: str) -> None:
    assert forged(small(governed()), *SPENDS[what]), what


def drawn(office: Office) -> None:
    ana = office["ana"]
    held = ana.hold(("team",), reserve(unit=ROW, budget=Budget(epsilon=0.5)), data="visits@1", grade="exact", note="n")
    ana.open(held)
    ana.draw(held, events.Laplace(epsilon=0.25), NOTHING)


HOLDS: dict[str, tuple[str, Edit]] = {
    "a draw that charges nothing": ("draw", cheaper),
    "a draw that charges the child alone": ("draw", lambda e: {**e, "charged": {"team": e["charged"]["team"]}}),
    "a draw of another event": ("draw", put(event=events.Laplace(epsilon=Fraction(1, 9)))),
    "a draw from nothing": ("draw", put(receipt="0" * 32)),
    "a hold that leaves out those above": ("hold", receipt(accounts=("team",))),
    "a hold that leaves out the data": ("hold", receipt(data="labs@1")),
    "a hold with members of its own": (
        "hold",
        put(shapes={"team": replace(Filter.of(Budget(epsilon=1)), open=(PureSum(limit=Fraction(99)),))}),
    ),
    "a hold with another budget": ("hold", put(shapes={"team": Filter.of(Budget(epsilon=9))})),
    "a hold after others with members of its own": ("hold", put(shapes={"visits": Filter.of(Budget(epsilon=2))})),
    "never opened": ("open", lambda _: None),
}


@pytest.mark.parametrize("what", HOLDS)
def test_a_forged_hold_or_draw_is_named(what: str) -> None:
    kind, edit = HOLDS[what]
    office = free()
    if "after others" in what:
        spend(0.25)(office)
    assert forged(office, drawn, edit, kind), what


def lowered(office: Office) -> None:
    office["adam"].change_limit("visits", Budget(epsilon=1.5), reason="less")


def moved(office: Office) -> None:
    office["adam"].move("team", "mate", epsilon=0.5, reason="x")


LIMITS: dict[str, tuple[Do, Edit]] = {
    "forgets what was spent": (lowered, put(filter=Filter.of(Budget(epsilon=1.5)))),
    "has more room than it says": (
        lowered,
        lambda e: {**e, "filter": replace(e["filter"], open=(replace(e["filter"].open[0], limit=Fraction(9)),))},
    ),
    "spent less": (
        lowered,
        lambda e: {**e, "filter": replace(e["filter"], open=(replace(e["filter"].open[0], spent=NOTHING),))},
    ),
    "another budget than the filter": (lowered, put(budget=Budget(epsilon=2))),
    "above the parent": (lowered, put(budget=HIGH, filter=Filter.of(HIGH))),
    "below a child": (
        lowered,
        lambda e: {**e, "budget": Budget(epsilon=0.75), "filter": replace(
            e["filter"], budget=Budget(epsilon=0.75), open=(replace(e["filter"].open[0], limit=Fraction(3, 4)),))},
    ),
    "of an account that never was": (lowered, put(account="nobody")),
    "a move that is no move": (moved, put(size=Fraction(1, 4))),
    "a move to itself": (moved, put(target="team")),
    "a move up": (moved, put(target="org")),
    "opened above its parent": (
        lambda office: office["adam"].open_account("new", Budget(epsilon=1), parent="visits"),
        put(budget=Budget(epsilon=3), filter=Filter.of(Budget(epsilon=3))),
    ),
    "opened with members of its own": (
        lambda office: office["adam"].open_account("new", Budget(epsilon=1), parent="visits"),
        lambda e: {**e, "filter": replace(e["filter"], open=(PureSum(limit=Fraction(99)),))},
    ),
    "opened again": (
        lambda office: office["adam"].open_account("new", Budget(epsilon=2), parent="visits"),
        put(account="visits"),
    ),
    "closed twice": (lambda office: [office["adam"].close_account(n, reason="x") for n in ("team", "mate")],
                     put(account="team")),
}  # fmt: skip


@pytest.mark.parametrize("what", LIMITS)
def test_a_forged_limit_is_named(what: str) -> None:
    office = free()
    spend(0.25)(office)
    assert forged(office, *LIMITS[what]), what


def registered(office: Office) -> None:
    office["dora"].register("view", accounts=("visits",), reason="a view")
    office["dora"].register("view", accounts=("labs",), reason="also")


REGISTERS: dict[str, tuple[Do, Edit]] = {
    "drops an account": (registered, put(accounts=("labs",))),
    "drops all": (registered, put(accounts=())),
    "drops a block": (
        lambda office: office["dora"].open_block("months", "mar", Budget(epsilon=1)),
        put(blocks={"mar": "months#mar"}),
    ),
    "moves a block to another account": (
        lambda office: office["dora"].open_block("months", "mar", Budget(epsilon=1)),
        put(blocks={"jan": "labs", "feb": "months#feb", "mar": "months#mar"}),
    ),
    "forgets what it is a copy of": (
        lambda office: [office["dora"].register("view", same_as="visits", reason="a view"),
                        office["dora"].register("view", accounts=("labs",), reason="also")],
        put(same_as=()),
    ),
    "names an account that never was": (registered, put(accounts=("visits", "labs", "nobody"))),
}  # fmt: skip


@pytest.mark.parametrize("what", REGISTERS)
def test_a_forged_register_is_named(what: str) -> None:
    assert forged(free(), *REGISTERS[what]), what


# under a policy


def raised(office: Office) -> None:
    office.approve(Act.limit("visits", Budget(epsilon=3)), "adam", "paula", "dora")
    office["adam"].change_limit("visits", Budget(epsilon=3), reason="more")


def adopted(office: Office) -> None:
    after = policy(approval_days=7)
    office.approve(Act(do="adopt", on="", what=record.digest(after)), "paula", "peter", "dora")
    office["paula"].adopt(after, reason="better")


def approved_release(office: Office) -> None:
    plan = laplace(0.75)
    office.approve(Act.spend(plan.hash, "visits@1", ("visits", "org")), "ana", "paula")
    ask(office["ana"], plan)


def weakened(office: Office) -> None:
    office.fresh("people", Budget(epsilon=1), unit=BY_PATIENT)
    office.approve(Act.weaken("visits", ["people"]), "dora", "paula", "doris")
    office["dora"].register("visits", accounts=("people",), reason="x")


def declared(office: Office) -> None:
    what = record.digest({"text": "wards", "recipients": "all"})
    office.approve(Act(do="invariant", on="visits@1", what=what), "dora", "paula", "doris")
    office["dora"].declare("visits@1", "invariant", "wards", recipients="all", reason="law")


GOVERNED: dict[str, tuple[Do, str, Edit]] = {
    "a raise without approvals": (raised, "limit", put(approvals=())),
    "a raise with one": (raised, "limit", lambda e: {**e, "approvals": e["approvals"][:1]}),
    "a raise with one twice": (raised, "limit", lambda e: {**e, "approvals": e["approvals"][:1] * 2}),
    "a raise with strangers' approvals": (raised, "limit", put(approvals=(1, 2))),
    "a raise of another budget": (
        raised, "limit", lambda e: {**e, "budget": Budget(epsilon=4), "filter": Filter.of(Budget(epsilon=4))}),
    "a raise by an analyst": (raised, "limit", put(by="ana")),
    "an approval by an analyst": (raised, "approve", put(by="ana")),
    "an approval by the one who asks": (raised, "approve", put(by="adam")),
    "an approval for ever": (raised, "approve", put(until="9999-01-01T00:00:00+00:00")),
    "an approval that nobody asked for": (raised, "ask", lambda _: None),
    "a policy that was adopted alone": (adopted, "policy", put(approvals=())),
    "another policy than was approved": (adopted, "policy", put(policy=policy(approval_days=99))),
    "a policy by an administrator": (adopted, "policy", put(by="adam")),
    "a release above its band": (approved_release, "spend", put(approvals=())),
    "a release by an auditor": (approved_release, "spend", put(by="rita")),
    "a release by a stranger": (spend(0.1), "spend", put(by="stranger")),
    "a release by who granted": (spend(0.1), "spend", put(by="adam")),
    "a release with other noise": (spend(0.1), "spend", receipt(grade="float")),
    "another unit without approvals": (weakened, "register", put(approvals=())),
    "without DP, without approvals": (declared, "declare", put(approvals=())),
    "another declaration": (declared, "declare", put(text="all names")),
    "opened by an auditor": (lambda o: o["ana"].open(ask(o["ana"], laplace(0.1))), "open", put(by="rita")),
    "a question by an auditor": (raised, "ask", put(by="rita")),
    "an unlocking by an analyst": (lambda o: o["paula"].unlock("visits", "seen"), "unlock", put(by="ana")),
}  # fmt: skip


@pytest.mark.parametrize("what", GOVERNED)
def test_a_forged_act_is_named(what: str) -> None:
    do, kind, edit = GOVERNED[what]
    office = governed(bands=BANDS)
    entries_before = len(office.entries())
    words = forged(office, do, edit, kind)
    if words:
        return
    # an approval that is worth nothing shows where it is used
    assert kind in ("approve", "ask"), what
    entries = office.entries()
    at = next(n for n in range(len(entries) - 1, entries_before - 1, -1) if entries[n]["kind"] == kind)
    changed = edit(dict(entries[at]))
    report = chained([*entries[:at], *([] if changed is None else [changed]), *entries[at + 1 :]])
    assert report.first_bad is not None and report.first_bad > at


def test_an_approval_that_had_run_out_is_named() -> None:
    office = governed(bands=(Band(above=Fraction(1, 2)),))
    approved_release(office)
    entries = office.entries()
    late = {**entries[-1], "at": "2199-01-01T00:00:00+00:00"}
    assert "run out" in found_wrong(chained([*entries[:-1], late]), len(entries))
    between = {**entries[1], "kind": "unlock", "account": "visits", "reason": "x", "by": "paula", "at": late["at"]}
    report = chained([*entries[:-1], between, entries[-1]])
    assert "run out" in found_wrong(report, len(entries) + 1), "the clock was put back after that"


def test_an_older_copy_is_accepted_by_two_officers_of_whom_one_did_it() -> None:
    entries = governed().entries()
    said: Entry = {"kind": "accept restore", "by": "paula", "at": entries[-1]["at"], "reason": "x"}
    assert chained([*entries, {**said, "principals": ("paula", "peter")}]).first_bad is None
    for names in (("paula", "paula"), ("peter", "peter"), ("paula", "ana"), ("dora", "peter"), ("paula", "nobody")):
        assert chained([*entries, {**said, "principals": names}]).first_bad == len(entries) + 1


def test_an_approval_is_used_once() -> None:
    office = governed(bands=(Band(above=Fraction(1, 2)),))
    approved_release(office)
    entries = office.entries()
    again = {**entries[-1], "receipt": replace(entries[-1]["receipt"], id="1" * 32)}
    assert "used before" in found_wrong(chained([*entries, again]), len(entries) + 1)


def test_a_first_policy_by_somebody_whom_it_names_no_adopter_is_named() -> None:
    office = Office()
    assert "not allowed" in forged(office, lambda o: o["paula"].adopt(policy(), reason="x"), put(by="ana"), "policy")


# other versions


def priced_by(version: str, edit: Edit) -> Report:
    office = free()
    spend(0.5, data="labs@1")(office)
    entries = office.entries()
    return chained([*entries[:-1], edit({**entries[-1], "library": f"sfumato {version}"}) or {}])


def test_an_entry_of_another_version_that_charged_less_is_listed() -> None:
    report = priced_by("0.0.1", cheaper)
    assert "charged less than their events cost" in str(report) and report.first_bad is not None


def test_an_entry_of_another_version_that_charged_more_is_none() -> None:
    def dearer(entry: Entry) -> Entry:
        more = {n: Charge(tuple(p and (p[0] * Fraction(11, 10), p[1]) for p in c.prices))
                for n, c in entry["charged"].items()}  # fmt: skip
        return {**entry, "charged": more}

    for other in ("9.9.9", VERSION, f"{VERSION}, prices {PRICES - 1}"):  # the first edition had no number
        assert "charged less" not in str(priced_by(other, dearer)) and priced_by(other, dearer).first_bad is None
    now = priced_by(f"{VERSION}, prices {PRICES}", dearer)
    assert "not the price" in str(now), "this version knows its own prices"


@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_limits_of_another_version_may_be_tighter_and_are_listed_where_looser(factor: Fraction) -> None:
    office = free()
    entries = office.entries()
    at = next(n for n, e in enumerate(entries) if e.get("account") == "labs")
    filter_ = entries[at]["filter"]
    other = replace(filter_, open=tuple(replace(m, limit=m.limit * factor) for m in filter_.open))
    old = {**entries[at], "filter": other, "library": "sfumato 0.0.1"}
    report = chained([*entries[:at], old, *entries[at + 1 :]])
    assert ("charged less" in str(report)) == (factor > 1), report
    now = {**entries[at], "filter": other}
    assert found_wrong(chained([*entries[:at], now, *entries[at + 1 :]]), at + 1)


# the rules themselves


def test_each_kind_of_entry_has_a_rule_that_can_say_no() -> None:
    """An entry with no fields but its kind is refused by every rule that has something to say."""
    office = free()
    for kind in RULES:
        strange = {"kind": kind, "by": "adam", "at": "2026-01-01T00:00:00+00:00"}
        report = chained([*office.entries(), strange])
        if kind not in ("writer", "accept restore"):
            assert report.first_bad == len(office.entries()) + 1, kind
    assert set(DUTY) <= set(RULES)
    assert set(RULES) - set(DUTY) == {"birth", "writer", "accept restore", "settle", "close", "ask"}


def test_people_of_the_policy_are_those_of_the_tests() -> None:
    assert governed()["rita"].policy() == policy(people=PEOPLE)
    assert isinstance(governed()["rita"], Ledger)
