"""What counts in memory counts once: in a fork it is refused, before anything is charged or drawn."""

from __future__ import annotations

import os

import pytest

from sfumato import Budget, MemoryLedger, reserve
from sfumato.errors import SfumatoError
from sfumato.process import Home
from sfumato_referee.attacks.forked import in_child
from sfumato_referee.attacks.ledger import forking
from sfumato_referee.attacks.ledger.ground import PATIENT, count, curator

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def test_a_budget_is_paid_once_in_a_process_and_its_forks() -> None:
    assert not forking.attack(forks=2).broken


def test_the_planted_bug_is_found_behind_every_door() -> None:
    verdict = forking.attack(guarded=False, forks=2)
    assert verdict.broken and all(times > 1 for times in verdict.figures.values()), verdict


def test_a_fork_is_told_where_to_release() -> None:
    door = curator(MemoryLedger({"patients": Budget(epsilon=1)}))

    def asked() -> bytes:
        try:
            door.release(count(1, PATIENT))
        except SfumatoError as problem:
            return str(problem).encode()
        return b"answered"

    assert b"in the memory of the process that made it" in in_child(asked)
    assert asked() == b"answered"


def test_a_reserve_that_a_fork_was_refused_goes_on_where_it_began() -> None:
    def body(run: object) -> float:
        refused = in_child(lambda: _words(lambda: run.release(count(0.25, PATIENT))))  # type: ignore[attr-defined]
        assert b"belongs to the process that began it" in refused
        return float(run.release(count(0.5, PATIENT)))  # type: ignore[attr-defined]

    door = curator(MemoryLedger({"patients": Budget(epsilon=1)}))
    assert isinstance(door.release(reserve(body, unit=PATIENT, budget=Budget(epsilon=0.5))).value, float)


def _words(work: object) -> bytes:
    try:
        work()  # type: ignore[operator]
    except SfumatoError as problem:
        return str(problem).encode()
    return b"answered"


def test_a_number_that_comes_again_is_not_the_same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = Home(), os.getpid()
    assert not home.left

    def looks() -> bytes:
        monkeypatch.setattr(os, "getpid", lambda: here)
        return b"1" if home.left else b"0"

    assert in_child(looks) == b"1"
