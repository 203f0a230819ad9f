"""audit.check: no honest plan is accused, every planted bug is, and the same bits give the same verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato import Unit, audit, bounds, schema
from sfumato.audit import counting, looking, neighbours, shipped
from sfumato.audit.claims import claims_of
from sfumato.audit.results import Result
from sfumato.audit.subjects import OfPlan
from sfumato.errors import ArgumentError
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import Exponential, Gaussian, Laplace
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Plan
from sfumato_referee import mutants
from sfumato_referee.attacks import searching
from sfumato_referee.attacks.variants import INPUTS, Variant

_ROW, _REPLACE = Unit(), Unit(change="replace")
_WARDS = ("e", "n", "w")


def _count(epsilon: float = 1.0) -> Laplace:
    return Laplace(query=bounds.count(_ROW), epsilon=epsilon)


class Halved(Noise):
    """Every law at half its scale."""

    def draw(self, law: Any, count: int) -> Any:
        return (
            super().draw(RoundedLaplace(law.scale / 2), count)
            if isinstance(law, RoundedLaplace)
            else super().draw(law, count)
        )

    def select(self, scores: Any, *, scale: Any = 1, **named: Any) -> int:
        return super().select(scores, scale=2 * scale, **named)


# ---------------------------------------------------------------------------------- the bars


def test_a_perfect_attack_proves_what_its_runs_allow() -> None:
    """1e5 runs on each side: 10.2 at 95 %, 8.8 at one in a million."""
    runs = 100_000
    assert counting.epsilon_lower_bound(runs, runs, 0, runs) == pytest.approx(10.2, abs=0.02)
    assert counting.epsilon_lower_bound(runs, runs, 0, runs, confidence=1 - 1e-6) == pytest.approx(8.84, abs=0.02)


def test_a_mechanism_without_noise_is_shown_as_far_as_runs_allow() -> None:
    found = audit.check_mechanism(lambda x: x, [(0, 1)], 1.0, runs=20_000, bits=SeededBits(1))
    assert found.broken
    assert found.epsilon > 6.5


ALARMS = 0.05
TIGHT: dict[str, Plan[Any, Any]] = {
    "laplace": _count(),
    "gaussian": Gaussian(query=bounds.count(_ROW), epsilon=1, delta=0.01),
    "exponential": Exponential(query=bounds.votes("w", _WARDS, _ROW), epsilon=1),
}


@pytest.mark.parametrize(
    ("name", "tries"),
    [("laplace", 10), ("exponential", 5), *(pytest.param(name, 200, marks=pytest.mark.slow) for name in TIGHT)],
)
def test_honest_plans_at_a_large_false_alarm(name: str, tries: int) -> None:
    """The whole pipeline with its error budget spent: choices included, alarms stay within a binomial bound. The plans
    are tight: on their worst pair the claim is exactly true."""
    alarms = sum(
        audit.check(TIGHT[name], runs=120, false_alarm=ALARMS, bits=SeededBits(seed)).broken for seed in range(tries)
    )
    assert stats.binom.sf(alarms - 1, tries, ALARMS) > 1e-6


def test_honest_code_at_a_large_false_alarm() -> None:
    """Randomized response is tight at every event there is; 50 audits with almost no runs."""

    law, cut = RoundedLaplace(1000.0), 1000.0 * math.log((1 + math.e) / 2)

    def respond(bit: int, noise: Noise) -> int:
        return int(noise.draw(law, 1)[0] > cut) ^ bit

    heads = float(law.sf(np.array([math.floor(cut)]))[0])
    claim = math.log((1 - heads) / heads)
    alarms = sum(
        audit.check_mechanism(respond, [(0, 1)], claim, runs=40, false_alarm=0.2, bits=SeededBits(seed)).broken
        for seed in range(50)
    )
    assert stats.binom.sf(alarms - 1, 50, 0.2) > 1e-6


@pytest.mark.parametrize("name", ["Laplace", "RandomizedResponse", "ThresholdKeys"])
def test_shipped_plans_are_within_their_claims(name: str) -> None:
    found = audit.check(shipped.PLANS[name](), runs=200, bits=SeededBits(2))
    assert not found.broken
    assert found.verdict == "within"


# ---------------------------------------------------------------------------------- planted bugs


def _sparse(kind: type[Any], name: str) -> Callable[[], Plan[Any, Any]]:
    (given,) = (each for each in INPUTS if each.name == name)
    return lambda: Variant(kind).plan(given)  # type: ignore[return-value]


BUGS: dict[str, tuple[Callable[[], Plan[Any, Any]], int]] = {
    "half the noise": (lambda: mutants.HalfNoise(query=bounds.count(_ROW), epsilon=1), 4_000),
    "half the sensitivity": (
        lambda: Laplace(query=mutants.HalfSensitivity(column="x", lower=0, upper=10, unit=_ROW), epsilon=1),
        4_000,
    ),
    "doubled rate": (
        lambda: mutants.DoubledRate(query=bounds.histogram("w", _WARDS, _REPLACE), epsilon=1),
        2_000,
    ),
    "noisy max with its value": (
        lambda: mutants.NoisyMaxWithItsValue(query=searching._ten_times(), epsilon=1),
        20_000,
    ),
    "classic Gaussian": (lambda: mutants.ClassicGaussian(query=bounds.count(_ROW), epsilon=10, delta=1e-5), 1_000),
    "Laplace sold as Gaussian": (
        lambda: mutants.LaplaceSoldAsGaussian(query=bounds.count(_ROW), epsilon=1, delta=1e-5),
        10_000,
    ),
    "no noise on questions": (_sparse(mutants.NoQueryNoise, "below, above"), 4_000),
}
SLOWER: dict[str, tuple[Callable[[], Plan[Any, Any]], int]] = {
    "never ending": (_sparse(mutants.NeverEnding, "5 x below, 5 x above"), 100_000),
    "noise without count": (_sparse(mutants.NoiseWithoutCount, "20 x below, above"), 200_000),
    "noisy value shown": (_sparse(mutants.NoisyValueShown, "20 x below, above"), 200_000),
    "resuming": (_sparse(mutants.Resuming, "60 questions each"), 40_000),
}


@pytest.mark.parametrize("name", [*BUGS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOWER)])
def test_planted_bugs_are_found(name: str) -> None:
    make, runs = (BUGS | SLOWER)[name]
    found = audit.check(make(), runs=runs, bits=SeededBits(1))
    assert found.broken, str(found)


def test_halved_noise_is_found_through_the_noise_argument() -> None:
    for plan, runs in (
        (_count(), 4_000),
        (Exponential(query=bounds.histogram("w", _WARDS, _REPLACE), epsilon=1), 1_500),
    ):
        honest, halved = (audit.check(plan, runs=runs, noise=noise, bits=SeededBits(4)) for noise in (Noise, Halved))
        assert not honest.broken
        assert halved.broken
        assert halved.epsilon > honest.epsilon


def test_what_fails_on_one_side_only_is_found() -> None:
    class Brittle(Exponential):
        def _run(self, rows: Any, run: Any) -> int:
            if len(rows) == 1:
                raise ValueError("one row")
            return super()._run(rows, run)

    found = audit.check(Brittle(query=bounds.votes("w", _WARDS, _ROW), epsilon=1), runs=400, bits=SeededBits(1))
    assert found.broken
    assert "failed" in found.event or "output" in found.event


def test_float_noise_is_told_by_its_lowest_bits() -> None:
    """x + Laplace noise in float64: near 0 there are more floats than near 1, so the lowest bit tells the input."""

    def laplace(x: float, noise: Noise) -> float:
        words = noise.integers(2**53, 2).astype(np.float64)
        return x + float(np.log((words[0] + 1) / 2.0**53) * (1 if words[1] < 2**52 else -1))

    found = audit.check_mechanism(laplace, [(0.0, 1.0)], 1.0, runs=4_000, bits=SeededBits(1))
    assert found.broken
    assert found.epsilon > 2


# ---------------------------------------------------------------------------------- the result


@pytest.fixture(scope="module")
def broken() -> Result:
    return audit.check(mutants.HalfNoise(query=bounds.count(_ROW), epsilon=1), runs=4_000, bits=SeededBits(1))


def test_the_curve_covers_every_claim_and_zero(broken: Result) -> None:
    claims = claims_of(_count())
    assert {point.delta for point in broken.curve} == {0.0, *claims}
    shown = [point.shown for point in broken.curve]
    assert shown == sorted(shown, reverse=True)
    assert all(point.claim == claims[point.delta] for point in broken.curve)
    gaussian = audit.check(Gaussian(query=bounds.count(_ROW), epsilon=1, delta=0.01), runs=400, bits=SeededBits(1))
    assert gaussian.curve[0].delta == 0
    assert gaussian.curve[0].claim == math.inf


def test_every_way_of_looking_reports(broken: Result) -> None:
    ways = {each.way: each for each in broken.found}
    assert set(ways) == {"exact law", "histogram", "classifier", "hockey stick", "renyi", "exact loss"}
    assert all(each.broken for each in ways.values())
    assert all(1 < ways[way].epsilon <= 2 for way in ("exact law", "histogram", "classifier"))


def test_a_result_says_what_it_found(broken: Result) -> None:
    text = str(broken)
    assert text.startswith("HalfNoise: BROKEN, epsilon >= ")
    assert "pair" in text and "4000 on each side" in text and "1e-06" in text
    html = broken._repr_html_()
    assert "BROKEN" in html and "<svg" in html and "<script" not in html


def test_the_same_bits_give_the_same_result() -> None:
    def once(seed: int) -> tuple[Any, ...]:
        plan = Exponential(query=bounds.votes("w", _WARDS, _ROW), epsilon=1)
        found = audit.check(plan, runs=200, bits=SeededBits(seed))
        return found.epsilon, found.pair, found.event, found.curve, found.evidence

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[tuple[float, str]] = []
    audit.check(_count(), runs=100, bits=SeededBits(1), progress=lambda share, text: seen.append((share, text)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.1
    assert shares[-1] == 1.0
    assert all(text for _, text in seen)


def test_time_is_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of runs follows the time and the cost of a run, whatever the clock says."""
    monkeypatch.setattr(looking.RunningAudit, "_cost", lambda self, pair: 0.001)
    few = audit.check(_count(), minutes=0.02, bits=SeededBits(1)).runs
    assert 50 <= few < 1_000
    monkeypatch.setattr(looking.RunningAudit, "_cost", lambda self, pair: 0.0001)
    assert audit.check(_count(), minutes=0.02, bits=SeededBits(1)).runs > few


