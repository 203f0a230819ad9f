"""How many rows satisfy a public condition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..checks import Exact
from ..questions import ANY_ORDER, FINE
from ..record import record
from ..rows import Rows
from ..schema import INT64, Column, Named
from .base import Vector
from .counts import Count
from .gather import recode, whole_vector


@record("among/1")
@dataclass(frozen=True)
class Among:
    """A category or flag that is one of these values."""

    values: tuple[Any, ...] = field(metadata=ANY_ORDER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", checks.distinct(self.values, "where", least=1))

    @property
    def column(self) -> Column:
        return schema.category(self.values)

    def holds(self, rows: Rows, name: str) -> NDArray[np.bool_]:
        return recode(rows, name, self.values)[1]

    def __str__(self) -> str:
        return "in " + ", ".join(map(str, self.values))


@record("between/1")
@dataclass(frozen=True)
class Between:
    """A number from `lower` to `upper`, both included; None leaves an end open."""

    lower: Exact = field(default=None, metadata=FINE)
    upper: Exact = field(default=None, metadata=FINE)

    def __post_init__(self) -> None:
        if self.lower is None and self.upper is None:
            raise checks.refuse("where", (None, None), "an interval with at least one end")
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.bound(getattr(self, name), f"where: {name}"))
        if None not in (self.lower, self.upper) and self.lower > self.upper:
            raise checks.refuse("where: lower", self.lower, f"a number up to upper = {self.upper}")

    @property
    def column(self) -> Column:
        """Any number will do; what is made up lies on both sides of the ends."""
        ends = [end for end in (self.lower, self.upper) if end is not None]
        margin = 2 * max(Fraction(1), *map(abs, ends))
        most = checks.MAGNITUDE[1]
        return schema.real(max(min(ends) - margin, -most), min(max(ends) + margin, most))

    def holds(self, rows: Rows, name: str) -> NDArray[np.bool_]:
        """Values are clamped to the schema's bounds first, as everywhere."""
        series = rows[name]
        if series.values.dtype.kind == "i":
            low = INT64[0] if self.lower is None else max(math.ceil(self.lower), INT64[0])
            high = INT64[1] if self.upper is None else min(math.floor(self.upper), INT64[1])
            inside = (series.values >= low) & (series.values <= high) if low <= high else np.zeros(len(series), bool)
            return series.valid & inside
        least, most = map(float, rows.table.column(name).interval)
        values = np.clip(series.values, least, most)
        above = -math.inf if self.lower is None else float(self.lower)
        below = math.inf if self.upper is None else float(self.upper)
        return series.valid & (values >= above) & (values <= below)

    def __str__(self) -> str:
        low, high = ("" if end is None else f"{float(end):g}" for end in (self.lower, self.upper))
        return f"from {low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"


@record("count-where/1")
@dataclass(frozen=True, kw_only=True)
class CountWhere(Count):
    """How many rows satisfy every condition of `where` (of a unit's such rows, at most `per_unit` count).

    A column is among listed values (give a list), or from a lower to an upper end (give a pair of numbers, None for an
    open end). A NULL satisfies nothing. A unit's rows are counted up to `per_unit`, so whatever becomes of the unit,
    the count moves by at most that, under every relation.
    """

    where: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.where, Mapping) or not self.where:
            raise checks.refuse(
                "where", self.where, "conditions by column, such as {'ward': ['east'], 'age': (18, 65)}"
            )
        for name in self.where:
            checks.label(name, "the name of a column")
        object.__setattr__(self, "where", Named({name: _condition(given) for name, given in self.where.items()}))

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: condition.column for name, condition in self.where.items()}

    @property
    def names(self) -> tuple[str]:
        return ("rows with " + " and ".join(f"{name} {condition}" for name, condition in self.where.items()),)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        holds = np.logical_and.reduce([condition.holds(rows, name) for name, condition in self.where.items()])
        counted = np.minimum(np.bincount(rows.units[holds], minlength=rows.unit_count), self.per_unit)
        return whole_vector([int(counted.sum()) << -exponent])


def _condition(condition: Any) -> Among | Between:
    if isinstance(condition, Among | Between):
        return condition
    if isinstance(condition, tuple) and len(condition) == 2 and all(_is_end(end) for end in condition):
        return Between(*condition)
    return Among(condition)


def _is_end(value: Any) -> bool:
    return value is None or not isinstance(value, str | bool | np.bool_)
