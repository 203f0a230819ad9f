"""Units of every kind: their words, their JSON, whose each row is, and the neighbours that audits find of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, audit, bounds, reserve
from sfumato.audit import shipped
from sfumato.audit.hunting import World
from sfumato.audit.neighbours import Scene, scenes
from sfumato.audit.replays.tables import cases_from
from sfumato.errors import ArgumentError, PlanError, RecordError
from sfumato.noise import SeededBits
from sfumato.query import sql
from sfumato.record import canonical, parse
from sfumato.schema import Table, category, key, real
from sfumato.units import EDGE, KINDS, NODE, VALUE, Kind, register
from tests.edges import EDGES, EdgeCount

UNITS = {
    "row": "one row",
    "user:who": "everything one who ever contributed",
    "client:device": "everything one client (device) ever contributed",
    "family:house": "everything the members of one family (house) ever contributed",
    "edge:src,dst": "the edge between one src and one dst, both ways",
    "node:src,dst": "one node, as src or dst, with all its edges",
    "value:age": "the age of one row",
}


def every_unit() -> Iterator[Unit]:
    for of in UNITS:
        for change in KINDS[of.partition(":")[0]].changes:
            yield Unit(of, change)


def test_every_kind_has_its_words() -> None:
    assert {of.partition(":")[0] for of in UNITS} == set(KINDS)
    for unit in every_unit():
        assert str(unit).startswith(UNITS[unit.of] + ", ")
    assert str(Unit("node:a,b", group=2)) == "any 2 of: one node, as a or b, with all its edges, present or absent"
    assert [unit.noun for unit in (Unit(), Unit("user:patient"), Unit("edge:a,b"))] == ["row", "patient", "edge"]


def test_stored_units_keep_their_bytes_and_new_kinds_are_stored_alike() -> None:
    assert canonical(Unit()) == b'{"change":"add-remove","group":1,"is":"unit/1","of":"row"}'
    stored = b'{"change":"replace","group":4,"is":"unit/1","of":"user:a,b:c"}'
    assert canonical(Unit("user:a,b:c", "replace", 4)) == stored and Unit("user:a,b:c").column == "a,b:c"
    for unit in every_unit():
        assert parse(canonical(unit), Unit) == unit and parse(canonical(unit), Unit).of_kind is unit.of_kind


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"of": "household:x"}, "of = 'household:x' is not allowed: give 'row' or 'user:<column>' or"),
        ({"of": "row:x"}, "give 'row'."),
        ({"of": "client"}, "give 'client:<column>'."),
        ({"of": "edge:src"}, "give 'edge:<column>,<column>'."),
        ({"of": "node:src,"}, "give 'node:<column>,<column>'."),
        ({"of": "edge:a,b,c"}, "give 'edge:<column>,<column>'."),
        ({"of": "edge:a,a"}, "with two different columns, one for each end"),
        (
            {"of": "value:age"},
            "change = 'add-remove' is not allowed: give 'replace' or 'zero-out', as",
        ),
        (
            {"of": "node:a,b", "change": "zero-out"},
            "is not allowed: give 'add-remove' or 'replace', as neighbours",
        ),
    ],
)
def test_a_unit_that_cannot_be_is_refused_at_birth(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Unit(**fields)
    assert words in str(caught.value)


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ArgumentError, match="a word that no other kind of unit has"):
        register(Kind("row", 0, "another row", EDGE.owners))
    assert register(EDGE) is EDGE


COLUMNS: dict[str, list[Any]] = {
    "src": ["a", "b", "b", "c", None, "d"], "dst": ["b", "a", "c", "c", "a", float("nan")],
    "who": ["x", "y", "x", None, "z", "y"], "age": [1, 2, 3, 4, 5, 6],
}  # fmt: skip


@pytest.mark.parametrize(
    ("of", "owners"),
    [
        ("row", [[0], [1], [2], [3], [4], [5]]),
        ("value:age", [[0], [1], [2], [3], [4], [5]]),
        ("user:who", [[0], [1], [0], [-1], [2], [1]]),
        ("client:who", [[0], [1], [0], [-1], [2], [1]]),
        ("family:who", [[0], [1], [0], [-1], [2], [1]]),
        ("edge:src,dst", [[0], [0], [1], [2], [-1], [-1]]),
        ("node:src,dst", [[0, 1], [1, 0], [1, 2], [2, 2], [-1, 0], [3, -1]]),
    ],
)
def test_every_row_has_its_owners(of: str, owners: list[list[int]]) -> None:
    unit = Unit(of, KINDS[of.partition(":")[0]].changes[0])
    codes = unit.owners(COLUMNS)
    assert codes.dtype == np.int64 and codes.tolist() == owners
    assert unit.owners({name: [] for name in COLUMNS}).shape == (0, len(owners[0]))


def plan_of(unit: Unit) -> EdgeCount:
    return EdgeCount(protects=unit)


def table_of(unit: Unit) -> Table:
    """What the unit names, and two more columns."""
    columns = {"age": real(0, 9), "ward": category(["A", "B"]), **{name: key() for name in unit.naming}}
    return Table(columns, unit=unit.column if unit.takes_rows else None)


def changed(scene: Scene, table: Table, unit: Unit) -> int:
    """By how many units two tables differ, by the owners of their rows alone; all else must be the same."""
    before, after = scene.columns(table, unit)
    if unit.of_kind.called is None:  # units that are told by their place
        sizes = [len(columns["age"]) for columns in (before, after)]
        if sizes[0] != sizes[1]:
            return abs(sizes[0] - sizes[1])
        rows = [[repr([columns[name][i] for name in columns]) for i in range(sizes[0])] for columns in (before, after)]
        places = [place for place in range(sizes[0]) if rows[0][place] != rows[1][place]]
        if unit.of_kind is VALUE:
            assert before["ward"] == after["ward"]
        return len(places)
    both = {name: [*before[name], *after[name]] for name in before}  # one numbering of names for both
    owners, count = unit.owners(both), len(before["age"])
    rows_of: list[dict[int, list[str]]] = [{}, {}]
    for place, codes in enumerate(owners.tolist()):
        for code in set(codes):
            row = repr([both[name][place] for name in both])
            rows_of[place >= count].setdefault(code, []).append(row)
    differing = [code for code in {*rows_of[0], *rows_of[1]} if rows_of[0].get(code) != rows_of[1].get(code)]
    if unit.of_kind is not NODE:
        return len(differing)
    # A node's edges are their other ends' as well: as few nodes as possible are to explain all that differs.
    lost = [codes for place, codes in enumerate(owners.tolist()) if _differs(place, count, both)]
    return next(size for size in range(9) if _covers(lost, size))


def _differs(place: int, count: int, both: dict[str, list[Any]]) -> bool:
    rows = [repr([both[name][i] for name in both]) for i in range(len(both["age"]))]
    here, there = (rows[:count], rows[count:]) if place < count else (rows[count:], rows[:count])
    return here.count(rows[place]) != there.count(rows[place])


def _covers(rows: list[list[int]], size: int) -> bool:
    if not rows:
        return True
    return size > 0 and any(_covers([row for row in rows if node not in row], size - 1) for node in set(rows[0]))


@pytest.mark.parametrize("unit", list(every_unit()), ids=str)
def test_what_an_audit_tries_are_neighbours_of_its_kind(unit: Unit) -> None:
    table, plan = table_of(unit), plan_of(unit)
    differ = set()
    for _, scene in islice(scenes(plan, table), 60):
        differ.add(changed(scene, table, unit))
    world = World.of(plan, table, SeededBits(5))
    scene = world.scene()
    for _ in range(40):
        differ.add(changed(scene, table, unit))
        scene = world.step(scene)
    assert 1 in differ and max(differ) <= 1


def test_groups_change_together() -> None:
    unit = Unit("edge:src,dst", group=3)
    table = table_of(unit)
    assert max(changed(scene, table, unit) for _, scene in islice(scenes(plan_of(unit), table), 30)) == 3


@pytest.mark.parametrize(("of", "gone"), [("edge:src,dst", 1), ("node:src,dst", 3), ("client:src", 1)])
def test_replays_find_neighbours_in_given_rows(of: str, gone: int) -> None:
    star = {"src": ["hub", "hub", "c"], "dst": ["a", "b", "hub"], "x": [1, 2, 3]}
    unit = Unit(of)
    whole = [case for case in cases_from(star, unit) if case.base == "all units"]
    assert (
        whole
        and max(len(case.before["x"]) - len(case.after["x"]) for case in whole)
        == max(int((unit.owners(star) == code).any(axis=1).sum()) for code in np.unique(unit.owners(star)))
        >= gone
    )


# ------------------------------------------------------------------------------------------------ at the door

WRITTEN = [name for name in shipped.PLANS if name not in ("SGD", "Reserve")]  # JSON cannot give these back
OTHERS = [unit for unit in every_unit() if unit.of_kind.word not in ("row", "user")]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_plan_that_is_shipped_refuses_them_at_birth(name: str) -> None:
    """They know rows and users; also where a stored plan is read back."""
    text = canonical(shipped.PLANS[name]())
    for unit in OTHERS:
        stored = re.sub(rb'"change":"[^"]*","group":1,"is":"unit/1","of":"[^"]*"', canonical(unit)[1:-1], text)
        assert stored != text
        with pytest.raises(RecordError, match=f"what one {unit.noun} may change here is not bounded yet"):
            parse(stored)


def test_what_it_says_names_the_argument_the_cause_and_the_fix() -> None:
    for make in (
        lambda unit: reserve(unit=unit, budget=Budget(epsilon=1)),
        lambda unit: sql("SELECT COUNT(*) FROM data", Schema.of(src=key(), dst=key()), unit=unit, epsilon=1),
        bounds.count,
    ):
        with pytest.raises(ArgumentError) as caught:
            make(Unit("node:src,dst"))
        assert str(caught.value) == (
            "unit = 'node:src,dst' is not allowed: give Unit() or Unit('user:<column>'), as what one node may change "
            "here is not bounded yet."
        )


def test_whoever_asks_for_one_column_is_not_told_that_rows_are_units() -> None:
    for unit in every_unit():
        if unit.takes_rows:
            assert unit.column == (unit.columns[0] if unit.columns else None)
        else:
            with pytest.raises(PlanError, match=f"no column alone names the unit '{unit.of}'"):
                _ = unit.column


GRAPH = {"src": ["a", "b", "c"], "dst": ["b", "c", "a"]}


@pytest.mark.parametrize("of", ["edge:src,dst", "node:src,dst"])
def test_data_of_edges_is_released_under_a_unit_of_edges(of: str) -> None:
    unit = Unit(of)
    private = Private("graph", GRAPH, unit=unit, schema=Schema.of(src=key(), dst=key()))
    assert str(unit) in repr(private) and private.owners == {"data": "src, dst"}
    ledger = MemoryLedger({"graph": Budget(epsilon=2)})
    curator, plan = Curator(private, ledger), plan_of(unit)
    assert plan.hides in str(curator.quote(plan))
    release = curator.release(plan)
    assert isinstance(release.value, int) and release.receipt is not None and release.receipt.unit == unit
    assert isinstance(curator.rehearse(plan).value, int)
    EDGES.open_now = 0


def test_an_opening_refuses_units_that_it_cannot_hide() -> None:
    unit = Unit("value:src", "replace")
    curator = Curator(
        Private("graph", GRAPH, unit=unit, schema=Schema.of(src=key(), dst=key())),
        MemoryLedger({"graph": Budget(epsilon=2)}),
    )
    with pytest.raises(PlanError, match="edges hide rows and edges and nodes so far, and the unit is 'value:src'"):
        curator.release(plan_of(unit))
    assert not curator.ledger.spent("graph")[0].spent


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Schema.of(src=key(), weight=real(0, 1)), "has no column 'dst', which the unit 'edge:src,dst' names"),
        (Schema.of(src=key(), dst=real(0, 1)), "column 'dst' cannot name units: use a key"),
        (Schema({"data": Table({"src": key(), "dst": key()}, unit="src")}), "leave unit= out of the table, or protect"),
    ],
)
def test_data_that_cannot_name_its_edges_is_refused(schema: Schema, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Private("graph", {}, unit=Unit("edge:src,dst"), schema=schema)


def test_an_audit_sees_that_a_count_of_edges_does_not_hide_a_node() -> None:
    """One edge moves the count by one, a node by as many edges as it has."""
    honest = audit.check(plan_of(Unit("edge:src,dst")), runs=3_000, bits=SeededBits(3))
    node = audit.check(plan_of(Unit("node:src,dst")), runs=3_000, bits=SeededBits(3))
    assert node.broken and not honest.broken
    EDGES.open_now = 0
