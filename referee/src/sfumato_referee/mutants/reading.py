"""Columns read as they once were: by whether a row is NULL, not by their type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.rows import Rows
from sfumato.schema import Table
from sfumato.units import Unit


def cells_by_nulls(column: Any) -> Any:
    """Python's objects where a row is NULL, and what numpy makes of the column where none is."""
    if not hasattr(column, "to_pylist"):
        return column
    objects = column.null_count or str(column.type).startswith(("sparse_union", "dense_union"))  # which numpy lacks
    return np.fromiter(column.to_pylist(), dtype=object) if objects else np.asarray(column)


def rows_by_nulls(table: Table, raw: Mapping[str, Any], unit: Unit) -> Rows:
    return Rows.read(table, {name: cells_by_nulls(raw[name]) for name in table.columns}, unit)
