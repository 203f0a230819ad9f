"""Bounds from guesses about coins: published numbers, exact small cases, and mechanisms that come as near as may be."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from sfumato.accounting.tradeoff import tradeoff
from sfumato.audit.counting import epsilon_lower_bound
from sfumato.audit.models import canaries, one_run_bound, one_run_tradeoff, two_sided
from sfumato.audit.models.outcome import judged
from sfumato.errors import SfumatoError
from sfumato.events import Approximate, Gaussian, Pure

# One run, one point


@pytest.mark.parametrize(
    ("m", "r", "v", "delta", "epsilon"),
    [
        (1000, 1000, 600, 0, 0.297468),
        (1000, 1000, 900, 0, 2.021233),
        (1000, 100, 95, 1e-5, 2.165176),
        (1000, 1000, 900, 1e-5, 2.020646),
        (10000, 10000, 7500, 1e-6, 1.060407),
        (100, 100, 100, 0, 3.492965),
    ],
)
def test_published_lower_bounds(m: int, r: int, v: int, delta: float, epsilon: float) -> None:
    assert one_run_bound.epsilon_at_least(m, r, v, delta=delta) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(("runs", "epsilon"), [(10**2, 3.28), (10**3, 5.60), (10**4, 7.90), (10**5, 10.21)])
def test_what_many_perfect_runs_show(runs: int, epsilon: float) -> None:
    assert epsilon_lower_bound(runs, runs, 0, runs) == pytest.approx(epsilon, abs=0.01)


@pytest.mark.parametrize(("m", "r", "v", "delta"), [(1000, 100, 95, 1e-5), (50, 50, 40, 0.0), (400, 20, 20, 1e-4)])
def test_the_bound_itself_is_refuted_and_a_little_more_is_not(m: int, r: int, v: int, delta: float) -> None:
    found = one_run_bound.epsilon_at_least(m, r, v, delta=delta)
    assert one_run_bound.chance_at_most(m, r, v, epsilon=found, delta=delta) < 0.05 + 1e-12
    assert one_run_bound.chance_at_most(m, r, v, epsilon=found + 1e-6, delta=delta) >= 0.05


@pytest.mark.parametrize(("v", "epsilon"), [(608_317, 0.43), (648_048, 0.6), (532_460, 0.12), (999_990, 10.0)])
def test_the_chance_is_rounded_up_at_a_million_guesses(v: int, epsilon: float) -> None:
    r, delta = 10**6, 1e-5
    with mpmath.workdps(50):
        right = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        tail, worst = _sums(r, v, right)
        true = tail + 2 * r * mpmath.mpf(delta) * worst
        found = mpmath.mpf(one_run_bound.chance_at_most(r, r, v, epsilon=epsilon, delta=delta))
        assert true <= found <= true * (1 + mpmath.mpf("1e-7"))
        assert tail <= one_run_bound.chance_at_most(r, r, v, epsilon=epsilon) <= tail * (1 + mpmath.mpf("1e-7"))


def _sums(r: int, v: int, right: Any) -> tuple[Any, Any]:
    """P(W >= v), and the most of P(v - i <= W < v) / i, in 50 digits."""
    odds = right / (1 - right)

    def chance(k: int) -> Any:
        ways = mpmath.loggamma(r + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(r - k + 1)
        return mpmath.exp(ways + k * mpmath.log(right) + (r - k) * mpmath.log(1 - right))

    tail, k, term = mpmath.mpf(0), v, chance(v)
    while k <= r and term > tail * mpmath.mpf("1e-30"):
        tail, term, k = tail + term, term * (r - k) / (k + 1) * odds, k + 1
    below, worst, k, term = mpmath.mpf(0), mpmath.mpf(0), v - 1, chance(v - 1)
    while k >= 0 and term > below * mpmath.mpf("1e-30"):
        below += term
        worst, term, k = max(worst, below / (v - k)), term * k / (r - k + 1) / odds, k - 1
    return tail, worst


def test_guesses_that_show_nothing() -> None:
    assert one_run_bound.epsilon_at_least(100, 100, 50) == 0
    assert one_run_bound.epsilon_at_least(100, 1, 0) == 0
    assert one_run_tradeoff.mu_at_least(100, 100, 50) == 0


def test_a_delta_above_the_error_leaves_nothing_to_show() -> None:
    """Whoever publishes everything once in 1 / delta runs must not be accused once in so many runs."""
    assert one_run_bound.least_epsilon(1000, 1000, 1000, delta=1e-5, error=1e-6) == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_meets_the_bound(epsilon: float) -> None:
    for v in range(1, 21):
        exact = stats.binom.sf(v - 1, 20, 1 / (1 + np.exp(-epsilon)))
        assert one_run_bound.chance_at_most(20, 20, v, epsilon=epsilon) == pytest.approx(exact, rel=1e-7)


def _failing(m: int, v: int, delta: float) -> float:
    """At least v of m rightly, where everything is published with chance delta, and else nothing: (0, delta)."""
    return float(delta + (1 - delta) * stats.binom.sf(v - 1, m, 0.5))


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.2])
def test_a_mechanism_that_fails_with_chance_delta_is_not_accused(delta: float) -> None:
    for v in range(1, 31):
        true = _failing(30, v, delta)
        assert one_run_bound.chance_at_most(30, 30, v, epsilon=0.0, delta=delta) >= true
        curve = tradeoff(Approximate(epsilon=0, delta=delta, relation="add-remove"))
        assert not one_run_tradeoff.refuted(curve, 30, 30, v, error=true * (1 - 1e-9))


@pytest.mark.parametrize("given", [(0, 0, 0), (10, 11, 5), (10, 5, 6), (10, 5, -1)])
def test_counts_that_are_none(given: tuple[int, int, int]) -> None:
    with pytest.raises(SfumatoError):
        one_run_bound.epsilon_at_least(*given)
    with pytest.raises(SfumatoError):
        one_run_tradeoff.refuted(lambda alpha: 1 - alpha, *given, error=0.05)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, True, "much"])
def test_a_confidence_that_is_none(confidence: Any) -> None:
    with pytest.raises(SfumatoError, match="confidence"):
        one_run_bound.epsilon_at_least(10, 10, 10, confidence=confidence)


@pytest.mark.parametrize("delta", [-1e-3, 1, float("nan"), True, "small"])
def test_a_delta_that_is_none(delta: Any) -> None:
    """One below 0 would prove more than there is."""
    coins = np.arange(10) % 2 == 0
    for bound in (
        lambda: one_run_bound.epsilon_at_least(100, 100, 90, delta=delta),
        lambda: two_sided.bounds([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], delta=delta),
        lambda: judged(np.arange(10.0), coins, way="test", claim=1, delta=delta),
    ):
        with pytest.raises(SfumatoError, match="delta"):
            bound()


# One run, the whole curve


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("m", [1, 7, 100])
def test_the_best_attacker_on_gaussian_noise_is_never_accused(mu: float, m: int) -> None:
    """Every coin beside its own noise, all guessed: the count is binomial, so this is exact."""
    curve = tradeoff(Gaussian(multiplier=1 / mu, relation="add-remove"))
    for v in range(1, m + 1):
        chance = stats.binom.sf(v - 1, m, stats.norm.cdf(mu / 2))
        if chance > 1e-200:
            assert not one_run_tradeoff.refuted(curve, m, m, v, error=chance * (1 - 1e-9))


@pytest.mark.parametrize("guesses", [60, 20])
def test_guesses_that_are_left_out_accuse_nobody(guesses: int) -> None:
    """The most sure of 300 guesses: in 4000 audits of an honest mechanism, at most 5 % may go wrong."""
    mu, m, audits = 1.0, 300, 4000
    rng = np.random.default_rng(5)
    coins = rng.random((audits, m)) < 0.5
    scores = rng.normal(size=(audits, m)) + mu * coins - mu / 2
    far = np.argpartition(-np.abs(scores), guesses, axis=1)[:, :guesses]
    right = (np.take_along_axis(scores, far, 1) > 0) == np.take_along_axis(coins, far, 1)
    counts = np.bincount(right.sum(1), minlength=guesses + 1)
    wrong = sum(int(counts[v]) for v in range(guesses + 1) if one_run_tradeoff.mu_at_least(m, guesses, v) > mu)
    assert stats.binom.sf(wrong - 1, audits, 0.05) > 1e-9


def _most(curve: Any, m: int, r: int, v: int) -> float:
    """The most that the chance of v right ones can be under the claim: a linear programme over p_0 ... p_r."""
    size, own = np.array(curve.epsilons), np.array(curve.deltas)
    slopes = np.concatenate([np.exp(size), np.exp(-size)])  # f(x) >= height - slope x
    heights = np.concatenate([1 - own, np.exp(-size) * (1 - own)])
    rows, most = [], []
    for t in range(1, r + 1):
        right = np.array([i / m if i >= t else 0.0 for i in range(r + 1)])
        wrong = np.array([(r - i) / m if i >= t - 1 else 0.0 for i in range(r + 1)])
        for slope, height in zip(slopes, heights, strict=True):  # wrong >= height - slope (1 - right)
            rows.append(slope * right - wrong)
            most.append(slope - height)
    goal = -np.array([float(i >= v) for i in range(r + 1)])
    found = optimize.linprog(goal, A_ub=rows, b_ub=most, A_eq=[np.ones(r + 1)], b_eq=[1.0], bounds=(0, 1))
    return float(-found.fun)


@pytest.mark.parametrize(("m", "r"), [(6, 6), (12, 5), (30, 8)])
@pytest.mark.parametrize("event", [Pure(epsilon=1, relation="add-remove"), Approximate(epsilon=0.5, delta=0.02)])
def test_the_recursion_finds_what_a_linear_programme_finds(m: int, r: int, event: Any) -> None:
    curve = tradeoff(event)
    for v in range(1, r + 1):
        most = _most(curve, m, r, v)
        assert not one_run_tradeoff.refuted(curve, m, r, v, error=most * (1 - 1e-6))
        if most < 0.999:
            assert one_run_tradeoff.refuted(curve, m, r, v, error=most * (1 + 1e-6) + 1e-12)


def _hull(points: Any) -> Any:
    """The lower convex hull of points from (0, .) to (1, .)."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(map(tuple, points)):
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (x - kept[-2][0]) >= (y - kept[-2][1]) * (
            kept[-1][0] - kept[-2][0]
        ):
            kept.pop()
        kept.append((x, y))
    return np.array(kept)


