"""Canaries by coins, scores for them, and the guesses that scores make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...noise import Noise

Coins = NDArray[np.bool_]
Floats = NDArray[np.float64]
SHARES = (Fraction(1), Fraction(1, 2), Fraction(1, 5), Fraction(1, 20))
"""How many of the canaries are guessed, where nobody says: a public list, over which the error is divided."""


@dataclass(frozen=True)
class Counted:
    """So many guesses were made, and so many came out right."""

    guesses: int
    correct: int


def tossed(count: int, noise: Noise) -> Coins:
    """Who is put in."""
    return noise.coins(Fraction(1, 2), checks.whole(count, "canaries"))


def numbers_of(guesses: Any, canaries: int) -> tuple[int, ...]:
    """How many guesses are made: one number, a list of them, or None for the shares of a public list."""
    if guesses is None:
        return tuple(sorted({max(1, math.floor(share * canaries)) for share in SHARES}, reverse=True))
    several = guesses if isinstance(guesses, Sequence) else (guesses,)
    if not several:
        raise checks.refuse("guesses", guesses, "a number of guesses, or a list of such numbers")
    return tuple(checks.whole(each, "guesses", most=canaries) for each in several)


def counted(scores: Any, coins: Coins, guesses: int, *, cut: float | None = None) -> Counted:
    """The highest scores are guessed to be in, the lowest to be out.

    cut  where scores turn from one guess to the other: those farthest from it are guessed. None: half of the guesses
         go to either end

    Scores come from the output alone; equal ones are taken in their order, which knows nothing of the coins either.
    """
    values = np.asarray(scores, dtype=np.float64)
    if cut is not None:
        far = np.argsort(-np.abs(values - cut), kind="stable")[:guesses]
        return Counted(guesses, int(((values[far] > cut) == coins[far]).sum()))
    order = np.argsort(values, kind="stable")
    low = guesses // 2
    right = int(coins[order[len(order) - (guesses - low) :]].sum()) + int((~coins[order[:low]]).sum())
    return Counted(guesses, right)


def rates(scores: Any, coins: Coins) -> tuple[Floats, Floats]:
    """False-positive and true-positive rates of "in, where the score is at least so high", from none to all."""
    values = np.asarray(scores, dtype=np.float64)
    order = np.argsort(-values, kind="stable")
    inside, ranked = coins[order], values[order]
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # equal scores fall together
    true = np.append(0, np.cumsum(inside)[ends]) / max(int(inside.sum()), 1)
    false = np.append(0, np.cumsum(~inside)[ends]) / max(int((~inside).sum()), 1)
    return np.asarray(false), np.asarray(true)


def rate_at(scores: Any, coins: Coins, fpr: float) -> float:
    """The true-positive rate at this false-positive rate or less."""
    false, true = rates(scores, coins)
    return float(true[false <= fpr].max())


def numbers(scores: Any, name: str) -> Floats:
    """Scores as one row."""
    try:
        return np.asarray(scores, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise checks.refuse(name, type(scores).__name__, "a number for each canary or training") from None


def checked(scores: Any, coins: Any) -> tuple[Floats, Coins]:
    """Scores and coins that belong together; a score that is no number comes last."""
    values, inside = numbers(scores, "scores"), np.asarray(coins).reshape(-1)
    if inside.dtype != np.bool_ or not values.size or values.shape != inside.shape:
        raise checks.refuse("coins", type(coins).__name__, "one True or False for each score")
    return np.nan_to_num(values, nan=-np.inf, posinf=np.inf, neginf=-np.inf), inside


__all__ = [
    "SHARES", "Coins", "Counted", "Floats", "checked", "counted", "numbers", "numbers_of", "rate_at", "rates",
    "tossed",
]  # fmt: skip
