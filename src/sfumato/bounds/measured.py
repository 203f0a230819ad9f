"""Linear queries of a table's cells, measured by a strategy: the matrix mechanism as a bounded query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from .. import checks
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..schema import Column
from ..strategies import (
    Cells,
    Identity,
    Listed,
    Mixing,
    Prefixes,
    Ranges,
    Reach,
    Strategy,
    Tree,
    Workload,
    best_strategy,
    optimised,
)
from .base import Bounded, Floats, Sensitivity, Vector


class Moves(NamedTuple):
    """What one change of the unit does to cells: it adds or takes so many steps of them in all, or, where `exchanged`,
    carries at most so many from cells to other cells (or to and from none)."""

    steps: Fraction
    exchanged: bool


def cell_moves(query: Bounded, exponent: int) -> Moves:
    """For the query's whole group, on the grid of step 2^exponent.

    Where every row counts in one cell and a unit is exchanged, its cells c >= 0 with |c|_1 <= k become c' of the same
    kind: c - c' is a mixture of at most k differences of two unit vectors, or of one and nothing.
    """
    if query.exclusive and query.unit.change == "replace":
        per_unit = int(getattr(query, "per_unit", 1))
        return Moves(Fraction(query.unit.group * per_unit) / Fraction(2) ** exponent, True)
    return Moves(query.in_steps(exponent).l1, False)


@record("measured/1")
@dataclass(frozen=True, kw_only=True)
class Measured(Bounded):
    """The answers of `workload` about the cells of `query`, from noisy measurements of `strategy`.

    What a unit moves: its cells change by a vector d, so A d is a mixture of |d|_1 columns, and any norm of it is at
    most |d|_1 times the largest such norm of a column. Where rows go from cell to cell it is a mixture of differences
    of two columns. What rounding adds to d on the grid is in `query.in_steps` already.
    """

    query: Bounded
    strategy: Strategy = field(metadata=PRICE)
    workload: Workload

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance(self.query, Bounded, "query", "a bounded query, such as bounds.histogram(...)")
        checks.instance(self.strategy, Strategy, "strategy", "a strategy, such as strategies.Identity(cells=n)")
        checks.instance(self.workload, Workload, "workload", "a workload, such as strategies.Cells(cells=n)")
        if self.query.unit != self.unit:
            raise checks.refuse("unit", self.unit, "the unit of the query itself")
        cells = self.query.size
        if not self.strategy.cells == self.workload.cells == cells:
            raise checks.refuse("strategy", self.strategy.cells, f"{cells} cells, as many as the query has")

        if not self.strategy.determines(self.workload):
            raise checks.refuse("strategy", "...", "measurements that determine every answer of the workload")

    def in_steps(self, exponent: int) -> Sensitivity:
        times, exchanged = cell_moves(self.query, exponent + self.strategy.bits)
        reach = self.strategy.column_gaps if exchanged else self.strategy.column_norms
        return Sensitivity(times * reach.l1, times**2 * reach.l2_squared, times * reach.linf)

    @property
    def sensitivity(self) -> Sensitivity:
        exchanged = cell_moves(self.query, 0).exchanged
        reach: Reach = self.strategy.column_gaps if exchanged else self.strategy.column_norms
        times = Fraction(self.per_unit) if exchanged else self.query.sensitivity.l1
        step = Fraction(1, 2**self.strategy.bits)
        return Sensitivity(times * step * reach.l1, (times * step) ** 2 * reach.l2_squared, times * step * reach.linf)

    @property
    def per_unit(self) -> int:
        return int(getattr(self.query, "per_unit", 1))

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.query.columns

    @property
    def size(self) -> int:
        return self.strategy.measurements

    @property
    def names(self) -> tuple[Any, ...]:
        return tuple(f"measurement {place}" for place in range(self.strategy.measurements))

    @property
    def largest(self) -> Fraction:
        return self.query.largest * Fraction(max(self.strategy.column_norms.linf, 1), 2**self.strategy.bits)

    @property
    def whole(self) -> bool:
        return self.query.whole

    @property
    def finer(self) -> int:
        return self.query.finer

    @property
    def coarsest(self) -> int | None:
        inner = self.query.coarsest
        return None if inner is None else inner - self.strategy.bits

    @property
    def vouched(self) -> bool:
        return self.query.vouched

    @cached_property
    def mixing(self) -> Mixing:
        return self.strategy.mixing(self.workload)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        return self.strategy.measure(self.query.steps(rows, exponent + self.strategy.bits))

    def finish(self, noisy: Floats) -> dict[Any, float]:
        return self._named(self.workload.answer(self.strategy.estimate(noisy)))

    def error(self, noisy: Floats, width: Any) -> dict[Any, float]:
        return self._named(width)

    def _named(self, values: Floats) -> dict[Any, float]:
        return dict(zip(self.workload.names(self.query.names), values.tolist(), strict=True))


_KINDS: dict[str, type[Workload]] = {"cells": Cells, "prefixes": Prefixes, "ranges": Ranges}


def workload(
    query: Bounded, asked: Any, *, labels: Any = None, strategy: Any = "auto", noise: str = "gaussian"
) -> Measured:
    """Linear queries of the cells of `query`, such as a histogram.

    asked     "cells", "prefixes", "ranges", a matrix with a row of weights for each query, or a Workload
    labels    names for the rows of the matrix
    strategy  "auto" (the best one known for this workload), "cells", "tree", "optimised", or a Strategy
    noise     "gaussian" or "laplace": what a strategy of "auto" or "optimised" is chosen for
    """
    checks.instance(query, Bounded, "query", "a bounded query, such as bounds.histogram(...)")
    checks.one_of(noise, "noise", ("gaussian", "laplace"))
    cells, wanted = len(query.names), asked
    if isinstance(asked, str):
        wanted = _KINDS[checks.one_of(asked, "asked", tuple(_KINDS))](cells=cells)
    elif not isinstance(asked, Workload):
        wanted = Listed.of(asked, labels)
    if wanted.cells != cells:
        raise checks.refuse("asked", f"of {wanted.cells} cells", f"{cells} cells, as many as the query has")
    return Measured(
        unit=query.unit, query=query, strategy=_chosen(strategy, wanted, noise, query.unit.change), workload=wanted
    )


def _chosen(strategy: Any, wanted: Workload, noise: Any, change: str) -> Strategy:
    if isinstance(strategy, Strategy):
        return strategy
    checks.one_of(strategy, "strategy", ("auto", "cells", "tree", "optimised"))
    if strategy == "auto":
        return best_strategy(wanted, noise, change=change)
    if strategy == "optimised":
        return optimised(wanted, noise)
    return Identity(cells=wanted.cells) if strategy == "cells" else Tree(cells=wanted.cells)
