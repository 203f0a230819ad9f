"""Who may do what; what is told when a mark is passed; and what a retry gets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, bounds, events, record, reserve
from sfumato import mechanisms as m
from sfumato.errors import BudgetError, LedgerError, PolicyError, ReceiptError
from sfumato.ledger import payments
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.opening import open_ledger
from sfumato.ledger.policy import watching
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import AccountRule, AlertRule
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from tests.helpers import AGES, BY_PATIENT, PATIENTS, account_of, filed_in, laplace
from tests.ledger.offices import PEOPLE, Office, act_of, ask, governed, policy
from tests.ledger.stores import ROW, Stores
from tests.talking import talking

RESERVE = reserve(unit=ROW, budget=Budget(epsilon=Fraction(1, 2)))

DOING: dict[str, tuple[set[str], Callable[[Ledger], Any]]] = {
    "spend": ({"ana", "max"}, lambda desk: ask(desk, laplace(0.1))),
    "hold": ({"ana", "max"}, lambda desk: desk.hold((), RESERVE, data="visits@1", grade="exact", note="")),
    "open": ({"adam"}, lambda desk: desk.open_account("new", Budget(epsilon=1), parent="visits", level="team")),
    "lower": ({"adam"}, lambda desk: desk.change_limit("visits", Budget(epsilon=1), reason="less")),
    "close": ({"adam"}, lambda desk: desk.close_account("visits", reason="done")),
    "provision": ({"adam"}, lambda desk: desk.provision()),
    "register": ({"dora", "doris"}, lambda desk: desk.register("view", same_as="visits", reason="a view")),
    "block": ({"dora", "doris"}, lambda desk: desk.open_block("visits", "jan", Budget(epsilon=1))),
    "unlock": ({"paula", "peter"}, lambda desk: desk.unlock("visits", "looked at")),
    "ask": ({*PEOPLE} - {"rita"}, lambda desk: desk.ask(Act.limit("visits", Budget(epsilon=3)), reason="please")),
}


@pytest.mark.parametrize("what", DOING)
def test_each_duty_has_its_people_and_nobody_else(ledgers: Stores, what: str) -> None:
    may, do = DOING[what]
    office = governed(ledgers)
    before = len(office.entries())
    for who in ({*PEOPLE} - may) | {"stranger"}:
        with pytest.raises(PolicyError, match=r"may not|does not list"):
            do(office[who])
    assert len(office.entries()) == before
    do(office[min(may)])
    office.check()


def test_an_auditor_reads_and_does_nothing(ledgers: Stores) -> None:
    office = governed(ledgers)
    ana, rita = office["ana"], office["rita"]
    receipt = ask(ana, laplace(0.1), key="k")
    held = ana.hold((), RESERVE, data="visits@1", grade="exact", note="")
    ana.open(held)
    name = office["adam"].ask(Act.limit("visits", Budget(epsilon=3)), reason="please")
    before = len(office.entries())
    for act in (
        lambda: rita.open(receipt),
        lambda: rita.draw(held, events.Laplace(epsilon=0.1), Fraction(0)),
        lambda: rita.paid("k", (), laplace(0.1), data="visits@1"),
        lambda: ask(rita, laplace(0.1), key="k"),
        lambda: rita.approve(name, reason="seen"),
        lambda: rita.adopt(policy(), reason="mine"),
        lambda: rita.declare("visits@1", "invariant", "x", recipients="y", reason="z"),
        lambda: rita.move("visits", "org", epsilon=1, reason="x"),
    ):
        with pytest.raises(BudgetError):
            act()
    assert len(office.entries()) == before
    assert rita.spent("visits") and rita.left("visits") and rita.policy() and rita.pending() and rita.held("visits")
    office.check()


def test_who_grants_may_not_spend_also_after_the_role_changed(ledgers: Stores) -> None:
    office = governed(ledgers)
    after = policy(people={**PEOPLE, "adam": ("analyst",), "eve": ("budget administrator",)})
    office.approve(Act(do="adopt", on="", what=record.digest(after)), "paula", "peter", "dora")
    office["paula"].adopt(after, reason="adam changed sides")
    for accounts in ((), ("visits",), ("org",)):
        with pytest.raises(PolicyError, match="who grants may not spend"):
            ask(office["adam"], laplace(0.1), *accounts)
        with pytest.raises(PolicyError, match="who grants may not spend"):
            office["adam"].hold(accounts, RESERVE, data="visits@1", grade="exact", note="")
    office.approve(Act.reset("labs", Budget(epsilon=1)), "eve", "paula", "dora")
    office["eve"].open_account("labs", Budget(epsilon=1), reason="other people", level="data set", unit=ROW)
    ask(office["adam"], laplace(0.1), data="labs@1")
    office.check()


def test_somebody_who_was_revoked_opens_and_draws_no_more(ledgers: Stores) -> None:
    office = governed(ledgers)
    ana = office["ana"]
    paid, held = ask(ana, laplace(0.1), key="k"), ana.hold((), RESERVE, data="visits@1", grade="exact", note="")
    ana.open(held)
    after = policy(people={who: roles for who, roles in PEOPLE.items() if who != "ana"})
    office.approve(Act(do="adopt", on="", what=record.digest(after)), "paula", "peter", "dora")
    office["paula"].adopt(after, reason="ana left")
    for act in (
        lambda: ana.open(paid),
        lambda: ana.draw(held, events.Laplace(epsilon=0.1), Fraction(0)),
        lambda: ana.paid("k", (), laplace(0.1), data="visits@1"),
    ):
        with pytest.raises(PolicyError, match="does not list 'ana'"):
            act()
    office["max"].close(held)
    office.check()


def test_roles_of_a_policy_hold_for_processes_that_run_already(durable: Stores) -> None:
    office = Office(durable)
    office["adam"].open_account("org", Budget(epsilon=1))
    office["rita"].open_account("mine", Budget(epsilon=1), parent="org")
    office["paula"].adopt(policy(), reason="first")
    with pytest.raises(PolicyError, match="may not grant"):
        office["rita"].open_account("more", Budget(epsilon=1), parent="org")
    office.check()


@pytest.mark.parametrize(
    ("fields", "asked", "words"),
    [
        ({"purpose": True}, {"note": "  "}, "what a release is for"),
        ({}, {"grade": "float"}, "noise of grade exact"),
        ({"mechanisms": ("gaussian/*",)}, {}, "does not allow"),
    ],
)
def test_what_a_policy_forbids_is_not_paid(ledgers: Stores, fields: Any, asked: Any, words: str) -> None:
    office = governed(ledgers, **fields)
    before = len(office.entries())
    with pytest.raises(PolicyError, match=words):
        ask(office["ana"], laplace(0.1), **asked)
    assert len(office.entries()) == before and office["ana"].spent("visits")[0].spent == 0


# provision


def listed(*limits: tuple[str, str | None, Any]) -> tuple[AccountRule, ...]:
    return tuple(AccountRule(name=n, parent=p, limit=None if e is None else Budget(epsilon=e)) for n, p, e in limits)


def adopt(office: Office, **fields: Any) -> None:
    after = policy(**fields)
    if office["paula"].policy() is not None:
        office.approve(Act(do="adopt", on="", what=record.digest(after)), "paula", "peter", "dora")
    office["paula"].adopt(after, reason="as decided")


def test_provisioning_is_all_or_nothing_and_says_what_it_did(ledgers: Stores) -> None:
    office = Office(ledgers)
    adopt(office, accounts=listed(("org", None, 5), ("b", "f", 2), ("f", "org", None), ("a", "org", 3)))
    assert set(office["adam"].provision()) == {"opened org", "opened a", "opened f", "opened b"}
    assert office["adam"].provision() == ()
    ask(office["ana"], laplace(2), data="b@1")
    # everything smaller, from above: what is below gives way first
    adopt(office, accounts=listed(("org", None, Fraction(5, 2)), ("b", "f", 2), ("f", "org", None), ("a", "org", 1)))
    assert len(office["adam"].provision()) == 2 and office["adam"].provision() == ()
    before = len(office.entries())
    adopt(
        office, accounts=listed(("org", None, 1), ("b", "f", 1), ("f", "org", None), ("a", "org", 1), ("c", "org", 1))
    )
    with pytest.raises(BudgetError, match="what was spent already"):
        office["adam"].provision()
    adopt(
        office, accounts=listed(("org", None, 5), ("b", "f", 2), ("f", "org", None), ("a", "org", 1), ("c", "org", 1))
    )
    with pytest.raises(PolicyError, match="raising the limit of 'org'") as refused:
        office["adam"].provision()
    assert not [e for e in office.entries()[before:] if e["kind"] in ("open account", "limit")]
    office.approve(act_of(refused), "adam", "paula", "dora")
    assert set(office["adam"].provision()) == {"opened c", f"changed org to {Budget(epsilon=5)}"}
    office.check()


def test_limits_below_add_up_to_no_more_where_the_policy_says_so(ledgers: Stores) -> None:
    office = Office(ledgers)
    adopt(office, overcommit=False)
    adam = office["adam"]
    adam.open_account("org", Budget(epsilon=2))
    adam.open_account("folder", None, parent="org")
    adam.open_account("a", Budget(epsilon=1), parent="org", level="team")
    for parent in ("org", "folder"):
        with pytest.raises(PolicyError, match="below 'org' would add up"):
            adam.open_account("b", Budget(epsilon=Fraction(3, 2)), parent=parent)
    adam.open_account("b", Budget(epsilon=1), parent="folder")
    with pytest.raises(PolicyError, match="add up"):
        adam.open_account("c", Budget(epsilon=Fraction(1, 100)), parent="org")
    adam.close_account("b", reason="done")
    adam.open_account("c", Budget(epsilon=1), parent="org", level="team")
    adam.move("a", "c", epsilon=Fraction(1, 2), reason="the sum stays")
    office.check()


# alerts


class Sink(logging.Handler):
    def __init__(self, ledger: Ledger | None = None) -> None:
        super().__init__()
        self.said: list[str] = []
        self.ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        if self.ledger is not None:
            self.said.append(f"spent {self.ledger.spent('visits')[0].spent}")
        if "raise" in (self.name or ""):
            raise OSError("a sink that is gone")


@pytest.fixture
def sink() -> Iterator[Sink]:
    logger, found = logging.getLogger("sfumato.ledger"), Sink()
    logger.addHandler(found)
    yield found
    logger.removeHandler(found)


LOUD = AlertRule(spent=(Fraction(1, 2), Fraction(4, 5)), burn=None, alike=None)


def test_marks_on_a_path_are_told_once_per_crossing_and_after_the_commit(ledgers: Stores, sink: Sink) -> None:
    office = governed(ledgers, alerts=LOUD)
    office["adam"].open_account("team", Budget(epsilon=1), parent="visits", level="team")
    sink.ledger = office["paula"]
    ask(office["ana"], laplace(0.4), "team")
    assert sink.said == []
    ask(office["ana"], laplace(0.2), "team")
    assert len(sink.said) == 2 and "'team'" in sink.said[0] and sink.said[1] == "spent 3/5", "it was committed by then"
    ask(office["ana"], laplace(0.1), "team")
    assert len(sink.said) == 2, "once"
    with pytest.raises(BudgetError):
        ask(office["ana"], laplace(0.9), "team")
    assert len(sink.said) == 2, "nothing is told of what was refused"
    ask(office["ana"], laplace(0.3), "team")
    said = sink.said[2::2]
    assert sorted(name for name in ("'team'", "'visits'", "'org'") for text in said if name in text) == [
        "'team'",
        "'visits'",
    ]
    office.check()


def test_a_sink_that_raises_changes_nothing(ledgers: Stores, sink: Sink) -> None:
    office = governed(ledgers, alerts=LOUD)
    sink.name = "raise"
    receipt = ask(office["ana"], laplace(1.5))
    assert sink.said and office["ana"].spent("visits")[0].spent == Fraction(3, 2)
    office["ana"].open(receipt)
    office["ana"].settle(receipt, "failed")
    assert account_of(office["ana"], "visits").failures == 1
    office.check()


def test_what_is_remembered_goes_with_what_is_refused(ledgers: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert is no part of a spend that was undone."""
    office = governed(ledgers, alerts=LOUD)

    def remembered() -> Any:
        with office["ana"]._store.reading() as book:
            return book.facts("watch")

    before, told = remembered(), []
    monkeypatch.setattr("sfumato.ledger.desk.send", lambda alerts, policy: told.append(alerts))

    def broken(*_: Any) -> Any:
        watched(*_)
        raise LedgerError("the disk is full")

    watched = watching.spent
    monkeypatch.setattr(payments.watching, "spent", broken)
    with pytest.raises(LedgerError):
        ask(office["ana"], laplace(1.5))
    assert remembered() == before and told == [] and office["ana"].spent("visits")[0].spent == 0


