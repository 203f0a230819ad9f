"""Strategies and workloads by their definitions: exact measurements and norms, no bias, honest weights."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.strategies import Cells, Dense, Identity, Listed, Prefixes, Ranges, Reach, Strategy
from sfumato.strategies.base import exact_product, row_norms

calm = settings(derandomize=True, deadline=None, max_examples=60)


def entries_of(strategy: Strategy) -> list[list[int]]:
    """2^bits A, column by column, from what it measures of single cells."""
    columns = [strategy.measure(np.eye(strategy.cells, dtype=np.int64)[place]) for place in range(strategy.cells)]
    return [[int(x) for x in column] for column in columns]


def norms(vector: list[int]) -> Reach:
    return Reach(sum(map(abs, vector)), sum(x * x for x in vector), max(map(abs, vector)))


def worst(vectors: list[list[int]]) -> Reach:
    found = [norms(vector) for vector in vectors]
    return Reach(*(max(each[i] for each in found) for i in range(3)))


def matrices(most: int = 50) -> st.SearchStrategy[list[list[int]]]:
    entry = st.integers(-most, most)
    return st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(entry, min_size=n, max_size=n), min_size=1, max_size=6)
    ).filter(lambda rows: any(map(any, rows)))  # fmt: skip


def dense(rows: Any, precision: int = 0) -> Dense:
    return Dense(cells=len(rows[0]), entries=rows, precision=precision)


@calm
@given(matrices(2**30), st.integers(0, 24))
def test_norms_are_those_of_the_columns_and_their_differences(rows: list[list[int]], precision: int) -> None:
    strategy = dense(rows, precision)
    columns = entries_of(strategy)
    assert columns == [list(column) for column in zip(*rows, strict=True)]
    assert strategy.column_norms == worst(columns)
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in combinations(columns, 2)]
    assert strategy.column_gaps == worst(columns + gaps)
    assert strategy.measurements == len(rows) and strategy.bits == precision


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_identity_by_the_same_measure(cells: int) -> None:
    strategy = Identity(cells=cells)
    columns = entries_of(strategy)
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in combinations(columns, 2)]
    assert strategy.column_norms == worst(columns) and strategy.column_gaps == worst(columns + gaps)
    assert strategy.measurements == cells


@calm
@given(matrices(2**30), st.data())
def test_measurements_are_exact_however_large(rows: list[list[int]], data: Any) -> None:
    cells = data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=len(rows[0]), max_size=len(rows[0])))
    wanted = [sum(a * x for a, x in zip(row, cells, strict=True)) for row in rows]
    for vector in (np.array(cells, dtype=np.int64), np.array(cells, dtype=object)):
        assert [int(x) for x in dense(rows).measure(vector)] == wanted
    small = np.array([x >> 40 for x in cells], dtype=np.int64)
    found = dense(rows).measure(small)
    assert [int(x) for x in found] == [sum(a * int(x) for a, x in zip(row, small, strict=True)) for row in rows]


def test_products_at_the_edges() -> None:
    one = np.array([[1]], dtype=np.int64)
    assert exact_product(one, np.array([-(2**63)])).tolist() == [-(2**63)]
    assert exact_product(np.zeros((2, 3), dtype=np.int64), np.zeros(3, dtype=np.int64)).tolist() == [0, 0]
    assert exact_product(np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == [0, 0]
    assert exact_product(2 * one, np.array([2**62])).tolist() == [2**63]
    assert exact_product(one, np.array([0])).dtype == np.int64


@calm
@given(matrices(), st.data())
def test_estimates_have_no_bias_and_mixing_tells_their_weights(rows: list[list[int]], data: Any) -> None:
    strategy, n = dense(rows, 2), len(rows[0])
    weights = data.draw(st.lists(st.integers(-3, 3), min_size=len(rows), max_size=len(rows)).filter(any))
    asked = (np.array(rows, dtype=np.float64).T @ weights).tolist()  # determined, by construction
    if not any(asked):
        return
    workload = Listed.of([asked])
    assert strategy.determines(workload)
    truth = np.array(data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n)), dtype=np.int64)
    exact = strategy.measure(truth).astype(np.float64) / 4
    answer = workload.answer(strategy.estimate(exact))
    np.testing.assert_allclose(answer, np.array(asked) @ truth, rtol=1e-6, atol=1e-6 * (1 + np.abs(asked).max() * 500))
    # the weights of unit noises in the answer, one by one
    pushed = [workload.answer(strategy.estimate(noise))[0] for noise in np.eye(len(rows))]
    l1, l2, linf = strategy.mixing(workload)
    scale = max(1.0, float(np.abs(pushed).max()))
    np.testing.assert_allclose(l1, np.abs(pushed).sum(), atol=1e-9 * scale)
    np.testing.assert_allclose(l2, np.sqrt(np.square(pushed).sum()), atol=1e-9 * scale)
    np.testing.assert_allclose(linf, np.abs(pushed).max(), atol=1e-9 * scale)


def test_what_is_not_measured_is_not_determined() -> None:
    total = dense([[1, 1, 1]])
    assert total.determines(Listed.of([[1, 1, 1]])) and total.determines(Listed.of([[Fraction(1, 3)] * 3]))
    assert not total.determines(Listed.of([[1, 1, 1], [1, 0, 0]]))
    assert not total.determines(Cells(cells=3))
    assert dense([[1, 0], [0, 2**30]]).determines(Cells(cells=2))


WORKLOADS = [
    Cells(cells=4),
    Prefixes(cells=4),
    Ranges(cells=4),
    Listed.of([[1, 0, 0.5, -2], [0, 0, 0, 1]]),
    Cells(cells=1),
    Ranges(cells=1),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: f"{type(w).__name__}-{w.cells}")
def test_workloads_are_their_matrices(workload: Any) -> None:
    rng = np.random.default_rng(3)
    cells = rng.normal(size=(3, workload.cells))
    assert workload.matrix.shape == (workload.answers, workload.cells)
    np.testing.assert_allclose(workload.answer(cells), cells @ workload.matrix.T, atol=1e-12)
    np.testing.assert_allclose(workload.answer(cells[0]), workload.matrix @ cells[0], atol=1e-12)
    names = workload.names(tuple("abcd"[: workload.cells]))
    assert len(set(names)) == workload.answers
    assert record.parse(record.canonical(workload)) == workload
    for got, wanted in zip(Identity(cells=workload.cells).mixing(workload), row_norms(workload.matrix), strict=True):
        np.testing.assert_allclose(got, wanted)


def test_prefixes_and_ranges_written_out() -> None:
    assert Prefixes(cells=3).matrix.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert Ranges(cells=3).matrix.tolist() == [
        [1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1],
    ]  # fmt: skip
    assert Ranges(cells=2).names(("low", "high")) == ("low to low", "low to high", "high to high")


def test_weights_are_kept_exactly() -> None:
    workload = Listed.of(np.array([[0.1, 1.0], [0.0, -2.5]]), ["some", "other"])
    assert workload.weights == ((Fraction(1, 10), 1), (0, Fraction(-5, 2)))
    assert workload.names(("a", "b")) == ("some", "other")
    assert Listed.of(np.array([[1, 2]], dtype=np.int8)).weights == ((1, 2),)
    assert Listed.of([[True + 0, Fraction(1, 3)]]).weights == ((1, Fraction(1, 3)),)
    assert Listed.of([[1, 0], [0, 1]]).names(("x", "y")) == ("query 1", "query 2")


def test_dense_of_a_float_matrix_is_the_nearest_one() -> None:
    strategy = Dense.of([[1 / 3, 1], [0, -1]], precision=4)
    assert strategy.entries == ((5, 16), (0, -16)) and strategy.precision == 4
    assert dense(np.array([[1, 2], [3, 4]])).entries == ((1, 2), (3, 4))
    assert record.parse(record.canonical(strategy)) == strategy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dense(cells=2, entries=((1,),)), "an entry for every cell"),
        (lambda: Dense(cells=1, entries=()), "at least one row"),
        (lambda: Dense(cells=1, entries=((0,),)), "not all 0"),
        (lambda: Dense(cells=1, entries=((0.5,),)), "whole numbers"),  # type: ignore[arg-type]
        (lambda: Dense(cells=1, entries=((True,),)), "whole numbers"),
        (lambda: Dense(cells=1, entries=((2**31,),)), "2\\^30"),
        (lambda: Dense(cells=1, entries=((1,),), precision=25), "precision"),
        (lambda: Dense(cells=5000, entries=((1,) * 5000,)), "cells"),
        (lambda: Dense.of([[np.nan]]), "finite"),
        (lambda: Dense.of([[1e300]]), "finite"),
        (lambda: Dense.of([1.0]), "finite"),
        (lambda: Identity(cells=0), "cells"),
        (lambda: Identity(cells=1.5), "cells"),  # type: ignore[arg-type]
        (lambda: Listed(cells=2, labels=("a",), weights=((1,),)), "a weight for every cell"),
        (lambda: Listed(cells=2, labels=("a", "a"), weights=((1, 1), (1, 0))), "labels"),
        (lambda: Listed.of([]), "at least one row"),
        (lambda: Listed.of([[0, 0]]), "not all 0"),
        (lambda: Listed.of([[1, np.inf]]), "weights"),
        (lambda: Listed.of([["1", 1]]), "weights"),
        (lambda: Listed.of([[[1], 1]]), "weights"),
        (lambda: Listed.of(3 * [1]), "at least one row"),
        (lambda: Ranges(cells=257), "cells"),
    ],
)
def test_nonsense_is_refused_at_birth(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
