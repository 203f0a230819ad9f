"""L15: who did what. Nobody writes who may not, every entry tells who and why, and names are never run.

Claim. Every entry is written at a desk that has a principal. With a policy, each act asks it first whether this person
has the duty, within the transaction that writes; who is not listed may do nothing. Reading writes nothing, and names go
to the database as values and to pages as escaped text.

The attack has every person of a policy, and strangers whose names only look like theirs, try every act; gives names and
purposes that are SQL, HTML, or invisible; writes through a ledger that was opened for reading; and reads every entry
and page. The planted bug writes down who asks, and never looks whether they may.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.combine import reserve, sequence
from sfumato.errors import LedgerError, PolicyError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.parts import AlertRule
from sfumato.ledger.policy.people import DUTIES
from sfumato.ledger.policy.policy import AccountRule, Policy
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.ledgers import AnybodyMay
from ..verdict import Verdict
from .ground import ROW, count, entries_of, folder

Kind = Callable[..., Ledger]
PEOPLE = {
    "paula": ("privacy officer",),
    "peter": ("privacy officer",),
    "dora": ("data owner",),
    "adam": ("budget administrator",),
    "ana": ("analyst",),
    "max": ("ML engineer",),
    "rita": ("auditor",),
    "cron": ("service account",),
}
STRANGERS = ("mallory", "ANA", "ana ", " ana", "\uff41na", "\u0430na", "ana\u200b", "\u202eana", "ana\0", "' OR 1=1 --")
NASTY = (
    "'; DROP TABLE entries; --",
    "x'); UPDATE accounts SET totals = ''; --",
    'a"b',
    "a`b\\",
    "%s %d {} :x ?1 {0.__class__}",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnisrever",
    "na\u00efve \u540d\u524d \U0001f600",
    "with\nnewline",
    "zero\0byte",
    "\ud800",
    "x" * 10_000_000,
    "",
    " ",
)
POLICY = Policy(people=PEOPLE, alerts=AlertRule(log=False))


def _acts(asked: str) -> dict[str, tuple[str, Callable[[Ledger], object]]]:
    """What can be done: the duty that it takes, and the doing of it."""
    how: dict[str, Any] = {"data": "visits@1", "grade": "exact", "note": "a purpose"}
    small, held = count(Fraction(1, 1000)), reserve(unit=ROW, budget=Budget(epsilon=Fraction(1, 1000)))
    both = sequence(one=count(Fraction(1, 2000)), two=count(Fraction(1, 3000)))
    told = {"recipients": "the public", "reason": "the law"}
    return {
        "spend": ("spend", lambda ledger: ledger.spend((), small, **how)),
        "hold": ("spend", lambda ledger: ledger.hold((), held, **how)),
        "prepay": ("spend", lambda ledger: ledger.prepay((), both, **how)),
        "open an account": ("grant", lambda ledger: ledger.open_account("new", Budget(epsilon=1), parent="visits")),
        "change a limit": ("grant", lambda ledger: ledger.change_limit("team", Budget(epsilon=1), reason="less")),
        "move a limit": ("grant", lambda ledger: ledger.move("team", "other", epsilon=Fraction(1, 9), reason="more")),
        "close an account": ("grant", lambda ledger: ledger.close_account("old", reason="over")),
        "provision": ("grant", lambda ledger: ledger.provision()),
        "register": ("register", lambda ledger: ledger.register("view", same_as="visits", reason="a copy")),
        "open a block": (
            "register",
            lambda ledger: ledger.open_block("days", "jan", Budget(epsilon=1), reason="a month"),
        ),
        "approve": ("approve", lambda ledger: ledger.approve(asked, reason="seen")),
        "unlock": ("unlock", lambda ledger: ledger.unlock("visits", "looked")),
        "adopt": ("adopt", lambda ledger: ledger.adopt(Policy(people=PEOPLE, bands=()), reason="another")),
        "declare": ("declare", lambda ledger: ledger.declare("visits@1", "invariant", "the number of wards", **told)),
    }


def attack(*, kind: Kind = Ledger) -> Verdict:
    faults: list[str] = []
    with folder() as home:
        place, tried = _office(home / "ledger"), 0
        for who in (*PEOPLE, *STRANGERS):
            for name, (duty, do) in _acts(place.asked).items():
                if not any(role in DUTIES[duty] for role in PEOPLE.get(who, ())):
                    tried += 1
                    faults += _refused(place, kind, who, name, do)
        faults += _escalated(place, kind) + _read_only(place.path) + _named(place, kind) + _told(place)
        faults += _shared(home / "shared", kind)
    words = f"{tried} acts by people who may not, {len(NASTY)} odd names: "
    words += f"{faults[0]}." if faults else "all refused, nothing was run, and every entry tells who and why."
    return Verdict("L15", bool(faults), words, {"acts tried": tried, "faults": len(faults)})


def control() -> Verdict:
    return attack(kind=AnybodyMay)


class _Office:
    """A ledger with a policy, and something to do for everybody."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.desk("adam", create=True) as adam:
            adam.open_account("visits", Budget(epsilon=5), level="data set", unit=ROW, reason="the first")
            for name in ("team", "other", "old"):
                adam.open_account(name, Budget(epsilon=2), parent="visits", level="team", reason="a team")
            adam.open_account("days", Budget(epsilon=5), level="data set", unit=ROW, reason="other people")
        with self.desk("paula") as paula:
            paula.adopt(POLICY, reason="a first policy")
            self.asked = paula.ask(Act.limit("visits", Budget(epsilon=9)), reason="please")

    def desk(self, who: str, kind: Kind = Ledger, **how: Any) -> Ledger:
        store = SQLiteStore(self.path, **how)
        try:
            return kind(store, principal=who)
        except BaseException:
            store.close()
            raise

    def length(self) -> int:
        with self.desk("rita", read_only=True) as ledger, surface.store_of(ledger).reading() as book:
            return book.head.number


