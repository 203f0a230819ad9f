"""Tables with weights and coarser groups, and products of strategies, against the matrices written out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.strategies import (
    Cells,
    Dense,
    Identity,
    Intervals,
    Nested,
    NestedColumn,
    Prefixes,
    Product,
    Ranges,
    Tree,
    best_shares,
    expected_squared_error,
    levels_of,
    total_squared,
)
from sfumato.strategies.base import row_norms
from sfumato.strategies.nested_weights import Demand

THREE = Nested(
    groups=((1, 3, 7), (1, 4), (1, 2, 5)),
    tables=((2, 1, 0), (1, 0, 2), (0, 1, 1), (2, 0, 0), (0, 0, 0)),
    shares=tuple(Fraction(k, 20) for k in (6, 5, 4, 3, 2)),
)


def table_matrix(strategy: Nested, place: int) -> Any:
    """One measured table, straight from what the docstring says: a row for each combination of groups."""
    parts = []
    for column, level in zip(strategy.columns, strategy.tables[place], strict=True):
        edges = column.edges[level]
        cells = np.arange(column.cells)
        parts.append(((cells >= edges[:-1, None]) & (cells < edges[1:, None])).astype(float))
    whole = np.ones((1, 1))
    for part in parts:
        whole = np.kron(whole, part)
    return whole


def wanted_matrix(sizes: tuple[int, ...], columns: tuple[int, ...]) -> Any:
    whole = np.ones((1, 1))
    for place, n in enumerate(sizes):
        whole = np.kron(whole, np.eye(n) if place in columns else np.ones((1, n)))
    return whole


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("columns", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_estimates_are_least_squares_and_their_variances_are_told(noise: str, columns: tuple[int, ...]) -> None:
    strategy = THREE
    if not strategy.determines(strategy.finest(columns)):
        assert columns in ((0, 2), (1, 2))
        strategy = Nested(**{**vars_of(THREE), "tables": (strategy.finest(columns), *THREE.tables[:4])})
    power = 1 if noise == "gaussian" else 2
    matrices = [table_matrix(strategy, place) for place in range(len(strategy.tables))]
    variances = np.concatenate([
        strategy.widths(table).ravel() ** 2 / float(share) ** power
        for table, share in zip(strategy.tables, strategy.shares, strict=True)
    ])  # fmt: skip
    whole, weights = np.vstack(matrices), 1 / variances
    best = wanted_matrix(strategy.sizes, columns) @ np.linalg.pinv((whole.T * weights) @ whole) @ (whole.T * weights)
    rng = np.random.default_rng(len(columns))
    noisy = [rng.normal(size=len(matrix)) for matrix in matrices]
    estimate = strategy.estimate(columns, noisy, noise)
    assert estimate.shape == tuple(strategy.sizes[place] for place in columns)
    assert np.allclose(estimate.ravel(), best @ np.concatenate(noisy), atol=1e-10)
    for kind in (Cells, Prefixes, Ranges):
        queries, energies = np.ones((1, 1)), []
        for place in columns:
            n = strategy.sizes[place]
            asked = kind(cells=n)
            queries = np.kron(queries, asked.matrix)
            firsts = np.argmax(asked.matrix > 0, axis=1)
            energies.append(strategy.columns[place].energies(firsts, firsts + asked.matrix.sum(axis=1).astype(int)))
        exact = ((queries @ best) ** 2) @ variances
        assert np.allclose(strategy.squared(columns, energies, noise).ravel(), exact, atol=1e-10)


def vars_of(strategy: Nested) -> dict[str, Any]:
    return {"groups": strategy.groups, "tables": strategy.tables, "shares": strategy.shares}


def test_tables_are_measured_in_whole_numbers_of_any_size() -> None:
    cells = np.random.default_rng(0).integers(0, 2**60, size=(7, 4, 5)).astype(object) * 2**20
    for place, table in enumerate(THREE.tables):
        other = tuple(axis for axis, level in enumerate(table) if not level)
        exact = table_matrix(THREE, place).astype(int).astype(object) @ cells.ravel()
        assert (THREE.measure(table, cells.sum(axis=other)) == exact).all()


def test_a_cell_is_in_one_group_of_each_level_and_groups_are_made_of_groups() -> None:
    for cells in (2, 3, 7, 100, 101, 365):
        for branching in (2, 3, 7, None):
            column = NestedColumn(levels_of(cells, branching))
            assert column.groups[0] == 1 and column.cells == cells
            for level in range(len(column.groups) - 1):
                assert set(column.edges[level]) <= set(column.edges[level + 1])
                assert np.ptp(column.sizes(level)) <= 1 and column.sizes(level).min() == column.least(level)
    assert levels_of(1) == levels_of(1, 2) == (1,)


def test_no_unit_moves_a_table_by_more_than_its_norms() -> None:
    for place in range(len(THREE.tables)):
        matrix = table_matrix(THREE, place)
        assert np.abs(matrix).sum(axis=0).max() <= THREE.column_norms.l1
        assert (matrix**2).sum(axis=0).max() <= THREE.column_norms.l2_squared
        gaps = [np.abs(matrix[:, i] - matrix[:, j]) for i, j in combinations(range(matrix.shape[1]), 2)]
        assert max(gap.sum() for gap in gaps) <= THREE.column_gaps.l1
        assert max((gap**2).sum() for gap in gaps) <= THREE.column_gaps.l2_squared
        assert (THREE.widths(THREE.tables[place]) >= 1).all()


def demands(groups: tuple[tuple[int, ...], ...], ways: tuple[int, ...]) -> list[Demand]:
    asked = [some for many in ways for some in combinations(range(len(groups)), many)]
    columns = [NestedColumn(own) for own in groups]
    energies = [column.energies(np.arange(column.cells), np.arange(column.cells) + 1).sum(axis=1) for column in columns]
    return [Demand(some, tuple(energies[place] for place in some)) for some in asked]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_weights_leave_nothing_to_gain(noise: str) -> None:
    """No other shares that were tried are better, and those of one table alone are worse."""
    groups = tuple(levels_of(n) for n in (2, 5, 9, 4))
    asked = demands(groups, (0, 1, 2))
    best = best_shares(groups, asked, noise, 10**6)
    assert best is not None and sum(best.shares) == 1
    least = total_squared(best, asked, noise)
    rng = np.random.default_rng(3)
    for size in (0.02, 0.3):
        for _ in range(30):
            weights = np.array([float(share) for share in best.shares]) * np.exp(
                size * rng.normal(size=len(best.shares))
            )
            shares = tuple(
                Fraction(w).limit_denominator(10**6) for w in (weights / weights.sum() * (1 - 1e-5)).tolist()
            )
            assert total_squared(Nested(groups=groups, tables=best.tables, shares=shares), asked, noise) > least * 0.998
    whole = Nested(groups=groups, tables=((1, 1, 1, 1),), shares=(1,))
    assert total_squared(whole, asked, noise) >= (1.5 if noise == "gaussian" else 1) * least


def test_all_pairs_of_many_columns_need_no_cells_of_all() -> None:
    """Twenty columns of ten values have 10^20 cells, and 45 hundred numbers in their pairs of ten."""
    groups = tuple(levels_of(10) for _ in range(20))
    asked = demands(groups, (0, 1, 2))
    strategy = best_shares(groups, asked, "gaussian", 10**6)
    assert strategy is not None and strategy.measurements <= 190 * 100 + 201
    many = sum(10 ** len(demand.columns) for demand in asked)
    assert total_squared(strategy, asked, "gaussian") < 0.92 * len(asked) * many  # an even split of the budget
    assert best_shares(groups, asked, "gaussian", 1000) is None


def test_a_column_in_levels_is_a_hierarchy_that_is_better_than_one_with_equal_levels() -> None:
    for n, noise in ((128, "gaussian"), (1000, "gaussian")):
        groups = (levels_of(n, 2),)
        ends = np.arange(n) + 1
        asked = [Demand((0,), (NestedColumn(groups[0]).energies(np.zeros(n, dtype=int), ends).sum(axis=1),))]
        weighted = best_shares(groups, asked, noise, 10**6)
        assert weighted is not None
        error = total_squared(weighted, asked, noise) / n
        assert error < 0.99 * expected_squared_error(Tree(cells=n), Prefixes(cells=n))
        assert error < expected_squared_error(Identity(cells=n), Prefixes(cells=n)) / 8


def test_what_is_no_nested_strategy_is_refused() -> None:
    good = vars_of(THREE)
    for wrong in (
        {"groups": ((1, 3, 7), (1, 4), (1, 2, 3, 5))},  # three groups are not made of two
        {"groups": ((1, 3, 7), (2, 4), (1, 2, 5))},
        {"groups": ((1, 3, 7), (1, 4), (5,))},
        {"groups": 3},
        {"tables": ((3, 1, 0), *THREE.tables[1:])},
        {"tables": ((1, 1), *THREE.tables[1:])},
        {"tables": (THREE.tables[1], *THREE.tables[1:])},
        {"tables": (), "shares": ()},
        {"shares": THREE.shares[:4]},
        {"shares": (Fraction(7, 20), *THREE.shares[1:])},
        {"shares": (0, *THREE.shares[1:])},
    ):
        with pytest.raises(ArgumentError):
            Nested(**{**good, **wrong})
    assert record.parse(record.canonical(THREE)) == THREE


FACTORS = (
    (Tree(cells=5), Identity(cells=3)),
    (Identity(cells=2), Dense.of(np.array([[1, 1, 1], [0.5, 0, -0.25], [0, 1, 1]]), precision=3), Identity(cells=2)),
    (Tree(cells=70, branching=3), Identity(cells=2)),
    (Identity(cells=1), Tree(cells=4)),
    (),
)  # fmt: skip


def written_out(factors: Any) -> Any:
    whole = np.ones((1, 1))
    for factor in factors:
        columns = [
            np.ldexp(factor.measure(cell).astype(float), -factor.bits) for cell in np.eye(factor.cells, dtype=int)
        ]
        whole = np.kron(whole, np.array(columns).T)
    return whole


@pytest.mark.parametrize("factors", FACTORS, ids=lambda f: " x ".join(type(s).__name__ for s in f) or "none")
def test_a_product_is_the_product_of_its_matrices(factors: Any) -> None:
    strategy, matrix = Product.of(factors), written_out(factors)
    assert record.parse(record.canonical(strategy)) == strategy
    cells = np.random.default_rng(1).integers(-(2**40), 2**40, size=strategy.cells)
    step = 2.0**-strategy.bits
    assert np.allclose(strategy.measure(cells) * step, matrix @ cells, rtol=1e-12)
    big = cells.astype(object) * 2**40
    assert [int(n) for n in strategy.measure(big)] == [int(n) * 2**40 for n in strategy.measure(cells)]
    size = np.abs(matrix)
    assert strategy.column_norms.l1 * step == size.sum(axis=0).max()
    assert strategy.column_norms.l2_squared * step**2 == (size**2).sum(axis=0).max()
    pairs = combinations(range(strategy.cells), 2)
    gaps = [np.abs(matrix[:, i] - matrix[:, j]) for i, j in pairs] or [np.zeros(1)]
    assert max(gap.sum() for gap in gaps) <= strategy.column_gaps.l1 * step
    assert max((gap**2).sum() for gap in gaps) <= strategy.column_gaps.l2_squared * step**2
    assert size.sum(axis=0).max() <= strategy.column_gaps.l1 * step
    assert np.allclose(strategy.estimate(matrix @ cells), cells, rtol=1e-9, atol=1)


@pytest.mark.parametrize("factors", FACTORS, ids=lambda f: " x ".join(type(s).__name__ for s in f) or "none")
def test_weights_of_products_are_products_of_weights(factors: Any) -> None:
    strategy, inverse = Product.of(factors), np.linalg.pinv(written_out(factors))
    for total in range(len(factors) + 1):
        asked = [None if place == total else Prefixes(cells=f.cells) for place, f in enumerate(factors)]
        rows = np.ones((1, 1))
        for factor, workload in zip(factors, asked, strict=True):
            rows = np.kron(rows, np.ones((1, factor.cells)) if workload is None else workload.matrix)
        found, exact = strategy.mixing_of(asked), row_norms(rows @ inverse)
        for one, other in zip(found, exact, strict=True):
            assert np.allclose(one.ravel(), other)


def test_intervals_are_sums_of_neighbouring_cells() -> None:
    asked = Intervals(cells=5, firsts=np.array([0, 1, 4]), afters=np.array([5, 3, 5]))
    assert asked.matrix.tolist() == [[1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert asked.answers == 3 and asked.names(("a", "b", "c", "d", "e")) == ("a to e", "b to c", "e to e")
    assert math.isclose(Tree(cells=5).mixing(asked).l2[2], Tree(cells=5).mixing(Cells(cells=5)).l2[4])
