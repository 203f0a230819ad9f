"""O5: rows before the charge. What would fail with any rows is refused unpaid, so sources are looked at before anybody
pays. A query that is never paid for counts there what it is shown: of every source, private rows are none.

The query also says of the private table that its rows tell which groups there are, as those of public tables do; whose
rows are public is the schema's to say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import BudgetError
from sfumato.ledger.memory import MemoryLedger
from sfumato.private import Private
from sfumato.query import Limits
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import Csv
from sfumato.sources.base import needed
from sfumato.units import Unit

from ..mutants.files import Eager
from .verdict import Verdict

_PERSON = Unit("user:who")
_PUBLIC = Table({"ward": key()}, private=False)
_SCHEMA = Schema({"t": Table({"who": key(), "x": real(0, 9)}, unit="who"), "wards": _PUBLIC})


@dataclass(frozen=True, kw_only=True)
class EarlyLook(Sql):
    """A query that counts the rows of all tables where it is asked whether the engine takes it. No ledger writes it."""

    rows: ClassVar[dict[str, int]] = {}

    @property
    def hash(self) -> str:
        return "an early look"

    @property
    def lists(self) -> frozenset[str]:
        return frozenset(self.schema.tables)

    def bind(self, connection: Any) -> None:
        for table in self.schema.tables:
            statement = needed("sqlglot").parse_one(f"SELECT COUNT(*) FROM {table}", dialect="duckdb")
            self.rows[table] = int(connection.run(statement).column(0)[0].as_py())


def attack(door: type[Private] = Private, rows: int = 1000) -> Verdict:
    plan = EarlyLook(
        text="SELECT COUNT(*) AS n FROM t", schema=_SCHEMA, protects=_PERSON, epsilon=1, limits=Limits(rows=1)
    )
    shown: dict[str, int] = {}
    public = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, data in _sources(Path(folder), rows):
            ledger = MemoryLedger({"d": Budget(epsilon=0.5)})
            curator = Curator(
                door("d", {"t": data, "wards": {"ward": ["A", "B"]}}, unit=_PERSON, schema=_SCHEMA), ledger
            )
            for ask in (curator.quote, curator.release):
                EarlyLook.rows.clear()
                with suppress(BudgetError):  # half of what it costs is there, so it is never paid
                    ask(plan)
                shown[name] = max(shown.get(name, 0), EarlyLook.rows.get("t", rows))
                public += EarlyLook.rows.get("wards", 0)
    most = max(shown.values())
    words = (
        f"of {len(shown)} kinds of sources with {rows} private rows, a query that is not paid for sees {most} at most."
    )
    return Verdict("O5", most > 0 or not public, words, {"most": float(most), "kinds": float(len(shown))})


def _sources(folder: Path, rows: int) -> Iterator[tuple[str, Any]]:
    arrow = needed("pyarrow")
    columns: dict[str, list[Any]] = {
        "who": [f"p{row}" for row in range(rows)],
        "x": [float(row % 9) for row in range(rows)],
    }
    table = arrow.table(columns)
    for encoding in ("utf-8", "utf-16"):
        text = "".join(["who,x\n", *(f"p{row},{row % 9}\n" for row in range(rows))])
        (folder / f"{encoding}.csv").write_text(text, encoding=encoding)
        yield f"csv, {encoding}", Csv(folder / f"{encoding}.csv", encoding=encoding)
    needed("pyarrow.parquet").write_table(table, folder / "t.parquet")
    yield "parquet", folder / "t.parquet"
    yield "parquet, several", folder / "*.parquet"
    with needed("duckdb").connect(str(folder / "t.duckdb")) as engine:
        engine.register("given", table)
        engine.execute("CREATE TABLE t AS SELECT * FROM given")
    yield "duckdb", folder / "t.duckdb"
    yield "columns", columns
    yield "arrow", table


CONTROL = Eager
