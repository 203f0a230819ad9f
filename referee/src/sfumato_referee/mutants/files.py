"""Files read as a first version reads them. No curator is given one but by an attack."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sfumato.audit import seams
from sfumato.openings import Tables
from sfumato.private import Private
from sfumato.schema import Table
from sfumato.sources import Connection, Csv

from .overriding import overriding


@dataclass(frozen=True)
class SchemaOrder(Csv):
    """A file without a header whose columns are taken to be the schema's, one after the other: with one left out, all
    later ones are read one place off, the unit's among them."""

    def compare(self, table: Table) -> None:
        """Nobody looks."""

    def places(self, table: Table) -> tuple[int, dict[str, int]]:
        names = tuple(self.first_row() or ()) if self.header else tuple(table.columns)
        return len(names), {column: names.index(column) for column in table.columns}


class _Opened(Tables):
    """Tables whose engine holds every row, also where it is to hold none."""

    def connect(self, unread: Collection[str] = ()) -> Connection:
        return super().connect()


@overriding(seams.TABLES, lambda tables: property(lambda self: _Opened(**vars(tables.fget(self)))))
class Eager(Private):
    """Data that is opened whole where a query is only to be tried for its fit, before anybody has paid."""
