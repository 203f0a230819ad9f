"""How far one unit may move an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .. import checks
from ..checks import Exact
from ..record import record
from ..schema import Named

MOST_KEYS = 1000
"""Units with more groups than this have no say in which groups are shown, unless a limit says otherwise."""


@record("sql-limits/1")
@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one unit counts for, at most. A unit that holds more is weighted down as a whole; no row is thrown away.

    rows       the length of a unit's vector of row counts, one number per group: 10 is ten rows in one group, or one
               row in each of a hundred (with Laplace noise lengths add up: one row in each of ten)
    keys       in how many groups a unit counts in full for COUNT(DISTINCT unit), and for which groups are shown
    most_keys  units with more groups than this have no say in which groups are shown (where groups are not given)
    values     how many different values a unit may bring to COUNT(DISTINCT column)
    sample     keep so many groups of each unit, drawn by a hash of unit, group and `salt`, and leave its other rows
               out: the classic way, where weights are not wanted
    reach      for a sum, by the name of its column in the answer: how far a unit may move it; else `rows` times the
               largest value that a row may hold
    """

    rows: Exact = Fraction(1)
    keys: int = 1
    most_keys: int = MOST_KEYS
    values: int = 1
    sample: int | None = None
    salt: int = 0
    reach: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", checks.positive(self.rows, "rows"))
        for name in ("keys", "most_keys", "values"):
            object.__setattr__(self, name, checks.whole(getattr(self, name), name, most=2**18))
        if self.sample is not None:
            object.__setattr__(self, "sample", checks.whole(self.sample, "sample", most=2**18))
        object.__setattr__(self, "salt", checks.whole(self.salt, "salt", least=0))
        if not isinstance(self.reach, Mapping):
            raise checks.refuse("reach", self.reach, "reaches by name, such as {'total': 500}")
        reach = {
            checks.label(name, "reach"): checks.positive(each, f"reach of {name}") for name, each in self.reach.items()
        }
        object.__setattr__(self, "reach", Named(reach))

    def __str__(self) -> str:
        more = "".join(f", {name} by {float(each):g}" for name, each in self.reach.items())
        rows, keys = ("row" if self.rows == 1 else "rows"), ("group" if self.keys == 1 else "groups")
        return f"{float(self.rows):g} {rows}, {self.keys} {keys}{more}"
