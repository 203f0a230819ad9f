"""UNREADABLE(column), and the plan that counts such cells for every column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.conformance import check_plan
from sfumato.errors import PlanError
from sfumato.query.cell_words import HELP, findings
from sfumato.query.refusal import QueryError
from sfumato.schema import Column, Schema, Table, category, date, flag, key, real, whole
from sfumato.sources import Csv, Frame, Source
from sfumato.units import Unit
from tests.query.still import answered

PATIENT = Unit("user:patient")
VISITS = Table(
    {
        "patient": key(),
        "ward": category(["east", "north"]),
        "cost": real(0, 100, nulls=7),
        "rows": whole(0, 9),
        "day": date("2026-01-01", "2026-12-31"),
        "back": flag(),
    },
    unit="patient",
)
SCHEMA = Schema(
    {"visits": VISITS, "wards": Table({"ward": category(["east", "north"]), "beds": whole(0, 99)}, private=False)}
)
# Cells that can be read, cells that cannot, and none at all: in each column as many of each kind as is said.
COUNT = 60
CELLS = {
    "ward": (["east", " north", ""], 1),
    "cost": (["1.5", "1,5", "nan", "x", ""], 3),
    "rows": (["3", "three", "3.4"], 1),
    "day": (["2026-05-01", "01.05.2026", "2026-02-30", ""], 2),
    "back": (["yes", "perhaps", "1"], 1),
}
DATA: dict[str, Any] = {
    "patient": [f"p{place % 20}" for place in range(COUNT)],
    **{name: [cells[place % len(cells)] for place in range(COUNT)] for name, (cells, _) in CELLS.items()},
}
ODD = {name: COUNT // len(cells) * odd for name, (cells, odd) in CELLS.items()}
WARDS = {"ward": ["east", "north"], "beds": [4, 5]}


def plan(text: str, **options: Any) -> Any:
    return sf.sql(text, SCHEMA, unit=PATIENT, **{"epsilon": 1, "limits": {"rows": 60}, **options})


def test_present_cells_that_cannot_be_read_are_counted() -> None:
    """Also where a value stands in for NULL; neither NULLs nor empty cells are counted."""
    made = sf.unreadable(SCHEMA, unit=PATIENT, epsilon=1, limits={"rows": 60})
    found = answered(made, {"visits": DATA, "wards": WARDS})
    assert {name: round(found[name][0]) for name in found.columns} == {"all rows": COUNT, **ODD}
    assert HELP in found.notes


def test_a_unit_counts_for_no_more_than_its_rows() -> None:
    """Somebody with a thousand odd cells moves the counts by the limit, and no further."""
    many = {name: [*cells, *["?"] * 1000] for name, cells in DATA.items()}
    many["patient"] = [*DATA["patient"], *["busy"] * 1000]
    made = sf.unreadable(SCHEMA, unit=PATIENT, epsilon=1, limits={"rows": 3})
    one, other = (answered(made, {"visits": data, "wards": WARDS}) for data in (DATA, many))
    for name in one.columns:
        assert 0 < other[name][0] - one[name][0] <= 3 + 1e-6


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT_IF(UNREADABLE(cost)) AS n FROM visits", [(36,)]),
        (
            "SELECT SUM(CASE WHEN unreadable(v.cost) THEN 1 ELSE 0 END) AS n FROM visits v WHERE v.ward = 'east'",
            [(12,)],
        ),
        ("SELECT UNREADABLE(back) AS odd, COUNT(*) AS n FROM visits GROUP BY odd", [(False, 40), (True, 20)]),
        ("SELECT COUNT(*) AS n FROM (SELECT *, UNREADABLE(ward) AS odd FROM visits) WHERE odd", [(20,)]),
        ("WITH t AS (SELECT patient, UNREADABLE(day) AS odd FROM visits) SELECT COUNT_IF(odd) AS n FROM t", [(30,)]),
        ("SELECT COUNT_IF(UNREADABLE(v.cost)) AS n FROM visits v JOIN wards w ON v.ward = w.ward", [(12,)]),
        ("SELECT COUNT_IF(NOT UNREADABLE(cost) AND cost > 1) AS n FROM visits AS v(a, b, cost, d, e, f)", None),
    ],
)
def test_the_function_in_queries(text: str, rows: list[tuple[Any, ...]] | None) -> None:
    if rows is None:  # the names are another's
        with pytest.raises(QueryError, match="is not known here"):
            plan(text)
        return
    found = answered(plan(text), {"visits": DATA, "wards": WARDS})
    table = [tuple(row.values()) for row in found.rows]
    assert [tuple(each if isinstance(each, bool) else round(each) for each in row) for row in table] == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT_IF(UNREADABLE(patient)) AS n FROM visits", "is a key"),
        ("SELECT COUNT_IF(UNREADABLE(cost + 1)) AS n FROM visits", "one column"),
        ("SELECT COUNT_IF(UNREADABLE(cost, ward)) AS n FROM visits", "one column"),
        ("SELECT COUNT_IF(UNREADABLE(nothing)) AS n FROM visits", "no column 'nothing'"),
        ("SELECT COUNT_IF(UNREADABLE(cost)) AS n FROM (SELECT * FROM visits)", "subquery"),
        ("SELECT COUNT_IF(UNREADABLE(ward)) AS n FROM visits JOIN wards USING (ward)", "two tables"),
        ("SELECT COUNT(*) AS n FROM _flagged_visits", "_flagged_visits"),
        ('SELECT COUNT_IF("_unreadable cost") AS n, COUNT_IF(UNREADABLE(cost)) AS m FROM visits', "reserved"),
        ("SELECT COUNT_IF(UNREADABLE(cost)) AS n FROM visits WHERE costs > 1", "use one of: patient, ward, cost, rows"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words) as refused:
        plan(text)
    assert "_unreadable cost" not in str(refused.value).replace('"_unreadable cost"', "").replace(
        "'_unreadable cost'", ""
    )


def test_a_table_of_keys_has_nothing_to_check() -> None:
    with pytest.raises(PlanError, match="keys are read as they are"):
        sf.unreadable(Schema.of(patient=key(), unit="patient"), unit=PATIENT, epsilon=1)
    by_ward = Schema.of(ward=category(["a"]), cost=real(0, 1), unit="ward")
    text = sf.unreadable(by_ward, unit=Unit("user:ward"), epsilon=1, limits={"rows": 1}).text
    assert "(cost)" in text and "ward" not in text, "rows of nobody are left out, so nothing is said of their unit"


@pytest.mark.slow
def test_the_plan_keeps_the_promises() -> None:
    schema = Schema.of(patient=key(), cost=real(0, 100), day=date("2026-01-01", "2026-12-31"), unit="patient")
    for unit in (PATIENT, Unit("user:patient", "replace")):
        assert str(check_plan(sf.unreadable(schema, unit=unit, epsilon=1, limits={"rows": 2})))


def test_it_is_paid_for_and_rehearsed(tmp_path: Path) -> None:
    lines = ["patient,ward,cost,rows,day,back"]
    lines += [f"p{place}, east,{place},x,2026-01-0{place % 9 + 1},yes" for place in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    schema = Schema({"visits": VISITS})
    private = sf.Private("visits", tmp_path / "visits.csv", unit=PATIENT, schema=schema)
    ledger = sf.MemoryLedger({"visits": sf.Budget(epsilon=1)})
    curator = sf.Curator(private, ledger)
    made = sf.unreadable(private, epsilon=0.5, limits={"rows": 1})
    assert curator.quote(made).affordable and curator.quote(made).epsilon == 0.5
    assert len(curator.rehearse(made).value) == 1
    answer = curator.release(made).value
    bar = answer.half_width("ward", 1e-9)[0]
    assert abs(answer["ward"][0] - 2000) < bar and abs(answer["cost"][0]) < bar and abs(answer["rows"][0] - 2000) < bar
    assert "0.5 of 1 epsilon spent" in str(ledger.left("visits"))
    found = {each.column: each for each in findings(VISITS, PATIENT, Csv(tmp_path / "visits.csv"), answer)}
    assert found["ward"].seen and found["ward"].hints[0].startswith("trim: true") and found["ward"].high == 1
    assert not found["cost"].seen and found["cost"].hints == () and found["cost"].low == 0


def test_columns_are_found_whatever_their_case() -> None:
    """Names of an answer are in the case of SQL; the schema's are as the file has them."""
    table = Table({"Kunde": key(), "Ort": category(["a"]), "Rows": whole(0, 9)}, unit="Kunde")
    made = sf.unreadable(Schema({"t": table}), unit=Unit("user:Kunde"), epsilon=10, limits={"rows": 1})
    answer = answered(made, {"t": {"Kunde": np.arange(500), "Ort": ["?"] * 500, "Rows": [3] * 500}})
    town, rows = findings(table, Unit("user:Kunde"), Csv("x.csv"), answer)
    assert (town.column, town.cells, town.seen) == ("Ort", 500, True)
    assert (rows.column, rows.cells, rows.seen) == ("Rows", 0, False)


