"""Noise and selection gone wrong in the usual ways: too little noise, a wrong factor, a value shown beside the
winner, a formula used where it does not hold, a law sold at another law's price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato import checks, events, exact, grid
from sfumato.accounting import gdp
from sfumato.bounds import Bounded, Sensitivity, Sum
from sfumato.checks import Exact
from sfumato.laws import Law, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.laplace import Laplace
from sfumato.plan import Plan, Run
from sfumato.rows import Rows
from sfumato.runs import Bulk
from sfumato.units import Unit


@dataclass(frozen=True, kw_only=True)
class HalfNoise(Laplace):
    """Laplace noise of half the scale that epsilon asks for."""

    def _law_in_steps(self, exponent: int) -> RoundedLaplace:
        return RoundedLaplace(super()._law_in_steps(exponent).scale / 2)


@dataclass(frozen=True, kw_only=True)
class HalfSensitivity(Sum):
    """A query that says one unit moves it half as far as it does. Whatever noise it gets is too small."""

    @property
    def sensitivity(self) -> Sensitivity:
        right = super().sensitivity
        return Sensitivity(right.l1 / 2, right.l2_squared / 4, right.linf / 2)


@dataclass(frozen=True, kw_only=True)
class DoubledRate(Exponential):
    """The exponential mechanism without the factor 2, for scores that do not all move the same way."""

    @cached_property
    def rate(self) -> Fraction:
        return 2 * super().rate


@dataclass(frozen=True, kw_only=True)
class _Calibrated(Additive):
    epsilon: Exact
    delta: Exact = Fraction(1, 10**5)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        object.__setattr__(self, "delta", checks.delta(self.delta))


@dataclass(frozen=True, kw_only=True)
class ClassicGaussian(_Calibrated):
    """Gaussian noise of l2 sqrt(2 ln(1.25/delta))/epsilon, a formula proven for epsilon below 1 only. At epsilon = 10,
    delta = 1e-5 it gives 0.484481 where 0.499889 is needed."""

    @property
    def event(self) -> events.Approximate:
        return events.Approximate(epsilon=self.epsilon, delta=self.delta, relation=self.unit.change)

    @property
    def multiplier(self) -> float:
        return math.sqrt(2 * math.log(1.25 / float(self.delta))) / float(self.epsilon)

    @property
    def _scale(self) -> Fraction:
        return Fraction(self.query.l2 * self.multiplier)

    def _law_in_steps(self, exponent: int) -> Law:
        return RoundedGaussian(exact.sqrt_above(self.query.in_steps(exponent).l2_squared) * self.multiplier)


@dataclass(frozen=True, kw_only=True)
class LaplaceSoldAsGaussian(_Calibrated):
    """Laplace noise that holds (epsilon, delta) as asked, sold at the curve of the Gaussian that holds it too. At every
    smaller epsilon its delta is far above that curve: a test at the one pair that was asked for sees nothing."""

    @property
    def event(self) -> events.Gaussian:
        multiplier = gdp.least_multiplier(self.epsilon, self.delta)
        return events.Gaussian(multiplier=multiplier, relation=self.unit.change)

    @property
    def _scale(self) -> Fraction:
        return Fraction(self.query.l1) / self.epsilon

    def _law_in_steps(self, exponent: int) -> Law:
        return RoundedLaplace(exact.float_above(self.query.in_steps(exponent).l1 / self.epsilon))


@dataclass(frozen=True, kw_only=True)
class NoisyMaxWithItsValue(Plan[Rows, list[float]]):
    """Report-noisy-max at the price of the winner's name, with the winning noisy score beside it."""

    query: Bounded
    epsilon: Exact

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    def event(self) -> events.Pure:
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    def _run(self, rows: Rows, run: Run) -> list[float]:
        winner, score = self._runs(rows, run, 1)[0].tolist()
        return [winner, score]

    @property
    def bulk(self) -> Bulk:
        return "fresh"

    def _runs(self, rows: Rows, run: Run, count: int) -> NDArray[np.float64]:
        """So many runs: the winner's place and its noisy score, one run a row."""
        scale = Fraction(self.query.linf) * 2 / self.epsilon
        exponent = grid.exponent_for(
            scale, largest=self.query.largest, finer=self.query.finer, coarsest=self.query.coarsest
        )
        law = RoundedLaplace(exact.float_above(2 * self.query.in_steps(exponent).linf / self.epsilon))
        steps = self.query.steps(rows, exponent)
        noisy = grid.to_float(steps + run.noise.draw(law, count * steps.size).reshape(count, -1), exponent)
        return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1).astype(np.float64)
