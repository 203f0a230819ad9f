"""What whoever gives an order sees while the office works. All of it is public; by default nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


def _never() -> bool:
    return False


class Watch:
    """A skin overrides what it has a use for."""

    def loads(self) -> AbstractContextManager[None]:
        """Around what must not be cut in two: an engine that is interrupted while it loads takes the process down."""
        return nullcontext()

    def works(self, text: str) -> AbstractContextManager[None]:
        """Around work of unknown length."""
        return nullcontext()

    def counts(self, items: Collection[T], text: str) -> Iterator[T]:
        """Work on items that are known, one by one."""
        return iter(items)

    def steps(self, count: int) -> AbstractContextManager[Callable[[Any], None] | None]:
        """Around a training of so many steps: what takes its progress, or None. It is called while data is open."""
        return nullcontext()

    def opens(self) -> None:
        """From now on data may be open: nothing unexpected is quoted or traced any more."""

    def stops(self) -> AbstractContextManager[Callable[[], bool]]:
        """Around a release: tells whether somebody stopped it by hand."""
        return nullcontext(_never)

    def waits(self, holder: str) -> None:
        """Another is at work on this project, and this one waits for it."""

    def notes(self, text: str) -> None:
        """Something that whoever gave the order should know before it is paid."""


SILENT = Watch()
