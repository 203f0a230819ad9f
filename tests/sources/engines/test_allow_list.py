"""The door takes words of the vocabulary and nothing else, whoever built the tree."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from sfumato.errors import PlanError
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.lowering import check_node
from sfumato.sources.vocabulary import BY_NODE, WORDS, call, read
from sfumato.sources.vocabulary.grammar import NODES

CLASSES = sorted(
    {kind for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expression)},
    key=lambda kind: kind.__name__,
)


def test_of_all_nodes_that_sqlglot_has_only_those_declared_are_taken() -> None:
    assert len(CLASSES) > 500
    taken = set()
    for kind in CLASSES:
        node = kind()
        try:
            check_node(node)
        except (PlanError, AttributeError, TypeError):
            continue
        taken.add(kind.__name__)
    assert taken <= set(NODES) | set(BY_NODE)
    assert len(taken) < 110


@pytest.mark.parametrize(
    "text",
    [
        "SELECT median(x) FROM t",
        "SELECT random() FROM t",
        "SELECT now()",
        "SELECT x::BLOB FROM t",
        "SELECT x::HUGEINT[] FROM t",
        "SELECT x::STRUCT(a INT) FROM t",
        "SELECT x::FLOAT FROM t",
        "SELECT TRY_CAST(x AS INT) FROM t",
        "SELECT list(x) FROM t",
        "SELECT string_agg(x) FROM t",
        "SELECT any_value(x) FROM t",
        "SELECT x FROM t LIMIT 3",
        "SELECT x FROM t OFFSET 3",
        "SELECT x FROM t USING SAMPLE 10%",
        "SELECT x FROM t TABLESAMPLE reservoir(3)",
        "SELECT DISTINCT ON (x) x FROM t",
        "SELECT x FROM t UNION SELECT x FROM t",
        "SELECT x FROM t EXCEPT SELECT x FROM t",
        "SELECT x FROM t INTERSECT SELECT x FROM t",
        "SELECT x FROM t GROUP BY ROLLUP (x)",
        "SELECT x FROM t GROUP BY ALL",
        "SELECT x FROM t NATURAL JOIN t AS u",
        "SELECT x FROM t POSITIONAL JOIN t AS u",
        "SELECT x FROM t ASOF JOIN t AS u USING (x)",
        "SELECT COUNT(*) FILTER (WHERE x > 1) FROM t",
        "SELECT SUM(x) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT * EXCLUDE (x) FROM t",
        "SELECT * REPLACE (1 AS x) FROM t",
        "SELECT COLUMNS('x') FROM t",
        "SELECT [x] FROM t",
        "SELECT x COLLATE NOCASE FROM t",
        "SELECT x ~ 'a' FROM t",
        "SELECT list_transform([1], y -> y) FROM t",
        "SELECT (SELECT x FROM t ORDER BY x LIMIT 1) FROM t",
        "SELECT x.y.z FROM t",
        "WITH RECURSIVE r AS (SELECT 1 AS i) SELECT i FROM r",
        "PIVOT t ON x USING COUNT(*)",
        "SELECT CAST(x AS TIMESTAMPTZ) FROM t",
        "SELECT CAST(x AS DATE FORMAT 'YYYY') FROM t",
        "SELECT x AT TIME ZONE 'UTC' FROM t",
    ],
)
def test_what_is_no_word_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="no word of the vocabulary"):
        DUCKDB.check(read(text))


@pytest.mark.parametrize(
    "tree",
    [
        exp.select(exp.Literal(this="1 FROM pg_tables --", is_string=False)),
        exp.select(exp.Literal(this="1)", is_string=False)),
        exp.select(exp.to_identifier("x FROM pg_tables", quoted=False)),
        exp.select("x").from_("t").join(exp.Join(this=exp.to_table("u"), side="LEFT JOIN pg_tables --")),
        exp.select(exp.Window(this=exp.RowNumber(), over="OVER () FROM pg_tables --")),
        exp.select(exp.Extract(this=exp.var("DAY FROM now()) --"), expression=exp.column("x"))),
        exp.select(exp.Anonymous(this="exact_sum) FROM pg_tables --", expressions=[exp.column("x")])),
        exp.select(exp.Anonymous(this="exact_sum", expressions=[])),
        exp.select(exp.Anonymous(this="nearest", expressions=[exp.column("x"), exp.column("BIGINT")])),
        exp.select(exp.Anonymous(this="Sum_Of_Two", expressions=[exp.column("x")])),
        exp.select(exp.Cast(this=exp.column("x"), to=exp.DataType(this="INT); DROP VIEW t; --"))),
        exp.select(exp.Hint(expressions=[exp.column("x")])),
    ],
)
def test_texts_inside_a_tree_cannot_say_more_than_a_tree(tree: Any) -> None:
    with pytest.raises(PlanError, match="no word of the vocabulary"):
        DUCKDB.check(tree)


def test_words_are_called_by_their_names() -> None:
    assert call("is_finite", exp.column("x")) == read("is_finite(x)")
    with pytest.raises(KeyError):
        call("isfinite", exp.column("x"))
    for wrong in (("is_finite",), ("floor", exp.column("x"))):
        with pytest.raises(ValueError, match="not called so"):
            call(*wrong)


def test_lowering_leaves_the_tree_as_it_was() -> None:
    tree = read("SELECT exact_sum(nearest_or_null(least_present(x, 1), BIGINT)) AS s FROM t")
    before = tree.copy()
    assert DUCKDB.text(tree) == "SELECT SUM(TRY_CAST(LEAST(x, 1) AS BIGINT)) AS s FROM t"
    assert tree == before
    assert DUCKDB.text(read("exact_sum(x)")) == "SUM(x)"
    assert sqlglot.parse_one(DUCKDB.text(tree), dialect="duckdb")


def test_every_function_of_ours_has_a_name_that_no_engine_reads() -> None:
    """A word that was not lowered must not run as something else."""
    import duckdb

    for word in WORDS.values():
        if not word.node and word.name not in ("sign",):
            with pytest.raises(duckdb.Error):
                duckdb.sql(f"SELECT {word.name}({', '.join(['1'] * word.least)})").fetchall()
