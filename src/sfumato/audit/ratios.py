"""The likelihood ratio of two neighbours, where the plan says its law: the best number to cut events by.

Neyman and Pearson 1933: of all events that are as likely on the neighbour, {ratio >= t} is likeliest here. The law is
only asked where to cut; what is proven rests on counts, so a plan whose law is not what runs is caught all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..laws import Law
from ..mechanisms.additive import Additive
from ..mechanisms.selection import Selection, win_chances
from ..plan import Plan
from .counting import Floats
from .neighbours import Pair
from .outputs import OutputReading
from .views import Curves, View

_NAME = "likelihood ratio of the law"
_CANDIDATES = 128
_MESH, _REACH = 257, 12  # points on each curve, out to so many spreads
_LEAST = 1e-290


def of_law(plan: Plan[Any, Any], pair: Pair, reading: OutputReading) -> Iterator[View]:
    """The ratio of the plan's own law on this pair; none where the law is not known or the pair is not told apart."""
    if isinstance(plan, Additive):
        yield from _added(plan, pair, reading)
    elif isinstance(plan, Selection) and len(plan.query.names) <= _CANDIDATES and reading.places == ((),):
        one, other = (
            win_chances(plan._scores(data), float(plan.rate), plan.noise) for data in (pair.rows, pair.neighbour)
        )
        heights = np.log(np.maximum(one, _LEAST)) - np.log(np.maximum(other, _LEAST))
        if heights.size > 1 and np.ptp(heights) > 0:
            yield Curves(_NAME, (0,), (np.arange(heights.size, dtype=np.float64),), (heights,), lines=True)


def _added(plan: Additive, pair: Pair, reading: OutputReading) -> Iterator[View]:
    """Coordinates are independent: their log ratios add up."""
    one, other = ([int(x) for x in plan.query.steps(data, plan.exponent)] for data in pair)
    columns, at, heights = [], [], []
    for column, place in enumerate(reading.places):
        if len(place) != 1 or not isinstance(place[0], int) or one[place[0]] == other[place[0]]:
            continue
        here, there = one[place[0]], other[place[0]]
        k, ratio = _curve(plan.law, there - here)
        points = np.ldexp(k + float(here), plan.exponent)
        rising = np.concatenate([[True], np.diff(points) > 0])  # far from 0 some steps are one float
        if ratio.size > 1 and rising.sum() > 1:
            columns.append(column)
            at.append(points[rising])
            heights.append(ratio[rising])
    if columns:
        yield Curves(_NAME, tuple(columns), tuple(at), tuple(heights), lines=True)


def _curve(law: Law, shift: int) -> tuple[Floats, Floats]:
    """ln P(k)/P'(k) at places k from the first centre, the second centre being `shift` away."""
    reach = _REACH * max(float(law.spread), 1.0)
    low, high = min(0.0, float(shift)) - reach, max(0.0, float(shift)) + reach
    k = np.unique(np.rint(np.concatenate([np.linspace(low, high, _MESH), [0.0, float(shift)]])))
    here, there = law.pmf(k), law.pmf(k - shift)
    seen = (here > _LEAST) & (there > _LEAST)
    return k[seen], np.log(here[seen]) - np.log(there[seen])
