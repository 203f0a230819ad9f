"""Q7: a query in stages whose later stage reads the exact number.

Four hundred people are compared with how many have a rare illness: with nobody ill all of them are above that, with one
person ill none is. So the second stage is 400 or 0 by one person's coming and going, if it compares with the exact
number; with what was released of it, the noise of the first stage decides, and hardly hangs on one person.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.accounting import approximate
from sfumato.audit.counting import epsilon_lower_bound
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Run
from sfumato.query import Limits
from sfumato.schema import category, key, real
from sfumato.sources import connect
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, one_table, source_of
from .verdict import FALSE_ALARM, Verdict

USER = Unit("user:u")
SCHEMA = one_table({"u": key(), "x": real(0, 1), "state": category(["ill", "well"])}, "u")
TEXT = "SELECT COUNT(*) AS n FROM t WHERE x > (SELECT COUNT(*) - 0.25 FROM t WHERE state = 'ill')"
PEOPLE, SLIGHT = 400, 1e-6


def attack(asks: Asks = LIBRARY, runs: int = 200) -> Verdict:
    plan = asks(TEXT, SCHEMA, unit=USER, epsilon=1, delta=SLIGHT, limits=Limits())
    hits = {ill: sum(many > PEOPLE / 2 for many in _told(plan, ill, runs)) for ill in (False, True)}
    proven = max(
        epsilon_lower_bound(hits[one], runs, hits[not one], runs, delta=SLIGHT, confidence=1 - FALSE_ALARM / 2)
        for one in hits
    )
    claimed = float(approximate.epsilon(plan.event, plan.delta))
    words = (
        f"most people were above the released number in {hits[False]} of {runs} runs, with one person ill {hits[True]}."
    )
    return Verdict("Q7", proven > claimed, words, {"proven": proven, "claimed": claimed})


def _told(plan: Any, ill: bool, runs: int) -> np.ndarray[Any, Any]:
    """What the last stage says, again and again."""
    cells: dict[str, list[Any]] = {
        "u": [f"u{place}" for place in range(PEOPLE)], "x": [0.5] * PEOPLE, "state": ["well"] * PEOPLE,
    }  # fmt: skip
    if ill:
        cells = {
            name: [*column, each] for (name, column), each in zip(cells.items(), ("target", 0.0, "ill"), strict=True)
        }
    noise = Noise(SecureBits())
    with connect({"t": (SCHEMA.table("t"), source_of(cells))}, threads=1) as session:  # type: ignore[attr-defined]
        raws = [plan._run(session, Run(noise))["releases"]["release_2"] for _ in range(runs)]
    return np.array([numbers for raw in raws for [numbers] in raw["numbers"].values()])


CONTROL: Asks = queries.in_exact_stages
