"""MWEM: many linear queries of a histogram, by multiplicative weights and the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .. import bounds, checks, events, exact, grid, strategies
from ..bounds import Bounded
from ..checks import Exact
from ..errors import ArgumentError
from ..laws import SCALES, Law, RoundedGaussian, RoundedLaplace
from ..plan import Plan, Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..strategies import Workload
from ..units import Unit
from .synthetic import Floats, Synthetic, Whole, answers, check_cells, check_total, coarsest, far_off, reach

_BITS = 16  # of a weight that is no short binary fraction
_LARGEST = 2**20  # weight
_WRITTEN = 2**24  # weights in all
_EXACT = 2**53  # scores are clamped here, where floats are still exact; clamping moves no two scores further apart


@record("plan-mwem/1")
@dataclass(frozen=True, kw_only=True)
class MWEM(Plan[Rows, dict[str, Any]]):
    """A made-up histogram that answers a whole workload of linear queries. In each of `rounds` rounds the query that it
    answers worst is picked, measured with noise, and learnt.

    query     the cells, such as bounds.histogram(...) or bounds.cross(...)
    epsilon   or rho: the price of the whole
    total     the number of rows where it is public (replace, zero-out); otherwise it is measured too
    passes    how often all measurements are gone through again after each new one

    Guarantee: epsilon-DP, in parts of equal epsilon; or rho-zCDP, in parts of equal rho.
    Needs: cells that each row is in one of, known in public; a workload of at most 2^24 weights.
    Paper: Hardt, Ligett, McSherry 2012; in zCDP with the bounded range of the selection: Cesar, Rogers 2021.

    Proof sketch: the histogram before a round is a function of what earlier rounds released. Put on the grid it is a
    constant g, and the scores |<w, x> - g_w| move by at most D, the most that a unit moves any of the answers <w, x>,
    since | |a| - |b| | <= |a - b|. So the selection at rate epsilon'/(2 D) is epsilon'-DP and epsilon'-bounded-range,
    and the noise of scale D/epsilon' on the answer picked (or standard deviation D times the multiplier) is a Laplace
    (Gaussian) release, whatever was picked. Parameters of all parts are fixed in advance; composition with queries that
    depend on earlier answers is that of the parts' dominating pairs. The rest is post-processing.
    """

    query: Bounded
    workload: Workload
    rounds: int = field(metadata=PRICE)
    epsilon: Exact = field(default=None, metadata=PRICE)
    rho: Exact = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    total: int | None = field(default=None, metadata=PRICE)
    passes: int = field(default=8, metadata=PRICE)
    family = "synthetic"
    boxes = (16,)  # synthetic data

    def __post_init__(self) -> None:
        check_cells(self.query)
        checks.instance(self.workload, Workload, "workload", "a workload, such as strategies.Ranges(cells=n)")
        if self.workload.cells != self.query.size:
            raise checks.refuse("workload", f"of {self.workload.cells} cells", f"{self.query.size} cells")
        if self.workload.cells * self.workload.answers > _WRITTEN:
            raise checks.refuse("workload", "...", "at most 2^24 weights in all: ask fewer queries, or of fewer cells")
        object.__setattr__(self, "rounds", checks.whole(self.rounds, "rounds", most=1000))
        object.__setattr__(self, "passes", checks.whole(self.passes, "passes", most=100))
        object.__setattr__(self, "total", check_total(self.query, self.total))
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError("say how much noise in one way: epsilon or rho.")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        else:
            object.__setattr__(self, "rho", checks.positive(self.rho, "rho"))
        # With rho, delta only says at which delta an (epsilon, delta) account prices this plan.
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        _ = self.event, self.law, self._total_law  # parts too small to be priced or drawn are refused now

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    def _part(self) -> Fraction:
        """The epsilon, or rho, of one selection or one measurement."""
        parts = 2 * self.rounds + (self.total is None)
        return (self.rho if self.epsilon is None else self.epsilon) / parts

    @cached_property
    def selection_epsilon(self) -> Fraction:
        """Of one selection: epsilon^2/8 is its rho."""
        return self._part if self.rho is None else _sqrt_below(8 * self._part)

    @cached_property
    def _multiplier(self) -> Fraction:
        return Fraction(exact.sqrt_above(1 / (2 * self._part)))

    @property
    def event(self) -> events.Event:
        relation = self.unit.change
        picked = events.Exponential(epsilon=self.selection_epsilon, relation=relation)
        noisy: events.Event
        if self.rho is None:
            noisy = events.Laplace(epsilon=self._part, relation=relation)
        else:
            noisy = events.Gaussian(multiplier=self._multiplier, relation=relation)
        times = self.rounds + (self.total is None)
        return events.Sequence((events.Repeat(picked, self.rounds), events.Repeat(noisy, times)))

    # What is asked, in whole numbers.

    @cached_property
    def bits(self) -> int:
        """Weights are whole multiples of 2^-bits: exactly where that takes few bits, else to the nearest."""
        matrix = self.workload.matrix
        if not 2.0**-_BITS <= float(np.abs(matrix).max()) <= _LARGEST:
            raise checks.refuse("workload", "...", "weights of which the largest is from 2^-16 to 2^20")
        exact_at = (bits for bits in range(_BITS) if np.array_equal(np.ldexp(matrix, bits) % 1, 0 * matrix))
        return next(exact_at, _BITS)

    @cached_property
    def _whole(self) -> Whole:
        return np.rint(np.ldexp(self.workload.matrix, self.bits)).astype(np.int64)

    @cached_property
    def _weights(self) -> Floats:
        return np.ldexp(self._whole.astype(np.float64), -self.bits)

    @cached_property
    def _ones(self) -> Whole:
        return np.full((1, self.query.size), 1 << self.bits, dtype=np.int64)

    @cached_property
    def exponent(self) -> int:
        """The grid step of answers is 2^exponent."""
        real = self._reach(self._whole, 0) / Fraction(2) ** self.bits
        size = 1 / self._part if self.rho is None else self._multiplier
        largest = Fraction(max(int(np.abs(self._whole).max()), 1), 2**self.bits)
        return grid.exponent_for(
            real * size, largest=largest, finer=self.query.finer, coarsest=coarsest(self.query, self.bits)
        )

    def _reach(self, weights: Whole, exponent: int | None = None) -> Fraction:
        """The sensitivity of queries, in steps."""
        return reach(self.query, self.exponent + self.bits if exponent is None else exponent, weights)

    @cached_property
    def rate(self) -> Fraction:
        """Log-odds per step of score."""
        return self.selection_epsilon / (2 * self._reach(self._whole))

    @cached_property
    def law(self) -> Law:
        """The noise of a measurement, in steps."""
        return self._law(self._reach(self._whole))

    @cached_property
    def _total_law(self) -> Law:
        return self._law(self._reach(self._ones))

    def _law(self, moved: Fraction) -> Law:
        scale = moved / self._part if self.rho is None else moved * self._multiplier
        if not SCALES[0] <= scale <= SCALES[1] / 2:
            raise ArgumentError("the noise would be out of all proportion to a row: give another epsilon or rho.")
        if self.rho is None:
            return RoundedLaplace(exact.float_above(moved / self._part))
        return RoundedGaussian(exact.sqrt_above((moved * self._multiplier) ** 2))

    # The release.

    def _run(self, rows: Rows, run: Run) -> dict[str, Any]:
        cells = self.query.steps(rows, self.exponent + self.bits)
        truth = answers(cells, self._whole)
        raw: dict[str, Any] = {}
        if self.total is None:
            count = answers(cells, self._ones)
            raw["total"] = float(grid.to_float(count + run.noise.draw(self._total_law, 1), self.exponent)[0])
        histogram = self._start(raw)
        picked, values = [], []
        for _ in range(self.rounds):
            scores = np.minimum(far_off(truth, histogram.answer(self._weights), self.exponent), _EXACT)
            place = run.noise.select(scores.astype(np.float64), scale=self.rate)
            noisy = truth[place : place + 1] + run.noise.draw(self.law, 1)
            picked.append(place)
            values.append(float(grid.to_float(noisy, self.exponent)[0]))
            histogram.learn(self._weights[place], values[-1])
        return raw | {"picked": np.array(picked, dtype=np.int64), "values": np.array(values)}

    def _start(self, raw: dict[str, Any]) -> Synthetic:
        total = raw["total"] if self.total is None else float(self.total)
        return Synthetic(self.query.size, total, self.passes)

    def histogram(self, raw: dict[str, Any]) -> Floats:
        """The made-up histogram, from what was released alone."""
        weights = self._start(raw)
        for place, value in zip(raw["picked"].tolist(), raw["values"].tolist(), strict=True):
            weights.learn(self._weights[place], value)
        return weights.cells

    def finish(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The made-up histogram, and its answers to the workload."""
        histogram = self.histogram(raw)
        names = self.query.names
        answered = self.workload.answer(histogram)
        return {
            "cells": dict(zip(names, histogram.tolist(), strict=True)),
            "answers": dict(zip(self.workload.names(names), answered.tolist(), strict=True)),
        }

    def explain(self) -> list[str]:
        price = f"epsilon {float(self._part):.4g}" if self.rho is None else f"rho {float(self._part):.4g}"
        noise = f"{type(self.law).__name__} noise of standard deviation {math.ldexp(self.law.std, self.exponent):.4g}"
        counted = f"measure the number of rows ({price})" if self.total is None else f"take {self.total} rows as public"
        return [
            f"{counted}, and start from a uniform histogram of {self.query.size} cells",
            f"{self.rounds} times: pick one of {self.workload.answers} queries that the histogram answers badly "
            f"({price}), measure it with {noise} ({price}), and let the histogram learn it",
            "answer everything from the histogram: errors are not only noise, so there are no error bars",
        ]

    @classmethod
    def sample(cls) -> MWEM:
        wards = bounds.histogram("ward", ("east", "north", "west"), Unit())
        return cls(query=wards, workload=strategies.Prefixes(cells=3), rounds=1, epsilon=2, passes=2)


def _sqrt_below(x: Fraction) -> Fraction:
    """A number whose square is at most x, and nearly x."""
    return Fraction(math.isqrt(math.floor(x * 2**160)), 2**80)
