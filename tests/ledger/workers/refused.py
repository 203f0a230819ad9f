"""Release from a ledger that may not be written, and say what came of it: `answered`, or the refusal.

    python -m tests.ledger.workers.refused LIMIT USER FOLDER...

LIMIT is the most bytes that a file may have: the disk is full there, and it releases until it is refused, then twice
more. USER is who it becomes. 0 stands for neither.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from pathlib import Path

from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.ledger.workers.releasing import curator_of, prepare, show


def attempts(folder: Path, most: int, wait: float = 0.05) -> list[str]:
    """Up to so many releases; after the first refusal two more are tried, on the store as it is."""
    told: list[str] = []
    try:
        store = SQLiteStore(folder / "ledger", wait=wait)
    except LedgerError as problem:
        return [str(problem)]
    curator = curator_of(Ledger(store))
    for number in range(most):
        try:
            show(folder, number, curator)
            told.append("answered")
        except LedgerError as problem:
            told.append(str(problem))
        if told[-3:-2] not in ([], ["answered"]):
            break
    store.close()
    return told


def _main(limit: int, user: int, *folders: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as other:
        attempts(prepare(Path(other)), 1)  # whatever is imported late is imported now
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    return [told for folder in folders for told in attempts(folder, 90 if limit else 1)]


if __name__ == "__main__":
    print("\n".join(_main(int(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:]))))
