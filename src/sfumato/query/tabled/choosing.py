"""Which strategy measures the cells of a workload: that of the least expected total squared error. No row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from ...errors import ArgumentError
from ...strategies import (
    Dense,
    Identity,
    Nested,
    NestedColumn,
    Prefixes,
    Product,
    Ranges,
    Strategy,
    Workload,
    best_shares,
    best_strategy,
    best_tree,
    expected_squared_error,
    levels_of,
    total_squared,
)
from ...strategies.base import Reach
from ...strategies.nested_weights import Demand
from ...strategies.optimise import LARGEST, Noise
from .asked_tables import CUMULATIVE, MOST, RANGES, VALUES, AskedTable, TableColumn, answers

_BRANCHINGS = (2, 3, 4, 8, 16)
_SEARCHED = 16  # cells
_BITS = 8
"""Of all matrices together. What is left of the grid is for the rows: sums of many rows must not be rounded by more
than their noise hides."""
KINDS = ("auto", "cells", "columns", "tables")


def chosen(
    kind: str, tables: Sequence[AskedTable], columns: Mapping[str, TableColumn], noise: Noise, change: str
) -> Product | Nested:
    """The best of: the cells of all columns by themselves; a strategy for each column; tables with weights."""
    check_sizes(tables, columns)
    candidates: list[Product | Nested] = []
    fits = math.prod(len(column.values) for column in columns.values()) <= MOST
    if fits and kind in ("auto", "cells"):
        candidates.append(Product.of([Identity(cells=len(column.values)) for column in columns.values()]))
    if fits and kind in ("auto", "columns"):
        factors = Product.of(_factors(list(columns.values()), tables, noise, change))
        candidates += [factors] if factors.measurements <= MOST else []
    if kind in ("auto", "tables"):
        candidates += _nested(tables, columns, noise)
    if not candidates:
        names = ", ".join(column.name for column in columns.values())
        raise ArgumentError(
            f"the cells of {names} together, or the tables that are asked, are more than {MOST} numbers: ask for fewer "
            "tables, or leave out a column."
        )
    return min(candidates, key=lambda strategy: total_error(strategy, tables, columns, noise, change))


def check_sizes(tables: Sequence[AskedTable], columns: Mapping[str, TableColumn]) -> None:
    """Refuse a table of more cells, or more answers, than fit."""
    for table in tables:
        cells = math.prod(len(columns[name].values) for name in table.columns)
        numbers = answers(table, columns)
        for many, what in ((cells, "cells"), (numbers, "numbers")):
            if many > MOST:
                raise ArgumentError(
                    f"table {table.name!r} has {many:,} {what}, and at most {MOST:,} are measured or told: leave out a "
                    "column, or group by coarser values."
                )
    if sum(answers(table, columns) for table in tables) > MOST:
        raise ArgumentError(f"the tables have more than {MOST:,} numbers together: ask for fewer of them.")


def total_error(
    strategy: Product | Nested,
    tables: Sequence[AskedTable],
    columns: Mapping[str, TableColumn],
    noise: Noise,
    change: str,
) -> float:
    """The sum of the expected squared errors of all answers, at noise multiplier 1, or epsilon 1, for one row."""
    law = 1 if noise == "gaussian" else 2
    if isinstance(strategy, Nested):
        apart = 1 if change != "replace" else 2 if noise == "gaussian" else 4
        return law * apart * total_squared(strategy, _demands(tables, columns, strategy.groups), noise)
    reach = strategy.column_gaps if change == "replace" else strategy.column_norms
    moved = _squared(reach, strategy.bits, noise)
    sums = {name: _by_form(strategy.factors[column.place], column, tables) for name, column in columns.items()}
    totals = (math.prod(sums[name][table.columns.get(name)] for name in columns) for table in tables)
    return law * moved * sum(totals)


def _squared(reach: Reach, bits: int, noise: Noise) -> float:
    step = math.ldexp(1.0, -bits)
    return float(reach.l2_squared) * step**2 if noise == "gaussian" else (float(reach.l1) * step) ** 2


def _by_form(factor: Strategy, column: TableColumn, tables: Sequence[AskedTable]) -> dict[object, float]:
    """By form, the sum over its queries of the squared norms of their weights; None is the total of the column."""
    norms: dict[object, float] = {}
    for form in {table.columns.get(column.name.lower()) for table in tables}:
        if form is None:
            norms[form] = float(factor.mixing(Prefixes(cells=factor.cells)).l2[-1] ** 2)
        else:
            norms[form] = float((factor.mixing(column.workload(form)).l2 ** 2).sum())
    return norms


def _nested(tables: Sequence[AskedTable], columns: Mapping[str, TableColumn], noise: Noise) -> list[Product | Nested]:
    """Tables with weights, and hierarchies of some branching over the columns that are asked in ranges."""
    ordered = {name for table in tables for name, form in table.columns.items() if form != VALUES}
    candidates: list[Product | Nested] = []
    for branching in _BRANCHINGS if ordered else (None,):
        groups = tuple(
            levels_of(len(column.values), branching if name in ordered else None) for name, column in columns.items()
        )
        strategy = best_shares(groups, _demands(tables, columns, groups), noise, MOST)
        candidates += [] if strategy is None else [strategy]
    return candidates


def _demands(
    tables: Sequence[AskedTable], columns: Mapping[str, TableColumn], groups: tuple[tuple[int, ...], ...]
) -> list[Demand]:
    return [_demand(table, columns, groups) for table in tables]


def _demand(table: AskedTable, columns: Mapping[str, TableColumn], groups: tuple[tuple[int, ...], ...]) -> Demand:
    own = [columns[name] for name in table.columns]
    energies = (
        NestedColumn(groups[column.place]).energies(*column.ends(form)).sum(axis=1)
        for column, form in zip(own, table.columns.values(), strict=True)
    )
    return Demand(tuple(column.place for column in own), tuple(energies))


def _factors(columns: Sequence[TableColumn], tables: Sequence[AskedTable], noise: Noise, change: str) -> list[Strategy]:
    """For each column, the strategy that answers the most that is asked of it best."""
    best = [_factor(column, tables, noise, change) for column in columns]
    precision = _BITS // max(sum(factor.bits > 0 for factor in best), 1)
    return [_coarse(factor, precision, noise, change) for factor in best]


def _factor(column: TableColumn, tables: Sequence[AskedTable], noise: Noise, change: str) -> Strategy:
    n, name = len(column.values), column.name.lower()
    forms = {table.columns[name] for table in tables if name in table.columns}
    if forms <= {VALUES} or n == 1:
        return Identity(cells=n)
    if RANGES in forms and n <= LARGEST:
        return _alone(Ranges(cells=n), noise, change)
    if forms & {CUMULATIVE, RANGES}:
        return _alone(Prefixes(cells=n), noise, change)
    return _alone(column.workload(next(form for form in sorted(forms - {VALUES}))), noise, change)


def _alone(workload: Workload, noise: Noise, change: str) -> Strategy:
    """The best known; for Laplace noise without the search for a matrix, which takes minutes where cells are many."""
    n = workload.cells
    if noise == "gaussian" or n <= _SEARCHED:
        if isinstance(workload, Prefixes | Ranges):
            return _best(type(workload), n, noise, change)
        return best_strategy(workload, noise, change=change)
    candidates: list[Strategy] = [Identity(cells=n), best_tree(n, noise, change=change)]
    return min(candidates, key=lambda strategy: expected_squared_error(strategy, workload, noise, change=change))


@cache
def _best(kind: type[Workload], cells: int, noise: Noise, change: str) -> Strategy:
    return best_strategy(kind(cells=cells), noise, change=change)


def _coarse(best: Strategy, precision: int, noise: Noise, change: str) -> Strategy:
    """The same with a matrix of fewer bits; a tree, where it has no such form."""
    if isinstance(best, Dense):
        matrix = np.ldexp(np.array(best.entries, dtype=np.float64).reshape(-1, best.cells), -best.bits)
        return Dense.of(matrix, precision=min(best.bits, precision))
    return best if not best.bits else best_tree(best.cells, noise, change=change)
