"""Groups as they can occur: what keys can be by public tables, schemas and the query's own conditions, and no more."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, schema
from sfumato.errors import PlanError
from sfumato.query import sql
from sfumato.query.plan import Sql
from sfumato.schema import Table
from tests.query.still import answered, plainly

BUYER = Unit("user:buyer")
SHOP = Schema(
    {
        "orders": Table(
            {
                "buyer": schema.key(),
                "nation": schema.whole(0, 24),
                "seller": schema.whole(0, 24),
                "price": schema.real(0, 100),
                "day": schema.date("1995-01-01", "1996-12-31"),
                "long_ago": schema.date("1990-01-01", "1999-12-31"),
                "n": schema.whole(0, 9),
                "mode": schema.category(["air", "rail", "ship", "mail"]),
            },
            unit="buyer",
        ),
        "nations": Table(
            {"nation": schema.whole(0, 24), "name": schema.key(), "region": schema.whole(0, 4)}, private=False
        ),
        "regions": Table({"region": schema.whole(0, 4), "called": schema.key()}, private=False),
    }
)
MANY = 60
DAYS = [datetime.date(1995, 1 + i % 12, 1 + i % 28) for i in range(MANY)]
DATA: dict[str, Any] = {
    "orders": pa.table(
        {
            "buyer": list(range(MANY)),
            "nation": [None if i == 7 else i % 25 for i in range(MANY)],
            "seller": [(i * 7) % 25 for i in range(MANY)],
            "price": [float(i) for i in range(MANY)],
            "day": [None if i == 3 else day for i, day in enumerate(DAYS)],
            "long_ago": DAYS,
            "n": [i % 10 for i in range(MANY)],
            "mode": [["air", "rail", "ship", None][i % 4] for i in range(MANY)],
        }
    ),
    "nations": pa.table({"nation": list(range(24)), "name": [f"N{i:02}" for i in range(24)],
                         "region": [i % 5 for i in range(24)]}),
    "regions": pa.table({"region": list(range(5)), "called": ["AFRICA", "ASIA", "EUROPE", None, "AMERICA"]}),
}  # fmt: skip
ALONG = "orders AS o JOIN nations AS n ON o.nation = n.nation JOIN regions AS r ON n.region = r.region"


def plan(text: str, **more: Any) -> Sql:
    return sql(text, SHOP, unit=BUYER, **{"epsilon": 1, "limits": {"rows": 60}, **more})


def groups(by: str, source: str, **more: Any) -> dict[tuple[Any, ...], float]:
    """The groups with their counts, which are the engine's own; no row is in none of them."""
    many = len(by.split("; "))
    keys = ", ".join(f"{each} AS g{i}" for i, each in enumerate(by.split("; ")))
    text = f"SELECT {keys}, COUNT(*) AS many FROM {source} GROUP BY {', '.join(str(i + 1) for i in range(many))}"
    made = plan(text, **more)
    assert not made.front.selects  # no delta is needed
    counts = {tuple(list(row.values())[:-1]): row["many"] for row in answered(made, DATA).rows}
    there = {row[:-1]: row[-1] for row in plainly(text, DATA) if None not in row}
    assert {group: count for group, count in counts.items() if count} == there
    return counts


