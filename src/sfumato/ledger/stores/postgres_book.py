"""One transaction on PostgreSQL, as the ledger sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, LiteralString

from ... import record
from ...errors import LedgerError
from ...plan import Receipt
from ..proof.chain import GENESIS, Link
from .base import Account, Filed, keep_fact, only_moved, rest, totals, under_way, whole
from .postgres_wire import Wire
from .postgres_words import told
from .words import DAMAGED

BLOCK = 10_000

_ENTRY: LiteralString = "INSERT INTO sfumato.entries (number, hash, body) VALUES ($1, $2, $3)"
_ACCOUNT: LiteralString = (
    "INSERT INTO sfumato.accounts (name, state, totals) VALUES ($1, $2, $3) "
    "ON CONFLICT (name) DO UPDATE SET state = excluded.state, totals = excluded.totals"
)
_TOTALS: LiteralString = "UPDATE sfumato.accounts SET totals = $2 WHERE name = $1"
_FACT: LiteralString = (
    "INSERT INTO sfumato.facts (kind, name, state) VALUES ($1, $2, $3) "
    "ON CONFLICT (kind, name) DO UPDATE SET state = excluded.state"
)
_RECEIPT: LiteralString = (
    "INSERT INTO sfumato.receipts (id, receipt, state, key, plan_hash, data, answer) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, answer = excluded.answer"
)

_NEXT: LiteralString = "UPDATE sfumato.receipts SET state = $2, answer = $3 WHERE id = $1"


class Known:
    """What the last transaction of this connection knew, with the head it belongs to."""

    def __init__(self) -> None:
        self.head = GENESIS
        self.accounts: dict[str, Account] = {}
        self.facts: dict[tuple[str, str], Any] = {}
        self.filed: dict[str, Filed] = {}


class PostgresBook:
    """Accounts and facts are remembered with the head they belong to, so that only another writer's are read."""

    lazy = False

    def __init__(self, wire: Wire, begin: LiteralString, head: LiteralString, known: Known) -> None:
        self._wire = wire
        rows = wire.begin(begin, head)
        if len(rows) != 1:
            raise LedgerError(DAMAGED)
        self.head = Link(*rows[0])
        self._last: tuple[Link, bytes] | None = None
        self._accounts = dict(known.accounts) if known.head == self.head else {}
        self._facts = dict(known.facts) if known.head == self.head else {}
        self._under_way = dict(known.filed) if known.head == self.head else {}

    def commit(self) -> Known:
        self._wire.commit()
        known = Known()
        known.head, known.accounts, known.facts = self.head, self._accounts, self._facts
        known.filed = self._under_way
        return known

    def append(self, body: bytes) -> Link:
        link = self.head.next(body)
        self._wire.send(_ENTRY, *link, body)
        self.head = link
        self._last = link, body
        return link

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        if self._last is not None and self._last[0].number == number:
            return self._last
        rows = self._wire.rows("SELECT number, hash, body FROM sfumato.entries WHERE number = $1", number)
        return (Link(*rows[0][:2]), rows[0][2]) if rows else None

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            rows = self._wire.rows("SELECT state, totals FROM sfumato.accounts WHERE name = $1", name)
            if not rows:
                return None
            with told():
                self._accounts[name] = whole(*rows[0])
        return self._accounts[name]

    def accounts(self) -> tuple[str, ...]:
        rows = self._wire.rows('SELECT name FROM sfumato.accounts ORDER BY name COLLATE "C"')
        return tuple(name for (name,) in rows)

    def put_account(self, account: Account) -> None:
        if only_moved(self._accounts.get(account.name), account):
            self._wire.send(_TOTALS, account.name, totals(account))
        else:
            self._wire.send(_ACCOUNT, account.name, rest(account), totals(account))
        self._accounts[account.name] = account

    def fact(self, kind: str, name: str) -> Any:
        if (kind, name) in self._facts:
            return self._facts[kind, name]
        rows = self._wire.rows("SELECT state FROM sfumato.facts WHERE kind = $1 AND name = $2", kind, name)
        with told():
            return keep_fact(self._facts, kind, name, record.parse(rows[0][0]) if rows else None)

    def facts(self, kind: str) -> dict[str, Any]:
        rows = self._wire.rows(
            'SELECT name, state FROM sfumato.facts WHERE kind = $1 ORDER BY name COLLATE "C"',
            kind,
        )
        with told():
            return {name: record.parse(state) for name, state in rows}

    def put_fact(self, kind: str, name: str, value: Any) -> None:
        self._wire.send(_FACT, kind, name, record.canonical(value))
        keep_fact(self._facts, kind, name, value)

    def filed(self, receipt: str) -> Filed | None:
        return self._under_way.get(receipt) or next(iter(self._filed("id = $1", receipt)), None)

    def filed_under(self, key: str) -> Filed | None:
        return next(iter(self._filed("key = $1", key)), None)

    def answered(self, plan_hash: str, data: str) -> Iterator[Filed]:
        where: LiteralString = 'plan_hash = $1 AND data = $2 AND answer IS NOT NULL ORDER BY id COLLATE "C"'
        yield from self._filed(where, plan_hash, data)

    def _filed(self, where: LiteralString, *values: str) -> list[Filed]:
        rows = self._wire.rows(f"SELECT receipt, state, key, answer FROM sfumato.receipts WHERE {where}", *values)
        with told():
            return [Filed(record.parse(receipt, Receipt), *state) for receipt, *state in rows]

    def receipts(self) -> Iterator[tuple[tuple[str, str, str], Filed]]:
        after = ""
        while rows := self._wire.rows(
            "SELECT id, plan_hash, data, receipt, state, key, answer FROM sfumato.receipts "
            "WHERE id > $1 ORDER BY id LIMIT $2",
            after,
            BLOCK,
        ):
            for id, plan_hash, data, receipt, *state in rows:
                with told():
                    filed = Filed(record.parse(receipt, Receipt), *state)
                yield (id, plan_hash, data), filed
            after = rows[-1][0]

    def file(self, filed: Filed) -> None:
        known = filed.receipt.id in self._under_way
        under_way(self._under_way, filed)
        if known:
            self._wire.send(_NEXT, filed.receipt.id, filed.state, filed.answer)
        else:
            self._wire.send(_RECEIPT, *filed.row())
