"""The head: number and hash of a ledger's last entry, in a small file outside the store.

A store may lose its end without a trace: SQLite takes a broken frame of its log for the end of it, and drops what comes
after. So whatever was paid is told here, too, and is durable before anything is released on the strength of it. Who
opens the ledger holds the chain to it: a chain that ends before, or has another hash there, lost what was released.

The file has two places of 512 bytes, each with a checksum. A new head goes to the place that does not hold the last
synced one, so whenever the power goes, one of them is whole. A write never goes back: of two processes, the one that
comes later with an earlier entry only syncs. (A head that is not synced survives the death of its process.)
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...errors import LedgerError
from .chain import Link
from .files import lock_alone, sync_folder

PLACE = 512  # bytes: what a disk writes whole
UNUSABLE = "the ledger's head cannot be used: make the file {} readable and writable, with room on the disk"
DAMAGED = (
    "the ledger's head is damaged: neither place of the file {} can be read. Nothing is released: bring it back, or "
    "have two persons accept the ledger without it with accept_restore"
)
_FORM = re.compile(rb"sfumato-head/1 ([0-9]{1,19}) ([0-9a-f]{64}) (lazy|sync) ([0-9a-f]{16})\n *\n")
_LOOKS, _PAUSE = 5, 0.002  # somebody may be writing a place while it is read


class _Slot(NamedTuple):
    link: Link
    synced: bool


class HeadFile:
    """The head of one ledger.

    kind  where it lies, in a word: a ledger remembers that it has a head there
    """

    def __init__(self, path: str | Path, kind: str = "beside") -> None:
        self.path, self.kind = Path(path), kind

    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> Link | None:
        """The last head; None where there is no file."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError:
            raise LedgerError(UNUSABLE.format(self.path.name)) from None
        try:
            return self._last(file)
        except OSError:
            raise LedgerError(UNUSABLE.format(self.path.name)) from None
        finally:
            os.close(file)

    def torn(self) -> bool:
        """Is one of the two places unreadable? A power cut leaves that behind; the next write mends it."""
        try:
            return None in _slots(self.path.read_bytes())
        except OSError:
            raise LedgerError(UNUSABLE.format(self.path.name)) from None

    def begin(self, link: Link) -> None:
        """A new file, on the disk on return; one that is there is left as it is."""
        with self._alone(os.O_CREAT) as file:
            if os.fstat(file).st_size == 0:
                self._put(file, 0, _Slot(link, True))
                self._put(file, 1, _Slot(link, True))
                os.fsync(file)
        try:
            sync_folder(self.path.parent)
        except OSError:
            raise LedgerError(UNUSABLE.format(self.path.name)) from None

    def write(self, link: Link, *, sync: bool) -> None:
        """The chain has come to this entry. With `sync`, the disk knows it on return."""
        with self._alone() as file:
            if link.number > self._last(file).number:
                self._put(file, self._free(file), _Slot(link, sync))
            if sync:
                os.fdatasync(file)

    def reset(self, link: Link) -> None:
        """Persons have decided that the chain goes on from here."""
        with self._alone(os.O_CREAT) as file:
            for place in (0, 1):
                self._put(file, place, _Slot(link, True))
                os.fsync(file)

    @contextmanager
    def _alone(self, how: int = 0) -> Iterator[int]:
        try:
            file = os.open(self.path, os.O_RDWR | how, 0o644)
            try:
                lock_alone(file)
                yield file
            finally:
                os.close(file)
        except OSError:
            raise LedgerError(UNUSABLE.format(self.path.name)) from None

    def _last(self, file: int) -> Link:
        for _ in range(_LOOKS):
            slots = [slot for slot in _slots(os.pread(file, 2 * PLACE, 0)) if slot is not None]
            if len(slots) == 2:
                break
            time.sleep(_PAUSE)
        if not slots:
            raise LedgerError(DAMAGED.format(self.path.name))
        return max(slot.link for slot in slots)

    def _free(self, file: int) -> int:
        """The place that may be written: not that of the last synced head, nor of the only one that is whole."""
        first, second = _slots(os.pread(file, 2 * PLACE, 0))
        if first is None or second is None:
            return 0 if first is None else 1
        return 0 if (first.synced, first.link.number) < (second.synced, second.link.number) else 1

    def _put(self, file: int, place: int, slot: _Slot) -> None:
        text = _text(slot)
        if os.pwrite(file, text, place * PLACE) != len(text):
            raise OSError


def _text(slot: _Slot) -> bytes:
    line = f"sfumato-head/1 {slot.link.number} {slot.link.hash.hex()} {'sync' if slot.synced else 'lazy'}".encode()
    return (line + b" " + _checksum(line) + b"\n").ljust(PLACE - 1) + b"\n"


def _checksum(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest()[:16].encode()


def _slots(content: bytes) -> tuple[_Slot | None, _Slot | None]:
    return _slot(content[:PLACE]), _slot(content[PLACE : 2 * PLACE])


def _slot(text: bytes) -> _Slot | None:
    read = _FORM.fullmatch(text)
    if read is None or len(text) != PLACE or _checksum(text[: read.start(4) - 1]) != read[4]:
        return None
    return _Slot(Link(int(read[1]), bytes.fromhex(read[2].decode())), read[3] == b"sync")
