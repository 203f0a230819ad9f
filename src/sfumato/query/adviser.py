"""The adviser: a small, visible part of the budget tells how much units hold, chooses the limits by it, and measures
what they take away.

Half of its share goes to histograms: in how many groups units are (where units are counted), how long their vectors
are, how many different values they bring. The other half measures, when the limits are chosen, what they cut from each
number (cuts.py). Where groups are chosen privately they are chosen first, so that rows of groups that are not shown
count in no length. Everything after the noise is post-processing. Each step is a Gaussian (or Laplace) mechanism whose
share is fixed beforehand, so all steps together are the one that is paid for (see blur.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noise import Noise
from . import cuts, running
from .advice import COUNTED, MOST_ROWS, UNEVEN, Advice, Cut, short
from .aggregates import VOTES
from .blur import Blur
from .limits import MOST_KEYS, Limits
from .measures import ROWS, Measure
from .profiles import BINS, Histogram, bar_of, groups_profile, profiles, values_profile
from .tails import Aim, Floats, Tail, best
from .unit_sums import UnitSums, keep_sums

if TYPE_CHECKING:
    from ..sources import Connection
    from .design import Design
    from .plan import Sql

_PUT_BACK = 0.05  # of the numbers of units that choose groups
_FARTHER = 8  # bins beyond the last clear one that a limit may stand in
_MOST_PAIRS = 2**16


def check(plan: Sql) -> None:
    """Refuse noise that cannot be drawn, before anything is paid for."""
    plan.blur.law(bar_of(plan.blur, plan.layout.shares(plan.advice)[0]).steps)
    running.check(plan.front, plan.design(plan.limits or Limits()))


def advised(plan: Sql, connection: Connection, noise: Noise) -> dict[str, Any]:
    """Measure how much units hold, choose limits, release, and measure what the limits cut."""
    front, layout = plan.front, plan.layout
    each_histogram, each_total = layout.shares(plan.advice)
    start, tails = plan.limits or Limits(most_keys=MOST_KEYS), dict[str, Tail | None]()
    design = plan.design(start)
    groups = running.Groups((), True) if front.selects else running.given(front, connection)
    pairs = keep_sums(plan, connection)
    if layout.votes:
        assert pairs is not None
        by_groups = groups_profile(plan.blur, connection, noise, pairs, each_histogram)
        tails[VOTES] = _groups_tail(plan, by_groups, math.inf if front.selects else len(groups.rows))
        if plan.advises:
            aims = _Aims(plan, design, each_total, len(groups.rows), None)
            start = _groups_limit(plan, aims, by_groups, tails[VOTES])
            design = plan.design(start)
    votes: list[float] | None = None
    if front.selects:
        groups, votes = running.chosen(front, design, connection, noise, pairs)
    aims = _Aims(plan, design, each_total, len(groups.rows), votes)
    lengths = _lengths(plan, connection, noise, pairs, groups, each_histogram)
    tails |= {name: tail for name, (_, tail) in lengths.items()}
    values = {
        name: values_profile(
            front, plan.blur, connection, noise, plan.questions.distinct[name].value, each_histogram, groups
        )
        for name in layout.distinct
    }
    tails |= {name: histogram.tail() for name, histogram in values.items()}
    limits, reaches = start, dict[str, Fraction]()
    if plan.advises:
        limits, reaches = _limits(plan, start, lengths, values, tails, aims)
    design = plan.design(limits, reaches)
    limits = design.limits
    measured = running.sums(front, design, connection, noise, groups, votes=votes is None, pairs=pairs)
    if votes is not None:
        measured["numbers"][VOTES] = votes
    if not layout.rows:
        tails.pop(COUNTED, None)
    lost = cuts.cuts(plan, design, connection, noise, groups, tails, each_total, pairs)
    more = running.rest(front, design, connection, noise, groups, _shift(lost, tails))
    advice = Advice(limits, reaches, lost, unweighted=front.reading.single)
    return {**running.stored(front, groups), **measured, **more, "limits": advice.stored()}


def _shift(known: Mapping[str, Cut], tails: Mapping[str, Tail | None]) -> float | None:
    """The share of rows that quantiles may miss in a group; None where that is not known."""
    tail, cut = tails.get(COUNTED), known.get(COUNTED)
    if tail is None or cut is None:
        return None if COUNTED in tails else 0.0
    return min((cut.loss + cut.doubt) / max(tail.total, 1e-300), 1.0)


@dataclass(frozen=True)
class _Aims:
    """What limits are chosen for, by question."""

    plan: Sql
    design: Design
    each_total: Fraction
    groups: int
    votes: list[float] | None

    def of(self, name: str, share: Fraction | None = None) -> Aim:
        """For limits that are lengths."""
        blur, part = self.plan.blur, self.design.shares[name] if share is None else share
        noise, second = _per_reach(blur, part).__mul__, _per_reach(blur, self.each_total).__mul__
        return Aim(noise, second, self.typical, UNEVEN if self.plan.front.keys else 0.0)

    @property
    def typical(self) -> float:
        """The share of a middling group."""
        if self.votes:
            return float(np.median(self.votes)) / max(sum(self.votes), 1e-9)
        return 1 / max(self.groups, 1)


def _per_reach(blur: Blur, share: Fraction) -> float:
    """Noise grows with the reach: that of a reach of 1."""
    return float(blur.scale(Fraction(1), share))


def _groups_tail(plan: Sql, histogram: Histogram, most: float) -> Tail | None:
    """A unit in t groups is sqrt(t) long where lengths are roots of squares, and adds t to all groups together."""
    sizes = histogram.middles
    return histogram.tail(np.sqrt(sizes) if plan.blur.kind == "gaussian" else sizes, sizes, most)


def _groups_limit(plan: Sql, aims: _Aims, histogram: Histogram, tail: Tail | None) -> Limits:
    """In how many groups a unit counts in full, and with how many it still has a say."""
    if tail is None:
        return Limits(most_keys=MOST_KEYS)
    places = range(min(tail.last + _FARTHER, BINS))
    numbers = sorted({min(round(histogram.longest(place)), _MOST_PAIRS) for place in places})
    root = plan.blur.kind == "gaussian"
    lengths = {math.sqrt(number) if root else float(number): number for number in numbers}
    if plan.front.selects:  # wide noise hides groups, so limits are as narrow as what they cut can still be put back
        most_cut = _PUT_BACK * tail.total
        sizes = ((length, tail.expected(length, aims.of(VOTES).noise(length), math.inf)[0]) for length in lengths)
        keys = lengths[next((length for length, cut in sizes if cut <= most_cut), max(lengths))]
    else:
        keys = lengths[best(tail, list(lengths), aims.of(VOTES))]
    most = next((n for n in numbers if tail.units_above(math.sqrt(n) if root else n) < 0.5), numbers[-1])
    return Limits(keys=keys, most_keys=max(most, keys))


def _lengths(
    plan: Sql,
    connection: Connection,
    noise: Noise,
    pairs: UnitSums | None,
    groups: running.Groups,
    share: Fraction,
) -> dict[str, tuple[Histogram, Tail | None]]:
    """Of every sum, by name: how long units are, and the curves through that."""
    layout = plan.layout
    if not layout.sized or pairs is None:
        return {}
    histograms = profiles(
        plan.front, plan.blur, connection, noise, pairs, layout.sized, share, groups, masses=layout.masses
    )
    more = _heavier(histograms[0], histograms[-1], len(groups.rows)) if layout.masses else np.ones(BINS)
    lengths = {
        measure.name: (histogram, histogram.tail(masses=histogram.middles * _like(histogram, histograms[0], more)))
        for measure, histogram in zip(layout.sized, histograms, strict=False)
    }
    if layout.rows:
        lengths[COUNTED] = lengths[ROWS.name]
        if all(each.name != ROWS.name for each in layout.measures):
            del lengths[ROWS.name]
    return lengths


def _like(histogram: Histogram, first: Histogram, quotients: Floats) -> Floats:
    """Quotients by the bin of another measure's lengths: of units as far from the last clear one."""
    one, two = histogram.tail(), first.tail()
    moved = 0 if one is None or two is None else two.last - one.last
    return np.asarray(quotients[np.clip(np.arange(BINS) + moved, 0, BINS - 1)])


