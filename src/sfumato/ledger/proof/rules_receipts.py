"""The rules of receipts: each is written once, opened once (by steps: again until it is settled) and settled once."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ...plan import Receipt
from ..policy import paying
from .rules_data import charged_where_it_is_read
from .state import Entry, EntryError, Settled, State

UNOPENED = "unopened"
"""How a receipt ends whose data was never opened: nothing about it can depend on the data."""


def new_receipt(state: State, entry: Entry) -> Receipt:
    """One that was not there before, for a plan that whoever wrote it may pay for from these accounts."""
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
    if key is not None:
        state.keys.add(key)
    return receipt


def _from_their_own(state: State, who: str, receipt: Receipt, read: set[str]) -> None:
    def parent(name: str) -> str | None:
        return state.accounts[name].parent if name in state.accounts else None

    if state.policy is not None and paying.refusal(state.policy, who, receipt.accounts, read, parent) is not None:
        raise EntryError("whoever wrote it pays from accounts that are not theirs, or leaves their own out")


def open_(state: State, entry: Entry) -> None:
    settled = state.settled(entry["receipt"])
    _no_list(settled)
    again = settled.state == "opened" and settled.receipt.by_steps  # each step that reads the data has its own draw
    if settled.state not in ("spent", "held") and not again:
        raise EntryError("its receipt was opened before")
    state.receipts[settled.receipt.id] = settled._replace(state="opened")


def _no_list(settled: Settled) -> None:
    if settled.receipt.loop == "parts":
        raise EntryError("its receipt pays for a list, which opens nothing itself")


def settle(state: State, entry: Entry) -> None:
    """How it ended; what failed with the data open counts towards the lock of every account that paid."""
    settled, outcome = state.settled(entry["receipt"]), entry["outcome"]
    _no_list(settled)
    unopened = settled.state in ("spent", "held")
    # "failed" was also written of what was not opened, before there was a word for it, and counts as it did.
    ends = ("failed", UNOPENED) if unopened else ("answered", "failed", "interrupted")
    if outcome not in ends or settled.state in ("answered", "failed"):
        raise EntryError("a receipt is settled once, and answered only after it was opened")
    by_steps = settled.receipt.by_steps
    if by_steps and any(settled.receipt.id in state.account(name).held for name in settled.receipt.accounts):
        raise EntryError("it settles work for which room is still held")
    ended = "answered" if outcome == "answered" else "failed"
    state.receipts[settled.receipt.id] = settled._replace(state=ended, answer=entry["answer"])
    if outcome == "failed":
        for name in settled.receipt.accounts:
            account = state.account(name)
            state.put(replace(account, failures=account.failures + 1))
