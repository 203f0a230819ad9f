"""Every aggregate under every relation, as a whole plan, holds every promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato import Unit, bounds
from sfumato.audit import conformance
from sfumato.audit.conformance import check_plan
from sfumato.bounds import Bounded
from sfumato.mechanisms import Gaussian, Laplace

WHERE = {"ward": ["a", "b"], "age": (18, 65)}
MAKE: dict[str, Callable[[Unit, int], Bounded]] = {
    "count_where": lambda unit, k: bounds.count_where(unit, WHERE, per_unit=k),
    "variance": lambda unit, k: bounds.variance("x", -3, 7, unit, per_unit=k),
    "standard_deviation": lambda unit, k: bounds.standard_deviation("x", -3, 7, unit, per_unit=k),
    "covariance": lambda unit, k: bounds.covariance({"x": (-3, 7), "y": (0, 100)}, unit, per_unit=k, project=True),
    "vector_mean": lambda unit, k: bounds.vector_mean(["x", "y"], 2, unit, per_unit=k, centre=(0, 1)),
    "ratio": lambda unit, k: bounds.ratio(("x", -3, 7), ("y", 0, 10), unit, per_unit=k),
}
UNITS = [Unit(), Unit("user:id", "replace"), Unit("user:id", "zero-out", group=2)]
CASES = [(kind, UNITS[place % 3]) for place, kind in enumerate(MAKE) if kind != "standard_deviation"]
MORE = [(kind, unit, gaussian) for kind in MAKE for unit in UNITS for gaussian in (True, False)]


def _plan(kind: str, unit: Unit, gaussian: bool) -> Any:
    query = MAKE[kind](unit, 2 if unit.column else 1)
    return Gaussian(query=query, epsilon=1, delta=1e-6) if gaussian else Laplace(query=query, epsilon=1)


@pytest.mark.parametrize(("kind", "unit"), CASES, ids=str)
def test_it_holds_every_promise(kind: str, unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the sampling of a loss that is computed exactly anyway: that is of the noise, which is the same for all
    queries."""
    monkeypatch.delitem(conformance._CHECKS, "sampled loss")
    assert "exact loss" in dict(check_plan(_plan(kind, unit, gaussian=True)).passed)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "unit", "gaussian"), MORE, ids=str)
def test_it_holds_every_promise_under_every_relation(kind: str, unit: Unit, gaussian: bool) -> None:
    check_plan(_plan(kind, unit, gaussian))