def _tradeoff_points(null: Any, other: Any) -> list[tuple[float, float]]:
    order = np.argsort(-other / np.maximum(null, 1e-300), kind="stable")
    false, found = np.cumsum(null[order]), np.cumsum(other[order])
    return [(0.0, 1.0), *((min(float(a), 1.0), max(float(1 - b), 0.0)) for a, b in zip(false, found, strict=True))]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_no_mechanism_with_few_outputs_is_accused(m: int) -> None:
    """Any mechanism on m coins, any guesses from its output: both bounds hold for its own true curve, exactly."""
    rng = np.random.default_rng(m)
    worlds = np.array(list(np.ndindex(*[2] * m)))
    for trial in range(150):
        outputs = int(rng.integers(2, 7))
        law = rng.dirichlet(np.full(outputs, rng.choice([0.2, 1.0, 5.0])), size=len(worlds))
        pairs = [(i, j) for i in range(len(worlds)) for j in range(len(worlds)) if np.sum(worlds[i] != worlds[j]) == 1]
        hull = _hull([point for i, j in pairs for point in _tradeoff_points(law[i], law[j])])
        r = 1 + trial % m
        asked = np.array([rng.permutation(m)[:r] for _ in range(outputs)])
        named = rng.integers(0, 2, (outputs, r))
        if trial % 3:  # the likeliest coin, given the output
            likely = np.einsum("wo,wi->oi", law, worlds) > law.sum(0)[:, None] / 2
            named = np.take_along_axis(likely.astype(int), asked, 1)
        right = np.array([[np.sum(world[asked[o]] == named[o]) for o in range(outputs)] for world in worlds])
        for v in range(1, r + 1):
            chance = float((law * (right >= v)).sum() / len(worlds))
            if chance < 1e-9:
                continue

            def curve(alpha: Any, hull: Any = hull) -> Any:
                return np.maximum(np.interp(alpha, hull[:, 0], hull[:, 1]) - 1e-12, 0)

            assert not one_run_tradeoff.refuted(curve, m, r, v, error=chance * (1 - 1e-9))
            for epsilon in (0.0, 0.3, 1.0, 2.0):
                delta = max(float(np.maximum(law[i] - np.exp(epsilon) * law[j], 0).sum()) for i, j in pairs)
                most = one_run_bound.chance_at_most(m, r, v, epsilon=epsilon, delta=delta)
                assert most >= chance * (1 - 1e-9), (m, r, v, epsilon, delta)


