"""Private bounds: the interval, the threshold from the law, the share clipped; the price is Laplace's."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, events, reserve
from sfumato import mechanisms as m
from sfumato.audit.losses import pure_loss
from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import key, real
from tests.helpers import read, seeded

WIDE = Schema.of(u=key(), x=real(-1e12, 1e12))


def plan_for(unit: Unit | None = None, **more: Any) -> m.PrivateBounds:
    return m.private_bounds("x", unit or Unit(), **{"epsilon": 1, "lowest": 0, "highest": 4, **more})


def finished(plan: m.PrivateBounds, **counts: float) -> dict[str, Any]:
    """The answer where the noisy bins hold this: b_4 is the bin that ends at 4, n_4 its mirror, z zero."""
    raw = np.zeros(len(plan.query.names))
    for name, count in counts.items():
        end = 0.0 if name == "z" else float(name[2:]) * (1 if name[0] == "b" else -1)
        raw[plan.query.names.index(end)] = count
    return plan.finish(raw)


@pytest.mark.parametrize(
    ("counts", "lower", "upper"),
    [
        ({"b_4": 900, "b_16": 100}, 2, 16), ({"b_1": 900}, 0, 1), ({"n_1": 900}, -1, 0),
        ({"n_8": 900, "n_2": 900}, -8, -1),
        ({"n_4": 900, "b_2": 900}, -4, 2), ({"z": 900, "b_8": 900}, 0, 8), ({"n_16": 900, "z": 900}, -16, 0),
        ({"z": 900}, -1, 1), ({}, -1, 1), ({"b_8": 5}, -1, 1), ({"b_8": 900, "b_16": 5}, 4, 8),
    ],
    ids=str,
)  # fmt: skip
def test_the_interval_runs_from_the_first_bin_seen_to_the_last(counts: Any, lower: float, upper: float) -> None:
    answer = finished(plan_for(), **counts)
    assert (answer["lower"], answer["upper"]) == (lower, upper) and answer["lower"] < answer["upper"]
    assert answer["found"] is (max(counts.values(), default=0) > 100)
    assert bounds.mean("x", answer["lower"], answer["upper"], Unit()).l1 > 0  # fit for a query as they are


def test_the_share_clipped_is_reported() -> None:
    assert finished(plan_for(), b_8=900, b_16=10)["clipped"] == pytest.approx(10 / 910)
    assert finished(plan_for(), b_8=900, b_16=-10)["clipped"] == 0
    assert finished(plan_for())["clipped"] == 0
    assert finished(plan_for(), b_1=5, n_1=3, z=1)["clipped"] == 0  # within the smallest interval
    assert finished(plan_for(), b_2=5, n_1=3, z=2)["clipped"] == pytest.approx(0.5)
    raw = np.zeros(11)
    raw[9], raw[10] = 900, 10
    bars = plan_for().error(raw, 0.05)
    assert bars["lower"] is None and 0.005 < bars["clipped"] < 0.1
    assert plan_for().error(np.zeros(11), 0.05)["clipped"] == 1.0


def test_the_share_has_a_bar_that_covers() -> None:
    plan = plan_for(epsilon=0.5, failure=0.01)
    values = np.concatenate([np.full(400, 3.0), np.full(12, 14.0)])
    rows, run, missed = read(WIDE, Unit(), u=np.arange(412), x=values), Run(Noise(SeededBits(3))), 0
    for _ in range(300):
        raw = plan._run(rows, run)
        answer = plan.finish(raw)
        truth = np.mean((values < answer["lower"]) | (values > answer["upper"]))
        missed += abs(answer["clipped"] - truth) > plan.error(raw, 0.1)["clipped"]
    assert missed <= 30


@pytest.mark.parametrize("failure", [0.5, 0.01, 1e-9])
@pytest.mark.parametrize("unit", [Unit(), Unit(change="replace"), Unit(group=3)], ids=str)
def test_the_threshold_comes_from_the_law(unit: Unit, failure: float) -> None:
    plan = plan_for(unit, failure=failure)
    steps = math.floor(plan.threshold * 2.0**-plan.exponent)
    assert float(plan.law.sf(np.array([steps]))[0]) * 11 <= failure * (1 + 1e-9)  # P(noise > threshold) of all bins
    less = math.floor(plan.threshold * 2.0**-plan.exponent) - max(2, int(0.05 * plan.law.spread))
    assert float(plan.law.sf(np.array([less]))[0]) * 11 > failure  # and it is not larger than it must be
    scale = {"add-remove": 1, "replace": 2}[unit.change] * unit.group
    assert plan.threshold == pytest.approx(scale * math.log(11 / (2 * failure)), rel=0.01)


def test_empty_bins_pass_as_rarely_as_promised() -> None:
    plan, rows, run = plan_for(failure=0.1), read(WIDE, Unit(), u=[], x=[]), Run(Noise(SeededBits(8)))
    found = sum(plan.finish(plan._run(rows, run))["found"] for _ in range(1500))
    assert 90 < found < 190  # 150 at most on average, and nearly that


def test_a_column_of_unknown_size_gets_its_bounds() -> None:
    values = np.random.default_rng(5).lognormal(9, 0.5, size=5000)
    rows = read(WIDE, Unit(), u=np.arange(5000), x=values)
    plan = m.private_bounds("x", Unit(), epsilon=0.5)
    answer = plan.finish(plan._run(rows, seeded()))
    assert answer["found"] and answer["lower"] >= 512 and answer["upper"] <= 2**17
    assert np.mean((values >= answer["lower"]) & (values <= answer["upper"])) > 0.97


@pytest.mark.parametrize("unit", [Unit(), Unit(change="replace"), Unit("user:u", "zero-out"), Unit(group=2)], ids=str)
def test_the_loss_is_within_epsilon_and_half_the_noise_is_seen(unit: Unit) -> None:
    plan = plan_for(unit, epsilon=0.7)
    assert plan.event == events.Laplace(epsilon=Fraction(7, 10), relation=unit.change) and plan.unit == unit
    row = 1 << -plan.exponent
    moves = [row * unit.group, -row * unit.group] if unit.change == "replace" else [row * unit.group]
    assert pure_loss(plan.law, moves) <= 0.7 + 1e-9
    halved = type(plan.law)(plan.law.spread / 2)
    assert pure_loss(halved, moves) > 1.3


def test_bounds_first_then_a_mean_with_them_in_one_reserve() -> None:
    def body(run: Run) -> list[float]:
        found = run.release(m.private_bounds("x", Unit(), epsilon=0.2, failure=1e-12))  # true noise
        mean = bounds.mean("x", found["lower"], found["upper"], Unit())
        return [found["lower"], found["upper"], run.release(m.Laplace(query=mean, epsilon=0.8))]

    values = np.full(3000, 300.0)
    private = Private("p", {"u": np.arange(3000), "x": values}, unit=Unit(), schema=WIDE)
    curator = Curator(private, MemoryLedger({"p": Budget(epsilon=1)}))
    lower, upper, mean = curator.release(reserve(body, unit=Unit(), budget=Budget(epsilon=1))).value
    assert (lower, upper) == (256, 512) and abs(mean - 300) < 20


def test_bad_arguments_are_refused() -> None:
    for wrong, named in (({"failure": 0}, "failure"), ({"failure": 1}, "failure"), ({"epsilon": -1}, "epsilon")):
        with pytest.raises(ArgumentError, match=f"^{named} = "):
            plan_for(**wrong)
    with pytest.raises(ArgumentError, match=r"^query = "):
        m.PrivateBounds(query=bounds.count(Unit()), epsilon=1)  # type: ignore[arg-type]
    assert "paid" not in plan_for().explain()[0] and len(plan_for().explain()) == 3
