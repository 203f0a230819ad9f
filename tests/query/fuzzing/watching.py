"""A release watched on data and neighbours at once: what the engine was asked, and what each noise was added to.

The whole release runs once per neighbour, from the plan's own `_run` on. Every noisy number is the same in all runs
(what an onlooker sees), so everything that was chosen on the way is the same too; what differs is the exact whole
numbers below the noise. Nothing is taken from the query's code but those and the laws of the noise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from unittest import mock

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato.laws import Law
from sfumato.query.design import Design
from sfumato.query.measures import Coordinate
from sfumato.query.plan import Sql
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.statements import checked

from .worlds import World

_FAR = 2**60
STATEMENTS_ONLY = ("mixed", "alone")
"""Sessions whose results are compared as they are."""
Cells = dict[tuple[str, ...], tuple[int, ...]]


class Broken(AssertionError):  # noqa: N818
    """The release does not keep what it promises."""


@dataclass
class Asked:
    """One statement, and its result from each session: numbers by key."""

    text: str
    tables: Mapping[str, Any]

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return {which: cells(table) for which, table in self.tables.items()}

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(_NUMBERS.fullmatch(name) is not None for name in self.names)

    @property
    def names(self) -> list[str]:
        return next(iter(self.tables.values())).column_names


@dataclass
class Drawn:
    """One draw of noise: its law, what it is for, the statement before it, and what it was added to by neighbour.

    threshold  what noisy numbers had to reach for their groups to be shown, where this draw chose groups
    """

    law: Law
    coordinate: Coordinate | None
    after: int
    exact: dict[str, NDArray[Any]] = field(default_factory=dict)
    noisy: NDArray[Any] | None = None
    threshold: int | None = None


@dataclass
class Watched:
    """All of one release."""

    plan: Sql
    asked: list[Asked]
    drawn: list[Drawn]
    raw: dict[str, Any]


def watch(plan: Sql, world: World, only: Sequence[str] | None = None) -> Watched:
    """Run the release on the data and all neighbours."""
    names = list(only or world.sessions)
    seen = Watched(plan, [], [], {})
    laws: list[tuple[Law, Coordinate]] = []

    def law_of(design: Design, coordinate: Coordinate) -> Law:
        made = design.blur.law(coordinate.steps)
        laws.append((made, coordinate))
        return made

    with mock.patch.object(Design, "law", law_of):
        for which in names:
            if which in STATEMENTS_ONLY:
                continue
            runner = _Runner(seen, world, names, which, laws)
            raw = plan._run(runner, runner)  # type: ignore[arg-type]
            if which == names[0]:
                seen.raw = raw
            elif repr(raw) != repr(seen.raw):
                raise Broken(f"{which}: the same noisy numbers gave another answer")
    return seen


class _Runner:
    """Both the connection and the run of a plan: it answers statements, and it draws noise."""

    dialect = "duckdb"

    def __init__(
        self, seen: Watched, world: World, names: list[str], which: str, laws: list[tuple[Law, Coordinate]]
    ) -> None:
        self.seen, self.world, self.names, self.which = seen, world, names, which
        self.laws = laws
        self.first = which == names[0]
        self.statements = self.draws = 0
        self.choosing = False
        self.noise: Any = self  # as a Run has it

    def run(self, tree: Any) -> Any:
        if self.first:
            text = checked(tree, self.world.sessions["all"].tables, DUCKDB)
            tables = {name: _result(self.world.sessions[name], text, name) for name in self.names}
            self.seen.asked.append(Asked(text, tables))
        elif self.statements >= len(self.seen.asked) or (
            self.which == "without a"  # one of them is enough, and texts take long to make
            and self.seen.asked[self.statements].text != DUCKDB.text(tree)
        ):
            raise Broken(f"{self.which}: the engine is asked something else, though all noisy numbers are the same")
        table = self.seen.asked[self.statements].tables[self.which]
        self.statements += 1
        self.choosing = self.seen.plan.front.selects and table.column_names[-1] == "v"
        return table

    def draw(self, law: Law, count: int) -> Any:
        if self.first:
            meant = next((each for made, each in self.laws if made is law), None)
            self.seen.drawn.append(Drawn(law, meant, self.statements - 1))
        if self.draws >= len(self.seen.drawn) or self.seen.drawn[self.draws].law != law:
            raise Broken(f"{self.which}: other noise is drawn, though all noisy numbers are the same")
        made = self.seen.drawn[self.draws]
        self.draws += 1
        return _Noise(np.zeros(count, dtype=np.int64), self, made)

    def added(self, made: Drawn, exact: NDArray[Any]) -> NDArray[Any]:
        """What the onlooker sees instead of exact + noise."""
        made.exact[self.which] = exact.copy()
        if self.choosing:
            self.choosing = False
            return self._chosen(made, exact)
        if made.noisy is None:
            made.noisy = exact.copy()
        if made.noisy.shape != exact.shape:
            raise Broken(f"{self.which}: the number of noisy numbers depends on the data")
        return made.noisy.copy()

    def _chosen(self, made: Drawn, exact: NDArray[Any]) -> NDArray[Any]:
        """Show the groups that all neighbours have: what the others have alone is for delta."""
        asked = self.seen.asked[self.statements - 1]
        shared = set.intersection(*(set(asked.cells[name]) for name in self.names if name not in STATEMENTS_ONLY))
        mine = keys_in(asked.tables[self.which])
        return _Noisy(np.array([_FAR if key in shared else -_FAR for key in mine], dtype=object), made)


def _result(session: Any, text: str, which: str) -> Any:
    """As `session.run` gives it, but with the engine's own words where it fails."""
    for name, columns in session.tables.items():
        session._see(name, columns)  # whose views are made when they are first asked for
    try:
        return session._engine.sql(text).to_arrow_table()
    except duckdb.Error as problem:
        raise Broken(f"{which}: the engine fails: {problem}: {text}") from None


