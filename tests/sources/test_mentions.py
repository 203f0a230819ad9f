"""What a statement mentions, and that a session's views hold no more."""

from __future__ import annotations

import pytest
import sqlglot

from sfumato.schema import Table, key, real, whole
from sfumato.sources import connect, source
from sfumato.sources.mentions import mentions

TABLE = Table({"who": key(), "x": whole(0, 9), "y": real(0, 9), "t": key()}, private=False)
ROWS = {"who": ["a", "b"], "x": [1, 2], "y": [0.5, 1.5], "t": ["u", "v"]}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT COUNT(*) AS n FROM s WHERE x > 1", {"x"}),
        ("SELECT s.X AS a, COUNT(*) AS n FROM s GROUP BY s.X", {"x"}),
        ("SELECT a.x AS n FROM s AS a JOIN s AS b USING (who)", {"x", "who"}),
        ("SELECT k AS n FROM (SELECT x AS k FROM s) AS d", {"x"}),
        ("SELECT * FROM (SELECT x AS k FROM s) AS d", {"x"}),
        ("WITH c AS (SELECT x, y FROM s) SELECT * FROM c WHERE x > 0", {"x", "y"}),
        ("SELECT x FROM s UNION ALL SELECT y FROM s", {"x", "y"}),
        ("SELECT x FROM s WHERE EXISTS (SELECT 1 FROM s AS o WHERE o.y = s.x)", {"x", "y"}),
        ("SELECT * FROM s", None),
        ("SELECT a.* FROM s AS a", None),
        ("SELECT x FROM s WHERE EXISTS (SELECT * FROM s AS o)", None),
        ("SELECT * FROM s, (SELECT x FROM s) AS d", None),
        ("SELECT * FROM s, (WITH s AS (SELECT 1 AS x) SELECT * FROM s) AS d", None),  # two tables of one name
        ("SELECT COUNT(*) AS n FROM s NATURAL JOIN s AS o", None),
        ("SELECT COUNT(DISTINCT s) AS n FROM s", None),  # a whole row
    ],
)
def test_columns_that_a_statement_can_mean(text: str, columns: set[str] | None) -> None:
    names = mentions(sqlglot.parse_one(text, dialect="duckdb")).names
    assert (names is None) if columns is None else (names is not None and names & {*ROWS} == columns)


def test_a_star_over_rows_that_are_kept_means_no_table() -> None:
    tree = sqlglot.parse_one("SELECT * FROM _kept_0")
    assert mentions(tree).names is None and mentions(tree, ["_kept_0"]).names is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM s",
        "SELECT MAX(x) AS n FROM s WHERE y > 1",
        "SELECT * FROM s ORDER BY who",
        "SELECT who, x FROM s ORDER BY 1",
        "SELECT t FROM s AS o ORDER BY t",
        "SELECT MAX(who) AS n FROM (SELECT * FROM s) AS d",
        "SELECT COUNT(*) AS n FROM s AS a JOIN s AS b ON a.x < b.x",
    ],
)  # fmt: skip
def test_views_hold_what_is_mentioned_and_answers_are_those_of_whole_ones(text: str) -> None:
    tree = sqlglot.parse_one(text, dialect="duckdb")
    tables = {"s": (TABLE, source(ROWS))}
    with connect(tables) as lean, connect(tables) as whole_:  # type: ignore[attr-defined]
        whole_._see("s", ROWS)
        assert lean.run(tree).to_pylist() == whole_.run(tree).to_pylist()
        names = mentions(tree).names
        held = set(ROWS) if names is None else names & set(ROWS)
        assert lean._viewed["s"] == (held or {"who"})


def test_a_view_grows_as_statements_ask_for_more() -> None:
    with connect({"s": (TABLE, source(ROWS))}) as session:  # type: ignore[attr-defined]
        for column in ("x", "y", "x"):
            session.run(sqlglot.parse_one(f"SELECT MAX({column}) AS n FROM s"))
        assert session._viewed == {"s": {"x", "y"}}
