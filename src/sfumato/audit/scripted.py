"""Noise that follows a script, and draws that are decided only when somebody looks at them.

A script says which outcome each random choice has. Coins, whole numbers, orders and selections are tried completely. A
draw from an infinite law is not decided when it is drawn:

    compared with a public number   two outcomes, and the draw is known to lie on one side from then on
    compared with another draw      two outcomes, for every value of the one that was drawn first (the noisy threshold
                                    of a sparse vector): a vector of probabilities is carried along
    taken as a number               every value of a window, and "elsewhere" for the rest of the law

Nothing is drawn: the source of bits raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..errors import SfumatoError
from ..exact import Enclosure
from ..laws import Integers, Law
from ..noise import Noise
from ..noise.race import Kind
from ..noise.samplers import Chance
from ..noise.settle import Decide
from . import chances
from .chances import BITS, RELATIVE, Floats
from .drawn import Drawn, Variable

T = TypeVar("T")

_REST = Fraction(1, 2**70)  # of an infinite law, outside the window
_SHARED_SCALES = 45  # half the window of a draw that others are compared with: e^-45 is left out
_DEEPEST = 256  # bits of a uniform number
_CELLS = 64  # of its range, looked at first


class TooManyError(SfumatoError):
    """The outcomes are too many to be listed, or not of a kind that can be."""


class ElsewhereError(Exception):
    """A draw fell outside its window."""


class _NoBits:
    grade = "seeded"

    def words(self, count: int) -> NDArray[np.uint64]:
        raise TooManyError("this plan draws bits that are no outcome of a listed kind: use audit.check")


class Scripted(Noise):
    """Noise whose outcomes a script decides. `script` grows as choices come up; the last options come last."""

    def __init__(self, script: list[int], most: int) -> None:
        super().__init__(_NoBits())
        self._script, self._most = script, most
        self._place = 0
        self._chance = chances.certain()
        self._variables: list[Variable] = []
        self._shared: Variable | None = None
        self._weights: Floats = np.zeros(0)
        self._values: Floats = np.zeros(0)
        self._factors = 0
        self._outside = Fraction(1)
        self.options: list[int] = []

    # ---- the script

    def _take(self, options: int) -> int:
        """Which of so many options this script takes here."""
        if self._place == len(self._script):
            self._script.append(0)
        choice = self._script[self._place]
        self._place += 1
        self.options.append(options)
        return choice

    def choose(self, odds: Sequence[Enclosure]) -> int:
        """One of several outcomes with these probabilities; impossible ones are never taken."""
        possible = [i for i, each in enumerate(odds) if each.hi > 0]
        choice = possible[self._take(len(possible))]
        self._chance = self._chance * odds[choice]
        return choice

    def _uniform(self, below: int) -> int:
        if below > self._most:
            raise TooManyError(f"one draw alone has {below} outcomes")
        choice = self._take(below)
        self._chance = self._chance.times(Fraction(1, below))
        return choice

    @property
    def chance(self) -> Enclosure:
        """The probability of everything that happened on this path."""
        total = self._chance
        for variable in self._variables:
            if variable.low is not None or variable.high is not None:
                total = total * variable.mass()
        if self._shared is not None:
            relative = (self._factors + 2) * RELATIVE + self._weights.size * 2.0**-52
            inside = chances.from_float(float(self._weights.sum()), relative)
            # What lies outside the shared window belongs to some path, at most all of it to this one.
            outside = self._shared.law.enclose_tail(int(self._values[-1]) + 1, BITS)
            total = total * Enclosure(inside.lo, inside.hi + outside.hi, BITS)
        return total

    @property
    def elsewhere(self) -> Fraction:
        """At most the probability of a path that left its windows."""
        return chances.ends(self._chance)[1] * self._outside

    # ---- finite choices

    def coins(self, chance: Chance | Fraction, count: int) -> NDArray[np.bool_]:
        heads = exact.enclose(chance, BITS) if isinstance(chance, Fraction) else chance(BITS)
        both = [heads, chances.certain() - heads]
        return np.array([self.choose(both) == 0 for _ in range(count)], dtype=np.bool_)

    def integers(self, below: int, count: int) -> Integers:
        return np.array([self._uniform(below) for _ in range(count)], dtype=np.int64)

    def permutation(self, count: int) -> Integers:
        left = list(range(count))
        return np.array([left.pop(self._uniform(len(left))) for _ in range(count)], dtype=np.int64)

    def select(self, scores: Any, *, scale: Fraction = Fraction(1), noise: Kind = "gumbel", weights: Any = None) -> int:
        exactly = tuple(float(score) for score in scores)
        whole = None if weights is None else tuple(int(weight) for weight in weights)
        return self.choose(_winners(exactly, scale, noise, whole))

    def top(self, scores: Any, count: int, *, scale: Fraction = Fraction(1)) -> list[int]:
        left, order = list(range(len(scores))), list[int]()
        for _ in range(count):
            won = self.select([scores[i] for i in left], scale=scale)
            order.append(left.pop(won))
        return order

    def settle(self, decide: Decide[T]) -> T:
        looked = {repr(decide((k << 58) + (1 << 57), 64)) for k in range(_CELLS)}
        if 4 * len(looked) > _CELLS:
            raise TooManyError("a decision from a uniform number has too many outcomes")
        n = precision = 0
        while precision < _DEEPEST:
            n, precision = 2 * n + self._uniform(2), precision + 1
            decision = decide(n, precision)
            if decision is not None:
                return decision
        raise ElsewhereError

    def sup_norm(self, scale: float, count: int) -> Integers:
        raise TooManyError("noise on a whole vector has no list of outcomes")

    def euclidean(self, scale: float, count: int) -> Integers:
        raise TooManyError("noise on a whole vector has no list of outcomes")

    # ---- draws from infinite laws

    def draw(self, law: Law, count: int) -> Integers:
        drawn = np.empty(count, dtype=object)
        for place in range(count):
            variable = Variable(law, 0 if law.one_sided else None)
            self._variables.append(variable)
            drawn[place] = Drawn(self, variable)
        return drawn

    def add(self, law: Law, sums: Integers) -> None:
        sums += self.draw(law, sums.size).astype(np.int64)

    def value(self, variable: Variable) -> int:
        """Decide a draw: every value of the window, or elsewhere."""
        if variable.low is not None and variable.low == variable.high:
            return variable.low
        if variable.joined or variable is self._shared:
            raise TooManyError("a draw is compared with another draw and then shown")
        reach = _reach(variable.law)
        low = max(-reach, -reach if variable.low is None else variable.low)
        high = min(reach, reach if variable.high is None else variable.high)
        count = max(high - low + 1, 0)
        if count > self._most:
            raise TooManyError(f"one draw alone has {count} values that matter")
        choice = self._take(count + 1)
        if choice == count:
            self._outside = _REST
            raise ElsewhereError
        variable.low = variable.high = low + choice
        return variable.low

    def at_least(self, drawn: Drawn, limit: Any) -> bool:
        """Is the drawn number at or above the limit, a number or another drawn one?"""
        if isinstance(limit, Drawn):
            return self._compared(drawn, limit)
        needed = limit - drawn.offset if isinstance(limit, int) else math.ceil(limit) - drawn.offset
        if drawn.sign > 0:
            return self._split(drawn.variable, needed)
        return not self._split(drawn.variable, 1 - needed)  # -x >= n is x <= -n, which is not x >= 1 - n

    def _split(self, variable: Variable, limit: int) -> bool:
        """x >= limit, both ways where both are possible."""
        if variable is self._shared:
            return self._halved(self._values >= limit)
        if variable.low is not None and variable.low >= limit:
            return True
        if variable.high is not None and variable.high < limit:
            return False
        if variable.joined:
            raise TooManyError("a draw is compared with another draw and with a number")
        above = self._take(2) == 0
        if above:
            variable.low = limit
        else:
            variable.high = limit - 1
        return above

    def _compared(self, one: Drawn, other: Drawn) -> bool:
        """one >= other, for two draws: the earlier of them is shared."""
        pair = (one, other)
        if any(x.variable.low is not None and x.variable.low == x.variable.high for x in pair):
            place = 0 if one.variable.low == one.variable.high and one.variable.low is not None else 1
            return self.at_least(one, int(other)) if place else self.at_least(-other, -int(one))
        if self._shared is None:
            first = min(pair, key=lambda x: next(i for i, v in enumerate(self._variables) if v is x.variable))
            self._share(first.variable)
        mine = one if other.variable is self._shared else other
        theirs = other if mine is one else one
        fresh = mine.variable
        if theirs.variable is not self._shared or fresh.joined or (fresh.low, fresh.high) != (None, None):
            raise TooManyError("three draws are compared with each other")
        if not chances.in_floats(fresh.law) or fresh.law.one_sided:
            raise TooManyError("draws are compared whose law has no relative error in float64")
        fresh.joined = True
        # sign * x + offset >= the other, or the other >= that, for every value of the shared draw; laws are symmetric.
        sign = 1 if mine is one else -1
        above = self._take(2) == 0
        offset = sign * (theirs.offset - mine.offset)
        factor = _beyond(fresh.law, (self._values.size - 1) // 2, sign * theirs.sign, offset, above)
        self._factors += 1
        self._weights = self._weights * factor
        return above

    def _share(self, variable: Variable) -> None:
        if not chances.in_floats(variable.law) or (variable.low, variable.high) != (None, None):
            raise TooManyError("draws are compared whose law has no relative error in float64")
        reach = math.ceil(_SHARED_SCALES * variable.law.spread)
        if reach > 1 << 19:
            raise TooManyError("a draw that others are compared with is spread over too many values")
        self._shared = variable
        self._values = np.arange(-reach, reach + 1, dtype=np.float64)
        self._weights = _probabilities(variable.law, reach)

    def _halved(self, above: NDArray[np.bool_]) -> bool:
        chosen = self._take(2) == 0
        self._weights = np.where(above == chosen, self._weights, 0.0)
        return chosen


@lru_cache(maxsize=256)
def _winners(
    scores: tuple[float, ...], scale: Fraction, kind: Kind, weights: tuple[int, ...] | None
) -> list[Enclosure]:
    return chances.winners([Fraction(score) for score in scores], scale, kind, weights)


@lru_cache(maxsize=64)
def _reach(law: Law) -> int:
    return chances.window(law, _REST)


@lru_cache(maxsize=8)
def _probabilities(law: Law, reach: int) -> Floats:
    return law.pmf(np.arange(-reach, reach + 1, dtype=np.float64))


@lru_cache(maxsize=48)
def _beyond(law: Law, reach: int, sign: int, offset: int, above: bool) -> Floats:
    """P(X >= sign * z + offset), or the rest, for every z of the window."""
    limit = sign * np.arange(-reach, reach + 1, dtype=np.float64) + (offset - 1)
    return law.sf(limit) if above else law.cdf(limit)
