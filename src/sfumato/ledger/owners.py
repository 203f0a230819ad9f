"""Whose rows are whose: the column that names the unit in each private table of a data set, as it was first paid for.

An account promises something to a unit, and which rows are a unit's is said by a column that nobody in the ledger sees.
So the ledger remembers the columns' names (and places) with the first release, in the chain, and refuses data of the
same name that comes with others: a project file that was edited would spend one unit's budget on another's. Tables that
were never named before are added. `ledger.change_owners` changes it on purpose.

    fact ("owners", name of a data set)  unit and table: column
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import address
from ..errors import BudgetError
from ..plan import Plan
from ..units import Unit
from .stores.base import Book

Owners = Mapping[str, str]


def in_tables(unit: Unit, owners: Owners) -> dict[str, str]:
    """As the ledger remembers them: data may have budgets for several units."""
    return {f"{unit.of} in {table}": column for table, column in owners.items()}


def new_owners(book: Book, data: str, plan: Plan[Any, Any], owners: Owners | None) -> dict[str, dict[str, str]]:
    """What is said here for the first time, by data set; refused where the ledger knows it otherwise."""
    additions: dict[str, dict[str, str]] = {}
    if not owners or not data:
        return additions
    now = in_tables(plan.unit, owners)
    for part in address.read(data):
        fact: Owners = book.fact("owners", part.name) or {}
        for table, column in owners.items():
            before = fact.get(f"{plan.unit.of} in {table}", column)
            if before != column:
                raise BudgetError(
                    f"data set {part.name!r}: its table {table!r} names the unit by column {column!r}, and what was "
                    f"paid so far protects those whom {before!r} names. The project or schema was edited: put it back, "
                    "or give the data another name and a budget of its own; if the column was only renamed or moved, "
                    "an officer says so with ledger.change_owners(...)",
                    code="other-owners",
                )
        if not now.keys() <= fact.keys():
            additions[part.name] = {**fact, **now}
    return additions


def remember(book: Book, data_sets: Mapping[str, Owners]) -> None:
    for name, owners in data_sets.items():
        book.put_fact("owners", name, owners)
