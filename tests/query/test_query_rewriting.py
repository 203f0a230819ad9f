"""Advice that is printed works: every refusal that says what to write is applied to its query, and that is answered."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato.query
from sfumato.query.refusal import QueryError
from tests.query.still import answered
from tests.query.test_query_values import DATA, plan_of

FOLDER = Path(sfumato.query.__file__).parent
QUERIES = {
    "SELECT * FROM visits": "SELECT COUNT(*) FROM visits",
    "SELECT ward, n AS m FROM visits ORDER BY ward": "SELECT ward, n AS m, COUNT(*) AS n FROM visits GROUP BY ward, n",
    "SELECT ward, n, COUNT(*) AS c FROM visits GROUP BY ward": "SELECT ward, COUNT(n), COUNT(*) AS c "
    "FROM visits GROUP BY ward",
    "SELECT user, COUNT(*) AS c FROM visits GROUP BY user": 'SELECT AVG(LEAST(GREATEST("c", 0), 100)) AS "c" '
    'FROM (SELECT "user", COUNT(*) AS "c" FROM visits GROUP BY "user") AS units',
    "SELECT COUNT(*) AS c FROM visits WHERE LAST_DAY('2026-06-01') AT TIME ZONE 'Asia/Kolkata' IS NULL": None,
    "SELECT SUM(code) AS s FROM visits": "SELECT SUM(CAST(code AS DECIMAL(9, 2))) AS s FROM visits",
    "SELECT SUM(CAST(code AS DOUBLE)) AS s FROM visits": None,
    "SELECT SUM(LENGTH(code)) AS s FROM visits": "SELECT SUM(LEAST(GREATEST(LENGTH(code), 0), 100)) AS s FROM visits",
    "SELECT HISTOGRAM(n) AS h FROM visits": "SELECT HISTOGRAM(n, [0, 10, 20]) AS h FROM visits",
    "SELECT COUNT(DISTINCT user) FILTER (WHERE n > 1) AS u FROM visits WHERE x > 0": 'SELECT COUNT(DISTINCT "user") '
    "AS u FROM visits WHERE x > 0 AND n > 1",
    "SELECT SUM(DISTINCT n) AS s FROM visits": 'SELECT SUM(each_one) AS "s" FROM (SELECT "visits"."user", '
    'SUM(DISTINCT n) AS each_one FROM visits GROUP BY "visits"."user") AS units',
    "SELECT AVG(m) AS a FROM (SELECT user, COUNT(*) AS m FROM visits GROUP BY user) AS t": "SELECT "
    "AVG(LEAST(GREATEST(m, 0), 100)) AS a FROM (SELECT user, COUNT(*) AS m FROM visits GROUP BY user) AS t",
    "SELECT QUANTILE(n, 90) AS q FROM visits": "SELECT QUANTILE(n, 0.9) AS q FROM visits",
    "SELECT MAX(code) AS m FROM visits": "SELECT MAX(CAST(code AS DECIMAL(9, 2))) AS m FROM visits",
    "SELECT COUNT(*) AS c FROM visits WHERE n": "SELECT COUNT(*) AS c FROM visits WHERE n > 0",
    "SELECT COUNT(*) AS c FROM visits WHERE code": "SELECT COUNT(*) AS c FROM visits WHERE code IS NOT NULL",
    "SELECT COUNT(*) AS c FROM visits WHERE n AND ok": "SELECT COUNT(*) AS c FROM visits WHERE n <> 0 AND ok",
    "SELECT SUM(code * 0) AS c FROM visits": None,
    "SELECT COUNT_IF(code * 2 > 3) AS c FROM visits": "SELECT COUNT_IF(CAST(code AS BIGINT) * 2 > 3) AS c FROM visits",
    "SELECT COUNT_IF(UPPER(n) = '1') AS c FROM visits": (
        "SELECT COUNT_IF(UPPER(CAST(n AS VARCHAR)) = '1') AS c FROM visits"
    ),
    "SELECT COUNT_IF(YEAR(code) = 3) AS c FROM visits": (
        "SELECT COUNT_IF(YEAR(CAST(code AS DATE)) = 3) AS c FROM visits"
    ),
    "SELECT COUNT_IF(TIMESTAMP '2026-01-01' < TIMESTAMPTZ '2026-02-01') AS c FROM visits": (
        "SELECT COUNT_IF(TIMESTAMP '2026-01-01' < TIMESTAMPTZ '2026-02-01 00:00:00+00') AS c FROM visits"
    ),
    "SELECT COUNT(*) AS c, SUM(n) AS c FROM visits": "SELECT COUNT(*) AS c, SUM(n) AS c2 FROM visits",
}
"""What is refused, and the same as the refusal would have it; None where only the place of the advice matters."""


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        plan_of(text)
    return caught.value.within(text)


@pytest.mark.parametrize("text", QUERIES)
def test_what_is_printed_is_answered(text: str) -> None:
    """Where the first advice leads to another refusal, that one's advice is followed, too."""
    rewritten = refused(text).rewritten
    assert rewritten is not None and rewritten != text
    if QUERIES[text] is not None:
        assert rewritten == QUERIES[text]
    for _ in range(3):
        try:
            answer = answered(plan_of(rewritten), DATA)
        except QueryError as problem:
            further = problem.within(rewritten).rewritten
            assert further is not None, problem
            rewritten = further
        else:
            assert len(answer.columns) > 0
            return
    raise AssertionError("the advice goes in circles")


def _offers() -> set[tuple[str, int]]:
    """Where a refusal is made that may say what to write."""
    places = set()
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and {each.arg for each in node.keywords} & {"write", "query"}
            if named and isinstance(node.func, ast.Name) and node.func.id == "QueryError":
                places.add((path.name, node.lineno))
    return places


def test_every_refusal_that_prints_a_rewrite_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, int]] = set()
    plain = QueryError.__init__

    def noted(self: QueryError, *arguments: Any, **named: Any) -> None:
        caller = sys._getframe(1)
        reached.add((Path(caller.f_code.co_filename).name, caller.f_lineno))
        plain(self, *arguments, **named)

    monkeypatch.setattr(QueryError, "__init__", noted)
    for text in QUERIES:
        refused(text)
    offers = _offers()
    assert len(offers) >= 12
    assert offers - reached == set()


@pytest.mark.parametrize(
    ("text", "rule", "place"),
    [
        ("SELECT COUNT(*) FROM wards", "public tables only", "COUNT(*) FROM wards"),
        ("WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM wards",
         "visits is read without being", "COUNT(*) FROM wards"),
        ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.nope)",
         "no column 'nope'", "v.nope"),
        ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE w.nope = v.ward)",
         "no column 'nope'", "w.nope"),
        ("SELECT COUNT(*) FROM visits v WHERE\n v.n IN (SELECT beds FROM wards w WHERE w.ward = q.ward)",
         "no table 'q'", "q.ward"),
    ],
)  # fmt: skip
def test_the_place_is_right_and_nobody_is_sent_past_us(text: str, rule: str, place: str) -> None:
    problem = refused(text)
    line, marks = str(problem).splitlines()[1:3]
    start, end = marks.index("^"), marks.rindex("^") + 1
    assert rule in problem.rule and line[start:end] == place
    if "visits" in text:
        assert "run it on" not in problem.rewrite
