"""Attempts to break strategies and what is built on them, by means of their own: every small matrix written out, every
small stream, every float beside an edge."""

from __future__ import annotations

import bisect
import math
import random
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.bounds import Bins, Cross, EqualBins, Increments, Measured, Running, Tally
from sfumato.errors import ArgumentError
from sfumato.rows import Rows
from sfumato.schema import category, key, real, whole
from sfumato.strategies import (
    Banded,
    Causal,
    Cells,
    Dense,
    Identity,
    Listed,
    Prefixes,
    Ranges,
    SquareRoot,
    StepTree,
    Strategy,
    Tree,
    best_strategy,
    best_tree,
    expected_squared_error,
    optimised,
)
from sfumato.strategies.convolve import _PRIMES, _by_residues
from sfumato.tidy import Tidy
from tests.helpers import read

Norms = tuple[int, int, int]
ROW, USER = Unit("row"), Unit("user:u")


def norms(vector: Iterable[int]) -> Norms:
    sizes = [abs(int(x)) for x in vector]
    return sum(sizes), sum(x * x for x in sizes), max(sizes)


def largest(found: Iterable[Norms]) -> Norms:
    l1, l2, linf = zip(*found, strict=True)
    return max(l1), max(l2), max(linf)


def columns(strategy: Strategy) -> list[list[int]]:
    """2^bits A, column by column, in Python integers."""
    return [[int(x) for x in strategy.measure(unit)] for unit in np.eye(strategy.cells, dtype=np.int64)]


