"""Exact, secure, fast noise: what a running plan draws from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import refuse, whole
from ..laws import Integers, Law
from . import inversion, race, samplers
from .bits import Bits, SecureBits, SeededBits
from .inversion import forget

__all__ = ["Bits", "Noise", "SecureBits", "SeededBits", "forget"]

_ALL_DRAWS = 2**40


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

    def select(self, scores: Any, *, scale: Fraction = Fraction(1), noise: race.Kind = "gumbel") -> int:
        """The index of the largest scores[i] * scale + noise_i."""
        if not isinstance(scale, Fraction) or scale <= 0:
            raise refuse("scale", scale, "a Fraction above 0")
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
            raise refuse("scores", "...", "a vector of at least one finite number")
        return race.select(values, scale, noise, self._bits)
