"""The Gaussian mechanism: hockey-stick divergences of the rounded law that is drawn, in one and two dimensions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from sfumato import Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.accounting import gdp
from sfumato.laws import RoundedGaussian
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import category
from sfumato.units import RELATIONS
from tests.helpers import read

SLACK = 1 + 1e-8  # of float64 sums over a few hundred thousand cells


def cells(sigma: float, shift: int) -> np.ndarray[Any, Any]:
    reach = math.ceil(12 * sigma) + abs(shift)
    return np.arange(-reach, reach + 1)


def hockey_stick(sigma: float, shift: int, epsilon: float) -> float:
    """sum of max(P(k) - e^epsilon P(k - shift), 0): the least delta at epsilon."""
    law, k = RoundedGaussian(sigma), cells(sigma, shift)
    return float(np.maximum(law.pmf(k) - math.exp(epsilon) * law.pmf(k - shift), 0).sum())


def hockey_stick_2d(sigma: float, shift: tuple[int, int], epsilon: float) -> float:
    law = RoundedGaussian(sigma)
    k = np.arange(-math.ceil(9 * sigma) - max(map(abs, shift)), math.ceil(9 * sigma) + max(map(abs, shift)) + 1)
    p, q = np.outer(law.pmf(k), law.pmf(k)), np.outer(law.pmf(k - shift[0]), law.pmf(k - shift[1]))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 4, 8, 9.9])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_the_noise_of_a_count_is_as_private_as_it_says(epsilon: float, delta: float) -> None:
    for unit in (Unit(), Unit("user:u", "replace", 3)):
        plan = m.Gaussian(query=bounds.count(unit, per_unit=2 if unit.column else 1), epsilon=epsilon, delta=delta)
        reach = math.floor(plan.query.in_steps(plan.exponent).linf)
        assert isinstance(plan.law, RoundedGaussian) and plan.law.sigma > 500
        assert hockey_stick(plan.law.sigma, reach, epsilon) <= delta * SLACK
        assert hockey_stick(plan.law.sigma, -reach, epsilon) <= delta * SLACK
        assert hockey_stick(plan.law.sigma, reach, epsilon) >= delta * (1 - 1e-3)  # and hardly more private
        for other in (epsilon / 2, epsilon * 1.5):  # the whole curve holds, not one point of it
            curve = gdp.delta(float(1 / plan.event.multiplier), other)
            assert hockey_stick(plan.law.sigma, reach, other) <= curve * SLACK + 1e-15


@pytest.mark.parametrize("exponent", [0, -2, -3])
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_coarse_grids_are_no_less_private(exponent: int, epsilon: float) -> None:
    # The law rounds the noise to the grid; with steps as coarse as the sensitivity that matters most.
    for query in (bounds.count(Unit(group=3)), bounds.histogram("w", ["a", "b"], Unit(change="replace"))):
        plan = m.Gaussian(query=query, epsilon=epsilon, delta=1e-4)
        law, reach = plan._law_in_steps(exponent), query.in_steps(exponent)
        top = math.isqrt(math.floor(reach.l2_squared))
        for shift in range(1, top + 1):
            assert hockey_stick(law.sigma, shift, epsilon) <= 1e-4 * SLACK
        pairs = {(a, b) for a in range(top + 1) for b in range(a + 1) if 0 < a * a + b * b <= reach.l2_squared}
        for pair in sorted(pairs, key=lambda p: -(p[0] ** 2 + p[1] ** 2))[:4]:
            assert hockey_stick_2d(law.sigma, pair, epsilon) <= 1e-4 * SLACK, pair


@pytest.mark.parametrize("unit", [Unit(change=c) for c in RELATIONS], ids=str)
def test_two_coordinates_are_hidden_together(unit: Unit) -> None:
    schema = Schema.of(w=category(["a", "b"]))
    query = bounds.histogram("w", ["a", "b"], unit)
    plan = m.Gaussian(query=query, epsilon=1, delta=1e-4)
    before, after = (query.steps(read(schema, unit, w=w), -4) for w in (["a", "a"], ["a", "b"]))
    shift = tuple(int(b) - int(a) for a, b in zip(before, after, strict=True))
    sigma = plan._law_in_steps(-4).sigma
    worst = hockey_stick_2d(sigma, shift, 1)  # type: ignore[arg-type]
    if unit.change == "replace":
        assert 0.98e-4 <= worst <= 1e-4 * SLACK
    else:  # exchanging a row is two changes here, so one price does not cover it: the check has power
        assert worst > 1e-4
        assert hockey_stick_2d(sigma, (shift[0], 0), 1) <= 1e-4 * SLACK


def test_mutants_are_caught_by_the_same_check() -> None:
    plan = m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=1e-5)
    sigma, reach = plan.law.sigma, int(plan.query.in_steps(plan.exponent).l1)
    assert hockey_stick(sigma, reach, 1) <= 1e-5 * SLACK
    assert hockey_stick(sigma / 2, reach, 1) > 1e-5  # noise x 0.5
    assert hockey_stick(sigma, 2 * reach, 1) > 1e-5  # sensitivity x 0.5
    assert hockey_stick(sigma * 0.999, reach, 1) > 1e-5  # and even a thousandth less
    # the classic formula at epsilon = 10: 0.484481 where 0.499889 is needed
    weak = m.Gaussian(query=bounds.count(Unit()), epsilon=10, delta=1e-5)
    reach = int(weak.query.in_steps(weak.exponent).l1)
    classic = math.sqrt(2 * math.log(1.25e5)) / 10
    assert classic == pytest.approx(0.484481, abs=6e-7)
    assert hockey_stick(classic * reach, reach, 10) > 1e-5 >= hockey_stick(weak.law.sigma, reach, 10) / SLACK


def test_sigma_is_rounded_up() -> None:
    for query in (bounds.count(Unit(group=3)), bounds.mean("x", 0, 0.1, Unit()), bounds.histogram("w", ["a"], Unit())):
        for fields in ({"epsilon": 0.3, "delta": 1e-6}, {"rho": 0.1}, {"multiplier": 1.1}):
            plan = m.Gaussian(query=query, **fields)  # type: ignore[arg-type]
            wanted = query.in_steps(plan.exponent).l2_squared * plan.event.multiplier**2
            assert wanted <= Fraction(plan.law.sigma) ** 2 <= wanted * (1 + Fraction(1, 2**50))


def test_three_ways_to_say_how_much_noise() -> None:
    count = bounds.count(Unit())
    by_rho = m.Gaussian(query=count, rho=0.125)
    assert by_rho.event.multiplier == 2 and by_rho.std == pytest.approx(2, rel=1e-5)
    assert m.Gaussian(query=count, multiplier=2).event == by_rho.event
    assert 1 / (2 * m.Gaussian(query=count, rho=0.1).event.multiplier ** 2) <= Fraction(1, 10)
    by_epsilon = m.Gaussian(query=count, epsilon=0.5, delta=1e-5)
    assert by_epsilon.std == pytest.approx(7.031827, rel=1e-5) and by_epsilon.std < 9.69  # the classic answer
    assert float(by_epsilon.price()) == 0.5 and by_epsilon.delta == Fraction(1, 10**5)


def test_the_textbook_mean_age() -> None:
    # n = 10,000 public: one person's exchange moves the mean by 120/n; classic noise 0.636, ours less
    total = bounds.clipped_sum("age", 0, 120, Unit(change="replace"))
    assert total.l1 / 10_000 == 0.012
    plan = m.Gaussian(query=total, epsilon=0.1, delta=1e-6)
    classic = 0.012 * math.sqrt(2 * math.log(1.25e6)) / 0.1
    assert classic == pytest.approx(0.636, abs=5e-4)
    assert 0.3 < plan.std / 10_000 < classic


def test_what_is_drawn_is_the_law_that_was_checked() -> None:
    plan = m.Gaussian(query=bounds.histogram("w", ["a", "b"], Unit()), epsilon=1, delta=1e-5)
    schema = Schema.of(w=category(["a", "b"]))
    rows, run = read(schema, Unit(), w=["a"] * 3), Run(Noise(SeededBits(5)))
    raw = np.array([plan._run(rows, run) for _ in range(4000)])
    noise = np.ldexp(raw, -plan.exponent) - np.array([3 << -plan.exponent, 0])
    assert (noise == np.rint(noise)).all()
    z = noise / plan.law.sigma
    for coordinate in z.T:  # Kolmogorov-Smirnov; 2.6/sqrt(n) is once in a million seeds
        ranked = np.sort(coordinate)
        gaps = np.abs(special.ndtr(ranked) - np.arange(0.5, 4000) / 4000)
        assert gaps.max() < 2.7 / math.sqrt(4000)
    assert abs(float(np.corrcoef(z.T)[0, 1])) < 5.2 / math.sqrt(4000)
