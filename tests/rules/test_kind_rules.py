"""Every plan, event and bounded query that the package registers has an example here, and every example holds.

A new mechanism without an example fails this file; with one, it is held to every promise by `check_plan`.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

import sfumato
from sfumato import (
    bounds,
    events,
    kinds,
    learn,
    record,
    schema,
    strategies,
)
from sfumato.audit import shipped
from sfumato.audit.conformance import check_plan
from sfumato.audit.shipped import REPLACE, ROW, USER, WARDS
from sfumato.bounds import Bounded
from sfumato.errors import PlanError
from sfumato.events import Event
from sfumato.learn.live import Model
from sfumato.learn.metrics import Judgements
from sfumato.learn.samples import line
from sfumato.plan import Plan
from tests.effort import LONG_TO_CHECK


def _rows(rows: Any) -> int:
    return len(rows)


_LEAF = events.Laplace(epsilon=1)

EVENTS: dict[type[Event], Event] = {
    events.Laplace: _LEAF,
    events.Gaussian: events.Gaussian(multiplier=1.5, relation="replace"),
    events.DiscreteLaplace: events.DiscreteLaplace(epsilon=0.5, shift=3),
    events.DiscreteGaussian: events.DiscreteGaussian(variance=4, shift_squared=5, coordinates=2),
    events.GaussianMixture: events.GaussianMixture(shifts=(0, 1, 2), weights=(0.5, 0.3, 0.2)),
    events.RandomizedResponse: events.RandomizedResponse(epsilon=0.1, categories=4, relation="zero-out"),
    events.Exponential: events.Exponential(epsilon=2),
    events.PermuteAndFlip: events.PermuteAndFlip(epsilon=2),
    events.Pure: events.Pure(epsilon=0.1),
    events.Approximate: events.Approximate(epsilon=1, delta=1e-6),
    events.ZeroConcentrated: events.ZeroConcentrated(rho=0.125),
    events.Poisson: events.Poisson(events.Gaussian(multiplier=1), 0.25),
    events.WithoutReplacement: events.WithoutReplacement(events.Gaussian(multiplier=1, relation="replace"), 10, 100),
    events.RandomAllocation: events.RandomAllocation(events.Gaussian(multiplier=1), 100, 2),
    events.Shuffled: events.Shuffled(events.RandomizedResponse(epsilon=1, categories=2, relation="replace"), 1000),
    events.BestOf: events.BestOf(events.Gaussian(multiplier=4), shape=1, stop=0.01),
    events.Sequence: events.Sequence((_LEAF, events.Pure(epsilon=1))),
    events.Bundle: events.Bundle((_LEAF, events.Approximate(epsilon=0, delta=1e-6))),
    events.Repeat: events.Repeat(_LEAF, 3),
    events.Partition: events.Partition("ward", (_LEAF, _LEAF)),
}

QUERIES: dict[type[Bounded], Bounded] = {
    bounds.Count: bounds.count(USER, per_unit=3),
    bounds.Sum: bounds.clipped_sum("age", -0.1, 120, ROW),
    bounds.Mean: bounds.mean("age", 0, 120, ROW),
    bounds.CountWhere: bounds.count_where(USER, {"ward": WARDS[:2], "age": (18, None)}, per_unit=2),
    bounds.Variance: bounds.variance("age", 0, 120, REPLACE),
    bounds.Covariance: bounds.covariance({"age": (0, 120), "cost": (-10, 1000)}, USER, per_unit=2, correlation=True),
    bounds.VectorMean: bounds.vector_mean(("east", "north"), 2.5, ROW, centre=(1, 0)),
    bounds.Ratio: bounds.ratio(("cost", -10, 1000), ("visits", 0, 20), USER, per_unit=2),
    bounds.Histogram: bounds.histogram("ward", WARDS, REPLACE),
    bounds.Measured: bounds.workload(
        bounds.histogram("ward", WARDS, REPLACE), [[1, 1, 0], [0, 0.5, 1]], strategy="cells"
    ),
    bounds.Bins: bounds.bins("age", (0, 18, 65.5, 120), USER, per_unit=2),
    bounds.EqualBins: bounds.bins_between("age", 0, 120, 12, ROW, outside="drop"),
    bounds.Cross: bounds.cross({"ward": WARDS, "on": (False, True)}, REPLACE),
    bounds.Share: bounds.share(bounds.clipped_sum("age", 0, 120, REPLACE), 40),
    bounds.Increments: bounds.increments("day", 7, USER, per_unit=3, separation=2),
    bounds.Running: bounds.Running(
        query=bounds.increments("day", 7, ROW),
        strategy=strategies.SquareRoot(cells=7),
        workload=strategies.Prefixes(cells=7),
        unit=ROW,
    ),
    bounds.Powers: bounds.Powers(column="age", lowest=-2, highest=7, unit=USER),
    bounds.Declared: bounds.declared(
        _rows, ROW, reads={"age": schema.real(0, 120)}, labels=["rows"], l1=1, l2=1, linf=1
    ),
    Judgements: Judgements(
        unit=ROW,
        model=Model(line()),
        inputs=(learn.Features(("x",)),),
        target=learn.Target("on"),
        reads={"x": schema.real(-1, 1), "on": schema.flag()},
    ),
}


def _all_modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
        if not module.name.endswith("__main__"):  # importing one would run it
            yield module.name


def _ours(parent: type[Any]) -> set[type[Any]]:
    """The registered, concrete classes of the package itself: tests and docs register their own."""
    for name in _all_modules():
        import_module(name)
    registered = record.kinds(parent).values()
    return {cls for cls in registered if cls.__module__.startswith("sfumato.") and not inspect.isabstract(cls)}


EXAMPLES: dict[type[Plan[Any, Any]], Callable[[], Plan[Any, Any]]] = {
    cls: shipped.PLANS[cls.__name__]
    for cls in sorted(_ours(Plan), key=lambda cls: cls.__name__)
    if cls.__name__ in shipped.PLANS
}


def _is_ours(cls: type[Any]) -> bool:
    """Of the package: planted bugs, which nothing may register, are the referee's."""
    return cls.__module__.startswith("sfumato.")