@pytest.mark.parametrize(
    ("by", "source", "size"),
    [
        ("n.name; r.called", ALONG, 19),
        ("n.name; r.called", f"{ALONG} WHERE r.called = 'ASIA'", 5),
        ("n.name", f"{ALONG} WHERE r.called = 'ASIA' AND price > 3", 5),
        ("n.name; r.called", "orders AS o, nations AS n, regions AS r WHERE o.nation = n.nation AND n.region = r.region"
         " AND r.called IN ('ASIA', 'EUROPE')", 10),
        ("n.name; r.called", f"{ALONG} WHERE r.called = 'ASIA' OR price > 3", 19),
        ("a; b", "(SELECT buyer, x.name AS a, y.name AS b FROM orders AS o, nations AS x, nations AS y"
         " WHERE o.nation = x.nation AND o.seller = y.nation AND ((x.name = 'N01' AND y.name = 'N07')"
         " OR (x.name = 'N07' AND y.name = 'N01' AND price > 0)))", 2),
        ("x.name; y.name", "orders AS o JOIN nations AS x ON o.nation = x.nation JOIN nations AS y"
         " ON o.nation = y.nation", 24),
        ("mode", "orders WHERE mode IN ('air', 'ship')", 2),
        ("mode", "orders WHERE mode IN ('air', 'ship') OR price > 3", 4),
        ("mode; n", "orders WHERE mode <> 'air' AND n < 3 AND price > 2", 9),
        ("name", "orders LEFT JOIN nations USING (nation) WHERE region = 1", 5),
        ("called", "(SELECT buyer, called FROM orders JOIN (SELECT nation, called FROM nations JOIN regions"
         " USING (region) WHERE region = 1) AS p USING (nation))", 1),
    ],
)  # fmt: skip
def test_conditions_and_public_joins_leave_what_can_occur(by: str, source: str, size: int) -> None:
    assert len(groups(by, source)) == size


@pytest.mark.parametrize(
    ("by", "source", "size"),
    [
        ("n / 2", "orders", 10),
        ("n // 2", "orders", 5),
        ("CAST(n AS VARCHAR)", "orders", 10),
        ("CAST(n AS VARCHAR) || mode", "orders", 40),
        ("n * 1000 + seller", "orders", 250),
        ("UPPER(name)", "orders JOIN nations USING (nation)", 24),
        ("SUBSTR(name, 1, 2); region", "orders JOIN nations USING (nation)", 14),
        ("COALESCE(mode, 'none')", "orders", 5),
        ("COALESCE(name, 'none')", "orders AS o LEFT JOIN nations AS p ON o.nation = p.nation AND p.region = 1", 25),
        ("CASE WHEN mode = 'air' THEN 'fast' WHEN mode IS NULL THEN '?' ELSE mode END", "orders", 6),
        ("EXTRACT(year FROM day)", "orders WHERE day < DATE '1996-01-01'", 1),
        ("CAST(day AS VARCHAR)", "orders WHERE day BETWEEN DATE '1995-01-01' AND DATE '1995-01-03'", 3),
        ("CAST(DATE_TRUNC('month', day) AS DATE)", "orders WHERE day >= DATE '1995-11-15'", 14),
        ("EXTRACT(year FROM long_ago); MONTH(long_ago)",
         "orders WHERE long_ago BETWEEN DATE '1994-11-01' AND DATE '1995-02-28'", 4),
        ("MONTHNAME(day)", "orders", 12),
        ("many_of", "orders JOIN (SELECT region, COUNT(*) AS many_of FROM nations GROUP BY region) AS m"
         " ON m.region = n", 2),
        ("low", "(SELECT buyer, LOWER(name) AS low, ROW_NUMBER() OVER (PARTITION BY buyer ORDER BY day) AS r"
         " FROM orders JOIN nations USING (nation)) WHERE r = 1", 24),
        ("low", "(SELECT buyer, LOWER(name) AS low, COUNT(*) AS c FROM orders JOIN nations USING (nation)"
         " WHERE region = 2 GROUP BY buyer, LOWER(name))", 5),
    ],
)  # fmt: skip
def test_functions_of_public_columns_are_public(by: str, source: str, size: int) -> None:
    assert len(groups(by, source)) == size


@pytest.mark.parametrize(
    "by",
    ["price > 3 AND n > 2", "price", "long_ago", "CAST(long_ago AS VARCHAR)", "MAX(n)", "CAST(buyer AS VARCHAR)"],
)
def test_others_are_chosen_privately_as_before(by: str) -> None:
    source = "orders" if "MAX" not in by else "(SELECT buyer, MAX(price) AS n FROM orders GROUP BY buyer)"
    by = "n" if "MAX" in by else by
    made = plan(f"SELECT {by} AS g, COUNT(*) AS c FROM {source} GROUP BY g", delta=1e-6)
    assert made.front.selects == (by != "price > 3 AND n > 2")


