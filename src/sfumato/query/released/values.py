"""What stands in the cells of a released table: figures, keys, truths and lists."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from ..kinds import Type
from ..refusal import QueryError
from .figures import Bools, Figure, constant

Objects = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Keys:
    """Values of a key for each group; None is NULL. The type is the schema's, whatever the values are."""

    values: Objects
    type: Type

    def as_text(self) -> Keys:
        return self if self.type == "text" else Keys(objects(map(_text, self.values)), "text")

    def as_moments(self) -> Keys:
        """Of dates: the moments they begin at."""
        midnight = datetime.time()
        return Keys(
            objects(
                datetime.datetime.combine(each, midnight) if type(each) is datetime.date else each
                for each in self.values
            ),
            "moment",
        )

    def as_dates(self) -> Keys:
        return Keys(objects(None if each is None else each.date() for each in self.values), "date")


@dataclass(frozen=True, eq=False)
class Truth:
    """True, false or unknown for each group. `guards` are noisy numbers whose sign decided it."""

    true: Bools
    known: Bools
    guards: tuple[Figure, ...] = ()

    def __and__(self, other: Truth) -> Truth:
        false = (self.known & ~self.true) | (other.known & ~other.true)
        true = self.true & other.true
        return Truth(true, true | false, self.guards + other.guards)

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)

    def __invert__(self) -> Truth:
        return Truth(self.known & ~self.true, self.known, self.guards)


@dataclass(frozen=True, eq=False)
class Lists:
    """A list for each group (a histogram, several quantiles): one figure for each place in it."""

    places: tuple[Figure, ...]


Value = Figure | Keys | Truth | Lists


def keys(values: Any, type: Type) -> Keys:
    """Key values of one type, one for each group."""
    return Keys(objects(values), type)


def as_figure(value: Value) -> Figure | None:
    """A number; numeric keys are numbers without noise."""
    if isinstance(value, Keys) and value.type in ("whole", "real"):
        return constant([np.nan if each is None else float(each) for each in value.values], value.values.size)
    return value if isinstance(value, Figure) else None


def as_truth(value: Value) -> Truth | None:
    if isinstance(value, Keys) and value.type == "flag":
        known = np.array([each is not None for each in value.values], dtype=np.bool_)
        return Truth(np.array([bool(each) for each in value.values], dtype=np.bool_), known)
    return value if isinstance(value, Truth) else None


def compare_keys(compare: Callable[[Any, Any], Any], left: Objects, right: Objects) -> Truth:
    known = np.array([a is not None and b is not None for a, b in zip(left, right, strict=True)], dtype=np.bool_)
    pairs = zip(left, right, known, strict=True)
    return Truth(np.array([bool(is_known and compare(a, b)) for a, b, is_known in pairs], dtype=np.bool_), known)


def keys_of(value: Keys | Truth) -> Keys:
    if isinstance(value, Keys):
        return value
    return Keys(objects(bool(t) if k else None for t, k in zip(value.true, value.known, strict=True)), "flag")


def objects(values: Any) -> Objects:
    items = list(values)
    made = np.empty(len(items), dtype=np.object_)
    made[:] = items
    return made


def _text(value: Any) -> str | None:
    """As the engine writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)


def moment(node: exp.Expression) -> datetime.datetime:
    """The date or moment that a text of the query says."""
    try:
        return datetime.datetime.fromisoformat(node.this).replace(tzinfo=None)
    except ValueError:
        raise QueryError("This text is no date.", "write dates as '2024-03-31'", node) from None
