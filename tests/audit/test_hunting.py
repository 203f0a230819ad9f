"""Whatever the search tries is a pair of neighbours, by a checker that knows nothing of how it was made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Unit, bounds, schema
from sfumato.audit import hunting
from sfumato.audit.hunting import World
from sfumato.audit.neighbours import Columns, pairs
from sfumato.audit.stages import table_for
from sfumato.audit.subjects import OfPlan
from sfumato.mechanisms import Exponential, Laplace
from sfumato.noise import SeededBits

_WARDS = ("e", "n", "w")
UNITS = [
    Unit(of, change, group)
    for of in ("row", "user:id")
    for change in ("add-remove", "replace", "zero-out")
    for group in (1, 3)
]
_TABLE = schema.Table(
    {
        "id": schema.key(),
        "ward": schema.category(_WARDS),
        "age": schema.real(0, 120),
        "count": schema.whole(-3, 9),
        "smokes": schema.flag(),
        "seen": schema.date("2020-01-01", "2021-12-31"),
        "image": schema.tensor((2, 2), 0, 1),
    }
)


def _rows(raw: Columns) -> list[tuple[tuple[str, str], ...]]:
    lengths = {len(cells) for cells in raw.values()}
    assert len(lengths) == 1
    return [tuple((name, repr(cells[i])) for name, cells in raw.items()) for i in range(lengths.pop())]


def _units(raw: Columns, unit: Unit) -> dict[str, list[str]]:
    """What each unit holds, in order."""
    held: dict[str, list[str]] = {}
    for number, row in enumerate(_rows(raw)):
        cells = dict(row)
        owner = f"row {number}" if unit.column is None else cells.pop(unit.column)
        held.setdefault(owner, []).append(repr(sorted(cells.items())))
    return held


def _is_subsequence(short: list[Any], long: list[Any]) -> bool:
    rest = iter(long)
    return all(any(each == other for other in rest) for each in short)


def _neighbours(raw: tuple[Columns, Columns], unit: Unit) -> bool:
    """By the definition of the relation, for any two tables."""
    one, other = raw
    mine, theirs = _rows(one), _rows(other)
    if unit.column is None:
        if unit.change == "add-remove":
            gone, come = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
            common = [row for row in mine if row not in gone]
            return gone.total() + come.total() <= unit.group and _is_subsequence(common, theirs)
        changed = [i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
        blanked = all(value == "None" for i in changed for name, value in theirs[i])
        return len(changed) <= unit.group and (unit.change == "replace" or blanked)
    here, there = _units(one, unit), _units(other, unit)
    same = [name for name in here if here[name] == there.get(name)]
    if [name for name in here if name in same] != [name for name in there if name in same]:
        return False  # the others stand in another order
    if unit.change == "add-remove":
        return len(here) - len(same) + len(there) - len(same) <= unit.group
    if set(here) != set(there) or len(here) - len(same) > unit.group:
        return False
    changed_names = [name for name in here if name not in same]
    blank = all(cells.count("'None'") == len(one) - 1 for name in changed_names for cells in there[name])
    fits = all(len(here[name]) == len(there[name]) for name in changed_names)
    return unit.change == "replace" or (blank and fits)


def _world(unit: Unit, seed: int) -> World:
    query = (
        bounds.histogram("ward", _WARDS, unit)
        if unit.column is None
        else bounds.histogram("ward", _WARDS, unit, per_unit=2)
    )
    plan = Laplace(query=query, epsilon=1)
    return World.of(plan, schema.Table(_TABLE.columns, unit=unit.column), SeededBits(seed))


@pytest.mark.parametrize("unit", UNITS, ids=str)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_every_scene_of_the_search_is_a_pair_of_neighbours(unit: Unit, seed: int) -> None:
    world = _world(unit, seed)
    scene = world.scene()
    for _ in range(8):
        raw = scene.columns(world.table, unit)
        assert _neighbours(raw, unit)
        scene = world.step(scene)


def test_the_checker_itself_refuses_what_is_no_pair() -> None:
    row, user = Unit(), Unit("user:id")
    two: tuple[Columns, Columns] = ({"id": [1, 2], "x": [5, 6]}, {"id": [1, 2], "x": [5, 7]})
    assert not _neighbours(two, row)
    assert not _neighbours(two, user)
    assert _neighbours(two, Unit(change="replace"))
    assert _neighbours(two, Unit("user:id", "replace"))
    assert not _neighbours(({"id": [1, 2], "x": [5, 6]}, {"id": [2, 1], "x": [6, 5]}), Unit(change="replace"))
    assert not _neighbours(({"id": [1, 2, 3], "x": [5, 6, 7]}, {"id": [3, 1], "x": [7, 5]}), row)
    assert not _neighbours(two, Unit(change="zero-out"))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_extremes_are_neighbours_too(unit: Unit) -> None:
    plan = Laplace(query=bounds.histogram("ward", _WARDS, unit), epsilon=1)
    found = [pair.raw for pair in pairs(plan)]
    assert found
    for raw in found:
        assert raw is not None
        assert _neighbours(raw, unit)


def test_units_that_are_categories_never_run_out_of_names() -> None:
    unit = Unit("user:ward")
    plan = Laplace(query=bounds.histogram("ward", _WARDS, unit), epsilon=1)
    world = World.of(plan, table_for(plan), SeededBits(1))
    scene = world.scene()
    for _ in range(60):
        one, other = scene.columns(world.table, unit)
        assert len(set(one["ward"])) <= 3 and len(set(other["ward"])) <= 3
        assert _neighbours((one, other), unit)
        scene = world.step(scene)


def test_the_search_climbs_to_the_whole_sensitivity() -> None:
    """A sum with per_unit rows: the extremes reach it, and the search does not lose it."""
    unit = Unit("user:id")
    plan = Laplace(query=bounds.clipped_sum("age", 0, 120, unit, per_unit=2), epsilon=1)
    found, tried = hunting.hunt(plan, OfPlan(plan), table_for(plan), SeededBits(3), runs=20_000)
    assert tried >= 100
    moved = max(abs(int(plan.query.steps(a, 0)[0]) - int(plan.query.steps(b, 0)[0])) for a, b in found)
    assert moved == 240


def test_a_pair_that_no_extreme_shows_is_found() -> None:
    """A planted bug that only shows where the table has at least two rows of one ward and one of another."""

    class Peeking(Exponential):
        def _run(self, rows: Any, run: Any) -> int:
            codes = rows["ward"].values[rows["ward"].valid]
            return 7 if (codes == 0).sum() == 2 and (codes == 2).sum() == 1 else super()._run(rows, run)

    plan = Peeking(query=bounds.votes("ward", _WARDS, Unit()), epsilon=0.1)
    found, _ = hunting.hunt(plan, OfPlan(plan), table_for(plan), SeededBits(5), runs=6_000)
    seven = [any(plan._run(rows, _run()) == 7 for rows in pair) for pair in found[:3]]
    assert any(seven)


def _run() -> Any:
    from sfumato.noise import Noise
    from sfumato.plan import Run

    return Run(Noise(SeededBits(1)))
