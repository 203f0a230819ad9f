"""Dinur and Nissim 2003: too many counts that are too exact give everybody away.

A secret bit for each of n people, and answers to random subset counts, each off by at most e. With enough of them,
least squares finds nearly all bits wherever e is well below sqrt(n) / 2. No attacker needs to be clever: he needs a
list of people and patience.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import bounds, schema
from ...mechanisms.laplace import Laplace
from ...units import Unit
from ..made_up import MadeUp
from .base import Columns, Lesson, Shown, answered, lesson_on

PEOPLE, QUESTIONS = 64, 512
_NAMES = tuple(f"p{number:02d}" for number in range(PEOPLE))
_ROW = Unit()
SCHEMA = schema.Schema.of(who=schema.category(_NAMES))


def members(secret: NDArray[np.int64]) -> Columns:
    """The table lists those whose bit is 1: to be in it is the secret."""
    return {"who": [name for name, bit in zip(_NAMES, secret.tolist(), strict=True) if bit]}


def people(seed: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Everybody's bit, and random subsets."""
    draw = MadeUp(seed)
    return draw.below(2, PEOPLE), draw.below(2, QUESTIONS * PEOPLE).reshape(QUESTIONS, PEOPLE)


def share_rebuilt(subsets: NDArray[np.int64], answers: Any, secret: NDArray[np.int64]) -> float:
    """The share of bits that least squares gets right."""
    guess = np.linalg.lstsq(subsets.astype(np.float64), np.asarray(answers, dtype=np.float64), rcond=None)[0] > 0.5
    return float((guess == secret).mean())


@cache
def plan() -> Laplace:
    """All subset counts at once, at epsilon = 1 in all: the cells are measured, and every subset is a sum of them."""
    _, subsets = people()
    cells = bounds.histogram("who", _NAMES, _ROW)
    return Laplace(query=bounds.workload(cells, subsets.tolist(), strategy="cells"), epsilon=1)


def without() -> Shown:
    """Subset counts that are a little off, or that each have the noise of epsilon = 1, added up by nobody."""
    secret, subsets = people()
    true, draw = subsets @ secret, MadeUp(2)
    off = true + draw.uniform(-2, 2, QUESTIONS)
    apart = true + _laplace(draw, QUESTIONS)
    protected = answered(plan(), members(secret), SCHEMA)
    shares = {
        "answers off by up to 2": share_rebuilt(subsets, off, secret),
        "Laplace noise of epsilon 1 for each question": share_rebuilt(subsets, apart, secret),
        "ours, epsilon 1 for all questions": share_rebuilt(subsets, protected, secret),
    }
    figures = ", ".join(f"{100 * share:.0f} % ({what})" for what, share in shares.items())
    return Shown(f"Least squares on {QUESTIONS} counts finds this share of {PEOPLE} bits: {figures}.", shares)


def _laplace(draw: MadeUp, count: int) -> NDArray[np.float64]:
    """Textbook noise, for what others published."""
    uniform = draw.uniform(-0.5, 0.5, count)
    return np.asarray(-np.sign(uniform) * np.log1p(-2 * np.abs(uniform)))


def _tables(bit: bool) -> Columns:
    secret, _ = people()
    return members(np.concatenate([[int(bit)], secret[1:]]))


def lesson() -> Lesson:
    return lesson_on(
        plan(),
        _tables,
        SCHEMA,
        name="subset-sums",
        id="R1",
        title="Everybody's bit from many counts",
        source="Dinur and Nissim 2003",
        story=f"{PEOPLE} people are in a file, and a service answers how many of any group that you name have a "
        "condition. It never names one, and it blurs each answer a little.",
        without=without,
        moral="Noise per question is not privacy: what counts is the noise of all questions together. That is why "
        "there is one budget, and one ledger that adds up.",
    )
