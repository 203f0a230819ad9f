"""Whose a row is through another table: a key of its own that leads to a key there.

    "l_orderkey -> orders.o_orderkey"

says that a row belongs to whoever owns the rows of `orders` that hold its key. All of it is public: declared in a
schema, and checked there before there is any data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from . import checks
from .errors import PlanError

ARROW = "->"
_FORM = "a column of this table and the column that it leads to, such as 'order -> orders.id'"


class ForeignKey(NamedTuple):
    """A column of one table that holds cells of a column of another."""

    column: str
    table: str
    key: str

    @property
    def target(self) -> str:
        return f"{self.table}.{self.key}"

    def __str__(self) -> str:
        return f"{self.column} {ARROW} {self.target}"


class KeyedTable(Protocol):
    """What is asked of a table of a schema."""

    @property
    def columns(self) -> Mapping[str, Any]: ...
    @property
    def private(self) -> bool: ...
    @property
    def leads(self) -> ForeignKey | None: ...
    @property
    def refers(self) -> tuple[ForeignKey, ...]: ...


def read_owner(text: Any) -> ForeignKey:
    """'column -> table.key', as a table declares whose its rows are."""
    checks.label(text, "owner")
    column, arrow, target = (part.strip() for part in text.partition(ARROW))
    if not arrow or not column:
        raise checks.refuse("owner", text, _FORM)
    return read_reference(column, target, "owner")


def read_reference(column: str, target: Any, name: str) -> ForeignKey:
    """'table.key', where a column of ours leads."""
    checks.label(target, name)
    table, dot, key = (part.strip() for part in target.partition("."))
    if not dot or not table or not key or "." in key or ARROW in target:
        raise checks.refuse(name, target, _FORM if name == "owner" else "a table and its column, such as 'accounts.id'")
    return ForeignKey(column, table, key)


def check_keys(tables: Mapping[str, KeyedTable]) -> None:
    """Every declared key leads to a column of these tables, and whoever owns rows is found at the end of a chain."""
    for name, table in tables.items():
        for link in table.refers:
            _check_target(name, link, tables)
        if table.leads is None:
            continue
        target = _check_target(name, table.leads, tables)
        if not target.private:
            raise PlanError(
                f"the rows of {name!r} belong to nobody by {table.leads}, as {table.leads.table!r} is public: name a "
                "private table, or the column that names the unit, Table(..., unit='...')"
            )
        passed = [name]
        for link in chain(name, tables):
            if link.table in passed:
                raise PlanError(
                    f"the keys of {', '.join(map(repr, passed))} lead in a circle, so nobody owns their rows: one of "
                    "these tables must name the unit itself, Table(..., unit='...')"
                )
            passed.append(link.table)


def _check_target(name: str, link: ForeignKey, tables: Mapping[str, KeyedTable]) -> KeyedTable:
    if link.table not in tables:
        names = ", ".join(map(repr, tables))
        raise PlanError(f"{link} of table {name!r} leads to no table of the schema: its tables are {names}")
    target = tables[link.table]
    if link.key not in target.columns:
        names = ", ".join(map(repr, target.columns))
        raise PlanError(f"{link} of table {name!r} leads to no column of {link.table!r}: its columns are {names}")
    if not is_key(target.columns[link.key]):
        raise PlanError(
            f"{link} of table {name!r} leads to a column that is no key: values that are clamped, or stand for others, "
            f"would mix rows up; make {link.target} a key"
        )
    return target


def is_key(column: Any) -> bool:
    """Are its cells told apart as they are? Others are clamped, or listed, or stand for NULLs."""
    return bool(column.of_kind.names_units and not column.of_kind.is_public)


def chain(name: str, tables: Mapping[str, KeyedTable]) -> Iterator[ForeignKey]:
    """The keys that lead from a table to its owners, one after the other; in a circle it never ends."""
    link = tables[name].leads
    while link is not None:
        yield link
        link = tables[link.table].leads if link.table in tables else None


def in_order(tables: Mapping[str, KeyedTable]) -> list[tuple[str, ForeignKey]]:
    """The tables that are owned through keys, with these: each after those that it leads to."""
    links = {name: table.leads for name, table in tables.items() if table.leads is not None}
    return sorted(links.items(), key=lambda pair: len(list(chain(pair[0], tables))))


def linked_columns(tables: Mapping[str, KeyedTable]) -> list[list[tuple[str, str]]]:
    """The columns, as (table, column), whose cells are compared with each other by declared keys: those of one list."""
    groups: list[set[tuple[str, str]]] = []
    for name, table in tables.items():
        if table.leads is None or table.leads.table not in tables:
            continue
        pair = {(name, table.leads.column), (table.leads.table, table.leads.key)}
        near = [group for group in groups if group & pair]
        groups = [group for group in groups if group not in near] + [pair.union(*near)]
    return [sorted(group) for group in groups]
