"""Whose each row is: the one law of ownership, which everything that reads, prices or prints asks.

The column that names the unit of a private table is the one that the unit itself names (`Unit("user:patient")`:
patient), or one that the table declares to hold the same names (`Table(..., unit="id", names="patient")`). So what is
protected is what is printed and charged. A table that names anything else is refused at birth: its visits would be
hidden one by one, and patients promised. Public things alone are compared.

A table may also be owned through a key, `Table(..., owner="order -> orders.id")`: its rows belong to whoever owns the
rows of `orders` that hold their key. Where the key leads to the very column that names the unit there, its cells are
names of units, and nothing needs to be looked up: the table is one that calls the column otherwise. (Then a name that
the other table does not hold is a unit's, too.) Else the rows are joined with the other table's (`query/relations/
bases.py`), and a row whose key is NULL or leads nowhere is nobody's, and left out.

Neighbours, where tables are owned through keys: without a unit, its rows are gone from the tables that name it, and
with them the rows of other tables whose key leads to nobody else. A row that leads to several units counts once for
each of them, as a row of its own: it stays while one of them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import PlanError
from .foreign_keys import ForeignKey
from .schema import Schema, Table
from .units import Unit

LEFT_OUT = "rows that lead to nobody are left out"
_BY_KEY = "if a key of it leads to a table that does (items of an order), declare it: owner='order -> orders.id'"


@dataclass(frozen=True)
class Ownership:
    """Whose the rows of a private table are.

    column  it names the unit of each row; or
    link    the key that leads to the rows of the owner
    """

    column: str
    link: ForeignKey | None = None


def owner(table: Table, unit: Unit) -> str | None:
    """The column that says whose each row is; None for a public table, and where each row is a unit."""
    if not table.private:
        return None
    if unit.column is None:
        if table.unit is not None:
            raise PlanError(
                f"the schema says that {table.unit!r} names the unit, but the unit given is a row: use "
                f"Unit('user:{table.unit}'), or leave the unit out of the schema to protect single rows"
            )
        if table.leads is not None:
            raise PlanError(
                f"the schema says that the rows of {table.name!r} belong to somebody, by {table.leads}, but the unit "
                "given is a row: use Unit('user:<column>'), or leave owner= out of the schema to protect single rows"
            )
        return None
    if table.leads is not None:
        return _key_of(table, table.leads, unit.column)
    if table.unit is not None and unit.column != (table.names or table.unit):
        raise PlanError(
            f"table {table.name!r} says that {table.unit!r} names the unit of its rows, and {unit.column!r} is the "
            f"unit that is protected: {_one_unit(table, unit.column)}"
        )
    column = table.unit or unit.column
    if column not in table.columns:
        raise PlanError(
            f"the private table {table.name!r} does not say whose its rows are, as it has no column {column!r}: "
            f"{_choices(table)}"
        )
    _check_names(table, column)
    return column


def _key_of(table: Table, link: ForeignKey, column: str) -> str:
    if column in table.columns and column != link.column:
        raise PlanError(
            f"table {table.name!r} has the column {column!r}, which names the unit that is protected, and says that "
            f"its rows are owned by {link}: leave owner= out, or protect another Unit"
        )
    return link.column


def _choices(table: Table) -> str:
    """What a table that says too little may say: several keys are not chosen among for anybody."""
    links = table.refers
    if not links:
        return f"name the column that does, Table(..., unit='...'), or make the table public; {_BY_KEY}"
    first, *others = links
    if not others:
        return f"say owner={str(first)!r} in place of the reference, if that is whose its rows are"
    named = " and ".join(link.column for link in links)
    return (
        f"{named} may all lead to owners, and one of them must be it: say owner={str(first)!r} (or another), and leave "
        "the others under references; whom these lead to is then not hidden by this table's rows"
    )


def naming(schema: Schema, unit: Unit) -> dict[str, tuple[str, ...]]:
    """The columns that say whose each row is, by private table: two where a unit is an edge or a node."""
    if unit.takes_rows:
        return {name: (column,) for name, column in owners(schema, unit).items()}
    for table in schema.tables.values():
        _check_columns(table, unit)
    return {name: unit.naming for name, table in schema.tables.items() if table.private and unit.naming}


def _check_columns(table: Table, unit: Unit) -> None:
    """A private table has the columns of a unit that takes more, or less, than whole rows."""
    if not table.private:
        return
    if table.leads is not None:
        raise PlanError(
            f"table {table.name!r} says that its rows are owned by {table.leads}, and {unit.of!r} is the unit that is "
            "protected: leave owner= out of the table, or protect Unit('user:<column>')"
        )
    if table.unit is not None:
        raise PlanError(
            f"table {table.name!r} says that {table.unit!r} names the unit of its rows, and {unit.of!r} is the unit "
            f"that is protected: leave unit= out of the table, or protect Unit('user:{table.unit}')"
        )
    for column in unit.columns:
        if column not in table.columns:
            raise PlanError(
                f"the private table {table.name!r} has no column {column!r}, which the unit {unit.of!r} names: give it "
                "one, or make the table public"
            )
        if column in unit.naming:
            _check_names(table, column)


def _check_names(table: Table, column: str) -> None:
    if not table.columns[column].of_kind.names_units or not table.columns[column].drops_nulls:
        raise PlanError(f"column {column!r} cannot name units: use a key, or a category that drops NULLs")


def owners(schema: Schema, unit: Unit) -> dict[str, str]:
    """The column that says whose each row is, by private table, itself or as a key; empty where each row is a unit. One
    of the columns is the unit's own: it is the one that a receipt speaks of."""
    units = [table.unit for table in schema.tables.values() if table.private and table.leads is None]
    if unit.column is not None and units and all(own not in (None, unit.column) for own in units):
        raise PlanError(
            f"the unit that is protected is {unit.column!r}, and no private table has it, as their units are named by "
            f"{', '.join(map(repr, dict.fromkeys(units)))}: protect Unit('user:{units[0]}'), or call a column "
            f"{unit.column!r}"
        )
    columns = {name: owner(table, unit) for name, table in schema.tables.items()}
    return {name: column for name, column in columns.items() if column is not None}


