"""What limits take from an answer: measured once more, when the limits are chosen, and estimated.

For every measured number one scalar: what its weights take from all units together, where of one unit no more than a
cap counts. One unit moves it by the cap at most, so it is a coordinate like any other (blur.py). Together with the
curves through the profile (tails.py) it says how much is missing from the sums, with a standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .. import grid
from ..laws import Law
from ..noise import Noise
from . import running
from .advice import COUNTED, Cut
from .aggregates import VOTES
from .blur import Blur
from .integers import wholes
from .kinds import Kind, Typed
from .measures import Coordinate
from .size_statements import cut_pairs, cut_values
from .tails import CAP, Tail
from .unit_sums import UnitSums

if TYPE_CHECKING:
    from ..sources import Connection
    from .design import Design
    from .plan import Sql

_NOTHING = Cut(0.0, 0.0, 0.0, 0.0)
_WIDEST = 2**35  # steps: wider noise takes longer to draw exactly


def cuts(
    plan: Sql,
    design: Design,
    connection: Connection,
    noise: Noise,
    groups: running.Groups,
    tails: Mapping[str, Tail | None],
    share: Fraction,
    pairs: UnitSums | None,
) -> dict[str, Cut]:
    """By name of the measured number; those that no tail is known of are measured and said nothing about."""
    measured: dict[str, Cut] = {}
    sums = [each for each in design.sums if each.measure.name in tails]
    if sums:
        caps = {name: _cap(tails[name], each.reach) for each in sums for name in (each.measure.name,)}
        measured |= _of_sums(plan, design, connection, noise, groups, tails, caps, share, pairs)
    if COUNTED in tails:
        measured |= _of_counts(plan, design, connection, noise, groups, tails[COUNTED], share, pairs)
    if VOTES in tails:
        assert design.votes is not None and pairs is not None
        votes = design.votes
        cap, fine = _cap(tails[VOTES], votes.coordinate.reach**2), Fraction(1, 1 << votes.coordinate.bits)
        law, step = _scalar(plan.blur, cap, share, fine)
        shown = running.of_groups(plan.front, pairs.rows, groups)
        query = cut_pairs(pairs.rows, shown, votes=votes, blur=plan.blur, most=_most(cap, fine, step))
        exact = wholes(connection.run(query), 0) // int(step / fine)
        value, std = _drawn(exact, law, step, noise)
        measured[VOTES] = _estimate(tails[VOTES], float(votes.coordinate.reach), votes.coordinate.scale, value, std)
    for name, distinct in design.questions.distinct.items():
        if name in tails:
            each = design.distinct(name)
            cap = Fraction(max(int(_cap(tails[name], each.reach)), 1))
            law, step = _scalar(plan.blur, cap, share, Fraction(1, 1 << 8))
            rows = running.of_groups(plan.front, plan.front.rows({"x": Typed(distinct.value, Kind("whole"))}), groups)
            query = cut_values(rows, keys=len(plan.front.keys), most_values=design.limits.values, most=int(cap))
            exact = wholes(connection.run(query), 0) * int(1 / step)
            value, std = _drawn(exact, law, step, noise)
            measured[name] = _estimate(tails[name], float(each.reach), each.scale, value, std)
    return {name: cut for name, cut in measured.items() if tails[name] is not None}


def _of_sums(
    plan: Sql,
    design: Design,
    connection: Connection,
    noise: Noise,
    groups: running.Groups,
    tails: Mapping[str, Tail | None],
    caps: Mapping[str, Fraction],
    share: Fraction,
    pairs: UnitSums | None,
) -> dict[str, Cut]:
    """What the common weight takes from every sum, in one statement; of single rows, which have none, what their own
    reaches take, and nothing where a reach is as large as a row may be."""
    single = plan.front.reading.single
    whole = [each.measure.name for each in design.sums if single and each.reach >= each.measure.largest]
    measured = {name: _NOTHING for name in caps if name in whole}
    places = [i for i, each in enumerate(design.sums) if each.measure.name in caps and each.measure.name not in whole]
    laws, most = {}, [0] * len(design.sums)
    for i in places:
        each = design.sums[i]
        fine = Fraction(2) ** (each.exponent - each.bits)
        laws[i] = _scalar(plan.blur, caps[each.measure.name], share, fine)
        most[i] = _most(caps[each.measure.name], fine, laws[i][1])
    if not places:
        return measured
    table = connection.run(running.cut_statement(plan.front, design, groups, most, pairs))
    for i in places:
        each, (law, step) = design.sums[i], laws[i]
        exact = wholes(table, i) // int(step / Fraction(2) ** (each.exponent - each.bits))
        value, std = _drawn(exact, law, step, noise)
        tail, name = tails[each.measure.name], each.measure.name
        signed = value if each.measure.lower >= 0 else -value if each.measure.upper <= 0 else None
        estimate = _estimate(tail, float(each.reach), each.scale, signed, std)
        if single:
            if tail is not None and signed is None:
                estimate = Cut(*tail.with_signs(float(each.reach), value, std), value, std)
        elif tail is not None and signed is not None and len(design.sums) > 1:
            rate, counted = max(_counted(tails, other) for other in design.sums)
            estimate = Cut(*tail.with_others(float(each.reach), signed, std, rate, counted), value, std)
        measured[name] = replace(estimate, signed=value)
    return measured


def _counted(tails: Mapping[str, Tail | None], other: Coordinate) -> tuple[float, float]:
    tail = tails.get(other.measure.name)
    return (0.0, 1.0) if tail is None else tail.counted(float(other.reach))


def _of_counts(
    plan: Sql,
    design: Design,
    connection: Connection,
    noise: Noise,
    groups: running.Groups,
    tail: Tail | None,
    share: Fraction,
    pairs: UnitSums | None,
) -> dict[str, Cut]:
    """What is taken from the rows that fall into leaves and bins, which have weights of their own."""
    name = next(iter((*design.questions.ranked, *design.questions.binned)))
    each = design.counted(name)
    cap, fine = _cap(tail, each.reach), Fraction(1, 1 << each.bits)
    law, step = _scalar(plan.blur, cap, share, fine)
    query = running.counted_cut(plan.front, design, groups, each, _most(cap, fine, step), pairs)
    exact = wholes(connection.run(query), 0) // int(step / fine)
    value, std = _drawn(exact, law, step, noise)
    return {COUNTED: _estimate(tail, float(each.reach), each.scale, value, std)}


def _cap(tail: Tail | None, reach: Fraction) -> Fraction:
    """The most that counts of what is cut from one unit."""
    return reach / CAP if tail is None else Fraction(tail.cap(float(reach)))


def _most(cap: Fraction, fine: Fraction, step: Fraction) -> int:
    """The cap in fine steps, a multiple of the step that totals are read in: so reading them moves nothing more."""
    return int(cap / step) * int(step / fine)


def _scalar(blur: Blur, reach: Fraction, share: Fraction, step: Fraction) -> tuple[Law, Fraction]:
    """The law of a total that one unit moves by `reach`, and its step: coarser than the given one where the noise could
    not be drawn as finely."""
    scale = blur.scale(reach, share)
    more = max(grid.floor_log2(scale / step) + 1 - grid.floor_log2(Fraction(_WIDEST)), 0)
    step *= 1 << more
    return blur.law(scale / step), step


def _drawn(exact: Any, law: Law, step: Fraction, noise: Noise) -> tuple[float, float]:
    """The noisy total, and its standard deviation."""
    noisy = exact + noise.draw(law, 1)
    return float(int(noisy[0]) * step), float(law.std * step)


def _estimate(tail: Tail | None, limit: float, scale: Fraction, capped: float | None, std: float) -> Cut:
    if tail is None:
        return Cut(0.0, 0.0, 0.0, std)
    if capped is None:  # rows may cancel: what is measured tells nothing of sizes
        return Cut(*tail.expected(limit, float(scale), float("inf")), 0.0, std)
    return Cut(*tail.estimate(limit, capped, std), capped, std)
