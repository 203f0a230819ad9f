"""A quantile's error in its own unit. What is known beforehand is by how many rows its rank may be off; how far that is
in euros or days depends on how close together the values lie, which is private. So it is told for an assumption that
everybody can judge: values spread evenly over their public bounds. Where they lie closer together, as around the middle
of most data, the error is smaller; where few lie, it is larger. The answer's own error bars assume nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import ArgumentError
from .aggregates import Ranked
from .canonical import text_of
from .leaves import Leaves

if TYPE_CHECKING:
    from .plan import Sql

ROWS = Fraction(1000)
"""Of a group that nobody described: an example, for texts."""
RANK = " (in rows of rank)"
_HOUR = 3_600_000_000  # a moment's numbers are microseconds


def ranked(plan: Sql) -> dict[str, Leaves]:
    """The columns of the answer that are quantiles, by name."""
    each = {name: plan.front.aggregates.get(text_of(node)) for name, node in plan.front.outermost.outputs}
    return {name: found.leaves for name, found in each.items() if isinstance(found, Ranked)}


def width(leaves: Leaves, rank: float, rows: Fraction) -> float:
    """How far a rank that is off by `rank` of `rows` rows reaches, and a leaf; never further than the bounds."""
    whole = float(leaves.upper - leaves.lower)
    return min(rank / float(rows) * whole + float(_grain(leaves)), whole) / _scale(leaves)


def rank_of(name: str, leaves: Leaves, wanted: Fraction, rows: Fraction) -> Fraction:
    """By how many rows the rank may be off for a half-width `wanted`: the other way round."""
    room = wanted * _scale(leaves) - _grain(leaves)
    if room <= 0 or leaves.upper == leaves.lower:
        finest = f"{float(_grain(leaves)) / _scale(leaves):.4g}{_unit(leaves)}"
        raise ArgumentError(
            f"accuracy of {name!r} cannot be reached: a quantile is read from steps of {finest} between the bounds. "
            "Ask for more than that, or give narrower bounds."
        )
    return room * rows / (leaves.upper - leaves.lower)


def in_ranks(plan: Sql, wanted: Mapping[str, Any], size: Any) -> dict[str, Fraction]:
    """Half-widths asked for, those of quantiles in rows of rank, where the budget is known by them.

    wanted  by column; of a quantile {"rank": 20} is in rows of rank already
    size    about how many rows a group has
    """
    leaves = ranked(plan)
    found = {}
    for column, given in wanted.items():
        name, where = column.lower(), f"accuracy of {column}"
        if not isinstance(given, Mapping):
            half = checks.positive(given, where)
            found[name] = rank_of(name, leaves[name], half, _rows(name, size)) if name in leaves else half
        elif set(given) != {"rank"}:
            raise checks.refuse(where, dict(given), "a half-width; of a quantile also {'rank': 20}")
        elif name not in leaves:
            raise checks.refuse(where, dict(given), "a half-width: only quantiles have a rank")
        else:
            found[name] = checks.positive(given["rank"], f"the rank in {where}")
    return found


def _rows(name: str, size: Any) -> Fraction:
    if size is None:
        raise ArgumentError(
            f"accuracy of {name!r} depends on how many rows a group has: say so, as in group_rows=1000; or give it in "
            f"rows of rank, accuracy={{{name!r}: {{'rank': 20}}}}.",
            code="rank-accuracy",
        )
    return checks.positive(size, "group_rows")


def assumed(leaves: Leaves, rows: Fraction = ROWS) -> str:
    """What is assumed, in words, and what the error of dates and times is told in."""
    ends = (leaves.lower, leaves.upper) if leaves.origin is None else map(leaves.date, (leaves.lower, leaves.upper))
    low, high = (f"{float(end):,.6g}" if isinstance(end, Fraction) else str(end) for end in ends)
    told_in = f"in{_unit(leaves)}, " if _unit(leaves) else ""
    return f"{told_in}if the {float(rows):,.6g} rows of a group were spread evenly over {low} to {high}"


def named(plan: Sql, widths: Mapping[str, float]) -> dict[str, float]:
    """Half-widths by names that say what they are in: of a quantile in rows of rank, and in its own unit for a group
    of 1,000 rows."""
    leaves = ranked(plan)
    found = {}
    for name, each in widths.items():
        if name in leaves:
            found[f"{name}{RANK}"] = each
            found[f"{name} ({assumed(leaves[name])})"] = width(leaves[name], each, ROWS)
        else:
            found[name] = each
    return found


def _unit(leaves: Leaves) -> str:
    return {"date": " days", "moment": " hours"}.get(leaves.type, "")


def _grain(leaves: Leaves) -> Fraction:
    """How far apart the values of one leaf may be: whole numbers and days that have one each, not at all."""
    return leaves.width if leaves.type == "real" else leaves.width - 1


def _scale(leaves: Leaves) -> int:
    """How many of the leaves' own numbers are one of what people name."""
    return _HOUR if leaves.type == "moment" else 1