def ownerships(schema: Schema, unit: Unit) -> dict[str, Ownership]:
    """Whose the rows of each private table are; empty where each row is a unit.

    Keys lead to private tables and in no circle (`foreign_keys`), so every chain ends at a table that names the unit.
    """
    columns, resolved = owners(schema, unit), dict[str, Ownership]()
    for name in columns:
        _resolve(name, schema.tables, columns, resolved)
    return {name: resolved[name] for name in columns}


def _resolve(
    name: str, tables: Mapping[str, Table], columns: Mapping[str, str], resolved: dict[str, Ownership]
) -> Ownership:
    if name in resolved:
        return resolved[name]
    link = tables[name].leads
    if link is not None and _resolve(link.table, tables, columns, resolved) == Ownership(link.key):
        link = None  # the key's cells are names of units
    resolved[name] = Ownership(columns[name], link)
    return resolved[name]


def other_names(schema: Schema, unit: Unit) -> dict[str, str]:
    """The column that names the unit, of the tables that call it otherwise than the unit does."""
    if not unit.takes_rows:
        return {name: columns[0] for name, columns in naming(schema, unit).items() if columns != unit.naming}
    return {
        name: each.column
        for name, each in ownerships(schema, unit).items()
        if each.link is None and each.column != unit.column
    }


def paths(schema: Schema, unit: Unit) -> dict[str, str]:
    """What else there is to say of whose rows are, in words, by table: which key leads to the unit through which
    tables, and whom the table does not hide though it holds keys that lead to them."""
    words: dict[str, list[str]] = {}
    resolved = ownerships(schema, unit) if unit.takes_rows else {}
    for name, ownership in resolved.items():
        through, link = list[str](), ownership.link
        while link is not None:
            through.append(link.table)
            link = resolved[link.table].link
        if through:
            words[name] = [f"{ownership.column} leads to it through {' and '.join(through)}, and {LEFT_OUT}"]
    for name, table in schema.tables.items():
        if others := [link.column for link in table.refers if table.private and schema.tables[link.table].private]:
            words.setdefault(name, []).append(f"whom {' or '.join(others)} leads to is not hidden")
    return {name: "; ".join(each) for name, each in words.items()}


def _one_unit(table: Table, column: str) -> str:
    if column in table.columns:
        return f"give the table unit={column!r}, or protect Unit('user:{table.unit}')"
    return f"if the cells of {table.unit!r} are the same names, declare that with names={column!r}; {_BY_KEY}"
