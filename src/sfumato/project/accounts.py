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

    opened: tuple[str, ...]
    differs: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        yield from (*self.opened, *self.differs)


def open_accounts(ledger: Ledger, name: str, unit: Unit, total: Budget, parts: Mapping[str, Budget]) -> Accounts:
    """Make the accounts that are missing. Asked again, it makes nothing, and tells what differs."""
    opened, differs = [], []
    for account, budget in ((name, total), *parts.items()):
        parent, protects = (None, unit) if account == name else (name, None)
        statement = _known(ledger, account)
        if statement is None:
            level = "data set" if parent is None else "project"
            reason = f"the budget of the project {name!r}"
            ledger.open_account(account, budget, parent=parent, level=level, unit=protects, reason=reason)
            opened.append(f"account {account!r} was made, with {budget}" + (f", below {parent!r}" if parent else ""))
        else:
            differs += [f"account {account!r} {text}" for text in _differences(statement, budget, parent, protects)]
    return Accounts(tuple(opened), tuple(differs))


def _known(ledger: Ledger, account: str) -> Statement | None:
    try:
        return ledger.statement(account)
    except BudgetError:  # there is none yet
        return None


def _differences(statement: Statement, wanted: Budget, parent: str | None, unit: Unit | None) -> Iterator[str]:
    if statement.is_closed:
        yield "is closed in the ledger"
    if statement.limit is None:
        yield f"has no limit in the ledger, but {wanted} in the file"
    elif (statement.limit.epsilon, statement.limit.delta, statement.limit.rho) != (
        wanted.epsilon,
        wanted.delta,
        wanted.rho,
    ):
        yield f"has {statement.limit} in the ledger, but {wanted} in the file: the ledger's holds"
    elif statement.limit.shares not in (wanted.shares, shares_of_before(wanted)):
        yield "adds up its spends in other gauges than the file asks for: they were fixed when it was opened"
    if parent is not None and statement.parent != parent:
        yield (
            f"stands below {statement.parent!r} in the ledger, not below {parent!r}"
            if statement.parent
            else (f"stands below no other in the ledger, not below {parent!r}")
        )
    if unit is not None and statement.unit is not None and statement.unit != str(unit):
        yield f"protects [{statement.unit}] in the ledger, but [{unit}] in the file"
