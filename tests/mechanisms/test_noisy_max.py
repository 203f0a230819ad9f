"""Report noisy max by name, and the winner's value for those who pay."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.accounting import pure
from sfumato.audit.losses import pure_loss
from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from tests.helpers import seeded
from tests.mechanisms.selecting import NAMES, chances, exactly, exponential, moves, permute_and_flip, voters

RELATION = {True: Unit(), False: Unit(change="replace")}


def with_value(unit: Unit, **more: Any) -> m.NoisyMaxWithValue:
    return m.report_noisy_max(query=bounds.votes("w", NAMES, unit), **{"epsilon": 1, **more}, with_value=True)


def test_names_lead_to_the_right_mechanism() -> None:
    query = bounds.votes("w", NAMES, Unit())
    assert m.report_noisy_max(query=query, epsilon=1) == m.PermuteAndFlip(query=query, epsilon=1)
    assert m.report_noisy_max(query=query, epsilon=1, noise="gumbel") == m.Exponential(query=query, epsilon=1)
    assert isinstance(with_value(Unit()), m.NoisyMaxWithValue)
    with pytest.raises(ArgumentError, match=r"^noise = 'laplace'"):
        m.report_noisy_max(query=query, epsilon=1, noise="laplace")  # type: ignore[call-overload]


def test_the_price_is_a_selection_and_a_measurement() -> None:
    plan = with_value(Unit(), epsilon=2, share=0.25)
    assert plan.event == events.Sequence(
        (events.PermuteAndFlip(epsilon=Fraction(1, 2)), events.Laplace(epsilon=Fraction(3, 2)))
    )
    assert pure.epsilon(plan.event) == 2
    assert with_value(Unit(), noise="gumbel").event.events[0] == events.Exponential(epsilon=Fraction(1, 2))


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_winner_and_value_together_are_within_epsilon_on_all_small_neighbours(noise: Any, monotone: bool) -> None:
    """The joint loss is the loss of the winner plus that of its value, whose centre moves by its own score's move."""
    plan = with_value(RELATION[monotone], noise=noise, epsilon=1, share=0.4)
    selection, law = plan.selection, {"exponential": permute_and_flip, "gumbel": exponential}[noise]
    rate, vote = selection.rate * 2**20, 1 << -plan._exponent
    value_loss = {x: pure_loss(plan.law, [x * vote]) for x in (0, 1)}
    assert value_loss[1] == pytest.approx(0.6, abs=1e-6) and value_loss[1] <= 0.6 + 1e-9
    broken = 0
    with mp.workdps(30):
        for scores in ((0, 0, 0), (1, 0, 0), (3, 3, 0), (2, 1, 0), (0, 2, 2)):
            here = chances(law, scores, rate)
            for move in moves(monotone):
                there = chances(law, [s + x for s, x in zip(scores, move, strict=True)], rate)
                for i, x in enumerate(move):
                    both = abs(mp.log(here[i] / there[i])) + value_loss[abs(x)]
                    assert both <= 1 + 1e-9
                    broken += both > 0.99 * exactly(Fraction(9, 10))
    assert broken  # the same check would see a tenth less noise


def test_the_noisy_score_that_won_is_not_private() -> None:
    """The wrong variant: with exponential noise the winner's own noisy score is never below the best score."""
    noise = -np.log(np.random.default_rng(1).random((4000, 3)))
    one, other = (noise + scores for scores in ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]))
    assert (one.max(axis=1) < 1).mean() > 0.2 and (other.max(axis=1) < 1).mean() == 0


def test_what_leaves_and_its_error_bars_cover() -> None:
    plan, rows, run = with_value(Unit()), voters(Unit(), a=30, b=2, c=0), Run(Noise(SeededBits(4)))
    raws = [plan._run(rows, run) for _ in range(600)]
    assert plan.finish({"winner": 1, "value": 2.5}) == {"winner": "b", "value": 2.5}
    bars = plan.error(raws[0], 0.1)
    assert bars["winner"] == pytest.approx(math.log(30) / 0.5)
    true = np.array([(30, 2, 0)[raw["winner"]] for raw in raws])
    off = np.abs(np.array([raw["value"] for raw in raws]) - true)
    assert 0.05 < (off > bars["value"]).mean() <= 0.14
    assert off.std() > 1
    assert "afresh" in plan.explain()[-1]


def test_extreme_scores_have_a_winner_and_a_value() -> None:
    for value in (1e300, -1e300, math.nan, math.inf):
        query = bounds.declared(lambda rows, v=value: [v, 0.0], Unit(), reads={}, labels=["p", "q"], l1=2, l2=2, linf=1)
        raw = m.report_noisy_max(query=query, epsilon=1, with_value=True)._run(voters(Unit()), seeded())
        assert raw["winner"] in (0, 1) and math.isfinite(raw["value"])


@pytest.mark.parametrize("share", [0, 1, -0.5, 2, math.nan, "half", 1e-10])
def test_bad_shares_are_refused(share: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^share = "):
        with_value(Unit(), share=share)


def test_other_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^epsilon = "):
        with_value(Unit(), epsilon=0)
    with pytest.raises(ArgumentError, match=r"^query = "):
        m.report_noisy_max(query=3, epsilon=1, with_value=True)  # type: ignore[call-overload]
