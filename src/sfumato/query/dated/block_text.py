"""The text of a query for one block: its private table becomes the rows of that block.

The text is spliced, not written anew, so the same query gives the same parts under every version of the parser.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from ...schema import Schema, Table
from ...units import Unit
from ..parsing import parsed
from ..refusal import QueryError
from .time_blocks import TimeBlock

_TIMES = {"date": "DATE '{}'", "moment": "TIMESTAMP '{} 00:00:00'"}


@dataclass(frozen=True)
class DatedQuery:
    """A query of one private table, whose rows are dated by a column.

    spans     where the table's name stands in the text, with the alias that it has there or gets
    mentions  does the query itself speak of the dates? Then what is publicly known of them, and with it bounds and
              noise, may differ from block to block
    """

    text: str
    table: Table
    column: str
    unit: Unit
    spans: tuple[tuple[int, int, str], ...]
    mentions: bool

    @classmethod
    def of(cls, text: str, schema: Schema, unit: Unit, column: str) -> DatedQuery:
        tree = parsed(text)
        named = {name.lower(): table for name, table in schema.tables.items()}
        ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        private: dict[str, Table] = {}
        spans = []
        for node in tree.find_all(exp.Table):
            name = node.name.lower()
            table = named.get(name)
            if name in ctes:
                if table is not None:
                    raise QueryError(f"The query calls a part of its own {node.name!r}, like a table.", _OTHER, node)
                continue
            if table is None or node.db or node.catalog:
                raise QueryError(
                    f"{node.name!r} is no table of the schema, and only tables are cut into blocks.",
                    "read the table itself: write out what a view does",
                    node,
                )
            if table.private:
                private[name] = table
                place = node.this.meta
                alias = "" if node.alias else f" AS {_quoted(node.name)}"
                spans.append((place["start"], place["end"] + 1, alias))
        if len(private) != 1:
            names = ", ".join(table.name for table in private.values()) or "none"
            raise QueryError(
                f"A series reads one private table, whose rows have the days, and this query reads {names}.",
                "read one private table; public ones may be joined with it",
                tree,
            )
        (table,) = private.values()
        if table.column(column).type not in _TIMES:
            raise QueryError(
                f"Column {column!r} of {table.name} is {table.column(column).type}, and blocks are made of days.",
                "name a column of dates or moments",
                tree,
            )
        mentions = any(node.name.lower() == column.lower() for node in tree.find_all(exp.Column, exp.Identifier))
        return cls(text, table, column, unit, tuple(spans), mentions)

    def of_block(self, block: TimeBlock, start: dt.date, most: int | None) -> str:
        """The text for the rows of one block; where a unit counts in so many blocks at `most`, for rows of the first
        ones that it has since `start`."""
        pieces, end = [], 0
        rows = self._rows(block, start, most)
        for first, after, alias in sorted(self.spans):
            pieces += [self.text[end:first], f"({rows}){alias}"]
            end = after
        return "".join([*pieces, self.text[end:]])

    def _rows(self, block: TimeBlock, start: dt.date, most: int | None) -> str:
        table, column = _quoted(self.table.name), _quoted(self.column)
        inside = f"{column} >= {self._moment(block.first)} AND {column} < {self._moment(block.after)}"
        if most is None:
            return f"SELECT * FROM {table} WHERE {inside}"
        number, alias = self._fresh("nth_block"), _quoted("blocks_of_unit")
        period = f"DATE_TRUNC('{block.level}', {column})"
        rank = f"DENSE_RANK() OVER (PARTITION BY {_quoted(self.owner)} ORDER BY {period}) AS {number}"
        since = f"{column} >= {self._moment(start)} AND {column} < {self._moment(block.after)}"
        numbered = f"SELECT *, {rank} FROM {table} WHERE {since}"
        return f"SELECT * FROM ({numbered}) AS {alias} WHERE {inside} AND {number} <= {most}"

    @property
    def owner(self) -> str:
        """The column that names the unit of each row."""
        if self.unit.column is None or self.table.leads is not None or self.table.unit is None:
            raise QueryError(
                f"Whose each row of {self.table.name} is does not stand in a column of it, so that nobody can tell in "
                "how many blocks a unit is.",
                "leave most out: then a unit may be in every block",
            )
        return self.table.unit

    def _moment(self, day: dt.date) -> str:
        return _TIMES[self.table.column(self.column).type].format(day.isoformat())

    def _fresh(self, name: str) -> str:
        taken = {column.lower() for column in self.table.columns}
        while name in taken:
            name += "s"
        return _quoted(name)


_OTHER = "give it another name"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
