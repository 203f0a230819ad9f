"""Faults in who a row is said to belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato import owners
from sfumato.audit import seams
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


@FAULTS.fault("a view is read like a table", by=attacks("O4"))
def any_name() -> None:
    def take_any_name(_: Any) -> Any:
        return lambda engine, alias, called, table, columns: f"{quoted(alias)}.main.{quoted(called)}"

    swap_everywhere(catalogue.stored, take_any_name)
