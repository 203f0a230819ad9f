"""What every unit holds in every group, added up once for all statements of an advised release.

The adviser's histograms, the sums themselves and what limits cut from them are all made of the same whole numbers: one
row for each unit and group, with the sum of every measure there. Their grid follows from the bounds of the measures
alone, and is finer than the noise. An engine that can keep them is asked for them once (`Session.keep`), and for
everything else among them; of other engines the same is asked with the statement in their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .bounding import COUNT, added_up
from .kinds import Kind, Typed
from .measures import Coordinate, Measure

if TYPE_CHECKING:
    from ..sources import Connection
    from .plan import Sql

_FINE = 20
BITS = 8
_WHOLE = Kind("whole")


@dataclass(frozen=True, eq=False)
class UnitSums:
    """`rows` is what to ask for them; `places` has, by name of a measure, the column that its sums stand in, and the
    exponent of their steps. Rows that are counted stand in COUNT."""

    rows: exp.Query
    places: Mapping[str, tuple[str, int]]

    def place(self, measure: Measure) -> tuple[str, int]:
        return (COUNT, 0) if measure.row is None else self.places[measure.name]


def unit_sums(plan: Sql) -> UnitSums:
    """The statement for all measures of a query."""
    columns: dict[str, Typed] = {}
    places: dict[str, tuple[str, int]] = {}
    for measure in plan.questions.measures:
        tree, exponent = _quantum(measure)
        if tree is not None:
            name = f"q{len(columns)}"
            columns[name] = Typed(tree, _WHOLE)
            places[measure.name] = name, exponent
    front, layout = plan.front, plan.layout
    counts = layout.rows or any(measure.row is None for measure in plan.questions.measures)
    tree = added_up(
        front.rows(columns), keys=len(front.keys), sums=tuple(columns), counts=counts, single=front.reading.single
    )
    return UnitSums(tree, places)


def keep_sums(plan: Sql, connection: Connection) -> UnitSums | None:
    """The sums, in the engine if it keeps them; None where the adviser asks for none."""
    if not (plan.layout.votes or plan.layout.sized):
        return None
    sums = unit_sums(plan)
    keep = getattr(connection, "keep", None)
    return sums if keep is None else UnitSums(keep(sums.rows), sums.places)


def _quantum(measure: Measure) -> tuple[Any, int]:
    """A measure's rows in steps fine enough to tell lengths, and the exponent of a step."""
    coordinate = Coordinate(measure, measure.usual, Fraction(1), measure.usual * 2 ** (34 - BITS - _FINE), BITS)
    return coordinate.quantum(), coordinate.exponent
