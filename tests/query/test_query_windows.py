"""Window functions look at one unit's rows, and give the same whatever the order of rows."""

from __future__ import annotations

import pytest

from sfumato.query.refusal import QueryError
from tests.query.units_kit import as_sql_says, check, meant, nasty_database, run

OWN = "PARTITION BY user ORDER BY"
# Where ORDER BY leaves no ties that matter, SQL has one answer.
AS_SQL = [
    f"SELECT user, n, RANK() OVER ({OWN} n) AS a, DENSE_RANK() OVER ({OWN} n DESC NULLS FIRST) AS b FROM visits",
    "SELECT user, COUNT(*) OVER (PARTITION BY user) AS a, SUM(n) OVER (PARTITION BY user, place) AS b FROM visits",
    f"SELECT user, n, SUM(n) OVER ({OWN} n) AS a, MAX(n) OVER ({OWN} n DESC) AS b FROM visits",
    f"SELECT user, ROW_NUMBER() OVER ({OWN} n) AS r FROM visits",
    f"SELECT user, n, LAG(n) OVER ({OWN} n) AS a, LEAD(n, 2, 7) OVER ({OWN} n) AS b FROM visits",
    f"SELECT user, n, FIRST_VALUE(n) OVER ({OWN} n) AS a, NTILE(3) OVER ({OWN} n) AS b FROM visits",
    f"SELECT user, n, LAST_VALUE(n) OVER ({OWN} n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS a,"
    f" NTH_VALUE(n, 2) OVER ({OWN} n ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS b FROM visits",
    f"SELECT user, n, AVG(n) OVER ({OWN} n ROWS 2 PRECEDING) AS a, COUNT(n) OVER ({OWN} n ROWS BETWEEN CURRENT ROW AND"
    " 1 FOLLOWING) AS b FROM visits",
    f"SELECT user, n, SUM(n) OVER w AS a, RANK() OVER w AS r FROM visits WINDOW w AS ({OWN} n) QUALIFY r > 2",
    f"SELECT user, SUM(n) OVER ({OWN} n RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS a FROM visits",
    "SELECT user, place, n FROM visits QUALIFY n = MAX(n) OVER (PARTITION BY user, place)",
    "SELECT v.user, size, RANK() OVER (PARTITION BY v.user ORDER BY size) AS r FROM visits AS v"
    " JOIN places USING (place)",
    "SELECT place, user, r FROM visits JOIN (SELECT place, RANK() OVER (ORDER BY size) AS r FROM places) AS p"
    " USING (place)",
]


@pytest.mark.parametrize("sql", AS_SQL)
def test_windows_are_per_unit_and_as_in_sql(sql: str) -> None:
    check(sql)
    as_sql_says(sql)


# Here rows tie, and SQL leaves the answer open; ours is the same for every order of the rows.
TIED = [
    f"SELECT user, x, y, tag, ROW_NUMBER() OVER ({OWN} n) AS r FROM visits",
    f"SELECT user, x, y FROM visits QUALIFY ROW_NUMBER() OVER ({OWN} ok) = 1",
    f"SELECT user, ROW_NUMBER() OVER ({OWN} n) AS a, ROW_NUMBER() OVER ({OWN} n DESC) AS b FROM visits",
    f"SELECT user, tag, LAG(y) OVER ({OWN} n DESC NULLS FIRST) AS a, LEAD(x) OVER ({OWN} ok) AS b FROM visits",
    f"SELECT user, x, FIRST_VALUE(tag) OVER ({OWN} ok) AS a, NTILE(5) OVER ({OWN} place DESC) AS b FROM visits",
    f"SELECT user, y, SUM(x) OVER ({OWN} n ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS a FROM visits",
    f"SELECT user, AVG(x) OVER ({OWN} n ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) + ROW_NUMBER() OVER ({OWN} y) AS a"
    " FROM visits",
    f"SELECT user, SUM(x) OVER ({OWN} y) AS a, AVG(y) OVER (PARTITION BY user, place) AS b FROM visits",
    "SELECT user, MIN(y) OVER (PARTITION BY user) AS a, MAX(-ABS(y)) OVER (PARTITION BY user) AS b FROM visits",
    "SELECT user, place, ROW_NUMBER() OVER (PARTITION BY user ORDER BY COUNT(*)) AS r FROM visits GROUP BY user, place",
    "SELECT user, region, ROW_NUMBER() OVER (PARTITION BY user ORDER BY size) AS r, n FROM visits"
    " JOIN places USING (place)",
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY user) AS r FROM visits",
    f"SELECT a.user, b.r FROM (SELECT user, ROW_NUMBER() OVER ({OWN} ok) AS r, y FROM visits) AS a JOIN"
    f" (SELECT user, ROW_NUMBER() OVER ({OWN} ok) AS r, y FROM visits) AS b"
    " ON a.user = b.user AND a.r = b.r AND a.y = b.y",
]


