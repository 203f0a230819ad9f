"""Faults of reading: cells that change how others are read, or whether anything is."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import cells, times
from sfumato.audit import seams

from ...mutants.reading import cells_by_nulls
from ..mutant import Shelf, attacks, plant, swap, swap_everywhere

FAULTS = Shelf("reading", needs="duckdb")


@FAULTS.fault("a column with a NULL is read as a list", by=attacks("C1"))
def by_nulls() -> None:
    swap_everywhere(cells.raw_column, lambda raw: lambda column: raw(cells_by_nulls(column)))


@FAULTS.fault("one NULL makes floats of all whole numbers", by=attacks("C1"))
def rounded() -> None:
    def round_to_floats(_: Any) -> Any:
        return lambda chunk, value: np.nan_to_num(chunk.to_numpy(zero_copy_only=False))

    plant(seams.FILLED, round_to_floats)


@FAULTS.fault("text of a column is decoded at once", by=attacks("C1"))
def at_once() -> None:
    def decode_at_once(of_bytes: Any) -> Any:
        def decoded(chunked: Any, kind: Any) -> Any:
            raw = of_bytes(chunked, kind)
            b"\n".join(raw.cells.tolist()).decode()
            return raw

        return decoded

    plant(seams.TEXTS, decode_at_once)


@FAULTS.fault("an object that raises ends the reading", by=attacks("C1"))
def raises() -> None:
    def read_unguarded(_: Any) -> Any:
        def unguarded(column: Any, read: Any, dtype: Any) -> Any:
            values = [read(cell) for cell in column.tolist()]
            valid = np.array([value is not None for value in values], dtype=np.bool_)
            return np.array([0 if value is None else value for value in values], dtype=dtype), valid

        return unguarded

    plant(seams.CELL_BY_CELL, read_unguarded)


@FAULTS.fault("every moment has a name", by=attacks("C1"))
def beyond_the_calendar() -> None:
    swap(times, "in_calendar", lambda _: lambda moments: ~np.isnat(moments))


@FAULTS.fault("the engine writes every moment", by=attacks("C1"))
def written_by_the_engine() -> None:
    plant(seams.SOURCE_KEY, lambda _: lambda moment, exact: f"TRY_CAST({moment} AS VARCHAR)")


@FAULTS.fault("a Parquet file that the engine fails on stays as it is", by=attacks("C1"))
def not_anew() -> None:
    plant(seams.REWRITTEN, lambda _: lambda self: [])
