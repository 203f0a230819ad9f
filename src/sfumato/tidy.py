"""Tables of counts that look like counts: no negative cells, whole numbers, cells that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import bounds, checks
from .bounds import CellCounts, Measured
from .checks import Exact
from .events import Event
from .mechanisms.additive import Additive
from .mechanisms.laplace import Laplace
from .plan import Plan, Run
from .record import record
from .rows import Rows
from .strategies import Prefixes, Ranges
from .units import Unit

Floats = NDArray[np.float64]
KEPT = "kept"


@record("plan-tidy/1")
@dataclass(frozen=True, kw_only=True)
class Tidy(Plan[Rows, NDArray[np.float64]]):
    """The same release as `plan`, shown as a table that could be one of real counts.

    >>> from sfumato import Tidy, Unit, bounds, mechanisms
    >>> histogram = bounds.histogram("ward", ["east", "west"], Unit())
    >>> noisy = mechanisms.Geometric(query=histogram, epsilon=1)
    >>> Tidy(plan=noisy, nonnegative=True).event == noisy.event  # being tidy costs nothing
    True

    nonnegative  no number below 0
    whole        whole numbers
    total        the cells add up to this public number, or to what they add up to themselves ("kept"), also when they
                 are whole; for running totals: where they end
    monotone     the numbers are running totals, which never fall

    Guarantee: that of `plan`, whose event this is.
    Needs: a plan that adds noise to a table of counts; a `total` that is public.
    Paper: Hay, Rastogi, Miklau, Suciu 2010 (consistency); Duchi, Shalev-Shwartz, Singer, Chandra 2008 (the projection
        onto numbers >= 0 of a given sum); Barlow, Bartholomew, Bremner, Brunk 1972 (isotonic regression).

    Proof sketch: post-processing: `finish` reads the raw release and public fields alone. The raw numbers stay in the
    release, and `untouched` shows them. They have no bias; tidy ones do: cells that are 0 in truth come out above 0 on
    average, and where a total is held, others pay for that. Adding up many tidy cells adds up their biases.
    """

    plan: Plan[Rows, NDArray[np.float64]]
    nonnegative: bool = True
    whole: bool = False
    total: Exact = None
    monotone: bool = False
    wraps = True
    boxes = (11,)  # cosmetic fixes

    def __post_init__(self) -> None:
        if not isinstance(self.plan, Additive) or not isinstance(self.plan.query, CellCounts | Measured):
            raise checks.refuse("plan", self.plan, "a plan with noise on a table of counts, such as a histogram")
        for name in ("nonnegative", "whole", "monotone"):
            checks.instance(getattr(self, name), bool, name, "True or False")
        workload = getattr(self.plan.query, "workload", None)  # None: the cells of a histogram
        if self.total is not None and not self.monotone and isinstance(workload, Prefixes | Ranges):
            raise checks.refuse("total", self.total, "None: these are no cells that add up; monotone=True holds an end")
        if self.total is not None and not self._kept:
            total = checks.bound(self.total, "total")
            whole = total.denominator == 1 and abs(total) <= 2**53  # beyond, floats do not add up exactly
            if (self.nonnegative and total < 0) or (self.whole and not whole):
                allowed = "None, 'kept', or a public total that cells of this kind can add up to"
                raise checks.refuse("total", self.total, allowed)
            object.__setattr__(self, "total", total)

    @property
    def _kept(self) -> bool:
        return isinstance(self.total, str) and self.total == KEPT

    @property
    def unit(self) -> Unit:
        return self.plan.unit

    @property
    def event(self) -> Event:
        return self.plan.event

    @property
    def delta(self) -> Fraction:
        return self.plan.delta

    def _run(self, rows: Rows, run: Run) -> NDArray[np.float64]:
        return self.plan._run(rows, run)

    def untouched(self, raw: NDArray[np.float64]) -> Any:
        """What `plan` itself would show: no bias, and no promise to look like counts."""
        return self.plan.finish(raw)

    def finish(self, raw: NDArray[np.float64]) -> dict[Any, Any]:
        table: Mapping[Any, float] = self.plan.finish(raw)
        values = np.array(list(table.values()), dtype=np.float64)
        tidy = self._running(values) if self.monotone else self._cells(values)
        shown = [int(value) for value in tidy.tolist()] if self.whole else tidy.tolist()
        return dict(zip(table, shown, strict=True))

    def afterwards(self) -> tuple[str, ...]:
        return "histograms made non-negative, whole and consistent", *super().afterwards()

    def _end(self, noisy: float) -> float | None:
        if self.total is None:
            return None
        end = noisy if self._kept else float(self.total)
        end = max(end, 0.0) if self.nonnegative else end
        return float(np.rint(end)) if self.whole else end

    def _cells(self, values: Floats) -> Floats:
        total = self._end(float(values.sum()))
        if total is None:
            values = np.maximum(values, 0.0) if self.nonnegative else values
            return np.rint(values) if self.whole else values
        values = onto_simplex(values, total) if self.nonnegative else values + (total - values.sum()) / values.size
        return largest_remainders(values, int(total)) if self.whole else values

    def _running(self, values: Floats) -> Floats:
        """Nearest running totals: those without bounds, cut off at the bounds. The end is held where one is asked."""
        end = self._end(float(values[-1]))
        rising = isotonic(values if end is None else values[:-1])
        rising = np.maximum(rising, 0.0) if self.nonnegative else rising
        rising = rising if end is None else np.append(np.minimum(rising, end), end)
        return np.rint(rising) if self.whole else rising

    def error(self, raw: NDArray[np.float64], alpha: float) -> Any:
        """The error bars of the untouched numbers."""
        return self.plan.error(raw, alpha)

    def expected_error(self, alpha: float) -> float | None:
        return self.plan.expected_error(alpha)

    def explain(self) -> list[str]:
        steps = ["the nearest running totals that never fall"] if self.monotone else []
        steps += ["no number below 0"] if self.nonnegative else []
        if self.total is not None:
            total = "their own noisy total" if self._kept else f"the public total {float(self.total):g}"
            steps.append(f"{'running totals end at' if self.monotone else 'cells add up to'} {total}")
        steps += ["whole numbers"] if self.whole else []
        return [
            *self.plan.explain(),
            f"tidy what came out, which is free: {'; '.join(steps) or 'nothing'}",
            "tidy numbers are biased; error bars are those of the untouched ones, which stay in the release",
        ]

    @classmethod
    def sample(cls) -> Tidy:
        wards = bounds.histogram("ward", ("east", "north", "west"), Unit())
        return cls(plan=Laplace(query=wards, epsilon=1), whole=True, total="kept")


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest point with no coordinate below 0 and this sum: all are lowered alike, and cut off at 0.

    With the k largest kept, the cut is (their sum - total)/k; k is the largest for which the k-th stays above it.
    """
    if total <= 0:
        return np.zeros(values.size)
    falling = np.sort(values)[::-1]
    cuts = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling > cuts).max(initial=0))
    return np.maximum(values - cuts[last], 0.0)


def largest_remainders(values: Floats, total: int) -> Floats:
    """Whole numbers next to values that add up to the total: the largest remainders are rounded up."""
    low = np.floor(values)
    order = np.argsort(low - values, kind="stable")
    short = total - int(low.sum())
    while short > 0:  # once, but for values that add up to the total by rounding only
        up = order[: min(short, values.size)]
        low[up] += 1
        short -= up.size
    while short < 0:
        down = order[::-1][low[order[::-1]] > 0][:-short] if (values >= 0).all() else order[::-1][:-short]
        low[down] -= 1
        short += down.size
    return low


def isotonic(values: Floats) -> Floats:
    """The nearest numbers (least squares) that never fall: neighbours that do are pooled, until none is left."""
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        mean, count = value, 1
        while means and means[-1] >= mean:
            before = counts.pop()
            mean = (means.pop() * before + mean * count) / (before + count)
            count += before
        means.append(mean)
        counts.append(count)
    return np.repeat(np.array(means, dtype=np.float64), np.array(counts, dtype=np.int64))
