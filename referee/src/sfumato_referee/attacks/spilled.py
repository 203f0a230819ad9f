"""P2: what a killed process leaves on disk. An engine that runs out of memory writes cells to files, keys of units too,
in plain text. A process that is killed there removes nothing; whoever reads the disk later, or its backup, finds them.
The next session that is opened in the same place must remove them, and leave alone what a living one uses.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sfumato.schema import Table, key, whole
from sfumato.sources import Frame, connect
from sfumato.sources.base import needed
from sfumato.sources.vocabulary import read

from .verdict import CouldNotRunError, Verdict

UNIT = b"Violetta-"
TABLE = Table({"who": key(), "n": whole(0, 100)}, unit="who")
_ROWS, _MEMORY, _SECONDS = 300_000, 32 * 2**20, 120
_SORT = "SELECT max(s) AS s, max(who) AS w FROM (SELECT who, sum(n) OVER (ORDER BY who DESC) AS s FROM people)"

Opens = Callable[[Path], None]
"""Opens a session whose files go to a folder, and closes it."""


def library(place: Path) -> None:
    connect({"people": (TABLE, Frame({"who": ["a"], "n": [1]}))}, temp=place).close()


def forgetful(place: Path) -> None:
    """The planted bug: a session that removes its own files, and looks at no others."""
    folder = tempfile.mkdtemp(dir=place)
    needed("duckdb").connect(":memory:", config={"temp_directory": folder}).close()
    shutil.rmtree(folder)


def attack(opens: Opens = library) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        living = connect({"people": (TABLE, Frame({"who": ["a"], "n": [1]}))}, temp=place)
        used = set(place.iterdir())
        _kill_one(place)
        left = _with_keys(place)
        opens(place)
        still, gone = _with_keys(place), [path for path in used if not path.is_dir()]
        living.close()
    if not left:
        raise CouldNotRunError("the engine wrote no key to disk before it was killed: nothing could be shown")
    words = f"A killed process left {left} file(s) with keys of units; after the next session there are {still}"
    words += ", and the folder of a living one is gone." if gone else "."
    return Verdict("P2", bool(still or gone), words, {"left": left, "still there": still, "of the living": len(gone)})


def _kill_one(place: Path) -> None:
    """A process of its own, killed as soon as keys are on disk."""
    child = multiprocessing.get_context("spawn").Process(target=_spill, args=(str(place),), daemon=True)
    child.start()
    until = time.monotonic() + _SECONDS
    while child.is_alive() and time.monotonic() < until and not _with_keys(place):
        time.sleep(0.01)
    child.kill()
    child.join()


def _spill(place: str) -> None:
    who = [UNIT.decode() + hashlib.sha256(str(row).encode()).hexdigest() for row in range(_ROWS)]
    rows = needed("pyarrow").table({"who": who, "n": [row % 100 for row in range(_ROWS)]})
    session = connect({"people": (TABLE, Frame(rows))}, threads=1, memory=_MEMORY, temp=place)
    while True:
        session.run(read(_SORT))


def _with_keys(place: Path) -> int:
    return sum(UNIT in _content(path) for path in place.glob("*/*"))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
