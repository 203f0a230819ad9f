"""What is asked of the cells: tables, each with some of the columns, by value, in ranges, or added up as they go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...record import record
from ...schema import Named
from ...strategies import Cells, Intervals, Prefixes, Ranges, Workload
from ..keys import Key, label

VALUES, CUMULATIVE, RANGES = FORMS = ("values", "cumulative", "ranges")
MOST = 10**6
"""Numbers that a workload measures, or tells, at most."""
_MOST_RANGED = 256
Ends = tuple[NDArray[np.intp], NDArray[np.intp]]


@record("asked-table/1")
@dataclass(frozen=True, kw_only=True)
class AskedTable:
    """One table: a name, and its columns with the form of each; all other columns are added up.

    columns  "values": each value by itself. "cumulative": up to each value. "ranges": from each value to each later
             one. Or a list of pairs (first, last) of values: these ranges, both ends among them
    """

    name: str
    columns: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.label(self.name, "name")
        checks.instance(self.columns, Mapping, f"columns of {self.name}", "forms by column, such as {'age': 'ranges'}")
        forms = {checks.label(column, "column").lower(): _form(form, column) for column, form in self.columns.items()}
        object.__setattr__(self, "columns", Named(forms))


@dataclass(frozen=True)
class TableColumn:
    """A column of the cells: its values in their public order.

    place  among the columns of the cells
    """

    place: int
    name: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, place: int, key: Key) -> TableColumn:
        return cls(place, key.name, tuple(key.values or ()))

    def ends(self, form: Any) -> Ends:
        """Where each of the intervals of a form begins and ends, in cells."""
        n = len(self.values)
        if form == VALUES:
            return np.arange(n), np.arange(1, n + 1)
        if form == CUMULATIVE:
            return np.zeros(n, dtype=np.intp), np.arange(1, n + 1)
        if form == RANGES:
            if n > _MOST_RANGED:
                raise checks.refuse(
                    f"columns of {self.name}",
                    RANGES,
                    f"ranges of at most {_MOST_RANGED} values; 'cumulative' tells all",
                )
            first, last = np.triu_indices(n)
            return first, last + 1
        place = {label(value): at for at, value in enumerate(self.values)}
        pairs = np.array([[self._at(end, place) for end in pair] for pair in form], dtype=np.intp)
        if (pairs[:, 0] > pairs[:, 1]).any():
            raise checks.refuse(f"columns of {self.name}", "...", "ranges whose first value is not after their last")
        return pairs[:, 0], pairs[:, 1] + 1

    def _at(self, end: Any, place: Mapping[str, int]) -> int:
        if label(end) not in place:
            values = f"values that {self.name} can have: {label(self.values[0])}, ..., {label(self.values[-1])}"
            raise checks.refuse(f"ranges of {self.name}", end, values)
        return place[label(end)]

    def workload(self, form: Any) -> Workload:
        """The same as linear queries of the column."""
        n = len(self.values)
        if form in FORMS:
            kinds: dict[str, type[Workload]] = {VALUES: Cells, CUMULATIVE: Prefixes, RANGES: Ranges}
            return kinds[form](cells=n)
        firsts, afters = self.ends(form)
        return Intervals(cells=n, firsts=firsts, afters=afters)

    def titles(self, form: Any) -> list[Any]:
        """What each of them is called: values as they are, anything else in words."""
        if form == VALUES:
            return list(self.values)
        if form == CUMULATIVE:
            return [f"up to {label(value)}" for value in self.values]
        return [
            f"{label(self.values[a])} to {label(self.values[b - 1])}" for a, b in zip(*self.ends(form), strict=True)
        ]


def tables_of(wanted: Any, columns: Sequence[str], ways: Any = None) -> tuple[AskedTable, ...]:
    """Tables as people write them: lists of columns, or forms by column, by name or one after the other; and, for
    `ways`, every table of at most so many columns."""
    tables: list[AskedTable] = []
    if isinstance(wanted, Mapping):
        tables = [_table(item, name) for name, item in wanted.items()]
    elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
        tables = [item if isinstance(item, AskedTable) else _table(item) for item in wanted]
    elif wanted is not None or ways is None:
        raise checks.refuse("tables", wanted, "tables such as [['age', 'sex'], {'day': 'cumulative'}], or ways=2")
    if ways is not None:
        most = checks.whole(ways, "ways", most=max(len(columns), 1))
        names_so_far = {table.name for table in tables}
        sets = (some for many in range(most + 1) for some in combinations(columns, many))
        tables += [table for some in sets if (table := _table(some)).name not in names_so_far]
    return tuple(tables)


def _table(item: Any, name: str | None = None) -> AskedTable:
    if isinstance(item, Mapping):
        forms = dict(item)
    elif isinstance(item, Sequence) and not isinstance(item, str):
        forms = dict.fromkeys(item, VALUES)
        if len(forms) < len(item):
            raise checks.refuse("tables", "...", "no column twice in a table")
    else:
        raise checks.refuse("tables", item, "a list of columns, or forms by column, for each table")
    return AskedTable(name=_named(forms) if name is None else name, columns=forms)


def _named(forms: Mapping[str, Any]) -> str:
    words = (str(column) if form == VALUES else f"{column} ({form if isinstance(form, str) else 'given'})"
             for column, form in forms.items())  # fmt: skip
    return " by ".join(words) or "total"


def _form(form: Any, column: str) -> Any:
    if isinstance(form, str):
        return checks.one_of(form, f"form of {column}", FORMS)
    allowed = "'values', 'cumulative', 'ranges', or a list of pairs (first, last)"
    if not isinstance(form, list | tuple) or not form:
        raise checks.refuse(f"form of {column}", form, allowed)
    pairs = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in form]
    if any(len(pair) != 2 for pair in pairs):
        raise checks.refuse(f"form of {column}", "...", allowed)
    return tuple(tuple(end if isinstance(end, int) else label(end) for end in pair) for pair in pairs)


def answers(table: AskedTable, columns: Mapping[str, TableColumn]) -> int:
    """How many numbers a table tells."""
    return math.prod(len(columns[name].ends(form)[0]) for name, form in table.columns.items())
