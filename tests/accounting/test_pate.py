"""PATE: what is charged, and the data-dependent bounds against the exact law of small elections."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, logsumexp, ndtr

from sfumato import Budget, MemoryLedger
from sfumato.accounting import approximate, gdp, members, pate, pure, zcdp
from sfumato.accounting.filters import Filter
from sfumato.errors import ArgumentError
from sfumato.events import Event

soundly = settings(derandomize=True, deadline=None, max_examples=100)
DELTA = Fraction(1, 10**5)


def classes(*votes: int) -> list[int]:
    return [*votes, *([0] * (10 - len(votes)))]


def test_published_data_independent_figures() -> None:
    for queries, strong, moments in ((100, 5.798526, 5.302585), (1000, 25.174271, 20.756463)):
        figures = pate.lnmax_published(gamma=0.05, queries=queries, delta=1e-5)
        assert figures["strong composition"] == pytest.approx(strong, abs=1e-6)
        assert figures["moments"] == pytest.approx(moments, abs=1e-6)
        charged = float(approximate.epsilon(pate.lnmax(gamma=0.05, queries=queries), DELTA))
        assert charged < figures["moments"]
    assert pure.epsilon(pate.lnmax(gamma=0.05, queries=100)) == 10


def test_published_gnmax_figures() -> None:
    event = pate.gnmax(sigma=40, queries=1000)
    rho = float(zcdp.rho(event))
    assert rho == pytest.approx(1000 / 1600, rel=1e-12) and zcdp.rho(event) >= Fraction(1000, 1600)
    assert rho + 2 * math.sqrt(rho * math.log(1e5)) == pytest.approx(5.989915, abs=1e-6)
    assert float(zcdp.epsilon(zcdp.rho(event), DELTA)) == pytest.approx(5.377672, abs=1e-6)
    assert float(gdp.least_epsilon(members.mu_squared(event), DELTA)) < 5.377672  # what is charged is less


@pytest.mark.parametrize(
    ("votes", "few", "many"),
    [
        (classes(250), 1.442257, 0.263419),
        (classes(200, 50), 1.501080, 0.555620),
        (classes(150, 100), 3.898914, 3.624124),
    ],
)
def test_data_dependent_figures_of_a_hundred_answers(votes: list[int], few: float, many: float) -> None:
    assert float(pate.lnmax_study([votes] * 100, gamma=0.05, delta=1e-5)) == pytest.approx(few, abs=1e-6)
    study = pate.lnmax_study([votes] * 100, gamma=0.05, delta=1e-5, powers=range(1, 200))
    assert study.epsilon == pytest.approx(many, abs=1e-6) and study.queries == 100


def test_the_chance_of_disagreement() -> None:
    assert pate.lnmax_disagreement(classes(250), gamma=0.05) == pytest.approx(1.21582e-4, rel=1e-5)
    assert pate.gnmax_disagreement([60, 40], sigma=40) == pytest.approx(float(ndtr(-20 / (40 * math.sqrt(2)))))
    assert pate.gnmax_disagreement([50, 50, 50], sigma=1) == 1.0  # a union bound, cut at 1


def laplace_win(gap: float, gamma: float) -> float:
    """P(first class wins) of two, Laplace noise: exact."""
    lose = (2 + gamma * abs(gap)) / (4 * math.exp(gamma * abs(gap)))
    return 1 - lose if gap >= 0 else lose


def loss_moments(p: np.ndarray, q: np.ndarray, power: float) -> float:
    return float(np.log(np.sum(p * (p / q) ** power)))


@soundly
@given(st.integers(0, 200), st.sampled_from([-2, 2]), st.sampled_from([0.01, 0.05, 0.3]), st.integers(1, 30))
def test_no_exact_moment_of_lnmax_exceeds_the_bound(gap: int, change: int, gamma: float, power: int) -> None:
    here, there = laplace_win(gap, gamma), laplace_win(gap + change, gamma)
    p, q = np.array([here, 1 - here]), np.array([there, 1 - there])
    if min(p.min(), q.min()) > 1e-12:
        votes = [gap + 100, 100]
        assert loss_moments(p, q, power) <= pate.lnmax_moment(votes, gamma=gamma, power=power) + 1e-9


@soundly
@given(st.integers(0, 250), st.sampled_from([-2, 2]), st.sampled_from([5, 20, 40]), st.floats(1.01, 50))
def test_no_exact_divergence_of_gnmax_exceeds_the_bound(gap: int, change: int, sigma: float, order: float) -> None:
    scale = math.sqrt(2) * sigma
    p = log_ndtr(np.array([gap, -gap]) / scale)
    q = log_ndtr(np.array([gap + change, -gap - change]) / scale)
    exact = float(logsumexp(order * p + (1 - order) * q)) / (order - 1)
    bound = float(pate.gnmax_divergence([gap + 100, 100], sigma=sigma, orders=order)[0])
    assert exact <= bound + 1e-9 and bound <= order / sigma**2 + 1e-12


def test_agreement_is_cheap_and_doubt_costs_the_data_independent_price() -> None:
    agreed = pate.gnmax_study([classes(250)] * 1000, sigma=20, delta=1e-5)
    doubtful = pate.gnmax_study([classes(130, 120)] * 1000, sigma=20, delta=1e-5)
    free = float(zcdp.epsilon(zcdp.rho(pate.gnmax(sigma=20, queries=1000)), DELTA))
    assert agreed.epsilon < 0.2 < free <= doubtful.epsilon < free * 1.001
    mixed = pate.gnmax_study([classes(250)] * 900 + [classes(130, 120)] * 100, sigma=20, delta=1e-5)
    assert agreed.epsilon < mixed.epsilon < doubtful.epsilon and mixed.queries == 1000


def test_a_confident_run_is_charged_for_all_it_may_do() -> None:
    event = pate.confident_gnmax(sigma_check=150, sigma_answer=40, queries=640, answers=286)
    expected = Fraction(640, 150**2) + Fraction(286 * 2, 40**2)
    assert expected <= members.mu_squared(event) <= expected * (1 + Fraction(1, 10**12))
    with pytest.raises(ArgumentError, match="answers"):
        pate.confident_gnmax(sigma_check=150, sigma_answer=40, queries=10, answers=11)


def test_a_study_is_labelled_and_never_charged() -> None:
    study = pate.lnmax_study([classes(250)] * 3, gamma=0.05, delta=1e-5)
    assert "never charged" in str(study) and "not publishable" in study.label and not isinstance(study, Event)
    for budget in (Budget(epsilon=5), Budget(epsilon=5, delta=1e-5), Budget(rho=5)):
        with pytest.raises(Exception):  # noqa: B017
            Filter.of(budget).spend(study, Fraction(0))  # type: ignore[arg-type]
        assert not MemoryLedger({"a": budget}).spent("a")[0].spent


@pytest.mark.parametrize("bad", [[], [5], [1, -1], [1, math.nan], [[1, 2], [3, 4]], "12"])
def test_votes_that_are_no_counts_are_refused(bad: Any) -> None:
    with pytest.raises((ArgumentError, ValueError)):
        pate.lnmax_disagreement(bad, gamma=0.05)


@pytest.mark.parametrize("sigma", [1e-3, 1, 1e6])
@pytest.mark.parametrize("votes", [[0, 0], [10**6, 0], [5, 4, 4], [1, 0]])
def test_no_votes_break_the_bounds(votes: list[int], sigma: float) -> None:
    for order in (1.0001, 2, 1e4):
        bound = float(pate.gnmax_divergence(votes, sigma=sigma, orders=order)[0])
        assert 0 <= bound < math.inf
    assert 0 <= float(pate.gnmax_study([votes], sigma=sigma, delta=1e-12)) < math.inf
    gamma = min(1 / sigma, 100.0)
    assert 0 <= float(pate.lnmax_study([votes], gamma=gamma, delta=1e-12)) < math.inf
