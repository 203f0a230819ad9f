"""A ledger in memory: for tests, notebooks and rehearsals. It is gone when the process is."""

from __future__ import annotations

from collections.abc import Mapping

from .. import checks
from ..accounting.filters import Budget
from .ledger import Ledger
from .stores.memory import MemoryStore


class MemoryLedger(Ledger):
    """Accounts by name, each with a budget that no adaptive choice can exceed.

    >>> from sfumato import Budget, MemoryLedger
    >>> ledger = MemoryLedger({"patients": Budget(epsilon=2, delta=1e-6)})
    >>> print(ledger.left("patients"))
    0 of 2 epsilon spent at delta 1e-06
    """

    def __init__(self, accounts: Mapping[str, Budget]) -> None:
        if not isinstance(accounts, Mapping) or not accounts:
            raise checks.refuse("accounts", accounts, "a Budget per account name")
        super().__init__(MemoryStore())
        for name, budget in accounts.items():
            self.open_account(name, budget, reason="given when the ledger was made")
