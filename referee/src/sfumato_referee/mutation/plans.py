"""Plans beside the shipped ones, of the kinds that faults hide in: values below zero, groups, parts under replace, many
keys of one unit, a failure that is caught."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.combine import partition, repeat, reserve, sequence
from sfumato.errors import BudgetError, DataError
from sfumato.mechanisms import Gaussian, Laplace, OptimalKeys, QuantileTree, SparseVector, ThresholdKeys, TopK
from sfumato.plan import Plan
from sfumato.units import Unit

_ROW, _REPLACE, _USER = Unit(), Unit(change="replace"), Unit("user:patient")
_WARDS = ("a", "b", "c")

_COUNT = Laplace(query=bounds.count(_ROW), epsilon=2)


def _asks_on(run: Any) -> list[float]:
    """Asks until it is refused, six times at most."""
    counts: list[float] = []
    with contextlib.suppress(BudgetError):
        for _ in range(6):
            counts.append(float(run.release(_COUNT)))
    return counts


def _goes_on(run: Any) -> float:
    """Takes a failure on the data's side for an answer."""
    try:
        return float(run.release(_COUNT))
    except DataError:
        return 0.0


MORE: dict[str, Callable[[], Plan[Any, Any]]] = {
    "sum below zero": lambda: Laplace(query=bounds.clipped_sum("x", -9, 2, _ROW), epsilon=1),
    "sum of three at once": lambda: Laplace(query=bounds.clipped_sum("x", 0, 9, Unit(group=3)), epsilon=1),
    "Gaussian of users": lambda: Gaussian(
        query=bounds.histogram("ward", _WARDS, _USER, per_unit=3), epsilon=4, delta=1e-3
    ),
    "a count of users": lambda: Laplace(query=bounds.count(_USER, per_unit=2), epsilon=1),
    "parts under replace": lambda: partition(
        "ward", _WARDS[:2], Laplace(query=bounds.histogram("x", ("u", "v"), _REPLACE), epsilon=2)
    ),
    "Repeat of four": lambda: repeat(_COUNT, 4),
    "Sequence of three": lambda: sequence(
        one=Laplace(query=bounds.count(_ROW), epsilon=1),
        two=Laplace(query=bounds.clipped_sum("x", 0, 1, _ROW), epsilon=4),
        three=Gaussian(query=bounds.clipped_sum("x", 0, 1, _ROW), rho=4, delta=1e-3),
    ),
    "a tall tree": lambda: QuantileTree(column="x", lower=0, upper=64, epsilon=1, leaves=64, protects=_ROW),
    "an endless reserve": lambda: reserve(_asks_on, unit=_ROW, budget=Budget(epsilon=2)),
    "a body that goes on": lambda: reserve(_goes_on, unit=_ROW, budget=Budget(epsilon=2)),
    "three keys each": lambda: OptimalKeys(column="x", protects=_USER, epsilon=1, delta=0.25, per_unit=3),
    "keys of a group": lambda: ThresholdKeys(column="x", protects=Unit(group=2), epsilon=4, delta=0.05),
    "questions that move both ways": lambda: SparseVector(
        epsilon=1, protects=_REPLACE, threshold=1, questions=((bounds.histogram("ward", _WARDS, _REPLACE), 1),)
    ),
    "TopK of all": lambda: TopK(query=bounds.votes("ward", _WARDS, _REPLACE), epsilon=4, k=3),
}
