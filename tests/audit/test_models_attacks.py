"""Attacks T3 and T4 on training, and the planted bugs that they must find."""

from __future__ import annotations

import pytest

from sfumato.audit.models import lira
from sfumato.noise import Noise, SeededBits
from sfumato_referee.attacks import training_membership, training_one_run


def seeded() -> Noise:
    return Noise(SeededBits(12))


def test_t3_is_withstood() -> None:
    verdict = training_one_run.attack(seeds=1, canaries=300, runs=8, noise=seeded)
    assert not verdict.broken, verdict


def test_t3_finds_a_tenth_of_the_noise() -> None:
    verdict = training_one_run.control(seeds=2)
    assert verdict.broken and min(verdict.figures.values()) == 1, verdict


@pytest.mark.slow
def test_t3_finds_it_in_many_runs_and_in_all_together() -> None:
    verdict = training_one_run.attack(training_one_run.TenthOfTheNoise, seeds=2, canaries=500, runs=8, noise=seeded)
    assert verdict.broken and "together" in verdict.text, verdict


def test_t4_is_withstood() -> None:
    verdict = training_membership.attack(shadows=8, targets=2, lone=20, noise=seeded)
    assert not verdict.broken, verdict


def test_t4_rates_alone_give_training_without_noise_away() -> None:
    """One record of each of a hundred models: independent trials, at every false positive rate."""
    plan, pool = training_membership.training(), training_membership.table()
    found = lira.every_rate(
        plan, pool, shadows=16, targets=100, noise=seeded(), stepper=training_membership.NoNoiseNoClip
    )
    assert found["online"].broken, found
    honest = lira.every_rate(plan, pool, shadows=8, targets=20, confidence=1 - 1e-6, noise=seeded())
    assert not any(each.broken for each in honest.values()), honest


@pytest.mark.slow
def test_t4_breaks_training_without_noise_and_clipping() -> None:
    verdict = training_membership.control()
    assert verdict.broken and "shadow models, online" in verdict.text, verdict
    assert "the rates of one record of each model, online" in verdict.text, verdict


@pytest.mark.slow
def test_t3_in_full() -> None:
    assert not training_one_run.attack().broken
    assert training_one_run.control().broken


@pytest.mark.slow
def test_t4_in_full() -> None:
    assert not training_membership.attack().broken
