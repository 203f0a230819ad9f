"""Keys by noisy counts: thresholds from the law that is drawn, exact laws on neighbours, unique keys, mutants."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Unit, events
from sfumato.accounting import price
from sfumato.errors import ArgumentError
from sfumato.laws import Law, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms import ThresholdKeys
from sfumato.mechanisms.threshold_keys import Kind
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from tests.mechanisms.keyed import ROW, USER, excess, law_of_sets, neighbours, run, table


def plan_for(epsilon: Any = 1, delta: Any = 1e-5, unit: Unit = ROW, **fields: Any) -> ThresholdKeys:
    return ThresholdKeys(column="k", protects=unit, epsilon=epsilon, delta=delta, **fields)


def chance(law: Law, above: int) -> Any:
    """P(noise >= above steps), to 50 digits, from the definition of the rounded laws."""
    edge = mp.mpf(2 * above - 1) / 2
    if isinstance(law, RoundedLaplace):
        return mp.exp(-edge / mp.mpf(law.scale)) / 2 if edge > 0 else 1 - mp.exp(edge / mp.mpf(law.scale)) / 2
    assert isinstance(law, RoundedGaussian)
    return mp.erfc(edge / mp.mpf(law.sigma) / mp.sqrt(2)) / 2


def shows(plan: ThresholdKeys, threshold: int, keys: int, units: int = 1, law: Law | None = None) -> Any:
    """The chance that any of so many new keys, of so many units each, shows."""
    p = chance(law or plan.law, threshold - (units << -plan.exponent))
    return 1 - (1 - p) ** keys


def test_the_published_threshold() -> None:
    plan = plan_for()
    continuous = 1 + math.log(1 / 2e-5)
    assert continuous == pytest.approx(11.819778, abs=1e-6)
    step = 2.0**plan.exponent
    # One unit's height is on the grid and noise is rounded to it: half a step more, then up to the next.
    assert continuous <= plan.threshold <= continuous + 1.5 * step
    assert plan.price() == 1 and plan.delta == Fraction(1, 10**5)
    assert plan.event == events.Bundle(
        (events.Laplace(epsilon=1), events.Approximate(epsilon=0, delta=Fraction(1, 10**5)))
    )


SETTINGS = list(product((0.1, 1, 8), (0.2, 1e-5, 1e-40), ("laplace", "gaussian"), (1, 9)))


@pytest.mark.parametrize(("epsilon", "delta", "noise", "per_unit"), SETTINGS)
def test_the_threshold_is_the_least_that_holds(epsilon: float, delta: float, noise: Kind, per_unit: int) -> None:
    plan = plan_for(epsilon, delta, USER, noise=noise, per_unit=per_unit)
    with mp.workdps(90):
        allowed = mp.mpf(plan.key_delta.numerator) / plan.key_delta.denominator
        for keys in range(1, per_unit + 1):
            assert shows(plan, plan.threshold_steps, keys) <= allowed
        assert (
            shows(plan, plan.threshold_steps - 1, per_unit) > allowed
            or plan.threshold_steps == (1 << -plan.exponent) + 1
        )


def test_wrong_thresholds_are_caught() -> None:
    plan = plan_for(1, 1e-3)
    with mp.workdps(50):
        allowed = mp.mpf(1) / 1000
        right = plan.threshold_steps
        assert shows(plan, right - 1, 1) > allowed  # one step too low
        assert shows(plan, 1 << -plan.exponent, 1) > allowed  # at the count itself: as if there were no noise
        gauss = plan_for(1, 2e-3, noise="gaussian")  # the continuous Laplace threshold beside Gaussian noise
        assert shows(gauss, math.ceil((1 + math.log(500)) * 2**-gauss.exponent), 1) > allowed
        many = plan_for(1, 1e-3, USER, per_unit=5)  # for one new key where a unit may bring five
        assert shows(many, math.ceil((1 + 5 * math.log(500)) * 2**-many.exponent), 5) > allowed
        group = plan_for(1, 1e-3, Unit(group=3))  # for one unit where three are hidden together
        assert shows(group, math.ceil((1 + 3 * math.log(500)) * 2**-group.exponent), 3, 1) > allowed


@pytest.mark.parametrize("group", [2, 5, 40])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_groups_may_bring_their_new_keys_in_any_way(group: int, noise: Kind) -> None:
    plan = plan_for(0.5, 0.05, Unit("user:u", group=group), per_unit=3, noise=noise)
    with mp.workdps(50):
        allowed = mp.mpf(plan.key_delta.numerator) / plan.key_delta.denominator
        for units in range(1, group + 1):
            assert shows(plan, plan.threshold_steps, 3 * group // units, units) <= allowed
        # Mixed: one key of all units, and the rest alone.
        mixed = 1 - (1 - shows(plan, plan.threshold_steps, 2, group)) * (
            1 - shows(plan, plan.threshold_steps, group, 1)
        )
        assert mixed <= allowed
    assert plan.law.spread >= float(plan_for(0.5, 0.05, USER, per_unit=3, noise=noise).law.spread) * 0.99


def joint_excess(plan: ThresholdKeys, threshold: int, law: Law, n: int) -> float:
    """A key of n units gets one more, and beside it come new keys: the law of (noisy count or nothing, anything new),
    beyond the price."""
    unit = 1 << -plan.exponent
    places = np.arange(threshold, (n + 60) * unit + threshold)
    here, there = (law.pmf(places - m * unit) for m in (n, n + 1))
    hidden = [float(law.cdf(threshold - 1 - m * unit)) for m in (n, n + 1)]
    new = float(shows(plan, threshold, plan.per_unit - 1 or 1, law=law))
    one, other = np.append(here, hidden[0]), np.append(there, hidden[1])
    worst = -math.inf
    for epsilon in (0.0, 0.3, 0.7, 1.0, 1.4):
        grown = np.maximum(other * (1 - new) - math.exp(epsilon) * one, 0).sum() + new
        shrunk = np.maximum(one - math.exp(epsilon) * other * (1 - new), 0).sum()
        worst = max(worst, max(grown, shrunk) - price.delta(plan.event, epsilon=Fraction(str(epsilon))).upper)
    return float(worst)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_counts_and_new_keys_together_are_within_the_price(noise: Kind) -> None:
    plan = plan_for(1, 0.02, USER, per_unit=2, noise=noise)
    for n in (1, 4, 12, 30):
        assert joint_excess(plan, plan.threshold_steps, plan.law, n) <= 1e-9
    less = type(plan.law)(plan.law.spread / 4)  # half of the noise is just enough: one of two keys is new here
    assert joint_excess(plan, plan.threshold_steps, less, 12) > 0.01
    assert joint_excess(plan, 2 << -plan.exponent, plan.law, 12) > 0.01


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("per_unit", [1, 2])
def test_all_small_neighbours_are_within_the_price(change: Any, noise: Kind, per_unit: int) -> None:
    plan = plan_for(2, 0.3, Unit("user:u", change), noise=noise, per_unit=per_unit)

    def worst(keep: Any) -> float:
        return max(
            excess(plan, *(law_of_sets(side, per_unit, lambda units: keep(len(units))) for side in pair))
            for pair in neighbours(change)
        )

    assert worst(plan.keep_chance) <= 1e-12
    low = replace(plan, delta=0.9)  # a threshold from a delta that nobody paid
    assert worst(low.keep_chance) > 0.01


def test_a_unique_key_shows_with_probability_delta_and_the_mutant_more_often() -> None:
    """Attack Q2: 100,000 unique keys in one table are as many tries."""
    for noise in ("laplace", "gaussian"):
        plan = plan_for(1, 1e-3, noise=noise)
        rows = table(ROW, *[[k] for k in range(100_000)])
        allowed = 100_000 * float(plan.key_delta)
        assert len(plan._run(rows, run(3))) <= allowed + 6 * math.sqrt(allowed)
        assert len(plan._run(rows, run(3))) >= allowed - 6 * math.sqrt(allowed)
        mutant = plan_for(1, 1e-3, noise=noise)
        object.__setattr__(mutant, "threshold_steps", plan.threshold_steps - (2 << -plan.exponent))
        assert len(mutant._run(rows, run(3))) > allowed + 6 * math.sqrt(allowed)


@pytest.mark.slow
def test_a_unique_key_among_others_in_many_runs() -> None:
    plan = plan_for(1, 1e-3, USER, per_unit=3)
    rows, rng = table(USER, ("x", "y", "z"), *[("a", "b")] * 60), Run(Noise(SeededBits(5)))
    shown = sum(bool({"x", "y", "z"} & set(plan._run(rows, rng))) for _ in range(100_000))
    assert shown <= 100 + 60


def test_counts_are_near_and_error_bars_cover() -> None:
    plan = plan_for(0.5, 1e-6, noise="gaussian")
    rows = table(ROW, *[[k] for k in range(400) for _ in range(200)])
    raw = plan._run(rows, run())
    assert list(raw) == list(range(400))
    for alpha in (0.05, 0.3):
        bars = plan.error(raw, alpha)
        missed = sum(abs(count - 200) > bars[k] for k, count in raw.items()) / 400
        assert missed <= alpha + 5 * math.sqrt(alpha / 400)
        assert bars[0] == plan.expected_error(alpha) == plan.width(alpha)


def test_the_law_in_steps_is_the_law_of_the_event() -> None:
    for unit, l1, l2 in (
        (USER, 6, 6),
        (Unit("user:u", "replace"), 12, 12),
        (Unit("user:u", group=2), 12, 24),
        (Unit("user:u", "replace", 2), 24, 48),
    ):
        laplace = plan_for(0.5, 1e-6, unit, per_unit=6)
        assert laplace.law.spread * 2.0**laplace.exponent == pytest.approx(l1 / 0.5, rel=1e-12)
        assert isinstance(laplace.event, events.Sequence) and laplace.event.relation == unit.change
        gauss = plan_for(0.5, 1e-6, unit, per_unit=6, noise="gaussian")
        noise = gauss.event.events[0]  # type: ignore[attr-defined]
        assert gauss.law.spread * 2.0**gauss.exponent == pytest.approx(
            math.sqrt(l2) * float(noise.multiplier), rel=1e-12
        )
        assert gauss.price() <= Fraction(1, 2)


def test_explain_and_refusals() -> None:
    assert "keep the keys that reach 11.82" in plan_for().explain()[2]
    for fields, match in (
        ({"noise": "cauchy"}, "noise"),
        ({"epsilon": 1e-9, "per_unit": 2**18, "protects": USER}, "larger epsilon"),
        ({"delta": 0}, "delta"),
    ):
        with pytest.raises(ArgumentError, match=match):
            ThresholdKeys(**{"column": "k", "protects": ROW, "epsilon": 1, "delta": 1e-5, **fields})
