"""One plan of every kind that the package ships, small enough to be run a hundred thousand times.

    for name, make in shipped.PLANS.items():
        print(name, audit.check(make()))

Whatever is audited, verified or mutated in a loop goes over these. A kind of plan that is not here fails the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import bounds, schema, strategies
from ..accounting.filters import Budget
from ..combine import partition, repeat, reserve, sequence
from ..jointly import joint
from ..mechanisms import (
    MWEM,
    ContinualCount,
    ContributionLimit,
    Exponential,
    Gaussian,
    Geometric,
    L2Noise,
    Laplace,
    LInfinityNoise,
    NoisyMaxWithValue,
    OptimalKeys,
    PermuteAndFlip,
    PrivateBounds,
    PrivateMultiplicativeWeights,
    ProposeTestRelease,
    Quantile,
    QuantileTree,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    ThresholdKeys,
    Thresholdout,
    TopK,
    WeightedKeys,
)
from ..plan import Plan
from ..private import Private
from ..tidy import Tidy
from ..units import Unit

ROW, REPLACE, USER = Unit(), Unit(change="replace"), Unit("user:id")
WARDS = ("east", "north", "west")
_COUNT = Laplace(query=bounds.count(ROW), epsilon=0.5)


def _body(run: Any) -> float:
    return float(run.release(_COUNT))


def _off(output: Any, target: Any) -> Any:
    return (output[:, 0] - target) ** 2


def line() -> Any:
    """The least model that can be trained."""
    import torch

    model = torch.nn.Linear(1, 1)
    with torch.no_grad():
        for each in model.parameters():
            each.fill_(0.5)
    return model


def _training() -> Plan[Any, Any]:
    """One step of a line through points; their slots in one micro-batch."""
    from ..learn import sgd

    table = schema.Schema.of(x=schema.real(-1, 1), y=schema.real(-3, 3), rows=60)
    data = Private("points", {"x": [], "y": []}, unit=ROW, schema=table)
    more: dict[str, Any] = {"clip": 1, "multiplier": 1, "delta": 1e-3, "micro": 76}
    return sgd(line(), _off, data=data, inputs="x", target="y", rate=0.5, steps=1, **more)


def _sql() -> Plan[Any, Any]:
    from ..query import Limits, sql

    columns = {"id": schema.key(), "ward": schema.category(WARDS), "days": schema.real(0, 9)}
    return sql(
        "SELECT ward, COUNT(*) AS n, SUM(days) AS total FROM visits GROUP BY ward",
        schema.Schema({"visits": schema.Table(columns, unit="id")}),
        unit=USER,
        epsilon=1,
        delta=1e-6,
        limits=Limits(rows=2),
    )


PLANS: dict[str, Callable[[], Plan[Any, Any]]] = {
    "Sql": _sql,
    "Laplace": lambda: Laplace(query=bounds.clipped_sum("age", 0, 120, USER, per_unit=2), epsilon=1),
    "Gaussian": lambda: Gaussian(query=bounds.histogram("ward", WARDS, REPLACE), epsilon=1, delta=1e-6),
    "Exponential": lambda: Exponential(query=bounds.votes("ward", WARDS, ROW), epsilon=1),
    "PermuteAndFlip": lambda: PermuteAndFlip(query=bounds.votes("ward", WARDS, REPLACE), epsilon=1),
    "RandomizedResponse": lambda: RandomizedResponse(column="ward", categories=WARDS, epsilon=1, protects=REPLACE),
    "SparseVector": lambda: SparseVector(
        epsilon=1, protects=ROW, threshold=2, questions=((bounds.histogram("ward", WARDS, ROW), 1), bounds.count(ROW))
    ),
    "Thresholdout": lambda: Thresholdout(
        threshold=0.1,
        sensitivity=0.025,
        count=1,
        epsilon=1,
        protects=REPLACE,
        questions=((bounds.share(bounds.count_where(REPLACE, {"age": (65, None)}), 40), 0.8),),
    ),
    "SmoothMedian": lambda: SmoothMedian(column="age", lower=0, upper=120, epsilon=1, protects=REPLACE),
    "ProposeTestRelease": lambda: ProposeTestRelease(
        column="age", lower=0, upper=120, bound=10, epsilon=1, delta=1e-3, protects=REPLACE
    ),
    "QuantileTree": lambda: QuantileTree(column="age", lower=0, upper=120, epsilon=1, leaves=4, protects=REPLACE),
    "Tidy": lambda: Tidy(plan=Laplace(query=bounds.histogram("ward", WARDS, ROW), epsilon=1), whole=True, total="kept"),
    "Geometric": lambda: Geometric(query=bounds.histogram("ward", WARDS, USER, per_unit=2), epsilon=1),
    "LInfinityNoise": lambda: LInfinityNoise(query=bounds.histogram("ward", WARDS, REPLACE), epsilon=1),
    "L2Noise": lambda: L2Noise(query=bounds.mean("age", 0, 120, USER, per_unit=2), epsilon=1),
    "ContinualCount": lambda: ContinualCount(
        query=bounds.increments("day", 7, USER, per_unit=2, separation=3), strategy="banded", epsilon=1, delta=1e-6
    ),
    "TopK": lambda: TopK(query=bounds.votes("ward", WARDS, USER), epsilon=1, k=2),
    "NoisyMaxWithValue": lambda: NoisyMaxWithValue(query=bounds.votes("ward", WARDS, REPLACE), epsilon=1),
    "Quantile": lambda: Quantile(column="age", lower=0, upper=120, q=(0.5, 0.9), epsilon=1, protects=USER, per_unit=2),
    "ContributionLimit": lambda: ContributionLimit(most=6, q=0.9, epsilon=1, protects=USER),
    "PrivateBounds": lambda: PrivateBounds(
        query=bounds.Powers(column="age", lowest=0, highest=7, unit=REPLACE), epsilon=1, failure=0.01
    ),
    "OptimalKeys": lambda: OptimalKeys(column="query", protects=USER, epsilon=1, delta=0.02, per_unit=2),
    "ThresholdKeys": lambda: ThresholdKeys(column="query", protects=REPLACE, epsilon=1, delta=0.05),
    "WeightedKeys": lambda: WeightedKeys(
        column="query", protects=USER, epsilon=1, delta=0.1, per_unit=3, count_epsilon=0.5
    ),
    "MWEM": lambda: MWEM(
        query=bounds.histogram("ward", WARDS, ROW), workload=strategies.Prefixes(cells=3), rounds=1, epsilon=2, passes=2
    ),
    "PrivateMultiplicativeWeights": lambda: PrivateMultiplicativeWeights(
        query=bounds.histogram("ward", WARDS, ROW),
        epsilon=2,
        updates=1,
        threshold=3,
        passes=2,
        questions=((1, 0, 0.5), (1, 1, 0)),
    ),
    "Sequence": lambda: sequence(rows=_COUNT, age=Laplace(query=bounds.mean("age", 0, 120, ROW), epsilon=0.5)),
    "Joint": lambda: joint(
        {"rows": bounds.count(ROW), "age": bounds.variance("age", 0, 120, ROW)}, accuracy={"rows": 9, "age": 9}, rho=0.1
    ),
    "Repeat": lambda: repeat(_COUNT, 2),
    "Partition": lambda: partition("ward", WARDS[:2], _COUNT),
    "Reserve": lambda: reserve(_body, unit=ROW, budget=Budget(epsilon=1)),
    "SGD": _training,
}