def test_the_curve_shows_more_of_gaussian_noise_than_one_point() -> None:
    mu = one_run_tradeoff.mu_at_least(1000, 500, 462)
    assert 0.85 < mu < 1.67
    alone = one_run_bound.epsilon_at_least(1000, 500, 462, delta=1e-5)
    assert one_run_tradeoff.epsilon_of(mu, 1e-5) > alone + 1


def test_mu_is_the_largest_that_is_refuted() -> None:
    """To a millionth, and of many guesses: a coarser search gives away what was proven."""
    for counts in ((1000, 500, 462), (5000, 2500, 2200), (2000, 2000, 2000)):
        mu = one_run_tradeoff.mu_at_least(*counts)
        curves = [tradeoff(Gaussian(multiplier=1 / each, relation="add-remove")) for each in (mu - 1e-6, mu + 1e-6)]
        assert [one_run_tradeoff.refuted(each, *counts, error=0.05) for each in curves] == [True, False]


def test_mu_is_refuted_itself() -> None:
    mu = one_run_tradeoff.mu_at_least(500, 200, 180)
    curves = [tradeoff(Gaussian(multiplier=1 / (mu * by), relation="add-remove")) for by in (1 - 1e-6, 1.001)]
    assert [one_run_tradeoff.refuted(each, 500, 200, 180, error=0.05) for each in curves] == [True, False]


