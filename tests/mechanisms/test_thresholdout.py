"""Thresholdout: the exact law of what it tells, the price, the published experiment, error bars, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bench.holdout import experiment
from sfumato import Unit, bounds, events
from sfumato.errors import ArgumentError, PlanError
from sfumato.mechanisms import Thresholdout
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import Table, real
from tests.helpers import seeded
from tests.mechanisms.gates import chance, loss

REPLACE = Unit(change="replace")
TABLE = Table({"x": real(0, 1)})


def plan_for(**fields: Any) -> Thresholdout:
    return Thresholdout(
        **{"threshold": 0.1, "sensitivity": 0.01, "count": 3, "protects": REPLACE}
        | ({} if "tau" in fields else {"epsilon": 1})
        | fields
    )


def mean_of(rows: int = 100) -> bounds.Share:
    return bounds.share(bounds.clipped_sum("x", 0, 1, REPLACE), rows)


def rows_of(x: Any) -> Rows:
    return Rows.read(TABLE, {"x": list(x)}, REPLACE)


def test_epsilon_and_tau_are_two_words_for_one_price() -> None:
    by_epsilon, by_tau = plan_for(epsilon=1.1), plan_for(tau=0.1)
    assert by_epsilon.event == by_tau.event and by_tau.price() == Fraction(11, 10) and by_tau.scale == 0.1
    tests = events.Pure(epsilon=Fraction(8, 10), relation="replace")
    each = events.Laplace(epsilon=Fraction(1, 10), relation="replace")
    assert by_tau.event == events.Sequence((tests, events.Repeat(each, 3)))
    for wrong in ({"tau": 1, "epsilon": 1}, {"tau": None, "epsilon": None}):
        with pytest.raises(ArgumentError, match="in one way"):
            plan_for(**wrong)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_told_is_within_the_price_of_the_tests(count: int) -> None:
    """All short sequences on neighbours, exactly; and the tight input comes near the price of one crossing."""
    plan = plan_for(count=count)
    gate, price = plan.gate, float(plan.event.events[0].epsilon)  # type: ignore[attr-defined]
    rng = np.random.default_rng(count)
    for _ in range(15):
        here = rng.integers(-3, 4, size=4) * gate.finer
        there = here + rng.choice([-gate.finer, 0, gate.finer], size=4)
        assert loss(gate, here, there) <= price * (1 + 1e-7)
    if count == 1:
        one, other = ((v,) * 300 + (w,) for v, w in ((-12, -60), (-11, -61)))
        told = (0,) * 300 + (1,)
        found = math.log(
            chance(gate, np.array(one) * gate.finer, told) / chance(gate, np.array(other) * gate.finer, told)
        )
        assert 0.95 * price < found <= price


def test_distances_move_no_further_than_the_mean_does() -> None:
    plan, query = plan_for(), mean_of()
    held = plan.accept((query, 0.42), TABLE)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.uniform(-0.5, 1.5, size=100)
        y = x.copy()
        y[0] = rng.choice([-9.0, 0.0, 1.0, math.inf])
        steps = [query.steps(rows_of(z), held.on_grid.exponent) for z in (x, y)]
        assert abs(int(steps[0][0] - steps[1][0])) <= held.on_grid.reach
        one, other = (int(held.on_grid.in_units(np.abs(s - held.steps), plan.gate.finer)[0]) for s in steps)
        assert abs(one - other) <= plan.gate.finer


def test_agreement_is_answered_by_the_training_value_itself() -> None:
    plan = plan_for(epsilon=10, threshold=0.5, questions=((mean_of(), 0.52),))
    rows = rows_of([0.5] * 100)
    assert plan.finish(plan._run(rows, seeded())) == [0.52]
    far = plan_for(epsilon=10, questions=((mean_of(), 5.0),))
    raw = far._run(rows, seeded())
    assert far.overfits(raw) == [True] and raw[0]["values"] == pytest.approx(0.5, abs=0.2)


def test_a_batch_stops_after_the_last_crossing() -> None:
    query = bounds.declared(
        lambda rows: np.full(6, len(rows) / 100), REPLACE, reads={}, labels=list("abcdef"), l1=1, l2=1, linf=0.01
    )
    plan = plan_for(epsilon=10, questions=((query, (1.0, 9.0, 1.0, 9.0, 9.0, 1.0)), (mean_of(), 0.5)))
    raw = plan._run(rows_of([0.5] * 100), seeded())
    assert len(raw) == 1 and raw[0]["above"].tolist() == [False, True, False, True, True]
    assert raw[0]["values"][[0, 2]].tolist() == [1.0, 1.0] and (np.abs(raw[0]["values"] - 1) < 0.5).all()
    assert plan.error(raw, 0.05)[0].shape == (5,)


def test_error_bars_cover_the_holdout() -> None:
    plan = plan_for(epsilon=2, count=1, questions=((mean_of(), 0.62),))  # near the threshold: both ways happen
    rows, run, alpha = rows_of([0.5] * 100), Run(Noise(SeededBits(2))), 0.1
    missed, above = 0, 0
    for _ in range(600):
        raw = plan._run(rows, run)
        missed += abs(plan.finish(raw)[0] - 0.5) > plan.error(raw, alpha)[0]
        above += raw[0]["above"]
    assert missed / 600 <= alpha and 60 < above < 540
    assert plan.expected_error(alpha) >= plan.error(raw, alpha)[0] * 0.999


def test_shares_are_exact_and_refuse_what_they_cannot_divide() -> None:
    share = mean_of(7)
    rows = rows_of([0.5, 1.0, 0.25])
    for exponent in (-20, -30):
        steps = int(share.steps(rows, exponent)[0])
        assert abs(Fraction(steps) * Fraction(2) ** exponent - Fraction(7, 28)) <= Fraction(2) ** exponent
    assert share.linf == pytest.approx(1 / 7) and share.in_steps(-20).linf == math.ceil(Fraction(2**20, 7))
    counts = bounds.share(bounds.histogram("w", ("a", "b"), REPLACE), 4)
    assert counts.coarsest == -3 and counts.finish(np.array([0.5, 0.25])) == {"a": 0.5, "b": 0.25}
    with pytest.raises(ArgumentError):
        bounds.share(bounds.mean("x", 0, 1, REPLACE), 4)
    with pytest.raises(ArgumentError):
        bounds.share(bounds.count(REPLACE), 0)


@pytest.mark.parametrize(
    "question",
    [
        7,
        mean_of(),
        (mean_of(), "high"),
        (mean_of(), math.nan),
        (mean_of(), (0.1, 0.2)),
        (mean_of(50), 0.5),
        (bounds.share(bounds.count(Unit()), 100), 0.5),
        (bounds.mean("x", 0, 1, REPLACE), 0.5),
    ],
)
def test_wrong_questions_are_refused_at_birth_and_when_asked(question: Any) -> None:
    with pytest.raises((ArgumentError, PlanError)):
        plan_for(questions=(question,))
    with pytest.raises((ArgumentError, PlanError)):
        plan_for().accept(question, TABLE)


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": 0},
        {"threshold": math.nan},
        {"sensitivity": 0},
        {"count": 0},
        {"epsilon": 0},
        {"tau": -1},
        {"tau": 1e-30},
        {"tau": 1e30},
        {"protects": 1},
        {"questions": 5},
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises((ArgumentError, PlanError)):
        plan_for(**fields)


class Repeating(SeededBits):
    """What a curator takes for the operating system's."""

    grade = "exact"


def test_the_published_experiment_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of coins, none of which means anything. Asked as it is, the holdout is overfitted by 5 points and more;
    through Thresholdout it says what fresh data say, within the noise of 2,000 rows and of the answer."""
    monkeypatch.setattr("sfumato.curator.SecureBits", lambda: Repeating(5))
    result = experiment(np.random.default_rng(5), rows=2000, attributes=2000, picks=100, count=1000)
    assert result.reused - result.reused_fresh > 0.05
    assert abs(result.holdout - result.fresh) < 0.05
    assert result.thresholdout < result.reused
    assert 0 < result.crossings < 1000
