"""A query as a plan: at rest, at the door, in other plans, on files, and held to every promise."""

from __future__ import annotations

import csv
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sfumato import (
    Budget,
    Curator,
    MemoryLedger,
    Private,
    Schema,
    Unit,
    bounds,
    mechanisms,
    partition,
    record,
    sequence,
    sql,
)  # fmt: skip
from sfumato.audit.conformance import check_plan
from sfumato.errors import ArgumentError, BudgetError, PlanError
from sfumato.query import Limits, Sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Table, category, key, real
from tests.query.still import answered

USER = Unit("user:patient")
TABLE = Table({"patient": key(), "ward": category(["a", "b", "c"]), "drug": key(), "days": real(0, 50)}, unit="patient")
SCHEMA = Schema({"visits": TABLE})
QUERY = "SELECT ward, COUNT(*) AS n, AVG(days) AS m FROM visits GROUP BY ward"
LIMITS = Limits(rows=4, keys=3)
_draw = np.random.default_rng(3)
VISITS: dict[str, Any] = {
    "patient": list(range(6000)),
    "ward": _draw.choice(["a", "b"], 6000).tolist(),
    "drug": _draw.choice(["x", "y", "z"], 6000).tolist(),
    "days": _draw.uniform(0, 50, 6000).tolist(),
}


def door(data: Any = None, *, schema: Schema = SCHEMA, unit: Unit = USER, **more: Any) -> Curator:
    private = Private("visits", VISITS if data is None else data, unit=unit, schema=schema, **more)
    return Curator(private, MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)}))


def plan(text: str = QUERY, *, schema: Schema = SCHEMA, unit: Unit = USER, **options: Any) -> Sql:
    return sql(text, schema, unit=unit, **{"epsilon": 2, "delta": 1e-6, "limits": LIMITS, **options})


