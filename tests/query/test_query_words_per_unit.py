"""Words below the release: different values and modes per unit, frames by values, rows that the query lists."""

from __future__ import annotations

import pytest

from sfumato.query.refusal import QueryError
from tests.query.units_kit import as_sql_says, check, meant, nasty_database, run

OWN = "PARTITION BY user ORDER BY"
AS_SQL = [
    "SELECT user, SUM(DISTINCT n) AS a, AVG(DISTINCT n) AS b, COUNT(*) AS c FROM visits GROUP BY user",
    "SELECT user, VARIANCE(DISTINCT n) AS a, STDDEV_POP(DISTINCT n) AS b, MAX(DISTINCT n) AS c"
    " FROM visits GROUP BY user",
    "SELECT user, place, SUM(DISTINCT n) FILTER (WHERE ok) AS a"
    " FROM visits GROUP BY user, place HAVING SUM(DISTINCT n) > 2",
    "SELECT user, n FROM visits AS v WHERE n >= (SELECT AVG(DISTINCT w.n) FROM visits AS w WHERE w.user = v.user)",
    "SELECT user, region, SUM(DISTINCT n) AS s FROM visits JOIN places USING (place) GROUP BY user, region",
    "SELECT user, s FROM visits JOIN (SELECT place, SUM(DISTINCT CAST(size AS INT)) AS s"
    " FROM places GROUP BY place) AS t"
    " USING (place)",
    "SELECT user, COUNT(DISTINCT (place, tag)) AS a, COUNT(DISTINCT (n, ok)) FILTER (WHERE n > 1) AS b FROM visits"
    " GROUP BY user",
    "SELECT user, RANK() OVER (PARTITION BY user ORDER BY SUM(DISTINCT n)) AS r FROM visits GROUP BY user, place",
    f"SELECT user, SUM(n) OVER ({OWN} n RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS a FROM visits",
    f"SELECT user, COUNT(*) OVER ({OWN} y DESC RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS a FROM visits",
    f"SELECT user, MAX(n) OVER ({OWN} n, place RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a FROM visits",
    f"SELECT user, COUNT(n) OVER ({OWN} n NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS a"
    " FROM visits",
    "SELECT user, word"
    " FROM visits JOIN (VALUES ('a', 'first'), ('b', NULL)) AS t(place, word) ON visits.place = t.place",
    "SELECT user, word FROM visits, (VALUES (1, 'one'), (2, 'two')) AS t(i, word) WHERE n = i",
    "WITH t(place, half) AS (SELECT 'a', 5e-1 UNION ALL SELECT 'b', 2e0) SELECT user, n * half AS m FROM visits"
    " JOIN t USING (place)",
    "SELECT user, i FROM visits JOIN UNNEST([0, 5, NULL]) AS t(i) ON n = i",
    "SELECT user, i FROM visits JOIN generate_series(0, 6, 2) AS t(i) ON n = i",
    "SELECT user, i FROM visits LEFT JOIN range(3) AS t(i) ON n = i",
    "SELECT user FROM visits WHERE place IN (SELECT UNNEST(['a', 'c'])) AND n IN (SELECT 1 AS one)",
    "SELECT user, LPAD(place, 3, 'xy') AS a, RPAD(place, 4, '-') AS b, REPEAT(place, 3) AS c, LPAD(tag, 1, ' ') AS d,"
    " RPAD(tag, 0, ' ') AS e, REPEAT(tag, 0) AS f FROM visits",
]


@pytest.mark.parametrize("sql", AS_SQL)
def test_younger_words_are_per_unit_and_as_in_sql(sql: str) -> None:
    check(sql)
    as_sql_says(sql)


# Here SQL leaves the answer open, or sums floats in some order.
OPEN = [
    "SELECT user, MODE(place) AS a, MODE(n) FILTER (WHERE ok) AS b, MODE(tag) AS c, MODE(y) AS d"
    " FROM visits GROUP BY user",
    "SELECT user, SUM(DISTINCT CAST(y AS DECIMAL(9, 2))) AS a FROM visits GROUP BY user",
    "SELECT user, SUM(DISTINCT x) AS a, AVG(DISTINCT y) AS b, VARIANCE(DISTINCT y) AS c FROM visits GROUP BY user",
    "SELECT user, place, MODE() WITHIN GROUP (ORDER BY tag) AS a, SUM(DISTINCT y) AS b"
    " FROM visits GROUP BY user, place",
    f"SELECT user, SUM(x) OVER ({OWN} y RANGE BETWEEN 1e-9 PRECEDING AND 1e200 FOLLOWING) AS a FROM visits",
    f"SELECT user, COUNT(*) OVER ({OWN} x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM visits",
    f"SELECT user, COUNT(*) OVER ({OWN} n * 9000000000000000 RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS a"
    " FROM visits",
]


