"""What an epsilon means: odds, posteriors and the best attacker, against direct computation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import Gaussian, Laplace, Pure, RandomizedResponse
from sfumato.report import explain
from sfumato.report.explanations import RATES, most_found


@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, "1.105"), (8, "2981")])
def test_the_odds_factor(epsilon: float, factor: str) -> None:
    found = explain(epsilon)
    assert f"{found.factor:.4g}" == factor
    assert f"a factor of at most e^{epsilon} = {factor}." in str(found)


def test_the_worked_sentence() -> None:
    text = str(explain(1, prior=0.5))
    assert "Who thought it 50 % likely that a person is in the data may come to think 73.11 %, or 26.89 %" in text
    assert "delta" not in text
    rare = str(explain(1, prior=0.001))
    assert "0.1 % likely" in rare and "0.2714 %" in rare
    assert "rare outcomes may say more" in str(explain(1, delta=1e-6))
    assert "a certain secret" in str(explain(1, relation="replace"))


@settings(derandomize=True, deadline=None)
@given(epsilon=st.floats(1e-9, 1e4), prior=st.floats(1e-12, 1 - 1e-12))
def test_posteriors_are_those_of_bayes(epsilon: float, prior: float) -> None:
    found = explain(epsilon, prior=prior)
    with mpmath.workdps(60):
        odds = mpmath.mpf(prior) / (1 - mpmath.mpf(prior))
        up, down = odds * mpmath.exp(epsilon), odds * mpmath.exp(-mpmath.mpf(epsilon))
        raised, lowered = up / (1 + up), down / (1 + down)
    assert found.raised >= raised * (1 - mpmath.mpf("1e-15"))
    assert found.raised == pytest.approx(float(raised), rel=1e-9)
    assert found.lowered <= float(lowered) * (1 + 1e-12) + 5e-324
    assert 0 <= found.lowered <= prior * (1 + 1e-9) and prior * (1 - 1e-9) <= found.raised <= 1
    str(found)


@settings(derandomize=True, deadline=None)
@given(epsilon=st.floats(1e-9, 1e4), delta=st.sampled_from([0.0, 1e-10, 1e-5, 0.3]), alpha=st.floats(0, 1))
def test_the_best_attacker_of_one_epsilon(epsilon: float, delta: float, alpha: float) -> None:
    (power,) = most_found([alpha], epsilon, delta)
    with mpmath.workdps(60):
        a, d, e = mpmath.mpf(alpha), mpmath.mpf(delta), mpmath.exp(mpmath.mpf(epsilon))
        exact = min(e * a + d, 1 - (1 - d - a) / e, mpmath.mpf(1))
    assert exact * (1 - mpmath.mpf("1e-16")) <= power <= float(exact) * (1 + 1e-9) + 1e-300
    assert alpha <= power * (1 + 1e-12) and power <= 1


def test_randomized_response_reaches_the_bound() -> None:
    """The attacker who believes the answer: false positives 1/(1+e^eps), true positives e^eps/(1+e^eps)."""
    epsilon = math.log(3)
    (attack,) = explain(epsilon, rates=[0.25]).attacks
    assert attack.true_positive == pytest.approx(0.75, rel=1e-12)
    (exact,) = explain(RandomizedResponse(epsilon=epsilon, categories=2), rates=[0.25]).attacks
    assert exact.true_positive == pytest.approx(0.75, rel=1e-12)


def test_a_gaussian_event_uses_its_own_trade_off() -> None:
    found = explain(Gaussian(multiplier=1), delta=1e-5)
    assert found.epsilon == pytest.approx(4.377178, abs=2e-6)
    for rate, attack in zip(RATES, found.attacks, strict=True):
        likelihood_ratio_test = stats.norm.sf(stats.norm.isf(rate) - 1)
        assert attack.true_positive == pytest.approx(likelihood_ratio_test, rel=1e-9)
        assert attack.true_positive >= likelihood_ratio_test * (1 - 1e-12)
    one = explain(found.epsilon, delta=1e-5)
    assert all(a.true_positive < b.true_positive for a, b in zip(found.attacks, one.attacks, strict=True))
    assert found.exact and not one.exact


def test_pure_events_need_no_delta() -> None:
    found = explain(Pure(epsilon=1, relation="replace"))
    assert found.epsilon == 1 and found.relation == "replace"
    assert found.attacks[1].true_positive == pytest.approx(0.01 * math.e, rel=1e-12)
    assert explain(Laplace(epsilon=1)).attacks[0].true_positive == pytest.approx(0.001 * math.e, rel=1e-9)


def test_large_epsilons_are_printed_too() -> None:
    text = str(explain(10_000))
    assert "10^4343" in text and "100 %" in text and "inf" not in text and "nan" not in text
    assert "over 99.99 %" in str(explain(20))


def test_html() -> None:
    page = explain(1, delta=1e-6)._repr_html_()
    assert page.count("<tr>") == 1 + len(RATES) and "e^1 = 2.718" in page


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"what": -1}, "epsilon = -1"),
        ({"what": 1, "prior": 0}, "prior = 0"),
        ({"what": 1, "prior": 1.0}, "prior = 1.0"),
        ({"what": 1, "rates": [2]}, "rates"),
        ({"what": 1, "rates": []}, "rates"),
        ({"what": 1, "delta": 1}, "delta = 1"),
        ({"what": 1, "relation": "swap"}, "relation = 'swap'"),
        ({"what": Pure(epsilon=1), "relation": "replace"}, "as the event says"),
    ],
)
def test_refusals(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        explain(**arguments)  # type: ignore[arg-type]


def test_gaussian_noise_without_a_delta_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="no epsilon at delta = 0"):
        explain(Gaussian(multiplier=1))


def test_rates_keep_their_order() -> None:
    found = explain(0.5, rates=np.linspace(0, 1, 11))
    assert [a.false_positive for a in found.attacks] == pytest.approx(np.linspace(0, 1, 11))
    powers = [a.true_positive for a in found.attacks]
    assert powers == sorted(powers) and powers[0] == 0 and powers[-1] == 1
