"""Expressions over released values mean what the engine means by them; the rest is refused with the way out."""

from __future__ import annotations

import datetime
import math
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot
from sqlglot import exp

from sfumato.laws import RoundedGaussian
from sfumato.query.refusal import QueryError
from sfumato.query.released import arranging
from sfumato.query.released.evaluation import evaluate
from sfumato.query.released.figures import Figure, constant, measured
from sfumato.query.released.values import Keys, Lists, Truth, Value, keys, keys_of

DAY, NOON = datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 12)
TABLE: dict[str, tuple[str, list[Any]]] = {
    "n": ("DOUBLE", [4.0, -2.5, 0.0, None, 1000.25, 2.5]),
    "m": ("DOUBLE", [2.0, 3.0, 7.5, 1.0, None, -0.5]),
    "k": ("VARCHAR", ["north", "south", None, "No_th", "a%b", "north west"]),
    "w": ("BIGINT", [3, 1, 2, None, -7, 3]),
    "f": ("BOOLEAN", [True, False, None, True, False, True]),
    "d": ("DATE", [DAY, None, *(DAY + datetime.timedelta(days=i) for i in (-40, 1, 300, 0))]),
    "t": ("TIMESTAMP", [NOON, None, *(NOON + datetime.timedelta(hours=i) for i in (-12, 12, 36, 0))]),
}
SIZE = 6
KINDS: dict[str, Any] = {"k": "text", "w": "whole", "f": "flag", "d": "date", "t": "moment"}


def columns() -> dict[str, Value]:
    found: dict[str, Value] = {name: keys(TABLE[name][1], kind) for name, kind in KINDS.items()}
    for name in "nm":
        found[name] = measured(name, [np.nan if each is None else each for each in TABLE[name][1]])
    found["l"] = Lists((constant(1.0, SIZE), constant(2.0, SIZE)))
    found["j"] = keys([5, "north", None, DAY, True, 5], "key")
    return found


def named(node: exp.Expression) -> str | None:
    return node.name if isinstance(node, exp.Column) and node.name in (*TABLE, "l", "j") else None


def expression(text: str) -> exp.Expression:
    return sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]


def value(text: str) -> Value:
    return evaluate(expression(text), columns(), named, SIZE)


def plain(found: Value) -> list[Any]:
    if isinstance(found, Figure):
        return [float(each) if math.isfinite(each) else None for each in found.value]
    assert isinstance(found, Keys | Truth)
    return list(keys_of(found).values)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v (i INT, " + ", ".join(f"{name} {kind}" for name, (kind, _) in TABLE.items()) + ")"
    )
    for i in range(SIZE):
        cells = [values[i] for _, values in TABLE.values()]
        connection.execute(f"INSERT INTO v VALUES ({', '.join('?' * (len(cells) + 1))})", [i, *cells])
    return connection


