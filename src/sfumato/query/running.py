"""The release itself: statements go to the engine, exact integers come back, noise is added, and only then is anything
looked at. What leaves here is a plain value: keys, noisy numbers, and the limits that were used."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from .. import grid
from ..errors import ArgumentError
from ..noise import Noise
from .aggregates import VOTES
from .bounding import Sums, distinct_values, sampled
from .candidates import listed
from .design import Design
from .integers import Integers, wholes
from .keys import among, label, ordering
from .kinds import Kind, Typed
from .measures import Coordinate
from .quantiles import histogram, quantiles
from .unit_sums import UnitSums

if TYPE_CHECKING:
    import pyarrow

    from ..sources import Connection
    from .front import Front

Row = tuple[Any, ...]
_LISTINGS: WeakKeyDictionary[Connection, dict[int, tuple[Front, Groups]]] = WeakKeyDictionary()

_NUMBER = Kind("whole")
SUMS = "sums"


@dataclass(frozen=True)
class Groups:
    """The groups of an answer, and where each row of an engine's result belongs."""

    rows: Sequence[Row]
    by_label: bool  # given by people, who write 12 or '12'; otherwise by the engine itself

    def places(self, table: pyarrow.Table, keys: int) -> NDArray[np.int64]:
        """The group of each row; -1 for none."""
        if not keys:
            return np.zeros(table.num_rows, dtype=np.int64)
        named = [tuple(map(label, row)) for row in self.rows] if self.by_label else list(self.rows)
        place = {row: i for i, row in enumerate(named)}
        columns = [table.column(i).to_pylist() for i in range(keys)]
        if self.by_label:
            columns = [list(map(label, column)) for column in columns]
        found = (place.get(row, -1) for row in zip(*columns, strict=True))
        return np.fromiter(found, dtype=np.int64, count=table.num_rows)


def answer(
    front: Front, design: Design, connection: Connection, noise: Noise, groups: Groups | None = None
) -> dict[str, Any]:
    """The whole release, for limits that are known; `groups` are the public ones, if somebody has them already."""
    if front.selects:
        groups, found = selected(front, design, connection, noise)
    else:
        groups = given(front, connection) if groups is None else groups
        found = sums(front, design, connection, noise, groups)
    return {**stored(front, groups), **found, **rest(front, design, connection, noise, groups)}


def given(front: Front, connection: Connection) -> Groups:
    """The groups that are public; one where the query has none. Of one connection they are read once: what was compared
    before a plan was paid for is what is released."""
    if not front.keys:
        return Groups([()], True)
    listings = _LISTINGS.setdefault(connection, {})
    if id(front) not in listings:
        listings[id(front)] = front, Groups(listed(front.keys, front.reading.facts, connection), True)
    return listings[id(front)][1]


def selected(front: Front, design: Design, connection: Connection, noise: Noise) -> tuple[Groups, dict[str, Any]]:
    """Choose groups by their numbers of units and measure them, in one statement."""
    statement = design.statement(SUMS, lambda: _sums(front, design).statement)
    groups, table, votes = _voted(front, design, _parts(connection, statement), noise)
    found = {VOTES: votes}
    for i, each in enumerate(design.sums):
        exact = wholes(table, len(front.keys) + i)
        found[each.measure.name] = _real(exact + noise.draw(design.law(each), exact.size), each)
    return groups, {"numbers": found}


def chosen(
    front: Front, design: Design, connection: Connection, noise: Noise, pairs: UnitSums | None = None
) -> tuple[Groups, list[float]]:
    """Choose groups by their numbers of units, and nothing else yet: with the noisy numbers of units."""
    rows, places = (front.rows({}), None) if pairs is None else (pairs.rows, pairs.places)
    keys, single = len(front.keys), front.reading.single
    statement = Sums(rows, keys, (), design.votes, design.blur, front.units, single, pairs=places).statement
    groups, _, votes = _voted(front, design, _parts(connection, statement), noise)
    return groups, votes


