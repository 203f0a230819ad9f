"""One training audits itself: many canaries, each put in by a fair coin of its own, and guesses who was.

Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023). Claim, their Theorem 5.2: let M
be (epsilon, delta)-private for adding or leaving out one record, let m records be put in by fair coins, and let r of
the coins be guessed from the output alone (and from what is public). With W ~ Binomial(r, e^epsilon / (e^epsilon + 1)),

    P(at least v guesses are right)  <=  P(W >= v) + 2 m delta max_i P(v - i <= W < v) / i.

Proof sketch. With delta = 0, given the output and the coins before it, a coin has odds of at most e^epsilon either way,
so each guess is right with probability at most e^epsilon / (e^epsilon + 1), whatever the others were: the number of
right ones is dominated by W. With delta, the output is that of such a mechanism but for m events of probability delta
each way, in expectation m 2 delta coins; i of them raise the count by i at most, and the worst law of their number puts
its mass on one i. So the chance of "at least v" under epsilon is small enough to reject that epsilon; all smaller ones
fall with it, as they promise more.

Guesses that are left out are free, but how many are made must not be chosen by looking at how they came out: give
one number in advance, or a list of them, over which the error is divided.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ... import checks
from ..counting import checked_confidence, checked_delta

_UP, _HAIR = 1 + 1e-9, 1e-15  # cover the rounding of binomial terms: some ulps of ln(r!), 2e-9 at a million guesses
_HALVINGS = 42  # down to 1e-12


def chance_at_most(canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float = 0.0) -> float:
    """The most that the chance of so many right guesses can be under (epsilon, delta), rounded up."""
    checked_counts(canaries, guesses, correct)
    if correct == 0:
        return 1.0
    wrong = float(special.expit(-epsilon))  # small, where 1 - it would be rounded
    tail = float(special.betaincc(guesses - correct + 1, correct, wrong))
    if not delta:
        return min(tail * _UP, 1.0)
    below = np.arange(correct - 1, -1, -1, dtype=np.float64)
    whole = float(special.gammaln(guesses + 1))
    terms = np.exp(
        whole - special.gammaln(below + 1) - special.gammaln(guesses - below + 1)
        + special.xlogy(guesses - below, wrong) + special.xlog1py(below, -wrong)
    )  # fmt: skip
    worst = float((np.cumsum(terms) / np.arange(1, correct + 1)).max())
    return min((tail + 2 * canaries * delta * worst) * (_UP + _HAIR * whole), 1.0)


def epsilon_at_least(
    canaries: int, guesses: int, correct: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The largest epsilon that so many right guesses refute at delta; 0 where they show nothing.

    canaries  how many were put in or left out by fair coins; `guesses` of the coins were guessed, and `correct` rightly

    The true epsilon is below it with chance at most 1 - confidence, for any mechanism and any way of guessing.
    """
    checked_counts(canaries, guesses, correct)
    error = 1 - checked_confidence(confidence)
    return least_epsilon(canaries, guesses, correct, delta=checked_delta(delta), error=error)


def least_epsilon(canaries: int, guesses: int, correct: int, *, delta: float, error: float) -> float:
    """The same by the chance of being wrong itself, which is next to nothing where it is shared out."""

    def refuted(epsilon: float) -> bool:
        return chance_at_most(canaries, guesses, correct, epsilon=epsilon, delta=delta) < error

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low  # refuted itself, not only near what is


def most_shown(guesses: int, *, confidence: float = 0.95) -> float:
    """What perfect guesses would show, the ceiling of an audit with so many of them."""
    return epsilon_at_least(guesses, guesses, guesses, confidence=confidence)


def checked_counts(canaries: int, guesses: int, correct: int) -> None:
    """Refuse more guesses than canaries, and more right ones than guesses."""
    checks.whole(canaries, "canaries")
    checks.whole(guesses, "guesses", most=canaries)
    checks.whole(correct, "correct", least=0, most=guesses)


__all__ = ["chance_at_most", "checked_counts", "epsilon_at_least", "least_epsilon", "most_shown"]
