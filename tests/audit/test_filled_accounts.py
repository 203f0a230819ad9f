"""Accounts filled to the brim, and what mechanisms cost at least. That none of ours takes more than its budget is in
test_prices_attack.py."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, bounds
from sfumato.accounting import budget, holds, members, smoothing
from sfumato.audit import neighbours, stages
from sfumato.combine import sequence
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms import Laplace, OptimalKeys, Quantile
from sfumato_referee.attacks import filled, side_doors
from sfumato_referee.attacks.losses_below import best_of, laplace, normal, stepped, times, together, two_points

_ROUNDING = 1e-7


def _four_times(monkeypatch: pytest.MonkeyPatch) -> None:
    right = budget._member

    def wide(name: str, *given: Any) -> Any:
        made = right(name, *given)
        return replace(made, limit=4 * made.limit) if name == "gaussian" else made

    monkeypatch.setattr(budget, "_member", wide)


def _four_times_smoothed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = budget._member_apart

    def wide(name: str, *given: Any) -> Any:
        made = right(name, *given)
        return replace(made, limit=4 * made.limit) if name == "smoothed" else made

    monkeypatch.setattr(budget, "_member_apart", wide)


def _half_smoothed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = smoothing.mu_squared

    def half(*given: Any) -> Any:
        cost, cut = right(*given)
        return cost / 2, cut

    monkeypatch.setattr(smoothing, "mu_squared", half)


def _failures_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members.Failures, "price", lambda self, event, delta: Fraction(0))


def _never_first(monkeypatch: pytest.MonkeyPatch) -> None:
    right = holds.HeldSteps.block
    monkeypatch.setattr(holds.HeldSteps, "block", lambda self, steps: replace(right(self, steps), first=False))


def _beyond_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        holds.HeldSteps, "block", lambda self, steps: holds.Block(self.event, steps, not self.taken, self.counted)
    )
    monkeypatch.setattr(holds.HeldSteps, "after", lambda self, block, by_plan: replace(self, taken=1, counted=by_plan))


def _half_mu(monkeypatch: pytest.MonkeyPatch) -> None:
    right = members.pure_mu
    members.mu_squared.cache_clear()
    monkeypatch.setattr(members, "pure_mu", lambda epsilon: right(epsilon) / 2)


@pytest.mark.parametrize(
    "plant",
    [_four_times, _four_times_smoothed, _half_smoothed, _failures_uncounted, _never_first, _beyond_the_last, _half_mu],
)
def test_an_account_with_too_much_room_is_found(monkeypatch: pytest.MonkeyPatch, plant: Any) -> None:
    from sfumato.accounting import filters

    monkeypatch.setattr(filters, "_CHARGES", {})  # what was charged before the fault
    try:
        plant(monkeypatch)
        assert filled.overfull(_ROUNDING)[1]
    finally:
        members.mu_squared.cache_clear()


def test_lower_bounds_stay_below_what_is_known() -> None:
    assert times(two_points(0.5), 3).delta(0.7) == pytest.approx(together(*[two_points(0.5)] * 3).delta(0.7))
    assert times(normal(0.3), 4).delta(0.5) <= normal(0.6).delta(0.5) * (1 + 1e-9)
    k = np.arange(-200, 201)
    assert stepped(np.exp(-np.abs(k) / 4.0), 3).delta(0.75) == 0  # geometric noise is exactly epsilon-DP
    assert stepped(np.exp(-np.abs(k) / 4.0), 3).delta(0.7) > 0
    assert 1.9 < max(e for e in np.arange(1.0, 2.0, 0.05) if best_of(1.0, 1e-4).delta(float(e)) > 0) <= 2.0
    assert laplace(1.0).delta(math.nextafter(1.0, 2)) == 0


def test_the_doors_of_copies_units_and_blocks_are_shut() -> None:
    assert not [
        problem for door in (side_doors.copies, side_doors.units, side_doors.blocks) for problem in door(Ledger)
    ]


def test_a_unit_is_tried_with_more_than_the_plan_itself_allows() -> None:
    user = Unit("user:id")
    keys = OptimalKeys(column="query", protects=user, epsilon=1, delta=0.1, per_unit=9)
    assert neighbours.too_many(keys) == 12
    people = neighbours.extreme_people(keys, stages.table_for(keys))
    assert max(len({row["query"] for row in person}) for person in people) == 10
    ranks = Quantile(column="age", lower=0, upper=120, q=(0.5,), epsilon=1, protects=user, per_unit=7)
    both = sequence(ranks=ranks, rows=Laplace(query=bounds.count(user, per_unit=2), epsilon=1))
    assert neighbours.too_many(both) == neighbours.too_many(ranks) == 10
