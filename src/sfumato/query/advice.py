"""The adviser: a small, visible part of the budget tells how much units hold; that chooses the limits, and says
afterwards how much they took away.

Three thirds of its share: in how many groups units are (where units are counted), how long their vectors are, and the
totals over all groups under wide limits, beside which the sums of the answers show what the narrow ones cost. Where
groups are chosen privately they are chosen first, so that rows of groups that are not shown count in no length.
Everything after the noise is post-processing. Each step is a Gaussian (or Laplace) mechanism whose share is fixed
beforehand, so all steps together are the one that is paid for (see blur.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import grid
from ..noise import Noise
from . import running
from .aggregates import VOTES
from .blur import Blur
from .bounding import totals
from .integers import wholes
from .kinds import Kind, Typed
from .limits import MOST_KEYS, Limits
from .measures import Coordinate, Measure
from .profiles import Profile, bar_of, profiles

if TYPE_CHECKING:
    from ..sources import Connection
    from .plan import Sql

ADVICE = Fraction(1, 10)
"""The adviser's share of the budget."""
_LOSS = (0.12, 0.3)  # of the numbers of units: what weights may take; more where it is put back (unclip)
_RESIDUE = (0.5, 0.25)  # how a loss weighs beside noise; less where it is put back (unclip)
_WIDTH = 0.8  # the mean size of noise, in its own scales
_BITS = 8
_MOST_TOTAL = 2**38
_MOST_ROWS = 2**24  # noise of limits is no wider, whatever the profiles say: wider noise may be too wide to be drawn


@dataclass(frozen=True)
class Advice:
    """What the adviser found: limits, reaches by measure, and totals under wide limits (reach, noisy total)."""

    limits: Limits
    reaches: Mapping[str, Fraction]
    totals: Mapping[str, tuple[Fraction, float]]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Advice:
        """As it was stored with the release."""
        keys, most, values = (int(raw[name]) for name in ("keys", "most_keys", "values"))
        wide = {name: (Fraction(reach), float(total)) for name, (reach, total) in raw["totals"].items()}
        reaches = {name: Fraction(each) for name, each in raw["reaches"].items()}
        limits = Limits(rows=Fraction(raw["rows"]), keys=keys, most_keys=most, values=values)
        return cls(limits, reaches, wide)

    def stored(self) -> dict[str, Any]:
        """As plain values."""
        limits = self.limits
        return {
            "rows": str(limits.rows),
            "keys": limits.keys,
            "most_keys": limits.most_keys,
            "values": limits.values,
            "reaches": {name: str(each) for name, each in self.reaches.items()},
            "totals": {name: [str(reach), total] for name, (reach, total) in self.totals.items()},
        }


def check(plan: Sql) -> None:
    """Refuse noise that cannot be drawn, before anything is paid for."""
    measures = plan.questions.measures or (running.ROWS,)
    plan.blur.law(bar_of(plan.blur, len(measures) + 1, Fraction(plan.advice) / 3).steps)
    running.check(plan.front, plan.design(Limits()))


def share_of_totals(plan: Sql) -> Fraction:
    """Of each total that is measured under wide limits: of the first measure, and of the units where they count."""
    return Fraction(plan.advice) / 3 / (2 if plan.questions.votes else 1)


def advised(plan: Sql, connection: Connection, noise: Noise) -> dict[str, Any]:
    """Measure how much units hold, choose limits, release."""
    front, blur, third = plan.front, plan.blur, Fraction(plan.advice) / 3
    start, by_keys = Limits(most_keys=MOST_KEYS), None
    if plan.questions.votes:
        (by_keys,) = profiles(front, blur, connection, noise, (), third)
        start = keys_limit(by_keys, unclip=plan.unclip)
    votes: list[float] | None = None
    if front.selects:
        groups, votes = running.chosen(front, plan.design(start), connection, noise)
    else:
        groups = running.given(front, connection)
    measures = plan.questions.measures or (running.ROWS,)
    lengths = profiles(front, blur, connection, noise, measures, third, groups)
    limits, reaches = _limits(plan, start, measures, lengths, len(groups.rows), votes)
    design = plan.design(limits, reaches)
    found = running.sums(front, design, connection, noise, groups, votes=votes is None)
    if votes is not None:
        found["numbers"][VOTES] = votes
    wide = _totals(plan, connection, noise, groups, measures[0], lengths[-1], by_keys)
    more = running.rest(front, design, connection, noise, groups)
    return {**running.stored(front, groups), **found, **more, "limits": Advice(limits, reaches, wide).stored()}


def keys_limit(by_keys: Profile, *, unclip: bool) -> Limits:
    """In how many groups a unit counts in full, and with how many it still has a say."""
    if by_keys.total <= 0:
        return Limits(most_keys=MOST_KEYS)
    candidates = [*range(1, 17), *(int(2 ** (j / 2)) for j in range(9, 24))]
    keys = next((each for each in candidates if by_keys.lost(each, by_keys, 0.5) <= _LOSS[unclip]), candidates[-1])
    return Limits(keys=keys, most_keys=min(max(math.ceil(by_keys.largest), keys), 2**16))


