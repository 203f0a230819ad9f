"""Exact verification: what holds is certified, what does not has a counterexample, and the rest is not guessed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from sfumato import bounds
from sfumato.audit import shipped, verify
from sfumato.audit.chances import at_or_above, between, ends, winners
from sfumato.audit.enumerating import ListedLaw, listed
from sfumato.audit.neighbours import Pair
from sfumato.audit.scripted import TooManyError
from sfumato.audit.small_tables import all_pairs
from sfumato.audit.verifying import Claim, claims, compared
from sfumato.exact import Enclosure
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms import (
    Exponential,
    Laplace,
    OptimalKeys,
    PermuteAndFlip,
    Quantile,
    RandomizedResponse,
    SparseVector,
    ThresholdKeys,
    WeightedKeys,
)
from sfumato.mechanisms.selection import win_chances
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Plan, Run
from sfumato.units import Unit
from sfumato_referee import mutants
from sfumato_referee.attacks import variants
from sfumato_referee.mutants.scaled import EagerKeys, HalfTruth

ROW, REPLACE, USER = Unit(), Unit(change="replace"), Unit("user:id")
WARDS = ("east", "north", "west")


# ------------------------------------------------------------------------------------------------ listing


@pytest.mark.parametrize(
    "law", [RoundedLaplace(2.5), DiscreteLaplace(3.0), RoundedGaussian(2.0), DiscreteGaussian(2.0)]
)
def test_probabilities_of_a_law_are_enclosed(law: Any) -> None:
    for k in (-7, -1, 0, 1, 2, 9):
        low, high = ends(between(law, k, k))
        assert low <= high and float(high - low) < 1e-100
        assert math.isclose(float(low), float(law.pmf(np.float64(k))), rel_tol=1e-9)
    assert math.isclose(float(at_or_above(law, -3)) + float(at_or_above(law, 4)), 1.0, rel_tol=1e-12)


def test_a_one_sided_law_has_nothing_below_zero() -> None:
    law = Geometric(2.0)
    assert ends(between(law, None, -1)) == (0, 0)
    assert math.isclose(float(between(law, 0, 0)), float(law.pmf(np.float64(0))))


@pytest.mark.parametrize("kind", ["gumbel", "exponential"])
def test_winners_are_those_of_the_float_formula(kind: Any) -> None:
    scores = [0, 3, 1, 5, 5, 2]
    exactly = winners([Fraction(s) for s in scores], Fraction(1, 3), kind)
    about = win_chances(np.array(scores, dtype=np.float64), 1 / 3, kind)
    assert np.allclose([float(p) for p in exactly], about, rtol=1e-12)
    assert sum(ends(p)[0] for p in exactly) <= 1 <= sum(ends(p)[1] for p in exactly)


def _mixed(rows: Any, run: Run) -> list[Any]:
    """Uses every finite primitive once."""
    coin = bool(run.noise.coins(Fraction(1, 3), 1)[0])
    die = int(run.noise.integers(3, 1)[0]) if coin else -1
    order = run.noise.permutation(2).tolist()
    best = run.noise.select([0.0, 1.0], scale=Fraction(1, 2))
    heavy = run.noise.select([0.0, 0.0, 5.0], weights=np.array([2, 1, 0]))
    two = run.noise.top([1.0, 0.0], 2)
    high = bool(run.noise.draw(DiscreteLaplace(2.0), 1)[0] >= 2)
    return [coin, die, order, best, heavy, two, high]


def test_a_list_of_outcomes_has_the_law_of_the_code() -> None:
    found = listed(_mixed, None, most=20_000)
    assert sum(ends(p)[0] for p in found.chances.values()) <= 1 <= sum(ends(p)[1] for p in found.chances.values())
    assert float(sum(ends(p)[1] - ends(p)[0] for p in found.chances.values())) < 1e-90
    from sfumato import record

    bits, runs = SeededBits(5), 2_000
    seen: dict[bytes, int] = {}
    for _ in range(runs):
        outcome = record.canonical(_mixed(None, Run(Noise(bits))))
        seen[outcome] = seen.get(outcome, 0) + 1
    assert set(seen) <= set(found.chances)
    expected = {name: runs * float(p) for name, p in found.chances.items()}
    square = sum((seen.get(name, 0) - mean) ** 2 / mean for name, mean in expected.items())
    free = len(expected) - 1
    assert abs(square - free) < 8 * math.sqrt(2 * free)


def test_draws_are_decided_when_they_are_looked_at() -> None:
    law = DiscreteLaplace(3.0)

    def asks(rows: Any, run: Run) -> list[bool]:
        one, other = run.noise.draw(law, 2)
        return [bool(one >= 1), bool(one >= 4), bool(other + 2 < 1), bool(5 - other > 2)]

    found = listed(asks, None, most=100)
    assert found.paths <= 12
    assert math.isclose(sum(float(p) for p in found.chances.values()), 1.0, rel_tol=1e-12)
    high = sum(float(p) for name, p in found.chances.items() if name.startswith(b"[true,true"))
    assert math.isclose(high, float(law.sf(np.float64(3))), rel_tol=1e-12)


def test_two_draws_that_are_compared_are_convolved() -> None:
    one, other = DiscreteLaplace(3.0), DiscreteLaplace(5.0)

    def asks(rows: Any, run: Run) -> bool:
        first, second = run.noise.draw(one, 1), run.noise.draw(other, 1)
        return bool((second + 4 >= first)[0])

    k = np.arange(-400.0, 401.0)
    truth = float(np.sum(one.pmf(k) * other.sf(k - 5)))
    low, high = ends(listed(asks, None, most=100).chances[b"true"])
    assert low < Fraction(truth) * (1 + Fraction(1, 10**12)) and high > Fraction(truth) * (1 - Fraction(1, 10**12))
    assert float(high - low) < 1e-9


def test_what_is_shown_is_listed_over_a_window_and_the_rest_is_kept() -> None:
    found = listed(lambda rows, run: int(run.noise.draw(DiscreteLaplace(1.0), 1)[0]), None, most=1_000)
    assert 90 < len(found.chances) < 120 and 0 < found.rest <= Fraction(1, 2**70)
    assert sum(ends(p)[0] for p in found.chances.values()) + found.rest >= 1 - Fraction(1, 2**300)


def test_wide_draws_and_unlisted_bits_are_refused() -> None:
    with pytest.raises(TooManyError, match="values that matter"):
        listed(lambda rows, run: int(run.noise.draw(RoundedLaplace(1e4), 1)[0]), None, most=1_000)
    with pytest.raises(TooManyError, match="outcomes"):
        listed(lambda rows, run: int(run.noise.integers(2**62, 1)[0]), None, most=1_000)
    with pytest.raises(TooManyError, match="ways"):
        listed(lambda rows, run: run.noise.coins(Fraction(1, 2), 30).tolist(), None, most=1_000)
    with pytest.raises(TooManyError, match="whole vector"):
        listed(lambda rows, run: run.noise.sup_norm(3.0, 2).tolist(), None, most=1_000)
    with pytest.raises(TooManyError, match="bits"):
        listed(lambda rows, run: int(run.noise._bits.words(1)[0]), None, most=1_000)


def test_a_decision_from_one_uniform_number_is_listed() -> None:
    third = Fraction(1, 3)

    def decide(n: int, precision: int) -> bool | None:
        low, high = Fraction(n, 1 << precision), Fraction(n + 1, 1 << precision)
        return True if high <= third else False if low >= third else None

    found = listed(lambda rows, run: run.noise.settle(decide), None, most=1_000)
    low, high = ends(found.chances[b"true"])
    assert low <= third <= high + found.rest and float(found.rest) < 1e-70


# ------------------------------------------------------------------------------------------------ verdicts that hold

HOLDS = {
    "randomized response": lambda: RandomizedResponse(column="ward", categories=WARDS, epsilon=1, protects=REPLACE),
    "exponential": lambda: Exponential(query=bounds.votes("ward", WARDS, ROW), epsilon=2),
    "exponential, replace": lambda: Exponential(query=bounds.votes("ward", WARDS, REPLACE), epsilon=0.7),
    "permute and flip": lambda: PermuteAndFlip(query=bounds.votes("ward", WARDS, REPLACE), epsilon=1),
    "optimal keys": lambda: OptimalKeys(column="query", protects=ROW, epsilon=1, delta=0.01),
    "weighted keys": lambda: WeightedKeys(column="query", protects=ROW, epsilon=1, delta=0.1),
    "threshold keys": lambda: ThresholdKeys(column="query", protects=ROW, epsilon=1, delta=0.05),
    "threshold keys, replace": lambda: ThresholdKeys(column="query", protects=REPLACE, epsilon=1, delta=0.05),
    "quantile": lambda: Quantile(column="age", lower=0, upper=4, step=1, epsilon=1, protects=REPLACE),
    "top k": shipped.PLANS["TopK"],
}


@pytest.mark.parametrize("name", HOLDS)
def test_every_pair_of_small_tables_holds(name: str) -> None:
    found = verify(HOLDS[name](), pairs="all", rows=2)
    assert found.verdict == "holds", str(found)
    assert found.pairs > 3 and found.skipped == 0 and 0 < found.share <= 1 + 1e-9
    assert "holds" in str(found) and "%" in str(found)


@pytest.mark.parametrize(
    "name", ["RandomizedResponse", "Exponential", "PermuteAndFlip", "Laplace", "Geometric", "Tidy"]
)
def test_what_is_exactly_at_its_price_holds(name: str) -> None:
    pairs = "all" if name == "RandomizedResponse" else None
    found = verify(shipped.PLANS[name](), pairs=pairs, rows=2)
    assert found.holds and math.isclose(found.share, 1.0, rel_tol=1e-9), str(found)


BY_LAW = (
    "Gaussian",
    "L2Noise",
    "LInfinityNoise",
    "QuantileTree",
    "PrivateBounds",
    "NoisyMaxWithValue",
    "ThresholdKeys",
)


@pytest.mark.parametrize("name", BY_LAW)
def test_plans_with_noise_of_a_known_law_hold(name: str) -> None:
    found = verify(shipped.PLANS[name](), pairs=_first(shipped.PLANS[name](), 2))
    assert found.holds and found.way == "law", str(found)
    assert 0.4 < found.share <= 1 + 1e-9


def _first(plan: Plan[Any, Any], count: int) -> list[Pair]:
    from itertools import islice

    from sfumato.audit import neighbours

    return list(islice(neighbours.pairs(plan), count))


def test_three_rows_of_votes_are_a_theorem() -> None:
    plan = Exponential(query=bounds.votes("ward", WARDS, ROW), epsilon=1)
    found = verify(plan, pairs="all", rows=3)
    assert found.holds and found.pairs == 60  # 4 kinds of row beside 1 + 4 + 10 tables of up to two


def test_all_pairs_under_replace_and_zero_out() -> None:
    plan = PermuteAndFlip(query=bounds.votes("ward", ("a", "b"), REPLACE), epsilon=1)
    assert len(list(all_pairs(plan, 2))) == 3 + 9
    blank = PermuteAndFlip(query=bounds.votes("ward", ("a", "b"), Unit(change="zero-out")), epsilon=1)
    assert verify(blank, pairs="all", rows=2).holds


SPARSE = [given for given in variants.INPUTS if len(given.questions) <= 21 and given.count == 1]


@pytest.mark.parametrize("given", SPARSE, ids=lambda given: given.name)
def test_a_sparse_vector_is_verified_with_its_thousands_of_thresholds(given: variants.Input) -> None:
    plan = variants.Variant(SparseVector).plan(given)
    assert plan is not None
    found = verify(plan, pairs=[Pair(*given.tables(), given.name)])
    assert found.holds and found.way == "listed" and found.outputs <= 22, str(found)


def test_the_sparse_vector_is_nearly_tight() -> None:
    """20 x below, above: the exact loss is 99.7 % of epsilon, which no sample would show."""
    given = variants.INPUTS[1]
    plan = variants.Variant(SparseVector).plan(given)
    assert plan is not None
    assert 0.99 < verify(plan, pairs=[Pair(*given.tables(), given.name)]).share < 1


# ------------------------------------------------------------------------------------------------ counterexamples


def _broken(plan: Plan[Any, Any], **more: Any) -> Any:
    found = verify(plan, **more)
    assert found.verdict == "broken", str(found)
    example = found.counterexample
    low, high = example.one[0], example.other[1]
    assert float(low) > math.exp(float(example.epsilon)) * float(high) + float(example.delta)
    assert example.shown > float(example.epsilon) and example.event in str(found)
    return found


def test_the_exponential_mechanism_without_its_two() -> None:
    query = bounds.votes("ward", WARDS, REPLACE)
    found = _broken(mutants.DoubledRate(query=query, epsilon=1), pairs="all", rows=3)
    assert found.counterexample.delta < 1


def test_planted_bugs_in_additive_noise() -> None:
    count = bounds.count(ROW)
    half = _broken(mutants.HalfNoise(query=count, epsilon=1)).counterexample
    assert half.delta == 0 and math.isclose(half.shown, 2.0, rel_tol=1e-6)
    _broken(mutants.HalfNoise(query=bounds.histogram("ward", WARDS, REPLACE), epsilon=1))
    classic = _broken(mutants.ClassicGaussian(query=count, epsilon=10)).counterexample
    assert classic.delta == Fraction(1, 10**5)
    _broken(mutants.LaplaceSoldAsGaussian(query=count, epsilon=1))


def test_a_query_that_moves_further_than_it_says() -> None:
    query = mutants.HalfSensitivity(column="age", lower=0, upper=120, unit=ROW)
    assert math.isclose(_broken(Laplace(query=query, epsilon=1)).counterexample.shown, 2.0, rel_tol=1e-6)


SVT = {
    "NoiseWithoutCount": (mutants.NoiseWithoutCount, 1, 1.70, 1.75),
    "NoQueryNoise": (mutants.NoQueryNoise, 0, 30.0, math.inf),
}


@pytest.mark.parametrize("name", SVT)
def test_wrong_sparse_vectors_have_exact_counterexamples(name: str) -> None:
    kind, place, least, most = SVT[name]
    given = variants.INPUTS[place]
    plan = variants.Variant(kind).plan(given)
    assert plan is not None
    example = _broken(plan, pairs=[Pair(*given.tables(), given.name)]).counterexample
    assert least < example.shown <= most
    assert "True" in str(example) and "False" in str(example)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mutants.NeverEnding, mutants.Resuming])
def test_sparse_vectors_that_go_on(kind: Any) -> None:
    given = variants.INPUTS[2] if kind is mutants.NeverEnding else variants.INPUTS[3]
    questions = given.questions if kind is mutants.NeverEnding else [("a", 0)] * 6 + [("b", 1)] * 6
    given = variants.Input(given.name, given.unit, given.rows, given.neighbour, questions, given.event, 1)
    plan = variants.Variant(kind).plan(given)
    assert plan is not None
    _broken(plan, pairs=[Pair(*given.tables(), given.name)])


def test_randomized_response_that_lies_too_little() -> None:
    plan = HalfTruth(column="ward", categories=WARDS, epsilon=1, protects=REPLACE)
    example = _broken(plan, pairs="all", rows=1).counterexample
    assert math.isclose(example.shown, 2.0, rel_tol=1e-9)


def test_keys_that_come_out_too_soon() -> None:
    _broken(EagerKeys(column="query", protects=ROW, epsilon=1, delta=0.01), pairs="all", rows=3)


@dataclass(frozen=True, kw_only=True)
class _LowThreshold(ThresholdKeys):
    """A threshold one unit too low."""

    @cached_property
    def threshold_steps(self) -> int:
        return ThresholdKeys.threshold_steps.func(self) - (1 << -self.exponent)  # type: ignore[attr-defined,no-any-return]


def test_a_threshold_that_is_too_low() -> None:
    plan = _LowThreshold(column="query", protects=ROW, epsilon=1, delta=0.05)
    example = _broken(plan, pairs="all", rows=1).counterexample
    assert "only one" in example.event and example.shown == math.inf


# ------------------------------------------------------------------------------------------------ no guesses


@pytest.mark.parametrize("name", ["SmoothMedian", "ProposeTestRelease", "Sequence", "Reserve"])
def test_what_cannot_be_listed_is_refused_with_a_way_out(name: str) -> None:
    with pytest.raises(TooManyError, match=r"audit\.check"):
        verify(shipped.PLANS[name](), pairs=_first(shipped.PLANS[name](), 2))


def test_an_own_run_is_not_judged_by_the_law_in_the_fields() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Bare(Laplace):
        def _run(self, rows: Any, run: Run) -> Any:
            return self.query.steps(rows, self.exponent).astype(np.float64)

    assert verify(Bare(query=bounds.count(ROW), epsilon=1)).broken


def test_mass_without_a_home_leaves_a_claim_undecided() -> None:
    one, rest = Enclosure(1 << 383, 1 << 383, 384), Fraction(1, 2)
    here, there = ListedLaw({b"0": one}, rest), ListedLaw({b"0": one}, rest)
    found = compared(here, there, Claim(Fraction(0), Fraction(1)))
    assert found.low == 0 and found.high == rest


def test_claims_are_exact_and_at_many_points() -> None:
    points = claims(shipped.PLANS["Gaussian"]())
    assert len(points) >= 7 and all(isinstance(each.epsilon, Fraction) for each in points)
    assert points[0].delta > 0 and claims(shipped.PLANS["Laplace"]())[0].delta == 0