# Many runs


def test_two_sided_bounds_stay_below_the_truth_and_come_near() -> None:
    rng = np.random.default_rng(7)
    found = two_sided.bounds(rng.normal(size=40_000) + 2, rng.normal(size=40_000), delta=1e-5, confidence=1 - 1e-9)
    assert 1.4 < found.mu < 2
    assert 3 < found.epsilon < one_run_tradeoff.epsilon_of(2, 1e-5)
    assert "epsilon >=" in str(found)


def test_two_sided_bounds_see_either_side() -> None:
    """Without the canary a score is sometimes far below: only "it was not there" can be told."""
    rng = np.random.default_rng(8)
    outside = np.where(rng.random(4000) < 0.2, -10.0, rng.normal(size=4000))
    found = two_sided.bounds(rng.normal(size=4000), outside)
    assert not found.above and found.epsilon > 2.5 and found.outside > found.inside


def test_choosing_a_threshold_takes_few_of_the_scores() -> None:
    """200 scores of each kind, 1 apart: 0.43 on average if half of them choose."""
    rng = np.random.default_rng(11)
    found = [two_sided.bounds(rng.normal(size=200) + 1, rng.normal(size=200), delta=1e-5).epsilon for _ in range(60)]
    assert np.mean(found) > 0.55
    assert two_sided.bounds([1.0, 1.0], [0.0, 0.0]).epsilon == 0


def test_a_threshold_in_advance_uses_all_scores() -> None:
    found = two_sided.bounds([1.0] * 100, [0.0] * 100, threshold=0.5).epsilon
    assert found == pytest.approx(epsilon_lower_bound(100, 100, 0, 100))
    assert found == pytest.approx(3.2813, abs=1e-3)
    assert two_sided.bounds([1.0], [0.0], threshold=0.5).epsilon == 0
    with pytest.raises(SfumatoError):
        two_sided.bounds([1.0], [0.0])


@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("rare", [0.1, 1 / (1 + np.e)])
def test_both_sides_of_a_threshold_share_two_bounds(threshold: float | None, rare: float) -> None:
    """At epsilon = 1 exactly, on one side or on both, at most 5 % of honest pairs of samples may be accused."""
    rng = np.random.default_rng(10)
    chances = (rare, rare * np.e) if rare == 0.1 else (rare, 1 - rare)  # of a low score, with the canary and without
    wrong = 0
    for _ in range(500):
        inside, outside = (np.where(rng.random(200) < chance, 0.0, 1.0) for chance in chances)
        wrong += two_sided.bounds(inside, outside, threshold=threshold).epsilon > 1
    assert stats.binom.sf(wrong - 1, 500, 0.05) > 1e-9


def test_scores_that_say_nothing_show_nothing() -> None:
    rng = np.random.default_rng(9)
    wrong = sum(two_sided.bounds(rng.normal(size=60), rng.normal(size=60)).epsilon > 0 for _ in range(400))
    assert stats.binom.sf(wrong - 1, 400, 0.05) > 1e-9


def test_rates_at_every_threshold_are_bounded_at_once() -> None:
    """Nothing is shown of laws that just keep the claim, at any threshold, more often than was agreed."""
    rng = np.random.default_rng(5)
    right = np.e / (1 + np.e)
    alarms = {"alike": 0, "one answer": 0}
    for _ in range(2000):
        one, other = rng.normal(size=60), rng.normal(size=40)
        alarms["alike"] += two_sided.everywhere(one, other, epsilon=0).broken
        told = [(rng.random(80) < chance).astype(float) for chance in (right, 1 - right)]  # ties all over
        alarms["one answer"] += two_sided.everywhere(*told, epsilon=1).broken
    assert max(alarms.values()) <= 0.05 * 2000, alarms