EVERY: dict[str, dict[str, Any]] = {
    "plain": {},
    "laplace": {"delta": None},
    "rho": {"epsilon": None, "rho": 0.1, "delta": None},
    "advised": {"limits": None, "unclip": True},
    "many": {
        "keys": {"ward": ["a", "c"]}, "bounds": {"days": (0, 20)}, "shares": {"rows": 3}, "floor": True,
        "limits": Limits(rows=2, keys=1, most_keys=9, values=2, reach={"m": 30}), "advice": 0.2,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_plans_survive_json_and_hashes_tell_them_apart(name: str) -> None:
    made = plan(**EVERY[name])
    again = record.parse(record.canonical(made))
    assert again == made and again.hash == made.hash == replace(made).hash
    assert again.event == made.event
    others = {plan(**options).hash for options in EVERY.values()}
    assert len(others) == len(EVERY) and made.hash in others
    assert plan(QUERY + " ;", **EVERY[name]).hash == made.hash
    assert plan(QUERY.replace(" GROUP", " WHERE days > 1 GROUP"), **EVERY[name]).hash != made.hash


@pytest.mark.parametrize("name", EVERY)
def test_a_release_is_about_right_and_stored(name: str) -> None:
    """With margins that fail with probability far below 1e-9."""
    curator, made = door(), plan(**EVERY[name])
    released = curator.release(made)
    exact = answered(made, {"visits": VISITS})
    for row, true in zip(released.value.rows, exact.rows, strict=True):
        assert row["ward"] == true["ward"]
        assert row["n"] == pytest.approx(true["n"], abs=700)
    assert curator.release(made).raw == released.raw  # the same question is answered from the store
    assert released.receipt is not None
    assert released.explain()


def test_quotes_touch_nothing_and_tell_the_error() -> None:
    curator = door({name: ["not", "read"] for name in VISITS})
    quote = curator.quote(plan("SELECT COUNT(*) AS n FROM visits"))
    assert quote.affordable
    assert "±" in str(quote) or "error" in str(quote)


def test_rehearsals_are_free_and_made_up() -> None:
    curator = door({name: [] for name in VISITS})
    for options in EVERY.values():
        rehearsed = curator.rehearse(plan(**options))
        assert rehearsed.receipt is None
        assert list(rehearsed.value.columns) == ["ward", "n", "m"]


def test_an_answer_may_have_no_groups_at_all() -> None:
    aggregates = "COUNT(*) n, AVG(days) a, MEDIAN(days) m, QUANTILE(days, [0.1, 0.9]) q, COUNT(DISTINCT ward) w"
    made = plan(f"SELECT drug, {aggregates}, HISTOGRAM(days, [0, 1, 2]) h FROM visits GROUP BY drug ORDER BY m")
    for options in ({}, {"limits": None, "unclip": True}):
        answer = answered(replace(made, **options), {"visits": {name: [] for name in VISITS}})
        assert len(answer) == 0 and answer.rows == []
        assert str(answer) and answer.to_arrow().num_rows == 0


def test_two_queries_in_sequence_are_one_release() -> None:
    both = sequence(wards=plan(), drugs=plan("SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug"))
    curator = door()
    value = curator.release(both).value
    assert value["wards"]["ward"] == ["a", "b", "c"]
    assert value["drugs"]["drug"] == ["x", "y", "z"]
    assert record.parse(record.canonical(both)) == both
    assert "rows" in str(curator.rehearse(both).explain())


def test_what_runs_in_an_engine_does_not_mix_with_what_reads_rows() -> None:
    mixed = sequence(one=plan(), other=mechanisms.Laplace(query=bounds.count(USER), epsilon=1))
    with pytest.raises(PlanError, match="some parts of this plan read rows, others run in an engine"):
        door().release(mixed)
    with pytest.raises(ArgumentError, match="a query is not split by partition: use GROUP BY"):
        partition("ward", ["a", "b"], plan())


def test_another_schema_or_unit_is_refused_before_it_is_charged() -> None:
    curator = door()
    narrower = Schema({"visits": replace(TABLE, columns={**TABLE.columns, "days": real(0, 10)})})
    with pytest.raises(PlanError, match="the query was made for another schema"):
        curator.release(plan(schema=narrower))
    with pytest.raises(PlanError, match="the plan protects"):
        curator.release(plan(unit=Unit("user:patient", group=2)))
    assert curator.release(plan(epsilon=9, delta=1e-4)) is not None  # nothing was spent before


def test_a_budget_holds() -> None:
    private = Private("visits", VISITS, unit=USER, schema=SCHEMA)
    curator = Curator(private, MemoryLedger({"visits": Budget(epsilon=2.2, delta=1e-5)}))
    curator.release(plan())
    with pytest.raises(BudgetError):
        curator.release(plan("SELECT COUNT(*) AS n FROM visits"))


def test_several_private_tables_are_joined_by_their_unit() -> None:
    orders = Table({"who": key(), "amount": real(0, 10)}, unit="who", names="patient")
    schema = Schema({"visits": TABLE, "orders": orders})
    unit = Unit("user:patient")
    data: Mapping[str, Any] = {"visits": VISITS, "orders": {"who": [0, 1, 1, 9999], "amount": [1.0, 2.0, 3.0, 4.0]}}
    text = "SELECT SUM(amount) AS s FROM visits JOIN orders ON patient = who"
    made = plan(text, schema=schema, unit=unit, limits=Limits(rows=8))
    assert answered(made, data)["s"] == pytest.approx([6.0], abs=1e-3)
    curator = door(data, schema=schema, unit=unit)
    assert abs(curator.release(made).value["s"][0] - 6) < 2000
    assert "visits, orders" in repr(curator.private)


def test_blocks_are_read_and_nothing_else() -> None:
    months = Table({"patient": key(), "month": category(["jan", "feb"]), "days": real(0, 50)}, unit="patient")
    schema = Schema({"visits": months})
    data = {"patient": list(range(900)), "month": ["jan"] * 600 + ["feb"] * 200 + [None] * 100, "days": [1.0] * 900}
    private = Private("visits", data, unit=USER, schema=schema, block="month")
    ledger = MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)})
    made = plan("SELECT COUNT(*) AS n FROM visits", schema=schema, limits=Limits(rows=1))
    found = {
        blocks: Curator(private.of_blocks(*blocks), ledger).release(made).value["n"][0]
        for blocks in (("jan",), ("feb",), ("jan", "feb"))
    }
    for blocks, count in {("jan",): 600, ("feb",): 200, ("jan", "feb"): 800}.items():
        assert abs(found[blocks] - count) < 60


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_files_serve_queries_and_plans_of_the_core(kind: str, tmp_path: Path) -> None:
    data: Any = pa.table(VISITS)
    if kind == "parquet":
        parquet.write_table(data, tmp_path / "visits.parquet")
        data = tmp_path / "visits.parquet"
    elif kind == "csv":
        with (tmp_path / "visits.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(VISITS)
            writer.writerows(zip(*VISITS.values(), strict=True))
        data = tmp_path / "visits.csv"
    curator = door(data)
    assert abs(curator.release(mechanisms.Laplace(query=bounds.count(USER), epsilon=1)).value - 6000) < 60
    rows = curator.release(plan(limits=Limits(rows=1))).value.rows
    assert abs(rows[0]["n"] + rows[1]["n"] - 6000) < 300
    assert rows[0]["m"] == pytest.approx(25, abs=5)
    curator.rehearse(plan())
    text = repr(curator.private)
    assert text == f"<Private visits version 1: patient, ward, drug, days; hides {USER}>"
    with pytest.raises(TypeError, match="private data is not pickled"):
        pickle.dumps(curator.private)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": None}, "say how much to spend"),
        ({"rho": 1}, "in one way: epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"limits": 5}, "limits"),
        ({"limits": {"row": 5}}, "limits by name: rows, keys, most_keys, values, "),
        ({"limits": {"rows": 0}}, "rows"),
        ({"limits": {"keys": 1.5}}, "keys"),
        ({"limits": Limits(reach={"n": 5})}, "reach names 'n'"),
        ({"bounds": {"days": 5}}, r"a pair \(lowest, highest\)"),
        ({"bounds": {"days": (5, 1)}}, "days"),
        ({"bounds": {"nothing": (0, 1)}}, "bounds names 'nothing'"),
        ({"shares": {"rows": -1}}, "shares of rows"),
        ({"shares": [1]}, "shares"),
        ({"advice": 0.7}, "at most 1/2"),
        ({"advice": 0}, "advice"),
        ({"floor": 1}, "floor"),
        ({"unclip": "yes"}, "unclip"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, PlanError), match=message):
        plan(**options)


def test_a_query_needs_a_schema_and_a_unit() -> None:
    with pytest.raises(ArgumentError, match="a Private, or a Schema"):
        sql(QUERY, VISITS, epsilon=1)
    with pytest.raises(ArgumentError, match="a Unit, where the data is given as a schema"):
        sql(QUERY, SCHEMA, epsilon=1)
    with pytest.raises(ArgumentError, match="a query"):
        sql(5, SCHEMA, unit=USER, epsilon=1)  # type: ignore[arg-type]


SMALL = Schema({"visits": Table({"patient": key(), "ward": category(["a", "b"]), "days": real(0, 5)}, unit="patient")})
CHECKED = {
    "laplace": plan("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", schema=SMALL, delta=None, limits=Limits()),
    "gaussian": plan("SELECT SUM(days) AS s, COUNT(*) AS n FROM visits", schema=SMALL, limits=Limits(rows=2)),
    "replace": plan(
        "SELECT COUNT(DISTINCT patient) AS p FROM visits", schema=SMALL, unit=Unit("user:patient", change="replace")
    ),
    "chosen": plan(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", schema=SMALL, keys={"ward": "select"}, delta=1e-2,
        limits=Limits(rows=1, most_keys=2),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_queries_keep_every_promise(name: str) -> None:
    assert str(check_plan(CHECKED[name]))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) + {}1 AS s FROM t",
        "SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > {}1",
        "SELECT w, COUNT(*) AS n FROM t GROUP BY w ORDER BY {}n",
        "SELECT {}COUNT(*) AS n FROM t",
    ],
)
def test_too_many_levels_are_refused_in_plain_words(text: str) -> None:
    table = Schema({"t": Table({"id": key(), "w": category(["a", "b"])}, unit="id")})
    with pytest.raises(QueryError, match="nested too deeply"):
        sql(text.format("- " * 500), table, unit=Unit("user:id"), epsilon=1, limits=Limits(rows=2))


