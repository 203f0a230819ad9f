"""The answer to a private SQL query: a table whose numbers carry their error bars."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...checks import library, refuse
from ...exhibits import Exhibit
from ...plain_text import csv_text
from .figures import Bools, Figure
from .mixtures import Floats, Spreads
from .texts import ROWS, Cell, drawn
from .values import Keys, Lists, Truth, Value, keys_of

_ALPHA = 0.05
_HIDDEN = 0.5


@dataclass(frozen=True, eq=False)
class Output:
    """A column of the answer, over all groups. `show` makes what people read of a number (a date of a day); `bias` is
    by how much each of its figures was raised, or None where nobody knows what limits cut."""

    name: str
    value: Value
    show: Callable[[float], Any] | None = None
    bias: tuple[Floats | None, ...] = ()


class Answer(Exhibit):
    """What `release.value` is for SQL. Columns are keys, or numbers with error bars; NULL is None.

    columns     the names, as in the SELECT list
    rows        a dict for each row
    std         for each column of numbers, the standard deviations of the noise
    unreliable  for each column of numbers: where noise, or what limits cut, hides the number: do not rely on it
    raw         numbers before they were raised to 0 or otherwise clipped, for the columns where that was done
    notes       what was clipped, dropped and suppressed, as far as it may be known
    """

    _card = "sfumato.query.released.answer_card:card"

    def __init__(
        self, outputs: Sequence[Output], spreads: Spreads, rows: Sequence[int] | Any, notes: Sequence[str] = ()
    ) -> None:
        self._outputs = dict(zip(_different(outputs), outputs, strict=True))
        self._spreads = spreads
        self._rows = np.asarray(rows, dtype=np.int64)
        self.notes = tuple(notes)
        self._std: dict[str, list[Any]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._outputs)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that have error bars."""
        return tuple(name for name, each in self._outputs.items() if isinstance(each.value, Figure | Lists))

    @property
    def rows(self) -> list[dict[str, Any]]:
        found = [self[name] for name in self.columns]
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*found, strict=True)]

    def __len__(self) -> int:
        return int(self._rows.size)

    def __getitem__(self, name: str) -> list[Any]:
        output = self._output(name)
        if isinstance(output.value, Keys | Truth):
            values = keys_of(output.value).values[self._rows]
            return [each.item() if isinstance(each, np.generic) else each for each in values]
        return self._each(output, lambda figure: figure.value, output.show)

    @property
    def std(self) -> Mapping[str, list[Any]]:
        if self._std is None:
            self._std = {
                name: self._each(self._outputs[name], lambda figure: figure.std(self._spreads)) for name in self.numbers
            }
        return self._std

    @property
    def unreliable(self) -> Mapping[str, list[bool]]:
        return {name: [bool(each) for each in self._doubt(name)[self._rows]] for name in self.numbers}

    @property
    def raw(self) -> Mapping[str, list[Any]]:
        clipped = {
            name: each
            for name, each in self._outputs.items()
            if any(figure.raw is not None for figure in _figures(each.value))
        }
        return {
            name: self._each(each, lambda figure: figure.value if figure.raw is None else figure.raw, each.show)
            for name, each in clipped.items()
        }

    def interval(self, name: str, alpha: float = _ALPHA) -> list[Any]:
        """(lower, upper) for each row by itself, at confidence 1 - alpha; for lists, one for each place."""
        low, high = self._ends(self._numeric(name), alpha)
        if isinstance(self._outputs[name].value, Lists):
            return [list(zip(*ends, strict=True)) for ends in zip(low, high, strict=True)]
        return list(zip(low, high, strict=True))

    def half_width(self, name: str, alpha: float = _ALPHA) -> list[Any]:
        """How far the farther end of the interval is, in numbers."""
        checked = _confidence(alpha)
        return self._each(self._numeric(name), lambda figure: figure.half_width(self._spreads, checked), open_=True)

    def bias(self, name: str) -> list[Any]:
        """By how much the numbers were raised for what limits cut from them: 0 where nothing is cut, None where nobody
        knows how much that is. Intervals cover it."""
        output = self._numeric(name)
        figures = _figures(output.value)
        lifts = output.bias or tuple(np.zeros_like(figure.value) for figure in figures)
        places = [
            np.full(figure.value.shape, np.nan) if lift is None else _known(figure.value, lift)
            for figure, lift in zip(figures, lifts, strict=True)
        ]
        return self._listed(output, places, None, open_=False)

    def noise_width(self, name: str, alpha: float = _ALPHA) -> list[Any]:
        """The half-width that noise alone, and what is known of cuts, would leave: also where intervals are open."""

        checked = _confidence(alpha)
        return self._each(self._numeric(name), lambda figure: np.maximum(*self._noise(figure, checked)), open_=True)

    def cells(self, name: str, alpha: float = _ALPHA) -> list[Cell]:
        """A column as people read it: numbers with their error bars."""
        if name not in self.numbers:
            return [Cell(each) for each in self[name]]
        checked, output = _confidence(alpha), self._outputs[name]
        figures = _figures(output.value)
        barred = any(each.noisy for each in figures)
        widths = (
            self._each(output, lambda each: self._told(each, checked), open_=True) if barred else [None] * len(self)
        )
        sides = zip(*(self._open_sides(each, checked) for each in figures), strict=True)
        above, below = (np.logical_or.reduce(side)[self._rows].tolist() for side in sides)
        parts = zip(self[name], widths, self.unreliable[name], above, below, strict=True)
        return [Cell(value, width, doubt, True, up, down) for value, width, doubt, up, down in parts]

    def _noise(self, figure: Figure, alpha: float) -> tuple[Floats, Floats]:
        """How far noise alone, and what is known of cuts, may have moved a figure: from below, from above."""
        low, high = figure.noise_interval(self._spreads, alpha)
        with np.errstate(all="ignore"):
            return np.asarray(figure.value - low), np.asarray(high - figure.value)

    def _open_sides(self, figure: Figure, alpha: float) -> tuple[Bools, Bools]:
        """Where the truth may be any amount above, and below: where one end is not known and noise hides the other,
        both."""
        down, up = self._noise(figure, alpha)
        above, below = (np.broadcast_to(side, figure.value.shape) for side in (figure.above, figure.below))
        return np.asarray(above | (below & np.isinf(up))), np.asarray(below | (above & np.isinf(down)))

    def _told(self, figure: Figure, alpha: float) -> Floats:
        """The width beside a number: to the one end that is known, else to the farther one."""
        down, up = self._noise(figure, alpha)
        above, below = self._open_sides(figure, alpha)
        return np.where(above & ~below, down, np.where(below & ~above, up, np.maximum(down, up)))

    @property
    def exact(self) -> Mapping[str, bool]:
        """Do the column's intervals hold as stated? Otherwise they hold to first order, so well where noise is small
        beside the numbers: ratios, variances, products."""
        return {name: all(each.exact for each in _figures(self._outputs[name].value)) for name in self.numbers}

    # other forms

    def table(self, alpha: float = _ALPHA) -> dict[str, list[Any]]:
        """All columns, by name: after each column of numbers c also c_std, c_low, c_high and c_bias."""
        found: dict[str, list[Any]] = {}
        for name, output in self._outputs.items():
            found[name] = self[name]
            if name in self.numbers:
                low, high = self._ends(output, alpha)
                beside = {"std": self.std[name], "low": low, "high": high, "bias": self.bias(name)}
                for ending, values in beside.items():
                    found[self._beside(name, ending, found)] = values
        return found

    def to_arrow(self, alpha: float = _ALPHA) -> Any:
        """A pyarrow Table."""
        arrow = library("pyarrow")
        types = {"whole": arrow.int64(), "real": arrow.float64(), "flag": arrow.bool_(), "text": arrow.string()}
        types |= {"date": arrow.date32(), "moment": arrow.timestamp("us")}
        columns = {}
        for name, values in self.table(alpha).items():
            output = self._outputs.get(name)
            if output is None or isinstance(output.value, Figure | Lists):
                listed = any(isinstance(each, list) for each in values)
                cells = [cell for each in values for cell in (each if isinstance(each, list) else [each])]
                dated = any(not isinstance(cell, int | float | None) for cell in cells)
                kind = None if dated else arrow.list_(arrow.float64()) if listed else arrow.float64()
            else:
                kind = types.get(keys_of(output.value).type)
            columns[name] = arrow.array(values, type=kind)
        return arrow.table(columns)

    def to_pandas(self, alpha: float = _ALPHA) -> Any:
        """A pandas DataFrame."""
        return library("pandas").DataFrame(self.table(alpha))

    def to_polars(self, alpha: float = _ALPHA) -> Any:
        """A polars DataFrame."""
        return library("polars").DataFrame(self.table(alpha), strict=False, infer_schema_length=None)

    def to_csv(self, path: str | Path | None = None, alpha: float = _ALPHA) -> str | None:
        """Into a file, or as a text where no path is given. NULL is empty, lists are JSON."""
        table = self.table(alpha)
        rows = zip(*table.values(), strict=True)
        cells = ([json.dumps(cell, default=str) if isinstance(cell, list) else cell for cell in row] for row in rows)
        text = csv_text([list(table), *cells])
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    def __str__(self) -> str:
        return drawn(self.columns, self.first_cells(), len(self), self.notes)

    def __repr__(self) -> str:
        return str(self)

    def first_cells(self) -> list[list[Cell]]:
        """The cells of each column, as far down as a reader sees."""
        first = Answer(list(self._outputs.values()), self._spreads, self._rows[:ROWS])
        return [first.cells(name) for name in first.columns]

    def _output(self, name: str) -> Output:
        if name not in self._outputs:
            raise refuse("column", name, "one of " + ", ".join(map(repr, self.columns)))
        return self._outputs[name]

    def _numeric(self, name: str) -> Output:
        if not isinstance(self._output(name).value, Figure | Lists):
            raise refuse("column", name, "a column of numbers: " + (", ".join(map(repr, self.numbers)) or "none"))
        return self._outputs[name]

    def _doubt(self, name: str) -> Any:
        """Where noise hides the number, or where half of it is what limits are estimated to have cut."""
        output = self._outputs[name]
        doubts = [each.unreliable(self._spreads) for each in _figures(output.value)]
        for figure, lift in zip(_figures(output.value), output.bias, strict=False):
            if lift is not None:
                doubts.append(np.abs(lift) > _HIDDEN * np.abs(figure.value))
        return np.logical_or.reduce(doubts)

    def _ends(self, output: Output, alpha: float) -> tuple[list[Any], list[Any]]:
        checked = _confidence(alpha)
        ends = [each.interval(self._spreads, checked) for each in _figures(output.value)]
        show = output.show
        low, high = (
            self._listed(
                output,
                [_known(each.value, end[side]) for each, end in zip(_figures(output.value), ends, strict=True)],
                show,
                open_=True,
            )
            for side in (0, 1)
        )
        return low, high

    def _each(
        self,
        output: Output,
        of: Callable[[Figure], Floats],
        show: Callable[[float], Any] | None = None,
        *,
        open_: bool = False,
    ) -> list[Any]:
        return self._listed(
            output, [_known(each.value, of(each)) for each in _figures(output.value)], show, open_=open_
        )

    def _listed(
        self, output: Output, places: list[Floats], show: Callable[[float], Any] | None, *, open_: bool
    ) -> list[Any]:
        """The rows shown, as Python numbers; infinite ones only where an interval is open."""
        columns = [_plain(place[self._rows], show, open_=open_ and show is None) for place in places]
        return [list(cells) for cells in zip(*columns, strict=True)] if isinstance(output.value, Lists) else columns[0]

    def _beside(self, name: str, ending: str, taken: Mapping[str, Any]) -> str:
        fresh = f"{name}_{ending}"
        while fresh in self._outputs or fresh in taken:
            fresh += "_"
        return fresh


def _different(outputs: Sequence[Output]) -> list[str]:
    """SQL allows two columns of one name; a table of Python does not."""
    names: list[str] = []
    for each in outputs:
        name, number = each.name, 1
        while name in names:
            number += 1
            name = f"{each.name}_{number}"
        names.append(name)
    return names


def _figures(value: Value) -> tuple[Figure, ...]:
    return (value,) if isinstance(value, Figure) else value.places if isinstance(value, Lists) else ()


def _known(value: Floats, number: Floats) -> Floats:
    """Nothing is said about NULL."""
    return np.where(np.isfinite(value), number, np.nan)


def _plain(numbers: Floats, show: Callable[[float], Any] | None, *, open_: bool) -> list[Any]:
    """Python numbers, or what they show; None for NULL, and for infinite ones unless the interval may be open."""
    absent = np.isnan(numbers) if open_ else ~np.isfinite(numbers)
    plain: list[Any] = numbers.tolist()
    if show is not None:
        plain = [None if gone else show(each) for each, gone in zip(plain, absent.tolist(), strict=True)]
    for place in np.flatnonzero(absent):
        plain[place] = None
    return plain


def _confidence(alpha: float) -> float:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise refuse("alpha", alpha, "a probability above 0 and below 1")
    return alpha
