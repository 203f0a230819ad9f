"""Bounds of a column from noisy counts of powers of two."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..bounds import Powers
from ..checks import Exact
from ..questions import PRICE
from ..record import record
from ..units import Unit
from .laplace import Laplace


@record("plan-private-bounds/1")
@dataclass(frozen=True, kw_only=True)
class PrivateBounds(Laplace):
    """An interval, with powers of two as ends, that holds most values of a column.

    Every bin of `bounds.Powers` gets Laplace noise. The interval runs from the first to the last bin whose noisy count
    exceeds a threshold, which all empty bins together exceed with probability at most `failure`. Where no bin does
    (too few rows, or too small an epsilon), or zero alone, it is the smallest interval around zero. Its last part,
    `clipped`, is the noisy share of rows outside: values there will be clamped. (Values beyond 2^highest count in the
    outermost bin, so they are not in that share.)

    Guarantee: epsilon-DP for one change of the unit.
    Needs: the powers to consider, in public; about threshold rows in a bin before it is seen.
    Paper: Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020 (approximate bounds).

    Proof sketch: the noisy bins are the Laplace mechanism on a histogram in which a unit counts with at most per_unit
    rows in all; bounds, and the share clipped, are computed from the noisy bins and public fields alone.
    """

    family = ""
    query: Powers
    failure: Exact = field(default=Fraction(1, 10**6), metadata=PRICE)

    def __post_init__(self) -> None:
        checks.instance(self.query, Powers, "query", "powers of a column: private_bounds(column, unit, ...) makes it")
        super().__post_init__()
        failure = checks.delta(self.failure, "failure")
        object.__setattr__(self, "failure", failure)

    @property
    def threshold(self) -> float:
        """In rows. The noise is symmetric: P(noise > t) is half of P(|noise| > t)."""
        return self.width(min(2 * float(self.failure) / len(self.query.names), 1 - 2.0**-20))

    def finish(self, raw: NDArray[np.float64]) -> dict[str, Any]:
        lower, upper, inside = self._interval(raw)
        clipped = self._clipped(raw, inside)
        return {"lower": lower, "upper": upper, "found": bool((raw > self.threshold).any()), "clipped": clipped}

    def _interval(self, raw: NDArray[np.float64]) -> tuple[float, float, slice]:
        """The bounds, and the bins between them."""
        ends, zero = self.query.names, self.query.each_side
        seen = np.flatnonzero(raw > self.threshold)
        if not np.any(seen != zero):
            return ends[zero - 1], ends[zero + 1], slice(zero - 1, zero + 2)
        first, last = int(seen[0]), int(seen[-1])
        # A bin below zero begins at its name and ends at the next one's; above zero the other way round.
        lower = ends[first] if first <= zero else ends[first - 1]
        upper = ends[last] if last >= zero else ends[last + 1]
        return lower, upper, slice(first, last + 1)

    def _clipped(self, raw: NDArray[np.float64], inside: slice) -> float:
        """The noisy share of rows outside."""
        total = float(raw.sum())
        return min(max(1 - float(raw[inside].sum()) / total, 0.0), 1.0) if total > 0 else 0.0

    def error(self, raw: NDArray[np.float64], alpha: float) -> dict[str, float | None]:
        """Only the share has an error bar: |O/N - (O - o)/(N - n)| <= (|o| + |O/N| |n|) / (N - |n|), for noise o on the
        bins outside and n on all of them. Which bins are outside, the noise decides too, so o is bounded for every
        interval of bins at once."""
        inside, cells = self._interval(raw)[2], raw.size
        share, outside = self._clipped(raw, inside), max(cells - (inside.stop - inside.start), 1)
        out, all_ = (
            float(self.law.mixed_half_width(bins, math.sqrt(bins), 1.0, alpha / (2 * ways))) * 2.0**self.exponent
            for bins, ways in ((outside, cells * (cells + 1) // 2), (cells, 1))
        )
        total = float(raw.sum())
        width = 1.0 if total <= all_ else min(1.0, (out + share * all_) / (total - all_))
        return {"lower": None, "upper": None, "found": None, "clipped": width}

    def expected_error(self, alpha: float) -> None:
        return None

    def explain(self) -> list[str]:
        low, high = self.query.lowest, self.query.highest
        return [
            f"count the rows of {self.query.column} between powers of two, 2^{low} to 2^{high}, of either sign, and "
            f"zero: {len(self.query.names)} bins; one change of the unit moves them by {self.query.l1:g} at most",
            f"add Laplace noise of standard deviation {self.std:.6g} to each bin",
            f"bounds run from the first to the last bin above {self.threshold:.6g} rows, which empty bins exceed with "
            f"probability {float(self.failure):.3g} at most",
        ]

    @classmethod
    def sample(cls) -> PrivateBounds:
        return cls(
            query=Powers(column="age", lowest=0, highest=7, unit=Unit(change="replace")), epsilon=1, failure=0.01
        )


def private_bounds(
    column: str,
    unit: Unit,
    *,
    epsilon: Any,
    lowest: int = -10,
    highest: int = 40,
    per_unit: int = 1,
    failure: Any = Fraction(1, 10**6),
) -> PrivateBounds:
    """Bounds of a column, paid for: between powers of two from 2^lowest to 2^highest, of either sign."""
    query = Powers(column=column, lowest=lowest, highest=highest, unit=unit, per_unit=per_unit)
    return PrivateBounds(query=query, epsilon=epsilon, failure=failure)
