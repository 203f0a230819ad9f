"""Two questions instead of one, and one question many times.

The difference of two counts that differ by one person is that person. The mean of many noisy answers to one question is
the answer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds, grid, schema
from ...accounting.filters import Budget
from ...combine import sequence
from ...curator import Curator
from ...ledger.memory import MemoryLedger
from ...mechanisms.laplace import Laplace
from ...noise import Noise, SecureBits
from ...private import Private
from ...units import Unit
from .base import Columns, Lesson, Shown, exactly, nearer
from .game import released

PEOPLE, REPEATS = 200, 50
_REPLACE = Unit(change="replace")
_NAMES = tuple(f"p{number:03d}" for number in range(PEOPLE))
SCHEMA = schema.Schema.of(who=schema.category(_NAMES), ill=schema.flag(), rows=PEOPLE)
ONE = Laplace(query=bounds.count_where(_REPLACE, {"ill": (True,)}), epsilon=1)
_HALF = Fraction(1, 2)
BOTH = sequence(
    all=Laplace(query=bounds.count_where(_REPLACE, {"ill": (True,)}), epsilon=_HALF),
    others=Laplace(query=bounds.count_where(_REPLACE, {"ill": (True,), "who": _NAMES[1:]}), epsilon=_HALF),
)


def _tables(bit: bool) -> Columns:
    """Whether the first one is ill."""
    return {"who": list(_NAMES), "ill": [bit] + [number % 3 == 0 for number in range(1, PEOPLE)]}


def _apart(seen: Any) -> bool:
    """Of two counts, with and without somebody."""
    with_all, with_others = np.ravel(list(seen.values()) if isinstance(seen, dict) else seen)
    return bool(with_all - with_others > 0.5)


def _counted(bit: bool) -> list[float]:
    return [float(exactly(part, _tables(bit), SCHEMA)[0]) for part in BOTH.parts.values() if isinstance(part, Laplace)]


def _difference() -> Shown:
    yes, no = (everybody - others for everybody, others in map(_counted, (True, False)))
    return Shown(
        f"`How many are ill?` less `How many are ill, without the first?` is {yes:g} if the first one is ill, and "
        f"{no:g} if not. A rule that refuses counts below five refuses neither.",
        {"ill": yes, "not ill": no},
    )


def differencing() -> Lesson:
    return Lesson(
        name="differencing",
        id="R2",
        title="The difference of two counts",
        source="known since Denning 1980",
        story="A service answers any count of at least five people, exactly.",
        without=_difference,
        ours=lambda bit: released(BOTH, _tables(bit), SCHEMA),
        bare=_counted,
        guess=_apart,
        epsilon=float(BOTH.price()),
        moral="Each answer was allowed, the pair was not. Both are paid for here, and what they tell together is "
        "within the sum.",
    )


def _again(bit: bool) -> Any:
    """The same question to one curator: paid for once, and the same answer every time."""
    data = Private("people", dict(_tables(bit)), unit=ONE.unit, schema=SCHEMA)
    curator = Curator(data, MemoryLedger({"people": Budget(epsilon=ONE.epsilon)}))
    return np.mean([float(np.ravel(curator.release(ONE).value)[0]) for _ in range(REPEATS)])


def _afresh(bit: bool) -> Any:
    """The same question to a service that draws anew and adds nothing up."""
    noise = Noise(SecureBits()).draw(ONE.law, REPEATS)
    return exactly(ONE, _tables(bit), SCHEMA) + np.mean(grid.to_float(noise, ONE.exponent))


def _mean() -> Shown:
    seen, true = float(_afresh(True)[0]), float(exactly(ONE, _tables(True), SCHEMA)[0])
    return Shown(
        f"The mean of {REPEATS} answers is off by {abs(seen - true):.2f}, where one answer is off by {ONE.std:.2f} or "
        "so.",
        {"off by": abs(seen - true)},
    )


def averaging() -> Lesson:
    return Lesson(
        name="averaging",
        id="B1",
        title="The same question fifty times",
        source="PriPeARL 2018 meets it with noise that repeats",
        story="A service adds fresh noise to every answer, and charges nobody.",
        without=_mean,
        ours=_again,
        bare=_afresh,
        guess=nearer(ONE, _tables, SCHEMA),
        epsilon=float(ONE.price()),
        moral="Noise that can be drawn again can be averaged away. The same question is answered from the store, for "
        "nothing; a rewritten one is a new question, and pays.",
    )
