"""Odd queries of a stranger: each refusal names the clause, the cause and the fix of this query; none is a crash."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato import sql
from sfumato.query import SqlReport, SqlStages
from sfumato.query.refusal import QueryError
from sfumato.schema import Schema, Table, category, date, flag, key, real, whole
from sfumato.units import Unit
from tests.query.still import raw_of

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(), "ward": category(["east", "west"]), "drug": key(), "cost": real(0, 100),
                "stay": whole(0, 30), "day": date("2026-01-01", "2026-06-30"), "ok": flag(),
            },
            unit="patient",
        ),
        "patients": Table({"patient": key(), "born": whole(1900, 2020)}, unit="patient"),
        "wards": Table({"ward": category(["east", "west"]), "beds": whole(0, 50), "floor": key()}, private=False),
    }
)  # fmt: skip
REFUSED = [
    ("SELECT ANY_VALUE(cost) FROM visits", "ANY_VALUE is not an aggregate", "ANY_VALUE(cost)", "use one of COUNT"),
    ("SELECT 1", "without FROM reads no table", "1", "add FROM and a table"),
    ("", "no query in this text", "", "write SELECT"),
    ("-- nothing", "no query in this text", "", "write SELECT"),
    ("SELECT COUNT(*) FROM visits LIMIT 5 OFFSET x", "take a whole number", "x", "LIMIT 10 OFFSET 20"),
    ("SELECT DISTINCT patient FROM visits", "list single units", "patient", "COUNT(DISTINCT patient)"),
    ("SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM wards)",
     "UNION of private and public rows", "ward FROM wards", "unite tables of one sort"),
    ("SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM wards)",
     "EXCEPT of private and public rows", "ward FROM wards", "join a public table"),
    ("SELECT COUNT(*) FROM read_csv('visits.csv')", "function cannot stand in FROM", "read_csv('visits.csv')",
     "tables are: visits, patients, wards"),
    ("SELECT COUNT(*) FROM duckdb_tables()", "function cannot stand in FROM", "duckdb_tables", "tables are: visits"),
    ("SELECT COUNT(*) FROM visits WHERE cost IN (1, 'a')", "A number and text do not go", "'a'", "write a number here"),
    ("SELECT COUNT(*) FROM visits WHERE drug[1] = 'a'", "square brackets", "drug", "SUBSTRING"),
    ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "random numbers are no part", "random", "leave it out"),
    ("SELECT COUNT(*) FROM visits WHERE day > NOW()", "clock and random numbers", "NOW", "DATE '2024-01-31'"),
    ("SELECT COUNT(*) FROM visits WHERE cost > ?", "parameter has no value", "", "write the value"),
    ("SELECT COUNT(DISTINCT *) FROM visits", "star stands for no value", "*", "name the column"),
    ("SELECT COUNT(*) FROM visits WHERE EXISTS (drug)", "A subquery is asked for", "", "EXISTS (SELECT 1"),
    ("SELECT AVG(n) FROM (SELECT patient, COUNT(DISTINCT) AS n FROM visits GROUP BY patient)", "", "", ""),
    ("SELECT SUM(GREATEST(INTERVAL 3 DAY)) FROM visits", "An interval is no value by itself", "", "add it to a date"),
    ("SELECT COUNT(*) FROM visits WHERE ROUND() > 1", "something is missing", "", "mend the query"),
    ("SELECT SUM(TIME()) FROM visits", "cannot be read", "", "docs/sql.md"),
    ("SELECT COUNT(*) FROM visits WHERE VAR_MAP(ALL cost) > 1", "cannot be read", "", "docs/sql.md"),
    ("SELECT COUNT(*) FROM visits WHERE STR_TO_DATE(x -> x) > day", "This is not SQL", "", "docs/sql.md"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (drug) cost FROM visits)", "DISTINCT ON keeps the first row", "drug",
     "QUALIFY ROW_NUMBER"),
    ("SELECT AVG(x) FROM (SELECT MAX(cost) OVER () AS x FROM (SELECT patient AS who, cost FROM visits))",
     "rows of one unit", "cost", "MAX(cost) OVER (PARTITION BY who)"),
    ("SELECT COUNT(*) FROM (SELECT patient FROM visits) JOIN (SELECT patient AS who FROM patients) ON true",
     "within one unit", "", "add patient = who to the ON"),
    ("SELECT SUM(STRPOS(drug, 'a')) FROM visits", "The values of STRPOS(drug, 'a')", "STRPOS", "STRPOS(drug, 'a'), 0)"),
    ("SELECT COUNT(*) FROM visits WHERE NO_SUCH(cost) > 1", "NO_SUCH is not one of those", "NO_SUCH", "LPAD, LTRIM"),
    ("SELECT COUNT(*) FROM visits WHERE day < TIMESTAMPTZ '2026-02-01 10:00:00'", "does not say of which zone",
     "'2026-02-01", "'2026-02-01 10:00:00+00'"),
    ("SELECT COUNT(*) FROM visits WHERE PREFIX(drug)", "A text is searched for another", "", "CONTAINS(s, 'x')"),
    ("SELECT x.ward FROM (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) x WHERE x.m > 3",
     'does not have a column named "m"', "", "SELECT that reads what was released"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "place", "fix"), REFUSED, ids=[row[0] or "empty" for row in REFUSED])
def test_a_refusal_speaks_of_this_query(text: str, rule: str, place: str, fix: str) -> None:
    with pytest.raises(QueryError) as caught:
        sql(text, SCHEMA, unit=Unit("user:patient"), epsilon=1, delta=1e-6)
    refusal = caught.value
    assert rule in refusal.rule and fix in refusal.rewrite and "Binder" not in str(refusal)
    if place:
        line, marks = str(refusal).splitlines()[1:3]
        assert line[marks.index("^") : marks.rindex("^") + 1].startswith(place)


def test_a_divisor_keeps_its_brackets() -> None:
    """The share of a group in the total, with the total as a subquery."""
    text = "SELECT ward, COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits GROUP BY ward"
    plan = sql(text, SCHEMA, unit=Unit("user:patient"), epsilon=1, limits={"rows": 10})
    assert isinstance(plan, SqlReport) and len(plan.sqls) == 2
    data = {"patient": [1, 2, 3, 4], "ward": ["east", "east", "east", "west"], "drug": ["a"] * 4, "cost": [1.0] * 4}
    more = {"stay": [1] * 4, "day": ["2026-01-01"] * 4, "ok": [True] * 4}
    tables = {
        "visits": pa.table({**data, **more}),
        "patients": pa.table({"patient": [1], "born": [1950]}),
        "wards": pa.table({"ward": ["east"], "beds": [1], "floor": ["a"]}),
    }
    raws = {name: raw_of(part, tables) for name, part in plan.sqls.items()}
    answer = plan.finish({"releases": raws})
    assert answer["share"] == [0.75, 0.25]


def test_brackets_around_joins_are_read_below_a_release() -> None:
    """As the software of forms writes them."""
    inner = (
        "SELECT v.ward, COUNT(*) n FROM ((visits v LEFT JOIN patients p ON v.patient = p.patient) "
        "JOIN wards w ON w.ward = v.ward) GROUP BY v.ward"
    )
    plan = sql(f"SELECT ward, n / SUM(n) OVER () FROM ({inner})", SCHEMA, unit=Unit("user:patient"), epsilon=1)
    assert isinstance(plan, SqlReport)
    joined = sql(
        "SELECT COUNT(*) FROM ((visits v JOIN (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) t "
        "ON t.ward = v.ward) JOIN wards w ON w.ward = v.ward)",
        SCHEMA,
        unit=Unit("user:patient"),
        epsilon=1,
    )
    assert isinstance(joined, SqlStages)
