"""The rules about data: which accounts and blocks a data set has, and who pays where it is read."""

from __future__ import annotations

from typing import Any

from ... import address
from ...plan import Receipt
from ..policy.approvals import Act
from ..tree import DataSet
from .rules_governing import approved
from .state import Entry, EntryError, State


def register(state: State, entry: Entry) -> None:
    name, accounts, blocks = entry["data"], entry["accounts"], dict(entry["blocks"])
    before: DataSet = state.facts.get(("data", name)) or DataSet(name=name)
    if not accounts or not set(before.same_as) <= set(entry["same_as"]):
        raise EntryError("a data set never loses an account or a block")
    for account in (*accounts, *blocks.values()):
        state.account(account)
    if not set(before.accounts) <= set(accounts) or not before.blocks.items() <= blocks.items():
        raise EntryError("a data set never loses an account or a block")
    _weakened(state, entry)
    state.facts["data", name] = DataSet(name=name, accounts=tuple(accounts), blocks=blocks, same_as=entry["same_as"])


def _weakened(state: State, entry: Entry) -> None:
    """An account of another unit lets through what the first ones stop: that takes approvals."""
    old, _ = accounts_and_blocks(state, entry["data"])
    units = {state.account(name).unit for name in old} - {None}
    others = [name for name in entry["accounts"] if name not in old and state.account(name).unit not in units]
    if old and others:
        approved(state, entry, Act.weaken(entry["data"], others), "weaken unit")


def no_other_unit(state: State, entry: Entry) -> None:
    """An account that bears the name of a data set is one of its own."""
    accounts, _ = accounts_and_blocks(state, entry["account"])
    units = [state.account(name).unit for name in accounts]
    if entry["level"] in ("", "data set") and units and entry["unit"] not in units:
        raise EntryError("the data set of that name has a budget for another unit")


def accounts_and_blocks(state: State, name: str) -> tuple[set[str], dict[str, str]]:
    """The accounts and the blocks of a data set, and of all that it is a copy of."""
    accounts, blocks, passed, todo = set[str](), dict[str, str](), set[str](), [name]
    while todo:
        each = todo.pop()
        if each not in passed:
            passed.add(each)
            said: DataSet = state.facts.get(("data", each)) or DataSet(name=each)
            own = state.accounts.get(each)
            accounts |= {each} if own is not None and own.level in ("", "data set") else set()
            accounts |= set(said.accounts)
            blocks |= said.blocks
            todo += said.same_as
    return accounts, blocks


def charged_where_it_is_read(state: State, receipt: Receipt) -> set[str]:
    """The accounts of the data, for the receipt's unit, and those of its blocks; refused where they do not pay."""
    read: set[str] = set()
    for part in address.read(receipt.data):
        accounts, blocks = accounts_and_blocks(state, part.name)
        paying = {name for name in accounts if state.account(name).unit in (None, receipt.unit)}
        limited = {name for name in paying if state.account(name).filter is not None}
        if blocks:
            limited |= {blocks.get(block, "") for block in part.blocks}
        read |= paying | limited
        if not limited or (blocks and not part.blocks) or not limited <= set(receipt.accounts):
            raise EntryError("it does not charge the accounts of the data that it reads")
    return read


def owners(state: State, entry: Entry) -> None:
    """The columns that name the unit in the tables of a data set were changed on purpose."""
    columns = _columns(entry["owners"])
    lines = [f"{table}: {column}" for table, column in sorted(columns.items())]
    approved(state, entry, Act.weaken(entry["data"], lines), "weaken unit")
    state.facts["owners", entry["data"]] = columns


def owned(state: State, entry: Entry, receipt: Receipt) -> None:
    """They are as they were told first, or told for the first time."""
    for name, columns in entry.get("owners", {}).items():
        fact = state.facts.get(("owners", name), {})
        if name not in {part.name for part in address.read(receipt.data)}:
            raise EntryError("it tells the owners of data that it does not read")
        if any(fact[table] != _columns(columns).get(table) for table in fact):
            raise EntryError("its rows belong to others than those that were paid for before")
        state.facts["owners", name] = columns


def _columns(columns: Any) -> dict[str, str]:
    if not isinstance(columns, dict) or not all(isinstance(each, str) for each in (*columns, *columns.values())):
        raise EntryError("owners are the columns that name the unit, by table")
    return columns
