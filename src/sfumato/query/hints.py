"""Limits from what is publicly known of the units: an older survey, a similar data set, how the service works.

Hints are public fields, so choosing limits by them costs nothing; the same objective as the adviser's weighs what the
limits take against the noise they need. Wrong hints cost accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..checks import Exact
from ..errors import ArgumentError
from ..record import record
from .advice import MOST_ROWS, UNEVEN, short, tail_of
from .aggregates import VOTES
from .limits import MOST_KEYS, Limits
from .tails import Aim, Floats, Tail, best

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

    def lengths(self, kind: str) -> Tail:
        """How long units' vectors are, if who has more rows is in more groups, evenly."""
        ends, (rows, keys) = _paired(self.rows, self.keys)
        within = np.clip(keys, 1.0, np.maximum(rows, 1.0))
        return tail_of(rows, ends * float(self.units), rows / np.sqrt(within) if kind == "gaussian" else rows)

    def groups_of_units(self, kind: str) -> Tail:
        """In how many groups units are."""
        sizes = np.array([float(size) for size, _ in self.keys])
        units = np.array([float(share * self.units) for _, share in self.keys])
        return tail_of(sizes, units, np.sqrt(sizes) if kind == "gaussian" else sizes)


def _paired(*shares: Sequence[tuple[Fraction, Fraction]]) -> tuple[Floats, list[Floats]]:
    """Several sizes of the same units, the largest of each with the largest of the others: shares, and sizes."""
    ends = [np.cumsum([float(share) for _, share in each]) for each in shares]
    every = np.unique(np.round(np.concatenate(ends), 12))
    places = [np.minimum(np.searchsorted(end, every - 1e-9), end.size - 1) for end in ends]
    sizes = [np.array([float(size) for size, _ in each])[place] for each, place in zip(shares, places, strict=True)]
    return np.diff(every, prepend=0.0), sizes


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
    kind, design = plan.blur.kind, plan.design(Limits())
    spread = UNEVEN if plan.front.keys else 0.0
    share, keys, most = 1 / _groups(plan, hints), 1, MOST_KEYS

    def aim(question: str) -> Aim:
        def noise(length: float) -> float:
            return float(plan.blur.scale(short(length), design.shares[question]))

        return Aim(noise, lambda _: math.inf, share, spread)

    if plan.questions.votes:
        by_groups = hints.groups_of_units(kind)
        keys = round(by_groups.mass_at(best(by_groups, list(map(float, by_groups.lengths)), aim(VOTES))))
        most = max(round(float(by_groups.masses[-1])), keys)
    tail = hints.lengths(kind)
    longest = float(tail.lengths[-1])
    steps = math.ceil(math.log(max(longest, 1.0)) / math.log(_FINER)) + 1
    least = min(design.shares.values())
    candidates = [*(min(_FINER**i, longest) for i in range(steps)), *map(float, tail.lengths)]
    candidates = [each for each in candidates if plan.blur.scale(short(each), least) <= MOST_ROWS] or [1.0]
    rows = short(best(tail, candidates, aim(next(iter(plan.questions)))))
    return Limits(rows=rows, keys=keys, most_keys=most, values=min(max(keys, math.ceil(rows)), 2**18))


def loss(plan: Sql, hints: Hints, chosen: Limits) -> float:
    """The share of all rows that these limits are expected to take away."""
    tail = hints.lengths(plan.blur.kind)
    return float(tail.cut(float(chosen.rows))[0]) / tail.total


def _groups(plan: Sql, hints: Hints) -> int:
    if hints.groups is not None:
        return hints.groups
    if plan.front.groups is None:
        raise ArgumentError("groups of hints is missing: say about how many groups there are, the query does not.")
    return plan.front.groups
