"""The matrix mechanism as a query: what one unit moves, by brute force over small tables, and what its answers are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, bounds, record
from sfumato import mechanisms as m
from sfumato.audit.conformance import ConformanceError, check_plan
from sfumato.bounds import Bounded, Measured
from sfumato.bounds.measured import cell_moves
from sfumato.errors import ArgumentError
from sfumato.schema import category, key, real
from sfumato.strategies import Cells, Dense, Identity, Listed, Prefixes, Strategy, Tree
from sfumato.units import RELATIONS
from tests.helpers import read, seeded

NAMES = ("a", "b", "c")
SCHEMA = Schema.of(u=key(), w=category(NAMES))
STRATEGIES: list[Strategy] = [
    Identity(cells=3),
    Tree(cells=3),
    Dense(cells=3, entries=((1, 1, 1), (0, 1, 1), (0, 0, 1))),
    Dense(cells=3, entries=((3, -2, 0), (0, 5, 1), (1, 1, 7)), precision=3),
    Dense.of([[0.3, 0.9, 0.2], [0.7, -0.4, 0.1], [0.6, 0.1, -0.8], [0.0, 0.0, 1.0]], precision=10),
]


def measured(strategy: Strategy, unit: Unit, per_unit: int = 1) -> Measured:
    cells = bounds.histogram("w", NAMES, unit, per_unit=per_unit)
    return Measured(query=cells, strategy=strategy, workload=Cells(cells=3), unit=unit)


def rows_of(unit: Unit, people: list[tuple[Any, ...]]) -> Any:
    return read(
        SCHEMA,
        unit,
        u=[f"u{i}" for i, person in enumerate(people) for _ in person],
        w=[cell for person in people for cell in person],
    )


def persons(per_unit: int) -> list[tuple[Any, ...]]:
    """Every way to bring up to per_unit + 1 rows (a unit that is a row brings one)."""
    return [p for n in range(1, per_unit + 2) for p in combinations_with_replacement(NAMES, n)]


def moved(query: Bounded, unit: Unit, per_unit: int, exponent: int) -> Any:
    """The largest movement of every norm, over all pairs of what one unit may bring."""
    everyone = [(name,) for name in NAMES] if unit.column is None else persons(per_unit)
    if unit.change == "replace":
        everyone = [*everyone, (None,)]  # a row of no cell at all
    base: list[tuple[Any, ...]] = [("a",), ("b",)]
    before = [query.steps(rows_of(unit, [person, *base]), exponent).astype(object) for person in everyone]
    if unit.change == "replace":
        gaps = [x - y for x, y in product(before, before)]
    elif unit.change == "add-remove":
        gone = query.steps(rows_of(unit, [(), *base]), exponent).astype(object)
        gaps = [x - gone for x in before]
    else:
        gaps = [
            x - query.steps(rows_of(unit, [(None,) * len(person), *base]), exponent).astype(object)
            for x, person in zip(before, everyone, strict=True)
        ]
    norms = [(int(np.abs(g).sum()), int((g * g).sum()), int(np.abs(g).max())) for g in gaps]
    return tuple(max(each) for each in zip(*norms, strict=True))


CASES = [
    (Unit(of, change), per_unit)
    for of in ("row", "user:u")
    for change in RELATIONS
    for per_unit in ((1,) if of == "row" else (1, 2, 3))
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{type(s).__name__}-{s.measurements}")
@pytest.mark.parametrize(("unit", "per_unit"), CASES, ids=str)
def test_no_unit_moves_it_further_than_it_says_and_some_unit_does(
    strategy: Strategy, unit: Unit, per_unit: int
) -> None:
    query = measured(strategy, unit, per_unit)
    exponent = -strategy.bits - 6
    declared, found = query.in_steps(exponent), moved(query, unit, per_unit, exponent)
    assert found[0] == declared.l1 and found[1] == declared.l2_squared and found[2] == declared.linf
    real_units = query.sensitivity
    step = Fraction(2) ** exponent
    assert (real_units.l1 / step, real_units.l2_squared / step**2, real_units.linf / step) == (
        declared.l1,
        declared.l2_squared,
        declared.linf,
    )


def test_groups_multiply_what_moves() -> None:
    for change in RELATIONS:
        one, three = (measured(STRATEGIES[3], Unit(change=change, group=g)).in_steps(-9) for g in (1, 3))
        assert (three.l1, three.l2_squared, three.linf) == (3 * one.l1, 9 * one.l2_squared, 3 * one.linf)


def test_identity_measured_costs_what_the_histogram_costs() -> None:
    for unit, per_unit in CASES:
        cells = bounds.histogram("w", NAMES, unit, per_unit=per_unit)
        assert measured(Identity(cells=3), unit, per_unit).in_steps(-4) == cells.in_steps(-4)


def test_exchanged_cells_are_the_exception_not_the_rule() -> None:
    """Differences of columns count only where each row is in one cell; a query of another kind is bounded by its L1."""
    unit = Unit(change="replace")
    cells = bounds.histogram("w", NAMES, unit)
    assert cell_moves(cells, 0) == (1, True)
    declared = bounds.declared(lambda rows: [0, 0, 0], unit, reads={}, labels=NAMES, l1=3, l2=2, linf=1)
    assert not cell_moves(declared, -8).exchanged
    query = Measured(query=declared, strategy=STRATEGIES[2], workload=Cells(cells=3), unit=unit)
    # three columns of L1 norm 3 at most, and the half steps that rounding may move each coordinate by
    assert query.in_steps(-8).l1 == 3 * (3 * 256 + 3)


def test_rounding_of_a_declared_query_is_paid_for() -> None:
    """Its cells are rounded to the grid before they are measured: neighbours may differ by a step more, times A."""
    value = [0.0]

    def shifted(rows: Any) -> list[float]:
        return [value[0] + 0.25 * len(rows), 0.0]

    declared = bounds.declared(shifted, Unit(), reads={}, labels=["p", "q"], l1=0.25, l2=0.25, linf=0.25)
    strategy = Dense(cells=2, entries=((1, 1), (8, -8)))
    query = Measured(query=declared, strategy=strategy, workload=Cells(cells=2), unit=Unit())
    largest = 0
    for shift in np.linspace(0, 1, 41):
        value[0] = float(shift)
        one, other = (query.steps(rows_of(Unit(), [("a",)] * n), -1) for n in (1, 2))
        largest = max(largest, int(np.abs(one - other).sum()))
    assert Fraction(query.sensitivity.l1) * 2 < largest <= query.in_steps(-1).l1


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Unit(), Unit("user:u", "replace"), Unit("user:u", group=2)], ids=str)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_whole_plan_holds_every_promise(unit: Unit, kind: str) -> None:
    query = measured(STRATEGIES[4], unit, 2 if unit.column else 1)
    plan = m.Laplace(query=query, epsilon=1) if kind == "laplace" else m.Gaussian(query=query, rho=0.3, delta=1e-6)
    if unit.change == "replace" or kind == "laplace":
        check_plan(plan)
    assert record.parse(record.canonical(plan)) == plan


@record.record("test-lying-strategy/1")
@dataclass(frozen=True, kw_only=True)
class Lying(Dense):
    @property
    def column_norms(self) -> Any:  # type: ignore[override]
        return super().column_norms._replace(l1=4)


def test_a_strategy_that_lies_about_its_columns_is_caught() -> None:
    strategy = Lying(cells=3, entries=((1, 1, 1), (2, 0, 1), (2, 2, 5)))
    with pytest.raises(ConformanceError, match="sensitivity"):
        check_plan(m.Laplace(query=measured(strategy, Unit()), epsilon=1))


def test_answers_come_out_right_without_noise_and_named() -> None:
    rows = rows_of(Unit(), [("a",)] * 5 + [("b",)] * 3 + [("c",)] * 2)
    for strategy in STRATEGIES:
        query = bounds.workload(bounds.histogram("w", NAMES, Unit()), "prefixes", strategy=strategy)
        exact = np.ldexp(query.steps(rows, -12).astype(np.float64), -12)
        assert query.finish(exact) == pytest.approx({"<= a": 5, "<= b": 8, "<= c": 10})
    asked = bounds.workload(
        bounds.histogram("w", NAMES, Unit()), [[1, 1, 0], [0, 0.5, 0.5]], labels=["early", "half"], strategy="cells"
    )
    assert asked.finish(np.array([5.0, 3.0, 2.0])) == {"early": 8.0, "half": 2.5}
    ranges = bounds.workload(bounds.histogram("w", NAMES, Unit()), "ranges", strategy="tree")
    assert ranges.finish(ranges.strategy.measure(np.array([5, 3, 2])).astype(float))["b to c"] == pytest.approx(5)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_error_bars_cover_and_are_not_idle(noise: str) -> None:
    cells = bounds.histogram("w", NAMES, Unit())
    rows, runs = rows_of(Unit(), [("a",)] * 5 + [("b",)] * 3), 1500
    truth = np.array([5.0, 8.0, 8.0])
    for strategy in (STRATEGIES[1], STRATEGIES[4]):
        query = Measured(query=cells, strategy=strategy, workload=Prefixes(cells=3), unit=Unit())
        plan = m.Laplace(query=query, epsilon=0.5) if noise == "laplace" else m.Gaussian(query=query, rho=0.1)
        run = seeded(5)
        off = np.array([list(plan.finish(plan._run(rows, run)).values()) for _ in range(runs)]) - truth
        raw = plan._run(rows, run)
        for alpha in (0.05, 0.3):
            bars = np.array(list(plan.error(raw, alpha).values()))
            missed = (np.abs(off) > bars).mean(axis=0)
            assert np.all(missed <= alpha + 4 * np.sqrt(alpha / runs))
            assert np.all(missed >= alpha / (8 if noise == "laplace" else 2))
        assert plan.expected_error(0.05) == pytest.approx(max(plan.error(raw, 0.05).values()))
        wanted = plan.std * query.mixing.l2
        np.testing.assert_allclose(off.std(axis=0), wanted, rtol=0.1)
        assert np.all(np.abs(off.mean(axis=0)) < 5 * wanted / np.sqrt(runs))  # no bias


def test_one_cell_and_many_rows() -> None:
    one = Measured(
        query=bounds.histogram("w", ["a"], Unit()),
        strategy=Dense(cells=1, entries=((3,), (1,))),
        workload=Cells(cells=1),
        unit=Unit(),
    )
    assert (one.l1, one.linf) == (4, 3)
    schema = Schema.of(w=category(["a"]))
    plan = m.Laplace(query=one, epsilon=1)
    rows = read(schema, Unit(), w=["a"] * 1000)
    assert plan.finish(plan._run(rows, seeded()))["a"] == pytest.approx(1000, abs=60)
    replaced = Measured(
        query=bounds.histogram("w", ["a"], Unit(change="replace")),
        strategy=one.strategy,
        workload=Cells(cells=1),
        unit=Unit(change="replace"),
    )
    assert (replaced.l1, replaced.linf) == (4, 3)


@pytest.mark.slow
def test_a_query_of_real_numbers_can_be_measured_too() -> None:
    """Any bounded query has cells: here sum and count of a mean, moved by at most its L1."""
    schema = Schema.of(x=real(0, 10))
    mean = bounds.mean("x", 0, 10, Unit())
    query = Measured(
        query=mean, strategy=Dense(cells=2, entries=((1, 1), (1, -1))), workload=Cells(cells=2), unit=Unit()
    )
    exponent = -20
    without = query.steps(read(schema, Unit(), x=[3.0]), exponent)
    for value in (0.0, 10.0, 5.0, np.nan, np.inf):
        gap = query.steps(read(schema, Unit(), x=[3.0, value]), exponent) - without
        assert np.abs(gap).sum() <= query.in_steps(exponent).l1
    check_plan(m.Laplace(query=query, epsilon=1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda c: Measured(query=1, strategy=Identity(cells=3), workload=Cells(cells=3), unit=Unit()), "query"),
        (lambda c: Measured(query=c, strategy=1, workload=Cells(cells=3), unit=Unit()), "strategy"),
        (lambda c: Measured(query=c, strategy=Identity(cells=3), workload=1, unit=Unit()), "workload"),
        (lambda c: Measured(query=c, strategy=Identity(cells=2), workload=Cells(cells=3), unit=Unit()), "3 cells"),
        (lambda c: Measured(query=c, strategy=Identity(cells=3), workload=Cells(cells=2), unit=Unit()), "3 cells"),
        (lambda c: Measured(query=c, strategy=Identity(cells=3), workload=Cells(cells=3), unit=Unit(group=2)), "unit"),
        (
            lambda c: Measured(
                query=c, strategy=Dense(cells=3, entries=((1, 1, 1),)), workload=Cells(cells=3), unit=Unit()
            ),
            "determine every answer",
        ),
        (lambda c: bounds.workload(c, "cubes"), "asked"),
        (lambda c: bounds.workload(c, [[1, 2]]), "3 cells"),
        (lambda c: bounds.workload(c, Listed.of([[1, 2]])), "3 cells"),
        (lambda c: bounds.workload(c, "cells", strategy="best"), "strategy"),
        (lambda c: bounds.workload(c, "cells", noise="uniform"), "noise"),
        (lambda c: bounds.workload("w", "cells"), "query"),
        (lambda c: bounds.workload(c, 7), "weights"),
    ],
)
def test_nonsense_is_refused_at_birth(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make(bounds.histogram("w", NAMES, Unit()))
