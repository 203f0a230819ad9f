"""Plans made of plans: in sequence, in parallel, repeated, and adaptively inside a reserve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from . import checks, events, questions
from .accounting.filters import Budget, Filter
from .bounds import Bounded, count, mean, recode
from .errors import ArgumentError, DataError, PlanError
from .plan import Plan, Run
from .questions import PRICE
from .record import LIVE, record
from .rows import Rows
from .schema import Column, Named, Table, category, columns_read
from .units import Unit, rows_or_users


def _one_unit(plans: tuple[Plan[Any, Any], ...]) -> Unit:
    if len({plan.unit for plan in plans}) != 1:
        raise ArgumentError("the plans protect different units: give all of them the same Unit.")
    return plans[0].unit


def _count() -> Plan[Any, Any]:
    """What samples are made of."""
    return _noisy(count(Unit()))


def _noisy(query: Bounded) -> Plan[Any, Any]:
    from .mechanisms.laplace import Laplace  # only samples need a mechanism

    return Laplace(query=query, epsilon=Fraction(1, 2))


def _one_count(run: Run) -> float:
    return float(run.release(_count()))


@record("plan-sequence/1")
@dataclass(frozen=True, kw_only=True)
class Sequence(Plan[Any, dict[str, Any]]):
    """Several releases from the same data, fixed in advance and priced as one.

    Guarantee: that of its Event, the composition of the parts.
    Needs: parts that protect the same unit.
    Paper: Dwork, McSherry, Nissim, Smith 2006 (composition).
    """

    plans: Mapping[str, Plan[Any, Any]]
    wraps = True

    def __post_init__(self) -> None:
        if not isinstance(self.plans, Mapping) or not self.plans:
            raise checks.refuse("plans", self.plans, "plans by name, such as sequence(total=..., ages=...)")
        for name, plan in self.plans.items():
            checks.label(name, "the name of a plan")
            if not isinstance(plan, Plan):
                raise checks.refuse(name, plan, "a plan")
        object.__setattr__(self, "plans", Named(self.plans))
        _one_unit(self.children)

    @property
    def unit(self) -> Unit:
        return self.children[0].unit

    @property
    def parts(self) -> Mapping[str, Plan[Any, Any]]:
        return self.plans

    @property
    def event(self) -> events.Event:
        return events.Sequence(tuple(plan.event for plan in self.children))

    def _run(self, rows: Rows, run: Run) -> dict[str, Any]:
        return self._gathered(rows, {name: plan._run(rows, run) for name, plan in self.plans.items()})

    def _gathered(self, data: Any, raws: dict[str, Any]) -> dict[str, Any]:
        """What leaves, of what the parts released: all of it. `data` is for what is public there."""
        return raws

    def finish(self, raw: dict[str, Any]) -> Any:
        return {name: plan.finish(raw[name]) for name, plan in self.plans.items()}

    def error(self, raw: dict[str, Any], alpha: float) -> Any:
        return {name: plan.error(raw[name], alpha) for name, plan in self.plans.items()}

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        errors: dict[str, float] = {}
        for name, plan in self.plans.items():
            single = plan.expected_error(alpha)
            if single is not None:
                errors[name] = single
            else:
                errors |= {f"{name} / {part}": each for part, each in plan.expected_errors(alpha).items()}
        return errors

    def explain(self) -> list[str]:
        return [f"{name}: {line}" for name, plan in self.plans.items() for line in plan.explain()]

    @classmethod
    def sample(cls) -> Sequence:
        return cls(plans={"rows": _count(), "age": _noisy(mean("age", 0, 120, Unit()))})


@record("plan-repeat/1")
@dataclass(frozen=True, kw_only=True)
class Repeat(Plan[Any, list[Any]]):
    """The same release again and again, with fresh noise.

    Guarantee: that of its Event, so many times the plan's own.
    Needs: nothing more than the plan itself.
    Paper: Dwork, McSherry, Nissim, Smith 2006 (composition).
    """

    plan: Plan[Any, Any]
    times: int = field(metadata=PRICE)
    wraps = True

    def __post_init__(self) -> None:
        if not isinstance(self.plan, Plan):
            raise checks.refuse("plan", self.plan, "a plan")
        object.__setattr__(self, "times", checks.whole(self.times, "times", most=10**9))

    @property
    def unit(self) -> Unit:
        return self.plan.unit

    @property
    def event(self) -> events.Event:
        return events.Repeat(self.plan.event, self.times)

    @property
    def delta(self) -> Fraction:
        return self.times * self.plan.delta

    def _run(self, rows: Rows, run: Run) -> list[Any]:
        return [self.plan._run(rows, run) for _ in range(self.times)]

    def finish(self, raw: list[Any]) -> list[Any]:
        return [self.plan.finish(each) for each in raw]

    def error(self, raw: list[Any], alpha: float) -> list[Any]:
        return [self.plan.error(each, alpha) for each in raw]

    def explain(self) -> list[str]:
        return [f"{self.times} times: {line}" for line in self.plan.explain()]

    @classmethod
    def sample(cls) -> Repeat:
        return cls(plan=_count(), times=2)


@record("plan-partition/1")
@dataclass(frozen=True, kw_only=True)
class Partition(Plan[Rows, dict[Any, Any]]):
    """One release per part of the data, split by a public column that is constant per unit.

    Guarantee: the dearest part's; under replace that of the two dearest, since a unit may leave one part for another.
    Needs: keys given in public; a column declared constant in the schema. Where a unit breaks that promise, only its
        rows of its first key (in the order given) are read, so the price holds whatever the data says.
    Paper: McSherry 2009 (parallel composition).
    """

    column: str
    plans: Mapping[Any, Plan[Any, Any]]
    wraps = True

    def _questions(self) -> Iterator[Any]:
        for key, plan in self.plans.items():
            for question in plan._questions():
                yield ["for", self.column, questions.of(key), question]

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        if not isinstance(self.plans, Mapping) or not self.plans:
            raise checks.refuse("plans", self.plans, "a plan per public key")
        checks.distinct(tuple(self.plans), "keys")
        for plan in self.plans.values():
            checks.instance(plan, Plan, "plan", "a plan")
        object.__setattr__(self, "plans", Named(self.plans))
        _one_unit(self.children)
        for plan in self.children:
            if plan.opens.indivisible:
                raise ArgumentError(plan.opens.indivisible)
        if any(plan.needs_whole for plan in self.children):
            raise ArgumentError(
                "a part's number of rows is private: plans that take it as public (randomized response, SmoothMedian, "
                "ProposeTestRelease, a declared query that keeps the number of rows, and a reserve that might hold "
                "one) cannot run on the parts of a partition; use a sequence, or add-remove plans."
            )
        if self.unit.group > 1:
            raise ArgumentError("a partition under group privacy is not priced yet: use group = 1, or a sequence.")

    @property
    def unit(self) -> Unit:
        return self.children[0].unit

    @property
    def event(self) -> events.Event:
        return events.Partition(self.column, tuple(plan.event for plan in self.children))

    @property
    def delta(self) -> Fraction:
        dearest = sorted((plan.delta for plan in self.children), reverse=True)
        return sum(dearest[: 2 if self.unit.change == "replace" else 1], Fraction(0))

    @property
    def columns(self) -> dict[str, Column]:
        return {**super().columns, self.column: category(tuple(self.plans), constant=True)}

    def check(self, table: Table) -> None:
        super().check(table)
        column = table.column(self.column)
        if self.unit.column not in (None, self.column) and not column.constant:
            raise PlanError(
                f"column {self.column!r} is not declared constant per unit: say constant=True in the schema if every "
                f"{self.unit.column} has one value there, or use a sequence"
            )

    def _run(self, rows: Rows, run: Run) -> dict[Any, Any]:
        keys = tuple(self.plans)
        code, valid = recode(rows, self.column, keys)
        first = np.full(rows.unit_count, len(keys), dtype=np.int64)
        np.minimum.at(first, rows.units[valid], code[valid])
        home = np.where(valid & (code == first[rows.units]), code, -1)
        return {key: plan._run(rows.keep(home == i), run) for i, (key, plan) in enumerate(self.plans.items())}

    def finish(self, raw: dict[Any, Any]) -> dict[Any, Any]:
        return {key: plan.finish(raw[key]) for key, plan in self.plans.items()}

    def error(self, raw: dict[Any, Any], alpha: float) -> dict[Any, Any]:
        return {key: plan.error(raw[key], alpha) for key, plan in self.plans.items()}

    def explain(self) -> list[str]:
        first = next(iter(self.plans.values()))
        return [f"split by {self.column} into {len(self.plans)} public parts"] + [f"each: {x}" for x in first.explain()]

    @classmethod
    def sample(cls) -> Partition:
        return partition("ward", ("east", "north"), _count())


@record("plan-reserve/1")
@dataclass(frozen=True, kw_only=True)
class Reserve(Plan[Rows, Any]):
    """Adaptive children inside one plan: `body(run)` chooses each next child after seeing the earlier answers.

    Without a body it is for `curator.supervise`, where the loop is the user's own and each child is drawn as it comes.

    Guarantee: that of the budget, which is charged whole before anything runs.
    Needs: a body that touches the data only through `run.release(child)`; it is given nothing else.
    Paper: Whitehouse, Ramdas, Rogers, Wu 2023 (fully adaptive composition).
    """

    protects: Unit = field(metadata=PRICE)
    budget: Budget = field(metadata=PRICE)
    reads: Mapping[str, Column]
    body: Callable[[Run], Any] | None = field(metadata=LIVE)

    def __post_init__(self) -> None:
        if self.body is not None and not callable(self.body):
            raise checks.refuse("body", self.body, "a function of the run, or None for curator.supervise")
        rows_or_users(self.protects)
        checks.instance(self.budget, Budget, "budget", "a Budget")
        object.__setattr__(self, "reads", columns_read(self.reads))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.Event:
        return self.budget.event(self.unit.change)

    @property
    def delta(self) -> Fraction:
        return self.budget.delta

    @property
    def columns(self) -> dict[str, Column]:
        return dict(self.reads)

    @property
    def needs_whole(self) -> bool:
        return True  # it may: its children are not known yet

    @property
    def supervised(self) -> Budget | None:
        return self.budget if self.body is None else None

    def _run(self, rows: Rows, run: Run) -> Any:
        assert self.body is not None
        inner = Run(run.noise, rows=rows, reserve=Filter.of(self.budget), rehearsal=run.rehearsal)
        value = self.body(inner)
        if inner.failed:  # even where the body caught it
            raise DataError
        return value

    def explain(self) -> list[str]:
        return [f"adaptive children inside a reserve of {self.budget}"]

    @classmethod
    def sample(cls) -> Reserve:
        return reserve(_one_count, unit=Unit(), budget=Budget(epsilon=1))


def sequence(**plans: Plan[Any, Any]) -> Sequence:
    """Several releases from the same data, fixed in advance: sequence(total=..., ages=...).

    >>> from sfumato import Unit, bounds, epsilon, mechanisms, sequence
    >>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
    >>> years = mechanisms.Laplace(query=bounds.clipped_sum("age", 0, 110, Unit()), epsilon=0.25)
    >>> float(epsilon(sequence(total=count, years=years).event, delta=0))
    0.75
    """
    return Sequence(plans=plans)


def repeat(plan: Plan[Any, Any], times: int) -> Repeat:
    """The same release, so many times.

    >>> from sfumato import Unit, bounds, mechanisms, repeat
    >>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
    >>> repeat(count, 10).event.times
    10
    """
    return Repeat(plan=plan, times=times)


def partition(column: str, keys: Any, plan: Plan[Any, Any]) -> Partition:
    """The same release on every part of the data, split by a public column that is constant per unit.

    >>> from sfumato import Unit, bounds, epsilon, mechanisms, partition
    >>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
    >>> float(epsilon(partition("region", ["north", "south"], count).event, delta=0))  # a row is in one part
    0.5
    """
    return Partition(column=column, plans=dict.fromkeys(checks.distinct(keys, "keys"), plan))


def reserve(
    body: Callable[[Run], Any] | None = None, *, unit: Unit, budget: Budget, reads: Mapping[str, Column] | None = None
) -> Reserve:
    """Adaptive releases inside one plan, under one budget.

    >>> from sfumato import Budget, Unit, reserve
    >>> float(reserve(unit=Unit(), budget=Budget(epsilon=1)).event.epsilon)
    1.0
    """
    return Reserve(protects=unit, budget=budget, reads=reads or {}, body=body)
