"""Random queries on random worlds, each watched and checked. A seed fixes its world, its query and its unit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.query import sql
from sfumato.query.plan import Sql
from sfumato.units import Unit

from .claims import check
from .queries import Question, question
from .watching import Broken, watch
from .worlds import World, world

PER_WORLD = 25
_HEAVY = (600, 60, 3000, 200)  # rows of the heaviest unit


@dataclass
class Report:
    """What came of some seeds.

    refused   why queries were not taken, by seed
    features  how many checked queries used each feature
    used      how much of what is allowed was used at most, by claim: 1 is all of it
    """

    checked: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    features: Counter[str] = field(default_factory=Counter)
    used: dict[str, float] = field(default_factory=dict)


def users_in(seed: int) -> bool:
    """Every fourth world protects rows."""
    return seed // PER_WORLD % 4 != 3


def plan_of(seed: int, opened: World) -> tuple[Question, Sql]:
    asked = question(seed, users=users_in(seed))
    draw = random.Random(seed)
    unit = Unit(opened.unit.of, draw.choice(["add-remove", "add-remove", "replace"]), draw.choice([1, 1, 1, 2]))
    asked.features |= {unit.change, f"group of {unit.group}", unit.of}
    return asked, sql(asked.text, opened.schema, unit=unit, **asked.options)


def trial(seeds: Iterable[int], folder: Path) -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        heavy = _HEAVY[number % len(_HEAVY)]
        with world(number, folder, users=users_in(number * PER_WORLD), heavy=heavy) as opened:
            for seed in these:
                _one(seed, opened, report)
    return report


def _one(seed: int, opened: World, report: Report) -> None:
    try:
        asked, plan = plan_of(seed, opened)
    except SfumatoError as refusal:
        report.refused[seed] = str(refusal)
        return
    try:
        found = check(watch(plan, opened))
    except Broken as problem:
        raise Broken(f"seed {seed}: {asked.text} with {asked.options}, {plan.unit}: {problem}") from None
    report.checked += 1
    report.features.update(asked.features)
    for name, used in found.used.items():
        report.used[name] = max(report.used.get(name, 0.0), used)
