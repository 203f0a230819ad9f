"""The office's watch at a terminal: spinners and bars on stderr, notes, and Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ..office.watch import Watch
from .interrupts import held_back, stoppable
from .progress import counted, working
from .screen import say
from .telling import data_opens, screen

T = TypeVar("T")


class Terminal(Watch):
    """What a person sees while the office works; `wait` is how many seconds it waits for another at most."""

    def __init__(self, wait: float = 0.0) -> None:
        self._wait = wait

    def loads(self) -> AbstractContextManager[None]:
        return held_back()

    def works(self, text: str) -> AbstractContextManager[None]:
        return working(text)

    def counts(self, items: Collection[T], text: str) -> Iterator[T]:
        return counted(items, text)

    def steps(self, count: int) -> AbstractContextManager[Callable[[Any], None] | None]:
        from .work.train_bar import training_bar

        return training_bar(count)

    def opens(self) -> None:
        data_opens()

    def stops(self) -> AbstractContextManager[Callable[[], bool]]:
        return stoppable()

    def waits(self, holder: str) -> None:
        self.notes(f"{holder} is at work on this project: waiting for it, {self._wait:g} seconds at most")

    def notes(self, text: str) -> None:
        say(screen(errors=True), text, first="note  ", style="yellow")
