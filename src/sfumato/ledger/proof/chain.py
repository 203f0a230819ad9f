"""The chain: each entry carries the hash of the one before it, so that none can be changed, lost or moved unseen.

    hash_i = SHA-256(hash_(i-1) || number of the entry, 8 bytes || body)

The body's length is fixed by the hash function's own padding, and the first two parts have fixed lengths, so no two
different (hash, number, body) have the same text under the hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple


class Link(NamedTuple):
    """An entry's number and hash."""

    number: int
    hash: bytes

    def next(self, body: bytes) -> Link:
        number = self.number + 1
        return Link(number, hashlib.sha256(self.hash + number.to_bytes(8, "big") + body).digest())


GENESIS = Link(0, bytes(32))


class Broken(NamedTuple):
    """The first entry that does not continue the chain."""

    number: int
    reason: str


def first_broken(entries: Iterable[tuple[Link, bytes]], start: Link = GENESIS) -> Broken | None:
    """Where the chain breaks; None where it holds."""
    before = start
    for link, body in entries:
        expected = before.next(body)
        if link.number != expected.number:
            return Broken(expected.number, f"entry {expected.number} is missing: {link.number} comes next")
        if link.hash != expected.hash:
            return Broken(link.number, f"entry {link.number} does not continue the chain: its content was changed")
        before = link
    return None
