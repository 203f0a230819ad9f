"""Numbers of windows as people read them: small ones hidden, none below 0, and what was released beside them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import checks
from ...plain_text import csv_text
from ..released.mixtures import Floats
from .told_columns import ToldColumn

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, eq=False)
class ToldWindows:
    """A row for each window and group. A number that is hidden, or cannot be told, is None.

    A number of which noise alone might make up all (it is below its own half-width), or that is below a public `least`,
    is hidden; it stands beside as it was released, in the column that ends in _raw. Hiding and raising to 0 tell
    nothing more of the data than the released numbers do: they are functions of them.
    """

    windows: tuple[tuple[dt.date, dt.date], ...]
    keys: Mapping[str, tuple[Any, ...]]
    columns: tuple[ToldColumn, ...]
    values: Mapping[str, Floats]
    widths: Mapping[str, Floats]
    stds: Mapping[str, Floats]
    tellable: NDArray[np.bool_]
    alpha: float
    least: float | None
    left_out: int = 0
    order: NDArray[np.int64] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside the numbers."""
        lines = [
            f"± of noise alone, at {100 * (1 - self.alpha):g} %; rows that limits cut, or that came late, are not in it"
        ]
        if not self.tellable.all():
            missing = int((~self.tellable).sum())
            lines.append(f"{missing} window(s) cannot be told: blocks of them were not released")
        if self.left_out:
            lines.append(f"{self.left_out} group(s) that some blocks did not list are left out")
        return tuple(lines)

    def shown(self, title: str) -> list[float | None]:
        """The numbers of a column, hidden where they are small."""
        column = next(item for item in self.columns if item.title == title)
        value, width = self.values[title], self.widths[title]
        least = width if self.least is None else np.full_like(width, self.least)
        size = np.abs(value) if column.signed else value
        plain = value if column.signed else np.maximum(value, 0.0)
        return _plain(np.where(self._tellable & (size >= least), plain, np.nan), self._order)

    def raw(self, title: str) -> list[float | None]:
        """As the released numbers give it: below 0, too."""
        return _plain(np.where(self._tellable, self.values[title], np.nan), self._order)

    def interval(self, title: str) -> list[tuple[float, float] | None]:
        """(lower, upper) for each number by itself."""
        low = _plain(np.where(self._tellable, self.values[title] - self.widths[title], np.nan), self._order)
        high = _plain(np.where(self._tellable, self.values[title] + self.widths[title], np.nan), self._order)
        return [None if a is None or b is None else (a, b) for a, b in zip(low, high, strict=True)]

    def top(self, rows: int, title: str) -> ToldWindows:
        """So many groups of each window, the largest released numbers first. Which groups these are is as noisy as the
        numbers: those whose intervals meet may be in either order."""
        checks.one_of(title, "column", tuple(column.title for column in self.columns))
        many = checks.whole(rows, "rows")
        first = np.argsort(-np.where(np.isnan(self.values[title]), -np.inf, self.values[title]), axis=1, kind="stable")
        groups = self.values[title].shape[1]
        offsets = np.arange(len(self.windows))[:, None] * groups
        return replace(self, order=(first[:, :many] + offsets).ravel())

    def table(self) -> dict[str, list[Any]]:
        """All columns by name: first and last day, groups, and after each number c also c_raw, c_low and c_high."""
        groups = next(iter(self.values.values())).shape[1]
        window, group = np.divmod(self._order, max(groups, 1))
        columns_by_name: dict[str, list[Any]] = {
            "first_day": [self.windows[at][0] for at in window],
            "last_day": [self.windows[at][1] - _DAY for at in window],
        }
        for title, cells in self.keys.items():
            columns_by_name[_fresh(title, columns_by_name)] = [cells[at] for at in group]
        for column in self.columns:
            ends = self.interval(column.title)
            beside = {
                "": self.shown(column.title),
                "_raw": self.raw(column.title),
                "_low": [None if item is None else item[0] for item in ends],
                "_high": [None if item is None else item[1] for item in ends],
            }
            for ending, tellable in beside.items():
                columns_by_name[_fresh(column.title + ending, columns_by_name)] = tellable
        return columns_by_name

    @property
    def rows(self) -> list[dict[str, Any]]:
        table = self.table()
        return [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        return checks.library("pyarrow").table(self.table())

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return checks.library("pandas").DataFrame(self.table())

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Into a file, or as a text where no path is given. What is hidden is empty."""
        table = self.table()
        text = csv_text([list(table), *map(list, zip(*table.values(), strict=True))])
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    @property
    def _tellable(self) -> NDArray[np.bool_]:
        return self.tellable[:, None]

    @property
    def _order(self) -> NDArray[np.int64]:
        size = next(iter(self.values.values())).size
        return np.arange(size) if self.order is None else self.order


def _plain(numbers: Floats, order: NDArray[np.int64]) -> list[float | None]:
    return [
        None if gone else float(item)
        for item, gone in zip(numbers.ravel()[order], np.isnan(numbers.ravel()[order]), strict=True)
    ]


def _fresh(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name
