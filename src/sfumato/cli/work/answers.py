"""The answer to a query on its way out: as a table on the screen, as JSON, as a file."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from ...display import printable
from ...query.released.answer import Answer
from ...query.released.texts import Cell, legend, texts_of
from ..documents import Part
from ..problems import CommandError
from ..screen import columns, facts, say
from ..shell_words import in_shell
from ..telling import seen_json

FORMATS = ("table", "csv", "parquet", "json")
_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
_SHOWN = 100  # rows on a screen; a file has all


class Number(Part):
    """A released number.

    error     how far the farther end of the interval is; null where there is none, or where it is open
    low, high the interval at confidence 1 - alpha; null where it is open
    bias      by how much the number was raised for what limits cut; null where nobody knows what that is
    reliable  false where noise, or what limits cut, hides the number
    """

    value: JsonValue
    error: JsonValue
    low: JsonValue
    high: JsonValue
    std: JsonValue
    bias: JsonValue
    reliable: bool


class Column(Part):
    """A column: a key as it is, or a number with its error.

    exact  do the intervals hold as stated? Otherwise to first order: well, where noise is small beside the numbers
    """

    name: str
    kind: str
    exact: bool | None = None


def columns_of(answer: Answer) -> list[Column]:
    exact = answer.exact
    return [
        Column(name=name, kind="number", exact=exact[name]) if name in exact else Column(name=name, kind="key")
        for name in answer.columns
    ]


def rows_of(answer: Answer, alpha: float) -> list[dict[str, JsonValue | Number]]:
    """Each row by column: keys as they are, numbers with all that is known of them."""
    found: list[dict[str, JsonValue | Number]] = [{} for _ in range(len(answer))]
    for name in answer.columns:
        values = answer[name]
        if name not in answer.numbers:
            for row, value in zip(found, values, strict=True):
                row[name] = _plain(value)
            continue
        parts = zip(
            values, answer.half_width(name, alpha), answer.interval(name, alpha), answer.std[name],
            answer.bias(name), answer.unreliable[name], strict=True,
        )  # fmt: skip
        for row, (value, width, ends, std, bias, doubt) in zip(found, parts, strict=True):
            low, high = _ends(ends)
            row[name] = Number(
                value=_plain(value), error=_plain(width), low=low, high=high, std=_plain(std), bias=_plain(bias),
                reliable=not doubt,
            )  # fmt: skip
    return found


def notes_of(answer: Answer) -> list[str]:
    """What was weighted, dropped and left out, with the options of the shell where the notes name Python's."""
    return [in_shell(note) for note in answer.notes]


def show_answer(console: Console, answer: Answer, alpha: float) -> None:
    """Values beside their error bars, and below them what to know about them."""
    heads, cells = [], []
    shown: list[Cell] = []
    for name in answer.columns:
        if name not in answer.numbers:
            heads.append(printable(name))
            cells.append([Text("".join(texts_of(Cell(each)))) for each in answer[name][:_SHOWN]])
            continue
        numbers = answer.cells(name, alpha)[:_SHOWN]
        shown += numbers
        texts = [texts_of(cell) for cell in numbers]
        first, last = (max((len(each[side]) for each in texts), default=0) for side in (0, 1))
        heads.append(f"{printable(name):>{first}}".ljust(first + last))
        cells.append(
            [
                Text.assemble((f"{value:>{first}}", "dim" if doubt else "bold"), (f"{bar:<{last}}", "dim"))
                for (value, bar), doubt in zip(texts, (cell.doubt for cell in numbers), strict=True)
            ]
        )
    if console.soft_wrap or _width(heads, cells) <= console.width:
        columns(console, heads, list(zip(*cells, strict=True)))
    else:
        _one_by_one(console, answer, heads, cells)
    if len(answer) > _SHOWN:
        say(console, f"... and {len(answer) - _SHOWN} more rows: --out FILE writes all", style="dim")
    if not len(answer):
        say(console, "no rows: no group came out", style="dim")
    if said := legend(shown, _confidence(alpha)):
        say(console, said, style="dim")
    for note in notes_of(answer):
        say(console, note, first="- ", style="dim")


def _width(heads: list[str], cells: list[list[Text]]) -> int:
    """Of the table: its widest cells, and two blanks between."""
    widest = [max([len(head), *(each.cell_len for each in column)]) for head, column in zip(heads, cells, strict=True)]
    return sum(widest) + 2 * (len(widest) - 1)


def _one_by_one(console: Console, answer: Answer, heads: list[str], cells: list[list[Text]]) -> None:
    """Row after row, on a screen that is too narrow for the table: numbers that are broken in two are misread."""
    keys = [place for place, name in enumerate(answer.columns) if name not in answer.numbers]
    numbers = [place for place in range(len(heads)) if place not in keys]
    for row in zip(*cells, strict=True):
        if keys:
            say(console, Text(", ", style="bold").join(row[place] for place in keys), style="bold")
        facts(console, [(f"  {heads[place].strip()}", row[place]) for place in numbers])


def format_of(out: Path | None, format: str | None, *, json: bool) -> str:
    """How the answer leaves: refused here, before anything is paid."""
    if format is not None and format not in FORMATS:
        raise CommandError("--format is not known", f"it says {format[:40]!r}", f"give {', '.join(FORMATS)}")
    if out is None:
        if json and format is not None:
            raise CommandError("--json and --format do not go together", "both say what is printed", "give one of them")
        return format or "table"
    found = format or _ENDINGS.get(out.suffix.lower())
    if found is None or found == "table":
        raise CommandError(
            "the answer cannot be written like that",
            f"{out.name} does not end in .csv, .parquet or .json",
            "give another ending, or --format csv, parquet or json",
        )
    return found


def encoded(answer: Answer, format: str, alpha: float) -> bytes:
    """The file's bytes: after each column of numbers c also c_std, c_low, c_high and c_bias."""
    if format == "csv":
        return str(answer.to_csv(alpha=alpha)).encode("utf-8")
    if format == "parquet":
        from pyarrow import BufferOutputStream, parquet

        sink = BufferOutputStream()
        parquet.write_table(answer.to_arrow(alpha), sink)
        return bytes(sink.getvalue().to_pybytes())
    table = answer.table(alpha)
    rows = [
        dict(zip(table, (_plain(each) for each in cells), strict=True)) for cells in zip(*table.values(), strict=True)
    ]
    return (seen_json(json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)) + "\n").encode("utf-8")


def _confidence(alpha: float) -> str:
    return f"{100 * (1 - alpha):.6g} %"


def _ends(ends: Any) -> tuple[JsonValue, JsonValue]:
    if isinstance(ends, list):  # of a list of quantiles: one for each place
        pairs = [_ends(each) for each in ends]
        return [low for low, _ in pairs], [high for _, high in pairs]
    low, high = (None, None) if ends is None else ends
    return _plain(low), _plain(high)


def _plain(value: Any) -> JsonValue:
    """What JSON has a form for: dates are ISO text, and what is not finite is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return str(value)