def test_hints_name_what_was_not_said_yet() -> None:
    def hints(column: Column, source: Source) -> str:
        table = Table({"patient": key(), "x": column}, unit="patient")
        made = sf.unreadable(Schema({"t": table}), unit=PATIENT, epsilon=10, limits={"rows": 1})
        answer = answered(made, {"t": {"patient": np.arange(500), "x": ["?!"] * 500}})
        (found,) = findings(table, PATIENT, source, answer)
        assert found.seen and found.share == 1
        return "; ".join(found.hints)

    plain = Csv("x.csv")
    said = Csv("x.csv", trim=True, decimal=",", dates="%d.%m.%Y", null="NA")
    assert "trim" in hints(category(["a"]), plain) and "trim" not in hints(category(["a"]), said)
    assert "decimal" in hints(real(0, 1), plain) and "decimal" not in hints(real(0, 1), said)
    assert "%d" in hints(date("2020-01-01", "2021-01-01"), plain)
    assert "another form" in hints(date("2020-01-01", "2021-01-01"), said)
    assert "another form" not in hints(date("2020-01-01", "2021-01-01"), Csv("x.csv", dates={"y": "%Y"}))
    assert "yes and no" in hints(flag(), Frame({"x": []})) and "null" not in hints(flag(), Frame({"x": []}))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT AVG(cost) AS mean FROM visits", True),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", True),
        ("SELECT COUNT(*) AS n FROM visits", False),
        ("SELECT COUNT(DISTINCT patient) AS n FROM visits", False),
        ("SELECT COUNT_IF(UNREADABLE(cost)) AS n FROM visits", False),
    ],
)
def test_answers_name_the_check(text: str, named: bool) -> None:
    notes = " ".join(answered(plan(text), {"visits": DATA, "wards": WARDS}).notes)
    assert ("sfumato describe --check" in notes) == named
