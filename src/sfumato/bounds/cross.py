"""Rows per combination of categories of several columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..grid import Integers
from ..questions import FINE
from ..record import record
from ..rows import Rows
from ..schema import Column, Named
from .cell_counts import MOST_CELLS, CellCounts
from .gather import recode


@record("cross/1")
@dataclass(frozen=True, kw_only=True)
class Cross(CellCounts):
    """Rows per combination of listed categories; the last column's category changes fastest. A row with a NULL or an
    unlisted category in any of the columns does not count."""

    over: Mapping[str, tuple[Any, ...]] = field(metadata=FINE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.over, Mapping) or not self.over:
            raise checks.refuse("over", self.over, "categories by column, such as {'ward': ['east', 'west'], ...}")
        columns = {
            checks.label(name, "the name of a column"): checks.distinct(categories, f"the categories of {name}")
            for name, categories in self.over.items()
        }
        object.__setattr__(self, "over", Named(columns))
        if self.size > MOST_CELLS:
            raise checks.refuse("over", "...", f"at most {MOST_CELLS} combinations of categories, not {self.size}")

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: schema.category(categories) for name, categories in self.over.items()}

    @property
    def size(self) -> int:
        return math.prod(map(len, self.over.values()))

    @cached_property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(product(*self.over.values()))

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        cell, valid = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=np.bool_)
        for name, categories in self.over.items():
            code, inside = recode(rows, name, categories)
            cell = cell * len(categories) + code
            valid &= inside
        return cell, valid
