"""Processes that die: kill -9 at system calls, at the ledger's own steps, and at random (L1, L3, L4).

A tracer (strace) kills the N-th write, sync or unlink of a process that releases. What it leaves behind must hold:
nothing was shown that is not recorded, nothing was drawn twice for one charge, and the ledger goes on. The wrong
designs go through the same checks, and fail.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sfumato_referee.attacks.ledger import crashing, retrying
from sfumato_referee.attacks.ledger.crashing import CALLS, SAMPLE, killed_at, killed_at_random
from sfumato_referee.attacks.ledger.releasing import RELEASES, STEPS, TWICE, UNRECORDED, fault_after
from sfumato_referee.attacks.ledger.striking import MOST, prepared, worker
from tests.ledger.striking import traced


def sweep(folder: Path, call: str, numbers: list[int], design: str = "right") -> int:
    """Kill at each of these calls, check what is left, and return how many were killed."""
    traced()
    faults: list[str] = []
    killed = killed_at(folder / "struck", call, numbers, design, faults)
    assert not faults, faults[0]
    return killed


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_l1_killed_at_a_sample_of_system_calls(quick: Path, call: str) -> None:
    assert sweep(quick, call, list(SAMPLE[call])) >= len(SAMPLE[call]) - 3


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_l1_killed_at_every_system_call(tmp_path: Path, call: str) -> None:
    numbers = [*range(1, MOST)]
    killed = sweep(tmp_path, call, numbers)
    least = {"pwrite64": 60, "fdatasync": 3 * RELEASES, "fsync": RELEASES, "unlink": 1, "write": 2 * RELEASES}
    assert least.get(call, 1) <= killed < len(numbers), "the sweep must reach the worker's last call"


def test_l1_catches_answer_first_record_after(quick: Path) -> None:
    with pytest.raises(AssertionError, match=UNRECORDED):
        sweep(quick, "fdatasync", [2, 3, 4, 5], "answer first")


# Where no tracer may run: death at any time, and between the ledger's own steps


def any_time(folder: Path, times: int, seed: int, design: str = "right") -> tuple[int, list[str]]:
    faults: list[str] = []
    return killed_at_random(folder / "any time", times, design, seed, faults), faults


@pytest.mark.slow
def test_l1_killed_at_random(quick: Path) -> None:
    killed, faults = any_time(quick, 12, seed=1)
    assert killed >= 1 and faults == []


@pytest.mark.slow
def test_l1_killed_at_random_many_times(tmp_path: Path) -> None:
    killed, faults = any_time(tmp_path, 150, seed=2)
    assert killed >= 20 and faults == []


@pytest.mark.slow
def test_l1_catches_answer_first_where_there_is_no_tracer(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crashing, "tracer", lambda: None)
    assert crashing.control().broken


def killed_between_steps(folder: Path) -> None:
    prepared(folder, STEPS)
    assert worker("releasing", "steps", folder) == dict.fromkeys(STEPS, -signal.SIGKILL)


def test_l3_killed_between_paying_opening_and_answering(quick: Path) -> None:
    killed_between_steps(quick)
    for step, (retry, times) in STEPS.items():
        assert retrying.retried(quick / step, "right", retry, times) == [], step


@pytest.mark.slow
def test_l3_catches_a_second_draw_on_retry(quick: Path) -> None:
    killed_between_steps(quick)
    for step in ("before settle", "after settle"):  # when noise was drawn, the next draw is the second
        assert fault_after(quick / step, "second draw") == TWICE
