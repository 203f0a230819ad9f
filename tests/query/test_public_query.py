"""Queries of public tables alone: exact, free, and without a private row."""

from __future__ import annotations

from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import PlanError
from sfumato.query.above.above_rules import PublicOnlyError
from sfumato.schema import Schema, Table, category, key, whole

WARDS = ["east", "north"]
SCHEMA = Schema(
    {
        "visits": Table({"patient": key(), "ward": category(WARDS)}, unit="patient"),
        "Beds": Table({"ward": category(WARDS), "beds": whole(0, 100)}, private=False),
    }
)
UNIT = sf.Unit("user:patient")


def clinic() -> sf.Private:
    data: dict[str, Any] = {"visits": {"patient": ["a"], "ward": ["east"]}, "Beds": {"ward": WARDS, "beds": [20, 10]}}
    return sf.Private("clinic", data, unit=UNIT, schema=SCHEMA)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT SUM(beds) AS n FROM beds", [{"n": 30}]),
        ("SELECT ward, beds / 0 AS x FROM BEDS ORDER BY ward LIMIT 1", [{"ward": "east", "x": None}]),
        (
            "WITH b AS (SELECT * FROM beds) SELECT ward FROM b WHERE beds = (SELECT MAX(beds) FROM b)",
            [{"ward": "east"}],
        ),
        ("SELECT COUNT(*) AS n FROM beds a, beds b WHERE a.ward <> b.ward", [{"n": 2}]),
        (
            "SELECT a.ward, SUM(a.beds * b.beds) AS n FROM beds AS a, beds AS b WHERE a.ward = b.ward GROUP BY a.ward"
            " HAVING SUM(a.beds) > (SELECT SUM(beds) * 0.5 FROM beds)",
            [{"ward": "east", "n": 400}],
        ),
    ],
)
def test_it_is_answered_exactly_and_says_so(text: str, rows: list[dict[str, Any]]) -> None:
    answer = sf.public(text, clinic())
    assert answer.rows == rows and not answer.numbers
    assert "public tables only: nothing was paid" in answer.notes[0]
    with pytest.raises(PublicOnlyError, match=r"sf\.public"):
        sf.sql(text, SCHEMA, unit=UNIT, epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT ward FROM visits",
        "SELECT ward FROM beds WHERE ward IN (SELECT ward FROM visits)",
        "SELECT ward FROM beds WHERE EXISTS (SELECT 1 FROM visits)",
        "SELECT ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = b.ward) AS n FROM beds b",
        "WITH beds AS (SELECT ward FROM visits) SELECT ward FROM beds",
        "SELECT ward FROM beds UNION ALL SELECT ward FROM visits",
        "SELECT * FROM read_csv('a.csv')",
        "SELECT random() AS x FROM beds",
        "SELECT * FROM beds, LATERAL (SELECT * FROM visits) l",
    ],
)
def test_nothing_private_is_read_by_it(text: str) -> None:
    with pytest.raises(PlanError):
        sf.public(text, clinic())


def test_the_session_that_it_asks_holds_no_private_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the walk of the query is wrong."""
    from sfumato.query.above import public_query
    from sfumato.query.above.query_blocks import QuerySplit

    monkeypatch.setattr(QuerySplit, "walk", lambda self, tree: setattr(self, "tree", tree) or "public")
    monkeypatch.setattr(
        public_query, "public_tables", lambda schema: {name.lower(): t for name, t in schema.tables.items()}
    )
    assert sf.public("SELECT COUNT(*) AS n FROM visits", clinic()).rows == [{"n": 0}]
