"""Lower bounds: right numbers, no false alarms, and enough power to be worth running."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from sfumato import Unit, bounds, schema
from sfumato.accounting import gdp
from sfumato.audit import counting, losses, telling
from sfumato.audit.neighbours import oddities, pairs, read_people
from sfumato.audit.stages import table_for
from sfumato.errors import SfumatoError
from sfumato.laws import DiscreteLaplace, Geometric, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms import Laplace
from sfumato.mechanisms.selection import win_chances
from sfumato.noise import Noise, SeededBits
from sfumato.rows import Rows


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (1, 10), (5, 10), (9, 10), (10, 10), (3, 4_000), (3_997, 4_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-8])
def test_clopper_pearson_by_its_definition(hits: int, trials: int, alpha: float) -> None:
    """At the lower bound p, seeing so many hits or more has probability alpha exactly; and the other way round."""
    low, high = (float(f(hits, trials, alpha)) for f in (counting.at_least, counting.at_most))
    assert 0 <= low <= hits / trials <= high <= 1
    assert low == 0 if hits == 0 else stats.binom.sf(hits - 1, trials, low) == pytest.approx(alpha, rel=1e-6)
    assert high == 1 if hits == trials else stats.binom.cdf(hits, trials, high) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("trials", [10**7, 162_589_396, 219_599_248, 10**9])
@pytest.mark.parametrize("alpha", [0.025, 1e-7, 1e-12])
def test_bounds_of_very_many_trials_are_bounds(trials: int, alpha: float) -> None:
    """scipy's inverse goes astray at 1000: 7.6e-6 "at least", where 1000 hits in 2.2e8 trials are 4.6e-6."""
    hits = np.array([1, 2, 999, 1_000, 1_001, 10**6, trials - 1_000, trials - 999, trials - 1, trials])
    low, high = (f(hits, trials, alpha) for f in (counting.at_least, counting.at_most))
    assert (low > 0).all() and (low < hits / trials).all() and (hits[:-1] / trials < high[:-1]).all() and high[-1] == 1
    assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(np.full(len(hits), alpha), rel=1e-4)


@pytest.mark.parametrize(
    "given", [(11, 10, 0, 10), (1, 10, -1, 10), (1, 0, 0, 10), (0.5, 10, 0, 10), (1, 10, 0, 10, {"delta": -0.1}),
              (1, 10, 0, 10, {"delta": math.nan}), (1, 10, 0, 10, {"confidence": 1.0})]
)  # fmt: skip
def test_counts_that_are_none_prove_nothing(given: Any) -> None:
    """A delta below 0 would prove more than there is."""
    *counts, more = given if isinstance(given[-1], dict) else (*given, {})
    with pytest.raises(SfumatoError, match=r"hits|trials|delta|confidence"):
        counting.epsilon_lower_bound(*counts, **more)


@pytest.mark.parametrize(("runs", "most"), [(100, 3.28), (1_000, 5.60), (10_000, 7.90), (100_000, 10.21)])
def test_a_perfect_attack_proves_no_more_than_its_runs_allow(runs: int, most: float) -> None:
    assert counting.epsilon_lower_bound(runs, runs, 0, runs) == pytest.approx(most, abs=0.005)


def test_a_bound_shows_nothing_below_delta() -> None:
    assert counting.epsilon_lower_bound(500, 1_000, 500, 1_000) == 0
    assert counting.epsilon_lower_bound(900, 1_000, 100, 1_000, delta=0.9) == 0
    some = counting.epsilon_lower_bound(900, 1_000, 100, 1_000)
    assert 0 < counting.epsilon_lower_bound(900, 1_000, 100, 1_000, delta=0.1) < some < math.log(9)
    assert counting.epsilon_lower_bound(900, 1_000, 100, 1_000, confidence=1 - 1e-6) < some


def _laplace(shift: float, scale: float, count: int, seed: int, width: int = 1) -> np.ndarray:
    law = RoundedLaplace(scale)
    noise = Noise(SeededBits(seed)).draw(law, count * width).reshape(count, width)
    return noise + shift


def test_honest_noise_is_not_accused() -> None:
    for seed in range(20):
        one, other = _laplace(100, 100, 2_000, 2 * seed), _laplace(0, 100, 2_000, 2 * seed + 1)
        assert not telling.most_telling(one, other, claims={0.0: 1.0}, false_alarm=1e-3).broken


def test_false_alarms_are_rarer_than_promised() -> None:
    """At a claim that is exactly true, few runs and a large promise: the bound must hold, not only in the far tail."""
    alarms = 0
    for seed in range(120):
        one, other = _laplace(100, 100, 120, 2 * seed), _laplace(0, 100, 120, 2 * seed + 1)
        alarms += telling.most_telling(one, other, claims={0.0: 1.0}, false_alarm=0.2).broken
    assert alarms <= 24 + 4 * math.sqrt(120 * 0.2 * 0.8)


