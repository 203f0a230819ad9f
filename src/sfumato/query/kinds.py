"""What is publicly known of an expression's values: their type, interval and possible values. Nothing is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

from ..schema import Column
from .public_images import Image

FEW = 1000
"""Whole numbers and days are public groups where the schema allows no more than this."""
MANY_DAYS = 10_000
"""So many days, or whole numbers, are looked through for those that can occur."""
Type = Literal["real", "whole", "flag", "text", "key", "date", "moment", "span"]

SQL_TYPES: dict[str, str] = {
    "real": "DOUBLE",
    "whole": "BIGINT",
    "flag": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "moment": "TIMESTAMP",
}


@dataclass(frozen=True)
class Likely:
    """Where values lie by what the query says of its rows, or beyond which hardly any unit comes.

    Only what is added up, counted in leaves or the like is *clamped* to it: so what a unit may move is bounded by it
    whatever rows hold, and no other expression relies on it. Were it wrong, a number would be off, and nothing else.

    generous  a limit of ours, far beyond what is usual, for what has none of its own, as the rows of one unit
    """

    lower: Fraction | None = None
    upper: Fraction | None = None
    generous: bool = False

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None


@dataclass(frozen=True)
class Kind:
    """The static type of an expression over private rows.

    type     real (DOUBLE, never NaN), whole (BIGINT), flag, text, key (whatever the source holds: only compared for
             equality, counted and grouped by), date, moment (a timestamp), span (a number of days, months, ...)
    lower    the interval that values lie in, where one is known; of dates in days, of moments in microseconds, since
    upper    1970-01-01
    values   all the values it can take, where these are public (a category, a flag, a CASE over constants)
    origin   (table, column) of a public table that holds all its values
    row      which row of that table it is from: columns of equal `row` hold values that stand in one row of it
    unit     is this the very column that names the unit?
    nullable might it be NULL?
    reference  (table, column) that a declared key leads to: a cell of that column, or of a key that leads there, of a
             row of this very unit, as the engine's view holds it. All such have one type in the engine
    image    the same expression over what is public, where its values are told by that alone
    places   of a real: values are decimals of so many places and at most 15 digits; in the engine, the doubles nearest
    likely   where it lies by what the query says, beyond what is sure
    """

    type: Type
    lower: Fraction | None = None
    upper: Fraction | None = None
    values: tuple[Any, ...] | None = None
    origin: tuple[str, str] | None = None
    unit: bool = False
    nullable: bool = True
    places: int | None = None
    row: Any = field(default=None, compare=False)
    reference: tuple[str, str] | None = field(default=None, compare=False)
    image: Image | None = field(default=None, compare=False, repr=False)
    likely: Likely | None = field(default=None, compare=False, repr=False)

    @property
    def numeric(self) -> bool:
        return self.type in ("real", "whole")

    @property
    def is_real(self) -> bool:
        return self.type == "real"

    @property
    def is_whole(self) -> bool:
        return self.type == "whole"

    @property
    def is_flag(self) -> bool:
        return self.type == "flag"

    @property
    def is_date(self) -> bool:
        return self.type == "date"

    @property
    def temporal(self) -> bool:
        """A day or a moment: counted, compared and cut like numbers, but no number."""
        return self.type in ("date", "moment")

    @property
    def textual(self) -> bool:
        """Read out of a text, or of whatever a key is written as."""
        return self.type in ("text", "key")

    def moved(self) -> Kind:
        """The same values, out of other rows."""
        return replace(self, unit=False, nullable=True, row=None, reference=None, image=None)

    @property
    def within_unit(self) -> bool:
        """Has each of its values one unit's rows alone: its name, or a key of something that it owns?"""
        return self.unit or self.reference is not None

    def or_missing(self) -> Kind:
        """The same values, or NULL where an outer join found no row: then it does not name the unit."""
        image = None if self.image is None else self.image.missing()
        return replace(self, unit=False, nullable=True, image=image)

    def listable(self, most: int = FEW) -> bool:
        """Does the schema list its values, or bound whole numbers or days so that there are no more than this?"""
        if self.values is not None:
            return True
        if self.lower is None or self.upper is None or self.type not in ("whole", "date"):
            return False
        return self.upper - self.lower < most

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None


def of_column(column: Column, *, unit: bool = False) -> Kind:
    """What the schema says of a column."""
    return replace(OF_COLUMNS[column.type](column), unit=unit and column.of_kind.names_units)


def _real(column: Column) -> Kind:
    return Kind("real", column.lower, column.upper, nullable=column.drops_nulls, places=column.decimals)


def _whole(column: Column) -> Kind:
    return Kind("whole", column.lower, column.upper, nullable=column.drops_nulls)


def _listed(column: Column) -> Kind:
    values = column.categories
    if type(values[0]) is int:
        return Kind("whole", Fraction(min(values)), Fraction(max(values)), values, nullable=column.drops_nulls)
    return Kind("text", values=values, nullable=column.drops_nulls)


OF_COLUMNS: dict[str, Callable[[Column], Kind]] = {
    "real": _real,
    "whole": _whole,
    "category": _listed,
    "flag": lambda column: Kind("flag", values=(False, True), nullable=column.drops_nulls),
    "key": lambda column: Kind("key"),
    "date": lambda column: Kind("date", column.lower, column.upper),
    "moment": lambda column: Kind("moment", column.lower, column.upper),
}
"""The static type of a column, by its kind. Engines hold no arrays, so tensor columns have none."""


@dataclass(frozen=True)
class Typed:
    """An engine expression that never raises, whatever a row holds, and what is known of its values."""

    tree: exp.Expression
    kind: Kind
