"""Garfinkel, Abowd, Martindale 2018: a block of people, rebuilt from the tables about it.

Counts, median and mean ages of a block, of its women, of its men, of its groups: numbers that all seem harmless.
Each is a condition on how many people there are of every age, sex and group, and linear in these numbers; a solver
finds the people, and that there are no others that fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from ... import bounds, schema
from ...mechanisms.laplace import Laplace
from ...units import Unit
from .base import Columns, Lesson, Shown, lesson_on

SEXES, GROUPS, OLDEST = ("F", "M"), ("A", "B"), 95
PEOPLE = (
    (4, "F", "A"), (31, "F", "A"), (58, "F", "A"), (7, "M", "A"), (33, "M", "A"), (61, "M", "A"),
    (11, "F", "B"), (36, "F", "B"), (71, "F", "B"), (16, "M", "B"), (40, "M", "B"), (84, "M", "B"),
)  # fmt: skip
"""A made-up block."""

Kind = tuple[int, str, str]
KINDS: tuple[Kind, ...] = tuple((age, sex, group) for age in range(OLDEST + 1) for sex in SEXES for group in GROUPS)
_ALL = (0, OLDEST)
RANGES = tuple((low, high - 1) for low, high in pairwise((*range(20), 20, 25, 30, 35, 45, 55, 65, 75, 85, OLDEST + 1)))
_REPLACE = Unit(change="replace")
_BANDS = tuple(range(0, 100, 12))
SCHEMA = schema.Schema.of(
    band=schema.category(_BANDS), sex=schema.category(SEXES), group=schema.category(GROUPS), rows=len(PEOPLE)
)
PLAN = Laplace(query=bounds.cross({"band": _BANDS, "sex": SEXES, "group": GROUPS}, _REPLACE), epsilon=1)


@dataclass(frozen=True)
class Published:
    """One line of the tables: how many people there are of a sex, a group and a range of ages (None: of any), and, of
    the longer lines, their median and mean age."""

    sex: str | None
    group: str | None
    ages: tuple[int, int]
    count: int
    median: int | None = None
    mean: float | None = None

    def covers(self, kind: Kind) -> bool:
        return _covers(self.sex, self.group, self.ages, kind)


def _covers(sex: str | None, group: str | None, ages: tuple[int, int], kind: Kind) -> bool:
    return sex in (None, kind[1]) and group in (None, kind[2]) and ages[0] <= kind[0] <= ages[1]


def tables(people: tuple[Kind, ...]) -> list[Published]:
    """What the office prints: ages of each sex and group, left out where fewer than three are counted; and how many
    there are of each sex and of each group in ranges of age, children by single years."""
    lines = []
    for sex, group in product((None, *SEXES), (None, *GROUPS)):
        ages = sorted(kind[0] for kind in people if _covers(sex, group, _ALL, kind))
        if len(ages) >= 3:
            middle, mean = ages[(len(ages) - 1) // 2], round(sum(ages) / len(ages), 1)
            lines.append(Published(sex, group, _ALL, len(ages), middle, mean))
        else:
            lines.append(Published(sex, group, _ALL, len(ages)))
    for (sex, group), within in product(
        [*((sex, None) for sex in SEXES), *((None, group) for group in GROUPS)], RANGES
    ):
        lines.append(Published(sex, group, within, sum(_covers(sex, group, within, kind) for kind in people)))
    return lines


def _conditions(lines: list[Published]) -> Iterator[tuple[NDArray[np.float64], float, float]]:
    """(coefficients of how many there are of each kind, at least, at most)."""
    ages = np.array([kind[0] for kind in KINDS], dtype=np.float64)
    for line in lines:
        covered = np.array([line.covers(kind) for kind in KINDS], dtype=np.float64)
        yield covered, line.count, line.count
        if line.median is not None and line.mean is not None:
            below, middle = (line.count - 1) // 2, float(line.median)
            yield covered * (ages < middle), 0, below
            yield covered * (ages <= middle), below + 1, line.count
            total = line.mean * line.count
            yield covered * ages, np.ceil(total - 0.05 * line.count - 1e-9), np.floor(total + 0.05 * line.count + 1e-9)


def rebuilt(lines: list[Published]) -> tuple[list[Kind], bool]:
    """People that fit every line, and whether nobody else does.

    A second block of the same size has more people of some kind. So the first is the only one if no kind can have more:
    neither those it has, one by one, nor all others together.
    """
    coefficients, least, most = zip(*_conditions(lines), strict=True)
    fits = optimize.LinearConstraint(sparse.csr_array(np.array(coefficients)), np.array(least), np.array(most))
    first = _solved(np.zeros(len(KINDS)), fits)
    has = np.flatnonzero(first)
    wishes = [np.arange(len(KINDS)) == kind for kind in has] + [first == 0]
    alone = all(_solved(-wish.astype(np.float64), fits)[wish].sum() == first[wish].sum() for wish in wishes)
    return [KINDS[kind] for kind in np.repeat(has, first[has].astype(int))], alone


def _solved(cost: NDArray[np.float64], fits: optimize.LinearConstraint) -> NDArray[np.float64]:
    whole, most = np.ones(len(KINDS), dtype=np.int64), optimize.Bounds(0, len(PEOPLE))
    solved = optimize.milp(cost, integrality=whole, bounds=most, constraints=fits)
    if solved.x is None:
        raise ValueError("nobody fits these tables")
    return np.asarray(np.rint(solved.x))


@cache
def without() -> Shown:
    lines = tables(PEOPLE)
    people, alone = rebuilt(lines)
    right = len(set(people) & set(PEOPLE))
    fit = "and no other people fit" if alone else "though others fit as well"
    numbers = sum(1 + 2 * (line.mean is not None) for line in lines)
    return Shown(
        f"From {numbers} published numbers a solver finds {len(people)} people, {fit}: {right} of {len(PEOPLE)} are "
        "right in age, sex and group.",
        {"right": right / len(PEOPLE), "alone": float(alone)},
    )


def _tables(bit: bool) -> Columns:
    people = [(84, "M", "B" if bit else "A"), *PEOPLE[:-1]]
    ages, sexes, groups = zip(*people, strict=True)
    return {"band": [12 * (age // 12) for age in ages], "sex": sexes, "group": groups}


def lesson() -> Lesson:
    return lesson_on(
        PLAN,
        _tables,
        SCHEMA,
        name="census",
        id="R3",
        title="A block of people, rebuilt from the tables about it",
        source="Garfinkel, Abowd, Martindale 2018",
        story=f"A statistical office publishes median and mean ages of a block of {len(PEOPLE)} people, by sex and "
        "group, and how many there are by age and sex and by age and group, children by single years: as offices do.",
        without=without,
        moral="Tables that are harmless one by one are equations together. In 2010 such tables gave all records of "
        "most blocks away; in 2020 they were published with noise, from one budget.",
    )
