"""Bits whose words the test writes, and bits that count."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfumato.noise.bits import Bits, Words


class ScriptedBits:
    """Hands out the given words, one after the other, and remembers how many went."""

    grade = "seeded"

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array(list(words), dtype=np.uint64)
        self.given = 0

    def words(self, count: int) -> Words:
        if self.given + count > self._words.size:
            raise AssertionError(f"the script has {self._words.size} words, and word {self.given + count} was asked")
        out = self._words[self.given : self.given + count].copy()
        self.given += count
        return out


class CountingBits:
    """Another source, counted."""

    def __init__(self, source: Bits) -> None:
        self.source = source
        self.grade = source.grade
        self.given = 0

    def words(self, count: int) -> Words:
        self.given += count
        return self.source.words(count)


def joined(words: list[int], first: int) -> tuple[int, int]:
    """The bit string of a draw as (n, precision): `first` leading bits of the first word, then whole words."""
    n, precision = words[0] >> (64 - first), first
    for word in words[1:]:
        n, precision = (n << 64) | word, precision + 64
    return n, precision
