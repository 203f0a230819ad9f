"""Data sets: where their people's budgets are, and the budgets of their blocks. Each is an entry with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .. import address, checks
from ..accounting.filters import Budget
from ..errors import BudgetError
from ..units import Unit
from .desk import Desk
from .grants import Grants, given
from .owners import Owners, in_tables, remember
from .policy.approvals import Act
from .policy.policy import Policy
from .stores.base import Book
from .tree import DataSet, data_set, found, known_data


class DataSets:
    """Says which accounts a data set is charged to."""

    def __init__(self, desk: Desk, grants: Grants) -> None:
        self._desk, self._grants = desk, grants

    def register(self, data: str, *, accounts: tuple[str, ...] = (), same_as: str = "", reason: str) -> None:
        """The people of this data set have their budget in these accounts, or where that of another data set is.

        For a view or a copy under a new name, and for data about people who are in other data too. Accounts are only
        ever added: nothing that was charged before goes free.
        """
        checks.label(data, "data")
        accounts = checks.texts(accounts, "accounts")
        if not isinstance(same_as, str) or same_as:
            checks.label(same_as, "same_as")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "register")
            other = data_set(book, same_as) if same_as else DataSet(name=data)
            known = known_data(book, data)
            named = tuple(dict.fromkeys((*known.accounts, *accounts, *other.accounts)))
            for name in named:
                found(book, name)
            copied = same_as and same_as != data and same_as not in known.same_as
            if not named or (named == known.accounts and not copied):
                raise checks.refuse("accounts", accounts, "accounts to add, or same_as= a data set that is known")
            if copied and not known.blocks.items() <= other.blocks.items():
                raise BudgetError(f"data set {data!r} has blocks of its own: it is no copy")
            approvals = self._same_unit(book, policy, data, known.accounts, named)
            links = (*known.same_as, same_as) if copied else known.same_as
            now = DataSet(name=data, accounts=named, blocks={**other.blocks, **known.blocks}, same_as=links)
            self._register(book, now, given(reason), approvals)

    def _register(self, book: Book, now: DataSet, reason: str, approvals: tuple[int, ...] = ()) -> None:
        self._desk.write(
            book,
            "register",
            {
                "data": now.name,
                "accounts": now.accounts,
                "blocks": now.blocks,
                "same_as": now.same_as,
                "reason": reason,
                "approvals": approvals,
            },
        )
        book.put_fact("data", now.name, now)

    def _same_unit(
        self, book: Book, policy: Policy | None, data: str, old: tuple[str, ...], named: tuple[str, ...]
    ) -> tuple[int, ...]:
        """A budget for another unit of the same data takes two persons: it lets through what the first one stops."""
        units = {found(book, name).unit for name in old} - {None}
        others = [name for name in named if name not in old and found(book, name).unit not in units]
        if policy is None or not old or not others:
            return ()
        needed, why = policy.approvals("weaken unit"), f"another unit of data set {data!r}"
        return self._desk.approved(book, policy, Act.weaken(data, others), needed, why)

    def change_owners(self, data: str, unit: Unit, owners: Owners, *, reason: str) -> None:
        """From now on these columns name the unit in the tables of a data set: for a column that was renamed or moved.
        Whoever does it answers for it that they name the same units."""
        checks.label(data, "data")
        checks.instance(unit, Unit, "unit", "the Unit of the data")
        if not isinstance(owners, Mapping) or not owners:
            raise checks.refuse("owners", owners, "the column that names the unit, by table: Private.owners")
        for table, column in owners.items():
            checks.label(table, "owners")
            checks.label(column, "owners")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "register")
            data_set(book, data)
            now = {**(book.fact("owners", data) or {}), **in_tables(unit, owners)}
            act = Act.weaken(data, [f"{table}: {column}" for table, column in sorted(now.items())])
            needed = 0 if policy is None else policy.approvals("weaken unit")
            approvals = self._desk.approved(book, policy, act, needed, f"other owners of data set {data!r}")
            self._desk.write(
                book, "owners", {"data": data, "owners": now, "reason": given(reason), "approvals": approvals}
            )
            remember(book, {data: now})

    def open_block(self, data: str, block: str, budget: Budget, *, account: str = "", reason: str = "") -> None:
        """A budget for one block of a data set (a day, a month): it protects what a unit has in that block.

        The data set's own account is charged too, and sums the blocks: its limit is that of a unit's whole life.
        """
        checks.label(data, "data")
        checks.label(block, "block")
        checks.instance(account, str, "account", "the name of an account of the data set, or leave it out")
        checks.instance(budget, Budget, "budget", "a Budget: a block has a limit of its own")
        name = str(address.Address(data, "", (block,))).replace("@", "")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "register")
            known = data_set(book, data)
            parent = account or known.accounts[0]
            if parent not in known.accounts:
                raise checks.refuse("account", account, "an account of the data set")
            if block in known.blocks:
                raise BudgetError(f"data set {data!r} has a block {block!r} already: its budget is fixed")
            if known.same_as:
                raise BudgetError(f"data set {data!r} is a copy: open the block on {known.same_as[0]!r}")
            unit = found(book, parent).unit
            if unit is not None and unit.change != "add-remove":
                # A replaced or blanked row may leave its block, so that rows would come and go.
                raise BudgetError(
                    f"account {parent!r} protects [{unit}]: only a unit that is added or removed has blocks"
                )
            self._grants.begin(book, policy, name, budget, parent, "block", unit, reason)
            self._register(book, replace(known, blocks={**known.blocks, block: name}), reason)