SAME = [
    "n + m * 2 - 1",
    "-n",
    "(n - m) / 4",
    "n / m",
    "n * n",
    "1e2 + n",
    "abs(n)",
    "sqrt(abs(n))",
    "ln(abs(m))",
    "log(abs(m))",
    "log2(abs(m))",
    "log(3, abs(m))",
    "exp(m)",
    "power(n, 2)",
    "n ** 3",
    "m ^ -1",
    "power(abs(n), 0.5)",
    "n ^ 0",
    "round(n)",
    "round(n, 1)",
    "round(n, -2)",
    "floor(n)",
    "ceil(n)",
    "trunc(n)",
    "greatest(n, m)",
    "least(n, m, 1)",
    "greatest(n, 0)",
    "w + 1",
    "w * n",
    "coalesce(n, m, 0)",
    "coalesce(n, -1)",
    "coalesce(k, 'none')",
    "ifnull(w, 9)",
    "nullif(n, 0)",
    "nullif(k, 'north')",
    "n / nullif(m, 1)",
    "CASE WHEN n > 2 THEN m WHEN n < 0 THEN 0 ELSE n END",
    "CASE WHEN n > 2 THEN m END",
    "CASE k WHEN 'north' THEN 1 WHEN 'south' THEN 2 ELSE 0 END",
    "CASE w WHEN 3 THEN 'three' ELSE NULL END",
    "CASE WHEN f THEN 'yes' WHEN NOT f THEN 'no' END",
    "CASE WHEN n > 1 THEN NULL ELSE n END",
    "CASE WHEN n > 1 THEN TRUE ELSE f END",
    "CASE WHEN n > 1 THEN NULL ELSE m > 1 END",
    "if(n > m, n, m)",
    "n > m",
    "n >= 4",
    "n < 4 OR m > 2",
    "n <= 4 AND m > 2",
    "NOT (n = 4)",
    "n <> 4",
    "n = NULL",
    "NULL = k",
    "n > 1 AND NULL",
    "n BETWEEN -3 AND 4",
    "n NOT BETWEEN -3 AND 4",
    "n IN (4, 0)",
    "k = 'north'",
    "k <> 'north'",
    "k < 'o'",
    "k IN ('north', 'south')",
    "k NOT IN ('north', NULL)",
    "k LIKE 'no%'",
    "k LIKE 'No_th'",
    "k LIKE 'a%b'",
    "k NOT LIKE '%th'",
    "k ILIKE 'NO%'",
    "k NOT ILIKE 'NO%'",
    "k IS NULL",
    "k IS NOT NULL",
    "n IS NULL",
    "f IS TRUE",
    "f IS NOT TRUE",
    "(n > 1) IS FALSE",
    "f",
    "f = TRUE",
    "f AND n > 0",
    "w = 3",
    "w IN (1, 2)",
    "w > n",
    "d = DATE '2024-03-01'",
    "d >= '2024-03-01'",
    "d BETWEEN '2024-01-01' AND '2024-03-01'",
    "t > TIMESTAMP '2024-03-01 12:00:00'",
    "t >= d",
    "CAST(t AS DATE)",
    "CAST(n AS INT)",
    "CAST(w AS DOUBLE) / 2",
    "CAST(w AS VARCHAR)",
    "CAST(f AS VARCHAR)",
    "CAST(d AS VARCHAR)",
    "'text'",
    "1.5",
    "TRUE",
]


@pytest.mark.parametrize("text", SAME)
def test_expressions_mean_what_the_engine_means(text: str, engine: duckdb.DuckDBPyConnection) -> None:
    wanted = [row[0] for row in engine.execute(f"SELECT {text} FROM v ORDER BY i").fetchall()]
    found = plain(value(text))
    assert len(found) == SIZE
    for ours, theirs in zip(found, wanted, strict=True):
        if isinstance(ours, float) and theirs is not None:
            assert ours == pytest.approx(float(theirs), rel=1e-12)
        else:
            assert ours == theirs, (found, wanted)


def nobody() -> dict[str, Value]:
    none: dict[str, Value] = {name: keys([], kind) for name, kind in KINDS.items()}
    none |= {name: measured(name, []) for name in "nm"}
    return none | {"l": Lists((measured("l", []),)), "j": keys([], "key")}


@pytest.mark.parametrize("text", SAME)
def test_kinds_are_known_before_there_are_groups(text: str) -> None:
    found, later = evaluate(expression(text), nobody(), named, 0), value(text)
    assert type(found) is type(later) or (isinstance(found, Figure) and isinstance(later, Figure))
    if isinstance(found, Keys) and isinstance(later, Keys):
        assert found.type == later.type


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("j <> -5", [True, True, None, True, True, True]),
        ("n / 0", [None] * SIZE),
        ("1 / n", [0.25, -0.4, None, None, 1 / 1000.25, 0.4]),
        ("sqrt(n)", [2.0, None, 0.0, None, math.sqrt(1000.25), math.sqrt(2.5)]),
        ("ln(n)", [math.log(4), None, None, None, math.log(1000.25), math.log(2.5)]),
        ("exp(n)", [math.exp(4), math.exp(-2.5), 1.0, None, None, math.exp(2.5)]),
        ("NULL", [None] * SIZE),
        ("j = 5", [True, False, None, False, False, True]),
        ("j = '5'", [True, False, None, False, False, True]),
        ("j LIKE '2024%'", [False, False, None, True, False, False]),
        ("j IN ('north', 'true')", [False, True, None, False, True, False]),
        ("j = k", [False, False, None, False, False, False]),
    ],
)
def test_no_expression_raises_and_what_is_no_number_is_null(text: str, wanted: list[Any]) -> None:
    assert [each if each is None else pytest.approx(each) for each in wanted] == plain(value(text))


