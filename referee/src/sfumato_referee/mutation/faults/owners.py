"""Faults in who a row is said to belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from sfumato import owners
from sfumato.audit import seams
from sfumato.query.relations.bases import named, of
from sfumato.sources import catalogue
from sfumato.sources.base import quoted

from ..mutant import Shelf, attacks, plant, swap_everywhere

FAULTS = Shelf("SQL", needs="duckdb")


@FAULTS.fault("a table's own unit is taken, whichever is protected", by=attacks("O2"))
def own_unit() -> None:
    def lax(table: Any, unit: Any) -> Any:
        return table.unit or unit.column if table.private and unit.column is not None else None

    swap_everywhere(owners.owner, lambda _: lax)


@FAULTS.fault("texts keep the collation of their file", by=attacks("O3"))
def collated() -> None:
    def collate(cell: Any) -> Any:
        def with_collation(raw: str, physical: str, present: str = "") -> Any:
            cell_in_sql = cell(raw, physical, present)
            return replace(cell_in_sql, sql=raw) if physical == "VARCHAR" else cell_in_sql

        return with_collation

    plant(seams.SOURCE_CELL, collate)


@FAULTS.fault("a chain of keys loses its owner", by=attacks("O6"))
def owner_lost() -> None:
    def belong_to_the_key(unit_of: Any) -> Any:
        return lambda owned: unit_of(owned) if owned.link is None else of("_owners", "_key")

    plant(seams.UNIT_OF_ROWS, belong_to_the_key)


@FAULTS.fault("a key of several people belongs to the first of them", by=attacks("O6"))
def first_owner() -> None:
    def belong_to_the_first(pairs: Any) -> Any:
        def first(link: Any, schema: Any, whose: Any) -> Any:
            every = pairs(link, schema, whose).subquery("_every")
            least = named(exp.Min(this=of("_every", "_unit")), "_unit")
            key = of("_every", "_key")
            return exp.Select().from_(every).select(least, named(key, "_key")).group_by(key)

        return first

    plant(seams.PAIRS_OF_KEYS, belong_to_the_first)


@FAULTS.fault("a view is read like a table", by=attacks("O4"))
def any_name() -> None:
    def take_any_name(_: Any) -> Any:
        return lambda engine, alias, called, table, columns: f"{quoted(alias)}.main.{quoted(called)}"

    swap_everywhere(catalogue.stored, take_any_name)
