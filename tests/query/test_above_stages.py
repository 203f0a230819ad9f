"""Queries in stages: what is released first, what the next stage reads of it, what it costs, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import record
from sfumato.errors import ArgumentError, PlanError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import SqlStages, sql
from sfumato.query.above.released_stages import no_cells, stage_cells, stage_table
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.sources import connect, source
from sfumato.units import Unit

WARDS = ["east", "north", "south", "west"]
SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(WARDS), "drug": key(), "day": date("2026-01-01", "2026-06-30"),
             "cost": real(0, 1000)},
            unit="patient",
        ),
        "drugs": Table({"drug": key(), "kind": category(["new", "old"]), "price": whole(0, 100)}, private=False),
    }
)  # fmt: skip
UNIT = Unit("user:patient")
HIGH = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"


def plan_of(text: str, **options: Any) -> Any:
    return sql(text, SCHEMA, unit=UNIT, **{"epsilon": 1, "delta": 1e-6, "limits": {"rows": 10}, **options})


def staged(text: str, **options: Any) -> SqlStages:
    plan = plan_of(text, **options)
    assert isinstance(plan, SqlStages)
    return plan


def tables(size: int = 400) -> dict[str, Any]:
    visits = {
        "patient": [f"P{place // 2}" for place in range(size)],
        "ward": [WARDS[place % 3] for place in range(size)],
        "drug": [f"D{place % 5}" for place in range(size)],
        "day": ["2026-02-03"] * size,
        "cost": [float(place % 100) for place in range(size)],
    }
    drugs = {"drug": ["D0", "D1", "D9"], "kind": ["new", "old", "new"], "price": [1, 2, 3]}
    return {"visits": visits, "drugs": drugs}


def opened() -> Any:
    return connect({name: (SCHEMA.table(name), source(cells)) for name, cells in tables().items()}, threads=1)


def exactly(plan: SqlStages) -> Any:
    """Without noise: every stage reads what the one before it would be."""
    from sfumato.audit.silent import Silent

    with opened() as session:
        return plan.finish(plan._run(session, Run(Silent(SeededBits(0)))))


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        (HIGH, ["SELECT AVG(cost) FROM visits"]),
        ("SELECT ward, COUNT(*) FROM visits v WHERE cost > (SELECT AVG(cost) FROM visits w WHERE w.ward = v.ward) "
         "GROUP BY ward", ["SELECT ward, AVG(cost) FROM visits GROUP BY ward"]),
        ("WITH t AS (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) "
         "SELECT COUNT(*) FROM visits v JOIN t USING (ward) WHERE v.cost > t.m",
         ["SELECT ward, AVG(cost) FROM visits GROUP BY ward"]),
        ("SELECT COUNT(*) FROM visits WHERE drug IN (SELECT drug FROM visits GROUP BY drug HAVING COUNT(*) > 9)",
         ["SELECT drug, COUNT(*) FROM visits GROUP BY drug"]),
        ("SELECT SUM(CASE WHEN cost > (SELECT AVG(cost) FROM visits) THEN 1 ELSE 0 END) FROM visits",
         ["SELECT AVG(cost) FROM visits"]),
        ("SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY patient "
         "HAVING SUM(cost) > (SELECT 2 * AVG(cost) FROM visits)) t", ["SELECT AVG(cost) FROM visits"]),
        ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient "
         "AND w.cost > (SELECT AVG(cost) FROM visits))", ["SELECT AVG(cost) FROM visits"]),
        ("SELECT COUNT(*) FROM visits WHERE day > (SELECT MEDIAN(day) FROM visits)",
         ["SELECT MEDIAN(day) FROM visits"]),
        ("SELECT ward, n / SUM(n) OVER () AS share FROM (SELECT ward, COUNT(*) AS n FROM visits "
         "WHERE cost > (SELECT AVG(cost) FROM visits) GROUP BY ward)", ["SELECT AVG(cost) FROM visits"]),
        ("SELECT COUNT(*) FROM visits WHERE cost < (SELECT AVG(cost) FROM visits "
         "WHERE cost > (SELECT AVG(cost) FROM visits))", ["SELECT AVG(cost) FROM visits",
         "SELECT AVG(cost) FROM visits WHERE cost > (SELECT MAX(release_1.number_1) AS value FROM release_1)"]),
    ],
)  # fmt: skip
def test_what_rows_are_compared_with_is_a_stage_of_its_own(text: str, stages: list[str]) -> None:
    plan = staged(text)
    assert [plan.sqls[name].text for name in plan.stages] == stages
    assert len(plan.sqls) == len(stages) + 1
    assert plan.delta == Fraction(1, 10**6) and 0.999999 < float(plan.price()) <= 1
    assert exactly(plan).columns


def test_without_noise_it_is_what_sql_says() -> None:
    """The mean of 0 to 99 is 49.5, so half of the rows are above."""
    assert exactly(staged(HIGH, limits={"rows": 100}))["n"][0] == pytest.approx(200, abs=1e-6)
    per_ward = (
        "SELECT ward, COUNT(*) AS n FROM visits v WHERE cost > (SELECT AVG(cost) FROM visits w WHERE w.ward = v.ward)"
    )
    answer = exactly(staged(f"{per_ward} GROUP BY ward ORDER BY ward", limits={"rows": 1000}))
    costs = {ward: [place % 100 for place in range(400) if WARDS[place % 3] == ward] for ward in WARDS[:3]}
    above = [sum(cost > sum(each) / len(each) for cost in each) for each in costs.values()]
    assert answer["n"] == pytest.approx([*above, 0], abs=1e-6)


def test_a_lookup_lists_the_keys_of_public_rows_that_can_occur() -> None:
    plan = staged(
        "SELECT COUNT(*) AS n FROM visits, drugs WHERE visits.drug = drugs.drug AND kind = 'new' AND price < 3 "
        "AND cost > (SELECT AVG(cost) FROM visits v WHERE v.drug = drugs.drug)",
        limits={"rows": 100},
    )
    first = plan.sqls["release_1"]
    assert [each.known for each in first.front.keys] == [True]
    with opened() as session:
        raw = plan._run(session, Run(Noise(SeededBits(1))))
    assert list(raw["releases"]["release_1"]["keys"].values()) == [["D0"]]
    answer = exactly(plan)
    costs = [place % 100 for place in range(400) if place % 5 == 0]
    assert answer["n"][0] == pytest.approx(sum(cost > sum(costs) / len(costs) for cost in costs), abs=1e-6)


def test_a_number_that_is_not_there_makes_no_row_pass() -> None:
    plan = staged("SELECT COUNT(*) AS n FROM visits WHERE NOT cost > (SELECT AVG(cost) FROM visits)")
    last = plan.last
    [(_, table)] = last.released.items()
    from sfumato.audit.silent import Silent

    with opened() as session:
        for cells in (no_cells(plan.sqls["release_1"]), pa.table({"number_1": pa.array([None], type=pa.float64())})):
            session.hand_over(table, cells)
            assert last.finish(last._run(session, Run(Silent(SeededBits(0)))))["n"] == [0.0]


def test_the_next_stage_reads_what_was_stored_and_nothing_else() -> None:
    plan = staged(HIGH)
    with opened() as session:
        raw = plan._run(session, Run(Noise(SeededBits(3))))
        first = plan.sqls["release_1"]
        left = stage_cells(first, raw["releases"]["release_1"])
        assert left.to_pydict() == {"number_1": [first.finish(raw["releases"]["release_1"])["avg(cost)"][0]]}
        assert left.schema == no_cells(first).schema
        with pytest.raises(PlanError, match="not handed over"):
            session.hand_over(stage_table("visits", first), left)


def test_price_noise_and_groups_do_not_depend_on_what_a_stage_leaves() -> None:
    plan = staged(HIGH)
    for part in plan.sqls.values():
        assert part.fixed is not None and part.event == plan.event.events[list(plan.sqls.values()).index(part)]
    grouped = staged(
        "SELECT t.ward, COUNT(*) FROM visits v JOIN (SELECT drug, ward, COUNT(*) AS n FROM visits GROUP BY drug, ward) "
        "t ON t.drug = v.drug AND t.n > 5 GROUP BY t.ward"
    )
    by_drug = staged(
        "SELECT t.drug, COUNT(*) FROM visits v JOIN (SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug) t "
        "ON t.drug = v.drug GROUP BY t.drug"
    )
    assert grouped.last.front.keys[0].values == tuple(WARDS) and not grouped.last.front.selects
    assert by_drug.last.front.selects and not by_drug.last.front.keys[0].known  # paid for, not listed
    assert not by_drug.last.lists


@pytest.mark.parametrize("options", [{"epsilon": 1, "delta": 0}, {"epsilon": None, "delta": None, "rho": 0.1}])
def test_stages_have_equal_parts_of_every_currency(options: dict[str, Any]) -> None:
    plan = staged(HIGH, **options)
    if options.get("rho"):
        assert 0.0999999 < float(sum(part.rho for part in plan.sqls.values())) <= 0.1
    else:
        assert plan.price() == 1 and [part.epsilon for part in plan.sqls.values()] == [0.5, 0.5]


def test_a_stage_is_no_query_by_itself() -> None:
    plan = staged(HIGH)
    private = sf.Private("clinic", tables(), unit=UNIT, schema=SCHEMA)
    desk = sf.Curator(private, sf.MemoryLedger({"clinic": sf.Budget(epsilon=10, delta=1e-3)}))
    for alone in (plan.last, sf.sequence(one=plan.last)):
        with pytest.raises(PlanError, match="earlier stage released"):
            desk.release(alone)
    assert desk.ledger.left("clinic") and not list(desk.ledger.history())[2:]
    first, last = plan.sqls.values()
    with pytest.raises(ArgumentError, match="no table that an earlier stage leaves"):
        SqlStages(plans={"release_2": last, "release_1": first})


def test_a_release_says_what_rows_were_compared_with_and_is_asked_again_for_nothing() -> None:
    private = sf.Private("clinic", tables(), unit=UNIT, schema=SCHEMA)
    desk = sf.Curator(private, sf.MemoryLedger({"clinic": sf.Budget(epsilon=10, delta=1e-3)}))
    plan = staged(HIGH)
    assert "epsilon = 1" in str(desk.quote(plan))
    release = desk.release(plan)
    assert "rows were compared with what release_1 released first" in release.value.notes[0]
    assert "release_1: AVG(cost) = " in release.value.notes[1]
    again = desk.release(plan_of("select count(*) as many from Visits where COST > (select avg(cost) from visits)"))
    assert again.value["many"] == release.value["n"]
    stored = record.parse(record.canonical(plan))
    assert stored == plan and stored.hash == plan.hash
    assert str(SqlStages.finish(stored, release.raw)) == str(release.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT AVG(cost - (SELECT AVG(cost) FROM visits)) FROM visits", "no public bounds"),
        ("SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits GROUP BY ward)", "without GROUP BY"),
        (
            "SELECT COUNT(*) FROM visits WHERE cost > (SELECT SUM(n) OVER () FROM (SELECT COUNT(*) AS n FROM visits))",
            ".",
        ),
        ("SELECT COUNT(*) FROM visits release_1 WHERE cost > (SELECT AVG(cost) FROM visits)", "is what a stage"),
        ("SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits)", "aggregate without GROUP BY"),
        ("SELECT cost FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", "shows rows"),
    ],
)
def test_what_is_refused(text: str, rule: str) -> None:
    with pytest.raises(PlanError, match=rule):
        plan_of(text)


def test_stages_alone_are_public_tables() -> None:
    table = Table({"number_1": real(0, 1)}, name="release_1", private=True)
    with pytest.raises(ArgumentError, match="public table"):
        Sql(text=HIGH, schema=SCHEMA, protects=UNIT, epsilon=1, released={"release_1": table})