REFUSED = [
    ("n % 2", "cannot be used on released values", "below the aggregate"),
    ("n + random()", "RANDOM() cannot be used", "subquery"),
    ("getenv('HOME')", "cannot be used", "arithmetic"),
    ("(SELECT 1)", "cannot be used", "subquery"),
    ("other + 1", "other cannot be used", "arithmetic"),
    ("k + 1", "k is not a number", "COUNT(*)"),
    ("n AND m > 1", "n is not a condition", "compare it"),
    ("k = 3", "k is not a number", "use a number"),
    ("k = d", "A text is compared with a date", "text on both sides"),
    ("CAST(k AS DATE) = d", "cannot be cast", "leave the cast out"),
    ("CAST('x' AS DATE)", "no date", "2024-03-31"),
    ("d = 'soon'", "This text is no date", "2024-03-31"),
    ("f = 'north'", "A flag is compared with a text", "flag on both sides"),
    ("power(2, n)", "An exponent must be a plain number", "such as 2"),
    ("round(n, w)", "The number of places must be a plain number", "such as 2"),
    ("log(1, n)", "no base of logarithms", "LN(x)"),
    ("CASE WHEN n > 1 THEN n ELSE 'small' END", "different kinds", "one kind"),
    ("coalesce(n, 'none')", "different kinds", "one kind"),
    ("k LIKE k", "LIKE compares a key with a text", "LIKE 'north%'"),
    ("k IN (SELECT k FROM t)", "IN needs a list", "write the values out"),
    ("n IS 3", "IS takes NULL", "use ="),
    ("l + 1", "l is not a number", "COUNT(*)"),
    ("CAST(k AS BLOB)", "cannot be cast", "leave the cast out"),
]