def test_given_pairs_are_used() -> None:
    plan = Laplace(query=bounds.histogram("w", _WARDS, _ROW), epsilon=1)
    found = audit.check(plan, runs=400, bits=SeededBits(1), pairs=[({"w": []}, {"w": ["e"]})])
    assert found.pairs == 1
    assert found.pair == "a given pair"
    same = audit.check(plan, runs=400, bits=SeededBits(1), pairs=[({"w": ["e"]}, {"w": ["e"]})])
    assert same.epsilon == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"minutes": 1, "runs": 5}, "both given"),
        ({"minutes": -1}, "minutes"),
        ({"runs": 2}, "runs"),
        ({"false_alarm": 0.0}, "false_alarm"),
        ({"false_alarm": 2.0}, "false_alarm"),
        ({"pairs": [(1,)]}, "pairs"),
        ({"pairs": []}, "pairs"),
    ],
    ids=["both", "minutes", "runs", "no error", "too much error", "no pair", "no pairs"],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, ValueError), match=words):
        audit.check(_count(), **arguments)


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises((ArgumentError, TypeError, ValueError), match="plan"):
        audit.check("a plan")  # type: ignore[arg-type]
    for claims in ({}, {0.0: -1.0}, {1.0: 1.0}, {0.0: "1"}):
        with pytest.raises((ArgumentError, ValueError), match="claims"):
            audit.check_mechanism(lambda x: x, [(0, 1)], claims, runs=20)  # type: ignore[arg-type]
    with pytest.raises((ArgumentError, ValueError), match="pairs"):
        audit.check_mechanism(lambda x: x, [], 1.0, runs=20)


