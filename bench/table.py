"""Text tables and quantities as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def aligned(rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """The rows in columns, a rule under the first; the leading `words` columns flush left, the figures flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["─" * width for width in widths]
    return "\n".join(_line(row, widths, words) for row in (rows[0], rule, *rows[1:]))


def _line(row: Sequence[str], widths: Sequence[int], words: int) -> str:
    cells = [
        cell.ljust(width) if column < words else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return ("  " + "   ".join(cells)).rstrip()


def duration(seconds: float) -> str:
    """Three figures and the unit that suits them: 21.4 ns, 16.5 µs, 2.32 ms."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 0.9995 * size), _UNITS[-1])
    return f"{figure(seconds / size)} {unit}"


def figure(value: float) -> str:
    """Three figures, or all before the decimal point: 0.52, 1.95, 16.5, 1 234."""
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f}".replace(",", " ")


def count(value: float) -> str:
    """A million as 1 000 000."""
    return f"{value:,.0f}".replace(",", " ")
