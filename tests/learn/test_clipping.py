"""Rules of clipping: no record counts for more than the norm, whatever the rule; what adapts is paid for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import learn
from sfumato.errors import ArgumentError, PlanError
from sfumato.learn.clipping import Adaptive, Automatic, Clipping, Flat, PerLayer, coefficients
from sfumato.learn.rules import Sizes
from sfumato.record import canonical, parse
from tests.learn.tiny import Recording, columns, plan_for, rows_of, stepped, trained

RULES: dict[str, Clipping] = {
    "flat": learn.Flat(norm=Fraction(1, 2)),
    "automatic": learn.Automatic(norm=2),
    "layers": learn.PerLayer(norm=1),
    "groups": learn.PerGroup(norm=3, weights={"0.*": 3, "*.bias": 1, "*": 4}),
    "adaptive": learn.Adaptive(norm=1, quantile=0.9, noise=0.5),
}
NAMES = ("0.weight", "0.bias", "1.weight", "1.bias")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_survives_json(name: str) -> None:
    assert parse(canonical(RULES[name])) == RULES[name]


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(list(RULES)),
    squares=st.lists(st.lists(st.floats(0, 1e30), min_size=4, max_size=4), min_size=1, max_size=6),
    norm=st.floats(2.0**-30, 2.0**30),
)
def test_no_record_counts_for_more_than_the_norm(name: str, squares: list[list[float]], norm: float) -> None:
    rule = RULES[name]
    groups = rule.groups(NAMES)
    table = torch.tensor(squares, dtype=torch.float64).T
    sizes = [Sizes(each, torch.zeros_like(each)) for each in table]
    weights, norms = coefficients(rule, norm, sizes, groups, 1 / 64)
    total = torch.zeros(len(squares), dtype=torch.float64)
    for parameter, group in enumerate(groups):
        total += table[parameter] * weights[group].double() ** 2
    assert bool((total.sqrt() <= norm).all())
    assert torch.allclose(norms, table.sum(0).sqrt())


@settings(deadline=None, max_examples=30)
@given(name=st.sampled_from(list(RULES)), odd=st.sampled_from([math.inf, math.nan]))
def test_what_is_no_number_has_no_weight(name: str, odd: float) -> None:
    rule = RULES[name]
    sizes = [Sizes(torch.tensor([odd, 1.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)) for _ in NAMES]
    weights, _ = coefficients(rule, 1.0, sizes, rule.groups(NAMES), 1 / 64)
    assert all(each[0] == 0 and 0 < each[1] <= 2.0**100 for each in weights)


def test_doubts_cut_the_weight() -> None:
    """Where float errors may be large, a record counts for less: what is left of eta covers them."""
    sizes = [Sizes(torch.ones(4, dtype=torch.float64), torch.full((4,), 1e-2, dtype=torch.float64))]
    (weights,), _ = coefficients(learn.Flat(norm=1), 1.0, sizes, (0,), 1 / 64)
    assert bool((weights * 0.1 <= (1 / 64) / 8).all())


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_groups_share_one_norm(name: str, count: int) -> None:
    assert sum(Fraction(each) ** 2 for each in RULES[name].shares(count)) <= 1


def test_groups_are_found_by_name() -> None:
    assert learn.PerLayer(norm=1).groups(NAMES) == (0, 0, 1, 1)
    assert learn.PerGroup(norm=1, weights={"*.bias": 1, "*": 2}).groups(NAMES) == (1, 0, 1, 0)
    with pytest.raises(PlanError, match=r"1\.weight"):
        learn.PerGroup(norm=1, weights={"0.*": 1}).groups(NAMES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: learn.Flat(norm=0),
        lambda: learn.Flat(norm=float("nan")),
        lambda: learn.Flat(norm=2**31),
        lambda: learn.Flat(norm=1e-12),
        lambda: learn.Automatic(norm=1, stability=0),
        lambda: learn.Adaptive(norm=1, quantile=1),
        lambda: learn.Adaptive(norm=1, noise=0),
        lambda: learn.PerGroup(norm=1, weights={}),
        lambda: learn.PerGroup(norm=1, weights={"*": -1}),
    ],
)
def test_rules_check_their_numbers(make: Any) -> None:
    with pytest.raises(ArgumentError):
        make()


@pytest.mark.parametrize("name", RULES)
def test_every_rule_trains_within_its_norm(name: str) -> None:
    """One record of a huge gradient, alone, with silent noise: at most the norm."""
    rule = RULES[name]
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1), torch.nn.Flatten(0))
    plan = plan_for(model, clip=rule)
    alone = {"x": np.full((1, 3), 9, dtype=np.float32), "y": [10.0]}
    moved = float(np.linalg.norm(stepped(plan, rows_of(alone, plan)) * 8))
    assert moved <= float(rule.norm) * 1.01 and moved > float(rule.norm) / 4
    raw = trained(plan, rows_of(columns(8), plan), Recording())
    assert all(np.isfinite(each).all() for each in raw["state"].values())


# what adapts


def adapting(**fields: Any) -> Any:
    return plan_for(people=400, rate=Fraction(1, 2), clip=learn.Adaptive(norm=8, quantile=0.5, pace=0.5), **fields)


def test_the_count_is_a_part_of_every_step() -> None:
    """T5 of the bugs seen elsewhere: what is drawn from is what is paid for, no more and no less."""
    plan = adapting(steps=3)
    noise = Recording()
    trained(plan, rows_of(columns(300), plan, 400), noise)
    assert plan.count == 10, "a twentieth of the 200 that are expected"
    vectors, counts = noise.laws[::2], noise.laws[1::2]
    assert [many for _, many in vectors] == [3] * 3 and counts == [(20.0, 1)] * 3
    for (sigma, _), norm in zip(vectors, [8.0], strict=False):
        reach = float((1 + plan.eta) * Fraction(norm)) / 2.0 ** plan.blur.exponent(norm) + 3**0.5
        assert (reach / sigma) ** 2 + (1 / 20) ** 2 == pytest.approx(1 / float(plan.multiplier) ** 2, rel=1e-9)
    assert plan.event == adapting(steps=3, count=None).event


def test_the_norm_follows_the_quantile() -> None:
    plan = adapting(steps=25)
    raw = trained(plan, rows_of(columns(400), plan, 400), Recording())
    given = columns(400)
    norms = np.linalg.norm(given["x"] * np.array(given["y"])[:, None], axis=1)
    assert 0.2 < np.mean(norms <= raw["norm"]) < 0.8, "it began with all of them unclipped"
    assert len(raw["unclipped"]) == 25 and abs(raw["unclipped"][0] - 1) < 0.5


def test_the_noise_moves_with_the_norm() -> None:
    plan = adapting(steps=4)
    noise = Recording()
    raw = trained(plan, rows_of(columns(400), plan, 400), noise)
    in_units = [sigma * 2.0 ** plan.blur.exponent(8.0) for sigma, many in noise.laws if many == 3]
    assert raw["norm"] < 8 and in_units[0] == pytest.approx(plan.blur.deviation(8.0), rel=1e-3)
    assert plan.blur.deviation(raw["norm"]) / raw["norm"] == pytest.approx(plan.blur.deviation(8.0) / 8, rel=0.02)


def test_a_count_that_costs_more_than_the_step_is_refused() -> None:
    with pytest.raises(ArgumentError, match="count"):
        plan_for(people=10, clip=learn.Adaptive(norm=1), multiplier=2)


def test_unclipped_records_may_be_counted_for_any_rule() -> None:
    plan = plan_for(people=400, rate=Fraction(1, 2), clip=100, count=Fraction(1, 20), steps=3)
    raw = trained(plan, rows_of(columns(400), plan, 400), Recording())
    assert len(raw["unclipped"]) == 3 and all(abs(each - 1) < 0.6 for each in raw["unclipped"])
    assert trained(plan_for(), rows_of(columns(8), plan_for()), Recording())["unclipped"] == []


@pytest.mark.parametrize("clipping", [Flat(norm=2), Automatic(norm=2), PerLayer(norm=2), Adaptive(norm=2)])
def test_no_record_may_cause_more_float_error_than_its_share(clipping: Clipping) -> None:
    """The noise leaves room for eta C in all, half of it for each of two neighbours, shared by the records."""
    records, eta = 4, 1 / 64
    squares = torch.tensor([1e-6, 1.0, 1e6, 4.0], dtype=torch.float64)
    doubts = torch.tensor([1e-6, 1e-2, 1e4, 0.0], dtype=torch.float64)
    weights, _ = coefficients(clipping, 2.0, [Sizes(squares, doubts)], (0,), eta)
    errors = weights[0].double() * doubts.sqrt()
    assert (errors <= eta / (2 * records) * 2.0).all()
    assert (weights[0].double() * squares.sqrt() <= 2.0).all() and float(weights[0][3]) > 0.49
