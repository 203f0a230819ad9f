"""Ctrl-C: a release stops, and its receipt is settled, however often the keys are pressed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LATER = 0.02  # seconds, until a Ctrl-C that came while something was cleaned up is tried again


def no_more() -> None:
    """Once it was pressed, it is not heard again: what follows is short, and says how things ended."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def held_back() -> Iterator[None]:
    """For what must not be cut in two, such as loading an engine: Ctrl-C counts when it is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _finalizing(frame: FrameType | None) -> bool:
    """Is something being cleaned up? What is raised there goes nowhere, and Ctrl-C would not be heard."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C interrupts. Yields whether it was pressed: an engine that is interrupted may say so in its own
    way, which must not count as a failure on the data's side."""
    pressed = threading.Event()

    def stop(_: int, frame: FrameType | None) -> None:
        if _finalizing(frame):
            threading.Timer(_LATER, os.kill, (os.getpid(), signal.SIGINT)).start()
            return
        no_more()
        pressed.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield pressed.is_set
    finally:
        if not pressed.is_set():
            signal.signal(signal.SIGINT, before)
