"""Narayanan and Shmatikov 2008: film ratings without names, and what a friend remembers of yours.

The attacker knows a few films that somebody rated, about when, and about how; some of it wrongly. Rare films weigh
more. If the best record scores well above the second best, it is the one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ... import bounds, schema
from ...mechanisms.laplace import Laplace
from ...units import Unit
from ..made_up import MadeUp
from .base import Columns, Lesson, Shown, lesson_on

SUBSCRIBERS, FILMS, EACH = 1_500, 300, 12
KNOWN, WRONG = 5, 1
_DAYS, _MEMORY = 700, 14
_AHEAD = 1.5  # standard deviations, between the best and the second best
_USER = Unit("user:who", change="replace")
_NAMES = tuple(f"film {number:03d}" for number in range(FILMS))
SCHEMA = schema.Schema.of(who=schema.key(), film=schema.category(_NAMES), unit="who")
PLAN = Laplace(query=bounds.histogram("film", _NAMES, _USER, per_unit=EACH), epsilon=1)
Codes = NDArray[np.int64]


@cache
def records(seed: int = 5) -> tuple[Codes, Codes, Codes]:
    """(films, stars, days), a row for each subscriber. Some films are seen by nearly everybody, most by few."""
    draw = MadeUp(seed)
    popularity = np.cumsum(1.0 / (np.arange(FILMS) + 3.0))
    films = np.empty((SUBSCRIBERS, EACH), dtype=np.int64)
    for column in range(EACH):
        films[:, column] = np.searchsorted(popularity, draw.uniform(0, popularity[-1], SUBSCRIBERS))
    stars = draw.below(5, SUBSCRIBERS * EACH).reshape(SUBSCRIBERS, EACH) + 1
    return np.minimum(films, FILMS - 1), stars, draw.below(_DAYS, stars.size).reshape(stars.shape)


def identified() -> tuple[int, int]:
    """(subscribers for whom the attacker is sure, those of them found rightly)."""
    films, stars, days = records()
    draw = MadeUp(6)
    weight = 1 / np.log1p(np.bincount(films.ravel(), minlength=FILMS) + 1.0)
    sure = right = 0
    for target in range(0, SUBSCRIBERS, 5):
        places = draw.order(EACH)[:KNOWN]
        seen = films[target, places].copy()
        seen[:WRONG] = draw.below(FILMS, WRONG)
        rated = np.clip(stars[target, places] + draw.below(3, KNOWN) - 1, 1, 5)
        about = days[target, places] + draw.below(2 * _MEMORY + 1, KNOWN) - _MEMORY
        score = np.zeros(SUBSCRIBERS)
        for film, star, day in zip(seen.tolist(), rated.tolist(), about.tolist(), strict=True):
            alike = (films == film) & (np.abs(stars - star) <= 1) & (np.abs(days - day) <= _MEMORY)
            score += weight[film] * alike.any(axis=1)
        best, second = np.argsort(-score)[:2]
        if score[best] - score[second] > _AHEAD * score.std():
            sure += 1
            right += int(best == target)
    return sure, right


def without() -> Shown:
    sure, right = identified()
    tried = len(range(0, SUBSCRIBERS, 5))
    return Shown(
        f"Knowing {KNOWN} ratings, {WRONG} of them wrong and the others off by a star and two weeks, the attacker is "
        f"sure of {sure} among {tried} people and right about {right}: all that they ever rated has their name on it.",
        {"sure": sure / tried, "right": right / tried},
    )


def _tables(bit: bool) -> Columns:
    """The target's films are these, or those."""
    films, _, _ = records()
    seen = films[:60].copy()
    seen[0] = np.arange(EACH) + (EACH if bit else 0)
    return {"who": np.repeat(np.arange(len(seen)), EACH), "film": [_NAMES[film] for film in seen.ravel().tolist()]}


def lesson() -> Lesson:
    return lesson_on(
        PLAN,
        _tables,
        SCHEMA,
        name="ratings",
        id="R5",
        title="Film ratings without names",
        source="Narayanan and Shmatikov 2008, the Netflix case",
        story="A film club publishes what its members rated, with numbers for names, so that others can build a better "
        "recommender.",
        without=without,
        moral="A dozen tastes are a fingerprint. There is no column to take out: the row itself is the name. What can "
        "be published is how often each film was seen, with every member's whole list bounded and blurred.",
    )
