"""Made-up tables for plans that run in an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan import Plan
from ..rows import Rows
from ..schema import Table
from ..sources import connect, source


class Remembering:
    """A connection that opens an engine only for statements it has not been asked before. The data does not change, so
    an audit of a thousand runs waits for the engine once."""

    dialect = "duckdb"

    def __init__(self, table: Table, raw: Mapping[str, Any]) -> None:
        self._tables = {table.name: (table, source(dict(raw)))}
        self._answers: dict[int, tuple[Any, Any]] = {}

    def run(self, tree: Any) -> Any:
        """The result of one statement."""
        known = self._answers.get(id(tree))
        if known is not None and known[0] is tree:  # held here, so no other statement has its id
            return known[1]
        opened = connect(self._tables, threads=1)
        try:
            answer = opened.run(tree)
        finally:
            opened.close()
        self._answers[id(tree)] = tree, answer
        return answer

    def close(self) -> None:
        """Nothing is open between statements."""


def data_for(plan: Plan[Any], table: Table, raw: Mapping[str, Any]) -> Any:
    """What the plan runs on, of these raw columns: rows, or a connection."""
    return Remembering(table, raw) if plan.opens == "engine" else Rows.read(table, raw, plan.unit)
