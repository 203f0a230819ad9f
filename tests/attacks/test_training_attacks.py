"""Attacks T1, T2 and F3 on training. Each has planted bugs that the attack does find."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.noise import SeededBits
from sfumato_referee import attacks
from sfumato_referee.attacks import float_bits, training, training_noise, training_sampling
from sfumato_referee.mutants import training as mutants


@pytest.fixture(autouse=True)
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the attacks see is true noise: a false alarm in a million runs is too many for tests."""
    monkeypatch.setattr(training_sampling, "_TAIL", 1e-13)
    monkeypatch.setattr(float_bits, "FALSE_ALARM", 1e-10)


# T1


def test_t1_is_withstood() -> None:
    verdict = attacks.attack("T1", quick=True)
    assert not verdict.broken, verdict


@pytest.mark.slow
def test_t1_is_withstood_by_ten_thousand_batches() -> None:
    assert not attacks.attack("T1").broken


def test_t1_breaks_shuffled_batches() -> None:
    verdict = attacks.attack("T1", control=True)
    assert verdict.broken and verdict.figures["chance that batch sizes are binomial"] < 1e-50


def test_t1_breaks_batches_that_are_packed() -> None:
    like: Any = training_sampling.library()
    packed = mutants.Packed(rate=like.rate, population=like.population, room=like.room)
    verdict = training_sampling.attack(packed, batches=1000)
    assert verdict.broken and verdict.figures["chance that every slot is as likely"] < 1e-50


@pytest.mark.parametrize(
    ("sigma", "poisson", "shuffled"),
    [(0.5, 3.23888, 9.996), (0.6, 1.42526, 7.987), (0.8, 0.30355, 5.235), (1.0, 0.14890, 2.882)],
)
def test_t1_shuffling_costs_far_more_than_poisson_sampling(sigma: float, poisson: float, shuffled: float) -> None:
    ours = training_sampling.poisson_price(Fraction(str(sigma)))
    assert poisson * (1 - 1e-4) <= ours <= poisson * 1.005
    assert training_sampling.shuffled_at_least(sigma) == pytest.approx(shuffled, abs=1e-3)


@pytest.mark.parametrize("name", training_sampling.loaders())
def test_t1_loaders_are_refused_with_a_way_out(name: str) -> None:
    assert training_sampling._refused(training_sampling.loaders()[name])


# T2


def test_t2_is_withstood() -> None:
    verdict = training.attack(repeats=24)
    assert not verdict.broken, verdict
    reached = [value for name, value in verdict.figures.items() if "canary" in name]
    assert min(reached) > 0.99, "the canary does count for nearly all that it may"


_QUICK = list(mutants.STEPPERS)[:2]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _QUICK else [pytest.mark.slow]) for name in mutants.STEPPERS]
)
def test_t2_breaks_every_planted_bug(name: str) -> None:
    assert training.attack(mutants.STEPPERS[name], repeats=3, width=1024).broken


def test_t2_control_names_what_it_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "STEPPERS", {"nothing wrong": training.Stepper})
    monkeypatch.setattr(training, "_NEAR", 0.2)  # true noise, and few steps
    verdict = training.control()
    assert not verdict.broken and "nothing wrong" in verdict.text


# F3


def test_f3_is_withstood() -> None:
    verdict = attacks.attack("F3", quick=True)
    assert not verdict.broken, verdict


@pytest.mark.slow
def test_f3_is_withstood_by_all_releases() -> None:
    assert not attacks.attack("F3").broken


def test_f3_breaks_fast_noise_at_every_scale() -> None:
    verdict = training_noise.attack("fast", releases=50_000)
    assert verdict.broken and min(verdict.figures.values()) > 3


def test_f3_looks_at_a_coordinate_that_does_move() -> None:
    """Neighbours differ by the sensitivity, and the noise is that of epsilon 1."""
    nobody, one = (training_noise.Gradient(bits=SeededBits(3)).release(value, 2.0, 40_000) for value in (0.0, 2.0))
    assert abs(one.mean() - nobody.mean() - 2.0) < 0.02, "the same bits: the noise is the same"
    steps = (one - nobody) / 2.0**-7
    assert np.array_equal(steps, np.round(steps)), "on one grid"
    assert 4.1 < one.std() / 2.0 < 4.5


def test_f3_fast_noise_is_named_everywhere() -> None:
    assert training_noise.unnamed() == []


def test_f3_fast_noise_that_is_not_named_is_a_break(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_noise, "unnamed", lambda: ["the receipt"])
    verdict = training_noise.attack(releases=500)
    assert verdict.broken and "the receipt does not name fast noise" in verdict.text
