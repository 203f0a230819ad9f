"""The mutation run: faults are planted in children alone, noticed by the audit's tools, and counted honestly."""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

from sfumato.noise import Noise
from sfumato_referee import attacks, mutation
from sfumato_referee.attacks import mutation as attack
from sfumato_referee.mutation import AREAS, MUTANTS, QUICK, Mutant, Opinion, Tried, detectors, mutant
from sfumato_referee.mutation import trying as running

LAPLACE = ("check_plan Laplace",)


def _dies() -> None:
    os._exit(3)


def _sleeps() -> None:
    time.sleep(60)


def _fits_nowhere() -> None:
    mutant.swap(Noise, "no such method", lambda _: None)


def test_the_list_of_faults_is_in_order() -> None:
    assert len(MUTANTS) >= 40 and len({each.name for each in MUTANTS}) == len(MUTANTS)
    by_area = Counter(each.area for each in MUTANTS)
    assert tuple(by_area) == AREAS and min(by_area.values()) >= 5
    assert len(QUICK) >= 12 and {each.area for each in QUICK} == set(AREAS)
    unknown = {name for each in MUTANTS for name in each.by} - detectors.DETECTORS.keys()
    assert not unknown
    assert all(each.by for each in MUTANTS)


@pytest.mark.slow
def test_every_fault_can_be_planted() -> None:
    ran = mutation.run(MUTANTS, blind=True)
    assert [(each.name, each.problem) for each in ran.ended("could not run")] == []
    assert len(ran.ended("survived")) == len(MUTANTS) and not ran.accused  # with eyes shut all survive


def test_a_fault_is_noticed_and_never_reaches_this_process() -> None:
    (fault,) = (each for each in MUTANTS if each.name == "half the scale")
    before, seen = Noise.draw, []
    alone = Mutant(fault.area, fault.name, fault.plant, LAPLACE)
    ran = mutation.run([alone], progress=lambda done, text: seen.append((done, text)))
    (tried,) = ran.tried
    assert (tried.ending, tried.killers) == ("killed", LAPLACE) and not ran.accused
    assert Noise.draw is before
    assert [text for _, text in seen][-1:] and seen[-1][0] == 1.0
    table = mutation.summed_up(ran)
    assert "half the scale" in table and "the honest library passes all of them" in table


@pytest.mark.parametrize(
    ("plant", "words"), [(_dies, "ended before"), (_fits_nowhere, "could not be planted"), (_sleeps, "more than")]
)
def test_what_cannot_run_is_not_called_noticed(plant: object, words: str) -> None:
    seconds = 1 if plant is _sleeps else 60
    ran = mutation.run([Mutant("noise", "a test", plant, LAPLACE)], blind=True, seconds=seconds)  # type: ignore[arg-type]
    (tried,) = ran.tried
    assert tried.ending == "could not run" and words in tried.problem, tried


def _tried(*said: str) -> Tried:
    return Tried("noise", "a fault", tuple(Opinion("a tool", each, "", 1.0) for each in said))  # type: ignore[arg-type]


def test_endings_are_told_apart() -> None:
    assert _tried("passed", "noticed").ending == "killed"
    assert _tried("passed", "passed").ending == "survived"
    assert _tried("passed", "could not run").ending == "could not run"
    assert _tried().ending == "could not run"


@pytest.mark.parametrize(
    ("killed", "survived", "accused", "broken"),
    [(29, 1, 0, False), (28, 2, 0, True), (30, 0, 1, True), (0, 0, 0, True)],
)
def test_g1_judges_by_the_share_and_by_the_honest_library(
    monkeypatch: pytest.MonkeyPatch, killed: int, survived: int, accused: int, broken: bool
) -> None:
    honest = (*[_tried("noticed")] * accused, _tried("passed"))
    ran = running.MutationRun((_tried("noticed"),) * killed + (_tried("passed"),) * survived, honest)
    monkeypatch.setattr(mutation, "run", lambda *_, **__: ran)
    assert attack.attack().broken is broken


@pytest.mark.slow
def test_g1_with_its_eyes_shut_is_broken() -> None:
    verdict = attacks.attack("G1", control=True)
    assert verdict.broken and verdict.figures["noticed"] == 0


def test_a_tool_that_falls_over_has_noticed_something(monkeypatch: pytest.MonkeyPatch) -> None:
    def falls() -> str:
        raise TypeError("over")

    monkeypatch.setitem(detectors.DETECTORS, "falls", falls)
    assert (running.looked("falls").verdict, running.looked("none such").verdict) == ("noticed", "could not run")
    assert running.looked("falls", blind=True).verdict == "passed"


@pytest.mark.slow
def test_g1_is_withstood() -> None:
    verdict = attacks.attack("G1", quick=True)
    assert not verdict.broken, verdict