def apart(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [x - y for x, y in zip(a, b, strict=True)]


def trees() -> list[Strategy]:
    shapes = [(cells, width) for cells in range(1, 12) for width in (2, 3, 4)]
    cut = [(c, b, h) for c, b in shapes for h in range(1, Tree(cells=c, branching=b).height + 1)]
    return [Tree(cells=c, branching=b, levels=h) for c, b, h in cut]


def causal(most: int) -> list[Causal]:
    found: list[Causal] = [SquareRoot(cells=cells) for cells in range(1, most + 1)]
    found += [Banded(cells=cells, bands=bands) for cells in range(1, most + 1) for bands in range(1, cells + 1)]
    return found + [StepTree(cells=cells, branching=b) for cells in range(1, most + 1) for b in (2, 3, 5)]


def dense() -> list[Strategy]:
    rng = np.random.default_rng(1)
    some = [Dense.of(rng.normal(size=(rows, cells)), precision=bits) for rows, cells, bits in ((3, 4, 3), (6, 2, 24))]
    return [*some, Dense(cells=2, entries=((2**30, -(2**30)),)), Identity(cells=1), Identity(cells=4)]


# ------------------------------------------------------------------------------------------------ what a unit moves


@pytest.mark.parametrize("kind", ["trees", "causal", "dense"])
def test_columns_and_differences_of_columns_written_out(kind: str) -> None:
    for strategy in {"trees": trees, "causal": lambda: causal(20), "dense": dense}[kind]():
        every = columns(strategy)
        alone = [norms(column) for column in every]
        assert tuple(strategy.column_norms) == largest(alone), strategy
        pairs = [norms(apart(a, b)) for a, b in combinations(every, 2)]
        assert tuple(strategy.column_gaps) == largest(alone + pairs), strategy


def placed(cells: int, times: int, separation: int) -> list[tuple[int, ...]]:
    """All places that up to so many rows may take."""
    some = (places for count in range(times + 1) for places in combinations(range(cells), count))
    return [places for places in some if all(b - a >= separation for a, b in pairwise(places))]


def test_spaced_rows_written_out() -> None:
    for strategy in causal(7):
        matrix = np.array(columns(strategy)).T
        assert matrix.min() >= 0
        for separation in range(1, strategy.cells + 2):
            for times in range(1, strategy.cells + 2):
                moved = largest(
                    norms(matrix[:, list(p)].sum(axis=1)) for p in placed(strategy.cells, times, separation)
                )
                declared = tuple(strategy.spaced(times, separation))
                assert all(a >= b for a, b in zip(declared, moved, strict=True)), (strategy, times, separation)
                if not isinstance(strategy, StepTree):
                    assert declared == moved


def test_exchanged_units_with_a_separation_written_out() -> None:
    unit = Unit("user:u", "replace")
    for strategy in (SquareRoot(cells=6), Banded(cells=6, bands=2), StepTree(cells=6), StepTree(cells=6, branching=3)):
        matrix = np.array(columns(strategy)).T
        for times, separation in ((1, 1), (2, 1), (2, 2), (3, 2), (2, 4)):
            query = bounds.increments("t", 6, unit, per_unit=times, separation=separation)
            running = Running(query=query, strategy=strategy, workload=Prefixes(cells=6), unit=unit)
            allowed = running.in_steps(-strategy.bits)
            moved = [matrix[:, list(p)].sum(axis=1) for p in placed(6, times, separation)]
            l1, l2, linf = largest(norms(a - b) for a, b in combinations(moved, 2))
            assert l1 <= allowed.l1 and l2 <= allowed.l2_squared and linf <= allowed.linf


# ------------------------------------------------------------------------------------------------ tables

TABLE = Schema.of(
    u=key(), x=real(-1e9, 1e9), w=category(("a", "b", "c", "zz")), v=category(("p", "q")), t=whole(-50, 50)
)
Cell = tuple[Any, Any, Any]


def table(people: list[tuple[Any, Cell]], unit: Unit) -> Rows:
    x, w, v = zip(*(cell for _, cell in people), strict=True) if people else ((), (), ())
    return read(TABLE, unit, u=[who for who, _ in people], x=x, w=w, v=v, t=[0] * len(people))


def any_row(rnd: random.Random) -> Cell:
    x = rnd.choice([None, -5.0, 0.0, 0.5, 1.0, 2.0, 4.0, 9.0, math.inf])
    return x, rnd.choice(["a", "b", "c", "zz", None]), rnd.choice(["p", "q", None])


def any_query(rnd: random.Random, unit: Unit, per_unit: int) -> Any:
    outside = rnd.choice(["clamp", "drop"])
    made: list[Any] = [
        bounds.histogram("w", ["a", "b", "c"], unit, per_unit=per_unit),
        Bins(column="x", edges=(0, 1, 2, 4), unit=unit, per_unit=per_unit, outside=outside),
        EqualBins(column="x", lower=0, upper=4, count=5, unit=unit, per_unit=per_unit, outside=outside),
        Cross(over={"w": ["a", "c"], "v": ["p", "q"]}, unit=unit, per_unit=per_unit),
    ]
    return rnd.choice(made)


def any_strategy(rnd: random.Random, cells: int) -> Strategy:
    rng = np.random.default_rng(rnd.randrange(100))
    signed = np.concatenate([rng.normal(size=(2, cells)), np.eye(cells)])
    made: list[Strategy] = [
        Identity(cells=cells),
        Tree(cells=cells),
        Tree(cells=cells, branching=3, levels=2),
        Dense.of(signed, precision=rnd.choice([1, 5, 24])),
        SquareRoot(cells=cells),
        Banded(cells=cells, bands=2),
        StepTree(cells=cells, branching=rnd.choice([2, 3])),
    ]
    return rnd.choice(made)


@pytest.mark.parametrize("of", ["row", "user:u"])
@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
def test_tables_that_differ_by_a_group_of_units(of: str, change: Any) -> None:
    """Rows outside of every cell, NULLs, rows of nobody, units with many rows or none, groups of two."""
    rnd, nearest = random.Random(of + change), 0.0
    for _ in range(150):
        unit = Unit(of, change, rnd.choice([1, 2]))
        cells = any_query(rnd, unit, 1 if of == "row" else rnd.choice([1, 2, 3]))
        strategy = any_strategy(rnd, cells.size)
        query = Measured(query=cells, strategy=strategy, workload=Prefixes(cells=cells.size), unit=unit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exponent = m.Laplace(query=query, epsilon=rnd.choice([1e-3, 1, 1000])).exponent

        def group(first: int, unit: Unit = unit) -> list[tuple[Any, Cell]]:
            size = [1 if of == "row" else rnd.randrange(6) for _ in range(unit.group)]
            return [(first + who, any_row(rnd)) for who in range(unit.group) for _ in range(size[who])]

        others = [(rnd.choice([1, 2, None]), any_row(rnd)) for _ in range(rnd.randrange(5))]
        one, other = group(100), group(rnd.choice([100, 300])) if change == "replace" else []
        if change == "zero-out":
            other = [(who, (None, None, None)) for who, _ in one]
        a, b = (query.steps(table(others + own, unit), exponent) for own in (one, other))
        l1, l2, linf = norms(apart(a.tolist(), b.tolist()))
        allowed = query.in_steps(exponent)
        assert l1 <= allowed.l1 and l2 <= allowed.l2_squared and linf <= allowed.linf, (query, one, other)
        nearest = max(nearest, float(l1 / allowed.l1))
    assert nearest > 0.9  # the bound is not idle


# ------------------------------------------------------------------------------------------------ streams


def told(query: Increments, days: list[list[tuple[Any, Any]]], rnd: random.Random) -> list[int]:
    """What counts at each step, of data that is another at each; keys come as numbers, texts and floats."""
    tally, found = Tally(query), []
    for step, data in enumerate(days):
        kind = rnd.choice([int, str, float])
        names = [None if who is None else kind(who) for who, _ in data]
        found.append(tally.count(read(TABLE, query.unit, u=names, **others_of([t for _, t in data])), step))
    return found


def others_of(steps: list[Any]) -> dict[str, Any]:
    nothing = [None] * len(steps)
    return {"t": steps, "x": nothing, "w": nothing, "v": nothing}


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
def test_streams_whose_rows_come_late_move_vanish_and_come_back(change: Any) -> None:
    rnd, horizon, unit = random.Random(change), 5, Unit("user:u", change)
    moments = [None, -1, 0, 1, 2, 3, 4, 7]
    for _ in range(120):
        query = bounds.increments(
            "t", horizon, unit, per_unit=rnd.choice([1, 2, 3]), separation=rnd.choice([None, 1, 2, 3])
        )

        def days(names: list[Any], most: int) -> list[list[tuple[Any, Any]]]:
            sizes = [rnd.randrange(most) for _ in range(horizon)]
            return [[(rnd.choice(names), rnd.choice([*moments, s])) for _ in range(n)] for s, n in enumerate(sizes)]

        others, mine, yours = days([1, 2, None], 5), days([12], 5), days([99], 5)
        if change == "add-remove":
            yours = [[] for _ in mine]
        elif change == "zero-out":
            yours = [[(who, None) for who, _ in day] for day in mine]
        one, other = ([a + b for a, b in zip(others, own, strict=True)] for own in (mine, yours))
        moved = np.array(apart(told(query, one, rnd), told(query, other, rnd)))
        for strategy in (SquareRoot(cells=5), Banded(cells=5, bands=2), StepTree(cells=5), Identity(cells=5)):
            if isinstance(strategy, Causal):
                made: Any = Running(query=query, strategy=strategy, workload=Prefixes(cells=5), unit=unit)
            else:
                made = Measured(query=query, strategy=strategy, workload=Cells(cells=5), unit=unit)
            allowed, (l1, l2, linf) = made.in_steps(-strategy.bits), norms(strategy.measure(moved))
            assert l1 <= allowed.l1 and l2 <= allowed.l2_squared and linf <= allowed.linf, (query, moved)


def test_told_step_by_step_or_at_once_the_same_rows_count() -> None:
    rnd = random.Random(3)
    for _ in range(100):
        query = bounds.increments("t", 5, USER, per_unit=rnd.choice([1, 2, 3]), separation=rnd.choice([None, 1, 2, 5]))
        data = [
            (rnd.choice([1, 2, 3, None]), rnd.choice([None, -1, 0, 1, 2, 3, 4, 7])) for _ in range(rnd.randrange(15))
        ]
        rows = read(TABLE, USER, u=[who for who, _ in data], **others_of([t for _, t in data]))
        assert query.steps(rows, 0).tolist() == told(query, [data] * 5, rnd)


# ------------------------------------------------------------------------------------------------ exact products


def test_primes_are_primes_and_wide_enough() -> None:
    (p, first), (q, second) = _PRIMES
    assert p < q < 2**32 and p * q > 2**63
    for prime, root in ((p, first), (q, second)):
        assert all(prime % d for d in range(2, math.isqrt(prime) + 1))
        assert (prime - 1) % 2**22 == 0 and pow(
            root, (prime - 1) // 2, prime
        ) == prime - 1  # so its order is even: 2^22


@pytest.mark.parametrize("sign", [1, -1])
def test_products_at_the_edge_of_what_fits(sign: int) -> None:
    """Sums of just below 2^62 in size, where a float has lost nine bits."""
    size = 4097
    values = np.full(size, sign * ((2**62 - 1) // (size * 1023)), dtype=np.int64)
    values[::7] -= sign
    weights = np.full(size, 1023, dtype=np.int64)
    sums = np.cumsum(values.astype(object)) * 1023
    assert abs(sums[-1]) > 2**61 and np.array_equal(_by_residues(weights, values), sums.astype(np.int64))


@pytest.mark.parametrize("large", [2**61, 2**70, 10**40, -(2**62), -(10**40)])
def test_numbers_that_do_not_fit_are_measured_in_parts(large: int) -> None:
    """Exactly, and as fast as small ones: before, 5,000 wide numbers took 25 million steps of Python."""
    rng = np.random.default_rng(abs(large) % 1000)
    for strategy in (SquareRoot(cells=5000), StepTree(cells=5000), Tree(cells=5000), Banded(cells=5000, bands=3)):
        small = rng.integers(-(2**30), 2**30, strategy.cells)
        wide = np.array([large * x + 1 for x in small.tolist()], dtype=object)
        one, ones = strategy.measure(small), strategy.measure(np.ones_like(small))
        expected = [large * int(x) + int(y) for x, y in zip(one, ones, strict=True)]
        assert [int(x) for x in strategy.measure(wide)] == expected
        if isinstance(strategy, Causal):
            last = strategy.latest(wide)
            assert [int(x) for x in last] == expected[-last.size :]


def test_one_after_another_and_at_once_measure_the_same() -> None:
    rng = np.random.default_rng(0)
    strategy = SquareRoot(cells=6000)
    cells = rng.integers(0, 2**31, 6000)
    at_once = strategy.measure(cells)
    for step in (0, 1, 4095, 5999):
        assert strategy.latest(cells[: step + 1]).tolist() == [at_once[step]]


def test_too_many_numbers_are_refused_not_wrapped() -> None:
    with pytest.raises(ArithmeticError):
        _by_residues(np.ones(1, dtype=np.int64), np.zeros(2**21 + 1, dtype=np.int64))


# ------------------------------------------------------------------------------------------------ error bars


def test_mixing_is_the_exact_covariance() -> None:
    rng = np.random.default_rng(3)
    for cells in (1, 2, 5, 11):
        every: list[Strategy] = [s for s in (*trees(), *causal(11)) if s.cells == cells]
        for strategy in (*every, Dense.of(rng.normal(size=(cells + 2, cells)), precision=20)):
            estimate = np.array([strategy.estimate(unit) for unit in np.eye(strategy.measurements)]).T
            matrix = np.array(columns(strategy), dtype=np.float64).T / 2.0**strategy.bits
            assert np.allclose(estimate @ matrix, np.eye(cells), atol=1e-6)  # no bias
            some = Listed.of(rng.normal(size=(2, cells)))
            for workload in (Cells(cells=cells), Prefixes(cells=cells), Ranges(cells=cells), some):
                weights = np.abs(workload.matrix @ estimate)
                l1, l2, linf = strategy.mixing(workload)
                assert np.allclose(l1, weights.sum(axis=1)) and np.allclose(linf, weights.max(axis=1))
                assert np.allclose(l2, np.sqrt((weights**2).sum(axis=1)))


# ------------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize(
    ("lower", "upper", "count"),
    [
        (-9e99, 9e99, 7),
        (0.1, 0.3, 3),
        (-1 / 3, 2 / 3, 999),
        (1e15, 1e15 + 1000, 7),
        (2**53, 2**53 + 4096, 16),
        (2**62, 2**63 - 1, 100),
        (-(2**63), 2**63, 17),
        (1, 1 + 2**-40, 100),
        (2e-100, 3e-100, 64),
    ],
)
def test_floats_and_whole_numbers_beside_every_edge(lower: float, upper: float, count: int) -> None:
    cuts = EqualBins(column="x", lower=lower, upper=upper, count=count, unit=ROW).cuts
    exact = [Fraction(float(edge)) for edge in cuts]
    beside = [cuts, *(f(f(cuts)) for f in (up, down)), up(cuts), down(cuts), [0.0, -0.0, 1e308, -1e308, 5e-324]]
    floats = np.concatenate(beside)
    near = [math.floor(edge) + d for edge in exact[:40] + exact[-40:] for d in (-2, -1, 0, 1, 2)]
    numbers = [n for n in (*near, 2**63 - 1, -(2**63), 2**53 + 1) if -(2**63) <= n < 2**63]
    reals = read(Schema.of(x=real(-1e100, 1e100)), ROW, x=np.append(floats, [np.inf, -np.inf, np.nan]))
    wholes = read(Schema.of(x=whole(-(2**63), 2**63 - 1)), ROW, x=np.array(numbers, dtype=np.int64))
    for outside in ("clamp", "drop"):
        equal = EqualBins(column="x", lower=lower, upper=upper, count=count, unit=ROW, outside=outside)
        listed = Bins(column="x", edges=tuple(exact), unit=ROW, outside=outside)
        for query in (equal, listed):
            for rows, values in ((reals, floats.tolist()), (wholes, numbers)):
                place, valid = query.places(rows)
                for value, found, counts in zip(values, place, valid, strict=False):
                    at = Fraction(value)
                    assert counts == (outside == "clamp" or exact[0] <= at <= exact[-1])
                    clamped = min(max(at, exact[0]), exact[-1])
                    assert not counts or found == min(bisect.bisect_right(exact, clamped) - 1, count - 1)
            place, valid = query.places(reals)
            assert valid[-3:].tolist() == ([True, True, False] if outside == "clamp" else [False] * 3)


def up(values: Any) -> Any:
    return np.nextafter(values, np.inf)


def down(values: Any) -> Any:
    return np.nextafter(values, -np.inf)


# ------------------------------------------------------------------------------------------------ arguments

HISTOGRAM = bounds.histogram("w", ["a", "b", "c"], ROW)
NOISY = m.Laplace(query=HISTOGRAM, epsilon=1)
PREFIXES = m.Laplace(query=bounds.workload(HISTOGRAM, "prefixes"), epsilon=1)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Dense(cells=3, entries=None), "entries"),  # type: ignore[arg-type]
        (lambda: Dense(cells=1, entries=(1,)), "entries"),  # type: ignore[arg-type]
        (lambda: Dense.of("x"), "matrix"),
        (lambda: Dense.of([[1, 2], [3]]), "matrix"),
        (lambda: Listed(cells=1, labels={"a", "b"}, weights=((1,), (2,))), "labels"),  # type: ignore[arg-type]
        (lambda: best_strategy(None), "workload"),  # type: ignore[arg-type]
        (lambda: optimised(3), "workload"),  # type: ignore[arg-type]
        (lambda: expected_squared_error(3, Cells(cells=3)), "strategy"),  # type: ignore[arg-type]
        (lambda: expected_squared_error(Identity(cells=3), Cells(cells=3), change="all"), "change"),
        (lambda: best_tree([3]), "cells"),  # type: ignore[arg-type]
        (lambda: best_tree(3, change="all"), "change"),
        (lambda: bounds.hierarchical(HISTOGRAM, branching=0), "branching"),
        (lambda: m.Gaussian(query=HISTOGRAM, multiplier=np.array([1, 2])), "multiplier"),
        (lambda: Tidy(plan=NOISY, total=np.array([1, 2])), "total"),
        (lambda: Tidy(plan=NOISY, total=10**30, whole=True), "total"),
        (lambda: Tidy(plan=PREFIXES, total=10), "total"),
    ],
)
def test_nonsense_is_refused_by_name(make: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        make()


def test_whole_tables_add_up_exactly_whatever_the_total() -> None:
    rng = np.random.default_rng(2)
    wide = m.Laplace(query=bounds.bins_between("x", 0, 1, 1000, ROW), epsilon=1)
    for total in (0, 1, 7, 999, 10**9 + 1, 2**53 - 1, 2**53):
        for nonnegative in (True, False):
            tidy = Tidy(plan=wide, whole=True, total=total, nonnegative=nonnegative)
            assert sum(tidy.finish(rng.normal(size=1000) * 1e6).values()) == total


def test_strategies_are_light_to_import() -> None:
    """scipy.signal alone takes a second."""
    loaded = (
        "import sys, sfumato.strategies; print([n for n in ('scipy.signal', 'scipy.optimize') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
