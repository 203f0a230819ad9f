"""Hockey sticks and Rényi divergences from counts: right numbers, true lower bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import events
from sfumato.accounting import renyi
from sfumato.audit import counting, testers, views
from sfumato.audit.telling import tally

_CHANCES = st.floats(0.001, 0.999)


@given(p=_CHANCES, q=_CHANCES, order=st.sampled_from(testers.ORDERS))
def test_two_coins_by_the_definition(p: float, q: float, order: float) -> None:
    p, q = max(p, q), min(p, q)
    direct = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    assert float(testers.coins(p, q, order)) == pytest.approx(max(direct, 0), rel=1e-6, abs=1e-9)


@given(p=_CHANCES, q=_CHANCES, less=st.floats(0, 1), more=st.floats(0, 1), order=st.sampled_from(testers.ORDERS))
def test_cautious_coins_are_nearer(p: float, q: float, less: float, more: float, order: float) -> None:
    """The monotony that the lower bound rests on: a smaller p and a larger q never have a larger divergence."""
    p, q = max(p, q), min(p, q)
    low, high = p * less, q + (1 - q) * more
    assert float(testers.coins(low, high, order)) <= float(testers.coins(p, q, order)) + 1e-9


def test_coins_at_the_ends_are_finite() -> None:
    found = testers.coins(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0]), 10.0)
    assert np.isfinite(found).all()
    assert found[1:].tolist() == [0, 0, 0]


def test_randomized_response_reaches_the_claimed_curve() -> None:
    """Its outputs are one coin, so two coins are all there is: the claim is met, and never passed."""
    event = events.RandomizedResponse(epsilon=1, categories=2, relation="replace")
    p = math.e / (1 + math.e)
    for order in testers.ORDERS:
        exact = float(testers.coins(p, 1 - p, order))
        assert exact == pytest.approx(renyi.divergence(event, order), rel=1e-6)
        assert exact <= renyi.divergence(event, order) * (1 + 1e-9)
    runs = 100_000
    low, high = (float(f(round(c * runs), runs, 1e-7)) for f, c in ((counting.at_least, p), (counting.at_most, 1 - p)))
    found = testers.divergence_found([(low, high)], testers.claimed_divergences(event))
    assert found is not None
    assert not found.broken
    assert 0.8 < found.epsilon / found.claim < 1
    assert testers.hockey_stick(low, high, 1.0) == 0
    assert testers.hockey_stick(low, high, 0.0) == pytest.approx(2 * p - 1, abs=0.02)


def test_unpriced_events_have_no_claim() -> None:
    event = events.Approximate(epsilon=1, delta=0.1, relation="add-remove")
    assert testers.claimed_divergences(event) == {}
    assert testers.divergence_found([(0.9, 0.1)], {}) is None
    assert testers.sticks_found([], {0.0: 1.0}) is None


def test_a_stick_says_where_the_curve_breaks() -> None:
    found = testers.sticks_found([(0.5, 0.01), (0.9, 0.1)], {0.0: 3.0, 0.1: 1.0})
    assert found is not None
    assert found.broken
    assert found.delta == 0.1
    assert "delta >= 0.6282 at epsilon = 1" in found.words
    assert not testers.sticks_found([(0.5, 0.4)], {0.0: 3.0}).broken  # type: ignore[union-attr]


def test_candidates_go_where_the_divergence_is() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(0, 1, (4_000, 1)), rng.normal(1, 1, (4_000, 1))
    tallies = [tally(view, one, other) for view in views.simple(["output"])]
    sticks = testers.hockey_sticks(tallies, {0.1: 0.5}, 1e-6, runs=4_000, most=2)
    orders = testers.divergences(tallies, {2.0: 0.5}, 1e-6, runs=4_000, most=2)
    for candidate in (*sticks, *orders):
        here, there = (candidate.event.happens(candidate.view.of(x)).mean() for x in (one, other))
        assert (here > there) == candidate.forward
