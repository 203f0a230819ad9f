"""What people read of names and keys, whatever these hold: `printable` words for terminals and pages, JSON that a
terminal does not obey, CSV, and shares in percent. HTML is another matter (`display`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any

_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters, by their names, that nobody sees


def printable(value: Any, *, lines: bool = False) -> str:
    """Any value in characters that can be seen, on one line. Others (control characters, line breaks, marks that turn
    the direction of writing, halves of characters, letters without a shape) are spelled out, so that they can neither
    give orders to a terminal, nor hide or break anything. `lines` keeps the line breaks of a text of our own."""
    words = str(value)
    if words.isprintable() and not _SHAPELESS.intersection(words):
        return words
    return "".join(sign if _is_seen(sign) or (lines and sign == "\n") else _spelled(sign) for sign in words)


def _is_seen(sign: str) -> bool:
    return sign.isprintable() and sign not in _SHAPELESS


def _spelled(sign: str) -> str:
    return repr(sign)[1:-1] if not sign.isprintable() else f"\\u{ord(sign):04x}"


def seen_json(text: str, *, ascii_only: bool = False) -> str:
    """The same JSON, with signs that nobody sees (a terminal obeys some) written as JSON writes them in ASCII."""

    def spelled(sign: re.Match[str]) -> str:
        return _escaped(sign[0]) if ascii_only or printable(sign[0]) != sign[0] else sign[0]

    return re.sub(r"[^\n -~]", spelled, text)


def _escaped(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV, every cell as it is: these are data, which programs read. A cell with a line break, of any kind,
    stands in quotes, so that it is one cell to every reader."""
    written = _Rows()
    csv.writer(written, lineterminator="\r\n").writerows(rows)  # it quotes the letters of its line ends, on any Python
    return "".join(written)


class _Rows(list[str]):
    """Rows that end in a line feed alone."""

    def write(self, row: str) -> None:
        self.append(row.removesuffix("\r\n") + "\n")


def percent(share: float) -> str:
    """Three digits; never 0 or 100 where it is not."""
    shown = f"{100 * share:.3g}"
    if shown == "100" and share < 1:
        return "over 99.9 %"
    return "under 0.001 %" if 0 < share < 1e-5 else f"{shown} %"
