"""The Laplace mechanism: the exact law of the noise drawn, on neighbours."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.bounds import Bounded
from sfumato.laws import RoundedLaplace
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import category, key, real
from sfumato.units import RELATIONS
from tests.helpers import few, read

EPSILONS = [1e-3, 0.01, 0.1, 0.5, 1, 3, 9]
SCHEMA = Schema.of(u=key(), x=real(-50, 200), w=category(["a", "b", "c"]))


def log_pmf(scale: float, k: int) -> Any:
    """ln P(round(Laplace(scale)) = k), from the definition."""
    s = mp.mpf(scale)
    if k == 0:
        return mp.log(-mp.expm1(-1 / (2 * s)))
    return -abs(k) / s + mp.log(mp.sinh(1 / (2 * s)))


def loss(scale: float, shift: int) -> Any:
    """The largest log-ratio of P(k) and P(k + shift). It is constant in both tails, so the middle and its rims do."""
    span = abs(shift)
    spots = {*range(-2, 3), *range(span - 2, span + 3), span // 2, span // 2 + 1}
    return max(abs(log_pmf(scale, k) - log_pmf(scale, k - span)) for k in spots)


def holds(scale: float, shifts: list[int], epsilon: Fraction) -> bool:
    """Is adding this noise to vectors that far apart epsilon-DP?"""
    with mp.workdps(60):
        allowed = mp.mpf(epsilon.numerator) / epsilon.denominator
        return bool(sum(loss(scale, shift) for shift in shifts) <= allowed + mp.mpf(10) ** -50)


def queries(unit: Unit) -> list[Bounded]:
    per_unit = 3 if unit.column else 1
    return [
        bounds.count(unit, per_unit=per_unit),
        bounds.clipped_sum("x", 0, 120, unit, per_unit=per_unit),
        bounds.clipped_sum("x", -7, 3, unit, per_unit=per_unit),
        bounds.mean("x", 18, 120, unit, per_unit=per_unit),
        bounds.histogram("w", ["a", "b", "c"], unit, per_unit=per_unit),
        bounds.declared(lambda rows: [0, 0], unit, reads={}, labels=["p", "q"], l1=2, l2=1.5, linf=1),
    ]


UNITS = [Unit(of, change, group) for of in ("row", "user:u") for change in RELATIONS for group in (1, 4)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_noise_hides_any_move_within_the_sensitivity(unit: Unit, epsilon: float) -> None:
    for query in queries(unit):
        plan = m.Laplace(query=query, epsilon=epsilon)
        assert isinstance(plan.law, RoundedLaplace)
        reach = math.floor(query.in_steps(plan.exponent).l1)
        spread = [[reach], [reach // 2, reach - reach // 2], [reach // 3, -(reach // 3), reach - 2 * (reach // 3)]]
        for shifts in spread:
            assert holds(plan.law.scale, shifts, plan.epsilon), (query, shifts)
        # and the noise is not more than needed: the worst move costs nearly all of epsilon
        with mp.workdps(60):
            assert loss(plan.law.scale, reach) > (1 - 2e-3) * plan.epsilon.numerator / plan.epsilon.denominator


@pytest.mark.parametrize("unit", [Unit(), Unit(change="replace"), Unit("user:u"), Unit("user:u", "replace")], ids=str)
def test_real_neighbours_are_hidden(unit: Unit) -> None:
    tables = [
        {"u": [1, 1, 1, 1, 2, 3], "x": [200.0, 150, -50, None, 20, 33], "w": ["a", "a", "b", None, "c", "c"]},
        {"u": [2, 3], "x": [20.0, 33], "w": ["c", "c"]},
        {"u": [1, 1, 1, 1, 2, 3], "x": [-50.0, -50, -50, -50, 20, 33], "w": ["c", "c", "c", "c", "c", "c"]},
    ]
    if unit.column is None:  # one row's worth
        tables = [{name: values[-3:] for name, values in t.items()} if len(t["u"]) > 2 else t for t in tables]
    if unit.change == "replace" and unit.column is None:
        tables = [tables[0], tables[2]]
    for query in queries(unit):
        for epsilon in (0.01, 1):
            plan = m.Laplace(query=query, epsilon=epsilon)
            at = [query.steps(read(SCHEMA, unit, **t), plan.exponent) for t in tables]
            for a, b in pairwise(at):
                assert holds(plan.law.scale, [int(p) - int(q) for p, q in zip(a, b, strict=True)], plan.epsilon)


def test_mutants_are_caught_by_the_same_check() -> None:
    # V2: noise x 0.5, sensitivity x 0.5, a forgotten group, a forgotten relation, epsilon taken twice
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        plan = m.Laplace(query=bounds.histogram("w", ["a", "b"], Unit(change="replace")), epsilon=epsilon)
        l1 = plan.query.in_steps(plan.exponent).l1
        ends = [int(l1) // 2, -int(l1) // 2]
        assert holds(plan.law.scale, ends, epsilon)
        assert not holds(plan.law.scale / 2, ends, epsilon)
        assert not holds(plan.law.scale * (1 - 1e-9), ends, epsilon * (1 - Fraction(1, 10**6)))
        half = m.Laplace(query=bounds.histogram("w", ["a", "b"], Unit()), epsilon=epsilon)
        scale = half.law.scale * 2.0 ** (half.exponent - plan.exponent)
        assert not holds(scale, ends, epsilon)
        assert not holds(plan.law.scale, [2 * e for e in ends], epsilon)


def test_the_float_scale_is_rounded_up() -> None:
    for epsilon in (0.1, Fraction(1, 3), 0.7, 1e-3, Fraction(22, 7)):
        for query in queries(Unit(group=3)):
            plan = m.Laplace(query=query, epsilon=epsilon)
            wanted = query.in_steps(plan.exponent).l1 / plan.epsilon
            assert wanted <= Fraction(plan.law.scale) <= wanted * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_what_is_drawn_is_the_law_that_was_checked(epsilon: float) -> None:
    plan = m.Laplace(query=bounds.count(Unit()), epsilon=epsilon)
    rows, run = read(SCHEMA, Unit(), u=[1] * 5, x=[0] * 5, w=["a"] * 5), Run(Noise(SeededBits(3)))
    raw = np.array([plan._run(rows, run)[0] for _ in range(4000)])
    noise = np.ldexp(raw, -plan.exponent) - (5 << -plan.exponent)
    assert (noise == np.rint(noise)).all()  # whole steps
    cuts = [plan.law.quantile(p) for p in (0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95)]
    cells = np.searchsorted(cuts, noise, side="left")
    chances = np.diff([0.0, *(float(plan.law.cdf(c)) for c in cuts), 1.0])
    observed = np.bincount(cells, minlength=8)
    chi = float(((observed - 4000 * chances) ** 2 / (4000 * chances)).sum())
    assert chi < 45  # 7 degrees of freedom: once in ten million seeds
    for k in (0, 1, 5, -7, 40):  # the float pmf is that of the definition
        assert float(plan.law.pmf(k)) == pytest.approx(float(mp.exp(log_pmf(plan.law.scale, k))), rel=1e-10)


def test_textbook_count() -> None:
    plan = m.Laplace(query=bounds.count(Unit()), epsilon=0.5)
    assert float(plan._scale) == 2 and plan.std == pytest.approx(2 * math.sqrt(2), rel=1e-6)
    variances = {e: m.Laplace(query=bounds.count(Unit()), epsilon=e).std ** 2 for e in (0.25, 0.5, 1)}
    assert variances[1] == pytest.approx(2, rel=1e-5)  # 2 / epsilon^2
    assert variances[0.5] / variances[1] == pytest.approx(4, rel=1e-5)  # halving epsilon quadruples it
    assert variances[0.25] / variances[0.5] == pytest.approx(4, rel=1e-5)


def test_a_group_of_k_costs_k_times_as_much() -> None:
    one, four = (m.Laplace(query=bounds.count(Unit(group=g)), epsilon=1) for g in (1, 4))
    assert four.std == pytest.approx(4 * one.std, rel=1e-6)
    assert m.Laplace(query=bounds.count(Unit()), epsilon=Fraction(1, 4)).std == pytest.approx(four.std, rel=1e-6)


@few
@given(st.floats(1e-6, 10), st.floats(1e-3, 1e6))
def test_the_grid_is_chosen_from_public_fields_and_finer_than_the_noise(epsilon: float, upper: float) -> None:
    plan = m.Laplace(query=bounds.clipped_sum("x", 0, upper, Unit()), epsilon=epsilon)
    again = m.Laplace(query=bounds.clipped_sum("x", 0, upper, Unit()), epsilon=epsilon)
    assert plan.exponent == again.exponent and plan.law == again.law
    assert plan.law.scale >= 2**20
    assert plan.expected_error(0.05) == pytest.approx(upper / epsilon * math.log(20), rel=1e-3)


def test_the_steps_are_explained_with_their_numbers() -> None:
    lines = m.Laplace(query=bounds.count(Unit()), epsilon=0.5).explain()
    assert "moves it by at most 1 (L1), 1 (L2)" in lines[1] and "standard deviation 2.82843" in lines[2]