def test_half_the_noise_is_caught_every_time() -> None:
    for seed in range(10):
        one, other = _laplace(100, 50, 4_000, 2 * seed), _laplace(0, 50, 4_000, 2 * seed + 1)
        finding = telling.most_telling(one, other, claims={0.0: 1.0}, false_alarm=1e-6)
        assert finding.broken
        assert 1 < finding.epsilon <= 2
        assert "above" in str(finding)


def test_the_whole_curve_is_compared() -> None:
    """Gaussian noise halved: at delta = 1e-5 nothing shows, at a large delta it does."""
    mu = 0.4

    def sample(shift: float, seed: int) -> np.ndarray:
        return Noise(SeededBits(seed)).draw(RoundedGaussian(1_000.0), 8_000) + round(shift)

    curve = {delta: max(0.0, _epsilon(mu, delta)) for delta in (1e-5, 0.01, 0.05, 0.1, 0.2)}
    one, other = sample(2 * mu * 1_000, 1), sample(0, 2)
    assert not telling.most_telling(one, other, claims={1e-5: curve[1e-5]}).broken
    assert telling.most_telling(one, other, claims=curve).broken
    assert not telling.most_telling(sample(mu * 1_000, 3), other, claims=curve).broken


def _epsilon(mu: float, delta: float) -> float:
    grid = np.linspace(0, 5, 5_001)
    return float(grid[np.argmax([gdp.delta(mu, e) <= delta for e in grid])])


def test_noise_shared_between_coordinates_is_caught() -> None:
    shared = [_laplace(0, 300, 3_000, seed) * np.ones((1, 3)) for seed in (1, 2)]
    finding = telling.most_telling(shared[0] + np.array([0, 100, 0]), shared[1], claims={0.0: 1.0})
    assert finding.broken
    assert finding.epsilon > 3


def test_composition_is_seen_in_the_likelihood_ratio() -> None:
    """Three coordinates of epsilon = 1 each are more than 1 together, though no single one is."""
    one, other = _laplace(100, 100, 4_000, 1, 3), _laplace(0, 100, 4_000, 2, 3)
    assert telling.most_telling(one, other, claims={0.0: 1.0}).broken
    assert not telling.most_telling(one[:, :1], other[:, :1], claims={0.0: 1.0}).broken


def test_texts_and_missing_parts_are_audited_too() -> None:
    mixed = [("a", "b")[i % 10 == 0] for i in range(1_000)], [("b", "a")[i % 10 == 0] for i in range(1_000)]
    assert telling.most_telling(*mixed, claims={0.0: 0.5}).broken
    keys = [{"x": 1.0, "y": 2.0}] * 1_000, [{"x": 1.0}] * 1_000
    assert telling.most_telling(*keys, claims={0.0: 1.0}).broken
    same = [{"x": 1.0}] * 1_000
    assert telling.most_telling(same, same, claims={0.0: 1.0}).epsilon == 0


def test_an_audit_needs_samples() -> None:
    with pytest.raises(ValueError, match="two samples"):
        telling.most_telling([1.0], [2.0], claims={0.0: 1.0})


# ---------------------------------------------------------------------------------- from the law


def _flip(scores: np.ndarray, rate: float) -> np.ndarray:
    """Permute-and-flip as it is told: every order, every coin."""
    coins = np.exp(rate * (scores - scores.max()))
    chances = np.zeros(scores.size)
    for order in itertools.permutations(range(scores.size)):
        left = 1.0
        for i in order:
            chances[i] += left * coins[i]
            left *= 1 - coins[i]
    return chances / math.factorial(scores.size)


@pytest.mark.parametrize("scores", [[0], [3, 3], [0, 1], [5, 2, 5, 4], [0, -30, 1, 2, 2]])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_selection_chances(scores: list[int], rate: float) -> None:
    values = np.array(scores, dtype=np.float64)
    flip = win_chances(values, rate, "exponential")
    assert flip == pytest.approx(_flip(values, rate), rel=1e-12)
    assert win_chances(values, rate, "gumbel") == pytest.approx(special.softmax(rate * values))


def test_selection_chances_of_many_still_sum_to_one() -> None:
    scores = np.arange(100.0)
    assert win_chances(scores, 0.3, "exponential").sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("law", [RoundedLaplace(100.0), DiscreteLaplace(100.0), RoundedLaplace(2.0**30)])
@pytest.mark.parametrize("shift", [1, 7, 100, 60_000])
def test_laplace_loses_the_shift_over_the_scale(law: RoundedLaplace | DiscreteLaplace, shift: int) -> None:
    assert losses.pure_loss(law, [shift]) == pytest.approx(shift / law.scale, rel=1e-6)
    assert losses.pure_loss(law, [shift, 0, -shift]) == pytest.approx(2 * shift / law.scale, rel=1e-6)


def test_one_sided_noise_loses_everything() -> None:
    assert losses.pure_loss(Geometric(10.0), [1]) == math.inf
    assert losses.pure_loss(Geometric(10.0), [0]) == 0


