"""Whose each row is: the one law of ownership, which everything that reads, prices or prints asks.

The column that names the unit of a private table is the one that the unit itself names (`Unit("user:patient")`:
patient), or one that the table declares to hold the same names (`Table(..., unit="id", names="patient")`). So what is
protected is what is printed and charged. A table that names anything else is refused at birth: its visits would be
hidden one by one, and patients promised. Public things alone are compared.
"""

from __future__ import annotations

from .errors import PlanError
from .schema import Schema, Table
from .units import Unit

_NOT_FOLLOWED = "whose a row is through another table (items of an order, orders of a customer) is not followed"


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
        return None
    if table.unit is not None and unit.column != (table.names or table.unit):
        raise PlanError(
            f"table {table.name!r} says that {table.unit!r} names the unit of its rows, and {unit.column!r} is the "
            f"unit that is protected: {_one_unit(table, unit.column)}"
        )
    column = table.unit or unit.column
    if column not in table.columns:
        raise PlanError(
            f"the private table {table.name!r} does not say whose its rows are, as it has no column {column!r}: name "
            f"the column that does, Table(..., unit='...'), or make the table public; {_NOT_FOLLOWED}"
        )
    _check_names(table, column)
    return column


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
    """The column that says whose each row is, by private table; empty where each row is a unit. One of the columns is
    the unit's own: it is the one that a receipt speaks of."""
    units = [table.unit for table in schema.tables.values() if table.private]
    if unit.column is not None and units and all(own not in (None, unit.column) for own in units):
        raise PlanError(
            f"the unit that is protected is {unit.column!r}, and no private table has it, as their units are named by "
            f"{', '.join(map(repr, dict.fromkeys(units)))}: protect Unit('user:{units[0]}'), or call a column "
            f"{unit.column!r}"
        )
    columns = {name: owner(table, unit) for name, table in schema.tables.items()}
    return {name: column for name, column in columns.items() if column is not None}


def other_names(schema: Schema, unit: Unit) -> dict[str, str]:
    """The same, of the tables that call the column otherwise than the unit does."""
    return {name: columns[0] for name, columns in naming(schema, unit).items() if columns != unit.naming}


def _one_unit(table: Table, column: str) -> str:
    if column in table.columns:
        return f"give the table unit={column!r}, or protect Unit('user:{table.unit}')"
    return (
        f"if the cells of {table.unit!r} are the same names, declare that with names={column!r}; {_NOT_FOLLOWED}: put "
        "the column into this one"
    )