@pytest.mark.parametrize("sql", OPEN)
def test_younger_words_depend_on_no_order(sql: str) -> None:
    check(sql)


def test_a_mode_is_the_least_of_the_most_frequent_values() -> None:
    rows = run(meant("SELECT user, MODE(n) AS m, COUNT(n) AS c FROM visits GROUP BY user"), nasty_database())
    asked = nasty_database().execute("SELECT user, n FROM visits WHERE user IS NOT NULL").fetchall()
    for row in rows:
        own = [n for user, n in asked if user == row["user"] and n is not None]
        best = max((own.count(n) for n in own), default=0)
        assert row["m"] == min((n for n in own if own.count(n) == best), default=None)


def test_pairs_are_told_apart_by_every_part() -> None:
    text = (
        "SELECT COUNT(DISTINCT (a, b)) AS pairs, COUNT(DISTINCT a || b) AS texts FROM (VALUES ('1:', ''), ('', '1:'),"
        " ('-', NULL), (NULL, '-'), (NULL, NULL), ('a', 'bc'), ('ab', 'c'), ('0:', '0:0:'), ('0:0:', '0:')) AS t(a, b)"
    )
    assert run(meant(text), nasty_database()) == [{"pairs": 9, "texts": 3}]


def test_listed_rows_are_public_and_their_values_known() -> None:
    made = meant("SELECT * FROM (VALUES (1, 'a', DATE '2024-01-01'), (-3, NULL, NULL)) AS t(i, word, day)")
    assert not made.private
    kinds = made.columns
    assert (kinds["i"].type, kinds["i"].lower, kinds["i"].upper, kinds["i"].nullable) == ("whole", -3, 1, False)
    assert kinds["word"].values == ("a",) and kinds["word"].nullable
    assert kinds["day"].type == "date"


@pytest.mark.parametrize(
    ("sql", "rule", "rewrite"),
    [
        ("SELECT user FROM visits, UNNEST([n]) AS t(i)", "no column 'n'", ""),
        ("SELECT user FROM visits, UNNEST(tag) AS t(i)", "a list that stands in the query", "UNNEST(['a', 'b'])"),
        ("SELECT user FROM visits, (VALUES (1), (2, 3)) AS t(i)", "as many values in each", "VALUES (1, 'a')"),
        ("SELECT user FROM visits, (VALUES (1), ('a')) AS t(i)", "text and whole values together", "cast"),
        ("SELECT user FROM visits, (VALUES ((SELECT MAX(n) FROM visits))) AS t(i)", "subquery cannot stand", ""),
        ("SELECT user FROM visits, (VALUES (RANDOM())) AS t(i)", "clock and random numbers", ""),
        ("SELECT user FROM visits, generate_series(1, 5000) AS t(i)", "1 to 1000 numbers", "generate_series(1, 12)"),
        ("SELECT user FROM visits, generate_series(1, 5, 0) AS t(i)", "step other than 0", "generate_series(1, 12)"),
        ("SELECT LPAD(tag, n, ' ') AS t FROM visits", "a number in the query", "LPAD(s, 5, '0')"),
        ("SELECT RPAD(tag, 5, '') AS t FROM visits", "Nothing cannot fill", "RPAD(s, 5, ' ')"),
        ("SELECT REPEAT(tag, 5000) AS t FROM visits", "from 0 to 1000", "REPEAT(s, 3)"),
        ("SELECT user, COUNT(DISTINCT ((n, y), ok)) AS a FROM visits GROUP BY user", "up to 20 columns", "(a, b)"),
    ],
)  # fmt: skip
def test_what_is_no_constant_is_refused(sql: str, rule: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        meant(sql)
    assert rule in refused.value.rule
    assert rewrite in refused.value.rewrite
