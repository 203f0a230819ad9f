"""Strict sums: whole numbers with a norm that is verified, whatever the floats before did."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from sfumato import learn
from sfumato.learn.whole import whole_sums
from tests.learn.tiny import Recording, columns, plan_for, rows_of, stepped, trained

MODEL = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1), torch.nn.Flatten(0))


def summed(plan: Any, x: Any, y: Any, weights: Any = None) -> tuple[list[torch.Tensor], torch.Tensor]:
    engine = plan.engine(plan.model.fresh())
    inputs, target = (torch.as_tensor(x, dtype=torch.float32),), torch.as_tensor(y, dtype=torch.float32)
    there = torch.ones(len(target)) if weights is None else weights
    done = engine.backward(inputs, target, there)
    return whole_sums(engine, done, there, plan.clip, float(plan.clip.norm), plan.blur.exponent(float(plan.clip.norm)))


@pytest.mark.parametrize(
    "clip",
    [1, learn.PerLayer(norm=1), learn.Automatic(norm=1), learn.PerGroup(norm=1, weights={"0.*": 1, "*": 5})],
    ids=str,
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e18, 1e30])
def test_each_record_is_whole_numbers_within_the_norm(clip: Any, scale: float) -> None:
    plan = plan_for(MODEL, clip=clip, strict=True)
    random = np.random.default_rng(3)
    most = Fraction(plan.clip.norm) / Fraction(2) ** plan.blur.exponent(1.0)
    for _ in range(5):
        x, y = random.uniform(-1, 1, (2, 3)), [scale, -scale]
        alone = [summed(plan, x, y, torch.tensor(w))[0] for w in ([1.0, 0.0], [0.0, 1.0])]
        for parts in alone:
            numbers = [int(v) for each in parts for v in each.reshape(-1).tolist()]
            assert all(torch.equal(each, each.round()) for each in parts)
            assert sum(v * v for v in numbers) <= most**2, "exactly, in whole numbers"
        both, _ = summed(plan, x, y)
        assert all(torch.equal(a + b, c) for a, b, c in zip(*alone, both, strict=True)), "the sum is exact"


def test_records_that_are_no_numbers_add_nothing() -> None:
    plan = plan_for(MODEL, strict=True)
    x = np.ones((3, 3), dtype=np.float32)
    fine, _ = summed(plan, x[:2], [1.0, 2.0])
    for odd in (math.nan, math.inf, -math.inf):
        bad, _ = summed(plan, x, [1.0, 2.0, odd])
        assert all(torch.equal(a, b) for a, b in zip(fine, bad, strict=True))


def test_nobody_is_a_sum_of_zeros() -> None:
    plan = plan_for(MODEL, strict=True)
    parts, norms = summed(plan, np.zeros((2, 3)), [1.0, 1.0], torch.zeros(2))
    assert not any(each.any() for each in parts) and len(norms) == 2


def test_strict_sums_pay_for_no_doubts() -> None:
    strict, usual = plan_for(MODEL, strict=True), plan_for(MODEL)
    assert strict.blur.sensitivity == 1 and strict.blur.deviation(1.0) < usual.blur.deviation(1.0)
    assert strict.blur.deviation(1.0) >= float(strict.multiplier)


def test_strict_and_usual_sums_agree_but_for_rounding() -> None:
    rows = rows_of(columns(8), plan_for(MODEL))
    strict, usual = (stepped(plan_for(MODEL, strict=each), rows) for each in (True, False))
    count = sum(each.numel() for each in MODEL.parameters())
    step = 2.0 ** plan_for(MODEL).blur.exponent(1.0) / 8
    assert np.abs(strict - usual).max() <= 9 * step, f"{count} parameters, eight records: each is cut by a step at most"


def test_a_strict_training_runs() -> None:
    plan = plan_for(MODEL, strict=True, steps=3, rate=Fraction(1, 2))
    raw = trained(plan, rows_of(columns(8), plan), Recording())
    assert raw["steps"] == 3 and all(np.isfinite(each).all() for each in raw["state"].values())
    assert "exactly" in " ".join(plan.explain())
