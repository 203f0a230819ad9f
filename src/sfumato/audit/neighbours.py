"""Made-up tables to try a plan on, from its own unit and columns: neighbours, and odd ones.

A guarantee is about pairs: two tables that differ by one change of the unit. Where a mechanism is wrong, it is wrong
on some pair, and nearly always on a simple one: few units, values at the ends of their range, one unit with too many
rows. So the pairs here are simple and extreme, and every plan gets them for free.

What a change means here:
    add-remove  the unit's rows are there, or not
    replace     the unit's rows are exchanged for any others, under the same key; their number may change with them
    zero-out    every cell of the unit becomes NULL except the key that names it. Its rows stay, as blank rows: with
                rows as units their number is public. A blank row adds nothing to a sum, a mean or a histogram, and is
                still one row to a count (whose sensitivity of 1 is then more than it needs, which is safe). That holds
                because plans under zero-out refuse a column that reads NULLs as a value: there blanking would be
                replacing, and no sensitivity under zero-out covers that.
In a group of k, k units change at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from numpy.typing import NDArray

from ..bounds import Bounded
from ..noise import SeededBits
from ..plan import Plan
from ..rows import Rows
from ..schema import Table
from ..units import VALUE, Unit
from .stages import data_for, queries, stage_of, table_for

Cells = dict[str, Any]
Columns = dict[str, list[Any]]
Person = tuple[Cells, ...]
"""The rows of one unit, without the key that names it."""

_MOST_KINDS = 12  # different one-row units
_MOST_ROWS = 5_000  # of one unit
_MOST_GROUP = 24
_STRANGE: list[Any] = [math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 5e-324, 2**70, 1j, object(), [1], b"\xff"]
_LEANING = 40  # units that all say the same, so that one answer is far ahead


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables: `for rows, neighbour in pairs(plan)`. `raw` are their columns, where they were made up
    here."""

    rows: Any
    neighbour: Any
    change: str
    raw: tuple[Columns, Columns] | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.rows, self.neighbour))


@dataclass(frozen=True)
class Scene:
    """Two neighbouring tables as who is in them: `before` becomes `after`, everybody else stays as and where they are.

    others  the units that stay
    place   so many of them stand above those that change
    """

    others: tuple[Person, ...]
    before: tuple[Person, ...]
    after: tuple[Person, ...]
    place: int = 0

    @property
    def changing(self) -> int:
        return max(len(self.before), len(self.after))

    def columns(self, table: Table, unit: Unit) -> tuple[Columns, Columns]:
        """The raw columns of both tables. Those that change are named first, so that the others keep their names."""
        place = min(self.place, len(self.others))
        others = list(enumerate(self.others, self.changing))
        above, below = others[:place], others[place:]
        one, other = ([*above, *enumerate(people), *below] for people in (self.before, self.after))
        return raw_columns(table, unit, one), raw_columns(table, unit, other)

    def fits(self, table: Table, unit: Unit) -> bool:
        """Units that are categories: there are no more of them than there are names."""
        names = listed_names(table, unit)
        return not names or self.changing + len(self.others) <= len(names)


def pair_of(plan: Plan[Any, Any], table: Table, scene: Scene, words: str) -> Pair:
    """The two tables of a scene, as the plan takes them."""
    raw = scene.columns(table, plan.unit)
    one, other = (data_for(plan, table, columns) for columns in raw)
    return Pair(one, other, words, raw)


def pairs(plan: Plan[Any, Any]) -> Iterator[Pair]:
    """Neighbouring tables for the plan: every base with every extreme change."""
    table = table_for(plan)
    return (pair_of(plan, table, scene, words) for words, scene in scenes(plan, table))


def scenes(plan: Plan[Any, Any], table: Table) -> Iterator[tuple[str, Scene]]:
    """The same before the tables are made, each with its name."""
    group = min(plan.unit.group, _MOST_GROUP)
    people = extreme_people(plan, table)
    single = people[: max(1, sum(len(person) == 1 for person in people))]
    bases: dict[str, tuple[Person, ...]] = {
        "no unit": (),
        "one unit": tuple(single[:1]),
        "three units": tuple(single[i % len(single)] for i in range(3)),
        "one answer far ahead": tuple(single[:1]) * _LEANING,
        "another answer far ahead": tuple(single[1:2]) * _LEANING,
    }
    for base_name, base in bases.items():
        for what, before, after in _changes(plan.unit, people, group):
            scene = Scene(base, before, after)
            if scene.fits(table, plan.unit):
                yield f"{what}; beside it {base_name}", scene


