"""Continual counting: one price for all steps, the same law online and offline, published errors, and its mutants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.audit import losses
from sfumato.audit.conformance import check_plan
from sfumato.audit.neighbours import Pair, pairs
from sfumato.bounds import Increments, Running
from sfumato.errors import ArgumentError, DataError, PlanError, PrivacyWarning
from sfumato.laws import Law
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import key, whole
from sfumato.strategies import Banded, Causal, Prefixes, Reach, SquareRoot, StepTree
from sfumato.units import RELATIONS
from tests.helpers import read, seeded, spent

TABLE = Schema.of(who=key(), day=whole(0, 10_000))
ROW, USER = Unit(), Unit("user:who")


def plan_for(horizon: int, unit: Unit = ROW, *, per_unit: int = 1, separation: int | None = None, **more: Any) -> Any:
    query = bounds.increments("day", horizon, unit, per_unit=per_unit, separation=separation)
    return m.ContinualCount(query=query, **(more or {"epsilon": 1, "delta": 1e-6}))


def days(unit: Unit, *given: int | None, who: Any = None) -> Rows:
    return read(TABLE, unit, who=list(range(len(given))) if who is None else who, day=list(given))


def plans() -> list[m.ContinualCount]:
    return [
        plan_for(9),
        plan_for(9, strategy=StepTree(cells=9), epsilon=1),
        plan_for(70, epsilon=1),
        plan_for(8, strategy="square-root", epsilon=2),
        plan_for(13, strategy="tree", rho=0.1),
        plan_for(12, USER, per_unit=3),
        plan_for(12, USER, per_unit=3, separation=4, strategy="banded", rho=0.5),
        plan_for(12, USER, per_unit=5, separation=1, epsilon=1),
        plan_for(1),
    ]


# ------------------------------------------------------------------------------------------------ one price


def test_the_price_is_one_release_whatever_is_asked() -> None:
    for horizon in (1, 10, 5000):
        assert plan_for(horizon, epsilon=1).event == events.Laplace(epsilon=1)
        assert plan_for(horizon, rho=0.5).event == events.Gaussian(multiplier=1)
    assert plan_for(50).price() <= 1 and plan_for(50).delta == plan_for(3).delta
    assert plan_for(4, Unit(change="replace"), epsilon=1).event.relation == "replace"


def test_the_better_strategy_is_the_default() -> None:
    assert isinstance(plan_for(8).strategy, SquareRoot) and isinstance(plan_for(8, rho=1).strategy, SquareRoot)
    assert isinstance(plan_for(8, epsilon=1).strategy, StepTree)
    for pure in (True, False):
        noise = {"epsilon": 1} if pure else {"epsilon": 1, "delta": 1e-6}
        chosen = plan_for(1024, **noise).expected_error(0.05)
        others = [plan_for(1024, strategy=name, **noise).expected_error(0.05) for name in ("tree", "square-root")]
        assert chosen == min(others)
    banded = plan_for(64, USER, per_unit=4, separation=16, strategy="banded", rho=1)
    assert banded.strategy == Banded(cells=64, bands=16)
    assert banded.expected_error(0.05) < plan_for(64, USER, per_unit=4, rho=1).expected_error(0.05)


@pytest.mark.parametrize("plan", plans(), ids=repr)
def test_online_and_offline_are_the_same(plan: m.ContinualCount) -> None:
    """The same words of noise give the same answers, so the laws are equal."""
    horizon = plan.query.horizon
    who = [i % 4 for i in range(40)]
    rows = days(plan.unit, *(7 * i % (horizon + 1) for i in range(40)), who=who)
    at_once = plan._run(rows, seeded(3))
    conversation, one_by_one = plan._begin(seeded(3)), []
    for step in range(horizon):
        assert not conversation.over
        one_by_one.append(conversation.answer(rows, None))
        assert plan.finish(one_by_one)[-1] == pytest.approx(plan.finish(at_once)[step], abs=1e-6)
        assert plan.error(one_by_one, 0.05) == plan.error(at_once, 0.05)[: step + 1]
    assert conversation.over and [noisy for step in one_by_one for noisy in step] == at_once.tolist()


# ------------------------------------------------------------------------------------------------ the law


def worst(plan: m.ContinualCount, neighbours: list[Pair] | None = None) -> float:
    """The largest share of anything declared or paid for that some pair of neighbours takes."""
    made = list(pairs(plan)) if neighbours is None else neighbours
    moved = [loss for pair in made for loss in losses.movements(plan.measured, pair)]
    claims = {float(plan.delta): float(plan.price())}
    moved += [loss for loss, _ in losses.of_pairs(plan.measured, made, claims)]
    return max(loss.share for loss in moved)


@pytest.mark.parametrize("unit", [Unit(of, change) for of in ("row", "user:who") for change in RELATIONS], ids=str)
def test_neighbours_lose_what_is_paid_for_and_no_more(unit: Unit) -> None:
    for per_unit, separation in [(1, None)] if unit.column is None else [(1, None), (2, None), (3, 2)]:
        neighbours: list[Pair] = []
        for strategy, noise in product(
            (StepTree(cells=6), "square-root"), ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6})
        ):
            plan = plan_for(6, unit, per_unit=per_unit, separation=separation, strategy=strategy, **noise)
            neighbours = neighbours or [pair for pair in pairs(plan) if "far ahead" not in pair.change]
            assert (0.99 if separation is None else 0.4) < worst(plan, neighbours) <= 1 + 1e-9


def log_ratio(law: Law, told: int, here: int, there: int) -> float:
    return float(np.log(law.pmf(told - here)) - np.log(law.pmf(told - there)))


def test_an_adversary_who_chooses_the_data_gains_nothing() -> None:
    """What later steps add answers to what was told, with the unit (in any one step) and without it. Every path of
    every such game loses at most epsilon."""
    plan = plan_for(4, strategy=StepTree(cells=4), epsilon=1)
    law, exponent, tree = plan.measured.law, plan.measured.exponent, plan.strategy
    rng = np.random.default_rng(1)
    largest = 0.0
    for game in range(300):
        unit_at = game % 4
        here, there = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
        loss, said = 0.0, 0
        for step in range(4):
            added = abs(said) % 7  # the data answers
            there[step] = added << -exponent
            here[step] = (added + (step == unit_at)) << -exponent
            for a, b in zip(tree.latest(here[: step + 1]), tree.latest(there[: step + 1]), strict=True):
                said = int(b) + int(rng.integers(-5, 6) * law.spread)  # any outcome, likely or not
                loss += log_ratio(law, said, int(a), int(b))
        largest = max(largest, abs(loss))
    assert 0.9 < largest <= 1 + 1e-9


@pytest.mark.slow
def test_the_plan_holds_every_promise() -> None:
    check_plan(plan_for(5, Unit(change="replace"), strategy=StepTree(cells=5), epsilon=1))


# ------------------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True, kw_only=True)
class _Prefixes(SquareRoot):
    """The totals themselves, each with its own noise, as if one unit moved only one of them."""

    @cached_property
    def weights(self) -> Any:
        return np.full(self.cells, 2**20, dtype=np.int64)

    @property
    def column_norms(self) -> Reach:
        return Reach(2**20, 4**20, 2**20)


@dataclass(frozen=True, kw_only=True)
class _Ideal(SquareRoot):
    """The sensitivity of the real square root, not of the rounded one that is measured."""

    @property
    def column_norms(self) -> Reach:
        right = super().column_norms
        ideal = sum((math.comb(2 * k, k) ** 2 << 40) // 16**k for k in range(self.cells))
        return Reach(right.l1, ideal, right.linf)


@dataclass(frozen=True, kw_only=True)
class _EveryStep(Increments):
    """A unit counts in every step, and is paid for as if it counted once."""

    def _kept(self, pairs: Any, weight: Any) -> Any:
        return np.minimum(weight, self.per_unit)


@dataclass(frozen=True, kw_only=True)
class _OneColumn(Running):
    """A unit that comes again is paid for as if its rows moved different measurements."""

    @property
    def sensitivity(self) -> Any:
        right = self.strategy.column_norms
        times, step = self.query.times, Fraction(1, 2**20)
        return bounds.Sensitivity(times * right.l1 * step, times * right.l2_squared * step**2, right.linf * step)


def test_fresh_noise_on_every_total_is_caught() -> None:
    plan = plan_for(6, strategy=_Prefixes(cells=6), epsilon=1, delta=1e-6)
    assert worst(plan) > 5


def test_the_sensitivity_of_the_matrix_before_rounding_is_caught() -> None:
    cells = next(
        n
        for n in range(3, 200)
        if _Ideal(cells=n).column_norms.l2_squared * (1 + 2e-8) < SquareRoot(cells=n).column_norms.l2_squared
    )
    assert worst(plan_for(cells, strategy=_Ideal(cells=cells), epsilon=1, delta=1e-6)) > 1 + 1e-8
    assert worst(plan_for(cells)) <= 1 + 1e-9


def test_a_unit_that_counts_in_every_step_is_caught() -> None:
    query = _EveryStep(column="day", horizon=6, unit=USER)
    for noise in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}):
        assert worst(m.ContinualCount(query=query, **noise)) > 1.5


def test_rows_that_meet_paid_for_as_if_they_did_not_are_caught() -> None:
    query = bounds.increments("day", 6, USER, per_unit=4, separation=1)
    plan = m.ContinualCount(query=query, rho=0.5)
    wrong = _OneColumn(query=query, strategy=plan.strategy, workload=Prefixes(cells=6), unit=USER)
    noisy = m.Gaussian(query=wrong, rho=0.5)
    moved = [loss for pair in pairs(plan) for loss in losses.movements(noisy, pair)]
    assert any(loss.broken for loss in moved)


# ------------------------------------------------------------------------------------------------ utility


@pytest.mark.parametrize(
    ("strategy", "largest", "mean"),
    [
        (SquareRoot(cells=128), 6.812642, 5.996747),
        (StepTree(cells=128, refined=False), 56, 28.0625),
        (StepTree(cells=128), 34.395449, 17.229097),
        (SquareRoot(cells=1024), 10.709611, 9.670793),
        (StepTree(cells=1024, refined=False), 110, 55.010742),
    ],
    ids=repr,
)
def test_published_errors_are_the_errors_of_the_plan(strategy: Causal, largest: float, mean: float) -> None:
    """In units of the squared noise multiplier: what a count by itself would get."""
    plan = plan_for(strategy.cells, strategy=strategy, rho=0.5)
    assert (plan.stds**2).max() == pytest.approx(
        largest, rel=1e-3 if largest < 40 and plan.strategy.bits == 0 else 3e-6
    )
    assert (plan.stds**2).mean() == pytest.approx(mean, rel=2e-3 if plan.strategy.bits == 0 else 3e-6)


def drawn(plan: m.ContinualCount, rows: Rows, runs: int, seed: int) -> Any:
    run = Run(Noise(SeededBits(seed)))
    return np.array([plan.finish(plan._run(rows, run)) for _ in range(runs)])


@pytest.mark.parametrize("strategy", ["square-root", "tree"])
@pytest.mark.parametrize("noise", [{"rho": 0.5}, {"epsilon": 1}], ids=repr)
def test_errors_are_as_computed_and_bars_cover(strategy: str, noise: dict[str, Any]) -> None:
    plan = plan_for(128, strategy=strategy, **noise)
    rows = days(ROW, *range(0, 128, 3))
    truth = np.cumsum(np.bincount(range(0, 128, 3), minlength=128))
    runs = 1000
    errors = drawn(plan, rows, runs, 5) - truth
    assert np.abs(errors.mean(axis=0) / plan.stds).max() < 5.5 / math.sqrt(runs)  # unbiased
    # The kurtosis of Laplace noise is 6: the squares spread sqrt(5/runs) at most.
    assert (errors**2).mean(axis=0) == pytest.approx(plan.stds**2, rel=5.5 * math.sqrt(5 / runs))
    for alpha in (0.05, 0.3):
        missed = (np.abs(errors) > plan.error([[0.0]] * 128, alpha)).mean(axis=0)
        assert missed.max() <= alpha + 5 * math.sqrt(alpha / runs)
    if noise == {"rho": 0.5}:
        assert missed.min() >= 0.2  # and Gaussian bars are no wider than they must be


def test_the_root_beats_the_tree_as_published() -> None:
    rows = days(ROW)
    plain = drawn(plan_for(256, strategy=StepTree(cells=256, refined=False), rho=0.5), rows, 300, 1)
    refined = drawn(plan_for(256, strategy=StepTree(cells=256), rho=0.5), rows, 300, 2)
    root = drawn(plan_for(256, rho=0.5), rows, 300, 3)
    largest = [(totals**2).mean(axis=0).max() for totals in (plain, refined, root)]
    expected = [
        9 * 8,
        9 * sum(2**k / (2 ** (k + 1) - 1) for k in range(8)),
        SquareRoot(cells=256).running_mixing.l2[-1] ** 4,
    ]
    assert largest == pytest.approx(expected, rel=0.45)
    assert (plain**2).mean() > 1.5 * (refined**2).mean() and (refined**2).mean() > 2.7 * (root**2).mean()


def test_errors_shrink_with_epsilon_and_grow_slowly_with_the_horizon() -> None:
    widths = [plan_for(64, epsilon=e, delta=1e-6).expected_error(0.05) for e in (0.1, 0.5, 2)]
    assert widths == sorted(widths, reverse=True)
    years = [plan_for(h, rho=0.5).stds.max() for h in (365, 3650)]
    assert years[1] / years[0] < 1.3  # ten times the steps: ask for a horizon that is long enough


# ------------------------------------------------------------------------------------------------ sessions


def curator_of(data: dict[str, Any], unit: Unit, epsilon: int = 3) -> Curator:
    ledger = MemoryLedger({"visits": Budget(epsilon=epsilon, delta=1e-5)})
    return Curator(Private("visits", data, unit=unit, schema=TABLE), ledger)


def test_a_session_reads_the_data_as_it_grows() -> None:
    data: dict[str, Any] = {"who": [], "day": []}
    with pytest.warns(PrivacyWarning, match="weak"):  # nearly no noise, to see what is counted
        curator = curator_of(data, USER, epsilon=10_000)
        plan = plan_for(4, USER, per_unit=2, epsilon=9000)
    totals = []
    with curator.session(plan) as session:
        data["who"] += [1, 2, 3]
        data["day"] += [0, 0, 3]  # 3 is early: not yet
        totals.append(session.ask())
        data["who"] += [4, 1, 1]
        data["day"] += [0, 1, 1]  # 4 is late: not counted; 1 has room for one more row
        totals.append(session.ask())
        for name in data:
            data[name] = data[name][3:]  # old rows go, and 1 still has no room
        data["who"] += [1, 5]
        data["day"] += [2, 2]
        totals.append(session.ask())
        assert not session.over
        totals.append(session.ask())
        assert session.over
        with pytest.raises(PlanError, match="over"):
            session.ask()
        told = session.release
    assert totals == pytest.approx([2, 3, 4, 4], abs=0.2)  # 3's early row went before its day
    assert told.value == pytest.approx(totals) and len(told.error()) == 4 and "± " in str(told)


def test_a_session_is_paid_for_once() -> None:
    curator = curator_of({"who": [1, 2], "day": [0, 1]}, ROW)
    plan = plan_for(3)
    with curator.session(plan) as session:
        after = spent(curator.ledger, "visits")  # type: ignore[arg-type]
        for _ in range(3):
            session.ask()
            assert len(session.release.value) == len(session.release.error()) == len(session.release.raw)
        with pytest.raises(PlanError, match="over"):
            session.ask()
    assert spent(curator.ledger, "visits") == after  # type: ignore[arg-type]
    release = curator.release(plan)
    assert len(release.value) == 3 and curator.release(plan).raw.tolist() == release.raw.tolist()
    assert curator.rehearse(plan).receipt is None
    assert curator.quote(plan).error() == plan.expected_error(0.05)


def test_questions_are_refused() -> None:
    curator = curator_of({"who": [1], "day": [0]}, ROW)
    with curator.session(plan_for(3)) as session:
        with pytest.raises(PlanError, match="takes no question"):
            session.ask(2)
        assert isinstance(session.ask(), float)


def test_a_failure_ends_the_session_and_tells_nothing() -> None:
    data: dict[str, Any] = {"who": [1], "day": [0]}
    curator = curator_of(data, ROW)
    with curator.session(plan_for(3)) as session:
        session.ask()
        data["day"] = [0, 1]  # columns of different lengths
        with pytest.raises(DataError):
            session.ask()
        assert session.over


# ------------------------------------------------------------------------------------------------ odd things


def test_what_leaves() -> None:
    plan = plan_for(3, USER, per_unit=4, separation=1, strategy=StepTree(cells=3), epsilon=1)
    rows = days(USER, 0, 1, 1, 2, None, who=[1, 1, 1, 2, 3])
    raw = plan._run(rows, seeded())
    assert raw.shape == (4,) and plan.strategy.measurements_by_step.tolist() == [1, 3, 4]  # a tree of three steps
    assert len(plan.finish(raw)) == 3 and plan.finish([]) == [] and plan.error([], 0.05) == []
    words = " ".join(plan.explain())
    assert "at most 3 row(s)" in words and "StepTree" in words and "at least 1 steps apart" in words
    assert "each row counts" in " ".join(plan_for(3).explain())


def test_a_million_rows_in_one_step_and_long_horizons() -> None:
    rows = read(TABLE, ROW, who=np.zeros(10**6, dtype=np.int64), day=np.full(10**6, 4999))
    for noise in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-9}):
        plan = plan_for(5000, **noise)
        totals = plan.finish(plan._run(rows, seeded()))
        assert len(totals) == 5000 and totals[-1] == pytest.approx(10**6, abs=2 * plan.expected_error(1e-6))


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"strategy": "banded"}, "separation"),
        ({"strategy": "best"}, "strategy"),
        ({"strategy": 3}, "strategy"),
        ({"strategy": SquareRoot(cells=5)}, "cells"),
        ({"rho": 1}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"epsilon": 1e-9, "delta": 0, "strategy": "square-root"}, "noise"),
        ({"query": bounds.count(ROW)}, "query"),
    ],
    ids=repr,
)
def test_arguments_are_refused_by_name(fields: dict[str, Any], name: str) -> None:
    query = bounds.increments("day", 4, ROW)
    with pytest.raises(ArgumentError, match=name):
        m.ContinualCount(**{"query": query, "epsilon": 1, "delta": 1e-6, **fields})
