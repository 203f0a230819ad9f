"""C1: one cell that changes how others are read, or whether anything is.

A frame of Arrow turns all timestamps of a column into other texts as soon as one row is NULL; an engine fails on a file
for one byte. Whoever knows all rows but one reads off the answer, or its failure, what that row holds, and no noise is
between them. Tables of ordinary rows are read with one awkward row and without it, in every form that a table may have,
by the way of core plans and by the engine; and the keys of releases, before their noise, are compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.audit import surface
from sfumato.audit.awkward import kinds
from sfumato.audit.forms import FORMS, TABLE, Kind, changed_by, read_as_rows, read_by_engine
from sfumato.audit.silent import Silent
from sfumato.mechanisms import ThresholdKeys
from sfumato.noise import SeededBits
from sfumato.query import sql
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.sources import columns_of, source
from sfumato.units import Unit

from ..mutants.reading import rows_by_nulls
from .asking import before_noise
from .verdict import Verdict

_ROW = Unit()
_FEW = ("string", "int64", "timestamp[us]", "timestamp[ms]", "date32[day]", "time64[ns]", "list<item: int64>")
_RELEASED = (
    "columns: list", "arrow: string", "arrow: timestamp[us]", "polars: timestamp[us]", "pandas: object",
    "parquet: string", "duckdb: timestamp[us]", "csv latin-1", "csv utf-16",
)  # fmt: skip
_FRAMES = ("columns", "examples", "arrow", "polars", "pandas")


def attack(
    forms: Sequence[str] = tuple(FORMS), reads: Callable[..., Rows] | None = None, *, quick: bool = False
) -> Verdict:
    """Try the law of reading on every form and type; `quick`, on those types that have failed somewhere.

    reads  what makes rows of raw columns, where it is not the library's own; the engine is left alone then
    """
    tried = 0
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form in forms:
            if form in ("pandas", "polars") and find_spec(form) is None:
                continue
            for kind in kinds(form):
                if quick and not _telling(kind):
                    continue
                tried += len(kind.awkward)
                if form in _FRAMES or not quick:
                    broken += changed_by(kind, ("middle",), folder, partial(read_as_rows, reads=reads or Rows.read))
                if kind.table is TABLE and reads is None:
                    broken += changed_by(kind, ("middle",), folder, read_by_engine)
                    if kind.name in _RELEASED:
                        broken += _released(kind, folder)
                if quick and broken:
                    break
    words = broken[0] if broken else "No cell changes how another is read, in any form."
    return Verdict("C1", bool(broken), words, {"awkward rows": tried, "that change others": len(broken)})


def control() -> Verdict:
    """The same on columns that are read by whether a row is NULL."""
    return attack(("arrow",), rows_by_nulls, quick=True)


def _telling(kind: Kind) -> bool:
    form, _, name = kind.name.partition(": ")
    return name in (*_FEW, "list", "object", "records", "U20", "M8[s]") or form.startswith("csv")


def _released(kind: Kind, folder: Path) -> Iterator[str]:
    """Which awkward rows change the keys that others bring into a release, before its noise."""
    alone = _keys(kind, kind.stored(kind.ordinary, range(len(kind.ordinary)), folder))
    for words, cells, numbers in kind.neighbours():
        try:
            data = kind.stored(cells, numbers, folder)
        except Exception:  # a cell that this form cannot hold
            continue
        try:
            beside = _keys(kind, data)
        except Exception:
            yield f"{kind.name}: {words} fails a release"
            continue
        whole = len(cells) > len(kind.ordinary)
        if any((whole and not one <= other) or len(other - one) > 1 for one, other in zip(alone, beside, strict=True)):
            yield f"{kind.name}: {words} changes the keys of a release"


def _keys(kind: Kind, data: Any) -> tuple[set[str], set[str]]:
    """The keys that a core plan would choose from, and those of SQL, without noise and thresholds."""
    plan = ThresholdKeys(column="key", protects=_ROW, epsilon=1, delta=0.01)
    rows = Rows.read(kind.table, columns_of(kind.table, source(data)), _ROW)
    codes = surface.keys_held(plan, rows, Silent(SeededBits(0)))[1]
    text = "SELECT key, COUNT(*) AS n FROM data GROUP BY key"
    query = sql(text, Schema({"data": kind.table}), unit=_ROW, epsilon=1, delta=1e-3)
    answer = before_noise(query, {"data": data}, threads=1)
    return set(map(str, rows["key"].label(codes))), set(map(str, answer["keys"]["key"]))
