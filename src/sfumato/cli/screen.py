"""The terminal: how wide, which signs it knows, and the few drawings that several commands share."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..plain_text import printable

_ASCII = str.maketrans(
    {
        "±": "+-", "∞": "inf", "█": "#", "▓": "+", "░": ".", "…": "...", "—": "-", "–": "-", "·": "-", "→": "->",
        "≤": "<=", "≥": ">=", "×": "x", "²": "^2", "✓": "ok", "“": '"', "”": '"', "’": "'", "é": "e", "╭": "+",
        "╮": "+",        "╰": "+", "╯": "+", "─": "-", "│": "|", "━": "-", "├": "|", "└": "`", "ε": "epsilon",
        "δ": "delta", "ρ": "rho",
    }
)  # fmt: skip
_HANDLER = "sfumato-plain"


class Screen(Console):
    """A console that ends quietly where its reader has gone (`| head`), and that no text gives orders to: names and
    keys come from others, and a terminal obeys what stands in them (colours, titles, directions of writing)."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def sign(self, text: str) -> str:
        """The text in signs that this terminal has; those of one width where it knows them."""
        return text.translate(_ASCII) if self.options.ascii_only else text


def screen(*, errors: bool = False) -> Screen:
    """The terminal, or the plain text that stands for it in a pipe: there no line is broken, so that others can read
    it line by line."""
    file: IO[str] = sys.stderr if errors else sys.stdout
    wrapped = file.isatty()
    return Screen(file=file, highlight=False, markup=False, emoji=False, soft_wrap=not wrapped)


def plain_signs() -> None:
    """Let a terminal that does not know a sign show one that it does, rather than fail."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(getattr(stream, "encoding", None), str) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = error.object[error.start : error.end].translate(_ASCII)
    return "".join(each if each.isascii() else "?" for each in shown), error.end


def bar(share: float, *, now: float | None = None, width: int = 20) -> Text:
    """How much of something is gone: what was, and what this adds, of the whole."""
    before = min(max(share, 0.0), 1.0)
    after = min(max(now if now is not None else before, before), 1.0)
    first, last = round(before * width), round(after * width)
    if after > before and first == last:  # a small step is still one that is seen
        last = min(first + 1, width)
    colour = "green" if after < 0.5 else "yellow" if after < 0.8 else "red"
    drawn = Text("█" * first, style=colour)
    drawn.append("▓" * (last - first), style=colour)
    drawn.append("░" * (width - last), style="dim")
    return drawn


def percent(share: float) -> str:
    """A share in words: what is not nothing is never shown as 0 %, nor what is not all as 100 %."""
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")


def facts(console: Console, lines: Sequence[tuple[str, Any]], *, wide: int = 0) -> None:
    """Names at the left, what they are at the right, wrapped under itself."""
    wide = max((wide, *(cell_len(name) for name, _ in lines)))
    last = None
    for name, text in lines:
        shown = text if isinstance(text, Text) else Text(str(text))
        label = Text(f"{'' if name == last else name:{wide}}  ", style="dim")
        last = name
        say(console, shown, first=label)


def say(console: Console, text: Text | str, *, first: Text | str = "", style: str = "") -> None:
    """A text that is wrapped below itself, after what stands before it in the first line."""
    head = Text(first) if isinstance(first, str) else first
    body = Text(text, style=style) if isinstance(text, str) else text
    _plainly(console, head)
    _plainly(console, body)
    indent = cell_len(head.plain)
    if console.soft_wrap:
        lines = body.split("\n", allow_blank=True)
    else:
        room = max(console.width - indent, 16)
        lines = body.wrap(console, room)
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble(head if number == 0 else " " * indent, line), soft_wrap=True)


def columns(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Sequence[int] = (),
    *,
    head: bool = True,
) -> None:
    """A table without lines. In a pipe it is as wide as it has to be."""
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False, show_header=head
    )
    for number, name in enumerate(heads):
        table.add_column(_plainly(console, Text(name)), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_plainly(console, each if isinstance(each, Text) else Text(str(each))) for each in row))
    if console.soft_wrap:
        wide = console.measure(table, options=console.options.update(width=10_000)).maximum
        lines = console.render_lines(table, console.options.update(width=wide + len(heads)), pad=False)
        for line in lines:
            console.print(Text("".join(part.text for part in line).rstrip()))
        return
    console.print(Padding(table, 0), soft_wrap=False)


def _plainly(console: Console, text: Text) -> Text:
    if isinstance(console, Screen) and console.options.ascii_only:
        text.plain = console.sign(text.plain)
    return text