@pytest.mark.parametrize("sql", TIED)
def test_ties_are_broken_by_values_alone(sql: str) -> None:
    check(sql)


def test_kinds_of_windows() -> None:
    made = meant(
        f"SELECT user, NTILE(3) OVER ({OWN} n) AS a, LAG(user) OVER ({OWN} n) AS b, ROW_NUMBER() OVER ({OWN} n) AS c, "
        f"LAG(n, 1, -5) OVER ({OWN} n) AS d FROM visits"
    )
    assert made.columns["a"].values == (1, 2, 3) and not made.columns["a"].nullable
    assert not made.columns["b"].unit and made.columns["c"].lower == 1
    assert (made.columns["d"].lower, made.columns["d"].upper) == (-5, 1000)


REFUSED = [
    ("ROW_NUMBER() OVER (ORDER BY n)", "rows of one unit", "add visits.user to PARTITION BY: "),
    ("SUM(n) OVER ()", "rows of one unit", "add visits.user to PARTITION BY: "),
    ("SUM(n) OVER (PARTITION BY place)", "rows of one unit", "add visits.user to PARTITION BY: "),
    (
        "SUM(n) OVER (PARTITION BY LOWER(CAST(user AS VARCHAR)))",
        "rows of one unit",
        "add visits.user to PARTITION BY: ",
    ),
    (f"SUM(n) OVER ({OWN} n, y RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "one ORDER BY column", "order by one"),
    (f"SUM(n) OVER ({OWN} place RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "in numbers or dates", "use ROWS"),
    (f"SUM(n) OVER ({OWN} n RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW)", "whole for whole numbers", "write 10"),
    (f"SUM(n) OVER ({OWN} n RANGE BETWEEN n PRECEDING AND CURRENT ROW)", "a number in the query", "10 PRECEDING"),
    (f"FIRST_VALUE(n) OVER ({OWN} n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "leaves equal", "use ROWS"),
    (f"SUM(n) OVER ({OWN} n GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)", "GROUPS or EXCLUDE", "use ROWS"),
    (f"SUM(n) OVER ({OWN} n ROWS BETWEEN n PRECEDING AND CURRENT ROW)", "whole number from 0", "such as 1"),
    (f"LAST_VALUE(n) OVER ({OWN} n)", "without a frame", "ROWS BETWEEN UNBOUNDED"),
    (f"LAG(n IGNORE NULLS) OVER ({OWN} n)", "IGNORE NULLS", "subquery"),
    (f"LAG(n, n) OVER ({OWN} n)", "whole number from 0", "such as 1"),
    (f"LAG(n, 1, 'a') OVER ({OWN} n)", "text and whole", "cast"),
    (f"NTILE(0) OVER ({OWN} n)", "whole number from 1", "such as 1"),
    (f"PERCENT_RANK() OVER ({OWN} n)", "not among the window functions", "use one of: ROW_NUMBER"),
    ("MEDIAN(n) OVER (PARTITION BY user)", "not among the window functions", "use one of: ROW_NUMBER"),
    ("COUNT(DISTINCT n) OVER (PARTITION BY user)", "DISTINCT is not possible", "subquery"),
    ("SUM(n) FILTER (WHERE ok) OVER (PARTITION BY user)", "FILTER cannot stand", "CASE"),
    ("SUM(place) OVER (PARTITION BY user)", "SUM needs numbers", "cast"),
    ("SUM(n) OVER w", "no window 'w'", "write it out"),
    ("SUM(ROW_NUMBER() OVER (PARTITION BY user)) OVER (PARTITION BY user)", "window function cannot stand", "subquery"),
]


@pytest.mark.parametrize(("window", "rule", "rewrite"), REFUSED)
def test_windows_over_other_units_or_in_no_order_are_refused(window: str, rule: str, rewrite: str) -> None:
    sql = f"SELECT user, {window} AS w FROM visits"
    with pytest.raises(QueryError) as refused:
        meant(sql)
    assert rule in refused.value.rule
    assert rewrite in refused.value.rewrite


def test_a_window_in_where_is_refused() -> None:
    with pytest.raises(QueryError, match="window function cannot stand here"):
        meant("SELECT user FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY user) = 1")


def test_public_windows_need_no_unit() -> None:
    made = meant("SELECT place, ROW_NUMBER() OVER (ORDER BY size) AS r FROM places")
    assert not made.private and len(run(made, nasty_database())) == 5