_office = _Office


def _refused(place: _Office, kind: Kind, who: str, name: str, do: Callable[[Ledger], object]) -> list[str]:
    """Refused by the policy (or, for a name that is none, at the door), and nothing was written."""
    before, shown = place.length(), ascii(who)
    try:
        with place.desk(who, kind) as ledger:
            do(ledger)
        return [f"{shown} may {name}"]
    except PolicyError:
        return [] if place.length() == before else [f"{shown} was refused to {name}, and it was written"]
    except SfumatoError as problem:
        if who not in PEOPLE and place.length() == before:
            return []
        return [f"{shown} was refused to {name} for another reason: {problem}"]


def _escalated(place: _Office, kind: Kind) -> list[str]:
    """Two steps that are allowed one by one: approving one's own request, twice, or what somebody else changed."""
    wish = Budget(epsilon=9)
    faults = []
    with place.desk("adam", kind) as adam:
        try:
            adam.change_limit("visits", wish, reason="more")
            faults.append("a limit was raised by one person")
        except PolicyError as refused:
            assert isinstance(refused.act, Act)
            asked = adam.ask(refused.act, reason="please")
    for _ in range(3):
        with place.desk("paula", kind) as paula:
            paula.approve(asked, reason="seen")  # the same person, again and again, is one
    with place.desk("adam", kind) as adam:
        try:
            adam.change_limit("visits", wish, reason="more")
            faults.append("one person approved for two")
        except PolicyError:
            pass
    with place.desk("peter", kind) as peter:
        peter.approve(asked, reason="seen")
    with place.desk("adam", kind) as adam:
        for other in (Budget(epsilon=10), Budget(epsilon=9, delta=1e-9)):
            try:
                adam.change_limit("visits", other, reason="more")
                faults.append("an approval served for something else")
            except PolicyError:
                continue
    return faults