def test_rates_at_every_threshold_are_binomial_bounds() -> None:
    found = two_sided.everywhere(np.ones(100), np.zeros(150), epsilon=1, delta=0.01, confidence=0.95)
    low, high = 0.00025 ** (1 / 100), 1 - (0.05 / 300) ** (1 / 150)
    assert found.excess == pytest.approx(low - np.e * high - 0.01) and found.broken
    assert (found.inside, found.outside, found.threshold, found.above) == (1, 0, 1, True)


def test_rates_of_either_side_are_seen_at_every_threshold() -> None:
    """A few who are surely there are seen among positives, a few who are surely away among negatives."""
    rng = np.random.default_rng(6)
    plain = rng.random((2, 2000))
    for above in (True, False):
        scores = plain.copy()
        scores[0 if above else 1, :400] = 2.0 if above else -1.0
        found = two_sided.everywhere(*scores, epsilon=1, confidence=1 - 1e-6)
        assert found.broken and found.above is above, found
    assert not two_sided.everywhere(*plain, epsilon=1, confidence=1 - 1e-6).broken
    with pytest.raises(SfumatoError, match="at least 1 score of each kind"):
        two_sided.everywhere([], [1.0], epsilon=1)


# Guesses and verdicts


def test_guesses_go_to_both_ends_or_away_from_the_cut() -> None:
    coins = np.array([False, False, True, True])
    assert canaries.counted([0, 1, 2, 3], coins, 4).correct == 4
    assert canaries.counted([0, 1, 2, 3], coins, 2).correct == 2
    assert canaries.counted([3, 2, 1, 0], coins, 4).correct == 0
    assert canaries.counted([0, 1, 2, 3], coins, 4, cut=10).correct == 2
    assert canaries.counted([-5, 1, -5, 9], coins, 1, cut=0).correct == 1


def test_rates_rise_together() -> None:
    scores, coins = np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, False, True, False])
    false, found = canaries.rates(scores, coins)
    assert false.tolist() == [0, 0, 0.5, 1] and found.tolist() == [0, 0.5, 1, 1]
    assert canaries.rate_at(scores, coins, 0.4) == 0.5


def test_numbers_of_guesses() -> None:
    assert canaries.numbers_of(None, 1000) == (1000, 500, 200, 50)
    assert canaries.numbers_of(7, 10) == (7,)
    for given in ([], 11, [3, 0]):
        with pytest.raises(SfumatoError, match="guesses"):
            canaries.numbers_of(given, 10)


def test_a_list_of_guesses_is_paid_for() -> None:
    coins = np.arange(1000) % 2 == 0
    scores = np.where(coins, 1.0, -1.0)
    one, several = (
        judged(scores, coins, way="test", claim=8, delta=1e-5, guesses=given) for given in (1000, [1000, 500, 200])
    )
    assert several.epsilon < one.epsilon < one_run_bound.most_shown(1000)


def test_a_perfect_attack_breaks_the_claimed_curve_though_no_epsilon_shows_it() -> None:
    """1000 perfect guesses show an epsilon of 5 at most; that mu = 1.67 cannot make them, they do show."""
    coins = np.arange(1000) % 2 == 0
    curve = tradeoff(Gaussian(multiplier=0.6, relation="add-remove"))
    found = judged(np.where(coins, 1.0, -1.0), coins, way="a < b", claim=8.0, delta=1e-5, curve=curve)
    assert found.epsilon < 8 and found.refuted and found.broken
    assert "BROKEN" in str(found) and "a &lt; b" in found._repr_html_()
    honest = judged(np.zeros(1000), coins, way="nothing", claim=8.0, delta=1e-5, curve=curve)
    assert not honest.broken and "within" in str(honest) and dict(honest.facts())["claimed curve"] == "not refuted"


def test_scores_that_are_no_numbers_come_last() -> None:
    values, _ = canaries.checked([np.nan, 1.0], [True, False])
    assert values.tolist() == [-np.inf, 1.0]
    for coins in ([True], [1, 0], []):
        with pytest.raises(SfumatoError, match="coins"):
            canaries.checked([1.0, 2.0], coins)
    with pytest.raises(SfumatoError, match="scores") as refused:
        canaries.checked(["a secret"], [True])
    assert "secret" not in str(refused.value)
    with pytest.raises(SfumatoError, match="outside"):
        two_sided.bounds([1.0, 2.0], ["a", "b"])


def test_statistics_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from sfumato.audit import models\n"
        "assert models.epsilon_at_least(100, 100, 100) > 3 and models.mu_at_least(100, 100, 100) > 1\n"
        "models.judged, models.ModelAudit, models.two_sided.bounds, models.canaries.tossed\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
