"""Best of many: the bounds against the exact law of the best, on small mechanisms."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, ndtr

from sfumato import Budget
from sfumato.accounting import renyi, tuning, zcdp
from sfumato.accounting.filters import Filter
from sfumato.errors import ArgumentError, BudgetError, UnsupportedEventError
from sfumato.events import Approximate, BestOf, Gaussian, Laplace, Poisson, Pure, RandomizedResponse, Repeat

soundly = settings(derandomize=True, deadline=None, max_examples=60)


def generating(event: BestOf, x: np.ndarray) -> np.ndarray:
    """E[x^K], in closed form from the papers' definition of the law."""
    if event.shape is None:
        return np.exp(float(event.mean) * (x - 1))
    shape, stop = float(event.shape), float(event.stop)
    if shape == 0:
        return np.log1p(-(1 - stop) * x) / math.log(stop)
    return ((1 - (1 - stop) * x) ** -shape - 1) / (stop**-shape - 1)


def best(event: BestOf, law: Any) -> np.ndarray:
    """The law of the best, outcomes in rising order; the first entry is "nothing was tried"."""
    steps = np.concatenate([[0.0], np.cumsum(law)])
    steps[-1] = 1.0
    values = generating(event, steps)
    return np.concatenate([[values[0]], np.diff(values)])


def exact_divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    some = p > 0
    return float(logsumexp(order * np.log(p[some]) + (1 - order) * np.log(q[some])) / (order - 1))


def response(epsilon: float, k: int, truth: int) -> np.ndarray:
    """Randomised response, worst outcome first."""
    law = np.full(k, 1 / (math.exp(epsilon) + k - 1))
    law[truth] *= math.exp(epsilon)
    return law


LAWS: list[dict[str, Any]] = [
    {"shape": 1, "stop": 0.2},
    {"shape": 1, "stop": 0.01},
    {"shape": 0, "stop": 0.05},
    {"shape": -0.5, "stop": 0.01},
    {"shape": 3, "stop": 0.3},
    {"shape": -0.99, "stop": 0.5},
    {"mean": 0.3},
    {"mean": 1},
    {"mean": 10},
    {"mean": 100},
]


@soundly
@given(
    st.sampled_from(LAWS),
    st.sampled_from([0.05, 0.3, 1.0, 3.0]),
    st.integers(2, 5),
    st.integers(0, 4),
    st.integers(0, 4),
    st.floats(1.01, 60),
)
def test_no_exact_divergence_exceeds_the_bound(
    law: Any, epsilon: float, k: int, here: int, there: int, order: float
) -> None:
    event = BestOf(RandomizedResponse(epsilon=epsilon, categories=k), **law)
    p, q = best(event, response(epsilon, k, here % k)), best(event, response(epsilon, k, there % k))
    assert exact_divergence(p, q, order) <= tuning.divergence(event, order) + 1e-12
    for delta in (1e-2, 1e-5):
        limit = tuning.epsilon(event, delta)
        assert float(np.sum(np.maximum(p - math.exp(limit) * q, 0))) <= delta


@pytest.mark.parametrize("law", LAWS)
def test_a_gaussian_inner_event_on_a_fine_grid(law: Any) -> None:
    multiplier = 2.0
    event = BestOf(Gaussian(multiplier=multiplier), **law)
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4.5, 60), [np.inf]])  # coarser: post-processing
    here, there = np.diff(ndtr(edges)), np.diff(ndtr(edges - 1 / multiplier))
    for left, right in ((here, there), (there, here)):
        p, q = best(event, left), best(event, right)
        for order in (1.5, 2, 8, 20):
            assert exact_divergence(p, q, order) <= tuning.divergence(event, order) + 1e-9


def test_the_poisson_bound_without_its_empty_part_would_be_wrong() -> None:
    event = BestOf(RandomizedResponse(epsilon=0.1, categories=2), mean=0.3)
    p, q = best(event, response(0.1, 2, 0)), best(event, response(0.1, 2, 1))
    order = 1.5
    as_printed = renyi.divergence(event.event, order) + math.log(0.3) / (order - 1)
    assert as_printed < 0 < exact_divergence(p, q, order) <= tuning.divergence(event, order)


def test_pure_events_cost_two_and_the_shape() -> None:
    for shape, factor in ((1, 3), (0, 2), (Fraction(-1, 2), Fraction(3, 2))):
        event = BestOf(Pure(epsilon=0.1), shape=shape, stop=1e-6)
        assert tuning.pure_epsilon(event) == factor * Fraction(1, 10)
        assert tuning.epsilon(event, 1e-12) <= float(factor) / 10
    assert tuning.pure_epsilon(BestOf(Pure(epsilon=0.1), mean=5)) is None
    assert tuning.pure_epsilon(BestOf(Gaussian(multiplier=5), shape=1, stop=0.1)) is None


