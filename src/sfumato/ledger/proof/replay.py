"""What the entries alone amount to: every account's state and every receipt's, computed anew.

A pure function of the stored bytes, written apart from the ledger: each kind of entry has its rule, which refuses what
the ledger would never have written (a spend that does not fit, a receipt opened twice, a duty that the policy
gives to others). A new kind of entry needs a rule, and a test asks for it.

Charges are added up as they were written down, so no later accountant changes what was spent. Whether they are the
prices of their events is asked apart (`State.prices`, reprice.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ... import record
from ...errors import BudgetError, RecordError, SfumatoError, UnsupportedEventError
from ..policy.approvals import told_time
from . import rules_accounts, rules_data, rules_governing, rules_parts, rules_receipts, rules_spending
from .state import Entry, EntryError, State, Wrong

DUTY = {
    "open account": "grant", "limit": "grant", "move": "grant", "close account": "grant", "register": "register",
    "owners": "register",
    "spend": "spend", "part": "spend", "hold": "spend", "open": "spend", "draw": "spend",
    "unlock": "unlock", "policy": "adopt", "approve": "approve", "declare": "declare",
}  # fmt: skip

RULES: dict[str, Callable[[State, Entry], None]] = {
    "birth": rules_governing.birth,
    "writer": rules_governing.writer,
    "accept restore": rules_governing.restored,
    "open account": rules_accounts.open_account,
    "limit": rules_accounts.limit,
    "move": rules_accounts.move,
    "close account": rules_accounts.close_account,
    "register": rules_data.register,
    "owners": rules_data.owners,
    "spend": rules_spending.spend,
    "part": rules_parts.part,
    "hold": rules_spending.hold,
    "open": rules_receipts.open_,
    "draw": rules_spending.draw,
    "close": rules_spending.close,
    "settle": rules_receipts.settle,
    "unlock": rules_accounts.unlock,
    "policy": rules_governing.policy,
    "ask": rules_governing.ask,
    "approve": rules_governing.approve,
    "declare": rules_governing.declare,
}


def replay(entries: Iterable[tuple[int, bytes]], state: State | None = None) -> State:
    """Go through entries from the first one on, or from where `state` stopped; stops at the first wrong one."""
    state = State() if state is None else state
    for number, body in entries:
        if state.wrong is not None:
            break
        try:
            _apply(state, number, body)
        except EntryError as problem:
            state.wrong = Wrong(number, str(problem))
        except RecordError:
            state.wrong = Wrong(number, "it cannot be read: a newer version of sfumato may have written it")
        except (BudgetError, UnsupportedEventError):
            state.wrong = Wrong(number, "what it charges does not fit the account's budget")
        except (KeyError, TypeError, AttributeError, ValueError, SfumatoError):
            state.wrong = Wrong(number, "its fields are not those of its kind")
        else:
            state.number = number
    return state


def _apply(state: State, number: int, body: bytes) -> None:
    entry = record.parse(body, dict)
    rule = RULES.get(entry["kind"])
    if rule is None:
        raise EntryError("it is of a kind that this version of sfumato does not know")
    duty = DUTY.get(entry["kind"])
    if entry["kind"] == "open account" and entry["level"] == "block":
        duty = "register"
    if duty is not None and state.policy is not None and state.policy.refusal(entry["by"], duty) is not None:
        raise EntryError("whoever wrote it was not allowed to by the policy")
    state.time = max(state.time if state.policy is not None else "", told_time(entry))
    rule(state, {**entry, "number": number})