def test_units_without_neighbours_are_refused() -> None:
    """Two people are to be replaced, and there is a name for one."""
    unit = Unit("user:who", change="replace", group=2)
    with pytest.raises(ArgumentError, match="neighbours"):
        audit.check(Laplace(query=bounds.histogram("who", ("a",), unit), epsilon=1), runs=20)


def test_a_pair_that_is_given_twice_is_read_in_one_way() -> None:
    pair = next(neighbours.pairs(_count()))
    look = looking.RunningAudit(OfPlan(_count()), 1e-6, SeededBits(1), None)
    look.runs = 100
    chosen = look.chosen([pair, pair])
    assert len({id(choice.reading) for choice in chosen}) == 1


def test_an_engine_is_audited_too() -> None:
    pytest.importorskip("duckdb")
    plan = shipped.PLANS["Sql"]()
    found = audit.check(plan, runs=40, bits=SeededBits(1))
    assert not found.broken
    assert found.pairs >= 6


def test_a_wide_output_is_read_where_it_differs() -> None:
    """200 cells, of which one moves: the audit looks at that one."""
    cells = tuple(f"c{i}" for i in range(200))
    plan = mutants.HalfNoise(query=bounds.histogram("w", cells, _ROW), epsilon=1)
    assert schema.category(cells).categories == cells
    assert audit.check(plan, runs=2_000, bits=SeededBits(1)).broken