def _shared(path: Path, kind: Kind) -> list[str]:
    """What one person paid for is not told to another whose own account has no room for it, or who has none."""
    place = _Office(path)
    listed = [
        AccountRule(name=name, parent="visits", level="team", people=(who,))
        for name, who in (("team", "ana"), ("other", "max"))
    ]
    rules = (AccountRule(name="visits", level="data set", limit=Budget(epsilon=5)), *listed)
    with place.desk("paula") as paula:
        asked = Policy(people=PEOPLE, alerts=AlertRule(log=False), purpose=False, accounts=rules)
        wish = paula.ask(Act(do="adopt", on="", what=record.digest(asked)), reason="people on accounts")
    for who in ("peter", "dora"):
        with place.desk(who) as desk:
            desk.approve(wish, reason="seen")
    plan, faults = count(2), []
    with place.desk("paula") as paula, place.desk("ana") as ana:
        paula.adopt(asked, reason="people on accounts")
        receipt = ana.spend(("team",), plan, data="visits@1", grade="exact", note="", key="hers")
        ana.open(receipt)
        ana.settle(receipt, "answered", b"[1]")
    for who in ("max", "cron"):  # of whom one has another account, and one has none
        for accounts in ((), ("team",), ("visits",)):
            with place.desk(who, kind) as desk:
                asks: tuple[Callable[[], object], ...] = (
                    partial(desk.answer, accounts, plan.hash, "visits@1"),
                    partial(desk.paid, "hers", accounts, plan, data="visits@1"),
                )
                for ask in asks:
                    try:
                        faults += [f"{who} is told what ana paid for"] if ask() is not None else []
                    except PolicyError:
                        continue
    return faults


def _read_only(path: Path) -> list[str]:
    before = path.read_bytes()
    faults = []
    for who in ("ana", "paula", "adam"):
        with Ledger(SQLiteStore(path, read_only=True), principal=who) as ledger:
            for name, (_, do) in _acts("x").items():
                try:
                    do(ledger)
                    faults.append(f"a ledger that was opened for reading let {who} {name}")
                except (LedgerError, PolicyError):
                    continue
            ledger.statement("visits")
            ledger._repr_html_()
            list(ledger.history())
            ledger.overview()
    return faults if path.read_bytes() == before else [*faults, "reading changed the file"]


def _named(place: _Office, kind: Kind) -> list[str]:
    """Odd names and purposes are stored as they are, or refused; nothing is run."""
    stored = []
    for nasty in NASTY:
        with place.desk("ana", kind) as ana, place.desk("adam", kind) as adam:
            for do in (
                lambda nasty=nasty: ana.spend(
                    (), count(Fraction(1, 10**4)), data="visits@1", grade="exact", note=nasty, key=nasty
                ),
                lambda nasty=nasty: ana.spend((nasty,), count(1), data="visits@1", grade="exact", note="x"),
                lambda nasty=nasty: ana.spend((), count(1), data=nasty, grade="exact", note="x"),
                lambda nasty=nasty: adam.open_account(nasty, Budget(epsilon=1), parent="team", reason=nasty),
            ):
                try:
                    do()
                    stored.append(nasty)
                except LedgerError as problem:
                    return [f"a name broke the ledger: {problem}"]
                except SfumatoError:
                    continue
    faults = [] if len(stored) > len(NASTY) // 2 else ["hardly any name could be stored: the attack has no power"]
    with place.desk("rita", read_only=True) as rita:
        if not verify(surface.store_of(rita)).ok:
            faults.append("after odd names the ledger does not verify")
        pages = [rita._repr_html_(), rita.statement("visits")._repr_html_()]
        if any("<script>alert" in page or "<img src=x" in page for page in pages):
            faults.append("a name is run in a page")
    return faults


def _told(place: _Office) -> list[str]:
    """Every entry has somebody who wrote it; every release, what it is for; every other act, why."""
    with place.desk("rita", read_only=True) as rita:
        entries = entries_of(surface.store_of(rita))
    faults = []
    for number, entry in enumerate(entries, start=1):
        if not str(entry.get("by", entry.get("principal", ""))).strip():
            faults.append(f"entry {number} ({entry['kind']}) does not tell who wrote it")
        if entry["kind"] in ("spend", "hold") and not entry["receipt"].note.strip():
            faults.append(f"entry {number} does not tell what the release is for")
    return faults
