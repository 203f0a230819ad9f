"""What somebody who may write the file changes beside the entries: accounts, receipts, answers, facts, triggers.

For a ledger with an account "b" that holds room, a receipt with an answer and a key, one that failed and one that was
never opened, and a data set that is charged with another.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sfumato.ledger.stores.base import Account, rest, totals, whole

_ANSWERED = "WHERE id = (SELECT id FROM receipts WHERE state = 'answered')"
_DATA_SET = (
    "INSERT INTO facts SELECT kind, 'mine', CAST(replace(CAST(state AS TEXT), 'view', 'mine') AS BLOB) FROM facts"
)
_OTHER = "(SELECT receipt FROM receipts WHERE state = 'failed')"
STATEMENTS = {
    "an account renamed": "UPDATE accounts SET name = 'x' WHERE name = 'b'",
    "an account lost": "DELETE FROM accounts WHERE name = 'b'",
    "an account added": "INSERT INTO accounts SELECT 'x', state, totals FROM accounts WHERE name = 'b'",
    "an account that is none": "UPDATE accounts SET state = x'7b7d' WHERE name = 'b'",
    "totals that are none": "UPDATE accounts SET totals = x'5b5d' WHERE name = 'b'",
    "totals of another account": "UPDATE accounts SET totals = (SELECT totals FROM accounts WHERE name = 'b')",
    "hidden numbers": "UPDATE accounts SET state = CAST(replace(state, '\"failures\":0', '\"failures\":1') AS BLOB)",
    "an answer changed": f"UPDATE receipts SET answer = x'5b5d' {_ANSWERED}",
    "an answer lost": f"UPDATE receipts SET answer = NULL {_ANSWERED}",
    "an answer added": "UPDATE receipts SET answer = x'31' WHERE state = 'failed'",
    "an answer for another question": f"UPDATE receipts SET plan_hash = 'x' {_ANSWERED}",
    "a receipt opened again": f"UPDATE receipts SET state = 'spent' {_ANSWERED}",
    "a receipt for other data": "UPDATE receipts SET data = 'x' WHERE state = 'spent'",
    "a receipt of another": f"UPDATE receipts SET receipt = {_OTHER} {_ANSWERED}",
    "a receipt lost": "DELETE FROM receipts WHERE state = 'spent'",
    "a receipt that nobody paid": "INSERT INTO receipts SELECT 'x', receipt, 'spent', NULL, plan_hash, data, NULL "
    "FROM receipts LIMIT 1",
    "a key changed": f"UPDATE receipts SET key = 'x' {_ANSWERED}",
    "a key freed": f"UPDATE receipts SET key = NULL {_ANSWERED}",
    "a data set renamed": "UPDATE facts SET name = 'other' WHERE name = 'view'",
    "facts lost": "DELETE FROM facts",
    "a data set added": f"{_DATA_SET} WHERE name = 'view'",
    "a policy added": "INSERT INTO facts VALUES ('policy', '', x'7b7d')",
}


def _refunded(account: Account) -> Account:
    assert account.filter is not None
    first, *others = account.filter.open
    members = (replace(first, spent=first.spent / 2), *others)
    return replace(account, filter=replace(account.filter, open=members))


def _counted_less(account: Account) -> Account:
    assert account.filter is not None
    return replace(account, filter=replace(account.filter, count=0))


ACCOUNTS: dict[str, Callable[[Account], Account]] = {
    "an account refunded": _refunded,
    "releases counted less": _counted_less,
    "an account unlocked": lambda account: replace(account, failures=-9),
    "room freed": lambda account: replace(account, held={}),
    "an account moved": lambda account: replace(account, parent=None),
}
TRIGGER = "a trigger dropped"
EDITS = (*STATEMENTS, *ACCOUNTS, TRIGGER)


def make(name: str, connection: sqlite3.Connection) -> None:
    """One of them, by somebody who may do everything to the file: but for the trigger, triggers are as they were."""
    run: Callable[..., Any] = connection.execute
    run("PRAGMA ignore_check_constraints = ON")
    triggers = run("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name").fetchall()
    for trigger, _ in triggers:
        run(f'DROP TRIGGER "{trigger}"')
    if name in STATEMENTS:
        run(STATEMENTS[name])
    elif name in ACCOUNTS:
        (stored,) = run("SELECT state, totals FROM accounts WHERE name = 'b'").fetchall()
        after = ACCOUNTS[name](whole(*stored))
        run("UPDATE accounts SET state = ?, totals = ? WHERE name = 'b'", (rest(after), totals(after)))
    for _, text in triggers[1:] if name == TRIGGER else triggers:
        run(text)