class _Noise(np.ndarray[Any, Any]):
    """Noise that tells what it is added to."""

    def __new__(cls, values: NDArray[Any], runner: _Runner, made: Drawn) -> Any:
        array = np.asarray(values).view(cls)
        array.runner, array.made = runner, made  # type: ignore[attr-defined]
        return array

    def __array_finalize__(self, other: Any) -> None:
        self.runner, self.made = getattr(other, "runner", None), getattr(other, "made", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> Any:
        if ufunc is not np.add or method != "__call__" or more:
            raise Broken(f"noise is not added but used for {ufunc.__name__}")
        (other,) = (each for each in inputs if not isinstance(each, _Noise))
        assert self.runner is not None and self.made is not None
        noisy = self.runner.added(self.made, np.asarray(other))
        if out is None:
            return noisy
        out[0][...] = noisy
        return out[0]


class _Noisy(np.ndarray[Any, Any]):
    """Noisy numbers that tell what they are compared with."""

    def __new__(cls, values: NDArray[Any], made: Drawn) -> Any:
        array = np.asarray(values).view(cls)
        array.made = made  # type: ignore[attr-defined]
        return array

    def __array_finalize__(self, other: Any) -> None:
        self.made = getattr(other, "made", None)

    def __ge__(self, other: Any) -> Any:
        assert self.made is not None
        self.made.threshold = int(other)
        return np.asarray(self) >= other


_NUMBERS = re.compile(r"s\d+|v|units")


def keys_in(table: Any) -> list[tuple[str, ...]]:
    """What each row of a result is about: all columns but sums, votes and counts of units."""
    columns = [
        list(map(repr, column.to_pylist()))
        for name, column in zip(table.column_names, table.columns, strict=True)
        if not _NUMBERS.fullmatch(name)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def cells(table: Any) -> Cells:
    """Numbers by key; a NULL is 0."""
    numbers = [
        [0 if each is None else whole(each) for each in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
        if _NUMBERS.fullmatch(name)
    ]
    keys = keys_in(table)
    if len(keys) != len(set(keys)):
        raise Broken("the engine gave a group twice")
    return dict(zip(keys, zip(*numbers, strict=True) if numbers else [()] * len(keys), strict=True))


def whole(value: Any) -> int:
    if int(value) != value:
        raise Broken("the engine gave a sum that is not whole")
    return int(value)
