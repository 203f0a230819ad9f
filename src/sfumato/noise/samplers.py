"""Exact draws that are not noise laws: uniform integers, coins, permutations.

As everywhere here, a draw takes one 64-bit word and decides from it nearly always; the rare rest is settled with more
bits, exactly. No probability is ever rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..checks import refuse, whole
from ..exact import Enclosure
from ..laws import Integers
from .bits import Bits

Chance = Callable[[int], Enclosure]
"""A probability that can be enclosed to any number of bits."""


def integers(below: int, count: int, bits: Bits) -> Integers:
    """Uniform on 0, 1, ..., below - 1. Words of the last, incomplete run of `below` are drawn again: a choice that
    does not depend on the value returned."""
    whole(below, "below", most=2**62)
    limit = (1 << 64) // below * below
    words = bits.words(count)
    if limit < 1 << 64:
        while (late := np.flatnonzero(words >= np.uint64(limit))).size:
            words[late] = bits.words(late.size)
    return (words % np.uint64(below)).astype(np.int64)


def coins(chance: Chance, count: int, bits: Bits) -> NDArray[np.bool_]:
    """Independent coins that are heads with exactly the given probability: heads when U < p."""
    p = chance(64)
    words = bits.words(count)
    heads = _below(words, p.lo)
    for index in np.flatnonzero(heads != _below(words, p.hi)):
        heads[index] = _settle(chance, int(words[index]), bits)
    return heads


def _below(words: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    return np.full(words.shape, limit > 0) if not 0 < limit < 1 << 64 else words < np.uint64(limit)


def _settle(chance: Chance, n: int, bits: Bits) -> bool:
    precision = 64
    while True:
        n = (n << 64) | int(bits.words(1)[0])
        precision += 64
        p = chance(precision)
        if n + 1 <= p.lo:
            return True
        if n >= p.hi:
            return False


def rational_chance(p: Fraction) -> Chance:
    if not 0 <= p <= 1:
        raise refuse("p", p, "a probability from 0 to 1")
    return lambda precision: exact.enclose(p, precision)


def exp_chance(x: Fraction) -> Chance:
    """exp(-x)."""
    if x < 0:
        raise refuse("x", x, "a number of at least 0")
    return lambda precision: exact.exp_neg(x, precision)


def permutation(count: int, bits: Bits) -> Integers:
    """A uniform permutation: sort random keys, and draw all of them again if two are equal (given that all differ,
    every order is equally likely)."""
    while True:
        keys = bits.words(count)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not bool((ranked[1:] == ranked[:-1]).any()):
            return order.astype(np.int64)
