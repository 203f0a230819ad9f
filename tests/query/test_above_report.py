"""Releases with SQL above them: what is released, what it costs, what is shown, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato import record
from sfumato.errors import ArgumentError, PlanError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import Sql, SqlReport, sql
from sfumato.query.above import permitted
from sfumato.query.parsing import parsed
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.units import Unit

WARDS = ["east", "north", "south", "west"]
SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(WARDS), "drug": key(), "day": date("2026-01-01", "2026-06-30"),
             "cost": real(0, 1000)},
            unit="patient",
        ),
        "beds": Table({"ward": category(WARDS), "floor": key(), "beds": whole(0, 100)}, private=False),
    }
)  # fmt: skip
UNIT = Unit("user:patient")
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def plan_of(text: str, **options: Any) -> Any:
    return sql(text, SCHEMA, unit=UNIT, **{"epsilon": 1, "delta": 1e-6, "limits": {"rows": 10}, **options})


def report_of(text: str, **options: Any) -> SqlReport:
    plan = plan_of(text, **options)
    assert isinstance(plan, SqlReport)
    return plan


@pytest.fixture(scope="module")
def desk() -> sf.Curator:
    rng = np.random.default_rng(7)
    size = 3000
    visits = {
        "patient": [f"P{i}" for i in rng.integers(0, 600, size)],
        "ward": rng.choice(WARDS[:3], size, p=[0.5, 0.3, 0.2]),
        "drug": [f"D{int(x):02}" for x in rng.exponential(2, size)],
        "day": (np.datetime64("2026-01-01") + rng.integers(0, 181, size)).astype(str),
        "cost": rng.gamma(2, 60, size),
    }
    beds = {"ward": WARDS, "floor": ["ground", "ground", "first", "first"], "beds": [20, 30, 15, 8]}
    clinic = sf.Private("clinic", {"visits": visits, "beds": beds}, unit=UNIT, schema=SCHEMA)
    ledger = sf.MemoryLedger({"clinic": sf.Budget(epsilon=10, delta=1e-3)})
    return sf.Curator(clinic, ledger)


def ask(desk: sf.Curator, text: str, **options: Any) -> Any:
    return desk.rehearse(plan_of(text, **options), rows=200).value


def test_what_one_release_answers_is_still_one_release() -> None:
    plan = plan_of(f"{BY_WARD} HAVING COUNT(*) > 3 ORDER BY n LIMIT 2")
    assert type(plan) is Sql
    assert plan.text == "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        (f"SELECT ward, n / SUM(n) OVER () AS share FROM ({BY_WARD})", 1),
        ("SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY ward", 1),
        ("SELECT ward, SUM(cost) / SUM(SUM(cost)) OVER () AS part FROM visits GROUP BY ward", 1),
        ("WITH dear AS (SELECT patient, ward FROM visits WHERE cost > 9) "
         "SELECT ward, RANK() OVER (ORDER BY COUNT(*)) AS r FROM dear GROUP BY ward", 1),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT COUNT(*) / 4 FROM visits)", 2),
        (f"{BY_WARD} UNION ALL SELECT drug, COUNT(*) FROM visits GROUP BY drug", 2),
        (f"SELECT ward FROM ({BY_WARD}) WHERE n > 9 INTERSECT SELECT ward FROM beds", 1),
        (f"SELECT ward FROM beds EXCEPT SELECT ward FROM ({BY_WARD}) WHERE n > 9", 1),
        (f"WITH a AS ({BY_WARD}), b AS (SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward) "
         "SELECT a.ward, s / n AS m, beds FROM a JOIN b USING (ward) JOIN beds USING (ward)", 2),
        (f"SELECT x.ward, x.n, y.n AS m FROM ({BY_WARD}) x JOIN ({BY_WARD}) y ON x.ward = y.ward", 1),
        ("SELECT DISTINCT COUNT(*) > 100 AS large FROM visits GROUP BY ward", 1),
        ("SELECT DISTINCT drug FROM visits", 1),
        ("SELECT drug FROM visits GROUP BY drug", 1),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*)) = 1", 1),
        ("WITH r AS (SELECT drug, SUM(cost) AS s FROM visits GROUP BY drug) "
         "SELECT drug, s FROM r WHERE s = (SELECT MAX(s) FROM r)", 1),
        ("SELECT b.ward FROM beds b WHERE b.beds < (SELECT COUNT(*) / 40 FROM visits v WHERE v.ward = b.ward)", 1),
        ("WITH p AS (SELECT patient, ward, COUNT(*) AS c FROM visits GROUP BY patient, ward), "
         "q AS (SELECT ward, COUNT(*) AS n FROM p WHERE c > 1 GROUP BY ward) SELECT MAX(n) AS most FROM q", 1),
        ("SELECT ward, REPLACE(ward, ward, 'a') AS one, COUNT(*) AS n FROM visits GROUP BY ward", 1),
        ("SELECT b.floor, SUM(t.n) AS n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t "
         "JOIN beds b ON t.ward = b.ward GROUP BY b.floor", 1),
    ],
)  # fmt: skip
def test_shapes_are_taken_and_cost_what_was_asked(desk: sf.Curator, text: str, releases: int) -> None:
    plan = report_of(text)
    assert len(plan.plans) == releases
    assert plan.delta == Fraction(1, 10**6)
    assert 0.999999 < float(plan.price()) <= 1
    answer = desk.rehearse(plan, rows=200).value
    assert answer.columns


@pytest.mark.parametrize("options", [{"epsilon": 1, "delta": 0}, {"epsilon": None, "delta": None, "rho": 0.1}])
def test_other_currencies_are_split_too(options: dict[str, Any]) -> None:
    plan = report_of(f"{BY_WARD} HAVING n > (SELECT COUNT(*) / 4 FROM visits)", **options)
    if options.get("rho"):
        assert 0.0999999 < float(sum(part.rho for part in plan.sqls.values())) <= 0.1
    else:
        assert plan.price() == 1 and [part.epsilon for part in plan.sqls.values()] == [0.5, 0.5]


def test_above_reads_no_private_table() -> None:
    plan = report_of(f"WITH visits AS ({BY_WARD}) SELECT v.ward, b.beds FROM visits v JOIN beds b ON b.ward = v.ward")
    assert plan.above is not None
    tables = {table.name for table in parsed(plan.above).find_all(exp.Table)}
    assert tables == {"_release_1", "visits", "beds"}  # visits is the CTE here
    assert set(plan._empty_releases()) | set(plan._empty_public()) == {"_release_1", "beds"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"SELECT ward FROM visits UNION ALL SELECT ward FROM ({BY_WARD})", "together with a released table"),
        (f"SELECT patient FROM visits UNION SELECT ward FROM ({BY_WARD})", "together with a released table"),
        ("SELECT ward FROM beds WHERE ward IN (SELECT patient FROM visits)", "would show rows"),
        (f"SELECT * FROM ({BY_WARD}) WHERE random() < 0.5", "RANDOM cannot be used above a release"),
        (f"SELECT *, now() AS t FROM ({BY_WARD})", "NOW cannot be used above a release"),
        (f"SELECT *, CURRENT_DATE AS t FROM ({BY_WARD})", "cannot be used above a release"),
        (f"SELECT * FROM ({BY_WARD}), read_csv('a.csv')", "is none of them"),
        (f"SELECT * FROM ({BY_WARD}), range(3)", "is none of them"),
        (f"SELECT * FROM ({BY_WARD}) TABLESAMPLE 10 PERCENT", "cannot stand above"),
        (f"SELECT ward, $1 AS x FROM ({BY_WARD})", "cannot stand above"),
        (f"SELECT wards FROM ({BY_WARD})", "cannot be run"),
        ("SELECT DISTINCT ward FROM visits", "Which groups there are is public"),
        ("SELECT ward, beds FROM beds", "reads public tables only"),
        ("SELECT patient FROM visits", "shows rows"),
        ("SELECT DISTINCT patient FROM visits", "DISTINCT would list single units"),
        ("SELECT ward, SUM(cost) OVER (ORDER BY day) AS r FROM visits", "window function"),
        ("SELECT b.ward FROM beds b WHERE 9 < (SELECT COUNT(*) FROM visits v WHERE v.cost < b.beds)",
         "only in equalities"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, rule: str) -> None:
    with pytest.raises(PlanError, match=rule) as refusal:
        plan_of(text)
    assert "run it on the tables themselves" not in str(refusal.value)


def test_options_name_columns_of_their_release() -> None:
    text = (
        "WITH per AS (SELECT patient, ward, SUM(cost) AS c FROM visits GROUP BY patient, ward), "
        "a AS (SELECT ward, AVG(c) AS mean FROM per GROUP BY ward), "
        "b AS (SELECT drug, SUM(cost) AS total FROM visits GROUP BY drug) "
        "SELECT * FROM a, b"
    )
    plan = report_of(
        text, bounds={"mean": (0, 500)}, keys={"drug": ["D00"]}, limits={"rows": 5, "reach": {"total": 300}}
    )
    first, second = plan.sqls.values()
    assert list(first.bounds.values()) == [(0, 500)] and not second.bounds
    assert not first.keys and dict(second.keys) == {"drug": ("D00",)}
    assert first.limits is not None and second.limits is not None
    assert not first.limits.reach and list(second.limits.reach.values()) == [300]
    with pytest.raises(ArgumentError, match="bounds names 'nothing'"):
        report_of(text, bounds={"nothing": (0, 1)})
    with pytest.raises(ArgumentError, match="keys names 'nothing'"):
        report_of(text, bounds={"mean": (0, 500)}, keys={"nothing": ["a"]})


def test_other_sql_over_the_same_releases_is_free(desk: sf.Curator) -> None:
    share = desk.release(report_of(f"SELECT ward, n / SUM(n) OVER () AS share FROM ({BY_WARD})", epsilon=0.5))
    left = desk.ledger.left("clinic")
    text = f"WITH t AS ({BY_WARD.replace('n FROM', 'many FROM')}) SELECT MAX(many) - MIN(many) AS gap FROM t"
    gap = desk.release(report_of(text, epsilon=0.5))
    assert desk.ledger.left("clinic") == left and gap.receipt == share.receipt
    assert list(gap.value.columns) == ["gap"]
    assert sum(share.value["share"]) == pytest.approx(1)


def test_a_report_is_read_back_and_shown_as_it_was_asked(desk: sf.Curator) -> None:
    for text in (
        f"SELECT ward, n / SUM(n) OVER () AS share FROM ({BY_WARD})",
        f"SELECT b.floor, SUM(t.n) AS n FROM ({BY_WARD}) t JOIN beds b ON t.ward = b.ward GROUP BY b.floor",
    ):
        plan = report_of(text)
        raw = desk.rehearse(plan, rows=200).raw
        again = record.parse(record.canonical(plan))
        assert isinstance(again, SqlReport) and again == plan and again.hash == plan.hash
        stored = record.parse(record.canonical(raw))
        assert str(again.finish(stored)) == str(plan.finish(raw))


def test_error_bars_are_simulated_and_hold(desk: sf.Curator) -> None:
    """Of sums and shares of released counts, over many draws: what the noise was added to is within the bars."""
    plan = report_of(
        f"SELECT ward, n, n / SUM(n) OVER () AS share FROM ({BY_WARD}) ORDER BY n DESC", limits={"rows": 1}
    )
    counts = {"east": 900.0, "north": 500.0, "south": 300.0, "west": 40.0}
    (part,) = plan.sqls.values()
    assert part.fixed is not None
    law, step = part.fixed.spreads["rows"]
    noise, hits, cells = Noise(SeededBits(5)), 0, 0
    for _ in range(12):
        drawn = noise.draw(law, 4).astype(float) * step
        numbers = [value + extra for value, extra in zip(counts.values(), drawn, strict=True)]
        raw = {"groups": 4, "keys": {"ward": list(counts)}, "numbers": {"rows": numbers}, "distinct": {}, "ranked": {},
               "binned": {}}  # fmt: skip
        answer = plan.finish({"releases": {"release_1": raw}})
        assert answer.exact == {"n": False, "share": False}
        for row in range(4):
            ward = answer["ward"][row]
            for name, truth in (("n", counts[ward]), ("share", counts[ward] / 1740)):
                width = answer.noise_width(name)[row]
                hits += abs(answer[name][row] - truth) <= width
                cells += 1
    assert 0.85 <= hits / cells <= 1


def test_bars_are_open_where_nobody_knows_what_limits_cut(desk: sf.Curator) -> None:
    answer = ask(desk, f"SELECT ward, n / SUM(n) OVER () AS share FROM ({BY_WARD})")
    low, high = answer.interval("share")[0]
    assert low == -np.inf and high == np.inf
    assert any("noise alone" in note for note in answer.notes) and any("simulated" in note for note in answer.notes)
    measured = ask(desk, f"SELECT ward, n / SUM(n) OVER () AS share FROM ({BY_WARD})", limits="advise", epsilon=5)
    assert all(name in measured.numbers for name in ("share",))


def test_a_failure_above_shows_what_was_released(desk: sf.Curator) -> None:
    plan = report_of(f"SELECT ward, REPEAT('x', CAST(n * 1e15 AS BIGINT)) AS t FROM ({BY_WARD})")
    raw = {
        "groups": 1,
        "keys": {"ward": ["east"]},
        "numbers": {"rows": [900.0]},
        "distinct": {},
        "ranked": {},
        "binned": {},
    }
    answer = plan.finish({"releases": {"release_1": raw}})
    assert "n" in answer.columns and "failed" in answer.notes[0]


def test_casts_and_quotients_above_never_fail() -> None:
    tree = permitted.steadied(parsed("SELECT CAST(a AS INT), a / b, a / 2 FROM t"))
    assert tree.sql("duckdb") == "SELECT TRY_CAST(a AS INT), a / NULLIF(b, 0), a / 2 FROM t"


def test_lookups_count_nobody_as_zero(desk: sf.Curator) -> None:
    text = (
        "SELECT b.ward, (SELECT COUNT(*) FROM visits v WHERE v.drug = b.floor) AS n, "
        "(SELECT SUM(cost) FROM visits v WHERE v.drug = b.floor) AS s FROM beds b ORDER BY b.ward"
    )
    answer = desk.rehearse(report_of(text, keys={"drug": ["no such drug"]}), rows=50).value
    assert answer["n"] == [0.0] * 4 and answer["s"] == [None] * 4


def test_the_releases_of_one_run_are_what_their_plans_release() -> None:
    plan = SqlReport.sample()
    assert plan._questions() is not None and plan.asks() == next(iter(plan.sqls.values())).asks()
    assert "SQL above releases" in plan.afterwards()[0]
    assert plan.explain()[-1].startswith("run above")
    assert Run(Noise(SeededBits(1))) is not None
