"""Groups by several columns of one public table are those that occur in it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato import Schema, Unit, schema
from sfumato.query import sql
from sfumato.query.plan import Sql
from sfumato.schema import Table
from tests.query.still import answered

BUYER = Unit("user:buyer")
PARTS = pa.table(
    {
        "part": [1, 2, 3, 4, 5],
        "brand": ["A", "A", "B", "C", None],
        "type": ["tin", "zinc", "tin", "brass", "tin"],
        "size": [1, 2, 3, 1, 2],
    }
)
SALES = pa.table(
    {"buyer": [1, 2, 3, 4, 5], "part": [1, 1, 2, 3, 5], "other": [4, 4, 4, 4, 4], "city": list("xyxyx")}
)  # fmt: skip
SCHEMA = Schema(
    {
        "sales": Table(
            {"buyer": schema.key(), "part": schema.whole(1, 9), "other": schema.whole(1, 9),
             "city": schema.category(["y", "x"])},
            name="sales", unit="buyer",
        ),
        "parts": Table(
            {"part": schema.whole(1, 9), "brand": schema.key(), "type": schema.category(["zinc", "tin", "brass"]),
             "size": schema.whole(1, 50)},
            name="parts", private=False,
        ),
    }
)  # fmt: skip
OCCUR = [("A", "tin"), ("A", "zinc"), ("B", "tin"), ("C", "brass")]


def plan(text: str, **more: object) -> Sql:
    return sql(text, SCHEMA, unit=BUYER, **{"epsilon": 1, "delta": 1e-6, "limits": {"rows": 1}, **more})  # type: ignore[arg-type]


def groups(text: str, *names: str, **more: object) -> list[tuple[object, ...]]:
    answer = answered(plan(text, **more), {"sales": SALES, "parts": PARTS})
    return [tuple(row[name] for name in names) for row in answer.rows]


@pytest.mark.parametrize(
    "source",
    [
        "sales JOIN parts USING (part)",
        "sales AS s LEFT JOIN parts AS p ON p.part = s.part",
        "sales JOIN (SELECT part, type, brand FROM parts WHERE size < 9) AS p ON p.part = sales.part",
        "(SELECT buyer, brand, type FROM sales JOIN parts USING (part)) AS both_of_them",
        "(SELECT buyer, brand, type FROM sales JOIN parts USING (part) "
        "UNION ALL SELECT buyer, brand, type FROM sales JOIN parts ON parts.part = other)",
    ],
)
def test_columns_of_one_public_row_are_listed_as_they_occur(source: str) -> None:
    """Not brand times type, nine pairs, although the types are categories besides."""
    found = groups(f"SELECT brand, type, COUNT(*) AS n FROM {source} GROUP BY brand, type", "brand", "type")
    assert found == OCCUR


def test_counts_are_those_of_their_pairs() -> None:
    text = "SELECT type, brand, COUNT(*) AS n FROM sales JOIN parts USING (part) GROUP BY type, brand"
    found = groups(text, "brand", "type", "n")
    assert sorted(found) == [("A", "tin", 2), ("A", "zinc", 1), ("B", "tin", 1), ("C", "brass", 0)]


def test_other_keys_multiply_the_rows_of_the_public_table() -> None:
    text = "SELECT brand, city, type, COUNT(*) AS n FROM sales JOIN parts USING (part) GROUP BY brand, city, type"
    found = groups(text, "brand", "city", "type")
    assert set(found) == {(brand, city, type_) for brand, type_ in OCCUR for city in "xy"} and len(found) == 8


@pytest.mark.parametrize(
    "text",
    [
        "SELECT p.brand AS brand, q.type AS type, COUNT(*) AS n FROM sales "
        "JOIN parts AS p ON p.part = sales.part JOIN parts AS q ON q.part = other GROUP BY p.brand, q.type",
        "WITH p AS (SELECT part, brand, type FROM parts) SELECT one.brand AS brand, two.type AS type, COUNT(*) AS n "
        "FROM sales JOIN p AS one ON one.part = sales.part JOIN p AS two ON two.part = other GROUP BY 1, 2",
        "SELECT brand, type, COUNT(*) AS n FROM (SELECT sales.buyer AS buyer, p.brand AS brand, q.type AS type "
        "FROM sales JOIN parts AS p ON p.part = sales.part JOIN parts AS q ON q.part = other) GROUP BY brand, type",
        "SELECT brand, type, COUNT(*) AS n FROM (SELECT buyer, brand, MAX(type) AS type FROM sales "
        "JOIN parts USING (part) GROUP BY buyer, brand) GROUP BY brand, type",
        "SELECT mine.brand AS brand, again.type AS type, COUNT(*) AS n FROM (SELECT buyer, other, brand FROM sales "
        "JOIN parts USING (part)) AS mine JOIN parts AS again ON again.part = mine.other GROUP BY 1, 2",
    ],
)
def test_values_out_of_different_rows_are_still_multiplied(text: str) -> None:
    found = groups(text, "brand", "type")
    assert set(found) == {(brand, type_) for brand in "ABC" for type_ in ("tin", "zinc", "brass")}


def test_groups_that_somebody_gives_are_taken_as_they_are() -> None:
    text = "SELECT brand, type, COUNT(*) AS n FROM sales JOIN parts USING (part) GROUP BY brand, type"
    found = groups(text, "brand", "type", keys={"brand": ["Z", "A"]})
    assert found == [(brand, type_) for brand in "AZ" for type_ in ("brass", "tin", "zinc")]


def test_the_plan_says_so() -> None:
    text = "SELECT brand, type, COUNT(*) AS n FROM sales JOIN parts USING (part) GROUP BY brand, type"
    assert "group by brand, type: as they occur together in the public table parts" in plan(text).explain()
