"""What every fuzz target has in common: only errors of this package may come out, without data, and within a time.

A target is a function of bytes. It returns, or it raises a `Finding`: never anything else.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from sfumato.errors import SfumatoError
from tests.helpers import everything_said

T = TypeVar("T")

SECONDS = 4.0  # of processor time, for one step of one input
CANARY = "CANARY-4711"
CANARY_NUMBER = 87_654_321


class Finding(AssertionError):  # noqa: N818 it is no error of the library
    """An input that the library does not take as it should."""


class Endless(BaseException):
    """Raised inside work that takes too long. No handler of the library's own may mistake it for an error of theirs."""


@contextmanager
def limited(what: str, seconds: float = SECONDS) -> Iterator[None]:
    """Stop work that takes more than so much processor time, and report it.

    Processor time, so that a busy machine finds nothing that an idle one does not. One long call into C is noticed only
    when it is over.
    """
    main = threading.current_thread() is threading.main_thread()
    began = time.process_time()

    def stop(_: int, frame: FrameType | None) -> None:
        if frame is None or frame.f_code.co_name != "gc_callback":  # what is raised there goes nowhere
            raise Endless

    before = signal.signal(signal.SIGPROF, stop) if main else None
    if main:
        signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)  # and again, should something swallow the first
    try:
        yield
    except Endless:
        raise Finding(f"{what}: not done within {seconds} s of processor time") from None
    finally:
        if main:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
    if time.process_time() - began > 2 * seconds:
        raise Finding(f"{what}: took more than {2 * seconds} s of processor time")


def attempt(
    what: str,
    work: Callable[[], T],
    *,
    allowed: tuple[type[BaseException], ...] = (SfumatoError,),
    secrets: tuple[str, ...] = (),
    seconds: float = SECONDS,
) -> T | BaseException:
    """What the work gives, or the error of the package that it raises; a Finding for any other error.

    secrets  texts that must stand nowhere in the error, nor in what it is chained to
    """
    try:
        with limited(what, seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except Finding:
        raise
    except allowed as problem:
        if secrets:
            said = everything_said(problem)
            for each in secrets:
                if each in said:
                    raise Finding(f"{what}: the error shows {each!r}: {str(problem)[:300]}") from None
        _printable(what, problem)
        return problem
    except Exception as problem:
        raise Finding(f"{what}: {type(problem).__name__} came out: {str(problem)[:300]}") from problem


def _printable(what: str, problem: BaseException) -> None:
    """A message that cannot be written to a terminal or a log is an error in the error."""
    text = str(problem)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Finding(f"{what}: the message cannot be written as UTF-8: {text[:200]!a}") from None
    if len(text) > 20_000:
        raise Finding(f"{what}: the message has {len(text)} characters")


def as_text(data: bytes) -> str:
    """Bytes as a text that may hold anything a Python text can: what is no UTF-8 becomes half characters."""
    return data.decode("utf-8", "surrogateescape")


class Choices:
    """Decisions read off bytes, so that a fuzzer that changes a byte changes a decision. Zeros follow the last one."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def of(self, options: Any) -> Any:
        """One of a list."""
        size = len(options)
        return options[self.byte() % size if size <= 256 else (self.byte() * 256 + self.byte()) % size]
