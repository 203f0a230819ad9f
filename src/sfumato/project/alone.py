"""One long work on a project at a time: two trainings under one key end each other, with the steps lost that were paid,
and two runs of a list take each other's releases for stopped ones. That two overspend nothing, the ledger sees to.

The lock is the kernel's, on a file in the project's folder, and goes with the process that holds it, however that ends.
The file's text says whose it is, for whoever waits.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from .. import checks
from ..errors import BusyError
from .problems import ProjectError

LOCK = ".sfumato.lock"
WAIT = 60.0
"""Seconds that the second one waits, where nobody says how long."""
_EVERY = 0.05
_HELD: ContextVar[frozenset[tuple[int, Path]]] = ContextVar("held", default=frozenset())
_LONGEST = 300  # letters of what a lock says of its holder


@contextlib.contextmanager
def alone(file: Path, work: str, *, wait: float = WAIT, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of the project that this file describes; wait for whoever holds it, or leave with a BusyError. What
    is done inside holds it already.

    work   what is done meanwhile, in a few words, for others to read
    wait   seconds
    waits  is told once whom it waits for
    """
    checks.label(work, "work")
    until = time.monotonic() + checks.waiting(wait, "wait")
    here = os.getpid(), file.resolve()  # a fork works beside its parent, and not inside
    if here in _HELD.get():
        yield
        return
    lock, own = _opened(file)
    try:
        announced = False
        while not _locked(lock, file):
            holder = _holder(lock) if own else "another process"
            if time.monotonic() >= until:
                raise BusyError(
                    f"{holder} is at work on this project, and one training or run at a time is: "
                    "wait for it, or stop it",
                    code="at-work",
                )
            if waits is not None and not announced:
                waits(holder)
            announced = True
            time.sleep(_EVERY)
        if own:
            _sign(lock, work)
        before = _HELD.set(_HELD.get() | {here})
        try:
            yield
        finally:
            _HELD.reset(before)
            if own:
                _sign(lock, "")
    finally:
        os.close(lock)


def _opened(file: Path) -> tuple[int, bool]:
    """The lock, and whether its text says who holds it. Where this user may write nothing, the project's own file is
    locked: nobody replaces it there."""
    place = file.absolute().parent / LOCK
    for path, how in ((place, os.O_RDWR | os.O_CREAT), (place, os.O_RDONLY), (file, os.O_RDONLY)):
        with contextlib.suppress(OSError):
            lock = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
            if stat.S_ISREG(os.fstat(lock).st_mode):
                return lock, path == place
            os.close(lock)
    raise _unusable(file)


def _locked(lock: int, file: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        raise _unusable(file) from None
    return True


def _unusable(file: Path) -> ProjectError:
    return ProjectError(
        f"{LOCK} cannot be locked",
        "one training or run at a time works on a project, and this disk does not tell who does",
        "put the project on a disk that knows locks, and give this user the right to read it",
        file=file.name,
    )


def _sign(lock: int, work: str) -> None:
    """Say whose it is. A file that this user may only read stays as it is."""
    now = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    text = f"{work}, process {os.getpid()} on {platform.node()} since {now}" if work else ""
    with contextlib.suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, text.encode("utf-8", "replace"), 0)


def _holder(lock: int) -> str:
    text = os.pread(lock, 4 * _LONGEST, 0).decode("utf-8", "replace")[:_LONGEST]
    return text if text.strip() and text.isprintable() else "another process"
