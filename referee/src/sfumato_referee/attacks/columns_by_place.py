"""O1: columns by place. A file without names, of which the schema leaves columns out, in all ways of writing it.

Whoever reads it one place off takes a visit for a patient: sums are then bounded per visit, and a patient with a
hundred visits moves them a hundred times as far as was paid for. So each way is either refused before anything is
charged, or the units that the engine sees are the patients, each with its own rows.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.ledger.memory import MemoryLedger
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import Csv, connect
from sfumato.sources.base import needed
from sfumato.units import Unit

from ..mutants.files import SchemaOrder
from .verdict import Verdict

USER = Unit("user:patient")
COLUMNS = {"visit": key(), "patient": key(), "ward": key(), "cost": real(0, 9)}
WRITTEN: tuple[dict[str, Any], ...] = (
    {},
    {"delimiter": ";"},
    {"delimiter": "\t", "quote": ""},
    {"encoding": "latin-1"},
    {"encoding": "utf-16"},
)


def attack(read: type[Csv] = Csv, patients: int = 100, visits: int = 100, written: int = len(WRITTEN)) -> Verdict:
    wrong: list[str] = []
    tried = answered = most = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, source, table in _ways(Path(folder), read, patients, visits, WRITTEN[:written]):
            tried += 1
            ending = _asked(source, table)
            if ending == "charged":
                wrong.append(f"{name}: refused after the charge")
            if ending != "answered":
                continue
            answered += 1
            units = _units(source, table)
            most = max(most, len(units))
            if units != {f"p{place}": visits for place in range(patients)}:
                wrong.append(f"{name}: {patients} patients are read as {len(units)} units")
    words = f"{len(wrong)} of {tried} ways to write a file down are read wrongly {wrong[:2]}; {answered} were answered."
    figures = {"ways": tried, "answered": answered, "wrong": len(wrong), "most units": most, "patients": patients}
    return Verdict("O1", bool(wrong) or not answered, words, figures)


def _ways(
    folder: Path, read: type[Csv], patients: int, visits: int, written: tuple[dict[str, Any], ...]
) -> Iterator[tuple[str, Csv, Table]]:
    """Each way of writing the file, of leaving a column out, and of telling the places, rightly or wrongly."""
    file = list(COLUMNS)
    cells = {
        "visit": [f"v{row}" for row in range(patients * visits)],
        "patient": [f"p{row % patients}" for row in range(patients * visits)],
        "ward": ["A;B,C" if row % 2 else "D" for row in range(patients * visits)],
        "cost": [str(row % 9) for row in range(patients * visits)],
        "added": ["x"] * (patients * visits),
    }
    orders = {
        "as it was": file,
        "with a column more": ["added", *file],
        "with one less": file[1:],
        "turned": file[::-1],
    }
    for number, how in enumerate(written):
        for order, columns in orders.items():
            for header in (True, False):
                path = folder / f"{number}-{order}-{header}.csv"
                _write(path, columns, cells, header=header, **how)
                for out in ("visit", "ward", "cost", None):
                    table = Table({name: COLUMNS[name] for name in file if name != out}, unit="patient", name="t")
                    namings = [()] if header else [(), tuple(columns)]
                    for named in namings:
                        # Where nobody tells the order, and the number fits, it is taken on the schema's word.
                        if set(table.columns) <= set(columns) and (named or header or order != "turned"):
                            places = "a header" if header else f"{len(named)} named columns"
                            where = f"{order}, {out or 'nothing'} left out, {places}"
                            yield where, read(path, header=header, columns=named, **how), table


def _write(path: Path, columns: list[str], cells: dict[str, list[str]], *, header: bool, **how: Any) -> None:
    text = io.StringIO()
    none = {"quoting": csv.QUOTE_NONE} if how.get("quote") == "" else {}
    writer: Any = csv.writer(text, delimiter=how.get("delimiter", ","), lineterminator="\n", **none)  # type: ignore[arg-type]
    writer.writerows([columns] if header else [])
    writer.writerows(zip(*(cells[name] for name in columns), strict=True))
    path.write_text(text.getvalue(), encoding=how.get("encoding", "utf-8"), newline="")


def _asked(source: Csv, table: Table) -> str:
    """How a release ends for who asks: answered, refused, or charged without an answer."""
    ledger = MemoryLedger({"d": Budget(epsilon=10)})
    before = str(ledger.spent("d"))
    schema = Schema({"t": table})
    try:
        private = Private("d", source, unit=USER, schema=schema)
        plan = sql("SELECT COUNT(*) AS n FROM t", schema, unit=USER, epsilon=1, limits=Limits(rows=1))
        Curator(private, ledger).release(plan)
    except SfumatoError:
        return "refused" if str(ledger.spent("d")) == before else "charged"
    return "answered"


def _units(source: Csv, table: Table) -> dict[str, int]:
    """The units that the engine sees, and how many rows each has."""
    session = connect({"t": (table, source)})
    try:
        text = 'SELECT "patient", COUNT(*) AS n FROM "t" GROUP BY "patient"'
        seen = session.run(needed("sqlglot").parse_one(text, dialect="duckdb")).to_pydict()
    finally:
        session.close()
    return dict(zip(seen["patient"], seen["n"], strict=True))


CONTROL = SchemaOrder
