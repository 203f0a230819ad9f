"""Telling parameters: for every kind of plan, settings at which half the noise shows in few runs.

The auditor may choose the plan's parameters. What helps: an epsilon of 1 to 4 (below, bounds on counts hide the loss;
above, the telling event is rare), few coordinates, and a pair on which every part of the price is used. Where a search
would have to find such a pair, it is written down: the comment says why it tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato import bounds, schema, strategies
from sfumato.accounting.filters import Budget
from sfumato.audit import shipped
from sfumato.audit.neighbours import Pair, Scene, pair_of
from sfumato.audit.stages import table_for
from sfumato.combine import partition, repeat, reserve, sequence
from sfumato.mechanisms import (
    MWEM,
    ContinualCount,
    ContributionLimit,
    Exponential,
    L2Noise,
    Laplace,
    LInfinityNoise,
    NoisyMaxWithValue,
    OptimalKeys,
    PermuteAndFlip,
    PrivateMultiplicativeWeights,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    ThresholdKeys,
    Thresholdout,
    TopK,
    WeightedKeys,
)
from sfumato.plan import Plan
from sfumato.units import Unit

_ROW, _REPLACE, _USER = Unit(), Unit(change="replace"), Unit("user:id")
_TWO = ("east", "west")
Pairs = Callable[[Plan[Any, Any]], Sequence[Pair]]


@dataclass(frozen=True)
class Setting:
    """A plan at telling parameters, how many runs on each side, and pairs where the usual search is not enough."""

    make: Callable[[], Plan[Any, Any]]
    runs: int
    pairs: Pairs | None = None


def _changed(before: Sequence[Any], after: Sequence[Any], others: Sequence[Any] = ()) -> Pairs:
    """One pair: rows given as mappings of cells."""

    def build_pair(plan: Plan[Any, Any]) -> Sequence[Pair]:
        stay, gone, come = (tuple((row,) for row in rows) for rows in (others, before, after))
        scene = Scene(others=stay, before=gone, after=come)
        return (pair_of(plan, table_for(plan), scene, "a pair chosen for its loss"),)

    return build_pair


def _ward(name: str) -> dict[str, Any]:
    return {"ward": name}


_COUNT = Laplace(query=bounds.count(_ROW), epsilon=2)


def _body(run: Any) -> float:
    return float(run.release(_COUNT))


_EAST_ADDED = _changed([], [_ward("east")])
_REPLACED = _changed([_ward("east")], [_ward("west")])
_BESIDE = _changed([_ward("east")], [_ward("west")], [_ward("east")])
_KEY = {"query": "one"}


def _vector(kind: Any) -> Plan[Any, Any]:
    plan: Plan[Any, Any] = kind(query=bounds.histogram("ward", _TWO, _REPLACE), epsilon=2)
    return plan


def _sparse() -> Plan[Any, Any]:
    # Five questions that fall and one that rises: below five times, then above, uses the threshold's noise and its own.
    fall, rise = (bounds.histogram("ward", (name,), _REPLACE) for name in ("west", "east"))
    return SparseVector(epsilon=2, protects=_REPLACE, questions=(*((fall, 1),) * 5, (rise, 1)))


def _thresholdout() -> Plan[Any, Any]:
    # The same, and the number shown after the crossing is moved too.
    query = bounds.share(bounds.count_where(_REPLACE, {"age": (65, None)}), 4)
    questions = (*((query, 0.0),) * 3, (query, 0.25))
    return Thresholdout(threshold=0.125, sensitivity=0.25, count=1, epsilon=2.5, protects=_REPLACE, questions=questions)


def _weights() -> Plan[Any, Any]:
    # The made-up histogram has one row in each of four cells. Three questions about "b", which is met on one side, stay
    # below; one about "a" crosses, and is then measured: all three parts of the price are used.
    names = ("a", "b", "c", "d")
    return PrivateMultiplicativeWeights(
        query=bounds.histogram("ward", names, _REPLACE),
        epsilon=3,
        updates=1,
        threshold=1,
        total=4,
        passes=1,
        questions=((0, 1, 0, 0),) * 3 + ((1, 0, 0, 0),),
    )


def _sql() -> Plan[Any, Any]:
    from sfumato.query import Limits, sql

    table = schema.Table({"id": schema.key()}, unit="id")
    text = "SELECT COUNT(*) AS n FROM visits"
    return sql(text, schema.Schema({"visits": table}), unit=_USER, epsilon=2, limits=Limits(rows=1))


def _training() -> Plan[Any, Any]:
    # Everybody joins the one step, so nothing hides behind sampling; the gradient of a point far off is clipped.
    from sfumato.learn import samples, sgd

    more: dict[str, Any] = {"clip": 1, "multiplier": 1, "delta": 1e-3}
    data = samples.points(4)
    return sgd(samples.line(), samples.squared_error, data=data, inputs="x", target="y", rate=1, steps=1, **more)


def _tested() -> Plan[Any, Any]:
    return ProposeTestRelease(column="age", lower=0, upper=120, bound=10, epsilon=3, delta=1e-2, protects=_REPLACE)


def _at_the_threshold(plan: Any) -> Sequence[Pair]:
    """0 replaced by 120 moves the median from 0 to 10, and the distance from the threshold to one below it."""
    tens = plan.threshold + 1
    zeros = tens + 2
    others = [{"age": 0.0}] * (zeros - 1) + [{"age": 10.0}] * tens + [{"age": 120.0}] * (zeros - 1 - tens)
    return _changed([{"age": 0.0}], [{"age": 120.0}], others)(plan)


SETTINGS: Mapping[str, Setting] = {
    **{name: Setting(make, 5_000) for name, make in shipped.PLANS.items()},  # where a kind's own sample tells enough
    "Sql": Setting(_sql, 1_500, _changed([], [{}])),
    "Gaussian": Setting(shipped.PLANS["Gaussian"], 10_000),
    "Exponential": Setting(lambda: Exponential(query=bounds.votes("ward", _TWO, _REPLACE), epsilon=2), 3_000, _BESIDE),
    "PermuteAndFlip": Setting(
        lambda: PermuteAndFlip(query=bounds.votes("ward", _TWO, _REPLACE), epsilon=2), 3_000, _BESIDE
    ),
    "RandomizedResponse": Setting(
        lambda: RandomizedResponse(column="ward", categories=_TWO, epsilon=1, protects=_REPLACE), 3_000, _REPLACED
    ),
    "SparseVector": Setting(_sparse, 20_000, _REPLACED),
    "Thresholdout": Setting(_thresholdout, 20_000, _changed([{"age": 0.0}], [{"age": 90.0}], [{"age": 0.0}] * 3)),
    "SmoothMedian": Setting(
        lambda: SmoothMedian(column="age", lower=0, upper=120, epsilon=1, protects=_REPLACE, shape=16),
        4_000,
        _changed([{"age": 0.0}], [{"age": 120.0}]),
    ),
    "ProposeTestRelease": Setting(_tested, 10_000, _at_the_threshold),
    "Geometric": Setting(shipped.PLANS["Geometric"], 10_000),
    "LInfinityNoise": Setting(lambda: _vector(LInfinityNoise), 4_000, _REPLACED),
    "L2Noise": Setting(lambda: L2Noise(query=bounds.count(_ROW), epsilon=2), 4_000),
    "ContinualCount": Setting(
        lambda: ContinualCount(query=bounds.increments("day", 3, _ROW), epsilon=2), 4_000, _changed([], [{"day": 0}])
    ),
    "TopK": Setting(lambda: TopK(query=bounds.votes("ward", ("a", "b", "c"), _ROW), epsilon=3, k=2), 4_000),
    "NoisyMaxWithValue": Setting(
        lambda: NoisyMaxWithValue(query=bounds.votes("ward", _TWO, _REPLACE), epsilon=3), 4_000, _REPLACED
    ),
    "Quantile": Setting(
        lambda: Quantile(column="age", lower=0, upper=1, step=1, q=0, epsilon=2, protects=_REPLACE),
        4_000,
        _changed([{"age": 0.0}], [{"age": 1.0}]),
    ),
    "ContributionLimit": Setting(lambda: ContributionLimit(most=2, q=1, epsilon=2, protects=_USER), 4_000),
    "OptimalKeys": Setting(
        lambda: OptimalKeys(column="query", protects=_ROW, epsilon=2, delta=0.05), 3_000, _changed([], [_KEY], [_KEY])
    ),
    "ThresholdKeys": Setting(
        lambda: ThresholdKeys(column="query", protects=_ROW, epsilon=2, delta=0.2),
        6_000,
        _changed([], [_KEY], [_KEY] * 2),
    ),
    "WeightedKeys": Setting(
        lambda: WeightedKeys(column="query", protects=_ROW, epsilon=2, delta=0.2), 3_000, _changed([], [_KEY], [_KEY])
    ),
    "MWEM": Setting(
        lambda: MWEM(
            query=bounds.histogram("ward", _TWO, _ROW),
            workload=strategies.Prefixes(cells=2),
            rounds=1,
            epsilon=6,
            passes=1,
        ),
        6_000,
        _EAST_ADDED,
    ),
    "PrivateMultiplicativeWeights": Setting(
        _weights, 15_000, _changed([_ward("a")], [_ward("b")], [_ward("a"), _ward("a"), _ward("b")])
    ),
    "Sequence": Setting(
        lambda: sequence(rows=_COUNT, more=replace(_COUNT, epsilon=Fraction(1))),
        5_000,
        _changed([], [{}]),
    ),
    "Repeat": Setting(lambda: repeat(_COUNT, 2), 5_000, _changed([], [{}])),
    "Partition": Setting(lambda: partition("ward", _TWO, _COUNT), 5_000, _EAST_ADDED),
    "Reserve": Setting(lambda: reserve(_body, unit=_ROW, budget=Budget(epsilon=2)), 5_000, _changed([], [{}])),
    "SGD": Setting(_training, 800, _changed([], [{"x": 1.0, "y": -3.0}])),
}
