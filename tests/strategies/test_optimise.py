"""Optimised strategies: near the bound from below where there is one, never worse than the plain ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from sfumato import Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.strategies import (
    Cells,
    Dense,
    Identity,
    Listed,
    Prefixes,
    Ranges,
    SquareRoot,
    Tree,
    Workload,
    best_strategy,
    expected_squared_error,
    optimised,
)
from sfumato.strategies.optimise import _descend, _starts, _wanted, least_trace

RNG = np.random.default_rng(11)
WORKLOADS: list[Workload] = [
    Prefixes(cells=32),
    Ranges(cells=16),
    Cells(cells=8),
    Listed.of(RNG.integers(0, 2, size=(20, 12))),
    Listed.of(RNG.normal(size=(3, 9)).round(3)),  # fewer queries than cells
    Listed.of([[1] * 10]),
    Listed.of([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]]),  # cells that nobody asks for
    Listed.of([[1e-5, 0], [0, 1]]),
    Cells(cells=1),
]


def sqrt_toeplitz(n: int) -> Dense:
    """The lower-triangular matrix of the coefficients of (1 - x)^-1/2, whose square is all prefixes."""
    coefficients = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])
    rows = [[coefficients[i - j] if j <= i else 0.0 for j in range(n)] for i in range(n)]
    return Dense.of(rows, precision=24)


def test_published_numbers_of_the_square_root_and_the_tree() -> None:
    strategy = sqrt_toeplitz(128)
    assert math.ldexp(strategy.column_norms.l2_squared, -48) == pytest.approx(2.610104, abs=2e-6)
    assert expected_squared_error(strategy, Prefixes(cells=128)) == pytest.approx(5.996747, abs=1e-5)


@pytest.mark.slow
def test_prefixes_reach_the_optimum() -> None:
    """The bound from below is the Lagrange dual; the square root of the prefixes lies 12 % above the optimum."""
    workload = Prefixes(cells=128)
    found = expected_squared_error(optimised(workload), workload)
    _, _, below = least_trace(_wanted(workload))
    lower = below * np.trace(workload.matrix.T @ workload.matrix) / 128 / workload.answers
    assert lower <= found <= 1.0002 * lower
    assert found == pytest.approx(5.3407, abs=2e-3)
    assert found < 5.996747


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: f"{type(w).__name__}-{w.answers}x{w.cells}")
def test_never_worse_than_the_plain_ones(workload: Workload, noise: Any) -> None:
    strategy = optimised(workload, noise)
    error = expected_squared_error(strategy, workload, noise)
    plain = [Identity(cells=workload.cells), Tree(cells=workload.cells)]
    assert error <= (1 + 1e-9) * min(expected_squared_error(each, workload, noise) for each in plain)
    assert strategy.determines(workload)
    best = best_strategy(workload, noise)
    assert expected_squared_error(best, workload, noise) <= error * (1 + 1e-9)


def test_known_optima() -> None:
    assert isinstance(best_strategy(Cells(cells=40)), Identity)
    assert optimised(Cells(cells=5)).entries == tuple(map(tuple, np.eye(5, dtype=int).tolist()))
    total = optimised(Listed.of([[1] * 10]))
    assert total.entries == ((1,) * 10,) and expected_squared_error(total, Listed.of([[1] * 10])) == pytest.approx(1)
    assert expected_squared_error(optimised(Listed.of([[1] * 10]), "laplace"), Listed.of([[1] * 10]), "laplace") == (
        pytest.approx(2)
    )
    apart = Listed.of([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]])
    assert expected_squared_error(optimised(apart), apart) == pytest.approx(1, rel=1e-5)


def test_the_fixed_point_is_the_optimum_that_a_general_method_finds() -> None:
    wanted = Listed.of(RNG.integers(0, 2, size=(9, 4))).matrix
    wanted = wanted.T @ wanted + 0.1 * np.eye(4)
    gram, least, below = least_trace(wanted)
    assert np.allclose(np.diag(gram), 1) and np.linalg.eigvalsh(gram)[0] > 0
    assert np.trace(wanted @ np.linalg.inv(gram)) == pytest.approx(least)
    assert below <= least <= below * (1 + 2e-5)

    def trace(flat: Any) -> float:  # any X with unit diagonal is the Gram matrix of unit vectors
        vectors = flat.reshape(4, 4)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return float(np.trace(wanted @ np.linalg.inv(vectors @ vectors.T)))

    general = min(optimize.minimize(trace, RNG.normal(size=16)).fun for _ in range(4))
    assert least <= general * (1 + 1e-5)


def test_the_gradient_of_the_laplace_descent() -> None:
    """A descent that ends where the cost is flat: no single entry of the found rows can be moved for the better."""
    workload = Prefixes(cells=8)
    wanted = _wanted(workload)
    value, rows = min((_descend(wanted, start) for start in _starts(8)), key=lambda pair: pair[0])

    def error(rows: Any) -> float:
        matrix = np.concatenate([np.eye(8), rows])
        matrix = matrix / matrix.sum(axis=0)
        return float(np.trace(wanted @ np.linalg.inv(matrix.T @ matrix)))

    assert error(rows) == pytest.approx(value, rel=1e-6)
    for place in np.ndindex(rows.shape):
        for step in (-1e-3, 1e-3):
            other = rows.copy()
            other[place] = max(other[place] + step, 0.0)
            assert error(other) >= value * (1 - 1e-5)


def test_the_error_is_that_of_real_releases() -> None:
    workload = Prefixes(cells=16)
    cells = bounds.histogram("w", tuple(range(16)), Unit())
    gaussian = m.Gaussian(query=bounds.workload(cells, workload), multiplier=3)
    laplace = m.Laplace(query=bounds.workload(cells, workload, noise="laplace"), epsilon=0.5)
    for plan, factor, noise in ((gaussian, 9.0, "gaussian"), (laplace, 4.0, "laplace")):
        query: Any = plan.query
        told = expected_squared_error(query.strategy, workload, noise)  # type: ignore[arg-type]
        assert np.mean((plan.std * query.mixing.l2) ** 2) == pytest.approx(factor * told, rel=1e-4)


def test_replaced_rows_are_judged_by_the_gaps_of_columns() -> None:
    workload = Prefixes(cells=6)
    assert expected_squared_error(Identity(cells=6), workload, change="replace") == pytest.approx(2 * 3.5)
    assert best_strategy(workload, change="replace").cells == 6


def test_large_tables_get_a_plain_strategy_and_measurements_that_do_not_determine_have_no_error() -> None:
    assert expected_squared_error(Dense(cells=2, entries=((1, 1),)), Cells(cells=2)) == math.inf
    assert isinstance(best_strategy(Prefixes(cells=3000)), SquareRoot)
    assert isinstance(best_strategy(Prefixes(cells=3000), "laplace"), Tree)
    assert isinstance(best_strategy(Listed.of(np.ones((1, 300)))), Tree)
    with pytest.raises(ArgumentError, match="256 cells"):
        optimised(Prefixes(cells=257))
    with pytest.raises(ArgumentError, match="noise"):
        optimised(Prefixes(cells=2), "uniform")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="noise"):
        best_strategy(Prefixes(cells=2), "uniform")  # type: ignore[arg-type]
