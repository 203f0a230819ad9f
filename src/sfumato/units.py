"""Whose presence is hidden: the unit of privacy, of what kind it is, and the change that neighbours differ by.

A kind says in one place all that differs between units: its words, the columns that `of` names, whose each row is, and
what an audit calls made-up units. What a plan can hide is for the plan to say: those that read rows, queries and
training know rows and users so far (`rows_or_users`), and refuse all else at birth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from . import checks
from .errors import PlanError
from .record import record

Relation = Literal["add-remove", "replace", "zero-out"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)

_WORDS = {
    "add-remove": "present or absent",
    "replace": "exchanged for any other",
    "zero-out": "blanked out (the number of them is public)",
}
Cells = Sequence[Sequence[Any]]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Kind:
    """A kind of unit.

    word     how `of` begins; behind it stand `columns` columns, "word:column,column"
    one      one of them in words, with {0} and {1} for the columns
    owners   whose each row is: of the cells of its columns and the number of rows, codes with a column for each owner
             that a row has; -1 where it is nobody's
    called   what an audit writes into these columns in the so-manieth row of the so-manieth unit; None where they do
             not name it
    changes  what neighbours may differ by
    many     may one of them have many rows?
    """

    word: str
    columns: int
    one: str
    owners: Callable[[Cells, int], Codes]
    called: Callable[[int, int], tuple[str, ...]] | None = None
    changes: tuple[Relation, ...] = RELATIONS
    many: bool = True

    @property
    def form(self) -> str:
        """How `of` is written."""
        return self.word + (":" + ",".join(["<column>"] * self.columns) if self.columns else "")


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """From now on, units may be of this kind. What a word means never changes: it is stored."""
    if KINDS.setdefault(kind.word, kind) is not kind:
        raise checks.refuse("kind", kind.word, "a word that no other kind of unit has")
    return kind


def _each_its_own(cells: Cells, rows: int) -> Codes:
    return np.arange(rows, dtype=np.int64)[:, None]


def _by_name(cells: Cells, rows: int) -> Codes:
    """One owner for each column, by one numbering of all names: a NULL is nobody."""
    numbers: dict[Any, int] = {}
    codes = [[-1 if _null(cell) else numbers.setdefault(cell, len(numbers)) for cell in column] for column in cells]
    return np.array(codes, dtype=np.int64).reshape(len(cells), rows).T


def _by_pair(cells: Cells, rows: int) -> Codes:
    """One owner: the two ends together, whichever comes first. An edge without an end is nobody's."""
    pairs = [None if _null(one) or _null(other) else frozenset((one, other)) for one, other in zip(*cells, strict=True)]
    return _by_name([pairs], rows)


def _null(cell: Any) -> bool:
    return cell is None or cell != cell  # nan is no name


def _edge(number: int, place: int) -> tuple[str, ...]:
    """The pairs 0-1, 0-2, 1-2, 0-3, ...; rows of one edge go to and fro."""
    last = (1 + isqrt(1 + 8 * number)) // 2
    ends = f"node {number - last * (last - 1) // 2}", f"node {last}"
    return ends if place % 2 == 0 else ends[::-1]


def _node(number: int, place: int) -> tuple[str, ...]:
    """Edges to the nodes behind it, so that no other unit's rows are also this one's, and triangles come about."""
    ends = f"node {number}", f"node {number + 1 + place}"
    return ends if place % 2 == 0 else ends[::-1]


def _unit(number: int, place: int) -> tuple[str, ...]:
    return (f"unit {number}",)


_EVERYTHING = "everything one {0} ever contributed"
_HERE: tuple[Relation, ...] = ("add-remove", "replace")

ROW = register(Kind("row", 0, "one row", _each_its_own, many=False))
USER = register(Kind("user", 1, _EVERYTHING, _by_name, _unit))
CLIENT = register(Kind("client", 1, "everything one client ({0}) ever contributed", _by_name, _unit))
FAMILY = register(Kind("family", 1, "everything the members of one family ({0}) ever contributed", _by_name, _unit))
EDGE = register(Kind("edge", 2, "the edge between one {0} and one {1}, both ways", _by_pair, _edge, changes=_HERE))
NODE = register(Kind("node", 2, "one node, as {0} or {1}, with all its edges", _by_name, _node, changes=_HERE))
# The row itself stays: a value does not come or go.
VALUE = register(Kind("value", 1, "the {0} of one row", _each_its_own, changes=("replace", "zero-out"), many=False))


