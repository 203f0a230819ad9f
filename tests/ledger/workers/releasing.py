"""A process that releases, to be killed; and what must hold after it died.

Run as `python -m tests.ledger.workers.releasing CALL WHEN FOLDER DESIGN N...` below a tracer that kills (or fails) the
WHEN-th system call of that name in each process: for every N a child makes WHEN - N harmless calls first, so its own
N-th is struck. Python starts once for all of them. It ends with the first N that is beyond the child's last call.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import Budget, Curator, Private, record
from sfumato.audit.mutants.ledgers import AnswerFirst, SecondDraw
from sfumato.errors import LedgerError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import AGES, BY_PATIENT, PATIENTS, Hooked, account_of, hooked, laplace

PRICE = Fraction(1, 10)
RELEASES = 3
DESIGNS: dict[str, Callable[[Any], Ledger]] = {"right": Ledger, "answer first": AnswerFirst, "second draw": SecondDraw}


def prepare(folder: Path) -> Path:
    """A folder with a ledger that has one account."""
    folder.mkdir(parents=True, exist_ok=True)
    store = SQLiteStore(folder / "ledger", create=True)
    Ledger(store).open_account("patients", Budget(epsilon=10))
    store.close()
    return folder


def curator_of(ledger: Ledger) -> Curator:
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)


def other_data() -> Private:
    return Private("others", AGES, unit=BY_PATIENT, schema=PATIENTS)


def plan_of(folder: Path, number: int) -> Hooked:
    """A count that leaves a line each time noise is drawn for it."""
    count = laplace(PRICE, BY_PATIENT)

    def drawn(rows: Any, run: Any) -> Any:
        append(folder / "draws", str(number))
        return count._run(rows, run)

    return hooked(f"request-{number}", drawn, epsilon=PRICE)


def append(path: Path, line: str, *, sync: bool = False) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(handle, line.encode() + b"\n")
    if sync:
        os.fsync(handle)
    os.close(handle)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def show(folder: Path, number: int, curator: Curator) -> None:
    """Release, then tell the world."""
    release = curator.release(plan_of(folder, number), key=f"request {number}")
    assert release.receipt is not None
    append(
        folder / "shown", json.dumps([number, release.receipt.id, record.canonical(release.raw).decode()]), sync=True
    )


def work(folder: Path, design: str = "right") -> None:
    store = SQLiteStore(folder / "ledger")
    ledger = DESIGNS[design](store)
    for number in range(RELEASES):
        show(folder, number, curator_of(ledger))
    if isinstance(ledger, AnswerFirst):
        ledger.catch_up()
    store.close()


def work_on_a_failing_disk(folder: Path) -> None:
    """Every answer that is refused is asked for again at once, without opening the ledger anew."""
    with contextlib.suppress(LedgerError):
        store = SQLiteStore(folder / "ledger")
        curator = curator_of(Ledger(store))
        for number in range(RELEASES):
            for _ in range(2):
                try:
                    show(folder, number, curator)
                    append(folder / "told", "answered")
                    break
                except LedgerError as problem:
                    append(folder / "told", f"refused: {problem}")
        store.close()


def check_after(folder: Path, design: str = "right", *, releases: int = RELEASES) -> None:
    """L1, L3, L4 and L5 on what a dead process left behind, and the ledger goes on."""
    connection = sqlite3.connect(folder / "ledger")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    store = SQLiteStore(folder / "ledger")
    try:
        _check(folder, store, DESIGNS[design](store), releases)
    finally:
        store.close()


def entries_of(store: Any) -> list[Any]:
    return [record.parse(body) for _, body in store.entries()]


def _check(folder: Path, store: SQLiteStore, ledger: Ledger, releases: int) -> None:
    told = [json.loads(line) for line in lines(folder / "shown")]
    shown = {number: (receipt, answer) for number, receipt, answer in told}
    assert first_broken(store.entries()) is None
    entries = entries_of(store)
    paid = {entry["receipt"].id for entry in entries if entry["kind"] == "spend"}
    answered = {entry["receipt"] for entry in entries if entry["kind"] == "settle" and entry["outcome"] == "answered"}
    released = {receipt for receipt, _ in shown.values()}
    assert released <= answered, "L1: an answer was shown that is not recorded"
    assert len(paid - released) <= 1, "L1: more was charged than shown and in flight"
    assert account_of(ledger, "patients").filter.open[0].spent == len(paid) * PRICE, "L4: spent is not what was paid"
    _retry(folder, ledger, shown, releases)
    assert all(times == 1 for times in Counter(lines(folder / "draws")).values()), "L3: two draws for one charge"
    keys = [entry["key"] for entry in entries_of(store) if entry["kind"] == "spend"]
    assert len(keys) == len(set(keys)), "L3: a key was charged twice"
    before = account_of(ledger, "patients").filter.open[0].spent
    show(folder, releases, curator_of(ledger))
    assert (
        account_of(ledger, "patients").filter.open[0].spent == before + PRICE and first_broken(store.entries()) is None
    )


def _retry(folder: Path, ledger: Ledger, shown: dict[int, tuple[str, str]], releases: int) -> None:
    """The client asks again for everything: what was shown comes again, byte for byte."""
    for number in range(releases):
        try:
            release = curator_of(ledger).release(plan_of(folder, number), key=f"request {number}")
        except ReceiptError as problem:
            assert "a new key pays again" in str(problem) and number not in shown
            continue
        assert release.receipt is not None
        again = release.receipt.id, record.canonical(release.raw).decode()
        assert shown.get(number, again) == again, "L3: a retry got another answer"


def harmless(call: str, times: int, folder: Path) -> None:
    """So many calls of that name that mean nothing."""
    handle = os.open(folder / "scratch", os.O_RDWR | os.O_CREAT)
    calls: dict[str, Callable[[], Any]] = {
        "pwrite64": lambda: os.pwrite(handle, b"x", 0),
        "write": lambda: os.write(handle, b"x"),
        "fsync": lambda: os.fsync(handle),
        "fdatasync": lambda: os.fdatasync(handle),
        "ftruncate": lambda: os.ftruncate(handle, 0),
        "unlink": lambda: _unlink(folder / "nothing"),
    }
    for _ in range(times):
        calls[call]()
    os.close(handle)


def _unlink(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 the call itself is meant


STEPS = {  # where it dies: what a retry gets, and how often noise was drawn after it
    "before spend": ("answered", 1),
    "after spend": ("answered", 1),
    "before open": ("answered", 1),
    "after open": ("refused", 0),
    "before settle": ("refused", 1),
    "after settle": ("answered", 1),
}


class Dying(Ledger):
    """A ledger whose process dies at a step."""

    step = ""

    def _die(self, where: str) -> None:
        if where == self.step:
            os.kill(os.getpid(), signal.SIGKILL)

    def spend(self, *args: Any, **named: Any) -> Any:
        self._die("before spend")
        receipt = super().spend(*args, **named)
        self._die("after spend")
        return receipt

    def open(self, *args: Any, **named: Any) -> None:
        self._die("before open")
        super().open(*args, **named)
        self._die("after open")

    def settle(self, *args: Any, **named: Any) -> None:
        self._die("before settle")
        super().settle(*args, **named)
        self._die("after settle")


def child(name: str, task: Callable[[], None], after: float | None = None) -> int:
    """Do it in a process of its own, killed after a while if one is given."""
    number = os.fork()
    if number == 0:
        if after is not None:  # nothing catches it: the kernel ends the process there, though its parent sleep on
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
        try:
            task()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    print(name, code)
    return code


WHOLE = ("whole 1", "whole 2", "whole 3")  # folders of workers that may finish, to see how long one takes


def measured(folder: Path) -> float:
    start = time.perf_counter()
    assert child(folder.name, partial(work, folder)) == 0
    return time.perf_counter() - start


def struck(call: str, when: int, number: int, folder: Path, design: str) -> None:
    harmless(call, when - number, folder)
    if design == "failing disk":
        work_on_a_failing_disk(folder)
    else:
        work(folder, design)


def dying(folder: Path, step: str) -> None:
    ledger = Dying(SQLiteStore(folder / "ledger"))
    ledger.step = step
    show(folder, 0, curator_of(ledger))


def _main(call: str, *words: str) -> None:
    if call == "random":
        took = min(measured(Path(words[0]) / name) for name in WHOLE)
        for number, share in enumerate(words[1:]):
            child(str(number), partial(work, Path(words[0]) / str(number)), took * float(share))
    elif call == "steps":
        for step in STEPS:
            child(step, partial(dying, Path(words[0]) / step, step))
    else:
        when, folder, design, *numbers = words
        for each in map(int, numbers):
            code = child(str(each), partial(struck, call, int(when), each, Path(folder) / str(each), design))
            if code == 0 and design != "failing disk":
                break


if __name__ == "__main__":
    _main(*sys.argv[1:])
