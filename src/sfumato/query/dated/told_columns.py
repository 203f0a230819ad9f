"""Which numbers a series tells: columns that are sums of measured numbers, so that blocks of them add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..aggregates import VOTES, Statistic
from ..plan import Sql
from ..refusal import QueryError
from ..released import figures

_LATER = ("having", "qualify", "order", "limit", "offset", "distinct")
_NOTHING = 1e-9


@dataclass(frozen=True)
class ToldColumn:
    """One column of numbers: what it is made of, and whether it can be below 0.

    weights  by measured number
    signed   may the exact number be negative?
    """

    title: str
    weights: Mapping[str, float]
    signed: bool


def told_columns(part: Sql, who: str = "A series", across: str = "block") -> tuple[ToldColumn, ...]:
    """The columns of numbers of a series' part, or of a workload's cells. Refuses what does not add up from one block,
    or cell, to another."""
    outermost = part.front.outermost
    for clause in _LATER:
        if outermost.select.args.get(clause):
            raise QueryError(
                f"{who} releases all of its groups, and {clause.upper()} chooses among them.",
                "leave it out here: what was released is ordered and cut when it is read",
            )
    if part.front.selects:
        raise QueryError(
            f"Which groups there are is private here, and {who.lower()} tells the same groups in every {across}.",
            "give the groups: keys={'column': [...]}, categories in the schema, or a public table",
        )
    if part.fixed is None:
        raise QueryError(
            f"{who} takes limits that are known beforehand: measured ones would differ from {across} to {across}.",
            "give limits, such as limits={'rows': 3}; leave unclip and the adviser out",
        )
    columns = []
    for title, node in outermost.outputs:
        name = outermost.name_of(node)
        aggregate = part.front.aggregates.get(name or "")
        if aggregate is None and name in {key.name for key in part.front.keys}:
            continue
        weights = _weights(aggregate) if isinstance(aggregate, Statistic) else None
        if weights is None:
            raise QueryError(
                f"{title} does not add up from {across} to {across}.",
                "ask for COUNT(*), COUNT(x) and SUM(x), each as a column of its own; divide what is read",
                node,
            )
        assert isinstance(aggregate, Statistic)
        columns.append(ToldColumn(title, weights, _signed(aggregate, weights)))
    if not columns:
        raise QueryError("There is no number to tell.", "ask for COUNT(*) or SUM(x)")
    return tuple(columns)


def _weights(aggregate: Statistic) -> dict[str, float] | None:
    """By measured number; None of what is no sum of them, or counts units, who come again in other blocks."""
    names = [measure.name for measure in aggregate.measures]
    if aggregate.counts_units or VOTES in names:
        return None
    total = aggregate.formula({name: figures.measured(name, np.zeros(1)) for name in names})
    plain = total.linear and not total.jumps and float(total.value[0]) == 0.0  # a ratio is NaN here
    return {name: float(slope[0]) for name, slope in total.slopes.items()} if plain else None


def _signed(aggregate: Statistic, weights: Mapping[str, float]) -> bool:
    """May rows make it negative? A sum of numbers around a centre has their number beside it, at least one a row."""
    counted = (Fraction(0), Fraction(1))
    least = sum(
        weights[measure.name]
        * float(measure.upper if measure.row is None or (measure.lower, measure.upper) == counted else measure.lower)
        for measure in aggregate.measures
    )
    return least < -_NOTHING * float(max(measure.largest for measure in aggregate.measures))
