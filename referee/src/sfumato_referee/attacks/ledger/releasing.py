"""A process that releases, to be killed; and what must hold after it died.

Run as `... releasing CALL WHEN FOLDER DESIGN N...` below a tracer that kills (or fails) the WHEN-th system call of that
name in each process: for every N a child makes WHEN - N harmless calls first, so its own N-th is struck. Python starts
once for all of them. It ends with the first N that is beyond the child's last call.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.curator import Curator
from sfumato.errors import LedgerError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.mechanisms import Laplace

from ...mutants.ledgers import AnswerFirst, SecondDraw
from ...mutants.stores import Swallowing
from ..verdict import CouldNotRunError
from .ground import curator, entries_of, spent, total_age

T = TypeVar("T")

PRICE = Fraction(1, 10)
RELEASES = 3
DESIGNS: dict[str, Callable[[Any], Ledger]] = {"right": Ledger, "answer first": AnswerFirst, "second draw": SecondDraw}
STORES: dict[str, type[SQLiteStore]] = {"swallowing": Swallowing}
UNRECORDED = "L1: an answer was shown that is not recorded"
TWICE = "L3: two draws for one charge"


def prepare(folder: Path) -> Path:
    """A folder with a ledger that has one account."""
    folder.mkdir(parents=True, exist_ok=True)
    store = SQLiteStore(folder / "ledger", create=True)
    Ledger(store).open_account("patients", Budget(epsilon=10))
    store.close()
    return folder


def plan_of(number: int) -> Laplace:
    return total_age(number, PRICE)


def curator_of(ledger: Ledger, folder: Path, number: int) -> Curator:
    """Whose data leaves a line each time it is opened for a request: one line for one try, whatever it reads."""
    tries = secrets.token_hex(8)
    return curator(ledger, lambda: append(folder / "draws", f"{number} {tries}"))


def draws(folder: Path) -> dict[int, int]:
    """How often the data was opened for each request."""
    seen = {tuple(line.split()) for line in lines(folder / "draws")}
    numbers = [int(number) for number, _ in seen]
    return {number: numbers.count(number) for number in numbers}


def append(path: Path, line: str, *, sync: bool = False) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(handle, line.encode() + b"\n")
    if sync:
        os.fsync(handle)
    os.close(handle)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def show(folder: Path, number: int, ledger: Ledger) -> None:
    """Release, then tell the world."""
    release = curator_of(ledger, folder, number).release(plan_of(number), key=f"request {number}")
    assert release.receipt is not None
    answer = record.canonical(release.raw).decode()
    append(folder / "shown", json.dumps([number, release.receipt.id, answer]), sync=True)


def opened(folder: Path, design: str, **how: Any) -> Ledger:
    store = STORES.get(design, SQLiteStore)(folder / "ledger", **how)
    return DESIGNS.get(design, Ledger)(store)


def work(folder: Path, design: str = "right") -> None:
    with opened(folder, design) as ledger:
        for number in range(RELEASES):
            show(folder, number, ledger)
        if isinstance(ledger, AnswerFirst):
            ledger.catch_up()


def work_on_a_failing_disk(folder: Path) -> None:
    """Every answer that is refused is asked for again at once, without opening the ledger anew."""
    with contextlib.suppress(LedgerError), opened(folder, "right") as ledger:
        for number in range(RELEASES):
            for _ in range(2):
                try:
                    show(folder, number, ledger)
                    append(folder / "told", "answered")
                    break
                except LedgerError as problem:
                    append(folder / "told", f"refused: {problem}")


def fault_after(folder: Path, design: str = "right", *, releases: int = RELEASES) -> str | None:
    """L1, L3, L4 and L5 on what a dead process left behind, and whether the ledger goes on: the first fault."""
    connection = sqlite3.connect(folder / "ledger")
    sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    if not sound:
        return "L5: the file is damaged"
    with opened(folder, design) as ledger:
        return _kept(folder, ledger) or _goes_on(folder, ledger, releases)


def _kept(folder: Path, ledger: Ledger) -> str | None:
    """What it wrote, beside what it showed."""
    if (broken := first_broken(surface.store_of(ledger).entries())) is not None:
        return f"L5: {broken.reason}"
    entries = entries_of(surface.store_of(ledger))
    paid = {entry["receipt"].id for entry in entries if entry["kind"] == "spend"}
    answered = {entry["receipt"] for entry in entries if entry["kind"] == "settle" and entry["outcome"] == "answered"}
    released = {receipt for receipt, _ in shown(folder).values()}
    if not released <= answered:
        return UNRECORDED
    if len(paid - released) > 1:
        return "L1: more was charged than shown and in flight"
    if spent(ledger, "patients") != len(paid) * PRICE:
        return "L4: spent is not what was paid"
    return None


def shown(folder: Path) -> dict[int, tuple[str, str]]:
    """By request: the receipt and the answer that the world was told."""
    told = [json.loads(line) for line in lines(folder / "shown")]
    return {number: (receipt, answer) for number, receipt, answer in told}


def _goes_on(folder: Path, ledger: Ledger, releases: int) -> str | None:
    """The client asks again for everything: what was shown comes again, byte for byte. Then one more."""
    known = shown(folder)
    for number in range(releases):
        try:
            release = curator_of(ledger, folder, number).release(plan_of(number), key=f"request {number}")
        except ReceiptError as problem:
            if "a new key pays again" not in str(problem) or number in known:
                return "L3: a retry was refused without a reason"
            continue
        assert release.receipt is not None
        again = release.receipt.id, record.canonical(release.raw).decode()
        if known.get(number, again) != again:
            return TWICE if draws(folder)[number] > 1 else "L3: a retry got another answer"
    if any(times > 1 for times in draws(folder).values()):
        return TWICE
    keys = [entry["key"] for entry in entries_of(surface.store_of(ledger)) if entry["kind"] == "spend"]
    if len(keys) != len(set(keys)):
        return "L3: a key was charged twice"
    before = spent(ledger, "patients")
    show(folder, releases, ledger)
    if spent(ledger, "patients") != before + PRICE or first_broken(surface.store_of(ledger).entries()) is not None:
        return "L4: the ledger does not go on"
    return None


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

    def transaction(self, act: Callable[[], T]) -> T:
        result = super().transaction(act)  # it is opened when that is durable
        self._die("after open")
        return result

    def settle(self, *args: Any, **named: Any) -> None:
        self._die("before settle")
        super().settle(*args, **named)
        self._die("after settle")


def child(name: str, task: Callable[[], None], after: float | None = None) -> int:
    """Do it in a process of its own, killed after a while if one is given."""
    if not hasattr(os, "fork"):
        raise CouldNotRunError("this attack needs a system that forks.")
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
    if child(folder.name, partial(work, folder)) != 0:
        raise CouldNotRunError("a worker that nobody kills does not finish.")
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
    show(folder, 0, ledger)


def main(call: str, *words: str) -> None:
    if call == "random":
        folder, design, *shares = words
        took = min(measured(Path(folder) / name) for name in WHOLE)
        for number, share in enumerate(shares):
            child(str(number), partial(work, Path(folder) / str(number), design), took * float(share))
    elif call == "steps":
        for step in STEPS:
            child(step, partial(dying, Path(words[0]) / step, step))
    else:
        when, folder, design, *numbers = words
        for each in map(int, numbers):
            code = child(str(each), partial(struck, call, int(when), each, Path(folder) / str(each), design))
            if code == 0 and design != "failing disk":
                break
