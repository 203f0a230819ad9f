"""What Laplace and Gaussian share: a bounded query on the grid, plus noise in whole steps.

The grid step comes from the noise scale and the query's bounds, which are public. The query's exact integer value x
gets integer noise K = round(G), where G is continuous noise of the scale that the sensitivity *in steps* demands. As x
is whole, x + round(G) = round(x + G): the release is post-processing of the continuous mechanism, in any dimension.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, grid
from ..bounds import Bounded
from ..errors import ArgumentError
from ..laws import SCALES, Law
from ..plain_text import printable
from ..plan import Plan, Run
from ..rows import Rows
from ..runs import Bulk, sizes
from ..units import Unit


@dataclass(frozen=True, kw_only=True)
class Additive(Plan[Rows, NDArray[np.float64]]):
    """A bounded query with noise on every coordinate."""

    query: Bounded
    family = "value"

    def __post_init__(self) -> None:
        if not isinstance(self.query, Bounded):
            raise checks.refuse("query", self.query, "a bounded query, such as bounds.count(unit)")

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    @abstractmethod
    def _scale(self) -> Fraction:
        """The noise scale in real units, near enough to choose the grid by."""

    @abstractmethod
    def _law_in_steps(self, exponent: int) -> Law:
        """The noise law, from the sensitivity in steps of 2^exponent, rounded up."""

    @cached_property
    def exponent(self) -> int:
        """The grid step is 2^exponent."""
        query = self.query
        return grid.exponent_for(self._scale, largest=query.largest, finer=query.finer, coarsest=query.coarsest)

    @cached_property
    def law(self) -> Law:
        """The law of the noise, in grid steps."""
        return self._law_in_steps(self.exponent)

    def _check_scale(self) -> None:
        """Refuse noise that no sampler draws; at birth, as after the charge it would be too late."""
        steps = grid.steps(self._scale, self.exponent)
        if 2 * steps > SCALES[1]:
            raise ArgumentError(
                "the noise would be too wide for its grid: more than 10^11 times a row's value, or 2^19 rows where a "
                "strategy has fractional weights; give a larger epsilon, or a smaller per_unit."
            )
        if steps < 1:
            raise ArgumentError(
                "the noise would be less than 2^-43 of the largest bound: give bounds nearer to 0 (shift the column), "
                "or a smaller epsilon."
            )

    def _run(self, rows: Rows, run: Run) -> NDArray[np.float64]:
        steps = self.query.steps(rows, self.exponent)
        return grid.to_float(steps + run.noise.draw(self.law, steps.size), self.exponent)

    @property
    def bulk(self) -> Bulk:
        return "steady" if type(self)._run is Additive._run else "no"

    def _runs(self, rows: Rows, run: Run, count: int) -> Any:
        """`_run` on a vector that repeats itself: the law, the grid and the sampler are those of a single release."""
        if self.bulk == "no":
            return super()._runs(rows, run, count)
        steps = self.query.steps(rows, self.exponent)

        def repeated(times: int) -> Any:
            query = SimpleNamespace(steps=lambda rows, exponent: np.tile(steps, times))
            plan: Any = SimpleNamespace(query=query, exponent=self.exponent, law=self.law)
            return Additive._run(plan, rows, run).reshape(times, -1)

        return np.concatenate([repeated(times) for times in sizes(count, steps.size)])

    def finish(self, raw: NDArray[np.float64]) -> Any:
        return self.query.finish(raw)

    def width(self, alpha: float) -> float:
        """P(|noise| > width) <= alpha on a coordinate, where alpha is shared over the coordinates `finish` combines."""
        return float((self.law.half_width(alpha / self.query.combined) + 0.5) * 2.0**self.exponent)

    def mixed_widths(self, alpha: float) -> NDArray[np.float64] | None:
        """The same for each finished number, where it is a mixture of coordinates."""
        mixing = self.query.mixing
        return None if mixing is None else self.law.mixed_half_width(*mixing, alpha) * 2.0**self.exponent

    def error(self, raw: NDArray[np.float64], alpha: float) -> Any:
        mixed = self.mixed_widths(alpha)
        return self.query.error(raw, self.width(alpha) if mixed is None else mixed)

    def expected_error(self, alpha: float) -> float | None:
        mixed = self.mixed_widths(alpha)
        if mixed is not None:
            return float(mixed.max())
        return self.width(alpha) if self.query.combined == 1 else None

    @property
    def std(self) -> float:
        """The standard deviation of the noise on each coordinate."""
        return self.law.std * 2.0**self.exponent

    def explain(self) -> list[str]:
        query, l1, l2 = type(self.query).__name__.lower(), self.query.l1, self.query.l2
        what = ", ".join(map(printable, self.query.names[:4])) + (", ..." if len(self.query.names) > 4 else "")
        return [
            f"compute {query} ({what}) on a grid of step 2^{self.exponent}, exactly",
            f"one change of the unit moves it by at most {l1:g} (L1), {l2:g} (L2)",
            f"add {type(self.law).__name__} noise of standard deviation {self.std:.6g} to each of "
            f"{len(self.query.names)} number(s)",
        ]