def _parts(connection: Connection, statement: exp.Query) -> Iterable[pyarrow.Table]:
    """The rows of a statement, in parts where the engine can give them so: groups that nobody will see may be many."""
    parts = getattr(connection, "parts", None)
    return (connection.run(statement),) if parts is None else parts(statement)


def _voted(
    front: Front, design: Design, parts: Iterable[pyarrow.Table], noise: Noise
) -> tuple[Groups, pyarrow.Table, list[float]]:
    """The groups whose noisy number of units reaches the threshold: their rows, in an order of their own, and these
    numbers. A group is in one part, and of each part no more stays than that."""
    from pyarrow import concat_tables  # on first use

    assert design.votes is not None
    each = design.votes.coordinate
    law, shown, reached = design.law(each), [], []
    for part in parts:
        votes = wholes(part, part.num_columns - 1)
        noisy = votes + noise.draw(law, votes.size)
        kept = np.flatnonzero((noisy >= design.threshold).astype(np.bool_))
        shown.append(part.take(kept))
        reached.append(noisy[kept])
    table = concat_tables(shown)
    groups, order = _sorted(table, len(front.keys))
    return groups, table.take(order), _real(np.concatenate(reached)[order], each)


def sums(
    front: Front,
    design: Design,
    connection: Connection,
    noise: Noise,
    groups: Groups,
    *,
    votes: bool = True,
    pairs: UnitSums | None = None,
) -> dict[str, Any]:
    """Measure these groups, which are public by now. Rows of other groups count for nothing, also in no norm."""
    size, keys = len(groups.rows), len(front.keys)
    found: dict[str, list[float]] = {}
    asked = design.votes if votes else None
    if not design.sums and asked is None:
        return {"numbers": found}
    name = SUMS if votes else "sums without units"
    statement = _kept(design, name, groups, lambda: _sums(front, design, groups, votes=votes, pairs=pairs).statement)
    table = connection.run(statement)
    places = groups.places(table, keys)
    every = [*design.sums, *([asked.coordinate] if asked else [])]
    for i, each in enumerate(every):
        exact = _placed(wholes(table, keys + i), places, size)
        found[each.measure.name] = _real(exact + noise.draw(design.law(each), size), each)
    return {"numbers": found}


def _sums(
    front: Front, design: Design, groups: Groups | None = None, *, votes: bool = True, pairs: UnitSums | None = None
) -> Sums:
    asked, keys = (design.votes if votes else None), len(front.keys)
    if pairs is not None and design.limits.sample is None and not front.reading.single:
        rows = of_groups(front, pairs.rows, groups)
        return Sums(
            rows, keys, design.sums, asked, design.blur, front.units, front.reading.single, pairs=pairs.places
        )  # fmt: skip
    quanta = {f"q{i}": each.quantum() for i, each in enumerate(design.sums)}
    columns = {name: Typed(tree, _NUMBER) for name, tree in quanta.items() if tree is not None}
    rows = rows_of(front, design, columns, groups)
    return Sums(rows, keys, design.sums, asked, design.blur, front.units, front.reading.single)


def cut_statement(
    front: Front, design: Design, groups: Groups, most: Sequence[int], pairs: UnitSums | None = None
) -> exp.Query:
    """What the weights take from the sums, of no unit more than `most`."""
    return replace(_sums(front, design, groups, votes=False, pairs=pairs), most=tuple(most)).cut


def counted_cut(
    front: Front, design: Design, groups: Groups, coordinate: Coordinate, most: int, pairs: UnitSums | None = None
) -> exp.Query:
    """What the weights of rows that are counted take from them, of no unit more than `most`."""
    keys, places = len(front.keys), None
    if pairs is None or design.limits.sample is not None:
        rows = rows_of(front, design, {}, groups)
    else:
        rows, places = of_groups(front, pairs.rows, groups), pairs.places
    return Sums(rows, keys, (coordinate,), None, design.blur, True, most=(most,), pairs=places).cut


