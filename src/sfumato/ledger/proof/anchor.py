"""Checkpoints: signed lines, kept outside the store, that say how far the chain had come.

Whoever can write the store can rewrite its whole chain, or cut its end off; a checkpoint elsewhere shows it. Each line
names the ledger, an entry with its hash, and the line before it, so lines cannot be changed, lost or moved unseen
either, but for the last ones; an anchor belongs where those who write the store cannot take lines away.

The fencing token is (writer, epoch): each writer enters with an epoch of its own, published here before its first
spend. See anchored.py.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ... import checks, record
from ...errors import LedgerError, RecordError
from .files import lock_alone, sync_folder
from .head import HeadFile
from .keys import Key, signed_by

FIRST = "0" * 64  # what stands for the line before the first
DAMAGED = "the anchor is damaged: its last line is no checkpoint; compare it with a copy, and run `verify`"
STRANGE_KEY = "the anchor was signed with another key: give the key that belongs to it, or name the old one as trusted"
UNUSABLE = "the anchor cannot be used: make its folder and file readable and writable, with room on the disk"
_BEGINNING = 21  # bytes with which every line begins
_LONGEST = 100_000  # bytes of a line


@record.record("checkpoint/1")
@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """So far had the chain come.

    serial    the number of this line in the anchor
    before    SHA-256 of the line before it
    restored  two persons accepted a chain that does not continue the line before
    """

    ledger: str
    number: int
    hash: str
    at: str
    key: str
    writer: str
    epoch: int
    serial: int
    before: str
    restored: bool = False

    def signed(self, key: Key) -> bytes:
        """The line."""
        return record.canonical(Signed(self, key.sign(_signed_text(self))))


@record.record("signed-checkpoint/1")
@dataclass(frozen=True)
class Signed:
    checkpoint: Checkpoint
    signature: str


def _signed_text(checkpoint: Checkpoint) -> bytes:
    return b"sfumato checkpoint\n" + record.canonical(checkpoint)


def read(line: bytes, trusted: Collection[str]) -> Checkpoint:
    """The checkpoint of a line; refused unless one of the trusted keys signed exactly this."""
    try:
        signed = record.parse(line, Signed)
        whole = isinstance(signed.checkpoint, Checkpoint) and record.canonical(signed) == line
    except RecordError:
        raise LedgerError(DAMAGED) from None
    if not whole or not signed_by(signed.checkpoint.key, signed.signature, _signed_text(signed.checkpoint)):
        raise LedgerError(DAMAGED)
    if signed.checkpoint.key not in trusted:
        raise LedgerError(STRANGE_KEY)
    return signed.checkpoint


def fingerprint(line: bytes | None) -> str:
    """What the next line says of this one."""
    return FIRST if line is None else hashlib.sha256(line).hexdigest()


class Anchor(Protocol):
    """A place for lines that only grows. It knows nothing of what they say."""

    def mark(self) -> object:
        """Something cheap that differs whenever a line was added; None while there is no line."""

    def last(self) -> bytes | None:
        """The last whole line."""

    def lines(self) -> Iterator[bytes]:
        """All of them, each with its line end; a last one that a crash cut short comes without."""

    def add(self, line: bytes, after: bytes | None) -> bool:
        """One more line, durable on return, if `after` is still the last one; otherwise False, and nothing changes."""


class FileAnchor:
    """A file of lines, in a folder other than the store's; better on another disk, owned by somebody else."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(checks.path(path, "anchor"))

    @property
    def folder(self) -> Path:
        return self._path.resolve().parent

    @property
    def head(self) -> HeadFile:
        """Beside it, where the ledger's last entry is told with each release; checkpoints come now and then."""
        return HeadFile(f"{self._path}-head", "anchor")

    def mark(self) -> object:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            raise LedgerError(UNUSABLE) from None
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else None

    def last(self) -> bytes | None:
        try:
            file = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError:
            raise LedgerError(UNUSABLE) from None
        try:
            return _last_line(file)[0]
        except OSError:
            raise LedgerError(UNUSABLE) from None
        finally:
            os.close(file)

    def lines(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            return
        except OSError:
            raise LedgerError(UNUSABLE) from None

    def add(self, line: bytes, after: bytes | None) -> bool:
        with self._alone() as file:
            found, end = _last_line(file)
            if found != after:
                return False
            if (size := os.fstat(file).st_size) > end:
                cut = os.pread(file, _BEGINNING, end)
                if size - end > _LONGEST or not line.startswith(cut):
                    raise LedgerError(DAMAGED)  # some other file: it is left as it is
                os.ftruncate(file, end)  # a line that a crash cut short never was a checkpoint
            text = line + b"\n"
            if os.write(file, text) != len(text):
                raise OSError
            os.fsync(file)
            return True

    @contextmanager
    def _alone(self) -> Iterator[int]:
        try:
            new = not self._path.exists()
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                lock_alone(file)
                yield file
                if new:
                    sync_folder(self._path.parent)
            finally:
                os.close(file)
        except OSError:
            raise LedgerError(UNUSABLE) from None


def _last_line(file: int) -> tuple[bytes | None, int]:
    """The last line that has its end, and where it ends. Lines are short, so a few blocks from the end hold it."""
    size = end = os.fstat(file).st_size
    tail = b""
    while end > 0:
        start = max(end - 4096, 0)
        tail = os.pread(file, end - start, start) + tail
        end = start
        whole, found, rest = tail.rpartition(b"\n")
        if found and (b"\n" in whole or not end):
            return whole.rpartition(b"\n")[2], size - len(rest)
    return None, 0
