"""On a terminal, nothing is paid before somebody has seen the price."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from ..problems import INTERRUPTED, CommandError
from ..telling import screen


def agree(show: Callable[[Console], None], question: str, *, yes: bool) -> None:
    """Show what is to be paid, and ask; with `yes`, or where nobody sits there, the order itself is the agreement."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    console = screen(errors=True)
    show(console)
    try:
        reply = console.input(Text(f"{question} [y/N] ")).strip().lower()
    except EOFError:
        reply = ""
    if reply not in ("y", "yes"):
        raise CommandError("nothing was charged", "nobody said yes", "run it again, or with --yes", INTERRUPTED)