def test_lists_that_together_are_too_many_are_chosen_privately() -> None:
    text = (
        "SELECT CAST(day AS VARCHAR) AS a, CAST(seller AS VARCHAR) || mode AS b, CAST(nation AS VARCHAR) || mode AS c, "
        "COUNT(*) AS m FROM orders GROUP BY a, b, c"
    )
    assert plan(text, delta=1e-6).front.selects


def test_what_is_given_is_taken_as_it_is() -> None:
    text = "SELECT mode, COUNT(*) AS c FROM orders WHERE mode = 'air' GROUP BY mode"
    assert [row["mode"] for row in answered(plan(text), DATA).rows] == ["air"]
    given = plan(text, keys={"mode": ["air", "ship"]})
    assert [row["mode"] for row in answered(given, DATA).rows] == ["air", "ship"]


def test_the_plan_says_so() -> None:
    text = f"SELECT n.name, r.called, COUNT(*) AS c FROM {ALONG} WHERE r.called = 'ASIA' GROUP BY 1, 2"
    words = "as they occur together in the public tables nations and regions, where the query's conditions hold"
    assert f"group by name, called: {words}" in plan(text).explain()
    assert plan(text).lists == {"nations", "regions"}
    text = "SELECT n / 2 AS h, COUNT(*) AS c FROM orders GROUP BY h"
    assert "group by n / 2: what it makes of the values that the schema lists" in plan(text).explain()


def test_more_groups_than_an_answer_has_are_told_by_quote() -> None:
    """Before anything is paid, and before a private row is read."""
    many = 1100
    public = Table({"part": schema.whole(0, 10**6), "name": schema.key()}, private=False)
    wide = Schema({"orders": SHOP.table("orders"), "parts": public})
    parts = pa.table({"part": list(range(many)), "name": [f"p{i}" for i in range(many)]})
    shop = Private("shop", {"orders": DATA["orders"], "parts": parts}, unit=BUYER, schema=wide)
    text = (
        "SELECT UPPER(a.name) AS x, LOWER(b.name) AS y, COUNT(*) AS c FROM orders AS o "
        "JOIN parts AS a ON a.part = o.price JOIN parts AS b ON b.part = o.price + 1 GROUP BY x, y"
    )
    made = sql(text, shop, epsilon=1, limits={"rows": 1})
    assert made.lists == {"parts"}
    with pytest.raises(PlanError, match="combinations of the groups"):
        Curator(shop, MemoryLedger({"shop": Budget(epsilon=9)})).quote(made)


def test_lists_of_the_schema_that_conditions_narrow_are_counted_as_they_are_left() -> None:
    """Two lists of 1,200 are more groups than an answer has; the four that WHERE leaves are not."""
    listed = schema.category([f"c{i}" for i in range(1200)])
    wide = Schema({"orders": Table({"buyer": schema.key(), "one": listed, "other": listed}, unit="buyer")})
    data = {"orders": pa.table({"buyer": [1, 2], "one": ["c1", "c2"], "other": ["c3", "c9"]})}
    shop = Private("shop", data["orders"], unit=BUYER, schema=wide)

    def of(where: str) -> str:
        return f"SELECT one, other, COUNT(*) AS c FROM orders {where} GROUP BY one, other"

    options: Any = {"unit": BUYER, "epsilon": 1, "limits": {"rows": 1}}
    for where, rows in (
        ("WHERE one IN ('c1', 'c2') AND other IN ('c3', 'c4')", 4),
        ("WHERE (one = 'c1' AND other = 'c3') OR (one = 'c2' AND other = 'c4')", 2),
    ):
        made = sql(of(where), wide, **options)
        assert isinstance(made, Sql) and len(answered(made, data).rows) == rows
    with pytest.raises(PlanError, match="combinations of the groups"):
        sql(of(""), wide, **options)
    left = sql(of("WHERE one <> 'c1'"), shop, epsilon=1, limits={"rows": 1})
    with pytest.raises(PlanError, match="combinations of the groups"):
        Curator(shop, MemoryLedger({"shop": Budget(epsilon=9)})).quote(left)
