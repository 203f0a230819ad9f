"""`sfumato series`: quote, run and read a series of a project."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...errors import ArgumentError, SfumatoError
from ...office.documents import Agreement
from ...office.documents import Document as OfficeDocument
from ...office.files import check_out, write_out
from ...office.series import SeriesDocument, agreed, quoted_series, ran_series, reading
from ...plain_text import csv_text
from ...project import open_project
from ...project.series_file import SeriesFile, load_series
from ...query.dated.series_reading import SeriesReading
from ...query.dated.told_windows import ToldWindows
from ..problems import BUDGET, DATA, problem_of
from ..screen import columns, facts, say
from ..telling import Outcome
from ..watching import Terminal
from .agreeing import agree
from .budgets import show_accounts

_SHOWN = 40
_WORDS = {
    "released": "released now",
    "answered": "released before",
    "due": "over, and not released",
    "ahead": "not over yet",
    "failed": "failed: empty for ever, and never drawn again",
    "stopped": "stopped or failed before: empty for ever, and never drawn again",
    "passed": "passed over: a later block was released before",
}


@dataclass(frozen=True)
class Wanted:
    """What is to be read, as it was typed."""

    first: str | None
    last: str | None
    every: str | None
    rolling: int | None
    running: bool
    by: Sequence[str] | None
    top: int | None
    column: str | None
    least: str | None
    alpha: float

    def of(self, blocks: SeriesReading) -> ToldWindows:
        """The windows; refused where several kinds of them are wanted at once."""
        kinds = [self.first is not None or self.last is not None, self.every is not None, self.rolling is not None]
        if sum([*kinds, self.running]) > 1:
            raise ArgumentError(
                "several windows are asked for: give --from and --to, or one of --every, --rolling, --running."
            )
        how: dict[str, Any] = {"by": self.by or None if self.by != () else (), "least": self.least, "alpha": self.alpha}
        if self.every is not None:
            windows = blocks.by_level(self.every, **how)
        elif self.rolling is not None:
            windows = blocks.rolling(self.rolling, **how)
        elif self.running:
            windows = blocks.running(**how)
        else:
            begin, after = blocks.span
            last = after - dt.timedelta(days=1)
            windows = blocks.window(self.first or begin, self.last or last, **how)
        return windows if self.top is None else windows.top(self.top, self.column or windows.columns[0].title)


@dataclass(frozen=True, kw_only=True)
class WindowsDocument(OfficeDocument):
    """What was read: a row for each window and group. Numbers that are hidden are null; *_raw is as it was released."""

    document: Literal["series-windows/1"] = "series-windows/1"
    project: str
    series: str
    alpha: float
    rows: list[dict[str, Any]]
    notes: list[str]


def quoted(folder: Path, file: Path) -> Outcome:
    """Where it stands, and what it costs."""
    project = open_project(folder)
    body = quoted_series(project, load_series(file, project), dt.datetime.now(dt.UTC))
    return Outcome(body, lambda console: _show(console, body), 0 if body.fits else BUDGET)


def ran(folder: Path, file: Path, *, yes: bool, wait: float) -> Outcome:
    """Pay for it if nobody has, and release what is over."""
    project = open_project(folder)
    order = load_series(file, project)

    def agreement(offer: SeriesDocument) -> Agreement:
        agree(lambda console: _show_price(console, offer), "pay for all of it?", yes=yes or not offer.fits)
        return agreed(offer)

    now = dt.datetime.now(dt.UTC)
    body = ran_series(project, order, now, agreement, wait=wait, watch=Terminal(wait), wording=_why)
    states = {block.status for block in body.blocks}
    code = DATA if "failed" in states else BUDGET if any(block.problem for block in body.blocks) else 0
    return Outcome(body, lambda console: _show(console, body), code)


def windows_read(folder: Path, file: Path, wanted: Wanted, out: Path | None) -> Outcome:
    """Read what was released."""
    project = open_project(folder)
    order = load_series(file, project)
    windows = wanted.of(reading(project, order))
    table = windows.table()
    cells = [[_cell(cell) for cell in row] for row in zip(*table.values(), strict=True)]
    if out is not None:
        check_out(out, project)
        page = out.suffix.lower() in (".html", ".htm")
        text = _page(order, windows) if page else csv_text([list(table), *cells])
        write_out(out, text.encode("utf-8"))
    body = WindowsDocument(
        project=project.name,
        series=order.name,
        alpha=wanted.alpha,
        rows=[dict(zip(table, row, strict=True)) for row in cells],
        notes=list(windows.notes),
    )

    def show(console: Console) -> None:
        if out is None:
            _show_windows(console, windows)
        else:
            say(console, f"{len(cells)} rows are in {out}")
        for note in windows.notes:
            say(console, note, style="dim")

    return Outcome(body, show)


def _page(order: SeriesFile, windows: ToldWindows) -> str:
    from .series_page import series_page

    return series_page(order.note or order.name, order.plan, windows)


def _why(error: SfumatoError) -> str:
    return problem_of(error).why


def _cell(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, dt.date) else cell


def _show_price(console: Console, body: SeriesDocument) -> None:
    lines: list[tuple[str, Any]] = [("price", Text(body.price, style="bold")), ("hides", body.hides)]
    lines += [(days, words) for days, words in body.prices.items()]
    facts(console, lines)


def _show(console: Console, body: SeriesDocument) -> None:
    _show_price(console, body)
    counted = Counter(str(block.status) for block in body.blocks)
    lines = [(f"{counted[status]}", words) for status, words in _WORDS.items() if counted[status]]
    console.print()
    columns(console, ["blocks", ""], lines, right=(0,))
    for block in body.blocks:
        if block.status == "released" or block.problem is not None:
            say(console, block.problem or _WORDS[block.status], first=f"{block.name}: ")
    console.print()
    show_accounts(console, body.budget)
    if not body.paid:
        verdict = "is paid when it runs first" if body.fits else "does not fit the budget"
        facts(console, [("verdict", Text(verdict, style="bold green" if body.fits else "bold red"))])
    if body.alert is not None:
        say(console, body.alert, first="alert  ", style="yellow")


def _show_windows(console: Console, windows: ToldWindows) -> None:
    """The table, as far down as one reads: numbers with what noise may have made of them."""
    table = windows.table()
    heads = ["from", "to", *windows.keys, *(column.title for column in windows.columns)]
    names = [name for name in table if not name.endswith(("_raw", "_low", "_high"))]
    rows = []
    widths = {column.title: windows.interval(column.title) for column in windows.columns}
    for place, row in enumerate(zip(*(table[name] for name in names), strict=True)):
        if place == _SHOWN:
            break
        shown = [str(_cell(cell)) for cell in row[: 2 + len(windows.keys)]]
        for column, cell in zip(windows.columns, row[2 + len(windows.keys) :], strict=True):
            ends = widths[column.title][place]
            half = "" if ends is None else f" ± {(ends[1] - ends[0]) / 2:,.0f}"
            shown.append("not told" if ends is None else f"hidden{half}" if cell is None else f"{cell:,.0f}{half}")
        rows.append(shown)
    columns(console, heads, rows, right=range(2 + len(windows.keys), len(heads)))
    more = len(table["first_day"]) - len(rows)
    if more > 0:
        say(console, f"... and {more} more rows: --out writes all of them", style="dim")
