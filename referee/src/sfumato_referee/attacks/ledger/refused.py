"""Release from a ledger that may not be written, and say what came of it: `answered`, or the refusal.

    ... refused LIMIT USER DESIGN FOLDER...

LIMIT is the most bytes that a file may have: the disk is full there, and it releases until it is refused, then twice
more. USER is who it becomes. 0 stands for neither.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sfumato.errors import LedgerError

from .releasing import opened, prepare, show


def attempts(folder: Path, most: int, wait: float = 0.05, design: str = "right") -> list[str]:
    """Up to so many releases; after the first refusal two more are tried, on the store as it is."""
    told: list[str] = []
    try:
        ledger = opened(folder, design, wait=wait)
    except LedgerError as problem:
        return [str(problem)]
    with ledger:
        for number in range(most):
            try:
                show(folder, number, ledger)
                told.append("answered")
            except LedgerError as problem:
                told.append(str(problem))
            if told[-3:-2] not in ([], ["answered"]):
                break
    return told


def main(limit: str, user: str, design: str, *folders: str) -> None:
    import resource  # not on every system

    with tempfile.TemporaryDirectory() as other:
        attempts(prepare(Path(other)), 1)  # whatever is imported late is imported now
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    if int(user):
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    for folder in map(Path, folders):
        print("\n".join(attempts(folder, 90 if int(limit) else 1, design=design)))