def test_failures_lock_as_the_policy_says(ledgers: Stores, sink: Sink) -> None:
    office = governed(ledgers, alerts=AlertRule(lock_after=2))
    ana = office["ana"]
    for _ in range(2):
        receipt = ask(ana, laplace(0.1))
        ana.open(receipt)
        ana.settle(receipt, "failed")
    with pytest.raises(BudgetError, match="locked after 2 failures"):
        ask(ana, laplace(0.1))
    assert any("locked" in text for text in sink.said)
    for name in ("visits", "org"):
        office["paula"].unlock(name, "looked at")
    ask(ana, laplace(0.1))
    office.check()


# an older copy


def test_an_older_copy_is_accepted_by_two_officers_of_whom_one_does_it(tmp_path: Path) -> None:
    place, anchor, key = tmp_path / "ledger", tmp_path / "outside" / "anchor", Key.make(tmp_path / "key")
    anchor.parent.mkdir()

    def desk(who: str, create: bool = False) -> Ledger:
        return open_ledger(place, create=create, principal=who, anchor=anchor, key=key)

    first = desk("paula", create=True)
    first.adopt(policy(), reason="first")
    first._store.close()
    old = place.read_bytes()
    again = desk("adam")
    again.open_account("a", Budget(epsilon=1))
    again._store.close()
    place.write_bytes(old)
    for who, names in (("ana", ("ana", "max")), ("ana", ("paula", "peter")), ("paula", ("paula", "adam")),
                       ("rita", ("rita", "paula"))):  # fmt: skip
        with closing(desk(who)._store) as store, pytest.raises(PolicyError):
            Ledger(store, principal=who).accept_restore("the disk broke", names)
    with closing(desk("paula")._store) as store:
        Ledger(store, principal="paula").accept_restore("the disk broke", ("paula", "peter"))
        assert verify(store, FileAnchor(anchor)).ok


