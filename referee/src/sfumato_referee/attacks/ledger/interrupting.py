"""A process into whose releases Ctrl-C comes, at any time: `... interrupting FOLDER TIMES SEED`.

Prints, as JSON, how many were hit, every amount that was spent after one of them, and what was refused meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from fractions import Fraction
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore

from .ground import PATIENT, Choices, count, curator, spent


def main(folder: str, times: str, seed: str) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with Ledger(SQLiteStore(Path(folder) / "ledger")) as ledger:
        print(json.dumps(interrupted(ledger, int(times), int(seed))))


def interrupted(ledger: Ledger, times: int, seed: int) -> dict[str, list[str] | int]:
    choose, hits, seen, refused = Choices(seed), 0, [], list[str]()
    longest = 1.2 * min(_ask(ledger, number) for number in range(times, times + 6))  # most come in time, anywhere
    for number in range(times):
        with contextlib.suppress(KeyboardInterrupt):  # it may come a moment late
            hits += _hit(ledger, number, longest * choose.share(), refused)
        seen.append(str(spent(ledger, "patients")))
        ledger.unlock("patients", "interrupted on purpose")
    return {"hits": hits, "spent": seen, "refused": refused}


def _hit(ledger: Ledger, number: int, after: float, refused: list[str]) -> bool:
    """A release into which Ctrl-C comes, somewhere. Was it?"""
    signal.setitimer(signal.ITIMER_REAL, 0.0001 + after)
    try:
        _ask(ledger, number)
    except KeyboardInterrupt:
        return True
    except SfumatoError as problem:
        refused.append(str(problem))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def _ask(ledger: Ledger, number: int) -> float:
    """A release. How long did it take?"""
    start = time.perf_counter()
    curator(ledger).release(count(Fraction(number + 1, 10_000), PATIENT), key=f"request {number}")
    return time.perf_counter() - start
