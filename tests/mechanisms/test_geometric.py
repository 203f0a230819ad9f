"""The geometric mechanism: published values, the exact loss, whole answers, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato import Schema, Unit, bounds, events
from sfumato.audit.conformance import ConformanceError, check_plan
from sfumato.audit.losses import pure_loss
from sfumato.errors import ArgumentError
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms import Geometric, Laplace
from sfumato.record import record
from sfumato.schema import category, key
from sfumato.units import RELATIONS
from tests.helpers import read, seeded

SCHEMA = Schema.of(u=key(), w=category(("a", "b", "c")))


def test_published_values() -> None:
    """P(0) and variance of the discrete Laplace law with t = 1."""
    law = Geometric(query=bounds.count(Unit()), epsilon=1).law
    assert isinstance(law, DiscreteLaplace) and law.scale == 1
    assert float(law.pmf(0)) == pytest.approx(0.46211716, abs=5e-9)
    assert law.variance == pytest.approx(1.84134719, abs=5e-8 / 10 * 2)


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize(("per_unit", "group", "epsilon"), [(1, 1, 1), (3, 2, 0.7), (2, 1, 5)])
def test_the_loss_of_the_largest_shift_is_the_price(change: str, per_unit: int, group: int, epsilon: float) -> None:
    unit = Unit("user:u", change, group)  # type: ignore[arg-type]
    plan = Geometric(query=bounds.histogram("w", ("a", "b", "c"), unit, per_unit=per_unit), epsilon=epsilon)
    shift = per_unit * group * (2 if change == "replace" else 1)
    assert plan.event == events.DiscreteLaplace(epsilon=epsilon, shift=shift, relation=unit.change)
    assert plan.exponent == 0
    for split in ((shift,), (shift - 1, 1), (1,) * shift):
        found = pure_loss(plan.law, split)
        assert found <= epsilon * (1 + 1e-9) and found > epsilon * (1 - 1e-9)


def test_rows_shared_out_in_whole_rows_stay_within_the_sensitivity() -> None:
    """A user with more rows than count, spread unevenly: whole shares, never more than per_unit in all."""
    unit = Unit("user:u")
    for per_unit in (1, 2, 3):
        query = bounds.histogram("w", ("a", "b", "c"), unit, per_unit=per_unit)
        for cells in ("aaa", "aab", "abc", "aaaabbc", "a" * 50 + "b" * 49, "c"):
            moved = query.steps(read(SCHEMA, unit, u=[1] * len(cells), w=list(cells)), 0)
            assert moved.min() >= 0 and int(moved.sum()) <= per_unit == query.in_steps(0).l1


def test_answers_are_whole_and_error_bars_cover() -> None:
    plan, run = Geometric(query=bounds.histogram("w", ("a", "b", "c"), Unit()), epsilon=0.5), seeded()
    rows = read(SCHEMA, Unit(), u=range(40), w=["a"] * 30 + ["b"] * 10)
    drawn = np.array([list(plan.finish(plan._run(rows, run)).values()) for _ in range(3000)])
    assert (drawn == np.rint(drawn)).all()
    for alpha in (0.3, 0.05):
        width = plan.expected_error(alpha)
        assert width is not None and width == int(width)
        assert (np.abs(drawn - [30, 10, 0]) > width).mean() <= alpha + 4 * math.sqrt(alpha / 9000)
    laplace = Laplace(query=plan.query, epsilon=0.5)
    assert plan.std == pytest.approx(laplace.std, rel=0.02)


@record("test-geometric-halved/1")
@dataclass(frozen=True, kw_only=True)
class Halved(Geometric):
    """Half the noise.

    Guarantee: none. Needs: nothing. Paper: none."""

    @property
    def _scale(self) -> Fraction:
        return super()._scale / 2


def test_half_the_noise_is_caught() -> None:
    check_plan(Geometric(query=bounds.count(Unit()), epsilon=1))
    with pytest.raises(ConformanceError, match="exact epsilon"):
        check_plan(Halved(query=bounds.count(Unit()), epsilon=1))


def test_what_is_refused_and_why() -> None:
    for query in (bounds.mean("x", 0, 1, Unit()), bounds.clipped_sum("x", 0, 1, Unit())):
        with pytest.raises(ArgumentError, match="whole numbers"):
            Geometric(query=query, epsilon=1)
    with pytest.raises(ArgumentError, match="query"):
        Geometric(query=3, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="epsilon"):
        Geometric(query=bounds.count(Unit("user:u", group=10**6), per_unit=2**18), epsilon=0.001)
    small = Geometric(query=bounds.count(Unit()), epsilon=10)  # far less noise than a step: fine
    assert small.finish(small._run(read(SCHEMA, Unit(), u=[], w=[]), seeded())) == 0
