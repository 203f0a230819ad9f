"""Unknown keys by weighted contributions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from .. import checks, events, exact, grid
from ..accounting import gdp
from ..checks import Exact
from ..errors import ArgumentError
from ..laws import SCALES, Integers, RoundedGaussian, RoundedLaplace
from ..plan import Run, rehearsed_above
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..schema import COMMON_KEYS
from ..units import Unit
from .keys import Keys, Label, Selected, blocks, least_threshold

_FINE = 20  # the weight of a unit's only key is 2^20 steps
_ONE_BY_ONE = 64  # numbers of keys whose thresholds are taken one by one; beyond, in runs of 1/64 of their size


@record("plan-weighted-keys/1")
@dataclass(frozen=True, kw_only=True)
class WeightedKeys(Keys):
    """Select by weight: a unit with t keys gives each of them 1/sqrt(t), so that units with few keys are not drowned in
    noise that is meant for units with many. A noisy weight above the threshold lets the key out. Counts, if asked for,
    are a release of their own over the keys that are out, with count_epsilon paid on top.

    Guarantee: (epsilon, delta)-DP for the keys, and count_epsilon more for their counts.
    Needs: a key column; a group of 1. Units with more than per_unit keys lose some, at random.
    Paper: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020 (weighted Gaussian); Swanberg, Desfontaines, Haney
        2023.

    Proof sketch: in steps, a unit with t <= per_unit keys gives w(t) = floor(2^20/sqrt(t)) to each: t w(t)^2 <= 4^20,
    so one unit moves the weights by at most 2^20 in L2; a replaced one by sqrt(2) 2^20, as weights are not negative.
    Keys that both neighbours hold get the Gaussian mechanism with half of delta. Keys that only one holds are those of
    the changed unit alone: t of them at w(t), which all stay below the threshold but for the other half of delta, for
    every t up to per_unit, computed from the law that is drawn. These parts are independent and differ by at most
    delta/2 in total variation (see ThresholdKeys). Given that none of those keys shows, the keys that are out are known
    to both sides, and their counts move by at most per_unit in L1 (twice that under replace).
    """

    count_epsilon: Exact = field(default=None, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_groups()
        if self.count_epsilon is not None:
            object.__setattr__(self, "count_epsilon", checks.epsilon(self.count_epsilon, "count_epsilon"))
        largest = max(self._sigma, 2**_FINE if self.count_epsilon is None else 2 * self._count_scale)
        if largest > SCALES[1] or self._sigma < SCALES[0]:
            raise ArgumentError("the noise would be out of range: give a larger epsilon, or a smaller per_unit.")
        _ = self.threshold_steps

    @property
    def key_delta(self) -> Fraction:
        """The part of delta that keys of one neighbour alone may show with."""
        return Fraction(self.delta) / 2

    @cached_property
    def _multiplier(self) -> Fraction:
        return gdp.least_multiplier(self.epsilon, self.delta - self.key_delta)

    @property
    def event(self) -> events.Event:
        relation = self.unit.change
        parts: list[events.Event] = [
            events.Gaussian(multiplier=self._multiplier, relation=relation),
            events.Approximate(epsilon=0, delta=self.key_delta, relation=relation),
        ]
        if self.count_epsilon is not None:
            parts.append(events.Laplace(epsilon=self.count_epsilon, relation=relation))
        return events.Bundle(tuple(parts))

    @property
    def _sigma(self) -> float:
        return exact.sqrt_above(self.sides * Fraction(4) ** _FINE * self._multiplier**2)

    @cached_property
    def law(self) -> RoundedGaussian:
        """The law of the noise on the weights, in steps of 2^-20."""
        return RoundedGaussian(self._sigma)

    @cached_property
    def threshold_steps(self) -> int:
        """The largest over t; t keys in a run are taken at the height of its first and the number of its last."""
        runs = reversed(list(blocks(self.per_unit, _ONE_BY_ONE)))
        return least_threshold(self.law, self.key_delta, tuple((weight(first), last) for first, last in runs))

    @property
    def threshold(self) -> float:
        """A noisy weight must reach it."""
        return float(self.threshold_steps * 2.0**-_FINE)

    @property
    def rehearsal_rows(self) -> int:
        return rehearsed_above(self.threshold, 2 * COMMON_KEYS)

    @property
    def _count_scale(self) -> Fraction:
        return self.sides * self.per_unit / Fraction(self.count_epsilon)

    @cached_property
    def _count_exponent(self) -> int:
        return grid.exponent_for(self._count_scale, largest=Fraction(1), finer=grid.FINER_COUNTS, coarsest=0)

    @cached_property
    def count_law(self) -> RoundedLaplace:
        """The law of the noise on the counts, in steps of their own grid."""
        return RoundedLaplace(exact.float_above(grid.steps(self._count_scale, self._count_exponent)))

    def _run(self, rows: Rows, run: Run) -> Selected:
        units, keys = self._held(rows, run)
        brought = np.bincount(units, minlength=rows.unit_count)[units]
        # As floats these are whole and their sums below 2^53 for up to 2^33 pairs, so they are exact.
        weights = np.bincount(keys, weights=self._weights[brought])
        counts = np.bincount(keys)
        codes = np.flatnonzero(counts)
        noisy = weights[codes].astype(np.int64) + run.noise.draw(self.law, codes.size)
        out = codes[noisy >= self.threshold_steps]
        if self.count_epsilon is None:
            return self._named(rows, out)
        exponent = self._count_exponent
        noisy = (counts[out].astype(np.int64) << -exponent) + run.noise.draw(self.count_law, out.size)
        return self._named(rows, out, grid.to_float(noisy, exponent))

    def finish(self, raw: Selected) -> Selected | list[Label]:
        return list(raw) if self.count_epsilon is None else raw

    @cached_property
    def _weights(self) -> Integers:
        return np.array([0, *(weight(t) for t in range(1, self.per_unit + 1))], dtype=np.int64)

    def expected_error(self, alpha: float) -> float | None:
        if self.count_epsilon is None:
            return None
        return float((self.count_law.half_width(alpha) + 0.5) * 2.0**self._count_exponent)

    def error(self, raw: Selected, alpha: float) -> dict[Label, float] | None:
        width = self.expected_error(alpha)
        return None if width is None else dict.fromkeys(raw, width)

    def keep_chance(self, n: int, keys: int = 1) -> float:
        """The probability that a key of n units is kept, each of them with so many keys."""
        return float(self.law.sf(np.float64(self.threshold_steps - n * weight(min(keys, self.per_unit)) - 1)))

    def explain(self) -> list[str]:
        steps = [
            f"weigh every key of {self.column}: a unit gives 1/sqrt(t) to each of its t keys, at most {self.per_unit} "
            "of them, chosen at random",
            f"add Gaussian noise of standard deviation {self.law.std * 2.0**-_FINE:.6g} to each weight",
            f"keep the keys that reach {self.threshold:.6g}: keys of one neighbour alone stay out but for probability "
            f"{float(self.key_delta):.3g}",
        ]
        if self.count_epsilon is None:
            return [*steps, "name the kept keys in sorted order, nothing else"]
        return [*steps, f"count their units with Laplace noise, for epsilon = {float(self.count_epsilon):.6g} more"]

    @classmethod
    def sample(cls) -> WeightedKeys:
        return cls(column="query", protects=Unit("user:id"), epsilon=1, delta=0.1, per_unit=3, count_epsilon=0.5)


def weight(keys: int) -> int:
    """floor(2^20 / sqrt(keys))."""
    return math.isqrt(4**_FINE // keys)
