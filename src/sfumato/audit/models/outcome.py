"""What an audit of a training found, and how it is judged from scores and coins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import checks, display
from ..counting import checked_confidence, checked_delta
from . import canaries, one_run_bound, one_run_tradeoff
from .canaries import Counted
from .one_run_tradeoff import Curve

_MOST_POINTS = 400
_FPRS = (0.001, 0.01, 0.1)
_KINDS = 3  # what is looked at for each number of guesses: epsilon, the claimed curve, and mu


@dataclass(frozen=True)
class ModelAudit:
    """A lower bound on epsilon from canaries, beside what the accountant says.

    way         how canaries were made and scored
    epsilon     proven at least, at `delta`, whatever the mechanism is; `claim` is the accountant's
    refuted     was the claimed trade-off curve refuted as a whole? None where there was none to hold against
    confidence  of all statements together
    counted     how many guesses were made, and how many were right, for each number that was fixed in advance
    points      false- and true-positive rates of the scores
    figures     further numbers by name
    """

    way: str
    epsilon: float
    claim: float
    delta: float
    confidence: float
    canaries: int
    counted: tuple[Counted, ...]
    refuted: bool | None = None
    points: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    figures: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def broken(self) -> bool:
        """Is more privacy lost than the accountant says?"""
        return self.epsilon > self.claim or bool(self.refuted)

    @cached_property
    def mu(self) -> float:
        """Proven at least, if the mechanism is Gaussian."""
        share = _share(self.confidence, len(self.counted))
        return max(
            one_run_tradeoff.least_mu(self.canaries, each.guesses, each.correct, error=share) for each in self.counted
        )

    @property
    def gaussian(self) -> float:
        """The epsilon that `mu` says, if the mechanism is Gaussian."""
        return one_run_tradeoff.epsilon_of(self.mu, self.delta) if self.delta else 0.0

    @property
    def best(self) -> Counted:
        """The number of guesses that showed most."""
        shown = [
            one_run_bound.epsilon_at_least(self.canaries, each.guesses, each.correct, delta=self.delta)
            for each in self.counted
        ]
        return self.counted[int(np.argmax(shown))]

    def facts(self) -> Iterator[tuple[str, str]]:
        """What there is to say, by name."""
        yield "verdict", "BROKEN: more is lost than was claimed" if self.broken else "within the claim"
        yield "epsilon at least", f"{self.epsilon:.4g} at delta = {self.delta:.3g}, at {_percent(self.confidence)}"
        yield "claimed", f"{self.claim:.4g}"
        if self.refuted is not None:
            yield "claimed curve", "refuted" if self.refuted else "not refuted"
        if self.mu:
            yield "if Gaussian", f"mu at least {self.mu:.4g}: epsilon at least {self.gaussian:.4g}"
        best = self.best
        yield "guesses", f"{best.correct} of {best.guesses} right, about {self.canaries} canaries ({self.way})"
        for name, value in self.figures.items():
            yield name, f"{value:.4g}"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        bar = display.bar(min(self.epsilon / self.claim, 2.0) if self.claim > 0 else 1.0)
        return display.card(
            f"Audit of a training: {self.way}",
            display.facts([*self.facts(), ("proven of what is claimed", bar)]),
            note="A lower bound: what was not found may still be there.",
        )


def judged(
    scores: Any,
    coins: Any,
    *,
    way: str,
    claim: float,
    delta: float,
    guesses: Any = None,
    confidence: float = 0.95,
    curve: Curve | None = None,
    cut: float | None = None,
    figures: Mapping[str, float] | None = None,
) -> ModelAudit:
    """The audit that scores make whose canaries were put in by these fair coins.

    curve    the trade-off that is claimed, such as accounting's for the plan's event
    guesses  how many of the coins are guessed: a number, or a list that is fixed before anything is looked at
    cut      where scores turn from "out" to "in", if that is known in advance: 0 for log-likelihood ratios
    """
    values, inside = canaries.checked(scores, coins)
    delta = checked_delta(delta)
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not claim >= 0:
        raise checks.refuse("claim", claim, "the epsilon that is claimed, a number from 0 on")
    if cut is not None and (isinstance(cut, bool) or not isinstance(cut, int | float) or not math.isfinite(cut)):
        raise checks.refuse("cut", cut, "a score, such as 0 for log-likelihood ratios, or leave it out")
    if curve is not None and not callable(curve):
        raise checks.refuse("curve", curve, "a trade-off curve, such as tradeoff(plan.event) of sfumato.accounting")
    if figures is not None and not isinstance(figures, Mapping):
        raise checks.refuse("figures", type(figures).__name__, "numbers by name, or leave it out")
    numbers = canaries.numbers_of(guesses, len(inside))
    share = _share(checked_confidence(confidence), len(numbers))
    counted = tuple(canaries.counted(values, inside, number, cut=cut) for number in numbers)
    many = len(inside)
    shown = dict(figures or {})
    shown.update({f"true positives at {fpr:g} false ones": canaries.rate_at(values, inside, fpr) for fpr in _FPRS})
    return ModelAudit(
        way=way,
        epsilon=max(
            one_run_bound.least_epsilon(many, each.guesses, each.correct, delta=delta, error=share) for each in counted
        ),
        claim=claim,
        delta=delta,
        confidence=confidence,
        canaries=many,
        counted=counted,
        refuted=None
        if curve is None
        else any(one_run_tradeoff.refuted(curve, many, each.guesses, each.correct, error=share) for each in counted),
        points=_thinned(*canaries.rates(values, inside)),
        figures=shown,
    )


def _share(confidence: float, numbers: int) -> float:
    return (1 - confidence) / (_KINDS * numbers)


def _thinned(false: Any, true: Any) -> tuple[tuple[float, float], ...]:
    """Few enough points to draw, closest together where false positives are rare."""
    if len(false) > _MOST_POINTS:
        wanted = np.unique(np.geomspace(1, len(false), _MOST_POINTS).astype(int)) - 1
        false, true = false[wanted], true[wanted]
    return tuple(zip(false.tolist(), true.tolist(), strict=True))


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.10g} %"


__all__ = ["ModelAudit", "judged"]
