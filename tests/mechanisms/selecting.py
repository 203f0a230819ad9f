"""The exact laws of the two selection mechanisms, from their definitions, and neighbours of whole scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np

from sfumato import Schema, Unit
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import category, key
from tests.helpers import read

Law = Callable[[list[Any]], list[Any]]
NAMES = ("a", "b", "c")
SCHEMA = Schema.of(u=key(), w=category(NAMES))


def exactly(x: Fraction | int) -> Any:
    return mp.mpf(Fraction(x).numerator) / Fraction(x).denominator


def exponential(logits: list[Any]) -> list[Any]:
    """P(i) proportional to exp(logit_i)."""
    top = max(logits)
    weights = [mp.exp(x - top) for x in logits]
    return [w / mp.fsum(weights) for w in weights]


def permute_and_flip(logits: list[Any]) -> list[Any]:
    """P(i) = p_i times the integral over t in (0, 1) of the product of (1 - t p_j), p_j = exp(logit_j - max): candidate
    i comes at time t, its coin lands heads, and those who came before landed tails."""
    top = max(logits)
    heads = [mp.exp(x - top) for x in logits]
    chances = []
    for i, own in enumerate(heads):
        polynomial = [mp.mpf(1)]  # coefficients of t^0, t^1, ...
        for j, other in enumerate(heads):
            if j != i:
                shifted = [mp.mpf(0), *polynomial]
                polynomial = [a - other * b for a, b in zip([*polynomial, mp.mpf(0)], shifted, strict=True)]
        chances.append(own * mp.fsum(c / (n + 1) for n, c in enumerate(polynomial)))
    return chances


def chances(law: Law, scores: Any, rate: Fraction) -> list[Any]:
    return law([exactly(Fraction(int(s)) * rate) for s in scores])


def losses(law: Law, scores: Any, others: Any, rate: Fraction) -> list[Any]:
    """ln P(i)/P'(i) for every candidate."""
    pairs = zip(chances(law, scores, rate), chances(law, others, rate), strict=True)
    return [mp.log(p) - mp.log(q) for p, q in pairs]


def moves(monotone: bool, candidates: int = 3) -> Iterator[tuple[int, ...]]:
    """How whole scores may change by at most 1 each: all up where monotone (down is the same pair turned round)."""
    yield from product((0, 1) if monotone else (-1, 0, 1), repeat=candidates)


def worst_loss(law: Law, rate: Fraction, monotone: bool, top: int = 3) -> tuple[Any, Any]:
    """Over all score vectors in 0..top and all neighbours: the largest |log-ratio|, and the widest range of them."""
    loss = width = mp.mpf(0)
    for scores in product(range(top + 1), repeat=3):
        if min(scores) > 0:
            continue  # both laws depend on differences alone
        for move in moves(monotone):
            ratios = losses(law, scores, [s + x for s, x in zip(scores, move, strict=True)], rate)
            loss, width = max(loss, *map(abs, ratios)), max(width, max(ratios) - min(ratios))
    return loss, width


def voters(unit: Unit, **counts: int) -> Rows:
    """One row and one user per vote."""
    cast = [name for name, count in counts.items() for _ in range(count)]
    return read(SCHEMA, unit, u=list(range(len(cast))), w=cast)


def drawn(plan: Any, rows: Rows, count: int, seed: int = 9) -> np.ndarray[Any, Any]:
    """How often each candidate wins."""
    run = Run(Noise(SeededBits(seed)))
    return np.bincount([plan._run(rows, run) for _ in range(count)], minlength=len(plan.query.names))


def chi_square(observed: np.ndarray[Any, Any], expected: list[Any]) -> float:
    wanted = np.array([float(p) for p in expected]) * observed.sum()
    return float(((observed - wanted) ** 2 / wanted).sum())
