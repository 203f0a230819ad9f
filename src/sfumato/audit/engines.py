"""Made-up tables for plans that run in an engine.

An audit changes the rows of one private table, the first that the query names, or that names the units of its rows.
Whoever has rows there has two in every other private table, so a unit that comes or goes does so everywhere, and the
pair stays a pair of neighbours; where a table is owned through a key, it has two for every key. Public tables hold the
same rows throughout: every category, and the ends of every range, so that joins find partners.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..foreign_keys import in_order
from ..owners import Ownership, ownerships
from ..plan import Plan
from ..schema import Column, Schema, Table
from ..sources import connect, source
from ..sources.base import needed
from ..units import Unit

_OF_A_UNIT = 2  # rows in every other private table
_MOST_PUBLIC = 200  # rows


class Remembering:
    """A connection that opens an engine only for statements it has not been asked before. The data does not change, so
    an audit of a thousand runs waits for the engine once."""

    dialect = "duckdb"

    def __init__(self, tables: Mapping[str, tuple[Table, Mapping[str, Any]]]) -> None:
        self._tables = {name: (table, source(dict(raw))) for name, (table, raw) in tables.items()}
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._session: Any = None

    def hand_over(self, table: Table, cells: Any) -> None:
        """What a stage released is asked of from then on; nothing that was asked of that table is remembered."""
        if self._session is None:  # whose statements are new each time: it stays open
            self._session = connect(self._tables, threads=1)
        self._session.hand_over(table, cells)
        self._answers = {place: found for place, found in self._answers.items() if not _reads(found[0], table.name)}

    def run(self, tree: Any) -> Any:
        """The result of one statement."""
        stored = self._answers.get(id(tree))
        if stored is not None and stored[0] is tree:  # held here, so no other statement has its id
            return stored[1]
        opened = self._session or connect(self._tables, threads=1)
        try:
            answer = opened.run(tree)
        finally:
            if opened is not self._session:
                opened.close()
        self._answers[id(tree)] = tree, answer
        return answer

    def close(self) -> None:
        """Nothing is open between statements, but for plans in stages."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _reads(tree: Any, table: str) -> bool:
    return any(node.name == table for node in tree.find_all(needed("sqlglot").exp.Table))


def connection_for(plan: Plan[Any, Any], table: Table, raw: Mapping[str, Any]) -> Remembering:
    """What the plan runs on, of these raw columns."""
    if len(_schema(plan).tables) == 1 or table.name not in _schema(plan).tables:
        return Remembering({table.name: (table, raw)})
    return Remembering(_tables(_schema(plan), plan.unit, table, raw))


def read_table(plan: Plan[Any, Any]) -> Table:
    """The private table that an audit of this query changes, with the column that names its unit under the name that
    the plan's unit has."""
    schema = _schema(plan)
    text = " ".join(_texts(plan)).lower()
    words = [*re.findall(r"\b(?:from|join)\s+\W?(\w+)", text), *re.findall(r"\w+", text)]
    private = {name: table for name, table in schema.tables.items() if table.private}
    named = sorted((name for name in private if name.lower() in words), key=lambda name: words.index(name.lower()))
    table = private[named[0]] if named else schema.table()
    whose = ownerships(schema, plan.unit)
    while table.name in whose and (link := whose[table.name].link) is not None:
        table = schema.tables[link.table]
    own, protected = _naming(table.name, table, whose), plan.unit.column
    if own is None or protected is None or (own == protected and table.leads is None):
        return table
    columns = {protected if name == own else name: column for name, column in table.columns.items()}
    return replace(table, columns=columns, unit=protected, names=None, owner=None, references={})


def _naming(name: str, table: Table, whose: Mapping[str, Ownership]) -> str | None:
    """The column that names the unit of a table's rows, where the table says that there is one."""
    return table.unit if table.leads is None else whose[name].column


def _tables(
    schema: Schema, protects: Unit, changed: Table, raw: Mapping[str, Any]
) -> dict[str, tuple[Table, Mapping[str, Any]]]:
    """All tables of the schema around the one that the audit changes."""
    home, whose = schema.tables[changed.name], ownerships(schema, protects)
    unit = _naming(home.name, home, whose) or ""  # no column is called so
    renamed = {unit if name == changed.unit else name: cells for name, cells in raw.items()}
    tables: dict[str, tuple[Table, Mapping[str, Any]]] = {home.name: (home, renamed)}
    owners = list(dict.fromkeys(each for each in renamed.get(unit, ()) if each is not None))
    keys = {(link.table, link.key) for _, link in in_order(schema.tables)}
    ordered = [name for name in schema.tables if name not in whose or whose[name].link is None]
    ordered += [name for name, _ in in_order(schema.tables) if name not in ordered]
    for name in ordered:
        table = schema.tables[name]
        if name == home.name:
            continue
        if not table.private:
            count = min(max(len(column.of_kind.clean(column)) for column in table.columns.values()), _MOST_PUBLIC)
            tables[name] = table, {each: _cycle(column, count) for each, column in table.columns.items()}
            continue
        link = whose[name].link if name in whose else None
        own = _naming(name, table, whose)
        names = owners if link is None else _present(tables[link.table][1][link.key])
        people = [each for each in names for _ in range(_OF_A_UNIT)] if own is not None else []
        cells: dict[str, list[Any]] = {}
        for title, column in table.columns.items():
            cells[title] = people if title == own else _by_owner(column, len(names) if people else 0)
            if (name, title) in keys and title != own:  # one's keys are nobody else's
                cells[title] = [f"{owner} {place % _OF_A_UNIT}" for place, owner in enumerate(people)]
        tables[name] = table, cells
    return tables


def _present(keys: Any) -> list[Any]:
    """The keys of a table, each once."""
    return list(dict.fromkeys(each for each in keys if isinstance(each, str | int)))


def _by_owner(column: Column, owners: int) -> list[Any]:
    """The cells of every unit are the same two, whoever else is there; one of them twice where the column is constant
    per unit."""
    one, other = _cycle(column, _OF_A_UNIT)
    return [one, one if column.constant else other] * owners


def _cycle(column: Column, count: int) -> list[Any]:
    cells = column.of_kind.clean(column)
    return [cells[place % len(cells)] for place in range(count)]


def _schema(plan: Plan[Any, Any]) -> Schema:
    (schema,) = {each.schema: each.schema for each in _queries(plan)}.values()
    assert isinstance(schema, Schema)
    return schema


def _texts(plan: Plan[Any, Any]) -> list[str]:
    return [str(each.text) for each in _queries(plan)]


def _queries(plan: Plan[Any, Any]) -> Iterator[Any]:
    for query in (plan, *plan.children):
        if hasattr(query, "schema") and hasattr(query, "text"):
            yield query
