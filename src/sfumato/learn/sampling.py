"""Who takes part in a step, and where they sit.

A batch has a fixed, public number of slots. Whoever is drawn takes a free slot, uniformly at random; the others hold a
placeholder. So one more unit moves nobody else: given who else was drawn and where they sit, it takes one of the free
slots, and that is all that differs between neighbours. (Packed one after the other, everybody behind it would move, and
with them the floating-point rounding of the whole batch.)

More units than slots. Let S be those drawn besides the unit in question. Where |S| is below the number of slots, the
step is exactly what the accountant prices; its probability is the same with and without the unit, and otherwise
anything may happen. So the step is the sampled Gaussian outside an event of probability at most P(Bin(most, rate) >=
slots), which is in its price as a failure (Approximate with epsilon 0; joint convexity, as for truncated batches in
Chua et al. 2024).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import checks, events
from ..accounting.amplify import binomial
from ..checks import Exact
from ..errors import ArgumentError, DataError
from ..noise import Noise
from ..questions import COARSE
from ..record import record

Slots = NDArray[np.int64]
FREE = -1  # in a slot: nobody
_MOST = 2**31


@dataclass(frozen=True, kw_only=True)
class Sampling(ABC):
    """How units are drawn for each step."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many units a batch has room for."""

    @property
    @abstractmethod
    def expected(self) -> Fraction:
        """How many are expected in a batch; public."""

    @abstractmethod
    def step(self, gaussian: events.Gaussian) -> events.Event:
        """What one step costs whose noise is that."""

    @abstractmethod
    def draw(self, units: int, noise: Noise) -> Slots:
        """The unit in each slot; FREE where there is none."""

    @abstractmethod
    def rehearsed(self, units: int) -> int:
        """How many units to rehearse with, where so many were made up."""

    @abstractmethod
    def in_words(self) -> str:
        """In words."""


@record("sampling-poisson/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Poisson(Sampling):
    """Every unit joins with probability `rate`, each for itself.

    population  how many units there are, as far as the public knows. The data may have a few more (`most`), no others
    room        the slots of a batch, for all that join
    """

    rate: Exact = field(metadata=COARSE)
    population: int = field(metadata=COARSE)
    room: int = field(metadata=COARSE)

    def __post_init__(self) -> None:
        rate = checks.positive(self.rate, "rate")
        if rate > 1:
            raise checks.refuse("rate", self.rate, "a probability above 0, at most 1")
        object.__setattr__(self, "rate", rate)
        checks.whole(self.population, "population", most=_MOST)
        checks.whole(self.room, "room", most=2 * _MOST)
        if self.failure >= Fraction(1, 1000):
            raise checks.refuse("room", self.room, "more slots: a batch would often be too large for them")

    @classmethod
    def of(cls, rate: Fraction, population: int, failure: Fraction) -> Poisson:
        """With as many slots as keep the chance that they are too few within `failure`."""
        low, high = 1, cls.most_of(population)
        while low < high:
            middle = (low + high) // 2
            if _overfull(rate, cls.most_of(population), middle) <= failure:
                high = middle
            else:
                low = middle + 1
        return cls(rate=rate, population=population, room=low)

    @staticmethod
    def most_of(population: int) -> int:
        """So many units the data may have: a few more than the public number says."""
        return population + population // 64 + 16

    @property
    def most(self) -> int:
        return self.most_of(self.population)

    @property
    def failure(self) -> Fraction:
        """P(Bin(most, rate) >= room), rounded up; nothing where there is room for all."""
        return _overfull(self.rate, self.most, self.room)

    @property
    def slots(self) -> int:
        return self.room

    @property
    def expected(self) -> Fraction:
        return self.rate * self.population

    def step(self, gaussian: events.Gaussian) -> events.Event:
        if self.rate == 1:
            return gaussian
        drawn = events.Poisson(gaussian, self.rate)
        if not self.failure:
            return drawn
        late = events.Approximate(epsilon=0, delta=self.failure, relation=gaussian.relation)
        return events.Sequence((drawn, late))

    def draw(self, units: int, noise: Noise) -> Slots:
        if units > self.most:
            raise DataError
        joined = np.flatnonzero(noise.coins(self.rate, units)) if self.rate < 1 else np.arange(units)
        if len(joined) > self.room:  # its chance is paid for
            joined = joined[noise.permutation(len(joined))[: self.room]]
        return seated(joined, self.room, noise)

    def rehearsed(self, units: int) -> int:
        return min(units, self.most)

    def in_words(self) -> str:
        return f"each unit joins a step with probability {float(self.rate):.6g}; {self.room} slots"


@record("sampling-fixed/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Fixed(Sampling):
    """Exactly `size` of `population` units, drawn uniformly without replacement. Neighbours replace a unit: how many
    there are is public."""

    size: int = field(metadata=COARSE)
    population: int = field(metadata=COARSE)

    def __post_init__(self) -> None:
        checks.whole(self.population, "population", most=_MOST)
        checks.whole(self.size, "size", most=self.population)

    @property
    def slots(self) -> int:
        return self.size

    @property
    def expected(self) -> Fraction:
        return Fraction(self.size)

    def step(self, gaussian: events.Gaussian) -> events.Event:
        if gaussian.relation != "replace":
            raise ArgumentError(
                "sampling of a fixed size is not allowed: it hides who was replaced, so give the data a "
                "Unit(change='replace'), or draw by rate."
            )
        return events.WithoutReplacement(gaussian, self.size, self.population)

    def draw(self, units: int, noise: Noise) -> Slots:
        if units != self.population:
            raise DataError
        return noise.permutation(units)[: self.size]

    def rehearsed(self, units: int) -> int:
        return self.population

    def in_words(self) -> str:
        return f"each step draws {self.size} of {self.population} units, without replacement"


def seated(joined: Slots, room: int, noise: Noise) -> Slots:
    """Each in a free slot of its own, uniformly at random."""
    slots = np.full(room, FREE, dtype=np.int64)
    slots[noise.permutation(room)[: len(joined)]] = joined
    return slots


def packed(slots: Slots, size: int) -> Slots:
    """Without free slots, but for the last micro-batch of that size. For float-grade noise, which promises nothing
    about rounding: it saves the work on placeholders."""
    joined = slots[slots != FREE]
    room = -(-len(joined) // size) * size if len(joined) else size
    return np.concatenate([joined, np.full(room - len(joined), FREE, dtype=np.int64)])


def _overfull(rate: Fraction, most: int, room: int) -> Fraction:
    if room >= most:
        return Fraction(0)  # the unit in question is one of them: besides it there are fewer than slots
    if float(rate) * (1 + 1e-15) >= 1:
        return Fraction(1)
    chance = float(binomial.at_least(room, most, float(rate) * (1 + 1e-15)))
    return Fraction(min(chance * (1 + 2 * binomial.SLACK), 1.0))
