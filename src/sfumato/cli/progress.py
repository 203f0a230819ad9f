"""What a person sees while work goes on: on a terminal, on stderr, and only once it has taken two seconds.

The engine's own progress is never shown: how fast it gets on, and where it stops, depends on the private rows. Of a
release there is only the time that has passed, which anybody with a clock knows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import TimeRemainingColumn as Left

from .telling import screen

if TYPE_CHECKING:
    from .screen import Screen

T = TypeVar("T")
PATIENCE = 2.0  # seconds


class Meter(Protocol):
    """Takes the number that is done; and the words before the bar, where they change."""

    def __call__(self, number: int, text: str | None = None) -> None: ...


@contextmanager
def working(text: str) -> Iterator[None]:
    """Work of unknown length: a sign of life, and the time that has passed."""
    console = _terminal()
    if console is None:
        yield
        return
    spinner = "line" if console.options.ascii_only else "dots"
    shown = Progress(SpinnerColumn(spinner), TextColumn("{task.description}"), TimeElapsedColumn(), console=console,
                     transient=True)  # fmt: skip
    shown.add_task(console.sign(text), total=None)
    over, lock = threading.Event(), threading.Lock()

    def wait() -> None:
        if not over.wait(PATIENCE):
            with lock:
                if not over.is_set():
                    shown.start()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield
    finally:
        over.set()
        with lock:
            shown.stop()


def counted(items: Collection[T], text: str) -> Iterator[T]:
    """Work on known items, one by one: a bar, how many are done, and the time left."""
    console = _terminal()
    if console is None:
        yield from items
        return
    began = time.monotonic()
    shown = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left(), console=console,
                     transient=True)  # fmt: skip
    task = shown.add_task(console.sign(text), total=len(items))
    started = False
    try:
        for item in items:
            if not started and time.monotonic() - began > PATIENCE:
                shown.start()
                started = True
            yield item
            shown.advance(task)
    finally:
        if started:
            shown.stop()


@contextmanager
def metered(text: str, total: int) -> Iterator[Meter]:
    """Work that says itself how far it is: call what this gives with the number that is done."""
    console = _terminal()
    if console is None:
        yield lambda number, text=None: None
        return
    began = time.monotonic()
    named = TextColumn("{task.description}", markup=False)  # releases have names of the user's own
    shown = Progress(named, BarColumn(), TaskProgressColumn(), Left(), console=console, transient=True)
    task = shown.add_task(console.sign(text), total=total)
    started = False

    def done(number: int, text: str | None = None) -> None:
        nonlocal started
        if not started and time.monotonic() - began > PATIENCE:
            shown.start()
            started = True
        shown.update(task, completed=number, description=None if text is None else console.sign(text))

    try:
        yield done
    finally:
        if started:
            shown.stop()


def _terminal() -> Screen | None:
    console = screen(errors=True)
    return console if console.is_terminal and not console.is_dumb_terminal else None
