"""A running digest of the state beside the chain, bound into it: what a spend believes is what the last entry left.

Whatever decides about money is a leaf: each account (limits, members, holds, totals), each receipt that is not settled,
and what else the entries amount to (data sets, owners, policy, approvals, parts that wait). The last entry of each
transaction ends with

    "left": root, and for each leaf that the transaction changed, its name and new value

so that both are under the entry's hash. The root is SHA-256 of a sum over all leaves of SHAKE-256(name, value), 2048
bits long, modulo 2^2048: a change takes the old term away and adds the new one, however many leaves there are.

Claim. A row that was changed, added or removed since the last entry, by anything but a ledger, is refused by the next
writer. Sketch: a process that knows no leaves reads all rows and compares their root with the last entry's; to find
other rows with the same root is to find a collision of the sum (Bellare, Micciancio 1997), or of SHA-256. From then on
it takes the changes of others from their entries, each of which must continue the chain, and holds every row that it
reads to its leaf. Changing the root as well changes the entry's hash, which the head outside the store tells.

An entry of an earlier version has no root: then the rows are taken as they are, as that version took them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import LedgerError
from ..proof.chain import GENESIS, Link

EDITED = (
    "what is stored beside the ledger's entries is not what the last of them left: somebody changed it by hand, or the "
    "file is damaged. Nothing is released; run `verify`, and restore the last good copy"
)
PROVEN = (
    "data",
    "policy",
    "approval",
    "anchor",
    "part",
    "turns",
    "owners",
)  # kinds of facts; what alerts remember is no proof
LIVE = ("spent", "held", "opened")  # states of receipts that something can still be done with
FOLLOWED = 1000  # entries of others that are read to go on from what is known; beyond, all rows are
_SIZE = 16  # bytes of names and values
_NONE = bytes(_SIZE)  # the value of a leaf that is gone
_BITS = 2048
_MASK = 2**_BITS - 1
_LEFT = re.compile(rb',\["left","([0-9a-f]{64})((?:[0-9a-f]{64})*)"\]\]\}')


@lru_cache(maxsize=4096)
def leaf(kind: str, name: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{name}".encode("utf-8", "surrogatepass")).digest()[:_SIZE]


def value(*parts: bytes) -> bytes:
    """Of a row: its parts, each with its length."""
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()[:_SIZE]


@lru_cache(maxsize=4096)  # what one transaction adds, the next one takes away
def _term(name: bytes, of: bytes) -> int:
    return int.from_bytes(hashlib.shake_256(name + of).digest(_BITS // 8), "big")


def root(total: int) -> str:
    return hashlib.sha256(total.to_bytes(_BITS // 8, "big")).hexdigest()


@dataclass
class Digest:
    """All leaves, at the entry that they belong to."""

    head: Link = GENESIS
    leaves: dict[bytes, bytes] = field(default_factory=dict)
    total: int = 0

    @classmethod
    def of(cls, head: Link, rows: Iterable[tuple[bytes, bytes]]) -> Digest:
        leaves = dict(rows)
        return cls(head, leaves, sum(_term(*each) for each in leaves.items()) & _MASK)


class Tally:
    """One transaction's view of the leaves, which is taken over when it is committed."""

    def __init__(self, digest: Digest) -> None:
        self.digest, self._total = digest, digest.total
        self._changes: dict[bytes, bytes] = {}  # by this transaction
        self._others: dict[bytes, bytes] = {}  # by other processes, before it

    def holds(self, name: bytes, of: bytes | None) -> bool:
        return self._value(name) == (of or _NONE)

    def check(self, name: bytes, of: bytes | None) -> None:
        """Is the row the one that the last entry left?"""
        if not self.holds(name, of):
            raise LedgerError(EDITED)

    def put(self, name: bytes, of: bytes | None) -> None:
        self._put(self._changes, name, of or _NONE)

    def _put(self, changes: dict[bytes, bytes], name: bytes, new: bytes) -> None:
        old = self._value(name)
        if old != new:
            gone, added = (0 if each == _NONE else _term(name, each) for each in (old, new))
            self._total = (self._total - gone + added) & _MASK
        changes[name] = new

    def _value(self, name: bytes) -> bytes:
        for changes in (self._changes, self._others, self.digest.leaves):
            if name in changes:
                return changes[name]
        return _NONE

    def sealed(self, body: bytes) -> bytes:
        """The transaction's last entry, with what it leaves."""
        if not body.endswith(b"]]}"):
            return body  # no entry that a ledger would write
        changed = "".join(f"{name.hex()}{new.hex()}" for name, new in self._changes.items())
        return b'%b,["left","%b%b"]]}' % (body[:-2], root(self._total).encode(), changed.encode())

    def follow(self, entries: Iterable[tuple[Link, bytes]]) -> bool:
        """Take over what other processes wrote since; False where that cannot be told from their entries."""
        before, left = self.digest.head, None
        for link, body in entries:
            if link != before.next(body):
                raise LedgerError(EDITED)
            before, left = link, read(body)
            for name, new in (left or ("", {}))[1].items():
                self._put(self._others, name, new)
        return left is not None and left[0] == root(self._total)

    def taken_over(self, head: Link) -> Digest:
        """After the commit."""
        digest = self.digest
        for changes in (self._others, self._changes):
            for name, new in changes.items():
                if new == _NONE:
                    digest.leaves.pop(name, None)
                else:
                    digest.leaves[name] = new
        digest.head, digest.total = head, self._total
        return digest


