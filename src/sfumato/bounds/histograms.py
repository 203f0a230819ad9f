"""Rows per category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..grid import Integers
from ..questions import ANY_ORDER
from ..record import record
from ..rows import Rows
from ..schema import Column
from .cell_counts import CellCounts
from .gather import recode


@record("histogram/1")
@dataclass(frozen=True, kw_only=True)
class Histogram(CellCounts):
    """Rows per category; rows of no listed category do not count."""

    column: str
    categories: tuple[Any, ...] = field(metadata=ANY_ORDER)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        object.__setattr__(self, "categories", checks.distinct(self.categories, "categories", least=1))

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.category(self.categories)}

    @property
    def names(self) -> tuple[Any, ...]:
        return self.categories

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        return recode(rows, self.column, self.categories)
