"""What a spend believes is what the last entry left: rows that were changed by hand are refused at the next spend."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato import Budget, reserve, sequence
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.digest import Digest, Tally, leaf, read, value
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import laplace
from tests.ledger.stores import ROW, answered, pay

EDITED = "not what the last of them left"
FRESH = (
    "UPDATE accounts SET totals = (SELECT totals FROM accounts WHERE name = 'fresh')",
    "UPDATE accounts SET state = (SELECT state FROM accounts WHERE name = 'wide') WHERE name = 'a'",
    "DELETE FROM accounts WHERE name = 'fresh'",
    "INSERT INTO accounts SELECT 'c', state, totals FROM accounts WHERE name = 'fresh'",
    "UPDATE receipts SET state = 'spent' WHERE state = 'opened'",
    "UPDATE receipts SET state = 'spent' WHERE state = 'answered'",
    "UPDATE receipts SET key = 'other' WHERE state = 'opened'",
    "DELETE FROM receipts WHERE state = 'held'",
    "DELETE FROM facts WHERE kind = 'part' AND name <> ''",
    "UPDATE facts SET state = (SELECT state FROM facts WHERE kind = 'part' AND name = '') WHERE kind = 'data'",
)


def life(path: Path) -> None:
    with Ledger(SQLiteStore(path, create=True)) as ledger:
        ledger.open_account("a", Budget(epsilon=3))
        ledger.open_account("fresh", Budget(epsilon=3), reason="other people")
        ledger.open_account("wide", Budget(epsilon=9), reason="other people")
        answered(ledger, laplace(0.5))
        ledger.open(pay(ledger, laplace(0.25)))
        ledger.hold((), reserve(unit=ROW, budget=Budget(epsilon=0.5)), data="a@1", grade="exact", note="")
        ledger.prepay((), sequence(x=laplace(0.125), y=laplace(0.0625)), data="a@2", grade="exact", note="")
        ledger.register("view", same_as="a", reason="the same people")


def edit(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement, values).rowcount
        for _, sql in triggers:
            connection.execute(sql)


@pytest.mark.parametrize("statement", FRESH)
def test_a_row_that_was_changed_by_hand_is_refused_at_the_next_spend(tmp_path: Path, statement: str) -> None:
    life(tmp_path / "ledger")
    edit(tmp_path / "ledger", statement)
    with Ledger(SQLiteStore(tmp_path / "ledger")) as ledger:
        with pytest.raises(LedgerError, match=EDITED):
            pay(ledger, laplace(0.5))
        assert not ledger.verify().ok


def test_rows_and_root_changed_together_are_refused(tmp_path: Path) -> None:
    """The root is under the hash of the last entry."""
    path = tmp_path / "ledger"
    life(path)
    edit(path, FRESH[0])
    with closing(sqlite3.connect(path)) as connection:
        number, body = connection.execute("SELECT number, body FROM entries ORDER BY number DESC LIMIT 1").fetchone()
    left = read(body)
    assert left is not None
    with SQLiteStore(path)._transaction("BEGIN") as book:
        forged = Digest.of(book.head, book._rows())
    from sfumato.ledger.stores.digest import root

    edit(
        path,
        "UPDATE entries SET body = ? WHERE number = ?",
        body.replace(left[0].encode(), root(forged.total).encode()),
        number,
    )
    with Ledger(SQLiteStore(path)) as ledger, pytest.raises(LedgerError, match=EDITED):
        pay(ledger, laplace(0.5))


def test_a_running_process_sees_it_too(tmp_path: Path) -> None:
    """When another writer's entry makes it read the rows again."""
    path = tmp_path / "ledger"
    life(path)
    with Ledger(SQLiteStore(path)) as ledger, Ledger(SQLiteStore(path)) as other:
        pay(ledger, laplace(0.01))
        pay(other, laplace(0.01))
        edit(path, FRESH[0])
        pay(other, laplace(0.01), "wide")
        with pytest.raises(LedgerError, match=EDITED):
            pay(ledger, laplace(0.5))


def test_writers_that_take_turns_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the entries, without reading all rows again."""
    from sfumato.ledger.stores import digest

    path = tmp_path / "ledger"
    life(path)
    begun: list[int] = []
    begin = digest.begun
    monkeypatch.setattr(digest, "begun", lambda *given: begun.append(1) or begin(*given))
    with Ledger(SQLiteStore(path)) as one, Ledger(SQLiteStore(path)) as two:
        for number in range(1, 8):
            answered(one, laplace(Fraction(1, 100 + number)))
            answered(two, laplace(Fraction(1, 200 + number)), "wide")
            one.spent("a"), two.statement("a")
        assert len(begun) == 2
        assert one.verify().ok
        pay(one, laplace(0.01))
        assert two.verify().ok


def test_a_refusal_leaves_the_digest_as_it_was(tmp_path: Path) -> None:
    from sfumato.errors import BudgetError

    path = tmp_path / "ledger"
    life(path)
    with Ledger(SQLiteStore(path)) as ledger:
        for _ in range(2):
            with pytest.raises(BudgetError):
                pay(ledger, laplace(5))
            pay(ledger, laplace(0.01))
    with Ledger(SQLiteStore(path)) as ledger:
        pay(ledger, laplace(0.01))
        assert ledger.verify().ok


def test_the_sum_forgets_the_order_and_nothing_else() -> None:
    rows = {leaf("account", str(n)): value(bytes([n])) for n in range(20)}
    whole = Digest.of(Digest().head, rows.items())
    tally = Tally(Digest())
    for name, of in reversed(rows.items()):
        tally.put(name, value(b"first"))
        tally.put(name, of)
    assert tally.taken_over(whole.head) == whole
    for name in rows:
        tally = Tally(Digest.of(whole.head, rows.items()))
        tally.put(name, None)
        assert tally._total != whole.total and not tally.holds(name, rows[name])
