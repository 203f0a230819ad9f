"""A ledger with a policy, and a desk for each of its people. On PostgreSQL each of them logs in with a role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sfumato import Budget, record
from sfumato.errors import PolicyError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.approvals import Act
from sfumato.ledger.policy.policy import AlertRule, Policy
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Plan, Receipt
from sfumato.units import Unit
from tests.ledger.stores import Stores, login

PEOPLE: Mapping[str, tuple[str, ...]] = {
    "paula": ("privacy officer",),
    "peter": ("privacy officer",),
    "dora": ("data owner",),
    "doris": ("data owner",),
    "adam": ("budget administrator",),
    "ana": ("analyst",),
    "max": ("ML engineer",),
    "rita": ("auditor",),
}
QUIET = AlertRule(log=False)


def policy(**fields: Any) -> Policy:
    return Policy(**{"people": PEOPLE, "alerts": QUIET, "purpose": False, **fields})


class Office:
    """`office["ana"]` is Ana's own ledger, on a store that all of them share."""

    def __init__(self, stores: Stores | None = None) -> None:
        self._stores = stores
        self._place = None if stores is None or stores.kind == "memory" else stores.place()
        self._memory = MemoryStore()
        self._desks: dict[str, Ledger] = {}

    def __getitem__(self, who: str) -> Ledger:
        if who not in self._desks:
            self._desks[who] = self._desk(who)
        return self._desks[who]

    def _desk(self, who: str) -> Ledger:
        if self._stores is None or self._place is None:
            return Ledger(self._memory, principal=who)
        if self._stores.kind == "postgres":
            return Ledger(self._stores.again(login(self._place, who, "sfumato_writer")))
        return Ledger(self._stores.again(self._place), principal=who)

    @property
    def store(self) -> Store:
        return self["paula"]._store

    def entries(self) -> list[dict[str, Any]]:
        return [record.parse(body, dict) for _, body in self.store.entries()]

    def check(self) -> None:
        """The entries alone amount to what is stored."""
        report = verify(self.store)
        assert report.ok, report

    def approve(self, act: Any, asker: str, *by: str) -> None:
        assert isinstance(act, Act)
        name = self[asker].ask(act, reason="please")
        for who in by:
            self[who].approve(name, reason="seen")

    def fresh(self, name: str, budget: Budget, **how: Any) -> None:
        """A budget beside the others; with a policy, two persons approve it."""
        if self["adam"].policy() is not None:
            self.approve(Act.reset(name, budget), "adam", "paula", "dora")
        self["adam"].open_account(name, budget, reason="other people", **how)


def governed(stores: Stores | None = None, **fields: Any) -> Office:
    """With the policy in force, an organisation of (10), and the data set "visits" of (2) in it."""
    office = Office(stores)
    office["paula"].adopt(policy(**fields), reason="first")
    office["adam"].open_account("org", Budget(epsilon=10), level="organisation")
    office["adam"].open_account("visits", Budget(epsilon=2), parent="org", level="data set", unit=Unit())
    return office


def act_of(refused: pytest.ExceptionInfo[PolicyError]) -> Act:
    assert isinstance(refused.value.act, Act)
    return refused.value.act


def ask(ledger: Ledger, plan: Plan[Any, Any], *accounts: str, data: str = "visits@1", **more: Any) -> Receipt:
    return ledger.spend(accounts, plan, **{"data": data, "grade": "exact", "note": "a test", **more})
