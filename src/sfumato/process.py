"""Which process we are in. What counts in memory (a budget, a reserve, the answers of a session) counts once only while
one process has it: a fork copies the count, and each copy would go on from there by itself."""

from __future__ import annotations

import os

_current = object()


def _renew() -> None:
    global _current
    _current = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class Home:
    """The process that something was made in. (Its number alone does not tell: another namespace has the same ones, and
    numbers come again; a fork from foreign code calls no Python, and shows by the number.)"""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = _current, os.getpid()

    @property
    def left(self) -> bool:
        """Are we in another process, with a copy of what was made there?"""
        return self._process != (_current, os.getpid())