@record("unit/1", kept=True)
@dataclass(frozen=True)
class Unit:
    """The unit of privacy.

    >>> from sfumato import Unit
    >>> print(Unit())
    one row, present or absent
    >>> Unit("user:patient", group=2).group
    2

    of      "row", or "user:<column>" for everything that one value of that column ever contributed; also
            "client:<column>" and "family:<column>", "edge:<column>,<column>" and "node:<column>,<column>" with the
            columns of both ends, and "value:<column>" for that cell of one row
    change  what neighbours differ by: a unit added or removed, replaced by any other, or zeroed out
    group   hide any `group` units together (group privacy); sensitivities grow by this factor
    """

    of: str = "row"
    change: Relation = "add-remove"
    group: int = 1

    def __post_init__(self) -> None:
        checks.one_of(self.change, "change", RELATIONS)
        object.__setattr__(self, "group", checks.whole(self.group, "group", most=10**6))
        word = checks.label(self.of, "of").partition(":")[0]
        if word not in KINDS:
            raise checks.refuse("of", self.of, " or ".join(repr(kind.form) for kind in KINDS.values()))
        if len(self.columns) != self.of_kind.columns or not all(self.columns):
            raise checks.refuse("of", self.of, repr(self.of_kind.form))
        if len(set(self.columns)) < len(self.columns):
            raise checks.refuse("of", self.of, f"{self.of_kind.form!r} with two different columns, one for each end")
        if self.change not in self.of_kind.changes:
            allowed = " or ".join(map(repr, self.of_kind.changes))
            raise checks.refuse("change", self.change, f"{allowed}, as neighbours differ by {self.of_kind.word}s")

    @property
    def of_kind(self) -> Kind:
        return KINDS[self.of.partition(":")[0]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `of` names."""
        _, colon, names = self.of.partition(":")
        if not colon:
            return ()
        return tuple(names.split(",")) if self.of_kind.columns > 1 else (names,)

    @property
    def naming(self) -> tuple[str, ...]:
        """The columns that say whose a row is; none where it is its own, or keeps all but one value."""
        return () if self.of_kind.called is None else self.columns

    @property
    def takes_rows(self) -> bool:
        """Is every row one unit's, as a whole? Not where an edge has two ends, or a value is one of many."""
        return self.columns == self.naming and len(self.columns) < 2

    @property
    def column(self) -> str | None:
        """The column that names the unit, or None where each row is its own unit; refused where that says too little:
        whoever asks would hide a row, and promise a node."""
        if not self.takes_rows:
            raise PlanError(f"no column alone names the unit {self.of!r}: plans for rows and users cannot hide it")
        return self.columns[0] if self.columns else None

    @property
    def noun(self) -> str:
        """One of them in a word: the column that names a user, else the kind."""
        return self.columns[0] if self.of_kind is USER else self.of_kind.word

    def owners(self, columns: Mapping[str, Sequence[Any]]) -> Codes:
        """Whose each row is, as integer codes, with a column for each owner that a row has: two for a node. -1: nobody.

        columns  cells by name, those of the unit among them
        """
        return self.of_kind.owners([columns[name] for name in self.columns], len(next(iter(columns.values()))))

    def hiding(self, other_names: Mapping[str, str], paths: Mapping[str, str] = MappingProxyType({})) -> str:
        """The unit in words, with the column that names it in every table that calls it otherwise, and whatever else
        there is to say of whose a table's rows are."""
        words = {table: f"{column} names it" for table, column in other_names.items()}
        for table, path in paths.items():
            words[table] = f"{words[table]}; {path}" if table in words else path
        return str(self) + "".join(f"; in {table} {each}" for table, each in words.items())

    def __str__(self) -> str:
        one = self.of_kind.one.format(*self.columns)
        many = f"any {self.group} of: {one}" if self.group > 1 else one
        return f"{many}, {_WORDS[self.change]}"


def rows_or_users(unit: Any, name: str = "unit") -> Unit:
    """The unit of a plan that knows these two kinds only; refused at birth, before anybody relies on it."""
    checks.instance(unit, Unit, name, "a Unit")
    if unit.of_kind not in (ROW, USER):
        raise checks.refuse(
            name,
            unit.of,
            f"Unit() or Unit('user:<column>'), as what one {unit.of_kind.word} may change here is not bounded yet",
        )
    return unit
