"""Questions in a terminal: each has a default, a line that says why it is asked, and more behind a question mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from ..problems import INTERRUPTED, CommandError
from ..screen import say

T = TypeVar("T")


class BackError(Exception):
    """Somebody wants to answer the question before once more."""


class Prompts:
    """One conversation. Enter takes the default, ? explains, < goes back to the question before, and an answer that
    does not fit is asked again.

    The way back is the way from the start: the questions are asked anew, and the answers so far, but for the last, are
    given to them unseen (`talk`). So whatever an answer led to is undone with it.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answers: list[str] = []
        self._again: list[str] = []  # answers that are given unseen
        self._heading: str | None = None  # of a part that began unseen

    def talk(self, questions: Callable[[], T]) -> T:
        """Ask these questions, as often as somebody goes back."""
        while True:
            try:
                return questions()
            except BackError:
                self._again, self._answers = self._answers[:-1], []

    @property
    def unseen(self) -> bool:
        """Are answers given that were given before? Then nothing is shown."""
        return bool(self._again)

    def heading(self, text: str) -> None:
        self._heading = text
        if not self.unseen:
            self._begin()

    def _begin(self) -> None:
        if self._heading is not None:
            self.console.print()
            self.console.rule(Text(self._heading, style="bold"), align="left", style="dim")
        self._heading = None

    def say(self, text: str, style: str = "") -> None:
        if self.unseen:
            return
        for line in text.splitlines():
            say(self.console, line, first="  ", style=style)

    def ask(self, question: str, *, why: str, more: str, read: Callable[[str], T], default: str, shown: str = "") -> T:
        """Ask until the answer can be read. `shown` is what stands for the default on the screen."""
        if self.unseen:
            self._answers.append(self._again.pop(0))
            return read(self._answers[-1])
        self._begin()
        self.console.print()
        self.console.print(Text(question, style="bold"))
        self.say(why, "dim")
        while True:
            typed = self._line(shown or default)
            if typed == "<":
                if self._answers:
                    raise BackError
                self.say("this is the first question", "red")
            elif typed in ("?", "help"):
                self.say(more, "italic")
            else:
                try:
                    answer = read(typed or default)
                except CommandError as error:
                    self.say(f"{error.why}; {error.fix}", "red")
                    continue
                self._answers.append(typed or default)
                return answer

    def _line(self, default: str) -> str:
        try:
            return self.console.input(Text.assemble("  ", (f"[{default}]", "cyan"), " > ")).strip()
        except (EOFError, KeyboardInterrupt):
            self.console.print()
            raise CommandError(
                "stopped, and nothing was written",
                "the questions were not answered to the end",
                "run `sfumato init` again; `sfumato init --help` lists flags that answer them beforehand",
                INTERRUPTED,
            ) from None

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


def _truth(typed: str) -> bool:
    if typed.lower() in ("y", "yes"):
        return True
    if typed.lower() in ("n", "no"):
        return False
    raise CommandError("no answer", f"{typed[:40]!r} is neither yes nor no", "answer y or n")
