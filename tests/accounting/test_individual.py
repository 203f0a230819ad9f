"""Individual accounting: what a unit loses is what it moves, and no ledger takes it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, MemoryLedger, Unit
from sfumato.accounting.filters import Filter
from sfumato.accounting.individual import IndividualGaussians
from sfumato.accounting.odometers import Odometer
from sfumato.errors import ArgumentError
from sfumato.events import Event


def test_half_the_norm_costs_a_quarter() -> None:
    run = IndividualGaussians(units=4, rho=10)
    run.release([3.0, 1.5, 0.0, 99.0], clip=3, multiplier=2)
    assert run.lost.tolist() == [1 / 8, 1 / 32, 0.0, 1 / 8]  # the last one is clipped


def test_a_unit_is_dropped_at_its_own_bound_and_the_others_go_on() -> None:
    run = IndividualGaussians(units=3, rho=0.5)
    seen = [run.release([1.0, 0.5, 0.0], clip=1, multiplier=1) for _ in range(6)]
    assert seen[0].tolist() == [True, True, True]  # 1/2, exactly the bound
    assert seen[1].tolist() == [False, True, True]
    assert seen[3].tolist() == [False, True, True] and seen[4].tolist() == [False, False, True]
    assert run.lost.tolist() == [0.5, 0.5, 0.0]
    assert run.release([0.0, 0.0, 0.0], clip=1, multiplier=1).tolist() == [False, False, True]  # nobody comes back


def test_no_choice_of_norms_passes_the_bound() -> None:
    rng = np.random.default_rng(5)
    size = np.linspace(0.1, 1.5, 200)
    run = IndividualGaussians(units=200, rho=0.3)
    true = [Fraction(0)] * 200
    for _ in range(60):
        norms, multiplier = size * rng.uniform(0, 2, 200), Fraction(repr(float(rng.uniform(3, 9))))
        active = run.release(norms, clip=1, multiplier=multiplier)
        for i in np.flatnonzero(active):
            true[i] += min(Fraction(float(norms[i])), Fraction(1)) ** 2 / (2 * multiplier**2)
    assert max(true) <= Fraction(run.rho) and run.rho < 0.3 * (1 + 1e-12)
    assert float(max(true)) > 0.25 and (~run.active).any() and run.active.any()


def test_the_loss_of_a_pair_is_the_gaussian_one() -> None:
    """Two neighbours, two releases whose noise is drawn from a fine grid: rho is what their Renyi divergence says."""
    norm, multiplier, order = 0.5, 2.0, 3.0
    x = np.linspace(-40, 40, 200_001)
    p, q = (np.exp(-((x - shift) ** 2) / (2 * multiplier**2)) for shift in (0.0, norm))
    p, q = p / p.sum(), q / q.sum()
    divergence = math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)
    run = IndividualGaussians(units=1, rho=1)
    run.release([norm], clip=1, multiplier=multiplier)
    assert float(run.lost[0]) * order == pytest.approx(divergence, rel=1e-6)


def test_it_never_reaches_a_ledger() -> None:
    run = IndividualGaussians(units=2, rho=0.5)
    run.release([1.0, 0.5], clip=1, multiplier=2)
    assert not isinstance(run, Event) and "never charged" in repr(run) and "not publishable" in run.label
    assert not any(isinstance(value, Event) for value in vars(run).values())

    class Fake:
        unit, delta, hash, event = Unit(), Fraction(0), "0" * 64, run

    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=1)):
        ledger = MemoryLedger({"a": budget})
        for use in (
            lambda budget=budget: Filter.of(budget).spend(run, Fraction(0)),
            lambda ledger=ledger: ledger.spend(("a",), Fake(), data="a@1", grade="exact", note=""),
            lambda: Odometer(1e-6).add(run),  # type: ignore[arg-type]
        ):
            with pytest.raises(Exception):  # noqa: B017
                use()
        assert not any(gauge.spent for gauge in ledger.spent("a"))


@pytest.mark.parametrize("norms", [[1.0], [1.0, -1.0], [1.0, math.nan], [[1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_norms_are_one_number_per_unit(norms: Any) -> None:
    with pytest.raises(ArgumentError):
        IndividualGaussians(units=2, rho=1).release(norms, clip=1, multiplier=1)


def test_arguments_are_checked() -> None:
    for bad in ({"units": 0, "rho": 1}, {"units": 2, "rho": 0}, {"units": 2, "rho": -1}):
        with pytest.raises(ArgumentError):
            IndividualGaussians(**bad)
    for bad in ({"clip": 0, "multiplier": 1}, {"clip": 1, "multiplier": math.inf}):
        with pytest.raises(ArgumentError):
            IndividualGaussians(units=1, rho=1).release([1.0], **bad)
