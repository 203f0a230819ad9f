"""Measured numbers raised by what limits cut, as far as that is known: what remains unknown widens their intervals.

A number of a group loses its part of what all groups lose, r times what it holds, where r is the loss over the sum of
the groups. Groups lose unevenly: one of light units nothing, one of heavy units several times the mean. So its part is
known to `UNEVEN` times itself, and to what is not known of the whole. A sum around a centre loses what its rows lose
(`counted_by`) times the mean of these rows, which may lie anywhere within the bounds of the values.

Each such doubt is a coordinate of the figures, like noise: a ratio of two numbers that lose together loses little.
Where nothing is known of what limits cut, a figure is open: the truth may be any amount above (or on either side).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..laws import RoundedGaussian
from .advice import COUNTED, SOME, UNEVEN, Advice, Cut
from .aggregates import VOTES
from .measures import Measure
from .released.figures import Figure, Selected, measured, selected
from .released.mixtures import Floats, Spreads, deviation

if TYPE_CHECKING:
    from .design import Design
    from .plan import Sql

_MANY = 2.0**40
_DOUBT = (RoundedGaussian(_MANY), 1 / _MANY)  # a normal law of standard deviation 1


def doubts(names: Any) -> Spreads:
    """The laws of what is not known of cuts, by name of the number that was cut."""
    return {_doubt(name): _DOUBT for name in names}


def _doubt(name: str) -> str:
    return f"cut from {name}"


def raised(plan: Sql, design: Design, advice: Advice | None, raw: Mapping[str, Any]) -> dict[str, Figure]:
    """Every measured number of the answer, by name."""
    numbers = {**raw["numbers"], **raw["distinct"]}
    values = {name: np.asarray(each, dtype=np.float64) for name, each in numbers.items()}
    cuts = {} if advice is None else advice.cuts
    figures: dict[str, Figure] = {}
    for name, value in values.items():
        figure = measured(name, value)
        if name == VOTES and design.selects:
            assert design.votes is not None
            figure = selected(name, value, design.threshold * 2.0**-design.votes.coordinate.bits)
        figures[name] = figure
    measures = {each.name: each for each in plan.questions.measures}
    spreads, groups = design.spreads, bool(plan.front.keys)
    for name in values:
        if not exposed(plan, name):
            continue
        cut = cuts.get(name)
        if cut is None:
            figures[name] = opened(figures[name], measures.get(name))
        elif name not in measures or not measures[name].signed:
            figures[name] = _lifted(figures[name], name, cut, spreads, groups, distinct=name in raw["distinct"])
    single = advice is not None and advice.unweighted
    for name, measure in measures.items():
        if name in cuts and exposed(plan, name):
            if measure.signed and single:
                figures[name] = _shifted(figures[name], measure, cuts[name], values, groups, spreads)
            elif single:
                continue  # by itself: no count lost with it
            elif measure.signed:
                figures[name] = _around(figures, values, measure, cuts, spreads, groups)
            elif measure.counted_by in cuts and measure.counted_by != name:
                figures[name] = _together(figures[name], name, measure.counted_by)
    return figures


def exposed(plan: Sql, name: str) -> bool:
    """May limits take anything from this number?"""
    layout, limits = plan.layout, plan.fixed
    if name == VOTES:
        return layout.votes
    if limits is not None and plan.front.reading.single:  # held at its reach, which may be as large as a row can be
        return any(each.name == name and limits.reaches[name] < each.largest for each in plan.questions.measures)
    return name in layout.distinct or any(each.name == name for each in layout.measures)


def exposed_names(plan: Sql) -> list[str]:
    """The numbers that limits may take something from."""
    return [*filter(partial(exposed, plan), plan.questions), *[COUNTED] * plan.layout.rows]


def title(plan: Sql, name: str) -> str:
    """A measured number in plain words."""
    if name == VOTES:
        return "numbers of units"
    measures = {each.name: each for each in plan.questions.measures}
    if name in measures:
        return measures[name].title.replace('"', "")
    return "different values" if name != COUNTED else name


def opened(figure: Figure, measure: Measure | None) -> Figure:
    """Nothing is known of what was cut."""
    signed = measure is not None and measure.signed
    falls = signed or (measure is not None and measure.upper <= 0)
    rises = signed or not falls
    return replace(figure, above=rises, below=falls)


def lifted_bars(bars: Floats, name: str, advice: Advice | None, spreads: Spreads) -> list[Figure]:
    """The bars of a histogram, which lose rows as groups do."""
    figures = [measured(name, bars[:, i]) for i in range(bars.shape[1])]
    cut = None if advice is None else advice.cuts.get(COUNTED)
    if cut is None:
        return [replace(figure, above=True) for figure in figures]
    held = _held(bars.reshape(-1), name, spreads)
    return [_lifted(figure, name, cut, spreads, True, held=held) for figure in figures]


def _lifted(
    figure: Figure,
    name: str,
    cut: Cut,
    spreads: Spreads,
    groups: bool,
    *,
    distinct: bool = False,
    held: float | None = None,
) -> Figure:
    """A number that can only lose. Of different values that units could not bring, others may have brought any part."""
    held = _held(figure.value, name, spreads) if held is None else held
    part = np.maximum(np.abs(figure.value), 0.0) / held
    loss, known = cut.loss * (0.5 if distinct else 1.0), cut.doubt * (0.5 if distinct else 1.0)
    uneven = (UNEVEN if groups else 0.0) + (2 * SOME if distinct else 0.0)
    doubt = part * math.hypot(known, uneven * loss)
    rate = loss / held
    value = figure.value + np.sign(figure.value) * part * loss
    slopes = {each: slope * (1 + rate) for each, slope in figure.slopes.items()}
    slopes[_doubt(name)] = doubt
    if isinstance(figure, Selected):
        return replace(figure, value=value, slopes=slopes, rate=1 + rate)
    return replace(figure, value=value, slopes=slopes)


def _together(figure: Figure, name: str, count: str) -> Figure:
    """A sum loses together with the number of its rows: half of its doubt (of the variance) is theirs."""
    doubt = figure.slopes[_doubt(name)] * math.sqrt(0.5)
    return replace(figure, slopes={**figure.slopes, _doubt(name): doubt, _doubt(count): doubt})


def _held(value: Floats, name: str, spreads: Spreads) -> float:
    """What all groups hold together, kept away from 0 by its noise."""
    return max(abs(float(value.sum())), deviation(name, spreads) * math.sqrt(max(value.size, 1)), 1e-9)


def _shifted(
    figure: Figure, measure: Measure, cut: Cut, values: Mapping[str, Floats], groups: bool, spreads: Spreads
) -> Figure:
    """A sum of single rows in which they may cancel: it loses what its own reach cuts, up or down."""
    share = np.full(figure.value.size, 1 / max(figure.value.size, 1))
    if measure.counted_by in values:
        count = values[measure.counted_by]
        share = np.maximum(count, 0.0) / _held(count, measure.counted_by, spreads) if groups else share
    doubt = share * math.hypot(cut.doubt, (UNEVEN if groups else 0.0) * cut.loss)
    return replace(figure, value=figure.value + share * cut.loss, slopes={**figure.slopes, _doubt(measure.name): doubt})


def _around(
    figures: Mapping[str, Figure],
    values: Mapping[str, Floats],
    measure: Measure,
    cuts: Mapping[str, Cut],
    spreads: Spreads,
    groups: bool,
) -> Figure:
    """A sum in which rows may cancel. With the number of its rows: it loses that of them times their mean."""
    name, figure, cut = measure.name, figures[measure.name], cuts[measure.name]
    rows = cuts.get(measure.counted_by)
    if rows is None or measure.counted_by not in values:
        part = 1 / max(figure.value.size, 1)
        spread = part * math.hypot(cut.loss, cut.doubt) * (UNEVEN if groups else 1.0)
        return replace(figure, slopes={**figure.slopes, _doubt(name): np.full(figure.value.size, spread)})
    count = values[measure.counted_by]
    held = _held(count, measure.counted_by, spreads)
    share = np.maximum(count, 0.0) / held
    with np.errstate(all="ignore"):
        mean = np.where(count > 0, np.clip(figure.value / count, float(measure.lower), float(measure.upper)), 0.0)
    anywhere = float(measure.upper - measure.lower) / math.sqrt(12)
    prior = rows.loss * anywhere
    # What the measured totals say of how the mean of the cut rows differs, shrunk by their noise.
    over = cut.signed - float(np.sum(share * mean)) / max(float(share.sum()), 1e-9) * rows.signed
    noise = math.hypot(cut.noise, float(np.abs(mean).max(initial=0.0)) * rows.noise)
    trust = prior**2 / (prior**2 + noise**2) if prior > 0 else 0.0
    shift = trust * over
    own = share * (prior if groups else math.sqrt(max(trust, 0.0)) * noise)
    rate = rows.loss / held
    slopes = {each: slope * (1 + rate) for each, slope in figure.slopes.items()}
    common = share * mean * math.hypot(rows.doubt, (UNEVEN if groups else 0.0) * rows.loss)
    slopes |= {_doubt(measure.counted_by): common, _doubt(name): own}
    return replace(figure, value=figure.value + share * (mean * rows.loss + shift), slopes=slopes)
