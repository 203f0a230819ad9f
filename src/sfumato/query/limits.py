"""How far one unit may move an answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from .. import checks, contributions
from ..checks import Exact
from ..record import record
from ..schema import Named

_MOST = 2**18
MOST_KEYS = 1000
"""Units with more groups than this have no say in which groups are shown, unless a limit says otherwise."""


@record("sql-limits/1")
@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one unit counts for, at most. A unit that holds more is weighted down as a whole; no row is thrown away.

    >>> from sfumato import Limits
    >>> Limits(rows=10, keys=3).keys
    3

    rows       the length of a unit's vector of row counts, one number per group: 10 is ten rows in one group, or one
               row in each of a hundred (with Laplace noise lengths add up: one row in each of ten)
    keys       in how many groups a unit counts in full for COUNT(DISTINCT unit), and for which groups are shown; None:
               as many as `rows`, since so many rows are in no more groups, and no more than there are groups
    most_keys  units with more groups than this have no say in which groups are shown (where groups are not given)
    values     how many different values a unit may bring to COUNT(DISTINCT column); None: as many as `rows`
    sample     keep so many groups of each unit, drawn by a hash of unit, group and `salt`, and leave its other rows
               out: the classic way, where weights are not wanted
    reach      for a sum, by the name of its column in the answer: how far a unit may move it; else `rows` times the
               largest value that a row may hold
    """

    rows: Exact = Fraction(1)
    keys: Any = None
    most_keys: int = MOST_KEYS
    values: Any = None
    sample: int | None = None
    salt: int = 0
    reach: Mapping[str, Any] = field(default_factory=dict)

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        """All of its fields are limits."""
        own = {f.name: contributions.scalar(getattr(self, f.name)) for f in fields(self)}
        own |= {f"reach of {name}": contributions.scalar(reach) for name, reach in self.reach.items()}
        limits = {name: limit for name, limit in own.items() if limit is not None}
        return contributions.own(self, path, limits)

    def words(self, unit: str, square: bool) -> str:
        """Where a unit begins to count for less: where the vector of its row counts, one for each group, is longer than
        `rows`. square: is its length that of squares?"""
        long = f"in one group, or a vector of row counts {self.rows} long over several" if square else "over all groups"
        most = "as many groups, if there are so many" if self.keys is None else f"up to {self.keys} group(s)"
        reaches = (f"; in {name} up to {reach}" for name, reach in self.reach.items())
        counted = f"one {unit} counts in full up to {self.rows} row(s) {long}; where {unit}s are counted, in {most}"
        return f"{counted}{''.join(reaches)}; one that holds more is weighted down as a whole"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", checks.positive(self.rows, "rows"))
        object.__setattr__(self, "most_keys", checks.whole(self.most_keys, "most_keys", most=_MOST))
        for name in ("keys", "values"):
            given = 1 if getattr(self, name) is None and self.rows <= 1 else getattr(self, name)
            object.__setattr__(self, name, None if given is None else checks.whole(given, name, most=_MOST))
        if self.sample is not None:
            object.__setattr__(self, "sample", checks.whole(self.sample, "sample", most=_MOST))
        object.__setattr__(self, "salt", checks.whole(self.salt, "salt", least=0))
        if not isinstance(self.reach, Mapping):
            raise checks.refuse("reach", self.reach, "reaches by name, such as {'total': 500}")
        reach = {
            checks.label(name, "reach"): checks.positive(each, f"reach of {name}") for name, each in self.reach.items()
        }
        object.__setattr__(self, "reach", Named(reach))

    def completed(self, groups: int | None) -> Limits:
        """With keys and values that nobody gave: by the rows. groups: how many there are (1 where the query has none),
        None where that is not known yet."""
        if self.keys is not None and self.values is not None:
            return self
        rows = min(math.ceil(self.rows), _MOST)
        fewest = min(each for each in (rows, self.most_keys, self.sample, groups) if each is not None)
        keys = max(fewest, 1) if self.keys is None else self.keys
        return replace(self, keys=keys, values=rows if self.values is None else self.values)

    def __str__(self) -> str:
        more = "".join(f", {name} by {float(each):g}" for name, each in self.reach.items())
        rows, keys = ("row" if self.rows == 1 else "rows"), ("group" if self.keys == 1 else "groups")
        told = "" if self.keys is None else f", {self.keys} {keys}"
        return f"{float(self.rows):g} {rows}{told}{more}"


def limits_of(options: Any, name: str) -> Limits | None:
    """Limits, also given by name."""
    if options is None or isinstance(options, Limits):
        return options
    if not isinstance(options, Mapping):
        raise checks.refuse(name, options, "limits such as {'rows': 3}")
    for word in options:
        checks.one_of(word, name, tuple(Limits.__dataclass_fields__))
    return Limits(**options)
