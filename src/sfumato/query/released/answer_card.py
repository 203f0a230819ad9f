"""The answer to a query as HTML. Nobody imports this file: a notebook that shows an answer loads it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import display
from ...plain_text import printable
from . import texts
from .texts import Cell

if TYPE_CHECKING:
    from .answer import Answer


def card(answer: Answer) -> display.Html:
    """What a notebook shows: each number with its error bar drawn to the scale of its column."""
    columns, head = answer.first_cells(), list[str]()
    shown: list[list[Any]] = []
    right: list[int] = []
    for name, column in zip(map(printable, answer.columns), columns, strict=True):
        cells = column[: texts.ROWS]
        if any(texts.is_number(cell) for cell in cells):
            right.append(len(head))
        parts = [texts.texts_of(cell) for cell in cells]
        points = [_point(cell) for cell in cells]
        known = [point for point in points if point is not None]
        if not known:
            head.append(name)
            shown.append(["".join(each) for each in parts])
            continue
        within = display.span(_seen(cells) or known)
        head += [name, "", ""]
        shown += [[value for value, _ in parts], [bar.strip() for _, bar in parts]]
        shown.append(
            [
                ""
                if point is None
                else display.error_bar(*point, within, doubt=cell.doubt, above=cell.above, below=cell.below)
                for point, cell in zip(points, cells, strict=True)
            ]
        )
    below = [display.paragraph(line, quiet=True) for line in texts.below(columns, len(answer), answer.notes)]
    return display.card("", display.table(head, list(zip(*shown, strict=True)), right=right), *below)


def _seen(cells: Sequence[Cell]) -> list[tuple[float, float | None]]:
    """What the scale of a column must hold: the numbers that noise does not hide, which would be lost beside the
    others. A number that stands alone is seen against 0."""
    found: list[tuple[float, float | None]] = [p for each in cells if not each.doubt and (p := _point(each))]
    alone = len(found) == 1 and not isinstance(cells[0].value, datetime.date)
    return [*found, (0.0, None)] if alone else found


def _point(cell: Cell) -> tuple[float, float] | None:
    """Where a cell with an error bar stands, in the numbers that its width is in: days of dates, microseconds."""
    if not isinstance(cell.width, int | float) or not cell.width or cell.value is None:
        return None
    value = cell.value
    if isinstance(value, datetime.datetime):
        value = (value - datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo)) / datetime.timedelta(microseconds=1)
    elif isinstance(value, datetime.date):
        value = value.toordinal()
    return (float(value), float(cell.width)) if isinstance(value, int | float) else None