def test_a_fixed_number_of_tries_is_not_free() -> None:
    """The counterexample: the worst of two outcomes is the best of k only if every try gave it."""
    epsilon, k = 0.5, 10
    worst_here, worst_there = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    assert math.log(worst_here**k / worst_there**k) == pytest.approx(k * epsilon)
    assert tuning.fixed(Pure(epsilon=0.5), k) == Repeat(Pure(epsilon=0.5), k)


@pytest.mark.parametrize("law", LAWS)
def test_the_law_of_the_tries(law: Any) -> None:
    event = BestOf(Pure(epsilon=1), **law)
    tries = tuning.Tries(event)
    k = np.arange(0, 20_000)
    mass = tries.probability(k)
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    assert float((k * mass).sum()) == pytest.approx(tries.mean, rel=1e-8)
    x = np.array([0.3, 0.9])
    assert (mass[:, None] * x ** k[:, None]).sum(axis=0) == pytest.approx(generating(event, x), abs=1e-10)
    for level in (0.05, 0.5, 0.95, 0.999):
        found = tries.quantile(level)
        assert mass[: found + 1].sum() >= level - 1e-9 and mass[:found].sum() < level + 1e-9
    with pytest.raises(ArgumentError):
        tries.quantile(1.0)


def test_a_stopping_probability_for_a_wanted_mean() -> None:
    for shape in (1, 0, -0.5, 2):
        for mean in (1.01, 2, 30, 1e6):
            event = BestOf(Pure(epsilon=1), shape=shape, stop=tuning.stop_for(mean, shape))
            assert tuning.mean_tries(event) == pytest.approx(mean, rel=1e-6)
    for bad in ({"mean": 1}, {"mean": 0.5}, {"mean": 5, "shape": -1}, {"mean": -2}):
        with pytest.raises(ArgumentError):
            tuning.stop_for(**bad)


@pytest.mark.parametrize("shape", [-0.999999, -1e-12, 0, 1e-12, 1, 50])
@pytest.mark.parametrize("stop", [1e-99, 1e-9, 0.5, 1 - 1e-12])
def test_no_parameter_in_range_breaks_it(shape: float, stop: float) -> None:
    previous = math.inf
    for multiplier in (1e-3, 1, 1e6):
        event = BestOf(Gaussian(multiplier=multiplier), shape=shape, stop=stop)
        values = [tuning.divergence(event, order) for order in (1 + 1e-6, 2, 1e6)]
        assert all(0 < value < math.inf for value in values)
        found = tuning.epsilon(event, 1e-12)
        assert 0 <= found < math.inf and found <= previous
        previous = found


@pytest.mark.parametrize("mean", [1e-6, 1, 1e6])
def test_no_poisson_parameter_breaks_it(mean: float) -> None:
    for inner in (Gaussian(multiplier=1e-2), Laplace(epsilon=1e-9), Gaussian(multiplier=1e6)):
        found = tuning.epsilon(BestOf(inner, mean=mean), 1e-12)
        assert 0 <= found < math.inf


def test_more_tries_never_cost_less() -> None:
    inner = Repeat(Poisson(Gaussian(multiplier=2), 0.01), 100)
    for law, more in (({"shape": 1, "stop": 0.1}, {"shape": 1, "stop": 0.01}), ({"mean": 10}, {"mean": 20})):
        assert tuning.epsilon(BestOf(inner, **law), 1e-6) < tuning.epsilon(BestOf(inner, **more), 1e-6)
        assert tuning.epsilon(BestOf(inner, **law), 1e-6) > renyi.epsilon(inner, 1e-6)


def test_what_may_fail_has_no_price() -> None:
    with pytest.raises(UnsupportedEventError, match="Approximate"):
        tuning.divergence(BestOf(Approximate(epsilon=1, delta=1e-9), shape=1, stop=0.1), 2.0)
    for bad in (1, 0.5, math.inf, math.nan):
        with pytest.raises(ArgumentError):
            tuning.divergence(BestOf(Pure(epsilon=1), shape=1, stop=0.1), bad)
    with pytest.raises(ArgumentError):
        tuning.divergence(Pure(epsilon=1), 2.0)  # type: ignore[arg-type]


def test_an_account_pays_for_tuning_by_its_renyi_orders() -> None:
    event = BestOf(Gaussian(multiplier=20), shape=1, stop=0.1)
    after = Filter.of(Budget(epsilon=3, delta=1e-6)).spend(event, Fraction(1, 10**9))
    assert any(type(member).__name__ == "RenyiOrder" for member in after.open)
    with pytest.raises(BudgetError):
        Filter.of(Budget(rho=1)).spend(event, Fraction(0))
    assert zcdp.rho(event.event) > 0