@pytest.mark.parametrize(("text", "rule", "rewrite"), REFUSED)
def test_what_is_not_offered_is_refused_with_a_way_out(text: str, rule: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as caught:
        value(text)
    assert rule in caught.value.rule
    assert rewrite in caught.value.rewrite
    assert caught.value.node is not None
    with pytest.raises(QueryError):  # and before there are groups: nothing was charged yet
        evaluate(expression(text), nobody(), named, 0)


def test_error_bars_follow_expressions() -> None:
    spreads = {"n": (RoundedGaussian(4.0), 1.0), "m": (RoundedGaussian(3.0), 1.0)}
    found: dict[str, Value] = {"n": measured("n", [1000.0, 12.0]), "m": measured("m", [500.0, -100.0])}

    def of(text: str) -> Figure:
        made = evaluate(expression(text), found, named, 2)
        assert isinstance(made, Figure)
        return made

    assert of("n + m").std(spreads) == pytest.approx(math.hypot(*(law.std for law, _ in spreads.values())))
    assert of("n / 10 + 1").half_width(spreads) == pytest.approx(of("n").half_width(spreads) / 10)
    assert of("CASE WHEN n > 10 THEN n ELSE 0 END").unreliable(spreads).tolist() == [False, True]
    assert of("CASE WHEN n IS NULL THEN 0 ELSE n END").unreliable(spreads).tolist() == [False, False]
    assert of("100 * m / n").unreliable(spreads).tolist() == [False, True]
    assert of("2 + 3").half_width(spreads).tolist() == [0.0, 0.0]


# arranging


def parsed(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, dialect="duckdb")


ORDERS = [
    "ORDER BY n",
    "ORDER BY n DESC",
    "ORDER BY n NULLS FIRST",
    "ORDER BY n DESC NULLS FIRST, k",
    "ORDER BY 2 DESC, 1",
    "ORDER BY w DESC, k",
    "ORDER BY w, n DESC",
    "ORDER BY total DESC",
    "ORDER BY abs(n - 2)",
    "ORDER BY f, d",
    "ORDER BY k DESC NULLS LAST",
    "ORDER BY d DESC",
    "ORDER BY t, k",
    "ORDER BY n > 1, k",
    "ORDER BY round(m / 10), k",
    "ORDER BY k LIMIT 2",
    "ORDER BY k LIMIT 3 OFFSET 2",
    "ORDER BY k OFFSET 4",
    "ORDER BY k LIMIT 0",
    "ORDER BY k FETCH FIRST 2 ROWS ONLY",
]


@pytest.mark.parametrize("clause", ORDERS)
def test_rows_stand_in_the_engine_order(clause: str, engine: duckdb.DuckDBPyConnection) -> None:
    query = parsed(f"SELECT k, w, n AS total FROM v {clause}")
    outputs = {"k": value("k"), "w": value("w"), "total": value("n")}
    tie = value("k")
    assert isinstance(tie, Keys)
    rows = arranging.order_by(
        query.args.get("order"), outputs, lambda node: evaluate(node, columns(), named, SIZE), [tie], SIZE
    )
    ours = rows[arranging.shown(query)].tolist()
    if "limit" not in clause.lower() and "k" not in clause.split():
        clause += ", k"  # how we settle what is equal
    theirs = engine.execute(f"SELECT k, w, n AS total, i FROM v {clause}").fetchall()
    assert ours == [row[-1] for row in theirs]


def test_without_an_order_rows_stand_by_their_keys() -> None:
    one, two = keys(["b", None, "a", "b"], "text"), keys([2, 1, 7, 1], "whole")
    assert arranging.order_by(None, {}, lambda node: one, [one, two], 4).tolist() == [2, 3, 0, 1]
    assert arranging.order_by(None, {}, lambda node: one, [], 3).tolist() == [0, 1, 2]
    mixed = keys([3, "x", 2.5, None], "key")
    assert arranging.order_by(None, {}, lambda node: one, [mixed], 4).tolist() == [2, 0, 1, 3]


def test_having_keeps_what_is_true() -> None:
    held = arranging.having(value("n > 1 AND k LIKE '%th'"), expression("1"))
    assert held.tolist() == [True, False, False, False, False, False]
    with pytest.raises(QueryError, match="HAVING needs a condition"):
        arranging.having(value("n"), expression("n"))


@pytest.mark.parametrize(
    ("clause", "rule"),
    [
        ("LIMIT -1", "whole number"),
        ("LIMIT 10%", "number of rows"),
        ("LIMIT (SELECT 1)", "whole number"),
        ("LIMIT 1.5", "whole number"),
        ("LIMIT 2 OFFSET n", "whole number"),
        ("ORDER BY 4", "place of a column"),
        ("ORDER BY 0", "place of a column"),
        ("ORDER BY 'k'", "place of a column"),
        ("ORDER BY ALL", "ORDER BY ALL"),
        ("ORDER BY l", "Lists have no order"),
        ("ORDER BY random()", "cannot be used"),
    ],
)
def test_clauses_that_are_refused(clause: str, rule: str) -> None:
    query = parsed(f"SELECT k, w, n FROM v {clause}")
    outputs = {name: value(name) for name in ("k", "w", "n")}
    with pytest.raises(QueryError, match=rule):
        arranging.order_by(
            query.args.get("order"), outputs, lambda node: evaluate(node, columns(), named, SIZE), [], SIZE
        )
        arranging.shown(query)
