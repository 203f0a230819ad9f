"""The accounts of a project in its ledger: made where they are missing, compared where they are there.

A limit is never changed here. Raising one takes a reason and, under a policy, other people; a file that somebody edits
has neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting.budget import Budget, shares_of_before
from ..errors import BudgetError
from ..units import Unit

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..report.accounts import Statement


@dataclass(frozen=True)
class Accounts:
    """What was done with a project's accounts, in words: those that were made, and where ledger and file differ."""

    made: tuple[str, ...]
    differs: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        yield from (*self.made, *self.differs)


def open_accounts(ledger: Ledger, name: str, unit: Unit, total: Budget, parts: Mapping[str, Budget]) -> Accounts:
    """Make the accounts that are missing. Asked again, it makes nothing, and tells what differs."""
    made, differs = [], []
    for account, budget in ((name, total), *parts.items()):
        parent, protects = (None, unit) if account == name else (name, None)
        known = _known(ledger, account)
        if known is None:
            level = "data set" if parent is None else "project"
            reason = f"the budget of the project {name!r}"
            ledger.open_account(account, budget, parent=parent, level=level, unit=protects, reason=reason)
            made.append(f"account {account!r} was made, with {budget}" + (f", below {parent!r}" if parent else ""))
        else:
            differs += [f"account {account!r} {text}" for text in _differences(known, budget, parent, protects)]
    return Accounts(tuple(made), tuple(differs))


def _known(ledger: Ledger, account: str) -> Statement | None:
    try:
        return ledger.statement(account)
    except BudgetError:  # there is none yet
        return None


def _differences(known: Statement, wanted: Budget, parent: str | None, unit: Unit | None) -> Iterator[str]:
    if known.is_closed:
        yield "is closed in the ledger"
    if known.limit is None:
        yield f"has no limit in the ledger, but {wanted} in the file"
    elif (known.limit.epsilon, known.limit.delta, known.limit.rho) != (wanted.epsilon, wanted.delta, wanted.rho):
        yield f"has {known.limit} in the ledger, but {wanted} in the file: the ledger's holds"
    elif known.limit.shares not in (wanted.shares, shares_of_before(wanted)):
        yield "adds up its spends in other gauges than the file asks for: they were fixed when it was opened"
    if parent is not None and known.parent != parent:
        yield (
            f"stands below {known.parent!r} in the ledger, not below {parent!r}"
            if known.parent
            else (f"stands below no other in the ledger, not below {parent!r}")
        )
    if unit is not None and known.unit is not None and known.unit != str(unit):
        yield f"protects [{known.unit}] in the ledger, but [{unit}] in the file"
