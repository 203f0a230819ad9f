"""Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007: nobody stands alone, and everybody is known.

A table is k-anonymous if everybody shares post code and age, made coarse, with at least k - 1 others. Where all of a
group have the same illness, it does not matter who is who.
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

PEOPLE, K = 900, 5
AGES = tuple(range(20, 80))
ILLS = ("broken bone", "diabetes", "flu", "heart", "pregnancy")
_DECADES = tuple(range(20, 90, 10))
_REPLACE = Unit(change="replace")
SCHEMA = schema.Schema.of(age=schema.real(20, 80), ill=schema.category(ILLS), rows=PEOPLE)
PLAN = Laplace(query=bounds.histogram("ill", ILLS, _REPLACE), epsilon=1)
Codes = NDArray[np.int64]


@cache
def patients(seed: int = 7) -> tuple[Codes, Codes, Codes]:
    """(post code, age, illness). What one falls ill with depends on the age, as it does."""
    draw = MadeUp(seed)
    zips, ages = draw.below(20, PEOPLE), 20 + draw.below(len(AGES), PEOPLE)
    usual = np.select([ages < 32, ages < 50, ages < 65], [4, 2, 1], 3)
    strange = draw.below(4, PEOPLE) == 0
    return zips, ages, np.where(strange, draw.below(len(ILLS), PEOPLE), usual)


def groups() -> list[Codes]:
    """Cut at the median, by post code and age in turn, as long as both halves have K people (Mondrian: LeFevre, DeWitt,
    Ramakrishnan 2006)."""
    zips, ages, _ = patients()
    done: list[Codes] = []
    waiting = [(np.arange(PEOPLE), 0)]
    while waiting:
        members, turn = waiting.pop()
        for column in (zips, ages) if turn % 2 == 0 else (ages, zips):
            low = column[members] <= np.median(column[members])
            if min(low.sum(), (~low).sum()) >= K:
                waiting += [(members[low], turn + 1), (members[~low], turn + 1)]
                break
        else:
            done.append(members)
    return done


def without() -> Shown:
    _, _, ills = patients()
    classes = groups()
    least = min(map(len, classes))
    same = sum(len(group) for group in classes if np.unique(ills[group]).size == 1)
    nearly = sum(len(group) for group in classes if np.bincount(ills[group]).max() > 0.9 * len(group))
    return Shown(
        f"{PEOPLE} patients in {len(classes)} groups of at least {least}. Of {same} people the illness is known for "
        f"sure, for their whole group has it; of {max(nearly, same)} it is known with nine chances in ten. Nobody was "
        "singled out.",
        {"known for sure": same / PEOPLE, "known at 0.9": max(nearly, same) / PEOPLE, "least group": least},
    )


def _tables(bit: bool) -> Columns:
    _, ages, ills = patients()
    codes = ills.tolist()
    codes[0] = 1 if bit else 2
    return {"age": ages.astype(float), "ill": [ILLS[code] for code in codes]}


def lesson() -> Lesson:
    return lesson_on(
        PLAN,
        _tables,
        SCHEMA,
        name="homogeneity",
        id="R6",
        title="A k-anonymous table in which a group has one illness",
        source="Machanavajjhala and others 2007",
        story=f"A clinic makes ages and post codes coarse until everybody looks like at least {K - 1} others, and "
        "publishes the table.",
        without=without,
        moral="To be one of many is not to be hidden: the table still says what the many have. A guarantee must be "
        "about what is learned of a person, not about how the table looks.",
    )
