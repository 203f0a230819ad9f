"""The rules of entries that pay: spend, hold and draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...accounting.filters import Block, Charge, Filter, HeldSteps, Hold, Priced, counts_plans
from ...events import Repeat
from ...plan import Receipt
from ..policy.approvals import Act
from .rules_data import owned
from .rules_governing import used
from .rules_parts import listed
from .rules_receipts import new_receipt
from .state import Entry, EntryError, Settled, State, limited_above


def _paying(state: State, entry: Entry) -> Receipt:
    """A new receipt, approved where the policy asks for it."""
    receipt = new_receipt(state, entry)
    if entry["approvals"]:
        used(state, entry, Act.spend(receipt.plan_hash, receipt.data, receipt.accounts))
    if state.prices is not None:
        state.prices.plan(entry, state.policy)
    owned(state, entry, receipt)
    return receipt


def spend(state: State, entry: Entry) -> None:
    receipt = _paying(state, entry)
    _charge(state, entry, receipt, receipt.event, entry["delta"])
    if receipt.loop == "parts":
        listed(state, entry, receipt)
    elif receipt.loop != "plan":
        raise EntryError("a plan is paid whole, or as a list of parts")
    state.receipts[receipt.id] = Settled(receipt, "spent", entry["key"])


def _charge(
    state: State, entry: Entry, receipt: Receipt, priced: Priced | Mapping[str, Block], delta: Fraction
) -> None:
    """What every account is charged for an event, or each for its own account of the same steps."""
    charged, after = entry["charged"], []
    if set(charged) != set(receipt.accounts):
        raise EntryError("it does not charge the accounts that it names")
    for name in receipt.accounts:
        account, charge = state.account(name), charged[name]
        event = priced[name] if isinstance(priced, Mapping) else priced
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
    receipt, delta, shapes = _paying(state, entry), entry["delta"], entry["shapes"]
    if receipt.loop not in ("trusted loop", "steps", "trusted steps"):
        raise EntryError("room is held for a loop, or for steps")
    room = _room(receipt, delta)
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
        state.put(replace(account, filter=shape, held={**account.held, receipt.id: room}))
    state.receipts[receipt.id] = Settled(receipt, "held", entry["key"])


def _room(receipt: Receipt, delta: Fraction) -> Hold | HeldSteps:
    if not receipt.by_steps:
        return Hold(receipt.event, delta)
    if not isinstance(receipt.event, Repeat):
        raise EntryError("it holds steps, and its event is not one of equal steps")
    return HeldSteps(receipt.event, delta)


def draw(state: State, entry: Entry) -> None:
    settled, event, delta = state.settled(entry["receipt"]), entry["event"], entry["delta"]
    receipt = settled.receipt
    if settled.state != "opened" or any(receipt.id not in state.account(name).held for name in receipt.accounts):
        raise EntryError("nothing was held under its receipt")
    if receipt.by_steps:
        _draw_steps(state, entry, receipt)
        return
    if "before" in entry:  # readers would take it for steps
        raise EntryError("it counts steps, and its receipt holds none")
    _charge(state, entry, receipt, event, delta)
    for name in receipt.accounts:
        account = state.account(name)
        hold: Any = account.held[receipt.id]
        drawn = hold.after(event, delta)
        state.put(replace(account, held={**account.held, receipt.id: drawn}))


def _draw_steps(state: State, entry: Entry, receipt: Receipt) -> None:
    """The same step as was held, no more of them than are left, charged as the steps that they are."""
    event, whole = entry["event"], receipt.event
    assert isinstance(whole, Repeat)
    if type(event) is not Repeat or event.event != whole.event:
        raise EntryError("it draws other steps than those that were held")
    blocks: dict[str, Block] = {}
    for name in receipt.accounts:
        held: Any = state.account(name).held[receipt.id]
        if entry["before"] != held.taken or type(entry["before"]) is not int or entry["delta"] != held.delta:
            raise EntryError("it does not go on where the steps before it ended")
        if event.times > held.left:
            raise EntryError("it draws more steps than were held")
        blocks[name] = held.block(event.times)
    _charge(state, entry, receipt, blocks, entry["delta"])
    for name in receipt.accounts:
        account = state.account(name)
        assert account.filter is not None
        # Whoever adds up plans and is still open after the first steps has counted the failures of all of them.
        by_plan = counts_plans(account.filter.open)
        steps: Any = account.held[receipt.id]
        drawn = steps.after(blocks[name], by_plan)
        state.put(replace(account, held={**account.held, receipt.id: drawn}))


def close(state: State, entry: Entry) -> None:
    receipt = state.settled(entry["receipt"]).receipt
    for name in receipt.accounts:
        account = state.account(name)
        state.put(replace(account, held={id: hold for id, hold in account.held.items() if id != receipt.id}))
