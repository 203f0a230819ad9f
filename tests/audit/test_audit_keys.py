"""Audits of queries over tables that are owned through keys: a unit comes and goes along the chain."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("duckdb")

from sfumato.audit.engines import connection_for, read_table
from sfumato.query import Limits, sql
from sfumato.schema import Schema, Table, category, key, real
from sfumato.units import Unit

PERSON = Unit("user:person")
SCHEMA = Schema(
    {
        "people": Table({"person": key(), "sex": category(["f", "m"])}, unit="person"),
        "orders": Table({"id": key(), "buyer": key()}, owner="buyer -> people.person"),
        "items": Table({"order": key(), "price": real(0, 9)}, owner="order -> orders.id"),
    }
)


def _asked(text: str) -> Any:
    return sql(text, SCHEMA, unit=PERSON, epsilon=1, limits=Limits(rows=100))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("SELECT COUNT(*) AS n FROM items", "orders"),
        ('SELECT COUNT(*) AS n FROM items JOIN orders ON id = "order"', "orders"),
        ("SELECT COUNT(*) AS n FROM people, orders WHERE buyer = person", "people"),
    ],
)
def test_an_audit_changes_the_table_that_names_the_unit(text: str, changed: str) -> None:
    table = read_table(_asked(text))
    assert table.name == changed and table.unit == "person" and table.owner is None


def test_what_is_owned_through_keys_comes_and_goes_with_its_owner() -> None:
    text = 'SELECT COUNT(*) AS n FROM people, orders, items WHERE buyer = person AND id = "order"'
    plan = _asked(text)
    table = read_table(plan)
    counts = []
    for people in (["a", "b"], ["a"], []):
        opened = connection_for(plan, table, {"person": people, "sex": ["f"] * len(people)})
        (row,) = opened.run(plan._statements["sums"]).to_pylist()
        counts.append(row["s0"])
    assert counts[0] == 2 * counts[1] > 0 and counts[2] == 0  # two orders each, with two items each
    items = _asked("SELECT COUNT(*) AS n FROM items")
    raw = {"id": ["1", "2", None, "2"], "person": ["a", "a", "b", "b"]}
    opened = connection_for(items, read_table(items), raw)
    assert opened.run(items._statements["sums"]).num_rows == 1
