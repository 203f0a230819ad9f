"""What the selection mechanisms share: winners among public candidates, by noisy score."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import checks, grid
from ..bounds import Bounded
from ..checks import Exact
from ..noise.race import Kind
from ..plan import Plan, Run
from ..questions import PRICE
from ..rows import Rows
from ..units import Unit

R = TypeVar("R")

_FINER = 20  # a step of score is about 2^-20 of the largest contribution
_MOST_NODES = 512
_EXACT = 2**53  # scores are clamped here, where floats are still exact; clamping moves no two scores further apart


def win_chances(scores: NDArray[np.float64], rate: float, noise: Kind) -> NDArray[np.float64]:
    """Who wins with what probability, to about 12 digits.

    gumbel       softmax of rate * score
    exponential  permute-and-flip: p_r int_0^1 prod_{i != r} (1 - p_i t) dt with p_i = exp(rate (s_i - max s)). The
                 candidate r wins if its coin shows and nobody before it (each is so with chance t) has won. The
                 integrand is a polynomial, which Gauss-Legendre integrates exactly, or to all digits where there are
                 more than a thousand candidates; all terms are positive
    """
    weights = np.exp(rate * (scores - scores.max()))
    if noise == "gumbel":
        return np.asarray(weights / weights.sum())
    nodes, steps = np.polynomial.legendre.leggauss(min(scores.size // 2 + 1, _MOST_NODES))
    left = 1 - np.outer(weights, (nodes + 1) / 2)  # above 0: no node is 1
    return np.asarray(weights * ((np.prod(left, axis=0) / left) @ (steps / 2)))


@dataclass(frozen=True, kw_only=True)
class Scored(Plan[Rows, R]):
    """Candidates with scores: the coordinates of the query, by name."""

    query: Bounded
    epsilon: Exact = field(metadata=PRICE)
    family = "best"

    def __post_init__(self) -> None:
        if not isinstance(self.query, Bounded):
            raise checks.refuse("query", self.query, "a bounded query, such as bounds.votes(column, wards, unit)")
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @cached_property
    def _exponent(self) -> int:
        exponent = grid.floor_log2(self.query.largest) - _FINER
        return exponent if self.query.coarsest is None else min(exponent, self.query.coarsest)

    @cached_property
    def span(self) -> Fraction:
        """Between neighbours, all changes of score lie in an interval of this length around 0: 2 linf, or linf where
        all move the same way; in steps."""
        linf = self.query.in_steps(self._exponent).linf
        return linf if self.query.monotone else 2 * linf

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        return np.clip(self.query.steps(rows, self._exponent), -_EXACT, _EXACT).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Selection(Scored[int]):
    """Which candidate scores best."""

    noise: ClassVar[Kind]

    @cached_property
    def rate(self) -> Fraction:
        """Log-odds per step of score: epsilon/(2 linf), or epsilon/linf where all scores move the same way."""
        return self.epsilon / self.span

    def winner(self, rows: Rows, run: Run) -> int:
        """The place of the largest noisy score."""
        return run.noise.select(self._scores(rows), scale=self.rate, noise=self.noise)

    def _run(self, rows: Rows, run: Run) -> int:
        return self.winner(rows, run)

    def finish(self, raw: int) -> Any:
        return self.query.names[raw]

    def law(self, scores: Any) -> dict[Any, float]:
        """The probability with which each candidate wins, were these the scores, one for each; to about 12 digits.

        A function of public numbers, for planning and tests: scores of private data never go in here."""
        names = self.query.names
        try:
            values = np.array([float(score) for score in scores])
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.shape != (len(names),) or not np.isfinite(values).all():
            raise checks.refuse("scores", type(scores).__name__, f"{len(names)} finite numbers, one for each candidate")
        shares = win_chances(values * 2.0**-self._exponent, float(self.rate), self.noise)
        return dict(zip(names, shares.tolist(), strict=True))

    def expected_error(self, alpha: float) -> float:
        """With probability 1 - alpha the winner's score is at most this far below the best one."""
        if not 0 < alpha < 1:
            raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
        return math.log(len(self.query.names) / alpha) / float(self.rate) * 2.0**self._exponent

    def error(self, raw: int, alpha: float) -> float:
        return self.expected_error(alpha)

    def explain(self) -> list[str]:
        return [
            f"score {len(self.query.names)} candidates by {type(self.query).__name__.lower()}; one change of the unit "
            f"moves a score by at most {self.query.linf:g}" + (", all the same way" if self.query.monotone else ""),
            f"add {self.noise} noise to each score and name the winner, nothing else",
        ]
