"""Questions in a terminal: each has a default, a line that says why it is asked, and more behind a question mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from ..problems import INTERRUPTED, CommandError
from ..screen import say

T = TypeVar("T")


class Prompts:
    """One conversation. Enter takes the default, ? explains, and an answer that does not fit is asked again."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text, style="bold"), align="left", style="dim")

    def say(self, text: str, style: str = "") -> None:
        for line in text.splitlines():
            say(self.console, line, first="  ", style=style)

    def ask(self, question: str, *, why: str, more: str, read: Callable[[str], T], default: str, shown: str = "") -> T:
        """Ask until the answer can be read. `shown` is what stands for the default on the screen."""
        self.console.print()
        self.console.print(Text(question, style="bold"))
        self.say(why, "dim")
        while True:
            try:
                given = self.console.input(Text.assemble("  ", (f"[{shown or default}]", "cyan"), " > ")).strip()
            except (EOFError, KeyboardInterrupt):
                self.console.print()
                raise CommandError(
                    "stopped, and nothing was written",
                    "the questions were not answered to the end",
                    "run `sfumato init` again; `sfumato init --help` lists flags that answer them beforehand",
                    INTERRUPTED,
                ) from None
            if given in ("?", "help"):
                self.say(more, "italic")
                continue
            try:
                return read(given or default)
            except CommandError as error:
                self.say(f"{error.why}; {error.fix}", "red")

    def sure(self, question: str, *, why: str, more: str, default: bool) -> bool:
        """A question that is answered with yes or no."""
        return self.ask(
            question,
            why=why,
            more=more,
            read=_truth,
            default="y" if default else "n",
            shown="Y/n" if default else "y/N",
        )


def _truth(given: str) -> bool:
    if given.lower() in ("y", "yes"):
        return True
    if given.lower() in ("n", "no"):
        return False
    raise CommandError("no answer", f"{given[:40]!r} is neither yes nor no", "answer y or n")
