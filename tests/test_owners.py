"""One unit for a schema, on every path: the column that names it is the one that is printed and charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato import audit, bounds, record
from sfumato.accounting.filters import Budget
from sfumato.combine import sequence
from sfumato.curator import Curator
from sfumato.errors import ArgumentError, PlanError, SfumatoError
from sfumato.ledger.memory import MemoryLedger
from sfumato.mechanisms import Laplace
from sfumato.owners import other_names, owners
from sfumato.private import Private
from sfumato.query import Limits, Sql, sql
from sfumato.report import release_report
from sfumato.rows import Rows
from sfumato.schema import Schema, Table, category, key, real
from sfumato.units import Unit

PATIENT, VISIT = Unit("user:patient"), Unit("user:visit")
COST = {"patient": key(), "visit": key(), "cost": real(0, 10)}
LINES = {"visit": key(), "cost": real(0, 10)}
PEOPLE = Table({"patient": key(), "ward": category(["a", "b"])}, unit="patient")
TEXT = "SELECT SUM(cost) AS s FROM visits"

BESIDE = Schema({"visits": Table(COST, unit="visit")})
TWO = Schema({"visits": Table(COST, unit="visit"), "people": PEOPLE})
THROUGH = Schema({"visits": Table(LINES, unit="visit"), "people": PEOPLE})
DECLARED = Schema({"visits": Table(LINES, unit="visit", names="patient"), "people": PEOPLE})


def empty(schema: Schema) -> Any:
    data = {name: {column: [] for column in table.columns} for name, table in schema.tables.items()}
    return data if len(data) > 1 else next(iter(data.values()))


def project(schema: Schema, folder: Path) -> Any:
    pytest.importorskip("pydantic")
    from sfumato.project import open_project

    lines = ["sfumato: 1", "name: d", "unit: user:patient", "tables:"]
    for name, table in schema.tables.items():
        lines += [f"  {name}:", f"    source: {name}.csv", f"    unit: {table.unit}", "    columns:"]
        lines += [f"      {each}: {_written(column)}" for each, column in table.columns.items()]
    (folder / "sfumato.yaml").write_text("\n".join([*lines, "budget: {total: {epsilon: 1}}"]))
    return open_project(folder)


def _written(column: Any) -> str:
    if column.type == "category":
        return "{type: category, values: [a, b]}"
    return "key" if column.type == "key" else "{type: real, lower: 0, upper: 10}"


def as_stored(schema: Schema) -> Any:
    """A plan out of JSON that says what no plan of today does."""
    fitting = Schema({name: replace(table, unit=None, names=None) for name, table in schema.tables.items()})
    fitting = Schema({**fitting.tables, "visits": replace(fitting.tables["visits"], columns=COST)})
    body = record.encode(sql(TEXT, fitting, unit=PATIENT, epsilon=1, limits=Limits()))
    return record.decode({**body, "schema": record.encode(schema)}, Sql)


PATHS: dict[str, Callable[[Schema, Path], Any]] = {
    "private data": lambda schema, _: Private("d", empty(schema), unit=PATIENT, schema=schema),
    "a query": lambda schema, _: sql(TEXT, schema, unit=PATIENT, epsilon=1),
    "a query with limits": lambda schema, _: sql(TEXT, schema, unit=PATIENT, epsilon=1, limits=Limits()),
    "a plan": lambda schema, _: Sql(text=TEXT, schema=schema, protects=PATIENT, epsilon=1, limits=Limits()),
    "a stored plan": lambda schema, _: as_stored(schema),
    "rows": lambda schema, _: Rows.read(schema.table("visits"), {"patient": [], "visit": [], "cost": []}, PATIENT),
    "an audit of code": lambda schema, _: audit.replay(lambda data: None, schema=schema, unit=PATIENT),
    "a project": project,
}


@pytest.mark.parametrize("schema", [BESIDE, TWO, THROUGH], ids=["beside", "two tables", "through another table"])
@pytest.mark.parametrize("path", PATHS)
def test_another_unit_than_the_protected_one_is_refused_at_birth(path: str, schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match=r"'visit'.*patient"):
        PATHS[path](schema, tmp_path)


def test_the_refusal_says_what_to_write() -> None:
    with pytest.raises(PlanError, match=r"give the table unit='patient', or protect Unit\('user:visit'\)"):
        owners(TWO, PATIENT)
    with pytest.raises(PlanError, match=r"declare that with names='patient'; if a key .* owner='order -> orders.id'"):
        owners(THROUGH, PATIENT)
    with pytest.raises(PlanError, match=r"no private table has it.*: protect Unit\('user:visit'\)"):
        owners(BESIDE, PATIENT)
    with pytest.raises(PlanError, match="no private table has it"):  # nobody would know who a patient is
        owners(Schema({name: replace(DECLARED.tables["visits"]) for name in ("visits", "more")}), PATIENT)
    with pytest.raises(PlanError, match="the unit given is a row"):
        owners(TWO, Unit())
    with pytest.raises(PlanError, match=r"has no column 'patient'.* owner='order -> orders.id'"):
        owners(Schema({"people": PEOPLE, "visits": Table(LINES)}), PATIENT)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (COST, {"unit": "visit", "names": "patient"}, "unit='patient' alone"),
        (LINES, {"names": "patient"}, "together with unit"),
        (LINES, {"unit": "visit", "names": "visit"}, "unit='visit' alone"),
        (LINES, {"unit": "visit", "names": ""}, "names"),
        (LINES, {"unit": "visit", "names": 7}, "names"),
    ],
)
def test_a_name_is_declared_where_it_can_be_meant(columns: Any, options: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Table(columns, **options)


def test_tables_may_call_the_unit_otherwise_where_they_say_so() -> None:
    assert owners(DECLARED, PATIENT) == {"visits": "visit", "people": "patient"}
    assert other_names(DECLARED, PATIENT) == {"visits": "visit"}
    assert owners(Schema({"t": Table(COST)}), PATIENT) == {"t": "patient"}  # by the unit's own name
    assert owners(Schema({"t": Table(COST)}), VISIT) == {"t": "visit"}
    assert owners(Schema({"t": Table(COST)}), Unit()) == {}
    assert owners(Schema({"t": Table({"x": real(0, 1)}, private=False)}), PATIENT) == {}
    with pytest.raises(PlanError, match="no private table has it"):
        owners(DECLARED, Unit("user:ward"))


def test_every_word_about_the_unit_names_the_column_that_it_is_read_from() -> None:
    data = {"visits": {"visit": ["a", "b"], "cost": [1.0, 2.0]}, "people": {"patient": ["a"], "ward": ["a"]}}
    private = Private("d", data, unit=PATIENT, schema=DECLARED)
    ledger = MemoryLedger({"d": Budget(epsilon=10)})
    curator = Curator(private, ledger)
    plan = sql(TEXT, private, epsilon=1, limits=Limits())
    told = "everything one patient ever contributed, present or absent; in visits visit names it"
    assert plan.hides == told and sequence(one=plan, two=sql(TEXT, private, epsilon=2, limits=Limits())).hides == told
    release = curator.release(plan)
    texts = [str(curator.quote(plan)), release.explain(), str(release), repr(private), private._repr_html_()]
    assert all("in visits visit names it" in text for text in texts)
    assert "in visits the column visit names the patient" in "\n".join(plan.explain())
    others = sql("SELECT COUNT(*) AS n FROM people", private, epsilon=1, limits=Limits())
    assert others.hides == str(PATIENT)  # it reads no table that calls a patient otherwise
    joined = "SELECT COUNT(*) AS n FROM (SELECT * FROM people) AS p JOIN visits AS v ON p.patient = v.visit"
    assert sql(joined, private, epsilon=1, limits=Limits()).hides == told
    assert "unit visit, which names a patient" in str(DECLARED)
    assert release_report(ledger, release.receipt.id).document["guarantee"]["hides"] == told  # type: ignore[union-attr]
    alone = Private("d", {"patient": [], "visit": [], "cost": []}, unit=PATIENT, schema=Schema.of(COST))
    assert sql("SELECT SUM(cost) AS s FROM data", alone, epsilon=1).hides == str(PATIENT)


def test_rows_are_read_by_the_units_own_column_alone() -> None:
    schema = Schema.of({"patient": key(), "cost": real(0, 10)}, unit="patient")
    plan = Laplace(query=bounds.count(PATIENT), epsilon=1)
    curator = Curator(
        Private("d", {"patient": ["a", "a", None], "cost": [1, 2, 3]}, unit=PATIENT, schema=schema),
        MemoryLedger({"d": Budget(epsilon=1)}),
    )
    assert isinstance(curator.release(plan).value, float)
    with pytest.raises(PlanError, match="need the unit's own column 'patient'"):
        Rows.read(DECLARED.table("visits"), {"visit": [], "cost": []}, PATIENT)


def test_what_was_stored_before_keeps_its_text_and_its_hash() -> None:
    """Answers of before are found by the hash of their plan, so a table that declares nothing is written as it was."""
    assert b"names" not in record.canonical(PEOPLE) and "names" not in record.encode(PEOPLE)
    stored = b'{"columns":{"is":"map","items":[["u",{"categories":[],"constant":false,"is":"column/1","lower":null,'
    stored += b'"nulls":"drop","type":"key","upper":null}]]},"is":"table/1","name":"data","private":true,"rows":null,'
    stored += b'"unit":"u"}'
    table = Table({"u": key()}, unit="u")
    assert record.canonical(table) == stored and record.parse(stored, Table) == table
    declared = DECLARED.tables["visits"]
    assert record.parse(record.canonical(declared), Table) == declared
    assert record.canonical(declared) != record.canonical(replace(declared, names=None))
    for each in (table, declared, DECLARED):  # written at once, or by way of JSON: the same text
        assert record.canonical(each) == json.dumps(record.encode(each), sort_keys=True, separators=(",", ":")).encode()