def read(body: bytes) -> tuple[str, Mapping[bytes, bytes]] | None:
    """The root that an entry ends with, and the leaves that its transaction changed; None where it has none."""
    place = body.rfind(b',["left","')
    ending = None if place < 0 else _LEFT.fullmatch(body, place)
    if ending is None:
        return None
    pairs = bytes.fromhex(ending[2].decode())
    changes = {pairs[n : n + _SIZE]: pairs[n + _SIZE : n + 2 * _SIZE] for n in range(0, len(pairs), 2 * _SIZE)}
    return ending[1].decode(), changes


class Checked:
    """What books of every store share: rows are held to the digest, and the last entry is written when all is put.

    A book that only reads checks nothing, unless what it remembers was checked; one that writes begins with the digest.
    """

    head: Link
    tally: Tally | None = None
    lazy = False

    def __init__(self) -> None:
        self._pending: bytes | None = None
        self._before = GENESIS  # the link that the pending entry comes after
        self._rests: dict[str, bytes] = {}

    def append(self, body: bytes) -> Link:
        """One more entry. Its hash is told when it is sealed: an entry that is the last one says what it leaves."""
        self._flush()
        self._before, self._pending = self.head, body
        self.head = self.head.next(body)
        return self.head

    def seal(self) -> None:
        """Before the commit."""
        if self._pending is not None and self.tally is not None:
            self._pending = self.tally.sealed(self._pending)
            self.head = self._before.next(self._pending)
        self._flush()

    def _flush(self) -> None:
        if self._pending is not None:
            self._insert(self.head, self._pending)
            self._pending = None

    def _insert(self, link: Link, body: bytes) -> None:
        raise NotImplementedError

    def _last(self, number: int) -> tuple[Link, bytes] | None:
        """The entry that is not written yet."""
        return (self.head, self._pending) if self._pending is not None and number == self.head.number else None

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        raise NotImplementedError

    def _rows(self) -> Iterable[tuple[bytes, bytes]]:
        """All leaves, as they are stored."""
        raise NotImplementedError

    def _from_rows(self) -> Digest:
        last, before = self.entry(self.head.number), self.entry(self.head.number - 1)
        ends = None if last is None else (GENESIS.hash if before is None else before[0].hash, last[1])
        return begun(self.head, ends, self._rows())

    def as_left(self) -> bool:
        """Are all rows what the last entry left?"""
        try:
            self._from_rows()
        except LedgerError:
            return False
        return True

    # Rows, as they are read

    def _read_account(self, name: str, row: tuple[bytes, bytes] | None) -> None:
        if self.tally is not None:
            if row is not None:
                self._rests[name] = hashlib.sha256(row[0]).digest()
            self.tally.check(leaf("account", name), None if row is None else value(self._rests[name], row[1]))

    def _read_fact(self, kind: str, name: str, state: bytes | None) -> None:
        if self.tally is not None and kind in PROVEN:
            self.tally.check(leaf(kind, name), None if state is None else value(state))

    def _read_receipt(self, id: str, receipt: bytes, state: str, key: str | None) -> None:
        if self.tally is not None:
            self.tally.check(leaf("receipt", id), live(receipt, state, key))

    # Rows, as they are put

    def _put_account(self, name: str, rest: bytes | None, totals: bytes) -> None:
        if rest is not None:
            self._rests[name] = hashlib.sha256(rest).digest()
        if self.tally is not None:
            self.tally.put(leaf("account", name), value(self._rests[name], totals))

    def _put_fact(self, kind: str, name: str, state: bytes) -> None:
        if self.tally is not None and kind in PROVEN:
            self.tally.put(leaf(kind, name), value(state))

    def _put_receipt(self, id: str, receipt: bytes, state: str, key: str | None) -> None:
        if self.tally is not None:
            self.tally.put(leaf("receipt", id), live(receipt, state, key))


def live(receipt: bytes, state: str, key: str | None) -> bytes | None:
    """A receipt's value; None where it is settled, and no leaf."""
    return value(receipt, state.encode(), b"" if key is None else b"=" + key.encode()) if state in LIVE else None


def begun(head: Link, last: tuple[bytes, bytes] | None, rows: Iterable[tuple[bytes, bytes]]) -> Digest:
    """All leaves, from the rows; refused where they are not what the last entry left.

    last  the hash of the entry before the last one, and the last one's body
    """
    digest = Digest.of(head, rows)
    if last is None:
        return digest
    if Link(head.number - 1, last[0]).next(last[1]) != head:
        raise LedgerError(EDITED)
    left = read(last[1])
    if left is not None and left[0] != root(digest.total):
        raise LedgerError(EDITED)
    return digest