# sessions and loops under a key


def curator(ledger: Ledger) -> Curator:
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)


LOOP = reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))
CHILD = m.Laplace(query=bounds.count(BY_PATIENT), epsilon=Fraction(1, 2))


def test_a_loop_that_crashed_before_it_opened_goes_on_under_its_key() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=2)})
    first = ledger.hold((), LOOP, data="patients@1", grade="exact", note="", key="k")  # and then the power went
    with curator(ledger).supervise(LOOP, key="k") as run:
        assert run.receipt == first
        run.release(CHILD)
    assert ledger.spent("patients")[0].spent == Fraction(1, 2) and len(filed_in(ledger)) == 1
    with pytest.raises(ReceiptError, match="a new key pays again"), curator(ledger).supervise(LOOP, key="k"):
        pytest.fail("opened twice")
    with pytest.raises(ReceiptError, match="another plan"):
        ledger.hold((), reserve(unit=BY_PATIENT, budget=Budget(epsilon=2)), data="patients@1", grade="exact", note="",
                    key="k")  # fmt: skip


def test_whoever_comes_second_with_a_key_leaves_the_first_one_alone() -> None:
    """The second request found it paid and not opened, and was overtaken: the loop that runs is not its to close."""
    ledger = MemoryLedger({"patients": Budget(epsilon=2)})

    class Overtaken(MemoryLedger):
        def __init__(self) -> None:
            Ledger.__init__(self, ledger._store)

        def paid(self, *args: Any, **more: Any) -> Any:
            return first, None

    with curator(ledger).supervise(LOOP, key="k") as run:
        first = run.receipt
        with pytest.raises(ReceiptError, match="opened before"), curator(Overtaken()).supervise(LOOP, key="k"):
            pytest.fail("opened twice")
        run.release(CHILD)
    assert [filed.state for filed in filed_in(ledger)] == ["answered"]
    assert account_of(ledger, "patients").failures == 0 and ledger.spent("patients")[0].spent == Fraction(1, 2)


