"""Report noisy max, by name, and the winner's score for those who pay for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from .. import bounds, checks, events, exact, grid
from ..bounds import Bounded
from ..checks import Exact
from ..errors import ArgumentError
from ..laws import SCALES, RoundedLaplace
from ..noise.race import KINDS, Kind
from ..plan import Plan, Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..units import Unit
from .exponential import Exponential
from .permute_and_flip import PermuteAndFlip
from .selection import Selection


@record("plan-noisy-max-with-value/1")
@dataclass(frozen=True, kw_only=True)
class NoisyMaxWithValue(Plan[Rows, dict[str, Any]]):
    """Which candidate scores best, and then its score, measured afresh.

    `share` of epsilon chooses the winner, the rest pays for Laplace noise on the winner's score. The noise that chose
    is thrown away: it is large just because it won, and the noisy score that won is not private at this price.

    Guarantee: epsilon-DP, as the sequence of a selection and a Laplace measurement.
    Needs: a finite L-infinity sensitivity, which the query carries; candidates known in public.
    Paper: Ding, Kifer, Sajid Nikesh 2021 (noisy max); Lyu, Su, Li 2017 (why the noisy value itself is not free).

    Proof sketch: the selection is (share * epsilon)-DP. Whatever candidate it names, that one score moves by at most
    linf between neighbours, so rounded Laplace noise of scale linf/((1 - share) epsilon), drawn independently, is
    ((1 - share) epsilon)-DP. The two compose adaptively.
    """

    query: Bounded
    epsilon: Exact = field(metadata=PRICE)
    share: Exact = field(default=Fraction(1, 2), metadata=PRICE)
    noise: Kind = field(default="exponential", metadata=PRICE)
    family = "best"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        allowed = "a number above 0 and below 1: the part of epsilon that chooses the winner"
        share = checks.rational(self.share, "share", allowed)
        if not 0 < share < 1:
            raise checks.refuse("share", self.share, allowed)
        object.__setattr__(self, "share", share)
        checks.one_of(self.noise, "noise", KINDS)
        if min(share, 1 - share) * self.epsilon < checks.EPSILON_RANGE[0]:
            raise checks.refuse("share", self.share, "a share that leaves both parts an epsilon of at least 1e-9")
        _ = self.selection  # checks the query
        scale = self.query.in_steps(self._exponent).linf / self._value_epsilon
        if scale < 1 or 2 * scale > SCALES[1]:
            raise ArgumentError(
                "the noise on the winner's score would be too small or too large to draw beside the query's bounds: "
                "give an epsilon nearer to 1, or bounds nearer to 0."
            )

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @cached_property
    def selection(self) -> Selection:
        """The first part."""
        return report_noisy_max(query=self.query, epsilon=self.share * self.epsilon, noise=self.noise)

    @property
    def _value_epsilon(self) -> Fraction:
        return Fraction((1 - self.share) * self.epsilon)

    @property
    def event(self) -> events.Sequence:
        value = events.Laplace(epsilon=self._value_epsilon, relation=self.unit.change)
        return events.Sequence((self.selection.event, value))

    @cached_property
    def _exponent(self) -> int:
        scale, query = Fraction(self.query.linf) / self._value_epsilon, self.query
        return grid.exponent_for(scale, largest=query.largest, finer=query.finer, coarsest=query.coarsest)

    @cached_property
    def law(self) -> RoundedLaplace:
        """The noise on the winner's score, in grid steps."""
        return RoundedLaplace(exact.float_above(self.query.in_steps(self._exponent).linf / self._value_epsilon))

    def _run(self, rows: Rows, run: Run) -> dict[str, Any]:
        winner = self.selection.winner(rows, run)
        score = self.query.steps(rows, self._exponent)[winner : winner + 1]
        noisy = grid.to_float(score + run.noise.draw(self.law, 1), self._exponent)
        return {"winner": winner, "value": float(noisy[0])}

    def finish(self, raw: dict[str, Any]) -> dict[str, Any]:
        return {"winner": self.query.names[raw["winner"]], "value": raw["value"]}

    def error(self, raw: dict[str, Any], alpha: float) -> dict[str, float]:
        """How far the winner's score may be from the best, and the value from the winner's score."""
        width = (self.law.half_width(alpha) + 0.5) * float(np.ldexp(1.0, self._exponent))
        return {"winner": self.selection.expected_error(alpha), "value": float(width)}

    def explain(self) -> list[str]:
        return [
            *self.selection.explain(),
            f"measure the winner's score afresh, with Laplace noise of standard deviation "
            f"{self.law.std * 2.0**self._exponent:.6g}",
        ]

    @classmethod
    def sample(cls) -> NoisyMaxWithValue:
        return cls(query=bounds.votes("ward", ("east", "north", "west"), Unit(change="replace")), epsilon=1)


@overload
def report_noisy_max(
    *, query: Bounded, epsilon: Any, noise: Kind = ..., with_value: Literal[False] = ..., share: Any = ...
) -> Selection: ...


@overload
def report_noisy_max(
    *, query: Bounded, epsilon: Any, noise: Kind = ..., with_value: Literal[True], share: Any = ...
) -> NoisyMaxWithValue: ...


def report_noisy_max(
    *,
    query: Bounded,
    epsilon: Any,
    noise: Kind = "exponential",
    with_value: bool = False,
    share: Any = Fraction(1, 2),
) -> Selection | NoisyMaxWithValue:
    """Add noise to every score and name the largest. Only the name leaves.

    noise       "exponential" is PermuteAndFlip, the better one at the same epsilon; "gumbel" is Exponential, cheaper on
                an account that pays in rho
    with_value  also the winner's score: measured again with fresh Laplace noise, which `1 - share` of epsilon pays for

    The noisy score that won is never returned for free. It is the largest of many noisy numbers: a unit that moves all
    scores by one moves it as if every candidate's noisy score had been given away, so the price would grow with their
    number (Laplace noise), and with exponential noise it tells for certain that no score is larger. Published code that
    returned it was wrong.
    """
    checks.instance(with_value, bool, "with_value", "True or False")
    if with_value:
        return NoisyMaxWithValue(query=query, epsilon=epsilon, share=share, noise=noise)
    checks.one_of(noise, "noise", KINDS)
    return (PermuteAndFlip if noise == "exponential" else Exponential)(query=query, epsilon=epsilon)
