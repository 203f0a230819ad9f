"""L6: no ledger, no release. Full, read-only, locked, damaged or strange: it is refused, in words that never change.

Claim. Data is opened after two commits, of the charge and of the opening. Where a commit fails, nothing was opened; and
since nobody knows what a failed sync left on the disk, that store writes nothing more until it is opened anew.

The attack takes the file away, empties, damages, locks and replaces it, forbids writing it, lets the disk fill up
(`RLIMIT_FSIZE`) and fails single writes and syncs (with strace, where it may be used). In each case the data stays
shut, the same words come twice, and after the repair L1 to L5 hold. The planted bug takes a failed write for one that
was done.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore

from ..verdict import CouldNotRunError, Verdict
from .ground import PATIENT, count, curator, folder, spent
from .refused import attempts
from .releasing import RELEASES, fault_after, lines, prepare
from .striking import WORKER, said, strike, tracer

LIMITS = (150_000, 300_000)  # bytes at which the disk is full: within the log, and after it was first folded in
CALLS = (("fdatasync", "error=EIO"), ("pwrite64", "error=ENOSPC"), ("pwrite64", "error=EIO"))


class Refusals(NamedTuple):
    """What whoever asked was told, in the order of asking, and what should not have been."""

    told: list[str]
    faults: list[str]


def attack(
    *, design: str = "right", limits: tuple[int, ...] = LIMITS, numbers: tuple[int, ...] | None = None
) -> Verdict:
    """`numbers` are the writes and syncs that fail, each in a process of its own; by default every third of them."""
    faults: list[str] = []
    with folder() as home:
        if design == "right":
            for spoil in SPOILT:
                faults += spoilt(prepare(home / spoil.__name__), spoil).faults
            for way in TAKEN_AWAY:
                faults += taken_away(prepare(home / f"taken {way}"), way).faults
            faults += locked(prepare(home / "locked")).faults + forbidden(home / "forbidden").faults
        for limit in limits:
            faults += full(prepare(home / f"full at {limit}"), limit, design).faults
        failing = 0
        for call, fault in CALLS if design == "right" and tracer() is not None else ():
            struck = failed(home / f"{call} {fault}", call, fault, range(1, 90, 3) if numbers is None else numbers)
            failing += sum(each.told.count("answered") < len(each.told) for each in struck)
            faults += [text for each in struck for text in each.faults]
    words = f"{len(SPOILT) + 3} ways to spoil a ledger, {len(limits)} full disks, {failing} failing calls: "
    words += faults[0] if faults else "no release, the same words each time, and all is well after the repair."
    return Verdict("L6", bool(faults), words, {"faults": len(faults), "failing calls": failing})


def control() -> Verdict:
    return attack(design="swallowing", limits=LIMITS[:1])


def _removed(path: Path) -> None:
    path.unlink()


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _nonsense(path: Path) -> None:
    path.write_bytes(b"no database " * 999)


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def of_others(path: Path) -> None:
    """A database, and somebody else's."""
    path.unlink()
    _run(path, "CREATE TABLE mine (text)", "INSERT INTO mine VALUES ('keep me')")


def _newer(path: Path) -> None:
    _run(path, "PRAGMA user_version = 99")


def _of_another_program(path: Path) -> None:
    _run(path, "PRAGMA application_id = 7")


def _lost_a_table(path: Path) -> None:
    _run(path, "DROP TABLE receipts")


def _run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


SPOILT: tuple[Callable[[Path], None], ...] = (
    _removed, _a_folder, _empty, _nonsense, _torn, of_others, _newer, _of_another_program, _lost_a_table
)  # fmt: skip


def spoilt(place: Path, spoil: Callable[[Path], None]) -> Refusals:
    """What is no ledger is refused and left as it is; put back, it goes on."""
    path, name = place / "ledger", spoil.__name__.strip("_").replace("_", " ")
    shutil.copy(path, place / "kept")
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    told = [*attempts(place, 1), *attempts(place, 1)]
    faults = []
    if "answered" in told or lines(place / "draws"):
        faults.append(f"a ledger that is {name} was released from")
    if len(set(told)) != 1:
        faults.append(f"a ledger that is {name} is refused in two ways")
    if (path.read_bytes() if path.is_file() else None) != before:
        faults.append(f"a file that is {name} was changed")
    if path.is_dir():
        path.rmdir()
    for beside in ("ledger-wal", "ledger-shm"):
        (place / beside).unlink(missing_ok=True)
    (place / "kept").replace(path)
    return Refusals(told, faults + _left(place, f"{name}, put back: "))


