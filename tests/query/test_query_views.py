"""Views of the schema: unfolded, so that what is known of a CTE is known of them, and refused by the same rules."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, record, sql
from sfumato.errors import ArgumentError, PlanError
from sfumato.query import Sql, SqlReport, SqlStages
from sfumato.query.refusal import QueryError
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.units import Unit
from tests.query.still import answered, plainly

USER = Unit("user:patient")
TABLES = {
    "visits": Table(
        {"patient": key(), "ward": category(["a", "b"]), "cost": real(0, 100), "day": date("2024-01-01", "2024-12-31")},
        unit="patient",
    ),
    "people": Table({"patient": key(), "born": whole(1900, 2020)}, unit="patient"),
    "beds": Table({"ward": category(["a", "b"]), "beds": whole(0, 50)}, private=False),
}
VIEWS = {
    "spent": "SELECT patient, LEAST(SUM(cost), 300) AS spent, COUNT(*) AS n FROM visits GROUP BY patient;",
    "firsts": "SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day, cost) = 1",
    "old": "SELECT v.*, p.born FROM firsts v JOIN People p ON v.patient = p.patient WHERE p.born < 1980",
    "large": "SELECT ward FROM beds WHERE beds > 10",
    "wards": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "with a CTE": "WITH c AS (SELECT patient, cost FROM visits WHERE ward = 'a') SELECT patient, cost FROM c",
}
SCHEMA = Schema(TABLES, views=VIEWS)
DATA = {
    "visits": pa.table(
        {
            "patient": [1, 1, 2, 3, 3, 4, 5, 6], "ward": list("aabbabab"), "cost": [1.5, 2, 3, 9, 10, 4, 5, 2.5],
            "day": [datetime.date(2024, 1, 1 + i) for i in range(8)],
        }
    ),
    "people": pa.table({"patient": list(range(1, 7)), "born": [1950, 1990, 1970, 1960, 2000, 1979]}),
    "beds": pa.table({"ward": ["a", "b"], "beds": [20, 5]}),
}  # fmt: skip
ANSWERED = [
    "SELECT COUNT(*) AS n, SUM(spent) AS s FROM spent WHERE n > 1",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM firsts GROUP BY ward ORDER BY ward",
    "SELECT o.ward, COUNT(*) AS n FROM old AS o GROUP BY o.ward ORDER BY 1",
    "SELECT COUNT(*) AS n FROM old JOIN spent ON old.patient = spent.patient WHERE spent > 3",
    "SELECT SUM(v.cost) AS s FROM visits v JOIN spent s USING (patient) WHERE v.cost > s.spent / s.n",
    "WITH o AS (SELECT * FROM old) SELECT COUNT(*) AS n, SUM(born) AS s FROM o",
    "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM large)",
    "SELECT COUNT(*) AS n FROM firsts f WHERE EXISTS (SELECT 1 FROM spent s WHERE s.patient = f.patient AND s.n = 2)",
    'SELECT SUM(cost) AS s FROM "With a CTE"',
    "SELECT COUNT(*) AS n FROM (SELECT * FROM firsts UNION ALL SELECT * FROM firsts)",
]


def plan_of(text: str, schema: Schema = SCHEMA, **options: Any) -> Sql | SqlReport:
    return sql(text, schema, unit=USER, **{"epsilon": 1, "delta": 1e-6, "limits": {"rows": 100}, **options})


def by_hand(text: str) -> str:
    """The query with the views that the engine would have."""
    return "".join(f'CREATE VIEW "{name}" AS {view};' for name, view in VIEWS.items()) + text


@pytest.mark.parametrize("text", ANSWERED)
def test_a_view_says_what_the_engines_own_view_says(text: str) -> None:
    plan = plan_of(text)
    assert isinstance(plan, Sql)
    answer = answered(plan, DATA)
    names = {name: data for name, data in DATA.items() if name in text or "FROM" in text}
    [*rows] = plainly(by_hand(text), names)
    assert [tuple(row.values()) for row in answer.rows] == [
        tuple(pytest.approx(cell, rel=1e-6) if isinstance(cell, float) else cell for cell in row) for row in rows
    ]


def test_the_unit_is_tracked_through_it() -> None:
    """What is grouped by the unit has one row of it, what is joined or taken out of windows has its unit's column."""
    single = {"spent": True, "old": False, "firsts": False}
    for view, one in single.items():
        plan = plan_of(f"SELECT COUNT(*) AS n FROM {view}")
        assert isinstance(plan, Sql)
        rows = plan.front.reading
        assert rows.private and rows.unit is not None and rows.single == one
        plan_of(f"SELECT COUNT(DISTINCT patient) AS n FROM {view}")


