"""The tables of a workload as one answer, a row for each number, with error bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from ...laws import RoundedGaussian, RoundedLaplace
from ..raised import exposed, opened
from ..released import figures
from ..released.answer import Answer, Output
from ..released.figures import Bounds, Figure
from ..released.mixtures import Floats
from ..released.values import Keys, objects
from .asked_tables import VALUES, AskedTable, TableColumn

if TYPE_CHECKING:
    from ..dated.told_columns import ToldColumn
    from .workload_plan import SqlWorkload

TABLE = "table"
_MANY = 2.0**40
_NORMAL, _LAPLACE = RoundedGaussian(_MANY), RoundedLaplace(_MANY)


def answer_of(plan: SqlWorkload, raw: Mapping[str, Any], notes: Sequence[str]) -> Answer:
    """Columns: the table, the columns of the cells (NULL where a table adds them up), the numbers."""
    columns = plan.columns_by_name
    rows = [_rows(table, columns) for table in plan.tables]
    sizes = [len(own) for own in rows]
    titled = objects(chain.from_iterable(repeat(t.name, size) for t, size in zip(plan.tables, sizes, strict=True)))
    outputs = [Output(_fresh(TABLE, [column.name for column in columns.values()]), Keys(titled, "text"))]
    for name, column in columns.items():
        cells = objects(chain.from_iterable([row.get(name) for row in own] for own in rows))
        type_ = plan.cells.front.keys[column.place].typed.kind.type
        plain = all(table.columns.get(name, VALUES) == VALUES for table in plan.tables)
        keys = Keys(cells, type_)
        outputs.append(Output(column.name, keys if plain else _in_words(cells)))
    for number in plan.told_columns:
        values = np.concatenate([_values(plan, table, number, raw) for table in plan.tables])
        outputs.append(Output(number.title, _figure(plan, number, values)))
    return Answer(outputs, {}, np.arange(sum(sizes)), notes)


def _rows(table: AskedTable, columns: Mapping[str, TableColumn]) -> list[dict[str, Any]]:
    titles = [columns[name].titles(form) for name, form in table.columns.items()]
    return [dict(zip(table.columns, row, strict=True)) for row in product(*titles)]


def _in_words(cells: Any) -> Keys:
    return Keys(objects(None if cell is None else str(cell) for cell in cells), "text")


def _fresh(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _fresh(f"{name}_", taken)


def _values(plan: SqlWorkload, table: AskedTable, column: ToldColumn, raw: Mapping[str, Any]) -> Floats:
    total: Any = 0.0
    for number in plan.numbers:
        name = number.inner.measure.name
        if name in column.weights:
            told_ = number.estimate(table, plan.columns_by_name, raw["numbers"][name])
            total = total + column.weights[name] * told_
    return np.asarray(total).ravel()


def widths(plan: SqlWorkload, table: AskedTable, column: ToldColumn | None, alpha: float) -> Floats:
    """Half-widths of the answers of a table, for one column of numbers: for each answer by itself."""
    wanted = plan.told_columns[0] if column is None else column
    square: Any = 0.0
    largest: Any = 0.0
    rounding: Any = 0.0
    for number in plan.numbers:
        weight = abs(wanted.weights.get(number.inner.measure.name, 0.0))
        if weight:
            l2, linf, moved = plan.norms_of[number.inner.measure.name, table.name]
            square, rounding = square + (weight * l2) ** 2, rounding + weight * moved
            largest = np.maximum(largest, weight * linf)
    law = _NORMAL if plan.cells.blur.kind == "gaussian" else _LAPLACE
    l2 = np.sqrt(square)
    return np.asarray(law.mixed_half_width(2 * l2 / _MANY, l2 / _MANY, largest / _MANY, alpha) + rounding)


def _figure(plan: SqlWorkload, column: ToldColumn, values: Floats) -> Figure:
    def within(alpha: float) -> Bounds:
        width = np.concatenate([widths(plan, table, column, alpha).ravel() for table in plan.tables])
        return values - width, values + width

    figure: Figure = figures.given(column.title, values, _once(within))
    for number in plan.numbers:
        measure = number.inner.measure
        if measure.name in column.weights and exposed(plan.cells, measure.name):
            figure = opened(figure, measure)
    return replace(figure)


def _once(within: Callable[[float], Bounds]) -> Callable[[float], Bounds]:
    """The same interval is not worked out twice."""
    intervals: dict[float, Bounds] = {}

    def interval(alpha: float) -> Bounds:
        if alpha not in intervals:
            intervals[alpha] = within(alpha)
        return intervals[alpha]

    return interval
