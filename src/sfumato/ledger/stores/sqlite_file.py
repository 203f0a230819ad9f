"""Where an SQLite ledger lies: which files they are, whether they are still the same, and how to read them only.

SQLite keeps what was written last in a second file beside the first, found by the first one's name. So a ledger must
have one name only: through a second one (a hard link, a file mounted alone) two writers would not see each other.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ...errors import LedgerError

NO_PLACE = "the ledger cannot be kept there: use a disk of this machine"
NO_FILE = "that path is a folder or a device, not a ledger's file: give the path of a file"
NO_PATH = "that path cannot be used: give the path of a file, not too long, without a circle of links"
NO_FOLDER = "there is no folder for the new ledger at that path: make the folder first, or give another path"
MOVED = "the ledger was moved, removed or replaced: put it back, then open the ledger anew"
TWO_NAMES = (
    "the ledger's file has a second name (a hard link, or it is mounted alone), and who writes through that one is not "
    "seen: remove the other name, mount the whole folder, or use a copy"
)
UNREADABLE = (
    "the ledger cannot be read: give this user the right to read the file, its folder, and the -wal and -shm files"
)
HALF = (
    "the last entries cannot be read: they are in the ledger's -wal file, and its -shm file is missing or may not be "
    "read; copy all three files together, or have somebody open the ledger who may write it"
)
_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\w*|ncpfs|afs|ceph|lustre|gpfs|ocfs2|gfs2|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone)"
)


class Content(NamedTuple):
    """Changes whenever the first file does."""

    place: tuple[int, int]
    size: int
    changed: int


class LedgerFile:
    """The files of one ledger."""

    def __init__(self, path: str | Path) -> None:
        try:
            self._given = Path(path).absolute()
            self.path = self._given.resolve()  # SQLite follows links too, and puts its other files beside the real one
            if self.path.exists() and not self.path.is_file():  # a pipe would be waited for, for ever
                raise LedgerError(NO_FILE)
        except (OSError, ValueError, RuntimeError):  # too long, a circle of links, or no text
            raise LedgerError(NO_PATH) from None
        self.wal = Path(f"{self.path}-wal")

    def exists(self) -> bool:
        return self.path.exists()

    def has_folder(self) -> bool:
        return self.path.parent.is_dir()

    def address(self, mode: str) -> str:
        return f"{self.path.as_uri()}?mode={mode}"

    def check_place(self) -> None:
        """Refuse where two processes could write without seeing each other."""
        mounted = _mounts()
        if self.path.is_file() and (self.path.stat().st_nlink != 1 or str(self.path) in mounted):
            raise LedgerError(TWO_NAMES)
        for folder in self.path.parents:
            if str(folder) in mounted:
                if _NETWORK.fullmatch(mounted[str(folder)]):
                    raise LedgerError(NO_PLACE)
                return

    def written(self) -> bool:
        """Is there anything in the second file?"""
        try:
            return self.wal.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError:
            raise LedgerError(UNREADABLE) from None

    def reading_address(self) -> tuple[str, bool]:
        """How to read without writing, and whether somebody may be writing. Without a second file the first is all
        there is, and is read as it lies; with one, its index (-shm) is needed, which is never written either."""
        if not self.written():
            return self.address("ro&immutable=1"), False
        if not os.access(f"{self.path}-shm", os.R_OK):
            raise LedgerError(HALF)
        return self.address("ro&readonly_shm=1"), True

    def places(self) -> tuple[tuple[int, int], ...]:
        """Which files are at the path now. A file that was removed can still be written, and nobody would see it."""
        try:
            first, second = self._given.stat(), self.wal.stat()
        except OSError:
            raise LedgerError(MOVED) from None
        if first.st_nlink != 1:
            raise LedgerError(TWO_NAMES if first.st_nlink else MOVED)
        return (first.st_dev, first.st_ino), (second.st_dev, second.st_ino)

    def content(self) -> Content:
        try:
            found = self._given.stat()
        except OSError:
            raise LedgerError(MOVED) from None
        return Content((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def _mounts() -> dict[str, str]:
    """What is mounted where, with its kind; nothing where the system does not tell."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) > 4:
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            found[place] = kind
    return found