def _heavier(lengths: Histogram, masses: Histogram, groups: int) -> Floats:
    """How many times its length a unit of each bin adds to all groups together. The longest are taken to be the
    heaviest; that quotient grows with the length as it does among units that the noise lets one see. In k groups it is
    at most the root of k."""
    one, two = lengths.tail(), masses.tail()
    if one is None or two is None:
        return np.ones(BINS)
    points = []
    for place in (max(one.last - 6, 0), max(one.last - 1, 0)):
        length = float(lengths.middles[place])
        units = max(one.units_above(length / 1.01), 1.0)
        points.append((length, two.size_above(units) / length))
    (short_one, low), (long_one, high) = points
    growth = math.log(high / low) / math.log(long_one / short_one) if long_one > short_one and low > 0 else 0.0
    quotient = high * (lengths.middles / long_one) ** min(max(growth, 0.0), 0.25)
    return np.asarray(np.clip(quotient, 1.0, math.sqrt(max(groups, 1))))


def _limits(
    plan: Sql,
    start: Limits,
    lengths: Mapping[str, tuple[Histogram, Tail | None]],
    values: Mapping[str, Histogram],
    tails: Mapping[str, Tail | None],
    aims: _Aims,
) -> tuple[Limits, dict[str, Fraction]]:
    """Where noise and what is not known of the cut are least together: for every sum by itself, so that none of them
    is starved by another."""
    measures = {each.name: each for each in plan.questions.measures}
    single = plan.front.reading.single  # each number is held by itself: the counts of such units are never cut
    chosen: dict[str, float] = {}
    for name, (histogram, tail) in lengths.items():
        if tail is not None:
            asked = [*plan.questions.ranked, *plan.questions.binned]
            share = min(aims.design.shares[each] for each in asked) if name == COUNTED else None
            measure = measures.get(name, ROWS)
            aim = aims.of(name, share)
            aim = replace(aim, free=float(measure.largest)) if single else aim
            chosen[name] = best(tail, _candidates(plan, measure, histogram, tail), aim)
    counted = [chosen[name] for name in chosen if measures.get(name, ROWS).row is None]
    sums = [
        chosen[name] / float(each.largest) for name, each in measures.items() if name in chosen and not each.generous
    ]
    rows = Fraction(1) if single else short(max(counted or sums or [1.0]))
    reaches = {name: short(chosen[name]) if name in chosen else rows * each.usual for name, each in measures.items()}
    brought = [
        best(tail, [histogram.longest(place) for place in range(min(tail.last + _FARTHER, BINS))], aim)
        for name, histogram in values.items()
        for tail in (tails[name],)
        for aim in (aims.of(name),)
        if tail is not None
    ]
    most = min(int(max(brought, default=1.0)), 2**18)
    return Limits(rows=rows, keys=start.keys, most_keys=start.most_keys, values=max(most, 1)), reaches


def _candidates(plan: Sql, measure: Measure, histogram: Histogram, tail: Tail) -> list[float]:
    """The longest that a unit of a bin can be, for the bins that a limit may stand in."""
    places = range(min(tail.last + _FARTHER, BINS))
    if measure.row is None:
        ends = [histogram.longest(k) for k in places]
    else:
        ends = [histogram.end(k) for k in places if histogram.end(k) >= float(measure.usual) / 64]
    if plan.front.reading.single:
        ends = [min(end, float(measure.largest)) for end in ends]
    name = measure.name if measure.name in plan.questions else next(iter(plan.questions))
    noise = _per_reach(plan.blur, plan.design(Limits()).shares[name]) / float(measure.largest)
    drawn = [end for end in ends if noise * end <= MOST_ROWS]
    return sorted({*drawn}) or [float(measure.usual)]
