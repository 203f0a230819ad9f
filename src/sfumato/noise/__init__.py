"""Exact, secure, fast noise: what a running plan draws from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..checks import refuse, whole
from ..laws import Integers, Law
from . import inversion, race, samplers, vectors
from .bits import Bits, SecureBits, SeededBits
from .inversion import forget
from .settle import Decide, settle

__all__ = ["Bits", "Noise", "SecureBits", "SeededBits", "forget"]

_ALL_DRAWS = 2**40

T = TypeVar("T")


class Noise:
    """Every random number of a release comes from here."""

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @property
    def grade(self) -> str:
        """ "exact" or "seeded"."""
        return self._bits.grade

    def draw(self, law: Law, count: int) -> Integers:
        """Independent draws from a law on the integers."""
        return inversion.draw(law, whole(count, "count", least=0, most=_ALL_DRAWS), self._bits)

    def add(self, law: Law, sums: Integers) -> None:
        """Adds an independent draw to each of `sums`, in place: what `sums += draw(law, sums.size)` does, sooner."""
        fits = isinstance(sums, np.ndarray) and sums.dtype == np.int64 and sums.ndim == 1 and sums.flags.writeable
        if not fits:
            raise refuse("sums", "...", "a numpy vector of int64 that can be written to")
        inversion.add(law, sums, self._bits)

    def integers(self, below: int, count: int) -> Integers:
        """Uniform on 0, ..., below - 1."""
        return samplers.integers(below, whole(count, "count", least=0, most=_ALL_DRAWS), self._bits)

    def coins(self, chance: samplers.Chance | Fraction, count: int) -> NDArray[np.bool_]:
        """Coins that are heads with exactly the given probability."""
        sure = samplers.rational_chance(chance) if isinstance(chance, Fraction) else chance
        return samplers.coins(sure, whole(count, "count", least=0, most=_ALL_DRAWS), self._bits)

    def permutation(self, count: int) -> Integers:
        """A uniform order of 0, ..., count - 1."""
        return samplers.permutation(whole(count, "count", least=0, most=_ALL_DRAWS), self._bits)

    def select(
        self, scores: Any, *, scale: Fraction = Fraction(1), noise: race.Kind = "gumbel", weights: Any = None
    ) -> int:
        """The index of the largest scores[i] * scale + noise_i.

        With whole `weights` (gumbel only), candidate i stands for weights[i] equal ones: P(i) is proportional to
        weights[i] * exp(scale * scores[i]), and a weight of 0 never wins.
        """
        values = _scores(scores, scale)
        if weights is None:
            return race.select(values, scale, noise, self._bits)
        if noise != "gumbel":
            raise refuse("noise", noise, "'gumbel' where candidates have weights")
        return race.select(values, scale, noise, self._bits, _weights(weights, values.size))

    def top(self, scores: Any, count: int, *, scale: Fraction = Fraction(1)) -> list[int]:
        """The indices of the `count` largest scores[i] * scale + Gumbel noise, the largest first: the winners of
        `count` selections one after the other, each among those that are left."""
        values = _scores(scores, scale)
        return race.top(values, whole(count, "count", most=values.size), scale, self._bits)

    def sup_norm(self, scale: float, count: int) -> Integers:
        """A vector of whole numbers k, P(k) proportional to exp(-max |k_i| / scale)."""
        return vectors.sup_norm(scale, whole(count, "count", most=vectors.MOST), self._bits)

    def euclidean(self, scale: float, count: int) -> Integers:
        """A vector with density proportional to exp(-|x|_2 / scale), rounded to whole numbers. (For an even count it
        is the first part of such a vector that is longer by one.)"""
        return vectors.euclidean(scale, whole(count, "count", most=vectors.MOST), self._bits)

    def settle(self, decide: Decide[T]) -> T:
        """What `decide` makes of one uniform number, exactly: it sees as many of its bits as it asks for."""
        return settle(decide, self._bits)


def _scores(scores: Any, scale: Fraction) -> NDArray[np.float64]:
    if not isinstance(scale, Fraction) or scale <= 0:
        raise refuse("scale", scale, "a Fraction above 0")
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise refuse("scores", "...", "a vector of at least one finite number")
    return values


def _weights(weights: Any, count: int) -> Integers:
    try:
        values = np.asarray(weights)
        fits = values.shape == (count,) and values.dtype.kind in "iu"
        fits = fits and bool((values >= 0).all() and (values <= race.HEAVIEST).all() and (values > 0).any())
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise refuse("weights", "...", "a whole number from 0 to 2^60 for each score, not all 0")
    return values.astype(np.int64)
