"""How far neighbours move the numbers of a query before its noise, beside the noise that is really drawn.

Claim. The numbers of an answer have independent noise of known laws, so what a pair of tables loses is known: with d
the moves and s the scales, a Gaussian mechanism of sum (d/s)^2, or a loss of sum |d|/s under Laplace noise. It is told
as a share of what the event is sold at: above 1 the price is wrong, whatever a sample may show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import events
from ..accounting import approximate
from ..noise import SeededBits
from ..plan import Run
from . import surface
from .silent import Silent

SLACK = 1 + 1e-9  # numbers before the noise are read as floats


class Overheard:
    """A connection whose results are kept."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.dialect = inner, inner.dialect
        self.results: list[Any] = []

    @property
    def engine(self) -> Any:
        """Of the planted bugs, which ask it past the door."""
        return surface.engine_of(self._inner)

    def run(self, tree: Any) -> Any:
        table = self._inner.run(tree)
        self.results.append(table)
        return table


def without_noise(plan: Any, connection: Any) -> dict[str, Any]:
    """What a release would be without its noise, with the leaves that quantiles are read from."""
    overheard = Overheard(connection)
    released = dict(plan._run(overheard, Run(Silent(SeededBits(0)))))
    leaves = [each for each in overheard.results if "leaf" in each.column_names]
    return {**released, "leaves": [_by_place(each) for each in leaves]}


def _by_place(table: Any) -> dict[tuple[Any, ...], int]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {row[:-1]: int(row[-1]) for row in rows}


def beside_noise(plan: Any, one: Mapping[str, Any], other: Mapping[str, Any], design: Any = None) -> float:
    """The same in units of the noise that is really drawn, for all numbers together, beside what the event is sold at:
    shares of the budget that add up to more than the whole show here. Whatever a change of the plan's unit is: groups
    and replaced units have no other measure.

    design  of another plan for the same questions under the same limits, in the place of the plan's own
    """
    design, noise = design or plan.fixed, _noise(plan.event)
    named = [("numbers", each) for each in (*design.sums, *([design.votes.coordinate] if design.votes else []))]
    named += [("distinct", design.distinct(name)) for name in design.questions.distinct]
    parts = []
    for part, coordinate in named:
        law = design.law(coordinate)
        width = math.ldexp(law.spread, coordinate.exponent - coordinate.bits)
        sizes = [abs(gap) / width for gap in apart(one, other, part, coordinate.measure.name)]
        parts += [size**2 for size in sizes] if isinstance(noise, events.Gaussian) else sizes
    for name, here, there in zip(
        (*design.questions.ranked, *design.questions.binned), one["leaves"], other["leaves"], strict=True
    ):
        width = design.law(design.counted(name)).spread
        sizes = [abs(gap) / width for gap in _at_all_levels(design, name, here, there)]
        parts += [size**2 for size in sizes] if isinstance(noise, events.Gaussian) else sizes
    if isinstance(noise, events.Gaussian):
        return math.sqrt(math.fsum(parts)) * float(noise.multiplier)
    return math.fsum(parts) / float(noise.epsilon)


def _noise(event: events.Event) -> Any:
    return event.events[0] if isinstance(event, events.Sequence) else event


def epsilon(plan: Any, share: float) -> float:
    """What a query is worth of which neighbours use this share."""
    noise = _noise(plan.event)
    if share <= 0:
        return 0.0
    if not isinstance(noise, events.Gaussian):
        return share * float(noise.epsilon)
    return float(approximate.epsilon(replace(noise, multiplier=noise.multiplier / Fraction(share)), plan.delta))


def _at_all_levels(design: Any, name: str, here: Mapping[Any, int], there: Mapping[Any, int]) -> Iterator[int]:
    """How far the nodes of a tree move, at each of its levels, in steps; of a histogram, how far its bins do."""
    ranked = design.questions.ranked
    for stride in ranked[name].leaves.strides if name in ranked else (1,):
        gaps: Counter[Any] = Counter()
        for place in here.keys() | there.keys():
            gaps[*place[:-1], int(place[-1]) // stride] += here.get(place, 0) - there.get(place, 0)
        yield from gaps.values()


def apart(one: Mapping[str, Any], other: Mapping[str, Any], part: str, name: str) -> list[float]:
    here, there = _by_group(one, part, name), _by_group(other, part, name)
    return [here.get(group, 0.0) - there.get(group, 0.0) for group in here.keys() | there.keys()]


def _by_group(raw: Mapping[str, Any], part: str, name: str) -> dict[tuple[str, ...], float]:
    groups = zip(*([repr(each) for each in column] for column in raw["keys"].values()), strict=True)
    listed = list(groups) if raw["keys"] else [()] * int(raw["groups"])
    return dict(zip(listed, raw[part][name], strict=True))
