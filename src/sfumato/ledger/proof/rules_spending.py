"""The rules of entries that pay: spend, hold and draw, and what becomes of a receipt."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction

from ...accounting.filters import Charge, Filter, Hold
from ...events import Event
from ...plan import Receipt
from ..policy import paying
from ..policy.approvals import Act
from .rules_accounts import limited_above
from .rules_data import charged_where_it_is_read
from .rules_governing import used
from .state import Entry, EntryError, Settled, State


def _new_receipt(state: State, entry: Entry) -> Receipt:
    receipt, key = entry["receipt"], entry["key"]
    if not isinstance(receipt, Receipt) or receipt.id in state.receipts or not receipt.accounts:
        raise EntryError("a receipt is written once, and names who pays")
    if hashlib.sha256(entry["plan"].encode()).hexdigest() != receipt.plan_hash:
        raise EntryError("its plan is not the one that was paid for")
    if key is not None and key in state.keys:
        raise EntryError("its key was paid under before")
    if state.policy is not None and any(entry["by"] in state.account(name).granted for name in receipt.accounts):
        raise EntryError("whoever grants may not spend")
    read = charged_where_it_is_read(state, receipt)
    _from_their_own(state, entry["by"], receipt, read)
    if entry["approvals"]:
        used(state, entry, Act.spend(receipt.plan_hash, receipt.data, receipt.accounts))
    if state.prices is not None:
        state.prices.plan(entry, state.policy)
    if key is not None:
        state.keys.add(key)
    return receipt


def _from_their_own(state: State, who: str, receipt: Receipt, read: set[str]) -> None:
    def parent(name: str) -> str | None:
        return state.accounts[name].parent if name in state.accounts else None

    if state.policy is not None and paying.refusal(state.policy, who, receipt.accounts, read, parent) is not None:
        raise EntryError("whoever wrote it pays from accounts that are not theirs, or leaves their own out")


def spend(state: State, entry: Entry) -> None:
    receipt = _new_receipt(state, entry)
    _charge(state, entry, receipt, receipt.event, entry["delta"])
    state.receipts[receipt.id] = Settled(receipt, "spent", entry["key"])


def _charge(state: State, entry: Entry, receipt: Receipt, event: Event, delta: Fraction) -> None:
    charged, after = entry["charged"], []
    if set(charged) != set(receipt.accounts):
        raise EntryError("it does not charge the accounts that it names")
    for name in receipt.accounts:
        account, charge = state.account(name), charged[name]
        if account.closed or account.filter is None or not isinstance(charge, Charge):
            raise EntryError("it charges an account that is closed, or charges nothing")
        if account.parent is not None and not limited_above(state, account) <= set(receipt.accounts):
            raise EntryError("it does not charge the accounts above")
        if account.unit not in (None, receipt.unit) or event.relation != receipt.unit.change:
            raise EntryError("it protects another unit than the account")
        if state.prices is not None:
            state.prices.charge(entry, account, event, delta)
        after.append(replace(account, filter=account.filter.after(charge), unit=receipt.unit))
    for account in after:
        state.put(account)


def hold(state: State, entry: Entry) -> None:
    """Room on every account that pays, and above."""
    receipt, delta, shapes = _new_receipt(state, entry), entry["delta"], entry["shapes"]
    for name in receipt.accounts:
        account = state.account(name)
        shape = shapes.get(name, account.filter)
        if not isinstance(shape, Filter) or account.filter is None or account.closed:
            raise EntryError("it holds room on an account that has none")
        if not limited_above(state, account) <= set(receipt.accounts):
            raise EntryError("it does not charge the accounts above")
        if shape is not account.filter:
            if not (account.filter.fresh and shape.fresh and shape.budget == account.filter.budget):
                raise EntryError("only the first work on an account chooses its members")
            if state.prices is not None:
                state.prices.shape(entry, account, shape)
        held = {**account.held, receipt.id: Hold(receipt.event, delta)}
        state.put(replace(account, filter=shape, held=held))
    state.receipts[receipt.id] = Settled(receipt, "held", entry["key"])


def draw(state: State, entry: Entry) -> None:
    settled, event, delta = state.settled(entry["receipt"]), entry["event"], entry["delta"]
    receipt = settled.receipt
    if settled.state != "opened" or any(receipt.id not in state.account(name).held for name in receipt.accounts):
        raise EntryError("nothing was held under its receipt")
    _charge(state, entry, receipt, event, delta)
    for name in receipt.accounts:
        account = state.account(name)
        drawn = account.held[receipt.id].after(event, delta)
        state.put(replace(account, held={**account.held, receipt.id: drawn}))


def close(state: State, entry: Entry) -> None:
    receipt = state.settled(entry["receipt"]).receipt
    for name in receipt.accounts:
        account = state.account(name)
        state.put(replace(account, held={id: hold for id, hold in account.held.items() if id != receipt.id}))


def open_(state: State, entry: Entry) -> None:
    settled = state.settled(entry["receipt"])
    if settled.state not in ("spent", "held"):
        raise EntryError("its receipt was opened before")
    state.receipts[settled.receipt.id] = settled._replace(state="opened")


def settle(state: State, entry: Entry) -> None:
    settled, outcome = state.settled(entry["receipt"]), entry["outcome"]
    early = settled.state in ("spent", "held") and outcome != "failed"
    if outcome not in ("answered", "failed") or settled.state in ("answered", "failed") or early:
        raise EntryError("a receipt is settled once, and answered only after it was opened")
    state.receipts[settled.receipt.id] = settled._replace(state=outcome, answer=entry["answer"])
    if outcome == "failed":
        for name in settled.receipt.accounts:
            account = state.account(name)
            state.put(replace(account, failures=account.failures + 1))
