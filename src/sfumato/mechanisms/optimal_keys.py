"""Optimal selection of unknown keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, events, exact
from ..exact import Enclosure
from ..laws import Integers
from ..plan import Run
from ..record import record
from ..rows import Rows
from ..units import Unit
from .keys import Keys, Label, Selected, tally

_WORD = 62  # bits of a first draw
_CLOSE = 2.0**-36  # nearer than that to the chance, the draw is settled in integers; floats are good to 2^-41 here
_BITS = 1024


@record("plan-optimal-keys/1")
@dataclass(frozen=True, kw_only=True)
class OptimalKeys(Keys):
    """Keep a key that n units hold with the largest probability pi(n) that privacy allows; no counts leave.

    Guarantee: (epsilon, delta)-DP: each of the keys that one change of the unit reaches (per_unit, twice that under
        replace) is selected with (epsilon, delta) divided by their number.
    Needs: a key column; a group of 1. Units with more than per_unit keys lose some, at random.
    Paper: Desfontaines, Voss, Gipson, Mandayam 2022 (Differentially private partition selection), Theorem 2.

    Proof sketch: a key is kept by a coin of its own. With e, d the shares of one key, the coins of n and n + 1 units
    are (e, d)-indistinguishable if and only if pi(n+1) <= e^e pi(n) + d and 1 - pi(n) <= e^e (1 - pi(n+1)) + d, as
    pi rises. pi(0) = 0, since a key that nobody holds is not known, and from there pi takes the largest step that both
    allow, up to 1. The first one binds while pi(n) <= (1 - d)/(e^e + 1), the second from then on. Coins are
    independent and one change moves so many counts by 1: that many (e, d) mechanisms. No probability is rounded.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_groups()
        if self.share[0] < checks.EPSILON_RANGE[0] or self.share[1] < checks.DELTA_LEAST:
            raise checks.refuse("per_unit", self.per_unit, "fewer keys per unit: their shares of epsilon are too small")

    @property
    def touched(self) -> int:
        """How many keys one change of the unit reaches."""
        return self.sides * self.per_unit

    @property
    def share(self) -> tuple[Fraction, Fraction]:
        """The epsilon and delta of one key."""
        return self.epsilon / self.touched, self.delta / self.touched

    @property
    def event(self) -> events.Event:
        epsilon, delta = self.share
        one = events.Approximate(epsilon=epsilon, delta=delta, relation=self.unit.change)
        return events.Bundle((events.Repeat(one, self.touched),)) if self.touched > 1 else one

    @cached_property
    def _turn(self) -> int:
        """Up to so many units the first inequality binds: 1 + the largest n with pi(n) <= (1 - d)/(e^e + 1)."""
        epsilon, delta = self.share
        share = (1 - float(delta)) * math.tanh(float(epsilon) / 2)
        n = int(math.log1p(share / float(delta)) / float(epsilon))
        while self._first_binds(n + 1):
            n += 1
        while n and not self._first_binds(n):
            n -= 1
        return n + 1

    def _first_binds(self, n: int) -> bool:
        """d (1 - q^n) <= (1 - d) q^n (1 - q)/(1 + q) with q = e^-e, which is pi(n) <= (1 - d)/(e^e + 1). (Where no
        number of bits can tell, both inequalities give the same.)"""
        epsilon, delta = self.share
        one, q, power = exact.enclose(1, _BITS), exact.exp_neg(epsilon, _BITS), exact.exp_neg(n * epsilon, _BITS)
        reached = (one - power).times(delta)
        allowed = (power * (one - q) / (one + q)).times(1 - delta)
        return reached.lo <= allowed.hi

    def chance(self, n: int, bits: int) -> Enclosure:
        """pi(n), to any number of bits.

        With q = e^-e: d (1 - q^n)/((1 - q) q^(n-1)) up to the turn, and m units beyond it
        1 - pi = q^m (1 - pi(turn)) - d q (1 - q^m)/(1 - q), or 0.
        """
        if n < 1:
            return Enclosure(0, 0, bits)
        epsilon, delta = self.share
        work = bits + 4 * math.ceil(1 / delta).bit_length() + 2 * math.ceil(1 / epsilon).bit_length() + 64
        one, q = exact.enclose(1, work), exact.exp_neg(epsilon, work)
        first = min(n, self._turn)
        chance = (one - exact.exp_neg(first * epsilon, work)).times(delta) / (
            (one - q) * exact.exp_neg((first - 1) * epsilon, work)
        )
        if n > first:
            power = exact.exp_neg((n - first) * epsilon, work)
            lost = power * (one - chance) - (q * (one - power) / (one - q)).times(delta)
            chance = one - Enclosure(max(lost.lo, 0), max(lost.hi, 0), work)
        return Enclosure(max(chance.lo, 0), min(chance.hi, 1 << work), work).to(bits)

    def chances(self, n: Any) -> NDArray[np.float64]:
        """pi(n) for whole n, in float64."""
        epsilon, delta = map(float, self.share)
        n = np.asarray(n, dtype=np.float64)
        first = np.minimum(n, self._turn)
        chance = delta * np.exp((first - 1) * epsilon) * np.expm1(-first * epsilon) / math.expm1(-epsilon)
        beyond = n - first
        gone = math.exp(-epsilon) * np.expm1(-beyond * epsilon) / math.expm1(-epsilon)
        lost = np.exp(-beyond * epsilon) * (1 - chance) - delta * gone
        return np.asarray(np.where(beyond > 0, 1 - np.maximum(lost, 0.0), chance))

    def _run(self, rows: Rows, run: Run) -> Selected:
        codes, counts = tally(self._held(rows, run)[1])
        return self._named(rows, codes[self._kept(counts, run)])

    def finish(self, raw: Selected) -> list[Label]:
        return list(raw)

    def _kept(self, counts: Integers, run: Run) -> NDArray[np.bool_]:
        """Coins, heads with exactly pi(count): U < pi, with as many bits of U as it takes."""
        words = run.noise.integers(1 << _WORD, counts.size)
        ahead = self.chances(counts) - np.ldexp(words.astype(np.float64), -_WORD)
        present = ahead > 0
        for place in np.flatnonzero(np.abs(ahead) < _CLOSE):
            present[place] = self._settled(int(counts[place]), int(words[place]), run)
        return present

    def _settled(self, n: int, word: int, run: Run) -> bool:
        bits = _WORD
        while True:
            chance = self.chance(n, bits)
            if word + 1 <= chance.lo:
                return True
            if word >= chance.hi:
                return False
            word, bits = (word << _WORD) | int(run.noise.integers(1 << _WORD, 1)[0]), bits + _WORD

    @property
    def sure(self) -> int:
        """A key of so many units is always kept."""
        low, high = 0, 1
        while self.chances(high) < 1:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chances(middle) >= 1 else (middle, high)
        return high

    def explain(self) -> list[str]:
        epsilon, delta = map(float, self.share)
        return [
            f"count the units of each key of {self.column}; a unit has at most {self.per_unit} key(s), drawn at random",
            f"keep a key by a coin that depends on its count alone: {delta:.3g} for one unit, 1 from {self.sure} on; "
            f"each key has epsilon = {epsilon:.4g} and delta = {delta:.3g}",
            "name the kept keys in sorted order, nothing else",
        ]

    @classmethod
    def sample(cls) -> OptimalKeys:
        return cls(column="query", protects=Unit("user:id"), epsilon=1, delta=0.02, per_unit=2)
