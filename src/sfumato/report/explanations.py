"""What an epsilon means, in odds, in chances and against the best attacker.

With epsilon-DP the odds of anything about one unit change by a factor of at most e^epsilon, whatever the attacker knows
beforehand (Bayes' rule on the ratio of likelihoods). An attacker who says "in the data" with false-positive rate a has
a true-positive rate of at most
    min(e^epsilon a + delta,  1 - e^-epsilon (1 - delta - a))
under (epsilon, delta)-DP (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2017), and of at most 1 - f(a) where the
whole trade-off f of an event is known. Numbers are rounded against the promise: no attacker does better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, display
from ..accounting import price
from ..accounting.tradeoff import tradeoff
from ..errors import ArgumentError
from ..events import Event
from ..exact import float_above

RATES = (0.001, 0.01, 0.05, 0.1)
"""The false-positive rates that are shown: one false alarm in 1000, 100, 20 and 10."""

_UP = 1 + 1e-14

ABOUT = {
    "add-remove": ("is in the data", "who are not in the data", "who are"),
    "zero-out": ("is in the data", "who are not in the data", "who are"),
    "replace": ("has a certain secret", "without the secret", "with it"),
}


@dataclass(frozen=True)
class Attack:
    """The most that any attacker reaches: true-positive rate at a false-positive rate."""

    false_positive: float
    true_positive: float


@dataclass(frozen=True)
class Explanation:
    """One epsilon, said in several ways."""

    epsilon: float
    delta: float
    prior: float
    attacks: tuple[Attack, ...]
    relation: str
    exact: bool  # attacks from the event's whole trade-off, not from one (epsilon, delta)
    whom: str = "a person"  # of the second sentence; reports name the unit, which may be less than a person

    @property
    def factor(self) -> float:
        """e^epsilon, by which odds change at most; infinite above epsilon 709."""
        return math.exp(self.epsilon) * _UP if self.epsilon < 709 else math.inf

    @property
    def raised(self) -> float:
        """The largest posterior of somebody who thought `prior` before."""
        return min(self._moved(self.epsilon) * _UP, 1.0)

    @property
    def lowered(self) -> float:
        """The least."""
        return self._moved(-self.epsilon) / _UP

    def _moved(self, by: float) -> float:
        logit = math.log(self.prior) - math.log1p(-self.prior) + by
        return 1 / (1 + math.exp(-logit)) if logit > -700 else math.exp(logit)

    def sentences(self) -> Iterator[str]:
        about = ABOUT[self.relation][0]
        size = f"{self.epsilon:.4g}"
        aside = ", rare outcomes aside" if self.delta else ""
        yield (
            f"epsilon = {size}: seeing the release changes anybody's odds about one unit by a factor of at most "
            f"e^{size} = {self._factor()}."
        )
        yield (
            f"Who thought it {percent(self.prior)} likely that {self.whom} {about} may come to think "
            f"{percent(self.raised)}, or {percent(self.lowered)}, and no further{aside}."
        )
        if self.delta:
            yield (
                f"delta = {self.delta:g}: rare outcomes may say more than that. The attacks below count them in; delta "
                "should be far below one over the number of people."
            )

    def _factor(self) -> str:
        if self.epsilon < 25:
            return f"{self.factor:.4g}"
        return f"10^{self.epsilon / math.log(10):.4g}"

    def __str__(self) -> str:
        _, innocent, members = ABOUT[self.relation]
        lines = [*self.sentences(), "The best attacker there can be"]
        for attack in self.attacks:
            wrong, right = percent(attack.false_positive), percent(attack.true_positive)
            lines.append(f"  who accuses {wrong} of the people {innocent} finds at most {right} of those {members}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, *others = self.sentences()
        _, innocent, members = ABOUT[self.relation]
        head = (f"accused of those {innocent}", f"found at most of those {members}")
        rows = ((percent(each.false_positive), percent(each.true_positive)) for each in self.attacks)
        table = display.table(head, rows, right=(0, 1), caption="The best attacker there can be")
        return display.card(first, *map(display.paragraph, others), table)


def explain(
    what: Any, *, delta: Any = None, prior: float = 0.5, rates: Sequence[float] = RATES, relation: str | None = None
) -> Explanation:
    """What this epsilon, or the epsilon of this event at delta, means.

    >>> from sfumato import events, explain
    >>> print(str(explain(0.1)).splitlines()[1])
    Who thought it 50 % likely that a person is in the data may come to think 52.5 %, or 47.5 %, and no further.
    >>> finding = explain(events.Gaussian(multiplier=2), delta=1e-6, prior=0.01)

    what      an epsilon, or an event: then the attacks come from its own trade-off and are weaker
    prior     what the attacker of the second sentence thought before
    rates     false-positive rates to show
    relation  the neighbours, if `what` is an epsilon
    """
    if not isinstance(prior, int | float) or not 0 < prior < 1:
        raise checks.refuse("prior", prior, "a probability above 0 and below 1")
    alphas = np.asarray(rates, dtype=np.float64)
    if alphas.ndim != 1 or not alphas.size or not np.all((alphas >= 0) & (alphas <= 1)):
        raise checks.refuse("rates", rates, "a list of rates from 0 to 1")
    own = Fraction(0) if delta is None else checks.delta(delta, zero=True)
    if isinstance(what, Event):
        if relation not in (None, what.relation):
            raise ArgumentError(f"relation is {what.relation!r}, as the event says: leave it out.")
        size = float(price.epsilon(what, delta=own))
        powers = np.asarray(tradeoff(what).power(alphas))
        relation = what.relation
    else:
        size = float_above(checks.epsilon(what, warn=False))
        powers = most_found(alphas, size, float_above(own))
        relation = checks.one_of("add-remove" if relation is None else relation, "relation", tuple(ABOUT))
    attacks = tuple(Attack(float(a), float(p)) for a, p in zip(alphas, powers, strict=True))
    return Explanation(size, float(own), float(prior), attacks, relation, isinstance(what, Event))


def most_found(rates: Any, epsilon: float, delta: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The largest true-positive rate at each false-positive rate under (epsilon, delta)-DP, rounded up."""
    alphas = np.asarray(rates, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steep = np.exp(np.minimum(epsilon + np.log(alphas), 1.0)) + delta
    flat = 1 - math.exp(-epsilon) * (1 - delta - alphas)
    return np.minimum(np.minimum(steep, flat) * (1 + 1e-13), 1.0)


def percent(share: float) -> str:
    """Four digits; what is not certain is never shown as such."""
    shown = f"{100 * share:.4g}"
    return "over 99.99 %" if shown == "100" and share < 1 else f"{shown} %"