@pytest.mark.parametrize("sigma", [1_000.0, 2.0**30])
def test_gaussian_follows_its_curve(sigma: float) -> None:
    law, epsilons = RoundedGaussian(sigma), [0.0, 0.5, 1.0, 2.0]
    curve = [gdp.delta(1.0, epsilon) for epsilon in epsilons]
    exactly = losses.curve_loss(law, [round(sigma)], epsilons)
    assert exactly == pytest.approx(curve, rel=1e-4)
    assert all(a <= b * (1 + 1e-9) for a, b in zip(exactly, curve, strict=True))  # rounding only loses information
    several = losses.curve_loss(law, [round(0.6 * sigma), -round(0.8 * sigma)], epsilons)
    assert several == pytest.approx(curve, rel=1e-2)
    assert losses.curve_loss(law, [0, 0], epsilons) == [0.0] * 4


def test_hockey_stick_of_randomized_response() -> None:
    p = math.exp(1) / (1 + math.exp(1))
    one, other = np.array([p, 1 - p]), np.array([1 - p, p])
    assert losses.hockey_stick(one, other, 1.0) == pytest.approx(0, abs=1e-15)
    assert losses.hockey_stick(one, other, 0.0) == pytest.approx(2 * p - 1)
    assert losses.hockey_stick(one, other, 1e4) == 0  # nothing that float64 could show


def test_draws_fit_their_law_and_no_other() -> None:
    draws = _laplace(0, 100, 4_000, 1).ravel()
    gap, allowed = losses.misfit(draws, RoundedLaplace(100.0), 1e-6)
    assert gap < allowed
    for wrong in (RoundedLaplace(50.0), RoundedLaplace(150.0), RoundedGaussian(100.0), Geometric(100.0)):
        gap, allowed = losses.misfit(draws, wrong, 1e-6)
        assert gap > allowed


# ---------------------------------------------------------------------------------- neighbours


UNITS = [
    Unit(of, change, group)
    for of in ("row", "user:id")
    for change in ("add-remove", "replace", "zero-out")
    for group in (1, 3)
]


def _held(rows: Rows) -> Counter[tuple[tuple[int, bool], ...]]:
    """What each unit holds, whatever its name."""
    held: dict[int, list[tuple[int, bool]]] = {}
    cells = zip(rows.units.tolist(), rows["ward"].values.tolist(), rows["ward"].valid.tolist(), strict=True)
    for owner, value, valid in cells:
        held.setdefault(owner, []).append((value, valid))
    return Counter(tuple(sorted(each)) for each in held.values())


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_pairs_differ_by_the_unit_and_nothing_else(unit: Unit) -> None:
    found = list(pairs(Laplace(query=bounds.histogram("ward", ("e", "n", "w"), unit), epsilon=1)))
    assert len(found) >= 10
    assert len({pair.change for pair in found}) == len(found)
    reached = 0
    for pair in found:
        one, other = (_held(rows) for rows in pair)
        gone, come = (one - other).total(), (other - one).total()
        if unit.change == "add-remove":
            assert 0 < gone + come <= unit.group
        else:
            assert gone == come <= unit.group
        if unit.change == "zero-out":
            assert all(not valid for held in other - one for _, valid in held)
        reached = max(reached, gone, come)
    assert reached == unit.group


def test_pairs_bring_more_rows_than_count() -> None:
    plan = Laplace(query=bounds.count(Unit("user:id"), per_unit=5), epsilon=1)
    assert max(len(rows) - rows.unit_count for pair in pairs(plan) for rows in pair) >= 5


def test_pairs_reach_the_ends_and_beyond() -> None:
    def extremes(column: schema.Column) -> list[Any]:
        return column.of_kind.extremes(column)

    assert extremes(schema.real(-1, 5))[:3] == [-1.0, 5.0, None]
    assert extremes(schema.whole(0, 3))[:3] == [0, 3, None]
    assert any(abs(cell) > 1_000 for cell in extremes(schema.whole(0, 3)) if cell is not None)
    assert extremes(schema.category(("a", "b", "c", "d", "e"))) == ["a", "b", "c", "e", None]
    assert extremes(schema.flag()) == [True, False, None]
    assert None in extremes(schema.key())


def test_units_that_are_categories_are_no_more_than_their_names() -> None:
    plan = Laplace(query=bounds.histogram("ward", ("e", "n"), Unit("user:ward")), epsilon=1)
    found = list(pairs(plan))
    assert found
    assert all(rows.unit_count <= 2 for pair in found for rows in pair)


def test_tables_are_made_for_every_plan() -> None:
    plan = Laplace(query=bounds.count(Unit()), epsilon=1)
    table = table_for(plan)
    assert len(read_people(table, plan.unit, [({},), ({},)])) == 2
    names = [name for name, _ in oddities(table, plan.unit)]
    assert names[0] == "ordinary rows"
    assert "an empty table" in names
