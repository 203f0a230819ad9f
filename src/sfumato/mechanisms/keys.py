"""What the selections of unknown keys share: who brings which keys, how many keys a change reaches, and thresholds.

The keys of a column (queries typed, shops visited, words written) are private: that a key occurs at all may tell on the
one unit that has it. A selection lets out the keys that enough units share. A key that no row holds never leaves, so
keys that only one of two neighbours has are what delta pays for.

Every unit brings its different keys, and of more than `per_unit` a uniformly random choice of so many. Choices of
different units are independent, so neighbours can be compared given the choices of everybody else, and a mixture over
the choices of the changed unit is no worse than its worst part (joint convexity).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact
from ..checks import Exact
from ..laws import Integers, Law
from ..plan import Plan, Run, rehearsed_above
from ..questions import PRICE, REACH
from ..rows import Rows
from ..schema import COMMON_KEYS, Column, key
from ..units import Unit, rows_or_users

Label = int | float | str
Selected = dict[Label, float | bool]
"""A noisy count by key, or True where no counts leave."""
Cases = tuple[tuple[int, int], ...]
"""What new keys one change may bring: (their height in steps, how many of them)."""


@dataclass(frozen=True, kw_only=True)
class Keys(Plan[Rows, Selected]):
    """Which keys of a column enough units share.

    column    the key column
    protects  whose presence is hidden
    per_unit  how many keys a unit may bring, at most
    """

    column: str
    protects: Unit = field(metadata=PRICE)
    epsilon: Exact = field(metadata=PRICE)
    delta: Exact = field(default=None, metadata=PRICE)
    per_unit: int = field(default=1, metadata=REACH)
    family = "keys"
    boxes = (14,)  # bins that come from the data

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        rows_or_users(self.protects, "protects")
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        object.__setattr__(self, "delta", checks.delta(self.delta))
        object.__setattr__(self, "per_unit", checks.whole(self.per_unit, "per_unit", most=2**18))
        if self.protects.column is None and self.per_unit != 1:
            raise checks.refuse("per_unit", self.per_unit, "1 where each row is its own unit: it holds one key")

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def columns(self) -> dict[str, Column]:
        return {self.column: key()}

    @property
    def rehearsal_rows(self) -> int:
        """Enough that the common keys of made-up rows pass. About: where the threshold lies exactly, the noise says."""
        brought = self.per_unit * self.unit.group
        about = brought * (1 + math.log(brought / float(self.delta)) / float(self.epsilon))
        return rehearsed_above(about, 2 * COMMON_KEYS)

    @property
    def sides(self) -> int:
        """A unit that is replaced leaves its old keys and joins new ones; otherwise it only joins, or only leaves."""
        return 2 if self.unit.change == "replace" else 1

    def _refuse_groups(self) -> None:
        if self.unit.group > 1:
            raise checks.refuse(
                "protects", self.unit, "a unit with group = 1: for groups use ThresholdKeys, whose threshold knows them"
            )

    def _held(self, rows: Rows, run: Run) -> tuple[Integers, Integers]:
        """(unit, code of key) of every key that counts: each pair once, at most `per_unit` of them for a unit."""
        series = rows[self.column]
        units, codes = rows.units[series.valid], series.values[series.valid]
        if self.unit.column is None:
            return units, codes
        across = 1 if series.keys is None else max(len(series.keys), 1)  # more than any code
        pairs = np.sort(units * np.int64(across) + codes)
        pairs = pairs[_changes(pairs)]
        owners, codes = pairs // across, pairs % across
        # Ranked by a uniformly random order of all pairs: each unit's own pairs are in random order, independently.
        order = np.argsort(owners * np.int64(pairs.size) + run.noise.permutation(pairs.size))
        owners, codes = owners[order], codes[order]
        place, starts = np.arange(pairs.size), np.flatnonzero(_changes(owners))
        first = place - np.repeat(starts, np.diff(np.append(starts, pairs.size))) < self.per_unit
        return owners[first], codes[first]

    def _named(self, rows: Rows, codes: Integers, counts: NDArray[np.float64] | None = None) -> Selected:
        """What leaves, in the order of the labels. (The order of codes is data.)"""
        labels = rows[self.column].label(codes)
        beside = [True] * len(labels) if counts is None else counts.tolist()
        chosen = dict(zip(labels, beside, strict=True))
        return {label: chosen[label] for label in sorted(chosen, key=lambda label: (isinstance(label, str), label))}


def _changes(ranked: Integers) -> NDArray[np.bool_]:
    """Where a sorted array holds a value for the first time."""
    return np.append(True, ranked[1:] != ranked[:-1]) if ranked.size else np.zeros(0, dtype=np.bool_)


def tally(codes: Integers) -> tuple[Integers, Integers]:
    """The codes that occur, and how often."""
    counts = np.bincount(codes).astype(np.int64)
    present = np.flatnonzero(counts)
    return present, counts[present]


@lru_cache(maxsize=256)
def least_threshold(law: Law, delta: Exact, cases: Cases) -> int:
    """The least number of steps that, in each case, all of the new keys stay below together but for probability delta.

    A key of height h is at or above the threshold t when its noise is at least t - h, which is half the two-sided tail:
    p = P(|X| >= t - h)/2. Certified from the law that is drawn, in integers: (1 - p)^m >= 1 - delta.
    """
    threshold = 0
    for height, many in sorted(
        cases, key=lambda case: -_about(law, delta, *case)
    ):  # most often only the first raises it
        if _stay_below(law, threshold - height, many, delta):
            continue
        low, high = max(threshold - height, 0), max(threshold - height, 0) + 1  # of t - h
        while not _stay_below(law, high, many, delta):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _stay_below(law, middle, many, delta) else (middle, high)
        threshold = height + high
    return threshold


def _about(law: Law, delta: Exact, height: int, many: int) -> float:
    """About the threshold of one case."""
    about = law.invert(np.array([2 * float(delta) / many]))
    return height + (0.0 if about is None else float(about[0]))


_SURE = 1e-6  # floats are right to far more digits than this


def _stay_below(law: Law, above: int, many: int, delta: Exact) -> bool:
    """Do `many` independent noises all stay below `above` steps, with probability 1 - delta at least?"""
    if above < 1:
        return False
    # 1 - m p <= (1 - p)^m <= exp(-m p): floats decide, but for a narrow strip around the limit.
    chance = many * float(law.tail(np.float64(above))) / 2
    if chance * (1 + _SURE) <= float(delta):
        return True
    if chance * (1 - _SURE) >= -math.log1p(-float(delta)):
        return False
    bits = math.ceil(1 / delta).bit_length() + 2 * many.bit_length() + 64
    left = exact.enclose(1, bits) - law.enclose_tail(above, bits + 1).to(bits).over(2)
    all_left, times = exact.enclose(1, bits), many
    while times:
        all_left = all_left * left if times % 2 else all_left
        left, times = left * left, times // 2
    return all_left.lo >= exact.enclose(1 - delta, bits).hi


def blocks(last: int, fine: int) -> Iterable[tuple[int, int]]:
    """1 to `last` in runs (first, last): one by one up to `fine`, then in runs that grow with them."""
    first = 1
    while first <= last:
        end = min(last, first + first // fine)
        yield first, end
        first = end + 1
