"""What the adviser measures, and what it said: public, stored with the release, and read back by whoever explains an
answer or finishes it. How it measures is another matter (adviser.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .limits import Limits
from .measures import ROWS, Measure
from .tails import Floats, Tail

if TYPE_CHECKING:
    from .plan import Sql

ADVICE = Fraction(3, 20)
"""The adviser's share of the budget."""
UNEVEN = 1.5
"""How unevenly groups lose, in standard deviations of a group's part, as a share of the mean: of the order of the mean,
as a group of light units loses nothing, and one of heavy units several times as much (bench/coverage.py)."""
MOST_ROWS = 2**24
"""Noise of limits is no wider, whatever the profiles say: wider noise may be too wide to be drawn."""
SOME = 0.3
"""Of values cut from units: up to all of them may be brought by others, too."""
COUNTED = "rows that are counted"
"""Names what is cut from the rows that quantiles and histograms count."""


@dataclass(frozen=True)
class Layout:
    """What the adviser measures for a query: public.

    votes     are numbers of units limited by the groups that a unit is in?
    measures  the sums whose lengths are measured: all that a unit may cut short
    rows      is there a histogram of row counts, for quantiles and histograms, beside them?
    masses    is it measured what units hold in all groups together?
    distinct  the questions about different values
    """

    votes: bool
    measures: tuple[Measure, ...]
    rows: bool
    masses: bool
    distinct: tuple[str, ...]

    @classmethod
    def of(cls, plan: Sql) -> Layout:
        questions, front = plan.questions, plan.front
        if not front.units or front.reading.single:
            sums = () if not front.units else tuple(each for each in questions.measures if each.row is not None)
            return cls(False, sums, False, False, ())
        counted = bool(questions.ranked or questions.binned)
        keys = bool(front.keys)
        masses = keys and bool(questions.measures or counted)
        return cls(questions.votes and keys, questions.measures, counted, masses, tuple(questions.distinct))

    @property
    def sized(self) -> tuple[Measure, ...]:
        """The measures whose lengths have a histogram; row counts come once."""
        counts = any(each.row is None for each in self.measures)
        return self.measures if counts or not self.rows else (*self.measures, ROWS)

    @property
    def histograms(self) -> int:
        return self.votes + len(self.sized) + self.masses + len(self.distinct)

    @property
    def totals(self) -> int:
        return self.votes + len(self.measures) + self.rows + len(self.distinct)

    def shares(self, advice: Fraction) -> tuple[Fraction, Fraction]:
        """Of the budget: of each histogram, and of each total that is cut."""
        return advice / 2 / max(self.histograms, 1), advice / 2 / max(self.totals, 1)


@dataclass(frozen=True)
class Cut:
    """What limits took from a number, over all groups: `loss` is an estimate, `doubt` its standard deviation. Of a sum
    in which rows may cancel, `loss` is of sizes, and `signed` what was measured, with noise of deviation `noise`."""

    loss: float
    doubt: float
    signed: float
    noise: float

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Cut:
        return cls(*(float(raw[name]) for name in ("loss", "doubt", "signed", "noise")))

    def stored(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Advice:
    """What the adviser chose and measured: limits, reaches by measure, and what these cut from each number.

    unweighted  were numbers of single rows held at their reaches, one by one? Earlier versions weighted them together
    """

    limits: Limits
    reaches: Mapping[str, Fraction]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    unweighted: bool = False

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Advice:
        """As it was stored with the release; earlier versions did not measure what was cut number by number."""
        keys, most, values = (int(raw[name]) for name in ("keys", "most_keys", "values"))
        reaches = {name: Fraction(each) for name, each in raw["reaches"].items()}
        limits = Limits(rows=Fraction(raw["rows"]), keys=keys, most_keys=most, values=values)
        cuts = {name: Cut.read(each) for name, each in raw.get("cuts", {}).items()}
        return cls(limits, reaches, cuts, bool(raw.get("unweighted", False)))

    def stored(self) -> dict[str, Any]:
        """As plain values."""
        limits = self.limits
        return {
            "rows": str(limits.rows),
            "keys": limits.keys,
            "most_keys": limits.most_keys,
            "values": limits.values,
            "reaches": {name: str(each) for name, each in self.reaches.items()},
            "cuts": {name: each.stored() for name, each in self.cuts.items()},
            **({"unweighted": True} if self.unweighted else {}),
        }


def short(value: float) -> Fraction:
    """A number of three digits, upwards."""
    digits = 2 - math.floor(math.log10(value))
    return Fraction(math.ceil(Fraction(value) * Fraction(10) ** digits)) / Fraction(10) ** digits


def tail_of(sizes: Floats, units: Floats, lengths: Floats) -> Tail:
    """Of units whose sizes are known, or said to be: one curve."""
    order = np.argsort(lengths)
    return Tail(lengths[order], sizes[order], units[order][None, :], np.zeros(1), len(order) - 1)
