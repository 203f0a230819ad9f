"""A contribution limit: the quantile of rows per unit, exactly priced."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Schema, Unit, events
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.mechanisms.ranking import RankedRows
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import key
from tests.helpers import read, seeded
from tests.mechanisms.selecting import exactly
from tests.mechanisms.test_quantile import law, race_of

SCHEMA = Schema.of(u=key())
MOST = 4


def plan_for(change: Any = "add-remove", q: Any = 0.75, epsilon: Any = 1, group: int = 1) -> m.ContributionLimit:
    return m.ContributionLimit(most=MOST, q=q, epsilon=epsilon, protects=Unit("user:u", change, group))


def rows_of(unit: Unit, owned: Any) -> Any:
    return read(SCHEMA, unit, u=[i for i, count in enumerate(owned) for _ in range(count)])


def logs(plan: m.ContributionLimit, owned: Any) -> list[Any]:
    """ln P(limit), from the race that a run on these rows holds."""
    caught: list[RankedRows] = []

    def catch(ranked: RankedRows, q: Fraction, rate: Fraction, run: Run) -> int:
        caught.append(ranked)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RankedRows, "choose", catch)
        plan._run(rows_of(plan.unit, owned), seeded())
    return [mp.log(p) for p in law(list(race_of(caught[0], plan.q, plan.rate).values()))]


@pytest.mark.parametrize("change", ["add-remove", "replace"])
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(3, 4), Fraction(1)], ids=str)
def test_all_small_neighbours_are_within_epsilon_and_its_range(q: Fraction, change: Any) -> None:
    plan, widest = plan_for(change, q), mp.mpf(0)
    with mp.workdps(30):
        for size in range(4):
            for owned in combinations_with_replacement((1, 2, 4, 9), size):
                here = logs(plan, owned)
                changed = [(*owned, x) for x in (1, 3, 9)] if change == "add-remove" else []
                changed += [(*owned[1:], x) for x in (1, 3, 9)] if change == "replace" and owned else []
                for other in changed:
                    ratios = [a - b for a, b in zip(here, logs(plan, other), strict=True)]
                    widest = max(widest, max(ratios) - min(ratios))
                    assert max(map(abs, ratios)) <= 1 + mp.mpf(10) ** -12
        assert widest <= 1 + mp.mpf(10) ** -12
        assert widest * 2 > exactly(Fraction(11, 10))  # half the noise would be seen


def test_the_price_and_the_rate() -> None:
    assert plan_for().event == events.Exponential(epsilon=1)
    assert plan_for(q=Fraction(1, 2)).rate == Fraction(1, 2)  # a step of score is half a unit, and span 1
    assert plan_for("replace", group=3).rate == Fraction(1, 24)
    assert plan_for(q=1).rate == 1


def test_the_limit_is_found() -> None:
    unit = Unit("user:u")
    owned = np.concatenate([np.full(900, 3), np.full(100, 40)])
    rows = read(SCHEMA, unit, u=np.repeat(np.arange(1000), owned))
    run = Run(Noise(SeededBits(2)))
    for q, limit in ((0.5, 3), (0.85, 3), (0.97, 40)):
        plan = m.ContributionLimit(most=100, q=q, epsilon=1, protects=unit)
        assert {plan._run(rows, run) for _ in range(20)} == {limit}
    capped = m.ContributionLimit(most=10, q=0.97, epsilon=1, protects=unit)
    assert capped._run(rows, run) == 10
    assert "units at 95 %" in capped.explain()[1]


def test_the_rank_is_as_good_as_the_theorem_says() -> None:
    unit, owned = Unit("user:u"), np.arange(1, 201)
    rows = read(SCHEMA, unit, u=np.repeat(np.arange(200), owned))
    plan = m.ContributionLimit(most=300, q=0.5, epsilon=0.5, protects=unit)
    run, off = Run(Noise(SeededBits(6))), []
    for _ in range(300):
        limit = plan._run(rows, run)
        off.append(max(0, (owned < limit).sum() - 100, 100 - (owned <= limit).sum()))
    for alpha in (0.05, 0.5):
        assert np.mean(np.array(off) > plan.rank_error(alpha)) <= alpha


def test_odd_tables_have_a_limit() -> None:
    for change in ("add-remove", "replace", "zero-out"):
        plan = plan_for(change)
        for owned in ([], [1], [10**4], [2] * 50):
            assert 1 <= plan._run(rows_of(plan.unit, owned), seeded()) <= MOST


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"protects": Unit()}, "protects"), ({"most": 1}, "most"), ({"q": 2}, "q"), ({"epsilon": 0}, "epsilon")],
    ids=str,
)
def test_bad_arguments_are_refused(wrong: dict[str, Any], named: str) -> None:
    good: dict[str, Any] = {"most": 5, "epsilon": 1, "protects": Unit("user:u")}
    with pytest.raises(ArgumentError, match=f"^{named} = "):
        m.ContributionLimit(**{**good, **wrong})