def check(front: Front, design: Design) -> None:
    """Refuse limits that the statements cannot keep, before anything is paid."""
    if design.limits.sample is not None and (front.reading.protects.column is None or not front.keys):
        raise ArgumentError("sample is for units with several groups: leave it out here.")
    rows, keys, blur = exp.select("*"), len(front.keys), design.blur
    Sums(rows, keys, design.sums, None, blur, front.units, front.reading.single).check()
    for name in (*design.questions.ranked, *design.questions.binned):
        Sums(rows, keys, (design.counted(name),), None, blur, front.units).check()


def statements(front: Front, design: Design) -> dict[str, exp.Query]:
    """Every statement of a release, for groups that are known beforehand."""
    groups = Groups((), True)
    found: dict[str, exp.Query] = {}
    if design.sums or design.votes:
        found[SUMS] = design.statement(SUMS, lambda: _sums(front, design).statement)
    for name, distinct in design.questions.distinct.items():
        found[name] = design.statement(name, partial(_distinct, front, design, groups, distinct.value))
    leaves = {name: asked.leaves.leaf(asked.x) for name, asked in design.questions.ranked.items()}
    leaves |= {name: asked.bin for name, asked in design.questions.binned.items()}
    for name, leaf in leaves.items():
        rows = rows_of(front, design, {"leaf": Typed(leaf, _NUMBER)}, groups)
        each = design.counted(name)
        found[name] = Sums(rows, len(front.keys), (each,), None, design.blur, front.units, leaves=True).statement
    return found


def rows_of(front: Front, design: Design, columns: Mapping[str, Typed], groups: Groups | None) -> exp.Query:
    """The rows that count: of these groups, and where units keep a sample of theirs, of those."""
    rows = of_groups(front, front.rows(columns), groups)
    limits = design.limits
    if limits.sample is None:
        return rows
    return sampled(rows, keys=len(front.keys), most=limits.sample, salt=limits.salt)


def of_groups(front: Front, rows: exp.Query, groups: Groups | None) -> exp.Query:
    """Only rows of these groups, where the engine gave them. (Given ones are in the rows' own WHERE.)"""
    if groups is None or groups.by_label or not front.keys:
        return rows
    names = [f"k{i}" for i in range(len(front.keys))]
    if not groups.rows:
        return exp.select("*").from_(rows.subquery("_every")).where(exp.false())
    return exp.select("*").from_(rows.subquery("_every")).where(among(names, groups.rows))


def rest(
    front: Front, design: Design, connection: Connection, noise: Noise, groups: Groups, shift: float | None = None
) -> dict[str, Any]:
    """What is measured by statements of its own: distinct values, quantiles, histograms. `shift` is the share of rows
    that limits take from a group: ranks may be off by it."""
    numbers, ranked, binned = {}, {}, {}
    size, keys = len(groups.rows), len(front.keys)
    questions = design.questions
    for name, distinct in questions.distinct.items():
        statement = _kept(design, name, groups, partial(_distinct, front, design, groups, distinct.value))
        table, each = connection.run(statement), design.distinct(name)
        exact = _placed(wholes(table, keys), groups.places(table, keys), size)
        drawn = (exact * (1 << each.bits)) + noise.draw(design.law(each), size)
        numbers[name] = _real(drawn, each)
    for name, asked in questions.ranked.items():
        each = design.counted(name)
        leaf = partial(asked.leaves.leaf, asked.x)
        codes, leaves, counts = _by_leaf(front, design, connection, groups, leaf, each)
        many = len(asked.chances)
        found = quantiles(
            size, codes, leaves, counts,
            tree=asked.leaves, law=design.law(each), noise=noise,
            ps=(*asked.chances, *_around(asked.chances, shift)), step=2.0**-each.bits,
        )  # fmt: skip
        parts = {
            "values": found.values[:, :many],
            "lower": found.lower[:, many : 2 * many] if shift else found.lower[:, :many],
            "upper": found.upper[:, 2 * many :] if shift else found.upper[:, :many],
        }
        ranked[name] = {part: array.tolist() for part, array in parts.items()}
        ranked[name]["unreliable"] = found.unreliable.tolist()
    for name, asked_bins in questions.binned.items():
        each = design.counted(name)
        codes, bins, counts = _by_leaf(front, design, connection, groups, asked_bins.bin.copy, each)
        bars = histogram(
            size, codes, bins, counts,
            size=len(asked_bins.edges) - 1, law=design.law(each), noise=noise, step=2.0**-each.bits,
        )  # fmt: skip
        binned[name] = bars.tolist()
    return {"distinct": numbers, "ranked": ranked, "binned": binned}


