"""What plans run on: rows, an engine, and whatever a file of its own adds, from a quote to an audit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from sfumato import (
    Budget,
    Curator,
    MemoryLedger,
    Private,
    Schema,
    Unit,
    audit,
    bounds,
    partition,
    reserve,
    sequence,
)
from sfumato import mechanisms as m
from sfumato.audit.stages import Stage, stage_of
from sfumato.errors import ArgumentError, DataError, PlanError, ReceiptError
from sfumato.noise import SeededBits
from sfumato.openings import ENGINE, ROWS
from sfumato.plan import Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import Table, category, key, real
from tests.edges import EDGES, EdgeCount, Links

ROW = Unit()
GRAPH = {"src": ["a", "b", "c", None], "dst": ["b", "c", "a", "a"], "month": ["may", "may", "june", "june"]}
SCHEMA = Schema.of(src=key(), dst=key(), month=category(["may", "june"]))


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    EDGES.open_now = 0
    yield
    assert EDGES.open_now == 0


def door(**more: Any) -> Curator:
    private = Private("graph", GRAPH, unit=ROW, schema=SCHEMA, **more)
    return Curator(private, MemoryLedger({"graph": Budget(epsilon=10)}))


def test_a_new_opening_goes_through_the_whole_door() -> None:
    curator, plan = door(), EdgeCount(protects=ROW, epsilon=5)
    assert curator.quote(plan).affordable
    assert isinstance(curator.rehearse(plan, rows=30).value, int)
    release = curator.release(plan)
    assert abs(release.value - 3) < 12 and release.receipt is not None
    assert curator.release(plan).value == release.value  # stored
    assert float(curator.ledger.spent("graph")[0].spent) == 5


def test_its_plans_are_combined_like_others_and_not_mixed() -> None:
    curator, plan = door(), EdgeCount(protects=ROW)
    both = sequence(one=plan, other=EdgeCount(protects=ROW, epsilon=2))
    assert both.opens is EDGES and set(curator.release(both).value) == {"one", "other"}
    rows = m.Laplace(query=bounds.count(ROW), epsilon=1)
    with pytest.raises(PlanError, match="some parts of this plan read rows, others walk along edges: release them"):
        curator.quote(sequence(one=plan, other=rows))
    with pytest.raises(ArgumentError, match="these plans are not split by partition: use a sequence"):
        partition("month", ["may", "june"], plan)
    inside = reserve(lambda run: run.release(plan), unit=ROW, budget=Budget(epsilon=2))
    with pytest.raises(PlanError, match="children of a reserve read rows, others walk along edges"):
        curator.rehearse(inside)


def test_it_is_closed_where_a_plan_fails_and_opens_only_with_a_receipt() -> None:
    class Failing(EdgeCount):
        def _run(self, edges: Links, run: Run) -> int:
            raise ValueError("a, b")

    curator = door()
    with pytest.raises(DataError):
        curator.release(record("test-failing-edges/1")(Failing)(protects=ROW))
    with pytest.raises(ReceiptError):
        curator.private._open(None, EDGES)  # type: ignore[arg-type]


def test_it_reads_the_blocks_that_are_charged() -> None:
    may = door(block="month").private.of_blocks("may")
    edges = EDGES._open(may._tables)
    assert edges == [("a", "b"), ("b", "c")]
    EDGES.close(edges)


def test_a_schema_without_its_columns_is_refused_before_it_is_paid() -> None:
    private = Private("graph", {"src": ["a"]}, unit=ROW, schema=Schema.of(src=key()))
    curator = Curator(private, MemoryLedger({"graph": Budget(epsilon=1)}))
    with pytest.raises(PlanError, match="no column 'dst'"):
        curator.release(EdgeCount(protects=ROW))
    assert not curator.ledger.spent("graph")[0].spent


def test_an_audit_tries_it_and_tells_half_the_noise() -> None:
    plan = EdgeCount(protects=ROW)
    passed = audit.check_plan(plan).passed
    assert passed
    honest = audit.check(plan, runs=4_000, bits=SeededBits(1))
    faulty = audit.check(EdgeCount(protects=ROW, share=Fraction(1, 4)), runs=4_000, bits=SeededBits(1))
    assert not honest.broken and faulty.broken
    EDGES.open_now = 0  # an audit runs on made-up edges, which nobody closes


def test_an_engine_has_a_stage_of_its_own_and_others_the_usual_one() -> None:
    from sfumato.query import sql

    query = sql("SELECT COUNT(*) FROM data", Schema.of(x=real(0, 1)), unit=ROW, epsilon=1)
    assert query.opens is ENGINE and type(stage_of(query)) is not Stage and not stage_of(query).lists_outcomes
    rows = m.Laplace(query=bounds.count(ROW), epsilon=1)
    assert rows.opens is ROWS and type(stage_of(rows)) is Stage is type(stage_of(EdgeCount(protects=ROW)))


def test_raw_columns_are_opened_as_data_is() -> None:
    table = Table({"x": real(0, 1)})
    rows = ROWS.of(table, {"x": [0.5, 0.25]}, ROW)
    assert isinstance(rows, Rows) and rows["x"].values.tolist() == [0.5, 0.25]
    connection = ENGINE.of(table, {"x": [0.5, 0.25]}, ROW)
    try:
        from sqlglot import parse_one

        assert sorted(connection.run(parse_one("SELECT x FROM data")).column(0).to_pylist()) == [0.25, 0.5]
    finally:
        ENGINE.close(connection)