def _limits(
    plan: Sql,
    start: Limits,
    measures: tuple[Measure, ...],
    lengths: list[Profile],
    groups: int,
    votes: list[float] | None,
) -> tuple[Limits, dict[str, Fraction]]:
    """The length at which loss and noise are least together, for the first measure; others likewise."""
    first, about, masses = measures[0], lengths[0], lengths[-1]
    largest = float(first.largest)
    values = max(start.keys, 1)
    if about.total <= 0 or masses.total <= 0:
        return Limits(rows=1, keys=start.keys, most_keys=start.most_keys, values=values), {}
    usual = about.middles[(about.middles >= largest / 2) & (about.middles <= about.largest)]
    typical = _typical(masses.total, groups, votes)
    best = best_length(plan, start, about, masses, typical, [float(each) for each in usual], largest)
    rows = short(best / largest)
    reaches = {first.name: short(best)}
    for each, profile in zip(measures[1:], lengths[1:-1], strict=True):
        # The length of this measure that as many units exceed; never more than the bounds of rows allow.
        same = profile.length(about.above(best)) if profile.total > 0 else best * float(each.largest) / largest
        reaches[each.name] = min(short(same), rows * each.largest)
    limits = Limits(rows=rows, keys=start.keys, most_keys=start.most_keys, values=values)
    return limits, reaches if plan.questions.measures else {}


def best_length(
    plan: Sql,
    start: Limits,
    about: Profile,
    masses: Profile,
    typical: float,
    candidates: list[float],
    largest: float = 1.0,
) -> float:
    """Where what a limit on lengths takes and the noise it needs, beside what a typical group holds, are least
    together; `largest` is what one row may hold."""
    first, *others = plan.design(start).shares.values()
    least = min((first, *others))

    def error(length: float) -> float:
        scale = float(plan.blur.scale(short(length), first))
        return _RESIDUE[plan.unclip] * about.lost(length, masses) + _WIDTH * scale / typical

    drawn = [each for each in candidates if plan.blur.scale(short(each / largest), least) <= _MOST_ROWS]
    return min(drawn, key=error, default=largest)


def _typical(total: float, groups: int, votes: list[float] | None) -> float:
    """What a middling group holds."""
    if votes:
        return total * float(np.median(votes)) / max(sum(votes), 1e-9)
    return total / max(groups, 1)


def _totals(
    plan: Sql,
    connection: Connection,
    noise: Noise,
    groups: running.Groups,
    first: Measure,
    masses: Profile,
    by_keys: Profile | None,
) -> dict[str, tuple[Fraction, float]]:
    """Over all groups, with limits so wide that hardly anything is lost: of the first measure, and of the units."""
    asked: dict[str, tuple[Measure, Profile]] = {first.name: (first, masses)}
    if by_keys is not None:
        asked[VOTES] = (running.ROWS, by_keys)
    share = share_of_totals(plan)
    found: dict[str, tuple[Fraction, float]] = {}
    for name, (measure, held) in asked.items():
        reach = _wide(plan.blur, share, measure, held)
        if reach is None:
            continue
        each = wide_coordinate(plan.blur, measure, reach, share)
        quantum = None if name == VOTES else each.quantum()
        columns = {} if quantum is None else {"q0": Typed(quantum, Kind("whole"))}
        rows = running.of_groups(plan.front, plan.front.rows(columns), groups)
        most = math.floor(grid.steps(reach, each.exponent))
        table = connection.run(
            totals(rows, keys=len(plan.front.keys), most=most, units=name == VOTES, counts=quantum is None)
        )
        drawn = wholes(table, 0) * (1 << each.bits) + noise.draw(plan.blur.law(each.steps), 1)
        found[name] = (reach, float(grid.to_float(drawn, each.exponent - each.bits)[0]))
    return found


def wide_coordinate(blur: Blur, measure: Measure, reach: Fraction, share: Fraction) -> Coordinate:
    """A total with its noise, on a grid that is as fine as noise can still be drawn on."""
    scale = blur.scale(reach, share)
    return Coordinate(measure, reach, share, scale, min(_BITS, max(34 - grid.floor_log2(scale) + measure.coarsest, 0)))


def _wide(blur: Blur, share: Fraction, measure: Measure, held: Profile) -> Fraction | None:
    """Where the noise on the total and what is beyond the limit are least together; None where nobody holds anything,
    or where the noise could not be drawn."""

    def error(limit: float) -> float:
        return held.beyond(limit) + _WIDTH * float(blur.scale(short(limit), share)) / held.total

    most = _MOST_TOTAL * 2**measure.coarsest if measure.whole else math.inf
    some = held.middles[held.counts > 0] if held.total > 0 else ()
    candidates = [float(each) for each in some if blur.scale(short(float(each)), share) <= most]
    return short(min(candidates, key=error)) if candidates else None


def short(value: float) -> Fraction:
    """A number of three digits, upwards."""
    digits = 2 - math.floor(math.log10(value))
    return Fraction(math.ceil(Fraction(value) * Fraction(10) ** digits)) / Fraction(10) ** digits
