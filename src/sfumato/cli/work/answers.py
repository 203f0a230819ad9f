"""An answer on the screen: a table of values beside their error bars."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from ...office.answers import FORMATS as FILES
from ...plain_text import printable
from ...query.released.answer import Answer
from ...query.released.texts import Cell, legend, texts_of
from ...release import Release
from ..problems import CommandError
from ..screen import columns, facts, say
from ..shell_words import in_shell

FORMATS = ("table", *FILES)
_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
_SHOWN = 100  # rows on a screen; a file has all


def show_release(console: Console, release: Release, alpha: float) -> None:
    """The answer to a query as its table, any other release as names, values and error bars."""
    if isinstance(release.value, Answer):
        show_answer(console, release.value, alpha)
        return
    figures = release.figures(alpha)
    rows = [(name, Text(value, style="bold"), Text(bar, style="dim")) for name, value, bar in release.rows(alpha)]
    columns(console, ("", "", ""), rows[:_SHOWN], (1,), head=False)
    if len(rows) > _SHOWN:
        say(console, f"... and {len(rows) - _SHOWN} more: a file has all", style="dim")
    if not rows:
        say(console, "nothing came out", style="dim")
    if any(figure.is_number and figure.error is not None for figure in figures):
        say(console, f"± at {_confidence(alpha)}", style="dim")


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
    if explanation := legend(shown, _confidence(alpha)):
        say(console, explanation, style="dim")
    for note in answer.notes:
        say(console, in_shell(note), first="- ", style="dim")


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
    chosen = format or _ENDINGS.get(out.suffix.lower())
    if chosen is None or chosen == "table":
        raise CommandError(
            "the answer cannot be written like that",
            f"{out.name} does not end in .csv, .parquet or .json",
            "give another ending, or --format csv, parquet or json",
        )
    return chosen


def _confidence(alpha: float) -> str:
    return f"{100 * (1 - alpha):.6g} %"