def _left(place: Path, first: str = "", releases: int = RELEASES) -> list[str]:
    """What is wrong with what is left there, if anything."""
    fault = fault_after(place, releases=releases)
    return [] if fault is None else [first + fault]


def locked(place: Path) -> Refusals:
    """Somebody else holds the lock, and then lets go: nothing has to be opened anew."""
    opens: list[int] = []
    told, faults = [], []
    with Ledger(SQLiteStore(place / "ledger", wait=0.05)) as ledger:
        for mode in ("IMMEDIATE", "EXCLUSIVE"):
            with closing(sqlite3.connect(place / "ledger", isolation_level=None)) as holder:
                holder.execute(f"BEGIN {mode}")
                told += [_told(ledger, opens) for _ in range(2)]
                holder.execute("ROLLBACK")
        if len(set(told)) != 1 or "answered" in told or opens:
            faults.append("a ledger that is locked was released from, or refused in two ways")
        if spent(ledger, "patients"):
            faults.append("a ledger that is locked was charged")
        if _told(ledger, opens) != "answered":
            faults.append("a ledger that was locked does not go on")
    return Refusals(told, faults + [fault for fault in _left(place) if "L1: more" not in fault])


def _told(ledger: Ledger, opens: list[int], epsilon: float = 0.1) -> str:
    try:
        curator(ledger, lambda: opens.append(1)).release(count(epsilon, PATIENT))
        return "answered"
    except LedgerError as problem:
        return str(problem)


def _exchange(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


TAKEN_AWAY: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "without its log": lambda path: path.with_name("ledger-wal").unlink(),
    "moved": lambda path: path.rename(path.with_name("elsewhere")),
    "exchanged": _exchange,
}


def taken_away(place: Path, way: str) -> Refusals:
    """The file is removed, moved or exchanged while it is open."""
    opens: list[int] = []
    with Ledger(SQLiteStore(place / "ledger", wait=0.05)) as ledger:
        before = _told(ledger, opens)
        opens.clear()
        TAKEN_AWAY[way](place / "ledger")
        told = [_told(ledger, opens, 0.2) for _ in range(2)]
    held = before == "answered" and len(set(told)) == 1 and "answered" not in told and not opens
    return Refusals(told, [] if held else [f"a ledger that was {way} while it was open was released from"])


def forbidden(place: Path) -> Refusals:
    """A file or a folder that this user may not write."""
    places, user = [], 65534 if os.geteuid() == 0 else 0
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    place.parent.chmod(0o755)
    for file, parent in ((0o444, 0o777), (0o666, 0o555), (0o444, 0o555), (0o000, 0o555)):
        each = prepare(place / f"{file:o} in {parent:o}")
        (each / "ledger").chmod(file)
        each.chmod(parent)
        places.append(each)
    try:
        told = said([*WORKER, "refused", "0", str(user), "right", *map(str, places)])
    finally:
        for each in places:
            each.chmod(0o755)
            (each / "ledger").chmod(0o644)
    held = len(told) == len(places) and len(set(told)) == 1 and "answered" not in told
    faults = [] if held else ["a ledger that may not be written was released from, or refused in several ways"]
    return Refusals(told, faults + [fault for each in places for fault in _left(each, f"{each.name}: ")])


def full(place: Path, limit: int, design: str = "right") -> Refusals:
    """The disk fills up: some are answered, then it is refused, and from then on whatever is asked."""
    if importlib.util.find_spec("resource") is None:
        raise CouldNotRunError("this system cannot limit the size of files.")
    told = said([*WORKER, "refused", str(limit), "0", design, str(place)])
    answers = _answered(told)
    faults = []
    if answers == len(told):
        faults.append(f"a disk that is full at {limit} bytes refuses nothing")
    elif "answered" in told[answers:] or len(set(told[answers + 1 :])) != 1:
        faults.append(f"a disk that is full at {limit} bytes refuses, and then answers")
    return Refusals(told, faults + _left(place, releases=answers + 1))


def _answered(told: list[str]) -> int:
    """How many, before the first that was not."""
    return next((number for number, text in enumerate(told) if text != "answered"), len(told))


def failed(place: Path, call: str, fault: str, numbers: Iterable[int]) -> list[Refusals]:
    """The N-th write or sync fails, once and never again, for each of these: the store refuses from then on."""
    outcomes = []
    for number, code in strike(place, call, fault, "failing disk", list(numbers)).items():
        told = lines(place / str(number) / "told")
        faults = [f"{call} {number} failed, and the process ended with {code}"] if code else []
        if "answered" in told[_answered(told) :]:
            faults.append(f"after {call} failed ({fault}) the same store went on")
        outcomes.append(Refusals(told, faults + _left(place / str(number), f"{call} {number} failed: ")))
    return outcomes
