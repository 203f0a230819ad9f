"""Sweeney 2002: a "de-identified" hospital file, and a voter list that has names.

The file has no names: post code, date of birth, sex and the diagnosis. The voter list, for sale, has the first three
with names. In Massachusetts the governor was the only one of his post code with his date of birth and sex.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ... import bounds, schema
from ...mechanisms.laplace import Laplace
from ...units import Unit
from ..made_up import MadeUp
from .base import Columns, Lesson, Shown, lesson_on

PATIENTS, VOTERS = 2_000, 6_000
ZIPS = tuple(f"021{number:02d}" for number in range(12))
ILLS = ("asthma", "cancer", "depression", "diabetes", "flu", "heart", "none")
_DAYS = 60 * 365
_REPLACE = Unit(change="replace")
SCHEMA = schema.Schema.of(zip=schema.category(ZIPS), ill=schema.category(ILLS), rows=PATIENTS)
PLAN = Laplace(query=bounds.cross({"zip": ZIPS, "ill": ILLS}, _REPLACE), epsilon=1)


@cache
def town(seed: int = 3) -> dict[str, Any]:
    """Everybody: a number instead of a name, post code, day of birth, sex; of the first PATIENTS an illness."""
    draw = MadeUp(seed)
    return {
        "zip": draw.below(len(ZIPS), VOTERS),
        "born": draw.below(_DAYS, VOTERS),
        "sex": draw.below(2, VOTERS),
        "ill": draw.below(len(ILLS), PATIENTS),
    }


def matched() -> tuple[int, int]:
    """(patients who match exactly one voter, those of them named rightly), by the three columns that both have."""
    everybody = town()
    code = (everybody["zip"] * _DAYS + everybody["born"]) * 2 + everybody["sex"]
    on_list = MadeUp(4).below(5, VOTERS) > 0  # four of five vote
    voters = np.flatnonzero(on_list)
    values, first, times = np.unique(code[voters], return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(values, code[:PATIENTS]), values.size - 1)
    alone = (values[place] == code[:PATIENTS]) & (times[place] == 1)
    named = voters[first[place]] == np.arange(PATIENTS)
    return int(alone.sum()), int((alone & named).sum())


def without() -> Shown:
    claimed, right = matched()
    return Shown(
        f"Of {PATIENTS} patients without names {claimed} match exactly one voter, and {right} of these matches are "
        f"right: {100 * right / PATIENTS:.0f} % of the patients have their name and their diagnosis back.",
        {"matched": claimed / PATIENTS, "named rightly": right / PATIENTS},
    )


def _tables(bit: bool) -> Columns:
    """The governor's diagnosis is one or another."""
    everybody = town()
    ills = [ILLS[code] for code in everybody["ill"].tolist()]
    ills[0] = "heart" if bit else "none"
    return {"zip": [ZIPS[code] for code in everybody["zip"][:PATIENTS].tolist()], "ill": ills}


def lesson() -> Lesson:
    return lesson_on(
        PLAN,
        _tables,
        SCHEMA,
        name="linkage",
        id="R4",
        title="A hospital file without names, and a voter list with them",
        source="Sweeney 2002, the Weld case",
        story="An insurer gives researchers a file of hospital visits. The names are taken out; post code, date of "
        "birth and sex are left in, for they are useful.",
        without=without,
        moral="Which columns identify depends on what others know, and nobody can list that. Publish answers, not "
        "rows.",
    )