def test_the_plan_holds_what_was_unfolded_and_no_view() -> None:
    plan = plan_of("SELECT COUNT(*) AS n FROM old")
    written = plan_of(
        f"WITH firsts AS ({VIEWS['firsts']}), "
        "old AS (SELECT v.*, p.born FROM firsts v JOIN people p ON v.patient = p.patient WHERE p.born < 1980) "
        "SELECT COUNT(*) AS n FROM old",
        Schema(TABLES),
    )
    assert isinstance(plan, Sql) and plan.hash == written.hash
    assert plan.text.startswith("WITH firsts AS (") and plan.schema == Schema(TABLES)
    assert plan_of(plan.text).hash == plan.hash, "a CTE hides the view of its name"
    other = Schema(TABLES, views={**VIEWS, "old": "SELECT * FROM firsts"})
    assert plan_of("SELECT COUNT(*) AS n FROM old", other).hash != plan.hash
    assert plan_of("SELECT COUNT(*) AS n FROM spent", other).hash == plan_of("SELECT COUNT(*) AS n FROM spent").hash
    assert record.parse(record.canonical(plan)) == plan


def test_a_schema_without_views_is_written_as_ever() -> None:
    assert b"views" not in record.canonical(Schema(TABLES)) and b"views" in record.canonical(SCHEMA)
    assert record.parse(record.canonical(SCHEMA)) == SCHEMA


def test_a_view_that_aggregates_over_units_is_a_release() -> None:
    plan = plan_of("SELECT ward, n / SUM(n) OVER () AS share FROM wards")
    assert isinstance(plan, SqlReport)
    assert [part.text for part in plan.sqls.values()] == ["SELECT ward, COUNT(*) FROM visits GROUP BY ward"]


REFUSED = {
    "SELECT cost / MAX(cost) OVER () AS x FROM visits": "PARTITION BY must hold the unit",
    "SELECT patient, cost FROM visits ORDER BY cost LIMIT 3": "LIMIT in a subquery",
    "SELECT patient, cost FROM visits OFFSET 3": "OFFSET",
    "SELECT patient, RANDOM() AS x FROM visits": "random",
    "SELECT patient, cost FROM visits TABLESAMPLE 10%": "TABLESAMPLE",
    "SELECT patient, MD5(ward) AS x FROM visits": "MD5",
    "SELECT patient, cost FROM read_csv('/etc/passwd')": "FROM",
    "SELECT v.cost FROM visits v JOIN people p ON v.cost > p.born": "",
    "SELECT patient, cost FROM visits UNION SELECT patient, born FROM people": "UNION",
    "SELECT patient, cost FROM visit": "no table 'visit'",
    "SELECT patient, price FROM visits": "no column 'price'",
    "DELETE FROM visits": "Only SELECT",
    "SELECT patient FROM visits) , more AS (SELECT 1": "not SQL",
    "SELECT patient FROM visits /*": "",
    "SELECT patient, _unit FROM visits": "underscore",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT patient FROM visits, r": "recursive",
}


@pytest.mark.parametrize("view", REFUSED)
def test_what_mixes_units_is_refused_in_a_view_as_anywhere(view: str) -> None:
    schema = Schema(TABLES, views={"v": view})
    with pytest.raises(QueryError, match=f"(?s){REFUSED[view]}"):
        plan_of("SELECT COUNT(*) AS n FROM v", schema)


def test_rows_of_distinct_values_without_the_unit_are_no_rows() -> None:
    """They are a release of groups, where groups are private, and never rows that are counted for units."""
    schema = Schema({"visits": Table({"patient": key(), "drug": key()}, unit="patient")}, views={
        "drugs": "SELECT DISTINCT drug FROM visits"})  # fmt: skip
    plan = plan_of("SELECT COUNT(*) AS n FROM drugs", schema)
    assert isinstance(plan, SqlReport)
    joined = plan_of("SELECT COUNT(*) AS n FROM visits JOIN drugs USING (drug)", schema)
    assert isinstance(joined, SqlStages) and len(joined.plans) == 2


