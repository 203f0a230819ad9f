"""All quantiles at once: the price is that of the noise on the tree, and the answers are as good as promised."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, bounds, events, record
from sfumato import mechanisms as m
from sfumato.audit.conformance import ConformanceError, check_plan
from sfumato.errors import ArgumentError, PlanError
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import QuantileTree
from sfumato.record import record as registered
from sfumato.schema import category, key, real
from sfumato.strategies import Identity
from sfumato.units import RELATIONS
from tests.bounds.neighbouring import holds
from tests.helpers import read, seeded

ROW, REPLACE, USER = Unit(), Unit(change="replace"), Unit("user:u")
TABLE = Schema.of(u=key(), x=real(0, 100))
TENTHS = tuple(Fraction(k, 10) for k in range(1, 10))


def plan(unit: Unit = ROW, **how: Any) -> QuantileTree:
    given: dict[str, Any] = {"column": "x", "lower": 0, "upper": 100, "protects": unit, "q": TENTHS, "leaves": 512}
    if not {"epsilon", "rho", "multiplier"} & set(how):
        given["epsilon"] = 1
    return QuantileTree(**(given | how))


def rows_of(values: Any, unit: Unit = ROW, users: Any = None) -> Any:
    return read(TABLE, unit, u=range(len(values)) if users is None else users, x=list(values))


# The price


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize("of", ["row", "user:u"])
def test_the_event_is_that_of_the_noise(change: Any, of: str) -> None:
    unit = Unit(of, change)
    assert plan(unit).event == events.Laplace(epsilon=1, relation=change)
    gaussian = plan(unit, epsilon=1, delta=1e-6)
    assert isinstance(gaussian.event, events.Gaussian) and gaussian.event.relation == change
    assert gaussian.delta == Fraction(1, 10**6) and gaussian.price() <= 1
    assert plan(unit, rho=Fraction(1, 8)).event == events.Gaussian(multiplier=2, relation=change)
    assert plan(unit, multiplier=3).event == events.Gaussian(multiplier=3, relation=change)


def test_the_noise_is_scaled_to_what_one_unit_moves() -> None:
    for unit in (ROW, REPLACE, Unit(group=2), Unit("user:u")):
        per_unit = 3 if unit.column else 1
        made = plan(unit, per_unit=per_unit)
        levels, law = made.tree.height, made.noisy.law
        assert isinstance(law, RoundedLaplace)
        nodes = [part.size for part in made.tree.split(np.zeros(made.tree.measurements))]
        moved = 2 * sum(n > 1 for n in nodes) if unit.change == "replace" else levels
        assert law.scale * 2.0**made.noisy.exponent >= moved * per_unit * unit.group


CONTENTS = [{}, {"x": -1e300}, {"x": 0.0}, {"x": 30.0}, {"x": 99.0}, {"x": float("inf")}]


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize("of", ["row", "user:user"])
def test_no_neighbour_moves_the_tree_further(change: Any, of: str) -> None:
    made = plan(Unit(of, change), leaves=4, per_unit=1 if of == "row" else 2)
    holds(made.noisy.query, CONTENTS)


def test_it_keeps_every_promise() -> None:
    check_plan(plan(leaves=3, epsilon=1, delta=1e-6))  # with Laplace noise: see the rules' examples


@registered("plan-test-half-quantile-tree/1")
class HalfTheNoise(QuantileTree):
    """The same with half the noise.

    Guarantee: none. Needs: nothing. Paper: none.
    """

    @property
    def noisy(self) -> Any:  # type: ignore[override]
        return m.Laplace(query=super().noisy.query, epsilon=2 * self.epsilon)

    @property
    def event(self) -> events.Event:
        return events.Laplace(epsilon=self.epsilon, relation=self.unit.change)


def test_half_the_noise_is_noticed() -> None:
    broken = HalfTheNoise(column="x", lower=0, upper=100, protects=ROW, epsilon=1, leaves=3)
    with pytest.raises(ConformanceError):
        check_plan(broken)


# The answers


def true_quantile(values: Any, q: float) -> float:
    """The least value that has at least q n of the values at or below it."""
    ranked = np.sort(values)
    return float(ranked[max(int(np.ceil(q * len(ranked) - 1e-9)) - 1, 0)])


@pytest.mark.filterwarnings("ignore:epsilon")
def test_without_noise_to_speak_of_the_answers_are_the_quantiles() -> None:
    values = np.random.default_rng(1).gamma(2.0, 12.0, 4000).clip(0, 100)
    for how in ({"epsilon": 1000}, {"rho": 10**5}):
        made = plan(leaves=4096, **how)
        raw = made._run(rows_of(values), seeded(2))
        for q, value in made.finish(raw).items():
            assert abs(value - true_quantile(values, q)) < 2 * 100 / 4096 + 0.05


def test_any_other_quantile_is_free_and_in_order() -> None:
    made = plan()
    raw = made._run(rows_of(np.random.default_rng(1).normal(50, 15, 3000)), seeded(4))
    every = made.at(raw, np.arange(1, 1000) / 1000)
    assert list(every.values()) == sorted(every.values()) and len(every) == 999
    assert {q: every[q] for q in made.finish(raw)} == made.finish(raw)
    assert min(every.values()) >= 0 and max(every.values()) <= 100


@pytest.mark.parametrize("how", [{"epsilon": 0.2}, {"rho": 0.01}])
@pytest.mark.parametrize("shape", ["normal", "tied", "two lumps"])
def test_error_bars_cover(how: dict[str, Any], shape: str) -> None:
    rng = np.random.default_rng(6)
    lumps = np.append(rng.normal(20, 1, 1000), rng.normal(80, 1, 1000))
    values = {"normal": rng.normal(50, 15, 2000), "tied": np.full(2000, 37.0), "two lumps": lumps}[shape].clip(0, 100)
    made, rows = plan(**how), rows_of(values)
    truth = np.array([true_quantile(values, float(q)) for q in TENTHS])
    held = []
    for seed in range(40):
        raw = made._run(rows, seeded(seed))
        off = np.abs(np.array(list(made.finish(raw).values())) - truth)
        held.append(off <= np.array(list(made.error(raw, 0.1).values())) + 1e-9)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("how", [{"epsilon": 0.2}, {"rho": 0.01}])
def test_rank_errors_hold_for_all_quantiles_at_once(how: dict[str, Any]) -> None:
    values = np.random.default_rng(8).uniform(0, 100, 5000)
    made, rows = plan(**how), rows_of(values)
    ranked, cuts, allowed, held = np.sort(values), made._bins.cuts, made.rank_error(0.1), 0
    for seed in range(40):
        answers = made.finish(made._run(rows, seeded(seed)))
        leaf = np.clip(np.searchsorted(cuts, list(answers.values()), side="left"), 1, made.leaves)
        wanted = 5000 * np.array(list(answers))
        below = np.searchsorted(ranked, cuts[leaf - 1], side="left")
        above = np.searchsorted(ranked, cuts[leaf], side="right")
        held += bool((np.maximum(below - wanted, wanted - above) <= allowed).all())
    assert held >= 36


def test_the_rank_error_grows_with_the_logarithm_of_the_leaves() -> None:
    """Not with their square root, as noise on every leaf alone would; and it is all of the same release."""
    errors = [plan(leaves=4**k, rho=0.1).rank_error(0.05) for k in (3, 5, 7)]
    assert errors[2] < 3 * errors[0]  # the square root of the leaves grows by 16
    flat = m.Gaussian(query=bounds.cumulative(plan(leaves=4**7)._bins, strategy=Identity(cells=4**7)), rho=0.1)
    assert errors[2] < (flat.expected_error(0.05) or 0.0) / 5


def test_many_quantiles_beat_the_exponential_mechanism_at_the_same_price() -> None:
    tree = plan(leaves=2**14, q=[k / 100 for k in range(1, 100)])
    one_by_one = m.Quantile(column="x", lower=0, upper=100, q=tree.q, epsilon=1, protects=ROW, step=2**-7)
    assert tree.rank_error(0.05) < one_by_one.rank_error(0.05) / 5
    single = m.Quantile(column="x", lower=0, upper=100, epsilon=1, protects=ROW, step=2**-7)
    assert single.rank_error(0.05) < tree.rank_error(0.05)


def test_a_user_counts_as_at_most_per_unit_rows() -> None:
    """One user with 100,000 rows at the top does not move the median of 2,000 others."""
    values = np.append(np.random.default_rng(3).normal(40, 5, 2000), np.full(100_000, 100.0))
    users = np.append(np.arange(2000), np.full(100_000, 5000))
    made = plan(USER, per_unit=1, epsilon=1)
    answers = made.finish(made._run(rows_of(values, USER, users), seeded(9)))
    assert abs(answers[0.5] - 40) < 2


ODD: list[list[Any]] = [
    [],
    [None] * 5,
    [float("nan"), float("inf"), float("-inf")],
    [50.0],
    [1e308, -1e308],
    [5e-324] * 30,
    [37.0] * 1000,
    ["n/a", "7", None],
]


@pytest.mark.parametrize("values", ODD, ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("how", [{"epsilon": 0.01}, {"epsilon": 9}, {"rho": 1e-6}])
def test_odd_data_gets_answers_of_the_same_shape(values: list[Any], how: dict[str, Any]) -> None:
    made = plan(**how)
    for seed in range(3):
        raw = made._run(rows_of(values), seeded(seed))
        found, bars = made.finish(raw), made.error(raw, 0.05)
        assert list(found) == list(bars) == [float(q) for q in TENTHS]
        assert all(0 <= v <= 100 for v in found.values()) and list(found.values()) == sorted(found.values())
        assert all(0 <= bar <= 100 for bar in bars.values())
    nothing = made.finish(np.full(made.noisy.query.size, -5.0))
    assert nothing[0.5] == 50 and nothing[0.1] == pytest.approx(10)


REFUSED: list[Callable[[], Any]] = [
    lambda: plan(q=[]),
    lambda: plan(q=[0, 0.5]),
    lambda: plan(q=[1]),
    lambda: plan(q=[0.5, 0.5]),
    lambda: plan(q=0.5),
    lambda: plan(q="0.5"),
    lambda: plan(q=[float("nan")]),
    lambda: plan(leaves=1),
    lambda: plan(leaves=2**21),
    lambda: plan(lower=5, upper=5),
    lambda: plan(lower=float("nan")),
    lambda: plan(per_unit=2),
    lambda: plan(epsilon=0),
    lambda: plan(epsilon=1, delta=1),
    lambda: plan(epsilon=1, rho=1),
    lambda: plan(rho=-1),
    lambda: plan(protects="row"),
    lambda: plan(column=""),
    lambda: QuantileTree(column="x", lower=0, upper=1, protects=ROW),
]


@pytest.mark.parametrize("make", REFUSED)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError):
        make()


def test_other_columns_are_refused() -> None:
    with pytest.raises(PlanError):
        plan().check(Schema.of(x=category(["a"])).table())


def test_json_and_words() -> None:
    for made in (plan(), plan(epsilon=1, delta=1e-6), plan(rho=0.1), plan(USER, per_unit=4, multiplier=2)):
        again = record.parse(record.canonical(made))
        assert again == made and again.hash == made.hash and again.event == made.event
        assert any("rows at 95 %" in line for line in made.explain())
        assert made.expected_error(0.05) is None
