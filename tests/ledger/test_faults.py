"""Processes that die: kill -9 at system calls, at the ledger's own steps, and at random (L1, L3, L4).

A tracer (strace) kills the N-th write, sync or unlink of a process that releases. What it leaves behind must hold:
nothing was shown that is not recorded, nothing was drawn twice for one charge, and the ledger goes on. The wrong
designs go through the same checks, and fail.
"""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import pytest

from sfumato import Curator, record
from sfumato.errors import ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import spent
from tests.ledger.striking import MOST, strike, worker
from tests.ledger.workers.releasing import (
    RELEASES,
    STEPS,
    WHOLE,
    check_after,
    curator_of,
    lines,
    other_data,
    plan_of,
    prepare,
)

CALLS = ("pwrite64", "fdatasync", "fsync", "unlink", "write", "ftruncate")


def sweep(folder: Path, call: str, numbers: list[int], design: str = "right") -> int:
    """Kill at each of these calls, check what is left, and return how many were killed."""
    ended = strike(folder, call, "signal=KILL", design, numbers)
    assert set(ended.values()) <= {0, -signal.SIGKILL}
    for number in ended:
        check_after(folder / str(number), design)
    return sum(code != 0 for code in ended.values())


SAMPLE = {"pwrite64": [1, 2, 9, 17, 26, 34, 51, 68, 83], "fdatasync": [1, 2, 3, 4, 6, 8, 10, 13]}


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_l1_killed_at_a_sample_of_system_calls(quick: Path, call: str) -> None:
    assert sweep(quick, call, SAMPLE[call]) >= len(SAMPLE[call]) - 3


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_l1_killed_at_every_system_call(tmp_path: Path, call: str) -> None:
    numbers = [*range(1, MOST)]
    killed = sweep(tmp_path, call, numbers)
    least = {"pwrite64": 60, "fdatasync": 3 * RELEASES, "fsync": RELEASES, "unlink": 1, "write": 2 * RELEASES}
    assert least.get(call, 1) <= killed < len(numbers), "the sweep must reach the worker's last call"


def test_l1_catches_answer_first_record_after(quick: Path) -> None:
    with pytest.raises(AssertionError, match="L1: an answer was shown that is not recorded"):
        sweep(quick, "fdatasync", [2, 3, 4, 5], "answer first")


# Where no tracer may run: death at any time, and between the ledger's own steps


def killed_at_random(folder: Path, times: int, seed: int) -> int:
    """Workers that are killed after a random while; returns how many of them had not finished."""
    rng = random.Random(seed)
    template = prepare(folder / "template")
    for name in (*range(times), *WHOLE):
        shutil.copytree(template, folder / str(name))
    ended = worker("random", folder, *(1.3 * rng.random() for _ in range(times)))
    for number in range(times):
        check_after(folder / str(number))
    return sum(code != 0 for code in ended.values())


def test_l1_killed_at_random(quick: Path) -> None:
    assert killed_at_random(quick, 12, seed=1) >= 1


@pytest.mark.slow
def test_l1_killed_at_random_many_times(tmp_path: Path) -> None:
    assert killed_at_random(tmp_path, 150, seed=2) >= 20


def killed_between_steps(folder: Path) -> None:
    template = prepare(folder / "template")
    for step in STEPS:
        shutil.copytree(template, folder / step)
    assert worker("steps", folder) == dict.fromkeys(STEPS, -signal.SIGKILL)


def test_l3_killed_between_paying_opening_and_answering(quick: Path) -> None:
    killed_between_steps(quick)
    for step, (retry, draws) in STEPS.items():
        place = quick / step
        assert retried(place) == retry, step
        assert len(lines(place / "draws")) == draws, step
        check_after(place)


def test_l3_catches_a_second_draw_on_retry(quick: Path) -> None:
    killed_between_steps(quick)
    for step in ("before settle", "after settle"):  # when noise was drawn, the next draw is the second
        with pytest.raises(AssertionError, match="L3: two draws for one charge"):
            check_after(quick / step, "second draw")


def retried(folder: Path) -> str:
    """What the client gets that asks again with the key of the release that died, twice; and for other things."""
    store = SQLiteStore(folder / "ledger")
    try:
        ledger = Ledger(store)
        before = spent(ledger, "patients")
        told = []
        for _ in range(2):
            try:
                release = curator_of(ledger).release(plan_of(folder, 0), key="request 0")
                told.append(f"answered {record.canonical(release.raw).decode()}")
            except ReceiptError as problem:
                told.append(str(problem))
        assert told[0] == told[1]
        if before != [0]:  # the key is taken
            assert spent(ledger, "patients") == before
            for strange in (Curator(other_data(), ledger, accounts=("patients",)), curator_of(ledger)):
                plan = plan_of(folder, 0 if strange.private.name != "patients" else 1)
                with pytest.raises(ReceiptError, match="a key pays for one release, once"):
                    strange.release(plan, key="request 0")
            assert spent(ledger, "patients") == before
        return "answered" if told[0].startswith("answered") else "refused"
    finally:
        store.close()
