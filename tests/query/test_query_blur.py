"""The noise of a query and its price, for every way to say what to spend."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Unit, events, sql
from sfumato.accounting import approximate, pure, zcdp
from sfumato.errors import ArgumentError
from sfumato.laws import RoundedGaussian, RoundedLaplace
from sfumato.query import Limits
from sfumato.query.blur import Blur, blur
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real

SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 50)}, unit="patient"
        )
    }
)
GIVEN = "SELECT ward, COUNT(*) AS n, SUM(days) AS s, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward"
CHOSEN = "SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug"
LIMITS = Limits(rows=4, keys=3)


def plan(text: str = GIVEN, *, unit: Unit | None = None, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=unit or Unit("user:patient"), limits=LIMITS, **options)


def test_epsilon_alone_buys_laplace_noise_and_costs_just_that() -> None:
    made = plan(epsilon=0.7)
    assert made.event == events.Laplace(epsilon=Fraction(7, 10), relation="add-remove")
    assert pure.epsilon(made.event) == Fraction(7, 10)
    assert made.delta == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (8, 1e-3)])
def test_epsilon_and_delta_buy_gaussian_noise_and_cost_no_more(epsilon: float, delta: float) -> None:
    made = plan(epsilon=epsilon, delta=delta)
    assert isinstance(made.event, events.Gaussian)
    price = approximate.epsilon(made.event, made.delta)
    assert Fraction(epsilon) * Fraction(999, 1000) < price <= Fraction(str(epsilon))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (8, 1e-3)])
def test_choosing_groups_is_within_the_delta(epsilon: float, delta: float) -> None:
    made = plan(CHOSEN, epsilon=epsilon, delta=delta)
    assert isinstance(made.event, events.Bundle)
    noise, keys = made.event.events
    assert keys == events.Approximate(epsilon=0, delta=made.delta / 2, relation="add-remove")
    assert isinstance(noise, events.Gaussian)
    price = approximate.epsilon(made.event, made.delta)
    assert Fraction(epsilon) * Fraction(999, 1000) < price <= Fraction(str(epsilon)) * (1 + Fraction(1, 10**9))


def test_rho_buys_gaussian_noise() -> None:
    made = plan(rho=0.02)
    assert Fraction(199, 10**4) < zcdp.rho(made.event) <= Fraction(2, 100)
    with pytest.raises(ArgumentError, match="delta is missing"):
        plan(CHOSEN, rho=0.02)
    chosen = plan(CHOSEN, rho=0.02, delta=1e-6)
    assert isinstance(chosen.event, events.Bundle)
    assert chosen.blur.key_delta == Fraction(1, 2 * 10**6) and chosen.price() > 0  # the other half is the noise's


def test_groups_cannot_be_chosen_without_delta() -> None:
    with pytest.raises(ArgumentError, match="delta is missing: which groups there are is private"):
        plan(CHOSEN, epsilon=1)
    assert plan(CHOSEN, epsilon=1, keys={"drug": ["x"]}).event == events.Laplace(epsilon=1, relation="add-remove")


@pytest.mark.parametrize("options", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
def test_more_sides_mean_more_noise_for_the_same_price(options: dict[str, Any]) -> None:
    """A replaced unit moves sums twice, a group of three thrice."""
    usual = plan(**options)
    for unit, times in (
        (Unit("user:patient", change="replace"), 2),
        (Unit("user:patient", group=3), 3),
        (Unit("user:patient", change="replace", group=3), 6),
    ):
        more = plan(unit=unit, **options)
        assert type(more.event) is type(usual.event) and more.event.relation == unit.change
        assert usual.fixed is not None and more.fixed is not None
        for one, other in zip(usual.fixed.sums, more.fixed.sums, strict=True):
            assert float(other.scale) == pytest.approx(times * float(one.scale), rel=1e-12)
            assert other.scale >= times * one.scale * (1 - Fraction(1, 2**50))


@pytest.mark.parametrize("options", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
@pytest.mark.parametrize(
    "text", [GIVEN, "SELECT MEDIAN(days) m, HISTOGRAM(days, [0, 1, 2]) h, AVG(days) a FROM visits"]
)
def test_all_noise_together_is_what_the_event_says(options: dict[str, Any], text: str) -> None:
    """Each coordinate at its full reach, in units of its noise: together they make its multiplier or epsilon."""
    made = plan(text, **options)
    design = made.fixed
    assert design is not None
    every = [(each, 1) for each in design.sums]
    every += [(design.votes.coordinate, 1)] if design.votes else []
    every += [(design.counted(name), tree.leaves.levels) for name, tree in design.questions.ranked.items()]
    every += [(design.counted(name), 1) for name in design.questions.binned]
    assert sum(each.share for each, _ in every) == 1
    blocks: dict[str, list[Any]] = {}
    used = Fraction(0)
    for each, levels in every:
        law = design.law(each)
        assert isinstance(law, RoundedGaussian | RoundedLaplace)
        real_scale = Fraction(law.spread) * Fraction(2) ** (each.exponent - each.bits)
        # A block's units weigh (share / total of the block) against 1: one coordinate at its full reach alone uses
        # exactly the block's share, which is what the shares of its coordinates add up to.
        power = 1 if isinstance(law, RoundedLaplace) else 2
        used += levels * (each.reach / real_scale) ** power
        blocks.setdefault(type(law).__name__, []).append(each)
    assert len(blocks) == 1
    if isinstance(made.event, events.Laplace):
        assert used <= made.event.epsilon
        assert used > made.event.epsilon * Fraction(999, 1000)
    else:
        assert isinstance(made.event, events.Gaussian)
        assert used <= 1 / made.event.multiplier**2
        assert used > Fraction(999, 1000) / made.event.multiplier**2


def test_half_the_noise_would_cost_more() -> None:
    """The control: the same sum over coordinates finds too little noise."""
    honest = blur(Unit("user:p"), epsilon=Fraction(1), delta=Fraction(1, 10**6), rho=None, selects=False)
    share = Fraction(1, 3)
    assert 3 * (Fraction(2) / honest.scale(Fraction(2), share)) ** 2 <= 1 / honest.amount**2
    cheat = Blur(honest.kind, honest.amount / 2, honest.unit)
    assert 3 * (Fraction(2) / cheat.scale(Fraction(2), share)) ** 2 > 1 / honest.amount**2


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_pull_is_never_too_weak(kind: Any) -> None:
    made = Blur(kind, Fraction(1), Unit("user:p"))
    for share in (Fraction(1), Fraction(1, 2), Fraction(3, 7)):
        for reach in (Fraction(1), Fraction(10, 3), Fraction(1, 10**6)):
            least = share / reach if kind == "laplace" else share / reach**2
            pull = made.pull(reach, share)
            assert least <= (pull if kind == "laplace" else pull**2) <= least * (1 + Fraction(1, 2**40))
