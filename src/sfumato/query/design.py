"""Every number that a query measures: how far a unit may move it, its share of the budget, its noise. All public."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from .. import exact
from ..errors import ArgumentError
from ..laws import Law
from ..mechanisms.keys import blocks, least_threshold
from .aggregates import VOTES, Aggregate, Binned, DistinctValues, Ranked, Statistic
from .blur import Blur
from .bounding import ROOM, Votes
from .kinds import Typed
from .leaves import Leaves
from .limits import Limits
from .measures import Coordinate, Measure, weight_bits
from .released.mixtures import Spreads

_UNITS = Measure(VOTES, None, Fraction(0), Fraction(1), True, "units")


@dataclass(frozen=True)
class Tree:
    """All quantiles of one column: they are read from the same noisy counts."""

    x: Typed
    leaves: Leaves
    chances: tuple[float, ...]


@dataclass(frozen=True)
class Questions:
    """What must be measured, whatever the limits: each has a name, and gets a share of the budget."""

    measures: tuple[Measure, ...]
    votes: bool
    distinct: Mapping[str, DistinctValues]
    ranked: Mapping[str, Tree]
    binned: Mapping[str, Binned]

    @classmethod
    def of(cls, aggregates: Mapping[str, Aggregate], *, selects: bool) -> Questions:
        measures: dict[str, Measure] = {}
        votes = selects
        for each in aggregates.values():
            if isinstance(each, Statistic):
                measures |= {measure.name: measure for measure in each.measures}
                votes = votes or each.counts_units
        distinct = {text: each for text, each in aggregates.items() if isinstance(each, DistinctValues)}
        binned = {text: each for text, each in aggregates.items() if isinstance(each, Binned)}
        ranked: dict[str, Tree] = {}
        for each in aggregates.values():
            if isinstance(each, Ranked):
                before = ranked[each.tree].chances if each.tree in ranked else ()
                ranked[each.tree] = Tree(each.x, each.leaves, tuple(dict.fromkeys((*before, *each.chances))))
        return cls(tuple(measures.values()), votes, distinct, ranked, binned)

    def __iter__(self) -> Iterator[str]:
        yield from (measure.name for measure in self.measures)
        yield from [VOTES] if self.votes else []
        yield from (*self.distinct, *self.ranked, *self.binned)


@dataclass(frozen=True)
class Design:
    """The questions with their noise.

    reaches  how far a unit may move each measured sum
    shares   of the budget by name of the question; they add up to at most 1 (the adviser has the rest)
    selects  are groups chosen by the number of their units?
    weights  may a unit have several rows, so that it is weighted?
    """

    questions: Questions
    blur: Blur
    limits: Limits
    reaches: Mapping[str, Fraction]
    shares: Mapping[str, Fraction]
    selects: bool
    weights: bool = True

    def statement(self, name: str, make: Callable[[], exp.Query]) -> exp.Query:
        """What the engine is asked under this name: made once."""
        if name not in self._statements:
            self._statements[name] = make()
        return self._statements[name]

    @cached_property
    def _statements(self) -> dict[str, exp.Query]:
        return {}

    def __post_init__(self) -> None:
        _ = self.bits
        if self.selects:
            _ = self.threshold

    @property
    def keys_reach(self) -> Fraction:
        """How far a unit may move the numbers of units of all groups together."""
        keys = self.limits.keys
        return Fraction(keys) if self.blur.kind == "laplace" else Fraction(exact.sqrt_above(Fraction(keys)))

    def _scale(self, name: str, reach: Fraction, levels: int = 1) -> Fraction:
        return self.blur.scale(reach, self.shares[name] / levels)

    @cached_property
    def bits(self) -> int:
        """Of all weights."""
        scales = [(each, self._scale(each.name, self._reach(each))) for each in self.questions.measures]
        if self.questions.votes:
            scales.append((_UNITS, self._scale(VOTES, self.keys_reach)))
        for name, each in self.questions.ranked.items():
            scales.append((_UNITS, self._scale(name, self.rows_reach, len(each.leaves.fanout))))
        scales += [(_UNITS, self._scale(name, self.rows_reach)) for name in self.questions.binned]
        for name in self.questions.distinct:
            scales.append((_UNITS, self._scale(name, Fraction(self.limits.values))))
        return weight_bits(scales)

    @property
    def rows_reach(self) -> Fraction:
        return self.limits.rows * (ROOM if self.weights else Fraction(1))

    def _reach(self, measure: Measure) -> Fraction:
        return self.reaches[measure.name] * (ROOM if self.weights else Fraction(1))

    @cached_property
    def sums(self) -> tuple[Coordinate, ...]:
        """Measured together: a unit has one weight for all of them."""
        return tuple(self._coordinate(each, self._reach(each)) for each in self.questions.measures)

    @cached_property
    def votes(self) -> Votes | None:
        if not self.questions.votes:
            return None
        return Votes(self._coordinate(_UNITS, self.keys_reach), self.limits.most_keys if self.selects else None)

    def _coordinate(self, measure: Measure, reach: Fraction) -> Coordinate:
        scale = self._scale(measure.name, reach)
        return Coordinate(measure, reach, self.shares[measure.name], scale, self.bits)

    def counted(self, name: str) -> Coordinate:
        """Rows that fall into leaves or bins: a unit's weight comes from its row counts alone."""
        levels = len(self.questions.ranked[name].leaves.fanout) if name in self.questions.ranked else 1
        rows = Measure(name, None, Fraction(0), Fraction(1), True, "rows")
        return Coordinate(
            rows, self.rows_reach, self.shares[name], self._scale(name, self.rows_reach, levels), self.bits
        )

    def distinct(self, name: str) -> Coordinate:
        """A unit brings so many values at most, in all groups together."""
        values = Fraction(self.limits.values)
        measure = Measure(name, None, Fraction(0), Fraction(1), True, "values")
        return Coordinate(measure, values, self.shares[name], self._scale(name, values), self.bits)

    def law(self, coordinate: Coordinate) -> Law:
        return self.blur.law(coordinate.steps)

    @cached_property
    def threshold(self) -> int:
        """What the noisy number of units of a group must reach, in steps.

        A group of one neighbour alone has no other units. Where one unit was added with t <= most_keys groups, each has
        the height weight(t), and all t stay below together but for probability key_delta; with t > most_keys its
        weight is 0, and a group in which all weights are 0 is never shown. In a change of g units a new group of c of
        them is at most c full weights high, and there are at most g most_keys / c of those (see ThresholdKeys).
        """
        assert self.votes is not None and self.votes.most_keys is not None
        most, group = self.votes.most_keys, self.blur.unit.group
        if group == 1:
            runs = blocks(most, 16)
            cases = tuple((self.votes.weight(first, self.blur), last) for first, last in runs)
        else:
            full = 1 << self.bits
            cases = tuple((last * full, -(-group * most // first)) for first, last in reversed(list(blocks(group, 16))))
        return least_threshold(self.law(self.votes.coordinate), self.blur.key_delta, cases)

    @cached_property
    def spreads(self) -> Spreads:
        """The law of each measured number, and the size of its step."""
        every = [*self.sums, *([self.votes.coordinate] if self.votes else [])]
        every += [self.distinct(name) for name in self.questions.distinct]
        every += [self.counted(name) for name in self.questions.binned]
        return {each.measure.name: (self.law(each), 2.0 ** (each.exponent - each.bits)) for each in every}


_CHOOSING = 2
"""The weight of the numbers of units where they also choose the groups: what is not shown is lost to all questions."""


def shares_of(
    questions: Questions, weights: Mapping[str, Fraction], rest: Fraction, *, selects: bool
) -> dict[str, Fraction]:
    """Shares in proportion to the weights (1 where there is none), which add up to `rest`."""
    names = list(questions)
    if unknown := sorted(set(weights) - set(names)):
        known = ", ".join(names)
        raise ArgumentError(f"shares names {unknown[0]!r}, and there is no such question: name one of {known}.")
    usual = {VOTES: Fraction(_CHOOSING)} if selects else {}
    sizes = {name: Fraction(weights.get(name, usual.get(name, 1))) for name in names}
    total = sum(sizes.values(), Fraction(0))
    return {name: size / total * rest for name, size in sizes.items()}
