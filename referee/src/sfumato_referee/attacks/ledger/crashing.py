"""L1: no answer is shown that is not recorded, wherever the process dies.

Claim. An answer leaves the process after its receipt was settled, and a settled receipt is on the disk (a commit with
`synchronous = FULL` returns after its sync). So at every instant, released answers are among the recorded ones, and
what is recorded and not released is at most the one request in flight: paid for nothing, which is the safe side.

The attack kills a process that releases, at each system call that writes, syncs, shortens or removes a file (with
strace, where it may be used), and at any time (everywhere). Then it reads what was left behind: L1, L3, L4 and L5 must
hold in every such image, and the ledger must go on. The planted bug answers first and records after.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from ..verdict import CouldNotRunError, Verdict
from .ground import Choices, folder
from .releasing import UNRECORDED, WHOLE, fault_after
from .striking import MOST, prepared, strike, tracer, worker

CALLS = ("pwrite64", "fdatasync", "fsync", "unlink", "write", "ftruncate")
SAMPLE = {"pwrite64": (1, 2, 9, 17, 26, 34, 51, 68, 83), "fdatasync": (1, 2, 3, 4, 6, 8, 10, 13)}


def attack(*, design: str = "right", whole: bool = True, times: int = 60, seed: int = 1) -> Verdict:
    """Kill at every system call, or at a sample of them; and `times` times at any moment."""
    deaths: dict[str, int] = {}
    faults: list[str] = []
    with folder() as home:
        traced = tracer() is not None
        calls = {call: tuple(range(1, MOST)) for call in CALLS} if whole else SAMPLE
        for call, numbers in calls.items() if traced else ():
            deaths[f"killed at {call}"] = killed_at(home / call, call, list(numbers), design, faults)
            if whole and deaths[f"killed at {call}"] == len(numbers):
                raise CouldNotRunError(f"a worker calls {call} {MOST} times or more: not all of them were tried.")
        deaths["killed at any time"] = killed_at_random(home / "any time", times, design, seed, faults)
    if not sum(deaths.values()):
        raise CouldNotRunError("no process was killed in time: this machine is too busy.")
    unrecorded = faults.count(UNRECORDED)
    words = f"{sum(deaths.values())} processes were killed; {unrecorded} of them had shown an answer that is not"
    words += f" recorded. {faults[0]}." if faults else " recorded, and all they left behind holds."
    if not traced:
        words += " (At any time only: strace is missing, or may not trace here.)"
    return Verdict("L1", bool(faults), words, {**deaths, "shown and not recorded": unrecorded, "faults": len(faults)})


def control() -> Verdict:
    """Who answers first shows what is not recorded: the first syncs are enough, or some deaths at any time."""
    faults: list[str] = []
    with folder() as home:
        if tracer() is not None:
            killed_at(home / "sync", "fdatasync", [2, 3, 4, 5, 6, 7], "answer first", faults)
        else:
            killed_at_random(home / "any time", 60, "answer first", 1, faults)
    words = f"Answers first, and records after: {faults.count(UNRECORDED)} deaths left answers without a record."
    return Verdict("L1", UNRECORDED in faults, words, {"faults": len(faults)})


def killed_at(home: Path, call: str, numbers: list[int], design: str, faults: list[str]) -> int:
    """Kill at each of these calls, and add what is wrong with what is left. How many were killed."""
    ended = strike(home, call, "signal=KILL", design, numbers)
    if strange := set(ended.values()) - {0, -signal.SIGKILL}:
        raise CouldNotRunError(f"a worker ended with {strange.pop()}, and was not killed.")
    faults += filter(None, (fault_after(home / str(number), design) for number in ended))
    shutil.rmtree(home)
    return sum(code != 0 for code in ended.values())


def killed_at_random(home: Path, times: int, design: str, seed: int, faults: list[str]) -> int:
    """Workers that are killed after a random while. How many of them had not finished."""
    choose = Choices(seed)
    prepared(home, (*range(times), *WHOLE))
    ended = worker("releasing", "random", home, design, *(1.3 * choose.share() for _ in range(times)))
    faults += filter(None, (fault_after(home / str(number), design) for number in range(times)))
    return sum(code != 0 for code in ended.values())
