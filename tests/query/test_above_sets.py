"""ROLLUP, CUBE and GROUPING SETS over private rows."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.query import SqlReport
from tests.query.test_above_report import report_of


def _finished(plan: SqlReport, numbers: dict[str, list[float]], keys: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The rows of a report on one release with these numbers."""
    size = len(next(iter(keys.values())))
    raw = {"groups": size, "keys": keys, "numbers": numbers, "distinct": {}, "ranked": {}, "binned": {}}
    rows: list[dict[str, Any]] = plan.finish({"releases": {"release_1": raw}}).rows
    return rows


def test_coarser_rows_are_the_sums_of_finer_ones() -> None:
    plan = report_of(
        "SELECT ward, MONTH(day) AS m, COUNT(*) AS n, GROUPING(ward, m) AS g FROM visits GROUP BY ROLLUP (ward, m)"
    )
    (part,) = plan.sqls.values()
    names = [key.name for key in part.front.keys]
    keys = {names[0]: ["east", "east", "west"], names[1]: [1, 2, 1]}
    rows = _finished(plan, {"rows": [5.5, 2.25, 1.0]}, keys)
    found = {(row["ward"], row["m"], row["g"]): row["n"] for row in rows}
    assert found == {
        ("east", 1, 0): 5.5, ("east", 2, 0): 2.25, ("west", 1, 0): 1.0,
        ("east", None, 1): 7.75, ("west", None, 1): 1.0, (None, None, 3): 8.75,
    }  # fmt: skip


def test_means_are_ratios_of_sums_and_cost_no_more() -> None:
    plan = report_of("SELECT ward, AVG(cost) AS m, SUM(cost) AS s FROM visits GROUP BY CUBE (ward) HAVING s > 0")
    (part,) = plan.sqls.values()
    measures = [measure.name for measure in part.questions.measures]
    assert len(measures) == 2
    numbers = {name: ([100.0, 50.0] if name.startswith("sum") else [10.0, 5.0]) for name in measures}
    rows = _finished(plan, numbers, {"ward": ["east", "west"]})
    assert [(row["ward"], row["m"], row["s"]) for row in rows] == [
        ("east", 10.0, 100.0), ("west", 10.0, 50.0), (None, 10.0, 150.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("SELECT ward, drug, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, drug)", 4),
        ("SELECT ward, COUNT(DISTINCT drug) AS n FROM visits GROUP BY ROLLUP (ward)", 2),
        ("SELECT ward, MEDIAN(cost) AS n FROM visits GROUP BY GROUPING SETS ((ward), ())", 2),
        ("SELECT ward, drug, GROUPING_ID(ward, drug) AS g, COUNT(*) AS n FROM visits GROUP BY ward, ROLLUP (drug)", 2),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1)", 1),
    ],
)
def test_sets_that_do_not_add_up_are_releases_of_their_own(text: str, releases: int) -> None:
    plan = report_of(text)
    assert len(plan.plans) == releases and 0.999999 < float(plan.price()) <= 1