def _changes(
    unit: Unit, people: Sequence[Person], group: int
) -> Iterator[tuple[str, tuple[Person, ...], tuple[Person, ...]]]:
    """(name, the changing units before, and after)."""
    if unit.change == "add-remove":
        for person in people:
            yield f"{describe(person)} added", (), (person,) * group
        for one, other in combinations(people[:4], 2) if group > 1 else ():
            yield (
                f"{describe(one)} removed, {describe(other)} added",
                (one,) * (group // 2),
                (other,) * (group - group // 2),
            )
    elif unit.change == "replace":
        for one, other in combinations(people, 2):
            (after,) = became((one,), (other,), unit)
            yield f"{describe(one)} replaced by {describe(after)}", (one,) * group, (after,) * group
    else:
        for person in people:
            yield f"{describe(person)} zeroed out", (person,) * group, (blank(person, unit),) * group


def blank(person: Person, unit: Unit) -> Person:
    """The unit zeroed out."""
    return tuple(row | dict.fromkeys(_changing(row, unit)) for row in person)


def became(before: tuple[Person, ...], after: tuple[Person, ...], unit: Unit) -> tuple[Person, ...]:
    """What the changing units become on the way to these: where only a value is the unit, all else of a row stays."""
    if unit.change == "zero-out":
        return tuple(blank(person, unit) for person in before)
    if unit.of_kind is not VALUE:
        return after
    return tuple(
        tuple(old | {name: new[name] for name in _changing(old, unit)} for old, new in zip(one, other, strict=True))
        for one, other in zip(before, after, strict=True)
    )


def _changing(row: Cells, unit: Unit) -> tuple[str, ...]:
    return unit.columns if unit.of_kind is VALUE else tuple(row)


def listed_names(table: Table, unit: Unit) -> Sequence[Any]:
    """The names that units have where a column lists them; none where it does not."""
    return table.column(unit.naming[0]).categories if len(unit.naming) == 1 else ()


def describe(person: Person) -> str:
    """A unit in words."""
    if not person:
        return "[no row]"
    first = ", ".join(f"{name}={cell!r}" for name, cell in person[0].items()) or "a row"
    if len(person) == 1:
        return f"[{first}]"
    return f"[{first}] {'and others, ' if len(set(map(repr, person))) > 1 else ''}{len(person)} rows"


def raw_columns(table: Table, unit: Unit, people: Iterable[tuple[int, Person]]) -> Columns:
    """Raw columns with these units, in this order; the number of a unit gives it its name."""
    listed, called = listed_names(table, unit), unit.of_kind.called
    raw: Columns = {name: [] for name in table.columns}
    for number, person in people:
        for place, row in enumerate(person):
            names = () if called is None else (listed[number % len(listed)],) if listed else called(number, place)
            own = dict(zip(unit.naming, names, strict=True))
            for name, cells in raw.items():
                cells.append(own[name] if name in own else row.get(name, True))
    return raw


def read_people(table: Table, unit: Unit, people: Sequence[Person], *, first: int = 0) -> Rows:
    """The same, read as a plan is given it; named from number `first` on."""
    return Rows.read(table, raw_columns(table, unit, enumerate(people, first)), unit)


def extreme_people(plan: Plan[Any, Any], table: Table) -> list[Person]:
    """Extreme units: one row of every extreme, then (if a unit may have many rows) more rows than count."""
    columns = {name: column for name, column in table.columns.items() if name not in plan.unit.naming}
    cells = {name: column.of_kind.extremes(column) for name, column in columns.items()}
    rows = _mixtures(cells)
    people: list[Person] = [(row,) for row in rows]
    if plan.unit.of_kind.many:
        many = too_many(plan)
        people += [(row,) * many for row in rows[:3]]
        people.append(tuple(rows[i % len(rows)] for i in range(max(many, len(rows)))))
        people.append((rows[0], rows[-1]))
        keyed = [name for name in cells if not table.column(name).of_kind.is_public]
        if keyed and many > len(rows) + 1:  # one more different key than counts, where the extremes are too few
            people.append(tuple({**rows[0], **dict.fromkeys(keyed, f"key {i}")} for i in range(many - 2)))
    return people


def too_many(plan: Plan[Any, Any]) -> int:
    """More rows of one unit than count, by the limits of its queries and its own."""
    usual = stage_of(plan).rows_of_a_unit
    return min(max([*map(_per_unit, queries(plan)), *_own_limits(plan)], default=usual) + 3, _MOST_ROWS)


def _own_limits(plan: Plan[Any, Any]) -> Iterator[int]:
    """Of plans that read a column themselves, such as quantiles and selections of keys."""
    if isinstance(own := getattr(plan, "per_unit", None), int):
        yield own
    for child in plan.children:
        yield from _own_limits(child)


def _mixtures(cells: dict[str, list[Any]]) -> list[Cells]:
    """Rows that put extremes together: all of them where they are few, otherwise each extreme at least once."""
    if not cells:
        return [{}]
    longest = max(map(len, cells.values()))
    if len(cells) <= 2:
        together = [dict(zip(cells, row, strict=True)) for row in product(*cells.values())]
        if len(together) <= _MOST_KINDS:
            return together
    level = [{name: values[i % len(values)] for name, values in cells.items()} for i in range(longest)]
    skew = [
        {name: values[(i + shift) % len(values)] for shift, (name, values) in enumerate(cells.items())}
        for i in range(longest)
    ]
    unlike = [row for row in skew if row not in level]
    return (level + unlike)[: max(_MOST_KINDS, longest)]


def ordinary(table: Table, rows: int = 30) -> dict[str, NDArray[Any]]:
    """Clean rows."""
    return table.make_up(rows, SeededBits(1).words, awkward=False)


def oddities(table: Table, unit: Unit) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables that must be answered like any other, the first of them an ordinary one: (name, raw columns)."""
    named, usual = unit.naming, ordinary(table)
    yield "ordinary rows", dict(usual)
    yield "an empty table", {name: [] for name in usual}
    yield "one row", {name: cells[:1] for name, cells in usual.items()}
    yield "NULLs only", {name: cells[:6] if name in named else [None] * 6 for name, cells in usual.items()}
    yield "awkward rows", dict(table.make_up(60, SeededBits(2).words))
    owners = ordinary(table, len(_STRANGE))
    yield "cells of every kind", {name: owners[name] if name in named else _STRANGE for name in usual}
    yield "ties only", {name: cells if name in named else [cells[0]] * 30 for name, cells in usual.items()}
    if named:
        yield "one unit that owns everything", {**usual, **{name: [usual[name][0]] * 30 for name in named}}
        yield "rows of nobody", {**usual, **dict.fromkeys(named, [None, math.nan] * 15)}


def _per_unit(query: Bounded) -> int:
    return int(getattr(query, "per_unit", 1))
