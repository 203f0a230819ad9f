"""PATE, private aggregation of teacher ensembles: what is charged, and the data-dependent bounds for study.

Teachers are trained on disjoint parts of the data; each votes for a class, and a noisy plurality is released. One unit
reaches one teacher, whose vote may move from one class to another: the counts change by 2 in L1 and sqrt(2) in L2.

    LNMax             Laplace noise of scale 1/gamma on the counts: 2 gamma-DP            Papernot et al. 2017
    GNMax             Gaussian noise of deviation sigma: multiplier sigma/sqrt(2)         Papernot et al. 2018
    Confident-GNMax   a first check, max count + noise of deviation sigma_1 >= threshold: multiplier sigma_1; where it
                      passes, GNMax answers

`lnmax`, `gnmax` and `confident_gnmax` give the event of a whole run: the data-independent price, which is charged. A
run of Confident-GNMax stops after a public number of questions or of answers, so its Gaussians' total mu^2 is at most
that of the event, whatever is answered; and Gaussians chosen by what was released before cost no more than Gaussians
fixed in advance of the same total (the Gaussian filter, filters.proof.md).

When teachers agree, much less is lost. `lnmax_study` and `gnmax_study` bound that for given votes. The bound depends on
the private votes, so it is itself private: it may be studied, never published and never charged, and is no Event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import checks, exact
from ..errors import ArgumentError
from ..events import Event, Gaussian, Laplace, Repeat, Sequence
from ..units import Relation
from .individual import LABEL

Floats = NDArray[np.float64]

_UP = 1 + 1e-12
_FEW = tuple(range(1, 9))
_ORDERS = 1 + 2.0 ** np.linspace(-6, 10, 400)


def lnmax(*, gamma: Any, queries: int, relation: Relation = "add-remove") -> Event:
    """The event of so many LNMax answers: Laplace noise of scale 1/gamma, L1 sensitivity 2."""
    return Repeat(Laplace(epsilon=2 * checks.positive(gamma, "gamma"), relation=relation), queries)


def gnmax(*, sigma: Any, queries: int, relation: Relation = "add-remove") -> Event:
    """The event of so many GNMax answers: Gaussian noise of deviation sigma, L2 sensitivity sqrt(2)."""
    return Repeat(_answer(sigma, relation), queries)


def confident_gnmax(
    *, sigma_check: Any, sigma_answer: Any, queries: int, answers: int, relation: Relation = "add-remove"
) -> Event:
    """The event of a Confident-GNMax run that stops after so many questions or so many answers."""
    check = Gaussian(multiplier=checks.positive(sigma_check, "sigma_check"), relation=relation)
    checks.whole(answers, "answers", most=checks.whole(queries, "queries"))
    return Sequence((Repeat(check, queries), Repeat(_answer(sigma_answer, relation, "sigma_answer"), answers)))


def _answer(sigma: Any, relation: Relation, name: str = "sigma") -> Gaussian:
    size = checks.positive(sigma, name)
    least = 1 / Fraction(exact.sqrt_above(2 / size**2))  # rounded down: less noise than there is
    return Gaussian(multiplier=Fraction(exact.float_below(least)), relation=relation)


@dataclass(frozen=True)
class Study:
    """A bound for these votes only. It depends on private data: study it, never publish or charge it."""

    epsilon: float
    delta: float
    order: float
    queries: int
    label: str = LABEL

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:.6g} at delta = {self.delta:g} after {self.queries} answers ({self.label})"


def lnmax_disagreement(votes: Any, *, gamma: Any) -> float:
    """At most the probability that LNMax does not release the plurality (Papernot et al. 2017, Lemma 4)."""
    gaps, scale = _gaps(votes), float(checks.positive(gamma, "gamma"))
    return min(1.0, float(np.sum((2 + scale * gaps) / 4 * np.exp(-scale * gaps))) * _UP)


def gnmax_disagreement(votes: Any, *, sigma: Any) -> float:
    """At most the probability that GNMax does not release the plurality (Papernot et al. 2018, Proposition 7)."""
    return math.exp(_log_gnmax_disagreement(votes, float(checks.positive(sigma, "sigma"))))


def _log_gnmax_disagreement(votes: Any, sigma: float) -> float:
    # P(N(n_i, s^2) > N(n_best, s^2)) = P(N(0,1) > gap / (sqrt(2) s))
    logs = special.log_ndtr(-_gaps(votes) / (math.sqrt(2) * sigma))
    return min(0.0, float(special.logsumexp(logs)) + 1e-12)


def _gaps(votes: Any) -> Floats:
    counts = np.asarray(votes, dtype=np.float64)
    if counts.ndim != 1 or counts.size < 2 or not np.all(np.isfinite(counts)) or counts.min() < 0:
        raise ArgumentError("votes = ... is not allowed: give the count of each of at least two classes.")
    best = int(np.argmax(counts))
    return np.asarray(counts[best] - np.delete(counts, best))


def lnmax_moment(votes: Any, *, gamma: Any, power: int) -> float:
    """The log moment of that order of one LNMax answer with these votes (Papernot et al. 2017, Theorems 2 and 3)."""
    size = float(checks.positive(gamma, "gamma"))
    checks.whole(power, "power")
    q, free = lnmax_disagreement(votes, gamma=gamma), 2 * size**2 * power * (power + 1)
    if not 0 < q < 1 / (1 + math.exp(2 * size)):  # (e^2g - 1)/(e^4g - 1), where the theorem applies
        return free
    agree = math.log1p(-q) + power * (math.log1p(-q) - math.log1p(-q * math.exp(2 * size)))
    return min(free, float(np.logaddexp(agree, math.log(q) + 2 * size * power)) * _UP)


def lnmax_study(votes: Several[Any], *, gamma: Any, delta: Any, powers: Several[int] = _FEW) -> Study:
    """The data-dependent epsilon of LNMax answers, one per row of votes, by the moments accountant as published."""
    log_delta = math.log(checks.delta(delta))
    repeated = _repeated(votes)
    least = min(
        ((sum(n * lnmax_moment(row, gamma=gamma, power=power) for row, n in repeated) - log_delta) / power, power)
        for power in powers
    )
    return Study(least[0] * _UP, float(delta), least[1] + 1, sum(n for _, n in repeated))


def gnmax_divergence(votes: Any, *, sigma: Any, orders: Any) -> Floats:
    """The Renyi divergences of one GNMax answer with these votes (Papernot et al. 2018, Theorem 6, Proposition 10)."""
    size, a = float(checks.positive(sigma, "sigma")), np.atleast_1d(np.asarray(orders, dtype=np.float64))
    free = a / size**2
    log_q = _log_gnmax_disagreement(votes, size)
    high = size * math.sqrt(-log_q)  # Proposition 10: the second order, and the first one above it by 1
    if not high > 1:
        return free
    higher, second = high + 1, high / size**2
    # Theorem 6 asks for q <= e^((m2-1) e2) / (m1/(m1-1) * m2/(m2-1))^m2, and A must be positive
    most = (high - 1) * second - high * (math.log(higher / high) + math.log(high / (high - 1)))
    if log_q > most or log_q + second >= 0 or log_q < -700:
        return free
    agree, shrink = math.log1p(-math.exp(log_q)), (log_q + second) * (1 - 1 / high)
    log_a = (a - 1) * (agree - math.log1p(-math.exp(shrink)))
    log_b = (a - 1) * (higher / size**2 - log_q / (higher - 1))
    bound = np.logaddexp(agree + log_a, log_q + log_b) / (a - 1)
    bound = bound + 1e-12 * (1 + np.abs(log_b) / (a - 1))
    return np.where(a <= higher, np.minimum(free, bound), free)


def gnmax_study(votes: Several[Any], *, sigma: Any, delta: Any) -> Study:
    """The data-dependent epsilon of GNMax answers, one per row of votes, by the tight conversion of Renyi DP."""
    log_delta = math.log(checks.delta(delta))
    repeated = _repeated(votes)
    price = np.sum([n * gnmax_divergence(row, sigma=sigma, orders=_ORDERS) for row, n in repeated], axis=0)
    prices = price + np.log1p(-1 / _ORDERS) - (log_delta + np.log(_ORDERS)) / (_ORDERS - 1)
    best = int(np.argmin(prices))
    return Study(max(0.0, float(prices[best]) * _UP), float(delta), float(_ORDERS[best]), sum(n for _, n in repeated))


def _repeated(votes: Several[Any]) -> list[tuple[Floats, int]]:
    """The different rows, and how often each comes."""
    rows = np.atleast_2d(np.asarray(votes, dtype=np.float64))
    if rows.ndim != 2 or not rows.size:
        raise ArgumentError("votes = ... is not allowed: give one row of counts per answer.")
    different, times = np.unique(rows, axis=0, return_counts=True)
    return [(row, int(n)) for row, n in zip(different, times, strict=True)]


def lnmax_published(*, gamma: Any, queries: int, delta: Any) -> dict[str, float]:
    """The data-independent figures of the 2017 paper, for comparison: strong composition as printed there, and the
    moments accountant at whole powers. What is charged is the price of `lnmax`, which is smaller."""
    size, times = float(checks.positive(gamma, "gamma")), checks.whole(queries, "queries")
    log_one_over = -math.log(checks.delta(delta))
    powers = np.arange(1, 1001)
    moments = (times * 2 * size**2 * powers * (powers + 1) + log_one_over) / powers
    strong = 4 * times * size**2 + 2 * size * math.sqrt(2 * times * log_one_over)
    return {"strong composition": strong * _UP, "moments": float(np.min(moments)) * _UP}
