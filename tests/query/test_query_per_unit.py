"""What one unit's rows come to: exact, the same in any order, never raising, and only per unit."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.query.refusal import QueryError
from sfumato.schema import Schema, Table, key, real, whole
from tests.query.units_kit import USER, as_sql_says, check, meant, nasty_database, run

SOUND = [
    "SELECT user, COUNT(*) AS c, COUNT(n) AS k, COUNT(DISTINCT tag) AS d, COUNT(DISTINCT y) AS e"
    " FROM visits GROUP BY user",
    "SELECT user, SUM(n) AS s, AVG(n) AS a, SUM(y) AS t, AVG(y) AS b FROM visits GROUP BY user",
    "SELECT user, MIN(x) AS a, MAX(y) AS b, MIN(place) AS c, MAX(n) AS d, MAX(ok) AS e FROM visits GROUP BY user",
    "SELECT user, VAR_POP(n) AS a, STDDEV(n) AS b, VARIANCE(n) AS c, STDDEV_POP(n) AS d FROM visits GROUP BY user",
    "SELECT user, QUANTILE_DISC(y, 0.25) AS a, QUANTILE_DISC(place, 0.9) AS b FROM visits GROUP BY user",
    "SELECT user, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY n) AS a FROM visits GROUP BY user",
    "SELECT user, BOOL_AND(ok) AS a, BOOL_OR(ok) AS b, COUNT_IF(COALESCE(n, 0) > 1) AS c FROM visits GROUP BY user",
    "SELECT user, COUNT(*) FILTER (WHERE ok) AS a, SUM(n) FILTER (WHERE n > 1) AS b FROM visits GROUP BY user",
    "SELECT user, place, SUM(n) AS s FROM visits GROUP BY user, place",
    "SELECT user AS u, n + 1 AS m, COUNT(*) AS c FROM visits GROUP BY 1, 2 HAVING COUNT(*) > 1 AND m < 4",
    "SELECT user AS u, n % 2 AS m, COUNT(*) AS c FROM visits GROUP BY u, m HAVING c > 1",
    "SELECT user, place, COUNT(*) + 1 AS c FROM visits GROUP BY ALL",
    "SELECT v.user, COUNT(*) AS c FROM visits AS v GROUP BY user, v.place",
    "SELECT user, SUM(n) / COUNT(*) AS r, CASE WHEN MAX(n) > 2 THEN 'big' ELSE 'small' END AS s"
    " FROM visits GROUP BY user",
    "SELECT user, SUM(n) AS s FROM visits GROUP BY user HAVING user <> '5' AND MAX(n) IN (SELECT size FROM places)"
    " OR COUNT(*) > 2",
    "SELECT user, AVG(c) AS a FROM (SELECT user, place, COUNT(*) AS c FROM visits GROUP BY user, place) AS t"
    " GROUP BY user",
    "SELECT user, region, SUM(n) AS s FROM visits JOIN places USING (place) GROUP BY user, region",
    "SELECT user, s, RANK() OVER (PARTITION BY user ORDER BY s DESC) AS r FROM"
    " (SELECT user, place, SUM(n) AS s FROM visits GROUP BY user, place) AS t",
    "SELECT user, place, RANK() OVER (PARTITION BY user ORDER BY SUM(n) DESC) AS r FROM visits GROUP BY user, place"
    " QUALIFY r <= 2",
]


@pytest.mark.parametrize("sql", SOUND)
def test_sub_aggregates_are_per_unit_and_as_in_sql(sql: str) -> None:
    check(sql)
    as_sql_says(sql)


def test_sums_of_floats_do_not_depend_on_order() -> None:
    rows = check("SELECT user, SUM(x) AS s, AVG(x) AS a, SUM(x + 0) AS t FROM visits GROUP BY user")
    first = next(row for row in rows if row["user"] == 1)
    assert (first["s"], first["a"], first["t"]) == (3.0, 0.6, 3.0)  # 1e16 + 1 - 1e16 + 1 + 1
    rows = check(
        "SELECT user, SUM(y) AS s, VARIANCE(y) AS v, STDDEV_POP(x) AS d, MEDIAN(y) AS m FROM visits GROUP BY user"
    )
    second = next(row for row in rows if row["user"] == 2)
    assert second["s"] == pytest.approx(0.3) and second["v"] == pytest.approx(0.005, rel=1e-5)


def test_zeros_have_one_sign() -> None:
    rows = check("SELECT user, y, COUNT(*) AS c FROM visits GROUP BY user, y")
    assert "-0.0" not in {str(row["y"]) for row in rows}
    rows = check(
        "SELECT user, MIN(ABS(y)) AS a, MAX(-ABS(y)) AS b, QUANTILE_DISC(y, 0.5) AS c FROM visits GROUP BY user"
    )
    assert "-0.0" not in {str(value) for row in rows for value in row.values()}


def test_two_threads_and_many_row_groups_give_the_same_digits() -> None:
    schema = Schema({"t": Table({"user": key(), "x": real(-1e17, 1e17)}, unit="user")})
    made = meant(
        "SELECT user, SUM(x) AS s, AVG(x) AS a, VARIANCE(x) AS v, SUM(x * 9) AS w FROM t GROUP BY user",
        USER,
        schema,
    )
    found = []
    for threads, order in ((1, "i"), (2, "hash(i)"), (2, "-i")):
        con = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
        con.execute(
            "CREATE TABLE t AS SELECT i % 3 AS user, CASE i % 4 WHEN 0 THEN 1e16 WHEN 1 THEN -1e16 ELSE i * 0.1 END "
            f"AS x FROM range(300000) AS r(i) ORDER BY {order}"
        )
        found.append(sorted(str(row) for row in run(made, con)))
    assert found[0] == found[1] == found[2]


ENDS = [(-1.0, 1.0), (0.0, 1e-100), (5.0, 5.0 + 1e-9), (-1e17, 1e17), (1e12, 1e12 + 100), (-1e100, 1e100), (0.0, 1e9)]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.none()), min_size=1, max_size=6),
    st.sampled_from(ENDS),
)
def test_totals_never_raise_and_stay_in_bounds(values: list[float | None], ends: tuple[float, float]) -> None:
    low, high = ends
    schema = Schema({"t": Table({"user": key(), "x": real(low, high)}, unit="user")})
    made = meant(
        "SELECT user, SUM(x) AS s, AVG(x) AS a, VARIANCE(x) AS v, STDDEV_POP(x) AS d, MIN(x) AS m, "
        "AVG(CAST(CAST(x AS VARCHAR) AS DOUBLE)) AS u FROM t GROUP BY user",
        USER,
        schema,
    )
    held = [None if each is None else min(max(each, low), high) for each in values]
    shared.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS user, UNNEST($1::DOUBLE[]) AS x", [held])
    (row,) = run(made, shared)
    known = [each for each in held if each is not None]
    if not known:
        assert all(row[name] is None for name in "savdmu")
        return
    span = max(abs(low), abs(high))
    if span < 2.0**900:
        exact = sum(map(Fraction, known))
        assert abs(Fraction(row["s"]) - exact) <= Fraction(span) * len(known) / 2**50
        assert low <= row["a"] <= high
    assert math.isfinite(row["s"]) and math.isfinite(row["u"]) and row["m"] == min(known)
    assert row["v"] is None or 0 <= row["v"] < math.inf
    if 1e-100 < high - low < 1e100:
        mean = math.fsum(known) / len(known)
        spread = math.sqrt(math.fsum((each - mean) ** 2 for each in known) / len(known))
        assert row["d"] == pytest.approx(spread, abs=(high - low) * 2**-29 + span * 2**-49)


shared = duckdb.connect()


def test_whole_sums_are_held_in_64_bits_and_never_raise() -> None:
    schema = Schema({"t": Table({"user": key(), "n": whole(-(2**63), 2**63 - 1)}, unit="user")})
    asked = "SELECT user, SUM(n) AS s, AVG(n) AS a, VARIANCE(n) AS v, SUM(n) + 1 AS p FROM t GROUP BY user"
    made, con, top = meant(asked, USER, schema), duckdb.connect(), 2**63 - 1
    con.execute("CREATE TABLE t (user BIGINT, n BIGINT)")
    con.executemany("INSERT INTO t VALUES (?, ?)", [(1, top), (1, top), (2, -top - 1), (2, -top - 1), (3, 5), (3, top)])
    found = {row["user"]: row for row in run(made, con)}
    assert (found[1]["s"], found[2]["s"]) == (2**63 - 1, -(2**63))
    assert found[3]["a"] == pytest.approx(2.0**62) and found[3]["v"] == pytest.approx(2.0**125, rel=1e-6)


def test_kinds_of_aggregates() -> None:
    made = meant(
        "SELECT user, COUNT(*) AS c, SUM(n) AS s, AVG(y) AS a, MAX(place) AS p, SUM(amount) AS t, BOOL_OR(ok) AS b "
        "FROM visits JOIN orders ON user = customer GROUP BY user"
    )
    kinds = made.columns
    assert made.single and kinds["user"].unit
    assert (kinds["c"].type, kinds["c"].lower, kinds["c"].upper, kinds["c"].nullable) == ("whole", 0, None, False)
    assert (kinds["s"].type, kinds["s"].lower, kinds["s"].upper) == ("whole", 0, None)
    assert (kinds["a"].type, kinds["a"].lower, kinds["a"].upper) == ("real", -100, 100)
    assert kinds["p"].values == ("a", "b", "c", "d") and kinds["b"].values == (False, True)
    assert (kinds["t"].type, kinds["t"].lower) == ("real", 0)
    assert not meant("SELECT user, place FROM visits GROUP BY user, place").single


REFUSED = [
    ("SELECT place, COUNT(*) AS c FROM visits GROUP BY place", "only per unit", "add visits.user to GROUP BY"),
    ("SELECT COUNT(*) AS c FROM visits", "only per unit", "add visits.user to GROUP BY"),
    ("SELECT n AS one FROM visits HAVING COUNT(*) > 1", "only per unit", "visits.user"),
    ("SELECT COUNT(*) AS c FROM visits GROUP BY LOWER(CAST(user AS VARCHAR))", "only per unit", "visits.user"),
    ("SELECT c FROM (SELECT place, n FROM visits) AS t(p, c) GROUP BY p", "only per unit", "column of the unit"),
    ("SELECT user, n FROM visits GROUP BY user", "neither grouped by nor inside", "MAX(n)"),
    ("SELECT user, * FROM visits GROUP BY user", "* cannot stand beside aggregates", "name the columns"),
    ("SELECT user, ANY_VALUE(n) AS a FROM visits GROUP BY user", "order in which the engine meets rows", "MIN, MAX"),
    ("SELECT user, FIRST(n) AS a FROM visits GROUP BY user", "order in which the engine meets rows", "MIN, MAX"),
    ("SELECT user, LIST(n) AS a FROM visits GROUP BY user", "order in which the engine meets rows", "MIN, MAX"),
    ("SELECT user, STRING_AGG(place, ',') AS a FROM visits GROUP BY user", "order in which", "MIN, MAX"),
    ("SELECT user, ARG_MAX(n, x) AS a FROM visits GROUP BY user", "order in which", "ROW_NUMBER()"),
    ("SELECT user, MEDIAN(DISTINCT n) AS a FROM visits GROUP BY user", "", ""),
    ("SELECT user, SUM(DISTINCT place) AS a FROM visits GROUP BY user", "SUM needs numbers", "CAST"),
    ("SELECT user, QUANTILE_CONT(n, 0.5) AS a FROM visits GROUP BY user", "between two values", "QUANTILE_DISC"),
    ("SELECT user, QUANTILE_DISC(n, 2) AS a FROM visits GROUP BY user", "from 0 to 1", "0.9"),
    ("SELECT user, QUANTILE_DISC(n, y) AS a FROM visits GROUP BY user", "from 0 to 1", "0.9"),
    ("SELECT user, CORR(n, y) AS a FROM visits GROUP BY user", "not among the aggregates", "use one of: COUNT"),
    ("SELECT user, APPROX_COUNT_DISTINCT(n) AS a FROM visits GROUP BY user", "not among the aggregates", "COUNT"),
    ("SELECT user, SUM(place) AS a FROM visits GROUP BY user", "SUM needs numbers", "CAST"),
    ("SELECT user, MAX(tag) AS a FROM visits GROUP BY user", "values with an order", "CAST(x AS VARCHAR)"),
    ("SELECT user, BOOL_OR(n) AS a FROM visits GROUP BY user", "", ""),
    ("SELECT user, VARIANCE(CAST(tag AS DOUBLE)) AS a FROM visits GROUP BY user", "without known bounds", "LEAST"),
    ("SELECT user, COUNT(n, y) AS a FROM visits GROUP BY user", "COUNT takes one column", "COUNT(DISTINCT (a, b))"),
    ("SELECT user, SUM(MAX(n)) AS a FROM visits GROUP BY user", "An aggregate cannot stand here", "subquery"),
    ("SELECT user, COUNT(*) AS a FROM visits GROUP BY ROLLUP (user)", "ROLLUP, CUBE", "a query each"),
    ("SELECT user, COUNT(*) AS a FROM visits GROUP BY user, COUNT(*)", "cannot group by an aggregate", "columns"),
    ("SELECT user, COUNT(*) AS a FROM visits GROUP BY 3", "no column 3", "name the column"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rule", "rewrite"), REFUSED)
def test_aggregates_that_are_not_per_unit_or_not_of_a_set_are_refused(sql: str, rule: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        meant(sql)
    assert rule in refused.value.rule
    assert rewrite in refused.value.rewrite
    assert str(refused.value.within(sql))


def test_a_refusal_underlines_the_clause() -> None:
    sql = "SELECT user, n FROM visits GROUP BY user"
    with pytest.raises(QueryError) as refused:
        meant(sql)
    assert f"1 | {sql}\n                 ^\n" in str(refused.value.within(sql))


def test_public_aggregates_need_no_unit() -> None:
    made = meant("SELECT region, SUM(size) AS s FROM places GROUP BY region")
    assert not made.private and len(run(made, nasty_database())) == 3
