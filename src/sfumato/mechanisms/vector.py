"""Pure noise for many numbers that one unit can move all at once: as large as the query's own norm asks for."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import bounds, checks, events, exact, grid
from ..bounds import Bounded
from ..checks import Exact
from ..errors import ArgumentError
from ..grid import FINER_COUNTS, Integers
from ..laws import SCALES
from ..noise import vectors
from ..plan import Plan, Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..units import Unit

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class VectorNoise(Plan[Rows, Floats]):
    """A bounded query with noise on the whole vector at once."""

    query: Bounded
    epsilon: Exact = field(metadata=PRICE)

    family = "value"
    widest: ClassVar[float]  # steps of noise on a coordinate that the sampler draws quickly

    def __post_init__(self) -> None:
        if not isinstance(self.query, Bounded):
            raise checks.refuse("query", self.query, "a bounded query, such as bounds.histogram(...)")
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        if self._count > vectors.MOST:
            raise checks.refuse("query", type(self.query).__name__, f"at most {vectors.MOST} coordinates")
        if self.exponent < self._finest or self.scale > SCALES[1] / 2 or not 1 <= self._steps_wide <= self.widest:
            raise ArgumentError(
                "the noise does not fit the grid: it must be more than 2^-43 of the largest bound, and less than "
                "10^10 times a row's value; give another epsilon, or bounds nearer to 0."
            )

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    def event(self) -> events.Pure:
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    @property
    def _count(self) -> int:
        return self.query.size

    @property
    def _finest(self) -> int:
        return grid.finest(self.query.largest, self.query.coarsest)

    @property
    @abstractmethod
    def _real_std(self) -> Fraction:
        """The standard deviation on a coordinate in real units, near enough to choose the grid by."""

    @property
    def _finest_needed(self) -> int | None:
        """The largest exponent at which the sampler is quick."""
        return None

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale of the norm's law in steps, from the sensitivity in steps, rounded up."""

    @property
    @abstractmethod
    def _std_in_scales(self) -> float:
        """The standard deviation on a coordinate, in scales."""

    @abstractmethod
    def _noise(self, run: Run) -> Integers: ...

    @abstractmethod
    def _half_width(self, alpha: float) -> float:
        """P(|noise on a coordinate| > it) <= alpha, in steps."""

    @abstractmethod
    def _mixed_width(self, l1: Floats, l2: Floats, alpha: float) -> Floats:
        """The same for sums of the coordinates with weights of these norms."""

    @cached_property
    def exponent(self) -> int:
        """The grid step is 2^exponent."""
        caps = (self.query.coarsest, self._finest_needed)
        exponent = max(grid.floor_log2(self._real_std) - self.query.finer, self._finest)
        return min([exponent] + [cap for cap in caps if cap is not None])

    @property
    def std(self) -> float:
        """The standard deviation of the noise on each coordinate, to a thousandth."""
        return self._steps_wide * 2.0**self.exponent

    @property
    def _steps_wide(self) -> float:
        return self.scale * self._std_in_scales

    def _run(self, rows: Rows, run: Run) -> Floats:
        return grid.to_float(self.query.steps(rows, self.exponent) + self._noise(run), self.exponent)

    def finish(self, raw: Floats) -> Any:
        return self.query.finish(raw)

    def _widths(self, alpha: float) -> Any:
        if not 0 < alpha < 1:
            raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
        if self.query.mixing is not None:
            l1, l2, _ = (np.asarray(norm, dtype=np.float64) for norm in self.query.mixing)
            return self._mixed_width(l1, l2, alpha) * 2.0**self.exponent
        return self._half_width(alpha / self.query.combined) * 2.0**self.exponent

    def error(self, raw: Floats, alpha: float) -> Any:
        return self.query.error(raw, self._widths(alpha))

    def expected_error(self, alpha: float) -> float | None:
        if self.query.mixing is None and self.query.combined > 1:
            return None
        return float(np.max(self._widths(alpha)))

    def explain(self) -> list[str]:
        return [
            f"compute {type(self.query).__name__.lower()} ({self._count} number(s)) on a grid of step "
            f"2^{self.exponent}, exactly",
            f"one change of the unit moves it by at most {self.query.l2:g} (L2), {self.query.linf:g} (L-infinity)",
            f"add one vector of {type(self).__name__}, of standard deviation {self.std:.6g} on each number",
        ]


