"""Random queries on random tables with heavy units: taking one away moves what is below the noise by no more than the
noise was made for. The same check finds planted faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato import sources
from sfumato.accounting import gdp
from sfumato.query import Limits, SqlReport, SqlStages, sql
from sfumato.query.bounding import ROOM
from sfumato.schema import Schema, Table, category, key, real
from sfumato.units import Unit
from tests.query.fuzzing import mutants
from tests.query.fuzzing.claims import Found, check
from tests.query.fuzzing.trial import Report, trial
from tests.query.fuzzing.watching import Broken, watch
from tests.query.fuzzing.worlds import World

RARE = {
    "CTE twice", "private FULL JOIN", "private LEFT JOIN", "group by chosen", "quantiles of dates", "own nested EXISTS",
    "own NOT EXISTS", "own values", "own units", "own lone value",
}  # fmt: skip
"""Too few queries use these for a hundred to be sure to."""
FEATURES = {
    "plain", "subquery", "cte", "with_public", "join", "self_join", "three", "semi", "union", "twice", "union_of_rows",
    "distinct", "per_unit", "per_unit_joined", "window", "QUALIFY", "WHERE", "IN public", "EXISTS", "lone value",
    "CASE", "division", "dates", "texts", "FILTER", "HAVING", "ORDER BY", "bounds", "limits", "adviser", "gaussian",
    "laplace", "group by category", "group by key", "group by given", "group by public",
    "group by expression", "group by date",
    "public JOIN", "public LEFT JOIN", "public CROSS JOIN", "private JOIN", "private RIGHT JOIN",
    "COUNT(*)", "COUNT", "units", "SUM", "AVG", "VARIANCE", "STDDEV", "MIN", "MAX", "MEDIAN", "QUANTILE",
    "QUANTILES", "WITHIN", "HISTOGRAM", "COVAR", "CORR", "COUNT_IF", "RATIO", "BOOL",
    "own EXISTS", "own count", "group by image", "add-remove", "replace", "group of 1", "group of 2", "row",
    "user:patient", "flags as numbers", "DECIMAL", "younger words",
}  # fmt: skip


@pytest.mark.slow
def test_forty_queries_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial(range(40), tmp_path)
    assert len(report.refused) <= 8 and report.checked >= 32


@pytest.mark.slow
def test_releases_below_sql_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial(range(36), tmp_path, shape="above")
    assert report.checked >= 20, report.refused
    assert {"above 0", "above 1", "above 2"} <= set(report.features)


@pytest.mark.slow
def test_stages_keep_what_they_promise_whatever_earlier_ones_released(tmp_path: Path) -> None:
    report = trial(range(40), tmp_path, shape="stages")
    assert report.checked >= 20, report.refused
    assert {"staged whole", "staged value", "staged rows"} <= set(report.features)
    assert report.used["total"] > 0.9


def test_stages_of_heavy_units_keep_what_they_promise(heavy: World) -> None:
    text = (
        "SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits WHERE x >= (SELECT AVG(x) FROM visits) AND user IN "
        "(SELECT user FROM orders) GROUP BY ward"
    )
    plan = sql(text, HEAVY, unit=heavy.unit, epsilon=1, delta=1e-6, limits=Limits(rows=3, keys=2))
    assert isinstance(plan, SqlStages)
    first, second = plan.sqls.values()
    assert check(watch(first, heavy)).used["total"] > 0
    (table,) = second.released.values()
    for least in (-1.0, 0.5, None):
        for session in heavy.sessions.values():
            session.hand_over(table, pa.table({"number_1": pa.array([least], type=pa.float64())}))
        found = check(watch(second, heavy))
        assert least is None or found.used["total"] > 0


def test_releases_of_heavy_units_below_sql_keep_what_they_promise(heavy: World) -> None:
    text = (
        "WITH a AS (SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ward), "
        "b AS (SELECT item, COUNT(DISTINCT user) AS u FROM orders GROUP BY item) "
        "SELECT a.ward, n / SUM(n) OVER () AS part, (SELECT MAX(u) FROM b) AS most FROM a"
    )
    plan = sql(text, HEAVY, unit=heavy.unit, epsilon=1, delta=1e-6, limits=Limits(rows=3, keys=2))
    assert isinstance(plan, SqlReport)
    for part in plan.sqls.values():
        assert check(watch(part, heavy)).used["total"] > 0
    assert (
        sum(1 / part.blur.amount**2 for part in plan.sqls.values())
        <= 1 / gdp.least_multiplier(Fraction(1), Fraction(1, 2 * 10**6)) ** 2
    )


@pytest.mark.slow
def test_a_hundred_queries_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial(range(100), tmp_path)
    _enough(report, 100)
    assert FEATURES - set(report.features) == set()
    assert report.used["new"] > 0  # groups of one neighbour alone do occur


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 11))
def test_a_thousand_queries_keep_what_they_promise(tmp_path: Path, hundred: int) -> None:
    _enough(trial(range(100 * hundred, 100 * hundred + 100), tmp_path), 100)


def _enough(report: Report, count: int) -> None:
    assert len(report.refused) <= count // 5, report.refused
    assert report.checked >= 4 * count // 5
    # Some unit uses all that it may, or the check could not tell a limit from a larger one.
    for name in ("total", "sums", "votes", "tree", "advice"):
        assert 0.99 < report.used[name] <= 1, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "seeds", "fault"),
    [
        (mutants.rounded_up, range(7, 10), "times what is allowed"),
        (mutants.by_table, range(5, 10), "times what is allowed"),
        (mutants.units_mixed_in_joins, range(23, 25), "depend on another"),
        (mutants.units_mixed_in_subqueries, [4, 34], "depend on another"),
        (mutants.nan_is_a_number, [91, 94, 98], "value nan"),
        (mutants.heavy_counts_in_full, range(70, 71), "times what is allowed"),
        (mutants.too_many_values, [55, 70], "distinct: .* times what is allowed"),
        (mutants.advice_for_free, [4, 5], "total: .* times what is allowed"),
        (mutants.everybody_votes, [42, 60], "new: .* times what is allowed"),
    ],
)
def test_planted_faults_are_found_among_the_hundred(
    mutant: mutants.Mutant, seeds: Sequence[int], fault: str, tmp_path: Path
) -> None:
    with mutant(), pytest.raises(Broken, match=fault):
        trial(seeds, tmp_path)


@contextmanager
def _world(schema: Schema, unit: Unit, tables: Mapping[str, Mapping[str, pa.Table]]) -> Iterator[World]:
    """A world of given tables, by name of the neighbour and of the table."""
    with ExitStack() as stack:
        sessions = {}
        for which, held in tables.items():
            given = {name: (schema.table(name), sources.source(table)) for name, table in held.items()}
            sessions[which] = sources.connect(given, threads=2 if which == "mixed" else 1)
            stack.callback(sessions[which].close)
        yield World(schema, unit, sessions)


HEAVY = Schema(
    {
        "visits": Table({"user": key(), "ward": category(["a", "b"]), "x": real(0, 10)}, unit="user"),
        "orders": Table({"user": key(), "item": key(), "y": real(-1, 1)}, unit="user"),
        "notes": Table({"user": key(), "z": real(0, 1)}, unit="user"),
    }
)


def _heavy_tables(without: str = "", alone: str = "", turned: bool = False) -> dict[str, pa.Table]:
    """User 0 has 10,000 visits and many rows elsewhere; ten others have a few."""
    users = [0] * 10_000 + [1 + i % 10 for i in range(40)]
    rows = {
        "visits": [(u, "ab"[i % 2], i % 13 - 1.0) for i, u in enumerate(users)],
        "orders": [(u, f"item {i % 5}", i % 3 - 1.0) for i, u in enumerate([0] * 12 + list(range(12)))],
        "notes": [(u, 1.0) for u in [0] * 5 + list(range(11))],
    }
    made = {}
    for name, each in rows.items():
        kept = [row for row in each if str(row[0]) != without and (not alone or str(row[0]) == alone)]
        kept = kept[::-1] if turned else kept
        columns = list(HEAVY.tables[name].columns)
        made[name] = pa.table({column: [row[i] for row in kept] for i, column in enumerate(columns)})
    return made


@pytest.fixture(scope="module")
def heavy() -> Iterator[World]:
    tables = {
        "all": _heavy_tables(), "mixed": _heavy_tables(turned=True), "without a": _heavy_tables(without="0"),
        "without b": _heavy_tables(without="3"), "alone": _heavy_tables(alone="0"),
    }  # fmt: skip
    with _world(HEAVY, Unit("user:user"), tables) as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n, SUM(v.x * o.y) AS s FROM visits v JOIN orders o ON v.user = o.user "
        "JOIN notes n ON n.user = o.user",
        "SELECT o.item, COUNT(*) AS n, COUNT(DISTINCT v.user) AS u FROM visits v JOIN orders o ON v.user = o.user "
        "GROUP BY o.item",
        "SELECT a.ward, SUM(a.x) AS s FROM visits a JOIN visits b ON a.user = b.user AND a.x = b.x AND b.x = 4 "
        "GROUP BY a.ward",
        "SELECT ward, AVG(x) AS m, MEDIAN(x) AS h FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits) AS t "
        "GROUP BY ward",
        "WITH t AS (SELECT v.user, v.ward, o.y FROM visits v JOIN orders o ON v.user = o.user) "
        "SELECT COUNT(*) AS n, HISTOGRAM(y, [-1, 0, 1]) AS h, COUNT(DISTINCT ward) AS k FROM t",
        "SELECT COUNT(*) AS n, SUM(c) AS s FROM "
        "(SELECT user, ward, COUNT(*) AS c FROM visits GROUP BY user, ward) AS t",
    ],
)  # fmt: skip
def test_a_user_with_ten_thousand_rows_in_three_tables_counts_for_its_limits(heavy: World, text: str) -> None:
    for options in ({"limits": Limits(rows=3, keys=2)}, {}):
        bounds = {"s": (0, 50)}
        plan = sql(
            text, HEAVY, unit=heavy.unit, epsilon=1, delta=1e-6, bounds=bounds if " AS s" in text else {}, **options
        )
        found = check(watch(plan, heavy))
        assert found.used["total"] > 0


def test_a_norm_from_float_sums_is_found(heavy: World) -> None:
    """Weights are rounded down, which hides small errors of a norm, unless a unit is near its limits."""

    def held() -> Found:
        text = "SELECT SUM(CASE WHEN ward IN ('a', 'b') THEN 0.7 END) AS s FROM visits"
        limits = Limits(rows=5000 / ROOM)  # so that the heaviest is just at its limit
        return check(watch(sql(text, HEAVY, unit=heavy.unit, rho=1, bounds={"s": (0, 1)}, limits=limits), heavy))

    assert 0.999 < held().used["sums"] <= 1
    with mutants.float_norm(), pytest.raises(Broken, match="times what is allowed"):
        held()


def test_cuts_without_a_cap_are_found(heavy: World) -> None:
    plan = sql("SELECT COUNT(*) AS n FROM visits", HEAVY, unit=heavy.unit, epsilon=1, delta=1e-6)
    check(watch(plan, heavy))
    with mutants.no_caps(), pytest.raises(Broken, match="times what"):
        check(watch(plan, heavy))


def test_which_values_a_row_brings_does_not_depend_on_other_rows() -> None:
    """Rows that a join repeats are numbered, and a row that is gone moves the numbers of the others."""
    with _numbered() as opened:
        assert _distinct(opened).used["distinct"] <= 1
        with mutants.numbers_of_rows_decide(), pytest.raises(Broken):
            _distinct(opened)


def _distinct(opened: World) -> Found:
    text = "SELECT COUNT(DISTINCT w.region) AS k FROM visits AS v JOIN wards AS w ON v.ward = w.ward"
    return check(watch(sql(text, opened.schema, unit=opened.unit, epsilon=1, limits=Limits(values=1)), opened))


def _numbered() -> Any:
    names = [f"w{i}" for i in range(400)]
    schema = Schema(
        {
            "visits": Table({"ward": category(names)}),
            "wards": Table({"ward": category(names), "region": key()}, private=False),
        }
    )
    public = pa.table({"ward": names + names, "region": ["common"] * 400 + [f"only {name}" for name in names]})
    rows = {
        "all": names,
        "mixed": names[::-1],
        "without a": names[1:],
        "without b": names[:7] + names[8:],
        "alone": names[:1],
    }
    tables = {which: {"visits": pa.table({"ward": held}), "wards": public} for which, held in rows.items()}
    return _world(schema, Unit("row"), tables)
