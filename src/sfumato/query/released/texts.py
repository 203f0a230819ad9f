"""A table as text: numbers beside their error bars, as many digits as the noise lets through."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...plain_text import printable

ROWS = 20
_WIDEST = 60


class Cell(NamedTuple):
    """A value, how far it may be off, and whether noise hides it. `above`, `below`: the truth may be any amount there,
    since nobody knows what limits cut; the width is of noise alone."""

    value: Any
    width: Any = None
    doubt: bool = False
    number: bool = False
    above: bool = False
    below: bool = False


def drawn(names: Sequence[str], columns: Sequence[Sequence[Cell]], rows: int, notes: Sequence[str]) -> str:
    """Aligned text, with the notes below."""
    names, notes = [list(map(printable, texts)) for texts in (names, notes)]
    shown = [[texts_of(cell) for cell in column[:ROWS]] for column in columns]
    right = [any(is_number(cell) for cell in column[:ROWS]) for column in columns]
    parts = []
    for name, cells, to_right in zip(names, shown, right, strict=True):
        first, second = (max((len(cell[i]) for cell in cells), default=0) for i in (0, 1))
        lines = [f"{a:>{first}}{b:<{second}}" if to_right else f"{a:<{first}}{b:<{second}}" for a, b in cells]
        width = max(len(name), first + second)
        # Headings of numbers stand over the numbers, not over their error bars.
        head = f"{name:>{first}}" if to_right else name
        parts.append([f"{head:<{width}}", *(f"{line:<{width}}" for line in lines)])
    lines = ["  ".join(cells).rstrip() for cells in zip(*parts, strict=True)]
    return "\n".join([*lines, *below(columns, rows, notes)])


def below(columns: Sequence[Sequence[Cell]], rows: int, notes: Sequence[str]) -> list[str]:
    lines = [f"... and {rows - ROWS} more"] if rows > ROWS else []
    cells = [cell for column in columns for cell in column[:ROWS]]
    if said := legend(cells, "95 %"):
        lines.append(f"({said})")
    return lines + [f"- {note}" for note in notes]


def legend(cells: Sequence[Cell], confidence: str) -> str:
    """What the signs behind numbers mean."""
    signs = {
        f"± at {confidence}": any(cell.width is not None and not (cell.above or cell.below) for cell in cells),
        f"≥ = at least, at {confidence}: what limits cut is not known": any(cell.above > cell.below for cell in cells),
        f"≤ = at most, at {confidence}: what limits cut is not known": any(cell.above < cell.below for cell in cells),
        "noise ± = of noise alone: what limits cut is not known": any(cell.above and cell.below for cell in cells),
        "? = hidden by noise or by what limits cut, do not rely on it": any(cell.doubt for cell in cells),
    }
    return "; ".join(text for text, there in signs.items() if there)


def texts_of(cell: Cell) -> tuple[str, str]:
    """The value, and what stands behind it."""
    mark = " ?" if cell.doubt else ""
    if isinstance(cell.value, list):
        widths = [each for each in cell.width or [] if each is not None]
        texts = [_number(each, max(widths, default=None)) for each in cell.value]
        noise = " noise" if cell.above or cell.below else ""
        return _short("[" + ", ".join(texts) + "]"), noise + _bar(max(widths, default=None)) + mark
    if cell.number:
        return _number(cell.value, cell.width), _behind(cell) + mark
    return _short(_plain(cell.value)), ""


def _behind(cell: Cell) -> str:
    """The error bar; where the interval is open, its one end, or the noise."""
    plain = isinstance(cell.value, int | float) and isinstance(cell.width, int | float)
    if not (cell.above or cell.below) or cell.value is None:
        return _bar(cell.width, cell.value)
    if plain and cell.above != cell.below:
        return (
            f" {'≥' if cell.above else '≤'} {_number(cell.value + (-1 if cell.above else 1) * cell.width, cell.width)}"
        )
    return f" noise{_bar(cell.width, cell.value)}"


def _bar(width: float | None, of: Any = None) -> str:
    """Dates are off by days, moments by microseconds."""
    if width is None or width == 0:
        return ""
    if not math.isfinite(width):
        return " ± ∞"
    if isinstance(of, datetime.datetime):
        return f" ± {datetime.timedelta(seconds=round(width / 1e6))}" if width < 1e20 else " ± ∞"
    return f" ± {_number(width, width)}" + (" days" if isinstance(of, datetime.date) else "")


def _number(value: Any, width: float | None) -> str:
    """With three digits of the error bar."""
    if not isinstance(value, int | float):
        return _plain(value)
    if width is None or width == 0 or not math.isfinite(width):
        return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.6g}"
    if not 1e-9 < width < 1e15 or abs(value) >= 1e15:
        return f"{value:.6g}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(width)))}f}"


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    return printable(value)


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def is_number(cell: Cell) -> bool:
    return cell.number or (isinstance(cell.value, int | float) and not isinstance(cell.value, bool))