def _around(chances: Sequence[float], shift: float | None) -> list[float]:
    """Where quantiles of all rows may be among the rows that count, if a share of them does not: as low as if all of
    those were below, as high as if all were above. MIN and MAX stay what they are."""
    if not shift:
        return []
    rest = max(1 - shift, 1e-9)
    inner = [p if p in (0.0, 1.0) else min(max((p - shift) / rest, 0.0), 1.0) for p in chances]
    outer = [p if p in (0.0, 1.0) else min(p / rest, 1.0) for p in chances]
    return [*inner, *outer]


def _distinct(front: Front, design: Design, groups: Groups, value: exp.Expression) -> exp.Query:
    rows = rows_of(front, design, {"x": Typed(value, _NUMBER)}, groups)
    numbered = front.reading.protects.column is None
    most = design.limits.values
    return distinct_values(rows, keys=len(front.keys), most=most, units=front.units, numbered=numbered)


def _by_leaf(
    front: Front,
    design: Design,
    connection: Connection,
    groups: Groups,
    leaf: Callable[[], exp.Expression],
    each: Coordinate,
) -> tuple[Integers, Integers, Integers]:
    keys = len(front.keys)

    def statement() -> exp.Query:
        rows = rows_of(front, design, {"leaf": Typed(leaf(), _NUMBER)}, groups)
        return Sums(rows, keys, (each,), None, design.blur, front.units, leaves=True).statement

    table = connection.run(_kept(design, each.measure.name, groups, statement))
    return groups.places(table, keys), wholes(table, keys), wholes(table, keys + 1)


def _kept(design: Design, name: str, groups: Groups, make: Callable[[], exp.Query]) -> exp.Query:
    """The same statement for every release of a plan, unless the groups were chosen in this one."""
    return design.statement(name, make) if groups.by_label else make()


def _sorted(table: pyarrow.Table, keys: int) -> tuple[Groups, NDArray[np.int64]]:
    """The groups in an order of their own: the engine's order is data."""
    rows = list(zip(*(table.column(i).to_pylist() for i in range(keys)), strict=True))
    order = sorted(range(len(rows)), key=lambda i: tuple(map(ordering, rows[i])))
    return Groups([rows[i] for i in order], False), np.array(order, dtype=np.int64)


def _placed(found: Integers, places: NDArray[np.int64], size: int) -> Integers:
    """What was found, by group; 0 for groups without rows."""
    exact = np.zeros(size, dtype=found.dtype)
    exact[places[places >= 0]] = found[places >= 0]
    return exact


def _real(noisy: Integers, each: Coordinate) -> list[float]:
    return grid.to_float(noisy, each.exponent - each.bits).tolist()


def stored(front: Front, groups: Groups) -> dict[str, Any]:
    """The groups as plain JSON values: dates are told by their ISO text."""
    columns = {key.name: [plain_key(row[i]) for row in groups.rows] for i, key in enumerate(front.keys)}
    return {"groups": len(groups.rows), "keys": columns}


def plain_key(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return {"moment": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def restored(value: Any) -> Any:
    """A key as it was."""
    if not isinstance(value, Mapping):
        return value
    (kind, text), *_ = value.items()
    return datetime.datetime.fromisoformat(text) if kind == "moment" else datetime.date.fromisoformat(text)