GUESSED_LIMITS: list[Any] = [{"rows": 8}, {"rows": 8, "keys": 3}, None]
CHOSEN_GROUPS = [("drug", 3), ("drug, zip", 9), ("ward, drug", 6), ("LEFT(drug, 5)", 3)]
CHOSEN_FEW = {(0, 0), (1, 1), (2, 1), (2, 2), (0, 3)}


@pytest.mark.parametrize(
    ("limits", "groups", "many"),
    [
        pytest.param(limits, *groups, marks=[] if (one, other) in CHOSEN_FEW else [pytest.mark.slow])
        for other, groups in enumerate(CHOSEN_GROUPS)
        for one, limits in enumerate(GUESSED_LIMITS)
    ],
)
def test_rehearsals_show_groups_that_nobody_knows(limits: Any, groups: str, many: int) -> None:
    """Made-up rows have a few common keys, and are enough that these pass the threshold."""
    tables = Schema({"visits": Table({**SMALL.table().columns, "drug": key(), "zip": key()}, unit="patient")})
    private = Private("d", {name: [] for name in tables.table().columns}, unit=USER, schema=tables)
    curator = Curator(private, MemoryLedger({"d": Budget(epsilon=1, delta=1e-6)}))
    for epsilon in (0.1, 1):
        made = sql(
            f"SELECT COUNT(*) AS n FROM visits GROUP BY {groups}", private, epsilon=epsilon, delta=1e-7, limits=limits
        )
        assert made.rehearsal_rows > 300 and many <= len(curator.rehearse(made).value) < 3 * many
    assert plan().rehearsal_rows == 300