def test_a_view_that_compares_with_what_all_rows_come_to_is_read_in_stages() -> None:
    schema = Schema(TABLES, views={"v": "SELECT patient, cost - (SELECT AVG(cost) FROM visits) AS x FROM visits"})
    plan = plan_of("SELECT COUNT(*) AS n FROM v", schema)
    assert isinstance(plan, SqlStages) and len(plan.plans) == 2


def test_a_refusal_shows_the_place_in_the_view_or_in_the_query() -> None:
    with pytest.raises(QueryError) as caught:
        plan_of(
            "SELECT COUNT(*) AS n FROM v", Schema(TABLES, views={"v": "SELECT\n cost / MAX(cost) OVER () FROM visits"})
        )
    assert str(caught.value).splitlines()[:3] == [
        "In the view 'v': A window may only look at rows of one unit: its PARTITION BY must hold the unit's column.",
        "2 |  cost / MAX(cost) OVER () FROM visits",
        "                ^^^^",
    ]
    for text in (
        "SELECT COUNT(*) AS n\nFROM old WHERE born",
        "WITH a AS (SELECT * FROM old) SELECT COUNT(*) FROM a WHERE born",
    ):
        with pytest.raises(QueryError) as caught:
            plan_of(text)
        lines = str(caught.value).splitlines()
        assert lines[1].endswith(text.splitlines()[-1]) and lines[2].endswith("^^^^") and len(lines[1]) == len(lines[2])
        assert caught.value.rewritten == text.replace("WHERE born", "WHERE born > 0")


def test_names_mean_one_thing() -> None:
    with pytest.raises(QueryError, match="'spent' is a view of the schema, and a CTE"):
        plan_of("WITH spent AS (SELECT * FROM spent) SELECT COUNT(*) AS n FROM spent")
    hidden = plan_of("WITH spent AS (SELECT patient FROM people) SELECT COUNT(*) AS n FROM spent")
    assert isinstance(hidden, Sql) and "SUM(cost)" not in hidden.text
    circle = Schema(TABLES, views={"a": "SELECT * FROM b", "b": "SELECT * FROM A"})
    with pytest.raises(QueryError, match="A view reads itself: a reads b reads a"):
        plan_of("SELECT COUNT(*) AS n FROM a", circle)
    with pytest.raises(QueryError, match="in no schema of the database"):
        plan_of("SELECT COUNT(*) AS n FROM main.old")
    for views in (
        {"Visits": "SELECT 1"},
        {"v": "SELECT 1", "V": "SELECT 1"},
        {"v": ""},
        {"v": 3},
        {"": "SELECT 1"},
        ["v"],
    ):
        with pytest.raises(ArgumentError):
            Schema(TABLES, views=views)  # type: ignore[arg-type]


def test_types_of_a_pasted_query_are_not_guessed_past_a_view() -> None:
    """`cost` is a real in the table and a whole number in the view: what / does to it nobody knows."""
    schema = Schema(TABLES, views={"v": "SELECT patient, COUNT(*) AS cost FROM visits GROUP BY patient"})
    text = "SELECT SUM(cost / 2) AS s FROM {} WHERE cost < 5"
    plan_of(text.format("visits"), Schema(TABLES), dialect="postgres")
    with pytest.raises(QueryError):
        plan_of(text.format("v"), schema, dialect="postgres")


def test_options_in_a_comment_stay_where_they_are() -> None:
    plan = sql("-- sfumato: epsilon=0.5, rows=2\nSELECT COUNT(*) AS n FROM spent", SCHEMA, unit=USER)
    assert isinstance(plan, Sql) and float(plan.epsilon) == 0.5


def test_a_view_is_released_paid_and_asked_again_for_nothing() -> None:
    private = Private("clinic", DATA, unit=USER, schema=SCHEMA)
    curator = Curator(private, MemoryLedger({"clinic": Budget(epsilon=10, delta=1e-4)}))
    plan = sql("SELECT COUNT(*) AS n FROM spent", private, epsilon=1, limits={"rows": 1})
    assert "fits" in str(curator.quote(plan)) and curator.rehearse(plan)
    first = curator.release(plan)
    left = curator.ledger.left("clinic")
    again = curator.release(sql("select count(*) from Spent", private, epsilon=1, limits={"rows": 1}))
    assert again.receipt == first.receipt and curator.ledger.left("clinic") == left
    other = Private("clinic", DATA, unit=USER, schema=Schema({**TABLES, "beds": Table({"ward": key()}, private=False)}))
    with pytest.raises(PlanError, match="another schema"):
        Curator(other, MemoryLedger({"clinic": Budget(epsilon=10)})).release(plan)
