"""A ledger in memory: gone with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...errors import LedgerError
from ...process import Home
from ..proof.chain import GENESIS, Link
from .base import Account, Book, Filed
from .words import FORKED_MEMORY


class MemoryStore:
    """Gone with the process, and of no use in a fork of it: each copy would pay out the same budget again."""

    principal = None

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept = Pages()
        self._home = Home()

    def _check(self) -> None:
        if self._home.left:  # before the lock, which another thread may have held at the fork
            raise LedgerError(FORKED_MEMORY)

    @contextmanager
    def reading(self) -> Iterator[Book]:
        self._check()
        with self._lock:
            yield DraftBook(self._kept)

    @contextmanager
    def writing(self) -> Iterator[Book]:
        self._check()
        with self._lock:
            draft = DraftBook(self._kept)
            yield draft
            self._check()
            self._kept.take(draft.new)

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        self._check()
        with self._lock:
            found = self._kept.chain[first - 1 :]
        yield from found

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class Pages:
    """All that a ledger holds, in dictionaries. A store that keeps it elsewhere can hold it so while it runs."""

    chain: list[tuple[Link, bytes]] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)
    receipts: dict[str, Filed] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    plans: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    facts: dict[tuple[str, str], Any] = field(default_factory=dict)

    def take(self, new: Pages) -> None:
        self.chain += new.chain
        self.accounts |= new.accounts
        self.receipts |= new.receipts
        self.keys |= new.keys
        self.facts |= new.facts
        for plan, receipts in new.plans.items():
            self.plans.setdefault(plan, []).extend(receipts)


class DraftBook:
    """An open transaction: what is kept, with what is new on top."""

    lazy = False

    def __init__(self, kept: Pages) -> None:
        self._kept, self.new = kept, Pages()

    @property
    def head(self) -> Link:
        chain = self.new.chain or self._kept.chain
        return chain[-1][0] if chain else GENESIS

    def append(self, body: bytes) -> Link:
        link = self.head.next(body)
        self.new.chain.append((link, body))
        return link

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        old = len(self._kept.chain)
        chain, place = (self._kept.chain, number) if number <= old else (self.new.chain, number - old)
        return chain[place - 1] if 1 <= place <= len(chain) else None

    def account(self, name: str) -> Account | None:
        return self.new.accounts.get(name) or self._kept.accounts.get(name)

    def accounts(self) -> tuple[str, ...]:
        return tuple(self._kept.accounts | self.new.accounts)

    def put_account(self, account: Account) -> None:
        self.new.accounts[account.name] = account

    def filed(self, receipt: str) -> Filed | None:
        return self.new.receipts.get(receipt) or self._kept.receipts.get(receipt)

    def filed_under(self, key: str) -> Filed | None:
        receipt = self.new.keys.get(key) or self._kept.keys.get(key)
        return None if receipt is None else self.filed(receipt)

    def answered(self, plan_hash: str, data: str) -> Iterator[Filed]:
        for receipt in sorted(self._kept.plans.get((plan_hash, data), ())):
            filed = self.filed(receipt)
            if filed is not None and filed.answer is not None:
                yield filed

    def file(self, filed: Filed) -> None:
        receipt = filed.receipt
        if self.filed(receipt.id) is None:
            self.new.plans.setdefault((receipt.plan_hash, receipt.data), []).append(receipt.id)
            if filed.key is not None:
                self.new.keys[filed.key] = receipt.id
        self.new.receipts[receipt.id] = filed

    def receipts(self) -> Iterator[tuple[tuple[str, str, str], Filed]]:
        places = {id: plan for plan, ids in (*self._kept.plans.items(), *self.new.plans.items()) for id in ids}
        for id, filed in (self._kept.receipts | self.new.receipts).items():
            yield (id, *places.get(id, ("", ""))), filed

    def fact(self, kind: str, name: str) -> Any:
        return self.new.facts.get((kind, name), self._kept.facts.get((kind, name)))

    def facts(self, kind: str) -> dict[str, Any]:
        found = self._kept.facts | self.new.facts
        return {name: value for (of, name), value in sorted(found.items(), key=lambda fact: fact[0]) if of == kind}

    def put_fact(self, kind: str, name: str, value: Any) -> None:
        self.new.facts[kind, name] = value
