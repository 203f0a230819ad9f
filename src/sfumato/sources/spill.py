"""The folder in which an engine puts what does not fit into memory: cells of the data, keys of units among them.

It is this user's alone, and is removed with its session. A process that is killed removes nothing, so the next one that
makes such a folder beside it removes those of the dead. Who is alive is asked of the kernel, by a lock on a file inside
that goes with its process: no number of a process that may since be another's, and no clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NAME = "sfumato-spill-"
_LOCK = "lock"
_TRIES = 100


class Spill:
    """One such folder, made and locked; `remove` it once nothing is written there any more."""

    def __init__(self, above: str | Path | None = None) -> None:
        place = Path(tempfile.gettempdir() if above is None else above).absolute()
        sweep(place)
        self._process = os.getpid()
        self.path, self._lock = _locked(place)

    def remove(self) -> None:
        """By the process that made it alone: a fork of it goes, and its parent goes on writing."""
        if os.getpid() == self._process:
            with contextlib.suppress(OSError):
                _remove(self.path)
        os.close(self._lock)


def _locked(place: Path) -> tuple[Path, int]:
    """A new folder whose lock is ours. Until it is, a sweeper may take the folder for a dead one's, and remove it: then
    another is made."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=_NAME, dir=place))  # only this user may enter it
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            with contextlib.suppress(OSError):  # a disk without locks: nobody sweeps there either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return path, lock
            os.close(lock)
    raise OSError("no folder for an engine could be made")


def sweep(place: str | Path) -> int:
    """Remove the folders that dead processes of this user left here; says how many. Those of others, links, and what
    only bears such a name stay."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in list(Path(place).glob(f"{_NAME}*")):
            with contextlib.suppress(OSError), _dead(path):
                _remove(path)
                removed += 1
    return removed


def _remove(path: Path) -> None:
    """The lock last: who dies on the way leaves a folder that is still known for a dead one's."""
    for entry in [entry for entry in path.iterdir() if entry.name != _LOCK]:
        inner = entry.is_dir() and not entry.is_symlink()
        shutil.rmtree(entry, ignore_errors=True) if inner else entry.unlink(missing_ok=True)
    shutil.rmtree(path)


@contextlib.contextmanager
def _dead(path: Path) -> Iterator[None]:
    """While the folder's lock is in our hands; raises an OSError where it is not ours, or not dead."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        state = os.fstat(folder)
        if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
            raise PermissionError("another's folder")
        if not any(path.iterdir()):  # its maker died, or will make another
            path.rmdir()
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(lock)
    finally:
        os.close(folder)
