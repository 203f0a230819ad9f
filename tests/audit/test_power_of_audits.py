"""Half the noise is seen, by as many runs as the law predicts, and all of it is not accused."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

from sfumato import bounds
from sfumato.audit import neighbours, shipped
from sfumato.audit.counting import at_least, at_most
from sfumato.laws import DiscreteGaussian, RoundedLaplace
from sfumato.mechanisms import Exponential, Laplace
from sfumato.noise import SeededBits
from sfumato.units import Unit
from sfumato_referee import moved, power
from sfumato_referee.mutants.scaled import Scaled, halved, narrowed
from sfumato_referee.power import STRONGEST, TellingEvent, caught, detection, pick, predicted

ROW = Unit()
QUICK = ("Laplace", "Gaussian", "Exponential", "PermuteAndFlip", "RandomizedResponse", "SparseVector", "OptimalKeys")


def test_there_are_telling_parameters_for_every_kind_of_plan() -> None:
    assert set(STRONGEST) == set(shipped.PLANS)
    for name, setting in STRONGEST.items():
        if name not in ("SGD", "Sql"):
            assert type(setting.make()) is type(shipped.PLANS[name]())


def test_detection_is_the_chance_that_the_bounds_prove_it() -> None:
    event, runs, alpha = TellingEvent(0.3, 0.1), 400, 1e-4
    rng = np.random.default_rng(1)
    hits, others = (rng.binomial(runs, p, 20_000) for p in (event.one, event.other))
    proven = np.log(at_least(hits, runs, alpha) / at_most(others, runs, alpha))
    for claim in (0.3, 0.5, 0.7):
        share = float(np.mean(proven > claim))
        assert abs(share - detection(event, {0.0: claim}, runs, alpha)) < 6 * math.sqrt(0.25 / 20_000)


def test_detection_grows_with_runs_and_never_accuses_the_honest() -> None:
    chances = [detection(TellingEvent(0.3, 0.05), {0.0: 1.0}, runs) for runs in (100, 400, 1600, 6400)]
    assert chances == sorted(chances) and chances[-1] > 0.999
    assert detection(TellingEvent(math.e * 0.1, 0.1), {0.0: 1.0}, 20_000) < 1e-8
    assert detection(TellingEvent(0.1, 0.3), {0.0: 1.0}, 20_000) == 0


KNOWN = (
    "ContinualCount", "ContributionLimit", "Exponential", "Gaussian", "Geometric", "Laplace", "OptimalKeys",
    "PrivateBounds", "Quantile", "QuantileTree", "RandomizedResponse", "Repeat", "Sequence", "SparseVector", "Tidy",
    "WeightedKeys",
)  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_law_predicts_that_the_settings_suffice(name: str) -> None:
    setting = STRONGEST[name]
    plan = setting.make()
    pairs = setting.pairs(plan) if setting.pairs else list(islice(neighbours.pairs(plan), 100))
    known = [each for pair in pairs if not math.isnan(each := predicted(plan, pair, runs=setting.runs))]
    assert max(known) > 0.999
    honest = (predicted(plan, pair, runs=setting.runs, faulty=False) for pair in pairs)
    assert max(each for each in honest if not math.isnan(each)) < 1e-6


def test_losses_of_several_numbers_add_up() -> None:
    """Beside all outcomes of two numbers, one by one."""
    laws, shifts = (RoundedLaplace(3.0), DiscreteGaussian(2.5)), (2, 3)
    k = np.arange(-90, 91)
    moved_on, still = (
        np.outer(*(law.pmf(k - shift * side) for law, shift in zip(laws, shifts, strict=True))) for side in (1, 0)
    )
    with np.errstate(divide="ignore"):
        loss = np.log(moved_on) - np.log(np.maximum(still, 1e-300))
    found = list(moved.tails(list(zip(laws, shifts, strict=True))))
    assert len(found) > 50
    for t, one, other in found:
        slack = 0.005  # of the losses, which are rounded
        above, surely = (loss >= t - slack), (loss >= t + slack)
        assert moved_on[surely].sum() - 1e-9 <= one <= moved_on[above].sum() + 1e-9
        assert still[surely].sum() * (1 - slack) - 1e-9 <= other <= still[above].sum() * (1 + slack) + 1e-9
    assert list(moved.tails([])) == []


def test_the_auditor_picks_where_it_shows() -> None:
    found = pick(lambda epsilon: Laplace(query=bounds.count(ROW), epsilon=epsilon), (0.05, 1, 2))
    assert found.epsilon in (1, 2) and found.runs <= 2_000 and found.power > 0.999
    hopeless = pick(lambda epsilon: Exponential(query=bounds.votes("w", ("a", "b"), ROW), epsilon=epsilon), (0.001,))
    assert hopeless.power < 0.01


def test_a_pair_that_moves_nothing_is_no_obstacle_to_picking() -> None:
    """The first of the usual pairs adds a 0 to a sum: nothing moves there, and others tell."""

    def make(epsilon: float) -> Laplace:
        return Laplace(query=bounds.clipped_sum("x", 0, 10, ROW), epsilon=epsilon)

    chances = [predicted(make(2), pair, runs=2_000) for pair in islice(neighbours.pairs(make(2)), 4)]
    assert min(chances) == 0 and max(chances) > 0.999
    found = pick(make, (2,))
    assert found.power > 0.999 and found.runs <= 2_000


def test_chances_of_many_losses_stay_chances() -> None:
    found = list(moved.tails([(RoundedLaplace(2.0**30), 2**28)] * 40))
    assert all(0 <= other <= 1 and 0 <= one <= 1 for _, one, other in found)


def test_half_the_noise_halves_scales_and_leaves_samples_alone() -> None:
    assert narrowed(RoundedLaplace(8.0)) == RoundedLaplace(4.0)
    plan = Laplace(query=bounds.count(ROW), epsilon=1)
    assert halved(plan) is plan
    noise = Scaled(SeededBits(1))
    spread = float(np.std(noise.draw(RoundedLaplace(1_000.0), 20_000)))
    assert abs(spread - 500 * math.sqrt(2)) < 40
    wins = np.mean([noise.select([1.0, 0.0], scale=Fraction(1)) == 0 for _ in range(2_000)])
    assert abs(wins - 1 / (1 + math.exp(-2))) < 0.06
    heads = float(np.mean(noise.coins(Fraction(1, 4), 20_000)))
    assert abs(heads - 0.25) < 0.03
    assert halved(shipped.PLANS["SmoothMedian"]()).scale == shipped.PLANS["SmoothMedian"]().scale / 2  # type: ignore[attr-defined]
    eager: Any = halved(shipped.PLANS["OptimalKeys"]())
    assert eager.event == shipped.PLANS["OptimalKeys"]().event and eager.chances(2) > 0


@pytest.mark.parametrize("name", QUICK)
def test_half_the_noise_is_caught(name: str) -> None:
    found = caught(name, SeededBits(11))
    assert found.broken and found.epsilon > found.claim, str(found.result)


@pytest.mark.parametrize("name", QUICK[2:5])
def test_all_of_the_noise_is_not_accused(name: str) -> None:
    assert not caught(name, SeededBits(12), mutant=False).broken


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STRONGEST))
def test_half_the_noise_is_caught_again_and_again(name: str) -> None:
    """Twice here; `python -m bench.audit_power --check` does it twenty times."""
    assert [caught(name, SeededBits(100 + seed)).broken for seed in range(2)] == [True, True]
    assert not caught(name, SeededBits(1), mutant=False).broken


def test_ways_are_counted() -> None:
    one = caught("RandomizedResponse", SeededBits(2))
    assert power.shares([one])["histogram"] == 1