@record("plan-linfinity-noise/1")
@dataclass(frozen=True, kw_only=True)
class LInfinityNoise(VectorNoise):
    """Noise on a whole vector, P(k) proportional to exp(-max |k_i| epsilon / linf). For queries of which one unit moves
    every coordinate: about 2.4 times less noise than `Laplace` at the same epsilon.

    Guarantee: epsilon-DP for one change of the unit.
    Needs: a finite L-infinity sensitivity, which the query carries.
    Paper: Hardt, Talwar 2010 (the K-norm mechanism); Steinke, Ullman 2015.

    Proof sketch: a shift of the vector by d changes max |k_i - x_i| by at most max |d_i| <= linf (in steps), hence the
    probability of any outcome by a factor of at most exp(linf/scale), and scale >= linf/epsilon, rounded up to a
    float. The normaliser does not depend on the data, as vectors and noise are whole. How it is drawn:
    noise/vectors.proof.md.
    """

    widest: ClassVar[float] = 2.0**45

    @property
    def _real_std(self) -> Fraction:
        return Fraction(self.query.linf) / self.epsilon * max(self._count, 2) / 2

    @property
    def _finest_needed(self) -> int:
        # A draw is kept with probability exp(-count / (2 scale)): the scale has at least `count` steps.
        return grid.floor_log2(Fraction(self.query.linf) / self.epsilon / max(self._count, 2**FINER_COUNTS))

    @cached_property
    def scale(self) -> float:
        return exact.float_above(self.query.in_steps(self.exponent).linf / self.epsilon)

    @property
    def _std_in_scales(self) -> float:
        return math.sqrt((self._count + 1) * (self._count + 2) / 3)  # n is Gamma(count + 1), coordinates uniform

    def _noise(self, run: Run) -> Integers:
        return run.noise.sup_norm(self.scale, self._count)

    def _half_width(self, alpha: float) -> float:
        return vectors.sup_norm_width(self.scale, self._count, alpha)

    def _mixed_width(self, l1: Floats, l2: Floats, alpha: float) -> Floats:
        """|b.k| <= |b|_1 max |k_i|; and given the largest possible n, b.k is a sum of independent numbers within
        |b_i| n: Hoeffding, with half of alpha."""
        reach, often = (vectors.sup_norm_reach(self.scale, self._count, a) for a in (alpha, alpha / 2))
        return np.minimum(l1 * reach, l2 * often * math.sqrt(2 * math.log(4 / alpha)))

    @classmethod
    def sample(cls) -> LInfinityNoise:
        return cls(query=bounds.histogram("ward", ("east", "north", "west"), Unit(change="replace")), epsilon=1)


@record("plan-l2-noise/1")
@dataclass(frozen=True, kw_only=True)
class L2Noise(VectorNoise):
    """Noise on a whole vector with density proportional to exp(-|x|_2 epsilon / l2), rounded to the grid. For queries
    whose L2 sensitivity is much below their L1 sensitivity, where there must be no delta.

    Guarantee: epsilon-DP for one change of the unit.
    Needs: a finite L2 sensitivity, which the query carries.
    Paper: Hardt, Talwar 2010 (the K-norm mechanism); as noise for learning: Chaudhuri, Monteleoni, Sarwate 2011.

    Proof sketch: a shift of the vector by d changes |y - x|_2 by at most |d|_2 <= l2 (in steps), hence the density at
    any point by a factor of at most exp(l2/scale), and scale >= l2/epsilon, rounded up to a float. Rounding to whole
    steps is post-processing. With an even number of coordinates one more, always 0, is blurred along and not shown.
    How it is drawn, exactly: noise/vectors.proof.md.
    """

    widest: ClassVar[float] = 2.0**36

    @property
    def _real_std(self) -> Fraction:
        return Fraction(self.query.l2) / self.epsilon * Fraction(self._std_in_scales)

    @cached_property
    def scale(self) -> float:
        return exact.sqrt_above(self.query.in_steps(self.exponent).l2_squared / self.epsilon**2)

    @property
    def _std_in_scales(self) -> float:
        return math.sqrt(2 * vectors.halves(self._count))  # a sum of so many Laplace variables

    def _noise(self, run: Run) -> Integers:
        return run.noise.euclidean(self.scale, self._count)

    def _half_width(self, alpha: float) -> float:
        return vectors.euclidean_width(self.scale, self._count, alpha) + 0.5

    def _mixed_width(self, l1: Floats, l2: Floats, alpha: float) -> Floats:
        """The law looks the same from every side: b.x is |b|_2 times one coordinate; rounding moves it by |b|_1/2."""
        return l2 * vectors.euclidean_width(self.scale, self._count, alpha) + 0.5 * l1

    @classmethod
    def sample(cls) -> L2Noise:
        return cls(query=bounds.mean("age", 0, 120, Unit("user:id"), per_unit=2), epsilon=1)
