"""Quantiles of a column by the exponential mechanism over an interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, events, grid, schema
from ..checks import Exact
from ..grid import Integers
from ..plan import Plan, Run
from ..questions import ANY_ORDER, CLIP, PRICE, REACH
from ..record import record
from ..rows import Rows
from ..schema import Column
from ..units import Unit, rows_or_users
from . import ranking
from .ranking import RankedRows

_FINER = 30  # the default step is about 2^-30 of the interval's width
_FLOAT = 52  # and no finer than float64 is at the interval's larger end
_SHARES = 2**31  # r * per_unit * (weight of a whole row): times 2^31 units it stays within 2^62
_MOST_RANKS = 1000


@record("plan-quantile/1")
@dataclass(frozen=True, kw_only=True)
class Quantile(Plan[Rows, NDArray[np.float64]]):
    """A q-quantile of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    q         from 0 to 1; a list of them shares epsilon equally, and the answers are put in order (raw keeps them)
    step      answers are whole multiples of it: a power of two, given ones are rounded down to one. 1 suits whole
              numbers, and a coarser grid has the better promise: it grows with the log of the number of steps.
              Without it, about 2^-30 of the width
    per_unit  a unit's rows count with weight min(1, per_unit / its rows) each, so with at most per_unit in all

    Guarantee: epsilon-DP, and epsilon-bounded-range; several quantiles are as many such selections of equal share.
    Needs: an interval known in public.
    Paper: Smith 2011 (the mechanism); McSherry, Talwar 2007 (the exponential mechanism); Durfee, Rogers 2019 (range).

    Proof sketch: a point g of the grid has the score -max(0, a - qN, qN - (a + e)), from the weight a below it and e at
    it. Between neighbours all changes of score lie in an interval of length span * per_unit * group; `ranking` proves
    it and gives span: 2 max(q, 1 - q) for add-remove and zero-out, 2 for replace, 1 for minimum and maximum. So the
    exponential mechanism at rate epsilon over that length is epsilon-bounded-range. Values are clamped and rounded to
    the grid row by row; a unit's weights are rounded down, so they sum to at most per_unit; all scores are exact.
    """

    column: str
    lower: Exact = field(metadata=CLIP)
    upper: Exact = field(metadata=CLIP)
    q: Any = field(default=Fraction(1, 2), metadata=ANY_ORDER)
    epsilon: Exact = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)
    per_unit: int = field(default=1, metadata=REACH)
    step: Exact = field(default=None, metadata=PRICE)
    family = "quantile"

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        low, high = checks.interval(self.lower, self.upper)
        several = isinstance(self.q, tuple | list)
        if several and not 1 <= len(self.q) <= _MOST_RANKS:
            raise checks.refuse("q", self.q, f"a number from 0 to 1, or a list of 1 to {_MOST_RANKS} of them")
        q = tuple(ranking.rank(each, "q") for each in self.q) if several else ranking.rank(self.q, "q")
        if several and len(set(self._listed(q))) < len(self.q):
            raise checks.refuse("q", self.q, "each q once")
        for name, value in (("lower", low), ("upper", high), ("q", q), ("epsilon", checks.epsilon(self.epsilon))):
            object.__setattr__(self, name, value)
        rows_or_users(self.protects, "protects")
        object.__setattr__(self, "per_unit", checks.whole(self.per_unit, "per_unit", most=2**18))
        if self.unit.column is None and self.per_unit != 1:
            raise checks.refuse("per_unit", self.per_unit, "1 where each row is its own unit")
        finest = max(each.denominator for each in self.ranks)
        if finest * self.per_unit > 2**22:
            raise checks.refuse("per_unit", self.per_unit, f"less, or a rounder q: q has the denominator {finest}")
        if self.epsilon / len(self.ranks) < checks.EPSILON_RANGE[0]:
            raise checks.refuse("q", self.q, "fewer quantiles, or a larger epsilon: each has at least 1e-9")
        object.__setattr__(self, "step", Fraction(2) ** self._checked_exponent())

    @staticmethod
    def _listed(q: Any) -> tuple[Fraction, ...]:
        return q if isinstance(q, tuple) else (q,)

    def _checked_exponent(self) -> int:
        width, largest = (
            grid.floor_log2(self.upper - self.lower),
            grid.floor_log2(max(abs(self.lower), abs(self.upper))),
        )
        if self.step is None:
            name, exponent = "lower", max(width - _FINER, largest - _FLOAT)
        else:
            name, exponent = "step", grid.floor_log2(checks.positive(self.step, "step"))
        low, high = grid.ends(self.lower, self.upper, exponent)
        if low >= high or exponent > width + 1:
            allowed = "an interval and a step such that at least two multiples of the step lie in the interval"
            raise checks.refuse(name, getattr(self, name), allowed)
        if exponent < max(width - 56, largest - 60):
            raise checks.refuse(name, self.step, "a step of at least 2^-56 of the width and 2^-60 of the larger end")
        return exponent

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def ranks(self) -> tuple[Fraction, ...]:
        """The q of each selection."""
        return self._listed(self.q)

    @property
    def event(self) -> events.Event:
        times = len(self.ranks)
        single = events.Exponential(epsilon=self.epsilon / times, relation=self.unit.change)
        return single if times == 1 else events.Repeat(single, times)

    @property
    def columns(self) -> dict[str, Column]:
        return {self.column: schema.real(self.lower, self.upper)}

    @cached_property
    def exponent(self) -> int:
        """The step is 2^exponent."""
        return grid.floor_log2(self.step)

    @cached_property
    def _ends(self) -> tuple[int, int]:
        return grid.ends(self.lower, self.upper, self.exponent)

    @property
    def points(self) -> int:
        """How many answers there are."""
        return self._ends[1] - self._ends[0] + 1

    @cached_property
    def _whole_row(self) -> int:
        """The weight of a row that counts in full: 1 where rows are units, else fine enough to be shared out."""
        if self.unit.column is None:
            return 1
        return _SHARES // (max(each.denominator for each in self.ranks) * self.per_unit)

    def rate(self, q: Fraction) -> Fraction:
        """Log-odds per step of score: a step is 1/q.denominator of the least weight."""
        span = ranking.span(q, self.unit.change) * q.denominator * self._whole_row
        return Fraction(self.epsilon / len(self.ranks) / (span * self.per_unit * self.unit.group))

    def ranked(self, rows: Rows) -> RankedRows:
        series, (low, high) = rows[self.column], self._ends
        places = grid.quantise(series.values[series.valid], self.lower, self.upper, self.exponent)
        places = np.clip(places, low, high) - low  # once more in integers: float64 rounds ends of many bits
        weights = None if self.unit.column is None else self._weights(rows.units[series.valid], rows.unit_count)
        return RankedRows.of(self.points, places, weights)

    def _weights(self, units: Integers, count: int) -> Integers:
        """Each row's weight, rounded down: a unit's rows sum to at most per_unit whole rows."""
        owned = np.bincount(units, minlength=count).astype(np.int64)
        return (np.minimum(owned, self.per_unit) * self._whole_row // np.maximum(owned, 1))[units]

    def _run(self, rows: Rows, run: Run) -> NDArray[np.float64]:
        ranked, low = self.ranked(rows), self._ends[0]
        chosen = [low + ranked.choose(q, self.rate(q), run) for q in self.ranks]
        return grid.to_float(np.array(chosen, dtype=np.int64), self.exponent)

    def finish(self, raw: NDArray[np.float64]) -> Any:
        """One number; of several quantiles a mapping, in which a larger q never has the smaller answer."""
        if isinstance(self.q, Fraction):
            return float(raw[0])
        answers = dict(zip(sorted(self.ranks), np.sort(raw).tolist(), strict=True))
        return {float(q): answers[q] for q in self.ranks}

    def rank_error(self, alpha: float) -> float:
        """With probability 1 - alpha, the answer is an exact quantile of another rank: q n is off by at most so many
        rows (by weight, after clamping and rounding to steps). Of several quantiles, for all of them at once.

        It is about ranks: how far the answer is from the true quantile, only the data could tell.
        """
        share = alpha / len(self.ranks)
        return max(
            ranking.rank_error(self.points, self.rate(q), share) / (q.denominator * self._whole_row) for q in self.ranks
        )

    def explain(self) -> list[str]:
        listed = ", ".join(f"{float(q):g}" for q in self.ranks[:4]) + (", ..." if len(self.ranks) > 4 else "")
        return [
            f"clamp {self.column} to [{float(self.lower):g}, {float(self.upper):g}], on {self.points} points of step "
            f"2^{self.exponent}" + (f"; a unit counts as at most {self.per_unit} row(s)" if self.unit.column else ""),
            f"score each point by how many rows its rank is away from q = {listed}; one change of the unit spreads the "
            f"scores by at most {float(max(self._spreads)):g}",
            f"draw a point by the exponential mechanism, {len(self.ranks)} time(s) with epsilon "
            f"{float(self.epsilon / len(self.ranks)):.4g}: the rank is within {self.rank_error(0.05):.4g} rows at 95 %",
        ]

    @property
    def _spreads(self) -> list[Fraction]:
        return [ranking.span(q, self.unit.change) * self.per_unit * self.unit.group for q in self.ranks]

    @classmethod
    def sample(cls) -> Quantile:
        return cls(column="age", lower=0, upper=120, q=(0.5, 0.9), epsilon=1, protects=Unit("user:id"), per_unit=2)


def median(column: str, lower: Any, upper: Any, unit: Unit, *, epsilon: Any, **more: Any) -> Quantile:
    """The value with half of the rows on either side."""
    return Quantile(column=column, lower=lower, upper=upper, q=Fraction(1, 2), epsilon=epsilon, protects=unit, **more)


def minimum(column: str, lower: Any, upper: Any, unit: Unit, *, epsilon: Any, **more: Any) -> Quantile:
    """A value that few rows lie below.

    A poor question to ask: the least value may be one person's alone, so privacy hides it, and every point from `lower`
    up to it is as good an answer. A small quantile, such as q = 0.01, is about many rows and comes out far better.
    """
    return Quantile(column=column, lower=lower, upper=upper, q=Fraction(0), epsilon=epsilon, protects=unit, **more)


def maximum(column: str, lower: Any, upper: Any, unit: Unit, *, epsilon: Any, **more: Any) -> Quantile:
    """A value that few rows lie above. As poor a question as the minimum, from the other end: ask for q = 0.99."""
    return Quantile(column=column, lower=lower, upper=upper, q=Fraction(1), epsilon=epsilon, protects=unit, **more)
