"""The file that an answer goes to: refused before anything is paid where it cannot be written, then written whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from ..project.project import Project
from .problems import OfficeError

_REFUSED = "the answer cannot be written there; nothing was charged"


def check_out(out: Path, project: Project) -> None:
    """Refuse a file that could not be written, or one that the project lives by."""
    target = out.resolve()
    folder = target.parent
    odd = target.exists() and (not target.is_file() or not os.access(target, os.W_OK))
    if odd or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OfficeError(
            _REFUSED,
            f"{out} is no plain file, lies in no folder, or may not be written",
            "give a file in a folder that exists",
            "file",
            "out-unwritable",
        )
    if project.lives_by(out):
        raise OfficeError(
            _REFUSED, f"{out.name} is a file of the project itself", "give another name", "file", "out-own"
        )


def write_out(out: Path, content: bytes) -> None:
    """Whole or not at all; a link stays one. The first name of the file is nobody else's: two that write the same do
    not meet, and a link that somebody laid there leads nowhere."""
    target = out.resolve()
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            with part.open("xb") as file:
                file.write(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OfficeError(
            f"{out.name} cannot be written",
            f"{(error.strerror or 'the system refused it').lower()}; the answer itself is in the ledger",
            "make room for it, then ask again: what was answered is free",
            "file",
        ) from None


def write_changed(out: Path, content: bytes) -> bool:
    """Was it written? A file that holds the same already is left alone."""
    if _holds(out, content):
        return False
    with contextlib.suppress(OSError):  # writing says what is in the way
        out.parent.mkdir(parents=True, exist_ok=True)
    write_out(out, content)
    return True


def _holds(out: Path, content: bytes) -> bool:
    try:
        return out.is_file() and out.read_bytes() == content
    except OSError:
        return False
