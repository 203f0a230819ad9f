"""Small files that several processes write: one at a time, and on the disk when they say so."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_WAIT = 30.0  # seconds for other writers, each of whom syncs a line


def lock_alone(file: int) -> None:
    until = time.monotonic() + _WAIT
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.002)


def sync_folder(folder: Path) -> None:
    """A new file is in its folder for good only when the folder is synced too."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
