"""Tables that are owned through keys: what may be declared, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato import record
from sfumato.errors import ArgumentError, PlanError
from sfumato.foreign_keys import linked_columns
from sfumato.noise import SeededBits
from sfumato.openings import ENGINE
from sfumato.owners import Ownership, naming, other_names, owners, ownerships, paths
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.rows import Rows
from sfumato.schema import Schema, Table, category, key, real, whole
from sfumato.units import Unit
from tests.query.still import Still

PERSON = Unit("user:person")
PEOPLE = Table({"person": key(), "age": whole(0, 120)}, unit="person")
ORDERS = Table({"id": key(), "buyer": key()}, owner="buyer -> people.person")
ITEMS = Table({"order": key(), "item": key(), "price": real(0, 9)}, owner="order -> orders.id")
NOTES = Table({"item": key(), "stars": whole(1, 5)}, owner="item -> items.item")
CHAIN = Schema({"notes": NOTES, "items": ITEMS, "people": PEOPLE, "orders": ORDERS})
PAID = {"id": key(), "sender": key(), "receiver": key(), "amount": real(0, 9)}
ACCOUNTS = Table({"id": key(), "person": key()}, unit="person")


def test_a_chain_ends_at_the_first_table_that_names_the_unit() -> None:
    whose = ownerships(CHAIN, PERSON)
    assert whose["people"] == Ownership("person")
    assert whose["orders"] == Ownership("buyer")  # the key leads to names of units: nothing is looked up
    assert whose["items"] == Ownership("order", ITEMS.leads) and whose["notes"] == Ownership("item", NOTES.leads)
    assert owners(CHAIN, PERSON) == {"notes": "item", "items": "order", "people": "person", "orders": "buyer"}
    assert other_names(CHAIN, PERSON) == {"orders": "buyer"}
    assert paths(CHAIN, PERSON) == {
        "notes": "item leads to it through items and orders, and rows that lead to nobody are left out",
        "items": "order leads to it through orders, and rows that lead to nobody are left out",
    }


def test_it_is_written_in_one_way_and_kept() -> None:
    assert replace(ITEMS, owner="order->orders.id") == ITEMS and ITEMS.owner == "order -> orders.id"
    assert record.parse(record.canonical(CHAIN), Schema) == CHAIN
    assert "items (private, owned by order -> orders.id)" in str(CHAIN)
    assert b"owner" not in record.canonical(PEOPLE) and b"references" not in record.canonical(ITEMS)
    table = Table(PAID, owner="sender -> accounts.id", references={"receiver": "accounts.id"})
    assert record.parse(record.canonical(table), Table) == table and "receiver refers to accounts.id" in table.title


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: replace(ITEMS, owner="order"), "'order -> orders.id'"),
        (lambda: replace(ITEMS, owner="order -> orders"), "'order -> orders.id'"),
        (lambda: replace(ITEMS, owner="order -> a.b.c"), "'order -> orders.id'"),
        (lambda: replace(ITEMS, owner=7), "owner"),
        (lambda: replace(ITEMS, owner="none -> orders.id"), "one of the columns 'order'"),
        (lambda: replace(ITEMS, owner="price -> orders.id"), "a key column"),
        (lambda: replace(ITEMS, unit="item"), "unit='item' alone"),
        (lambda: replace(ITEMS, private=False), "None for a public table"),
        (lambda: replace(ITEMS, references={"price": "orders.id"}), "key columns of the table: order, item"),
        (lambda: replace(ITEMS, references={"item": "orders"}), "'accounts.id'"),
        (lambda: replace(ITEMS, references=["item"]), "targets by column"),
    ],
)
def test_what_a_table_cannot_mean_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"items": ITEMS}, "leads to no table of the schema: its tables are 'items'"),
        ({"items": ITEMS, "orders": Table({"number": key()})}, "leads to no column of 'orders'"),
        ({"items": ITEMS, "orders": Table({"id": whole(0, 9)})}, "make orders.id a key"),
        ({"items": ITEMS, "orders": Table({"id": category(["a"])})}, "make orders.id a key"),
        ({"items": ITEMS, "orders": Table({"id": key()}, private=False)}, "'orders' is public"),
        ({"items": ITEMS, "orders": replace(ORDERS, owner="buyer -> items.item")}, "lead in a circle"),
        ({"items": replace(ITEMS, owner="order -> items.item")}, "lead in a circle"),
        ({"items": replace(ITEMS, owner=None, references={"item": "none.id"})}, "leads to no table"),
    ],
)
def test_a_key_leads_to_a_private_table_of_the_schema_and_in_no_circle(tables: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Schema(tables)


def test_the_end_of_a_chain_names_the_unit_that_is_protected() -> None:
    ends = Schema({"items": ITEMS, "orders": Table({"id": key(), "visit": key()}, unit="visit"), "people": PEOPLE})
    with pytest.raises(PlanError, match="'visit' names the unit of its rows, and 'person' is the unit"):
        owners(ends, PERSON)
    nobody = Schema({"items": ITEMS, "orders": Table({"id": key()}), "people": PEOPLE})
    with pytest.raises(PlanError, match="'orders' does not say whose its rows are"):
        owners(nobody, PERSON)
    with pytest.raises(PlanError, match="the unit given is a row"):
        owners(Schema({"items": ITEMS, "orders": Table({"id": key()})}), Unit())
    with pytest.raises(PlanError, match="leave owner= out"):
        naming(CHAIN, Unit("edge:order,item"))
    own = replace(ITEMS, columns={**ITEMS.columns, "person": key()})
    with pytest.raises(PlanError, match="has the column 'person', which names the unit"):
        owners(Schema({**CHAIN.tables, "items": own}), PERSON)
    unnamed = Schema({"items": ITEMS, "orders": Table({"id": key(), "p": key()}, unit="p", names="person")})
    with pytest.raises(PlanError, match="no private table has it"):
        owners(unnamed, PERSON)


def test_of_two_keys_to_owners_one_is_declared_to_be_it() -> None:
    both = {"sender": "accounts.id", "receiver": "accounts.id"}
    with pytest.raises(PlanError, match=r"sender and receiver may all lead to owners.*owner='sender -> accounts.id'"):
        owners(Schema({"paid": Table(PAID, references=both), "accounts": ACCOUNTS}), PERSON)
    with pytest.raises(PlanError, match=r"say owner='sender -> accounts.id' in place of the reference"):
        owners(Schema({"paid": Table(PAID, references={"sender": "accounts.id"}), "accounts": ACCOUNTS}), PERSON)
    paid = Table(PAID, owner="sender -> accounts.id", references={"receiver": "accounts.id"})
    schema = Schema({"paid": paid, "accounts": ACCOUNTS})
    told = (
        "; in paid sender leads to it through accounts, and rows that lead to nobody are left out; whom receiver leads "
        "to is not hidden"
    )
    data = {name: {column: [] for column in table.columns} for name, table in schema.tables.items()}
    assert Private("d", data, unit=PERSON, schema=schema).hides == f"{PERSON}{told}"
    public = Schema({**schema.tables, "paid": Table(PAID, owner="sender -> accounts.id")})
    assert "is not hidden" not in paths(public, PERSON)["paid"]


def test_the_ledger_remembers_the_whole_key() -> None:
    data = {name: {column: [] for column in table.columns} for name, table in CHAIN.tables.items()}
    assert Private("d", data, unit=PERSON, schema=CHAIN).owners["items"] == "order -> orders.id"


def test_rows_of_a_table_that_is_owned_through_a_key_are_not_read_alone() -> None:
    with pytest.raises(PlanError, match=r"owned by order -> orders.id: .* SQL follows the key"):
        Rows.read(ITEMS, {"order": [], "item": [], "price": []}, PERSON)
    with pytest.raises(PlanError, match="the unit given is a row"):
        Rows.read(ITEMS, {"order": [], "item": [], "price": []}, Unit())
    with pytest.raises(PlanError, match="owned by buyer"):
        Rows.read(ORDERS, {"id": [], "buyer": []}, Unit("user:buyer"))


def test_columns_that_meet_along_keys_are_listed_together() -> None:
    returns = Table({"order": key()}, owner="order -> orders.id")
    tables = {**CHAIN.tables, "returns": returns}
    assert sorted(linked_columns(tables)) == [
        [("items", "item"), ("notes", "item")],
        [("items", "order"), ("orders", "id"), ("returns", "order")],
        [("orders", "buyer"), ("people", "person")],
    ]
    assert linked_columns({"people": PEOPLE}) == []


def test_made_up_rows_lead_to_made_up_owners() -> None:
    cells = CHAIN.make_up(300, SeededBits(3).words)
    for name, link in (("orders", ORDERS.leads), ("items", ITEMS.leads), ("notes", NOTES.leads)):
        assert link is not None
        there = {each for each in cells[link.table][link.key] if each is not None}
        led = [each in there for each in cells[name][link.column]]
        assert 200 < sum(led) <= 300, name
    people = Schema({"people": PEOPLE})
    same = people.make_up(50, SeededBits(4).words)["people"], PEOPLE.make_up(50, SeededBits(4).words)
    assert repr(same[0]) == repr(same[1])


def test_a_rehearsal_counts_rows_that_are_owned_through_keys() -> None:
    data = {name: {column: [] for column in table.columns} for name, table in CHAIN.tables.items()}
    private = Private("d", data, unit=PERSON, schema=CHAIN)
    opened = private.rehearsal(300, SeededBits(5).words, ENGINE)
    plan = sql("SELECT COUNT(*) AS n FROM notes", private, epsilon=1, limits=Limits(rows=50))
    answer: Any = plan.finish(plan._run(opened, SimpleNamespace(noise=Still())))  # type: ignore[arg-type]
    opened.close()
    assert answer["n"][0] > 100


def test_a_project_declares_keys(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    from sfumato.project import open_project

    (tmp_path / "sfumato.yaml").write_text(PROJECT, encoding="utf-8")
    project = open_project(tmp_path)
    assert project.schema.tables["items"].owner == "order -> orders.id"
    assert "in items order leads to it through orders" in project.hides
    plan = project.plan('SELECT SUM(price) AS s FROM orders, items WHERE id = "order"', epsilon=1, limits={"rows": 1})
    assert plan.unit == PERSON and "in items order leads to it" in plan.hides


PROJECT = """
sfumato: 1
name: shop
unit: user:person
tables:
  people: {source: people.csv, columns: {person: key}}
  orders: {source: orders.csv, owner: buyer -> people.person, columns: {id: key, buyer: key}}
  items:
    source: items.csv
    owner: order -> orders.id
    references: {giver: people.person}
    columns: {order: key, giver: key, price: {type: real, lower: 0, upper: 9}}
budget: {total: {epsilon: 3}}
"""