def _concrete(parent: type[Any]) -> Iterator[type[Any]]:
    for child in parent.__subclasses__():
        family = any(map(_is_ours, child.__subclasses__()))
        ours = _is_ours(child) and child.__name__[0] != "_"
        if ours and not family and not inspect.isabstract(child):
            yield child
        yield from _concrete(child)


@pytest.mark.parametrize(("parent", "examples"), [(Plan, EXAMPLES), (Event, EVENTS), (Bounded, QUERIES)])
def test_every_kind_has_an_example(parent: type[Any], examples: dict[type[Any], Any]) -> None:
    assert _ours(parent) == set(examples), "give the new kind an example in this file"


def test_every_kind_of_plan_gives_a_sample_of_itself() -> None:
    """A new one is found by itself: in a folder of the core, or by the line of its area in `kinds`."""
    samples = {cls: type(cls.sample()) for cls in _ours(Plan)}
    assert [cls.__name__ for cls, sampled in samples.items() if sampled is not cls] == []
    assert {name: kind() for name, kind in kinds.plans().items()} == {cls.__name__: cls for cls in samples}


def test_kinds_say_which_hazards_they_bring_along() -> None:
    boxes = {cls.kind: cls.boxes for cls in _ours(Plan) if cls.boxes}  # type: ignore[attr-defined]
    keys = {f"plan-{name}/1": (14,) for name in ("optimal-keys", "threshold-keys", "weighted-keys", "top-k")}
    synthetic = {f"plan-{name}/1": (16,) for name in ("mwem", "multiplicative-weights")}
    assert boxes == {"plan-tidy/1": (11,), **keys, **synthetic}


def test_a_kind_without_a_sample_is_told_what_to_do() -> None:
    class Without(Plan[Any, Any]):
        pass

    with pytest.raises(PlanError, match="Without has no sample: give it a classmethod"):
        Without.sample()
    assert Without.counting(ROW, Fraction(1)) is None


@pytest.mark.parametrize("parent", [Plan, Event, Bounded])
def test_every_concrete_class_is_registered(parent: type[Any]) -> None:
    registered = _ours(parent)
    assert [cls.__name__ for cls in _concrete(parent) if cls not in registered] == []


def _parameter(cls: type[Plan[Any, Any]]) -> Any:
    return pytest.param(cls, marks=[pytest.mark.slow] if cls.__name__ in LONG_TO_CHECK else [], id=cls.__name__)


@pytest.mark.parametrize("cls", [_parameter(cls) for cls in EXAMPLES])
def test_plan_holds_every_promise(cls: type[Plan[Any, Any]]) -> None:
    plan = EXAMPLES[cls]()
    assert type(plan) is cls
    check_plan(plan)


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda cls: cls.__name__)
def test_plan_has_its_parts_and_a_public_unit(cls: type[Plan[Any, Any]]) -> None:
    for part in ("Guarantee:", "Needs:", "Paper:"):
        assert part in (cls.__doc__ or "")
    assert cls.kind.startswith("plan-")  # type: ignore[attr-defined]


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: type(event).__name__)
def test_event_survives_json(event: Event) -> None:
    text = record.canonical(event)
    again = record.parse(text, Event)  # type: ignore[type-abstract]
    assert again == event
    assert record.canonical(again) == text


@pytest.mark.parametrize("query", QUERIES.values(), ids=lambda query: type(query).__name__)
def test_query_survives_json(query: Bounded) -> None:
    text = record.canonical(query)
    if isinstance(query, bounds.Declared | Judgements):
        assert b'"fingerprint":"' in text
        with pytest.raises(record.RecordError, match="live field"):
            record.parse(text)
        return
    assert record.parse(text) == query
    assert record.canonical(record.parse(text)) == text


def test_every_record_is_frozen_and_named_with_a_version() -> None:
    _ours(object)
    for name, cls in record.kinds(object).items():
        assert cls.__dataclass_params__.frozen, name  # type: ignore[attr-defined]
        assert name.split("/")[1].isdigit()
