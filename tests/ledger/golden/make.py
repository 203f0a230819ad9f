"""Write a ledger of today, with every kind of entry, for later versions to open. Run by hand:

    PYTHONPATH=src:referee/src python -m tests.ledger.golden.make

It goes to TODAY beside attack L14: the ledger, its anchor, the anchor's public key, what it amounts to and what is read
of its releases (told.json). A folder that is there stays as it is for ever. A new one has a name of its own: schema-N
where there is a migration more, and schema-N-word where entries say more, and the tables are what they were.

    schema-1, schema-2  as the first two versions of the tables have them
    schema-2-stated     entries hold what a plan asks, what bounds one unit, and what is done with noisy numbers

Receipts, times and the key are new each time; what was spent is not.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import Budget, Unit, bounds, reserve, sequence
from sfumato import mechanisms as m
from sfumato.errors import PolicyError
from sfumato.events import Pure
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import AccountRule, AlertRule, Band, Policy
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.replay import RULES
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.schema import migrations
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Plan, Receipt
from sfumato.report.accounts.releases import plain
from sfumato.report.accounts.releases import releases as read
from sfumato_referee.attacks.ledger.migrating import GOLDEN, told
from tests.ledger.golden import clinic

TODAY = f"schema-{len(migrations('sqlite'))}-stated"

ROW = Unit()
COUNT = bounds.count(ROW)
PEOPLE = {
    "paula": ("privacy officer",), "peter": ("privacy officer",), "dora": ("data owner",),
    "adam": ("budget administrator",), "ana": ("analyst",), "max": ("ML engineer",), "rita": ("auditor",),
}  # fmt: skip


def visits(epsilon: int) -> Budget:
    return Budget(epsilon=epsilon, delta=1e-5, raisable=True)


FIRST = Policy(people=PEOPLE, alerts=AlertRule(log=False), bands=(Band(above=Fraction(1, 2), approvals=1),))
SECOND = Policy(
    people=PEOPLE,
    alerts=AlertRule(log=False),
    bands=(Band(above=Fraction(1, 2), approvals=1), Band(above=3, approvals=None)),
    accounts=(
        AccountRule(name="org", level="organisation"),
        AccountRule(name="visits", parent="org", level="data set", rows=1000, limit=visits(6)),
        AccountRule(name="north", parent="visits", level="team", people=("ana", "max")),
    ),
)

Desks = Callable[[str], Ledger]


def laplace(epsilon: Any) -> Plan[Any, Any]:
    return m.Laplace(query=COUNT, epsilon=epsilon)


def life(desk: Desks) -> None:
    """Every kind of entry that a ledger writes itself; `desk("ana")` is the one at which Ana writes."""
    accounts(desk("adam"), desk("dora"))
    releases(desk("ana"), desk("paula"))
    clinic.release(desk("ana"))
    limits(desk("adam"))
    governed(desk)


def accounts(adam: Ledger, dora: Ledger) -> None:
    adam.open_account("org", None, level="organisation")
    adam.open_account("visits", visits(4), parent="org", level="data set", unit=ROW)
    adam.open_account("north", Budget(epsilon=2, delta=1e-6, raisable=True), parent="visits", level="team")
    adam.open_account("south", Budget(epsilon=1, delta=1e-6), parent="visits", level="team")
    adam.open_account("ana's", Budget(epsilon=Fraction(3, 2)), parent="north", level="person")
    adam.open_account("sensors", Budget(rho=Fraction(1, 2)), level="data set", unit=ROW, reason="other people")
    adam.open_account("days", Budget(epsilon=2), level="data set", unit=ROW, reason="other people")
    adam.open_account("clinic", Budget(epsilon=3), level="data set", unit=clinic.PATIENT, reason="other people")
    adam.open_account("old", Budget(epsilon=1), parent="visits", level="project")
    dora.open_block("days", "2026-01", Budget(epsilon=1), reason="a month")
    dora.open_block("days", "2026-02", Budget(epsilon=1), reason="a month")
    dora.register("view", same_as="visits", reason="the same people")
    dora.change_owners("view", ROW, {"view": "patient"}, reason="as in the table that it is of")


def releases(ana: Ledger, paula: Ledger) -> None:
    def pay(accounts: tuple[str, ...], plan: Plan[Any, Any], data: str = "visits@1", key: str | None = None) -> Receipt:
        return ana.spend(accounts, plan, data=data, grade="exact", note="the yearly report", key=key)

    def answer(receipt: Receipt) -> None:
        ana.open(receipt)
        ana.settle(receipt, "answered", b"[1,2,3]")

    answer(pay(("ana's",), laplace(Fraction(1, 4)), key="first"))
    answer(pay(("south",), m.Gaussian(query=COUNT, rho=Fraction(1, 100), delta=1e-7)))
    answer(pay((), m.Gaussian(query=COUNT, rho=Fraction(1, 50), delta=1e-7), "sensors@3"))
    answer(pay((), laplace(Fraction(1, 8)), "days@1#2026-01,2026-02"))
    pay((), laplace(Fraction(1, 16)), "view@2", key="never opened")
    failed = pay(("north",), laplace(Fraction(1, 3)))
    ana.open(failed)
    ana.settle(failed, "failed")
    paula.unlock("north", "looked at it")
    ended, crashed = (_hold(ana, Fraction(n, 8)) for n in (2, 1))
    for receipt, epsilon in ((ended, Fraction(1, 8)), (ended, Fraction(1, 10)), (crashed, Fraction(1, 16))):
        ana.draw(receipt, Pure(epsilon=epsilon, relation="add-remove"), Fraction(0))
    ana.close(ended)
    ana.settle(ended, "answered", b"[4]")
    both = sequence(one=laplace(Fraction(1, 64)), two=laplace(Fraction(1, 128)))
    ana.prepay(("south",), both, data="visits@3", grade="exact", note="a list", owners={"visits": "patient"})
    answer(pay(("south",), laplace(Fraction(1, 64)), "visits@3"))


def _hold(ana: Ledger, epsilon: Fraction) -> Receipt:
    plan = reserve(unit=ROW, budget=Budget(epsilon=epsilon))
    receipt = ana.hold(("ana's",), plan, data="visits@1", grade="exact", note="a training run")
    ana.open(receipt)
    return receipt


def limits(adam: Ledger) -> None:
    adam.change_limit("visits", visits(5), reason="two more questions")
    adam.change_limit("sensors", Budget(rho=Fraction(1, 4)), reason="less will do")
    adam.move("south", "north", epsilon=Fraction(1, 4), reason="north asks more")
    adam.close_account("old", reason="the project is over")


def governed(desk: Desks) -> None:
    ana, adam, dora, paula = map(desk, ("ana", "adam", "dora", "paula"))

    def approved(asker: str, do: Callable[[], object]) -> None:
        try:
            do()
        except PolicyError as refused:
            assert isinstance(refused.act, Act), refused
            name = desk(asker).ask(refused.act, reason="please")
            for who in sorted({"peter", "dora", "paula"} - {asker}):
                desk(who).approve(name, reason="seen")
            do()

    def pay(epsilon: Fraction) -> object:
        plan = laplace(epsilon)
        return ana.spend(("ana's",), plan, data="visits@2", grade="exact", note="the yearly report")

    paula.adopt(FIRST, reason="a first policy")
    pay(Fraction(1, 100))
    approved("ana", lambda: pay(Fraction(1, 5) + Fraction(1, 3)))
    approved("paula", lambda: paula.adopt(SECOND, reason="a band that refuses"))
    approved("adam", lambda: adam.change_limit("visits", visits(6), reason="as listed"))
    approved("adam", lambda: adam.open_account("new", Budget(epsilon=1), level="data set", unit=ROW, reason="others"))
    told = {"recipients": "the public", "reason": "the law asks for it"}
    approved("dora", lambda: dora.declare("visits@1", "invariant", "the number of wards", **told))
    paula.ask(Act.limit("visits", Budget(epsilon=7)), reason="still asked for")


def restored(folder: Path, key: Key) -> None:
    """An older copy is put back, and two persons accept it."""
    for part in ("", "again"):
        store = _store(folder, key)
        if part:
            Ledger(store, principal="paula").accept_restore("the disk broke", ("paula", "peter"))
        else:
            shutil.copy(folder / "ledger", folder / "copy")
            Ledger(store, principal="ana").spend(
                ("north",), laplace(Fraction(1, 100)), data="visits@2", grade="exact", note="lost"
            )
        store.close()
        if not part:
            (folder / "copy").replace(folder / "ledger")


def _store(folder: Path, key: Key, *, create: bool = False) -> AnchoredStore:
    place = SQLiteStore(folder / "ledger", create=create)
    return AnchoredStore(place, FileAnchor(folder / "outside" / "anchor"), key, principal="paula", every=20)


def stated(store: Store) -> list[Any]:
    """What is read of each release: its question, what bounds one unit, and what is done with noisy numbers."""
    rows = sorted(read(store, price=False), key=lambda row: row.number)
    return [plain([row.number, row.question, row.bounds, row.afterwards]) for row in rows]


def make(target: Path) -> str:
    if target.exists():
        raise SystemExit(f"{target.name} is there, and stays as it is: give TODAY a new name")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "outside").mkdir()
        with closing(sqlite3.connect(folder / "ledger")) as small:
            small.execute("PRAGMA page_size = 1024")
            small.execute("VACUUM")
        key = Key.make(folder / "key")
        store = _store(folder, key, create=True)
        life(lambda who: Ledger(store, principal=who))
        store.close()
        restored(folder, key)
        place = SQLiteStore(folder / "ledger", read_only=True)
        report = verify(place, FileAnchor(folder / "outside" / "anchor"), trusted=[key.public])
        amounts = told(place)
        readings = stated(place)
        place.close()
        assert report.ok, report
        assert set(amounts["kinds"]) == set(RULES), set(RULES) ^ set(amounts["kinds"])
        target.mkdir()
        shutil.copyfile(folder / "ledger", target / "ledger")
        shutil.copyfile(folder / "outside" / "anchor", target / "anchor")
        (target / "public").write_text(f"{key.public}\n", encoding="utf-8")
        (target / "told.json").write_text(json.dumps(amounts | {"stated": readings}, indent=2) + "\n", encoding="utf-8")
    return str(report)


if __name__ == "__main__":
    print(make(GOLDEN / TODAY))