def test_a_session_that_crashed_before_it_opened_goes_on_under_its_key() -> None:
    plan = talking("under a key")
    ledger = MemoryLedger({"patients": Budget(epsilon=2)})
    first = ledger.spend((), plan, data="patients@1", grade="exact", note="", key="k")  # and then the power went
    with curator(ledger).session(plan, key="k") as session:
        assert session.receipt == first and session.ask(0) == ("said", 0)
        for work in (lambda: curator(ledger).session(plan, key="k"), lambda: curator(ledger).session(plan, key="k")):
            with pytest.raises(ReceiptError, match="a new key pays again"), work():
                pytest.fail("opened twice")
        session.ask(1)
    assert ledger.spent("patients")[0].spent == plan.event.epsilon  # type: ignore[attr-defined]
    with pytest.raises(ReceiptError, match="a new key pays again"), curator(ledger).session(plan, key="k"):
        pytest.fail("opened again")
    assert [filed.state for filed in filed_in(ledger)] == ["answered"]
    with curator(ledger).session(plan, key="another") as session:
        session.ask(0)
    assert ledger.spent("patients")[0].spent == 2 * plan.event.epsilon  # type: ignore[attr-defined]


def test_a_loop_that_cannot_be_opened_frees_what_it_held() -> None:
    class Stuck(MemoryLedger):
        def open(self, receipt: Any) -> None:
            raise BudgetError("not now")

    ledger = Stuck({"patients": Budget(epsilon=2)})
    with pytest.raises(BudgetError, match="not now"), curator(ledger).supervise(LOOP):
        pytest.fail("opened")
    assert not ledger.held("patients")
