"""One transaction on PostgreSQL, as the ledger sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, LiteralString

from ... import record
from ...errors import LedgerError
from ...plan import Receipt
from ..proof.chain import GENESIS, Link
from .base import Account, Filed, keep_fact, only_moved, rest, totals, under_way, whole
from .digest import FOLLOWED, PROVEN, Checked, Digest, Tally, leaf, live
from .digest import value as value_of
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
        self.rests: dict[str, bytes] = {}
        self.digest: Digest | None = None  # at a head of its own: who only reads leaves it behind
        self.checked = False  # was all this held to the digest?


class PostgresBook(Checked):
    """Accounts and facts are remembered with the head they belong to, so that only another writer's are read."""

    def __init__(
        self, wire: Wire, begin: LiteralString, head: LiteralString, known: Known, *, writes: bool = False
    ) -> None:
        super().__init__()
        self._wire = wire
        rows = wire.begin(begin, head)
        if len(rows) != 1:
            raise LedgerError(DAMAGED)
        self.head = Link(*rows[0])
        same = known.head == self.head and (known.checked or not writes)
        self._accounts = dict(known.accounts) if same else {}
        self._facts = dict(known.facts) if same else {}
        self._under_way = dict(known.filed) if same else {}
        self._rests = dict(known.rests) if same else {}
        self._digest = known.digest
        if writes or (same and known.checked):
            self.tally = self._begin(known.digest)
            known.digest = self.tally.digest  # also where this one is undone

    def _begin(self, digest: Digest | None) -> Tally:
        """The leaves as the last entry left them: as we know them, with what others wrote since, or from the rows."""
        if digest is not None and digest.head == self.head:
            return Tally(digest)
        if digest is not None and self.head.number - digest.head.number <= FOLLOWED:
            since = self._wire.rows(
                "SELECT number, hash, body FROM sfumato.entries WHERE number > $1 ORDER BY number", digest.head.number
            )
            tally = Tally(digest)
            if since and tally.follow([(Link(number, hash), body) for number, hash, body in since]):
                return tally
        return Tally(self._from_rows())

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        for name, state, numbers in self._wire.rows("SELECT name, state, totals FROM sfumato.accounts"):
            yield leaf("account", name), value_of(hashlib.sha256(state).digest(), numbers)
        for kind, name, state in self._wire.rows("SELECT kind, name, state FROM sfumato.facts"):
            if kind in PROVEN:
                yield leaf(kind, name), value_of(state)
        for id, *row in self._wire.rows(
            "SELECT id, receipt, state, key FROM sfumato.receipts WHERE state IN ('spent', 'held', 'opened')"
        ):
            yield leaf("receipt", id), live(*row) or b""

    def commit(self) -> Known:
        self.seal()
        self._wire.commit()
        known = Known()
        known.head, known.accounts, known.facts = self.head, self._accounts, self._facts
        known.filed, known.rests, known.checked = self._under_way, self._rests, self.tally is not None
        known.digest = self._digest if self.tally is None else self.tally.taken_over(self.head)
        return known

    def _insert(self, link: Link, body: bytes) -> None:
        self._wire.send(_ENTRY, *link, body)

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        if (last := self._last(number)) is not None:
            return last
        rows = self._wire.rows("SELECT number, hash, body FROM sfumato.entries WHERE number = $1", number)
        return (Link(*rows[0][:2]), rows[0][2]) if rows else None

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            rows = self._wire.rows("SELECT state, totals FROM sfumato.accounts WHERE name = $1", name)
            self._read_account(name, rows[0] if rows else None)
            if not rows:
                return None
            with told():
                self._accounts[name] = whole(*rows[0])
        return self._accounts[name]

    def accounts(self) -> tuple[str, ...]:
        rows = self._wire.rows('SELECT name FROM sfumato.accounts ORDER BY name COLLATE "C"')
        return tuple(name for (name,) in rows)

    def put_account(self, account: Account) -> None:
        name, numbers = account.name, totals(account)
        if name in self._rests and only_moved(self._accounts.get(name), account):
            self._put_account(name, None, numbers)
            self._wire.send(_TOTALS, name, numbers)
        else:
            stays = rest(account)
            self._put_account(name, stays, numbers)
            self._wire.send(_ACCOUNT, name, stays, numbers)
        self._accounts[account.name] = account

    def fact(self, kind: str, name: str) -> Any:
        if (kind, name) in self._facts:
            return self._facts[kind, name]
        rows = self._wire.rows("SELECT state FROM sfumato.facts WHERE kind = $1 AND name = $2", kind, name)
        self._read_fact(kind, name, rows[0][0] if rows else None)
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
        state = record.canonical(value)
        self._put_fact(kind, name, state)
        self._wire.send(_FACT, kind, name, state)
        keep_fact(self._facts, kind, name, value)

    def filed(self, receipt: str) -> Filed | None:
        return self._under_way.get(receipt) or next(iter(self._filed("id = $1", receipt)), None)

    def filed_under(self, key: str) -> Filed | None:
        return next(iter(self._filed("key = $1", key)), None)

    def answered(self, plan_hash: str, data: str) -> Iterator[Filed]:
        where: LiteralString = 'plan_hash = $1 AND data = $2 AND answer IS NOT NULL ORDER BY id COLLATE "C"'
        yield from self._filed(where, plan_hash, data)

    def _filed(self, where: LiteralString, *values: str) -> list[Filed]:
        rows = self._wire.rows(f"SELECT id, receipt, state, key, answer FROM sfumato.receipts WHERE {where}", *values)
        for row in rows:
            self._read_receipt(*row[:4])
        with told():
            return [Filed(record.parse(receipt, Receipt), *state) for _, receipt, *state in rows]

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
        row = filed.row()
        self._put_receipt(row[0], row[1], row[2], row[3])
        if known:
            self._wire.send(_NEXT, filed.receipt.id, filed.state, filed.answer)
        else:
            self._wire.send(_RECEIPT, *row)
