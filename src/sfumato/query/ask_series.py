"""`series(...)`: a plan for every block of a growing table, from the text of one query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .. import checks
from ..accounting import gdp
from ..errors import ArgumentError
from ..units import Unit
from .ask import schema_and_unit
from .comments import options_in
from .dated.series_plan import SqlSeries, of_query
from .dated.time_blocks import LEVELS, blocks_within, day_of
from .dialects.pasted import dialect_of, in_duckdb_sql
from .limits import Limits, limits_of
from .refusal import QueryError

_OF_LEVEL = ("share", "most", "limits")


def series(
    text: str,
    data: Any,
    *,
    column: str,
    start: Any,
    days: int,
    levels: Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("day",),
    unit: Unit | None = None,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    limits: Limits | Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    shares: Mapping[str, Any] | None = None,
    dialect: str = "duckdb",
) -> SqlSeries:
    """One query of a table that grows, asked of each block of time once, for one price that is paid beforehand.

    >>> from sfumato import Schema, Unit, schema, series
    >>> day = schema.date("2020-01-01", "2030-12-31")
    >>> clicks = Schema.of(user=schema.key(), ad=schema.category(["a", "b"]), day=day, unit="user")
    >>> plan = series("SELECT ad, COUNT(*) AS n FROM data GROUP BY ad", clicks, unit=Unit("user:user"), column="day",
    ...     start="2026-01-01", days=28, levels={"day": {"most": 7}}, epsilon=1, limits={"rows": 2})
    >>> len(plan.parts), float(plan.parts["day 2026-01-01"].event.epsilon)
    (28, 0.14285714285714285)

    `curator.prepay(plan)` pays for all of it; releasing `plan.parts["day 2026-01-01"]` is free from then on, once.
    `plan.read({name: release.raw, ...})` tells any window of what was released.

    column   the column of dates or moments that says which block a row is in
    start    the first day, and the number of `days` that the series lasts at most
    levels   what is released: "day", "week", "month", "quarter", "year". By level also {"share": its part of the
             budget, "most": in how many of its blocks one unit counts (all of them if left out), "limits": its own}
    epsilon  for everything that one unit has on all days; with delta, or rho, Gaussian noise, else Laplace noise
    limits   how much one unit counts for at most in one block; where there are several levels, each has its own

    The query tells COUNT and SUM by public groups, and nothing that depends on more than one block.
    """
    schema, protects = schema_and_unit(data, unit)
    checks.instance(text, str, "text", "a query")
    if written := options_in(text, dialect):
        raise ArgumentError(f"a comment of the query gives {', '.join(written)}: say it of the series instead.")
    query = in_duckdb_sql(text, dialect_of(dialect), schema)
    first = day_of(start, "start").isoformat()
    days = checks.whole(days, "days")
    wanted = _levels(levels, first, days, protects)
    budget = _budget(epsilon, delta, rho)
    own = {"keys": keys or {}, "bounds": bounds or {}, "shares": shares or {}}
    usual = limits_of(limits, "limits")
    if usual is not None and len(wanted) > 1 and any(item["limits"] is None for item in wanted.values()):
        raise ArgumentError(
            "limits are given once for several levels, and a week holds more of a unit's rows than a day: give each "
            "level limits of its own, such as 3 rows for the day and 10 for the week."
        )
    options = {
        level: {
            **own,
            **_part(budget, of_level, wanted),
            "limits": limits_of(of_level.get("limits"), "limits") or usual,
        }
        for level, of_level in wanted.items()
    }
    most = {level: of_level["most"] for level, of_level in wanted.items()}
    try:
        fields = of_query(query, schema.stored, protects, column, first, days, most, options)
        return SqlSeries(**fields, delta=budget.get("delta", Fraction(0)))
    except QueryError as problem:
        raise problem.within(query) from None


def _levels(levels: Any, start: str, days: int, unit: Unit) -> dict[str, dict[str, Any]]:
    if isinstance(levels, str) or not isinstance(levels, Sequence | Mapping):
        raise checks.refuse("levels", levels, "levels such as ('day', 'week'), or with options by level")
    options = dict(levels) if isinstance(levels, Mapping) else dict.fromkeys(levels)
    by_level: dict[str, dict[str, Any]] = {}
    for level in sorted(options, key=lambda name: LEVELS.index(checks.one_of(name, "level", LEVELS))):
        of_level = dict(options[level] or {})
        for name in of_level:
            checks.one_of(name, f"options of {level}", _OF_LEVEL)
        every = len(blocks_within(day_of(start, "start"), days, level))
        if not every:
            raise ArgumentError(f"no whole {level} lies in {days} days from {start}: leave it out, or take more days.")
        one = 1 if unit.of == "row" else every  # a row has one date
        most = min(checks.whole(of_level["most"], f"most of {level}"), one) if of_level.get("most") is not None else one
        share = checks.positive(1 if of_level.get("share") is None else of_level["share"], f"share of {level}")
        by_level[level] = {"most": most, "share": share, "limits": of_level.get("limits")}
    if not by_level:
        raise checks.refuse("levels", levels, "at least one level, such as 'day'")
    return by_level


def _budget(epsilon: Any, delta: Any, rho: Any) -> dict[str, Fraction]:
    """The budget of the whole: rho for Gaussian noise, else epsilon."""
    if (epsilon is None) == (rho is None):
        raise ArgumentError("say how much the whole series may spend: epsilon (with delta for Gaussian noise), or rho.")
    least = checks.delta(delta or 0, zero=True)
    if rho is not None:
        return {"rho": checks.positive(rho, "rho"), "delta": least}
    if not least:
        return {"epsilon": checks.epsilon(epsilon)}
    return {"rho": 1 / (2 * gdp.least_multiplier(checks.epsilon(epsilon), least) ** 2), "delta": least}


def _part(budget: Mapping[str, Fraction], of_level: Mapping[str, Any], levels: Mapping[str, Mapping[str, Any]]) -> Any:
    """What one block of a level may spend: Gaussians compose into one whose 1/m^2 = 2 rho is the sum of theirs (Dong,
    Roth, Su 2022), and so do epsilons of Laplace noise; of either, a level has its share, `most` times its blocks'."""
    share = of_level["share"] / sum(item["share"] for item in levels.values()) / of_level["most"]
    name = "rho" if "rho" in budget else "epsilon"
    return {name: _short(budget[name] * share) if name == "rho" else budget[name] * share}


def _short(value: Fraction) -> Fraction:
    """Twelve digits, downwards."""
    digits = 11 - math.floor(math.log10(value))
    return Fraction(math.floor(value * Fraction(10) ** digits)) / Fraction(10) ** digits
