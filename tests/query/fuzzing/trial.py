"""Random queries on random worlds, each watched and checked. A seed fixes its world, its query and its unit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal

from sfumato.errors import SfumatoError
from sfumato.query import SqlReport, sql
from sfumato.query.plan import Sql
from sfumato.units import Unit

from .claims import check
from .queries import Question, question
from .staged import stages_of
from .watching import Broken, watch
from .worlds import World, world

Shape = Literal["alone", "above", "stages"]
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
    plan = sql(asked.text, opened.schema, unit=unit, **asked.options)
    assert isinstance(plan, Sql)
    return asked, plan


ABOVE = (
    "SELECT *, COUNT(*) OVER () AS beside FROM ({}) AS below_it",
    "WITH below_it AS ({}) SELECT * FROM below_it UNION ALL SELECT * FROM below_it",
    "SELECT (SELECT COUNT(*) FROM ({}) AS below_it) AS many, COUNT(*) AS n FROM visits",
)
"""SQL above the query of a seed. The last one is two releases."""


def releases_of(seed: int, opened: World) -> tuple[Question, tuple[Sql, ...]]:
    """The query of a seed with SQL above it: what is released below."""
    asked = question(seed, users=users_in(seed))
    text = ABOVE[seed % len(ABOVE)].format(asked.text)
    plan = sql(text, opened.schema, unit=opened.unit, **asked.options)
    assert isinstance(plan, SqlReport)
    asked.features.add(f"above {seed % len(ABOVE)}")
    return asked, tuple(plan.sqls.values())


def trial(seeds: Iterable[int], folder: Path, *, shape: Shape = "alone") -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises. With SQL "above" them, or in
    "stages", each of their releases."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        heavy = _HEAVY[number % len(_HEAVY)]
        with world(number, folder, users=users_in(number * PER_WORLD), heavy=heavy) as opened:
            for seed in these:
                _one(seed, opened, report, shape)
    return report


def _one(seed: int, opened: World, report: Report, shape: Shape) -> None:
    try:
        asked, plans = _asked(seed, opened, shape)
    except SfumatoError as refusal:
        report.refused[seed] = str(refusal)
        return
    used: dict[str, float] = {}
    for plan in plans:
        try:
            shares = check(watch(plan, opened)).used
        except Broken as problem:
            raise Broken(f"seed {seed}: {plan.text} with {asked.options}, {plan.unit}: {problem}") from None
        used = {name: max(share, used.get(name, 0.0)) for name, share in shares.items()} | (
            {name: share for name, share in used.items() if name not in shares}
        )
    report.checked += 1
    report.features.update(asked.features)
    for name, share in used.items():
        report.used[name] = max(report.used.get(name, 0.0), share)


def _asked(seed: int, opened: World, shape: Shape) -> tuple[Question, tuple[Sql, ...]]:
    if shape == "above":
        return releases_of(seed, opened)
    if shape == "stages":
        return stages_of(seed, opened, users=users_in(seed))
    asked, plan = plan_of(seed, opened)
    return asked, (plan,)
