"""Propose a sensitivity, test it, release: the median, where the data are far from moving it by more."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from .. import checks, events, exact, grid
from ..checks import Exact
from ..laws import DiscreteLaplace, RoundedLaplace
from ..plan import Run
from ..questions import PRICE, REACH
from ..record import record
from ..rows import Rows
from ..units import Unit
from .local_sensitivity import distance
from .unit_median import UnitMedian

_FINER = 8  # a step is 2^-8 of the bound, or of the noise where that is smaller
_BITS = 512


@record("plan-propose-test-release/1")
@dataclass(frozen=True, kw_only=True)
class ProposeTestRelease(UnitMedian[int | None]):
    """The median with Laplace noise for a sensitivity that you propose, `bound`; or None where the data are not
    certainly far from a median that one change moves by more.

    Guarantee: (epsilon, delta)-DP for one replaced unit. Whether there is an answer is a part of the release.
    Needs: bounds, a public number of units (relation replace, group 1), and a bound that the data would stand. A unit
        counts with its average value, one without a value as `lower`.
    Paper: Dwork, Lei 2009.

    Proof sketch: let D be the least number of changes after which one more moves the median by more than `bound`. One
    change of the data changes D by at most 1. D gets noise K, P(K = k) proportional to e^(-|k| epsilon/2), and the
    median is answered, with Laplace noise of scale bound/(epsilon/2), if D + K exceeds a threshold T with
    P(K > T) <= delta. Take neighbours.
      Where their medians differ by at most `bound`, D + K costs epsilon/2 and the median, answered or not, epsilon/2.
      Where they differ by more, D = 0 on both sides: both have the same chance p <= delta of an answer, and beyond that
      both say None. Then P(E) <= P'(E) + p for every set E of outcomes.
    So the release is (epsilon, delta)-DP; T comes from the law that is drawn, rounded up. Rounding and clamping are
    post-processing.
    """

    bound: Exact = field(metadata=REACH)
    delta: Exact = field(default=None, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bound", checks.positive(self.bound, "bound"))
        object.__setattr__(self, "delta", checks.delta(self.delta))
        low, high = self._ends
        if self._steps >= high - low:
            raise checks.refuse(
                "bound", float(self.bound), "less than upper - lower: no median ever moves by more than that"
            )
        self._check_grid()
        if self.epsilon > 4096:
            raise checks.refuse("epsilon", float(self.epsilon), "at most 4096: beyond, there is no noise to speak of")

    @property
    def event(self) -> events.Approximate:
        return events.Approximate(epsilon=self.epsilon, delta=self.delta, relation=self.unit.change)

    @property
    def _half(self) -> Fraction:
        """For the test, and for the answer."""
        return self.epsilon / 2

    @cached_property
    def exponent(self) -> int:
        return grid.floor_log2(self.bound / max(self._half, Fraction(1))) - _FINER

    @property
    def _steps(self) -> int:
        """The bound in steps, which may be a little less than was asked."""
        return int(grid.steps(self.bound, self.exponent))

    @cached_property
    def test_law(self) -> DiscreteLaplace:
        """The noise on the distance."""
        return DiscreteLaplace(exact.float_above(1 / self._half))

    @cached_property
    def law(self) -> RoundedLaplace:
        """The noise on the median, in steps."""
        return RoundedLaplace(exact.float_above(self._steps / self._half))

    @cached_property
    def threshold(self) -> int:
        """The least T >= 0 with P(noise > T) <= delta, certified: P(noise > T) is half of P(|noise| >= T + 1)."""
        low, high = -1, 1
        while not self._rare(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._rare(middle) else (middle, high)
        return high

    def _rare(self, threshold: int) -> bool:
        return Fraction(self.test_law.enclose_tail(threshold + 1, _BITS).hi, 2 << _BITS) <= self.delta

    def _run(self, rows: Rows, run: Run) -> int | None:
        around = self._around(rows)
        near = distance(around, self._steps) + int(run.noise.draw(self.test_law, 1)[0])
        noisy = around.median + int(run.noise.draw(self.law, 1)[0])  # drawn in any case
        low, high = self._ends
        return min(max(noisy, low), high) if near > self.threshold else None

    def finish(self, raw: int | None) -> float | None:
        return None if raw is None else self._real(raw)

    def error(self, raw: int | None, alpha: float) -> float | None:
        """The noise of an answer does not depend on whether there is one."""
        return None if raw is None else self.expected_error(alpha)

    def expected_error(self, alpha: float) -> float:
        """Of an answer, if there is one."""
        return (self.law.half_width(alpha) + 0.5) * 2.0**self.exponent

    def explain(self) -> list[str]:
        return [
            f"one value of {self.column} per unit, its average; take the median on a grid of step 2^{self.exponent}",
            f"count the changes after which one more would move it by more than {float(self.bound):g}; add noise of "
            f"scale {self.test_law.scale:.4g}",
            f"above {self.threshold}: the median with Laplace noise of scale "
            f"{self.law.scale * 2.0**self.exponent:.6g}, clamped to the bounds; otherwise no answer",
        ]

    @classmethod
    def sample(cls) -> ProposeTestRelease:
        return cls(column="age", lower=0, upper=120, bound=10, epsilon=1, delta=1e-3, protects=Unit(change="replace"))
