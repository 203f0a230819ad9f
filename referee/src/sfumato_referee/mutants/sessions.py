"""An engine's session gone wrong: whatever a file calls by the table's name is read, as the file compares and computes
it. Views are taken for tables, and a column's own collation says which texts are one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.schema import Table
from sfumato.sources import DuckDBTable, Source
from sfumato.sources.base import CLOSED, literal, needed, quoted
from sfumato.sources.duckdb import DUCKDB


class Trusting:
    """Tables of DuckDB files as they come, behind the same two methods."""

    dialect = "duckdb"

    def __init__(self, tables: Mapping[str, tuple[Table, Source]]) -> None:
        self._engine = needed("duckdb").connect(":memory:", config=CLOSED)
        for place, (name, (table, source)) in enumerate(tables.items()):
            assert isinstance(source, DuckDBTable)
            self._engine.execute(f"ATTACH {literal(source.file())} AS f{place} (READ_ONLY)")
            columns = ", ".join(map(quoted, table.columns))
            scan = f"f{place}.main.{quoted(source.table or name)}"
            self._engine.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT {columns} FROM {scan}")

    def run(self, tree: Any) -> Any:
        return self._engine.sql(DUCKDB.text(tree)).to_arrow_table()

    def close(self) -> None:
        self._engine.close()
