"""Limits from what is publicly known of the units: an older survey, a similar data set, how the service works.

Hints are public fields, so choosing limits by them costs nothing; the same objective as the adviser's weighs what the
limits take against the noise they need. Wrong hints cost accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..checks import Exact
from ..errors import ArgumentError
from ..record import record
from . import advice
from .limits import Limits
from .profiles import Profile, paired

if TYPE_CHECKING:
    from .plan import Sql

_FINER = 2 ** (1 / 8)


@record("sql-hints/1")
@dataclass(frozen=True, kw_only=True)
class Hints:
    """What is publicly known of the units, about. Wrong hints cost accuracy, never privacy.

    units   how many there are
    rows    how many rows a unit has: one number, or {rows: share of the units}, as {1: 0.6, 3: 0.3, 20: 0.1}
    keys    in how many groups a unit's rows are, likewise; 1 if left out
    groups  how many groups there are, where the query does not say
    """

    units: Exact
    rows: Any
    keys: Any = 1
    groups: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", checks.positive(self.units, "units"))
        for name in ("rows", "keys"):
            object.__setattr__(self, name, _shares(getattr(self, name), f"{name} of hints"))
        if self.groups is not None:
            object.__setattr__(self, "groups", checks.whole(self.groups, "groups", most=2**40))

    def profile(self, name: str) -> Profile:
        """How many units have how many rows, or groups."""
        pairs: tuple[tuple[Fraction, Fraction], ...] = getattr(self, name)
        sizes = np.array([float(size) for size, _ in pairs])
        return Profile(sizes, np.array([float(share * self.units) for _, share in pairs]))

    def lengths(self, kind: str) -> tuple[Profile, Profile]:
        """The lengths of units' vectors and the rows behind them, if who has more rows is in more groups, evenly."""
        ends, rows, keys = paired(self.profile("rows"), self.profile("keys"))
        units = np.diff(ends, prepend=0.0)
        within = np.clip(keys, 1.0, np.maximum(rows, 1.0))
        return Profile(rows / np.sqrt(within) if kind == "gaussian" else rows, units), Profile(rows, units)


def _shares(given: Any, name: str) -> tuple[tuple[Fraction, Fraction], ...]:
    """Sizes with the share of the units that have them, from the smallest up; shares are made to add up to 1."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, tuple | list):
        pairs = [tuple(each) if isinstance(each, tuple | list) else () for each in given]
    else:
        pairs = [(given, 1)]
    if not pairs or len(pairs) > 1000 or any(len(each) != 2 for each in pairs):
        raise checks.refuse(name, given, "a number, or shares of the units by number, such as {1: 0.7, 5: 0.3}")
    found = [(checks.positive(size, name), checks.positive(share, f"share in {name}")) for size, share in pairs]
    if len({size for size, _ in found}) < len(found):
        raise checks.refuse(name, given, "each number once")
    total = sum(share for _, share in found)
    return tuple(sorted((size, share / total) for size, share in found))


def limits(plan: Sql, hints: Hints) -> Limits:
    """The limits at which loss and noise are least together, by the hints."""
    by_keys = hints.profile("keys")
    start = advice.keys_limit(by_keys, unclip=plan.unclip) if plan.questions.votes else Limits()
    about, masses = hints.lengths(plan.blur.kind)
    typical = masses.total / _groups(plan, hints)
    longest = about.largest
    steps = math.ceil(math.log(max(longest, 1.0)) / math.log(_FINER)) + 1
    candidates = [*(min(_FINER**i, longest) for i in range(steps)), *map(float, about.middles)]
    rows = advice.short(advice.best_length(plan, start, about, masses, typical, candidates))
    return Limits(rows=rows, keys=start.keys, most_keys=start.most_keys, values=max(start.keys, 1))


def loss(plan: Sql, hints: Hints, chosen: Limits) -> float:
    """The share of all rows that these limits are expected to take away."""
    about, masses = hints.lengths(plan.blur.kind)
    return about.lost(float(chosen.rows), masses)


def _groups(plan: Sql, hints: Hints) -> int:
    if hints.groups is not None:
        return hints.groups
    if plan.front.groups is None:
        raise ArgumentError("groups of hints is missing: say about how many groups there are, the query does not.")
    return plan.front.groups
