"""Which strategy answers a workload best: an optimised one for small tables, and a chooser among all.

The mean squared error of a workload's answers is (noise scale)^2 times
    tr(W (A^T A)^-1 W^T) / answers,   at a largest column norm of A of 1: L2 for Gaussian noise, L1 for Laplace.
Nothing here touches data or a price. A strategy found in floating point is rounded to the grid of its entries, and what
one unit moves is computed anew, exactly, from the rounded entries: a bad optimum costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from .. import checks
from .base import Floats, Strategy, Workload, check_noise
from .dense import Dense
from .identity import Identity
from .ordered import best_tree
from .toeplitz import SquareRoot
from .tree import Tree
from .workloads import Cells, Prefixes

Noise = Literal["gaussian", "laplace"]

LARGEST = 256  # cells; some seconds of work
_ROOTED = 2**20  # cells
_PRECISION = 20  # bits of an entry
_CLOSE = 1e-5  # how near to the bound from below the Gaussian optimum is taken, and how long is tried
_ROUNDS = 400
_RIDGE = 1e-10  # the weight of the cells themselves beside the workload, so that every cell is determined


def expected_squared_error(
    strategy: Strategy, workload: Workload, noise: Noise = "gaussian", *, change: str = "add-remove"
) -> float:
    """The mean squared error of the answers, at noise multiplier 1 (Gaussian) or epsilon 1 (Laplace), where each unit
    is one row. It falls with the square of either."""
    checks.instance(strategy, Strategy, "strategy", "a strategy, such as Identity(cells=n)")
    _check(workload, noise, change)
    if not strategy.determines(workload):
        return math.inf
    reach = strategy.column_gaps if change == "replace" else strategy.column_norms
    mixed = float(np.mean(np.square(strategy.mixing(workload).l2)))
    if noise == "gaussian":
        return math.ldexp(float(reach.l2_squared), -2 * strategy.bits) * mixed
    return 2 * math.ldexp(float(reach.l1), -strategy.bits) ** 2 * mixed


def best_strategy(workload: Workload, noise: Noise = "gaussian", *, change: str = "add-remove") -> Strategy:
    """The best of those known for the workload: cells, hierarchies, the queries themselves, and for small tables an
    optimised one."""
    _check(workload, noise, change)
    candidates: list[Strategy] = [Identity(cells=workload.cells)]
    if isinstance(workload, Cells):
        return candidates[0]
    if isinstance(workload, Prefixes):
        candidates += [best_tree(workload.cells, noise, change=change)]
        candidates += [SquareRoot(cells=workload.cells)] if workload.cells <= _ROOTED else []
    else:
        candidates += _hierarchies(workload.cells)
    if workload.cells <= LARGEST:
        candidates += _queries_themselves(workload)
        candidates += [_gaussian(workload) if noise == "gaussian" else _laplace(workload)]
    return min(candidates, key=lambda strategy: expected_squared_error(strategy, workload, noise, change=change))


def optimised(workload: Workload, noise: Noise = "gaussian") -> Dense:
    """A strategy made for the workload, for tables of at most 256 cells; never worse than the cells themselves, binary
    hierarchies or the queries themselves."""
    _check(workload, noise)
    if workload.cells > LARGEST:
        raise checks.refuse("workload", f"of {workload.cells} cells", f"at most {LARGEST} cells, or best_strategy")
    candidates = [Dense.of(np.eye(workload.cells), precision=0), *_queries_themselves(workload)]
    candidates += [Dense.of(_measured(tree), precision=0) for tree in _hierarchies(workload.cells)]
    candidates += [_gaussian(workload) if noise == "gaussian" else _laplace(workload)]
    return min(candidates, key=lambda strategy: expected_squared_error(strategy, workload, noise))


def _check(workload: Any, noise: Any, change: Any = "add-remove") -> None:
    checks.instance(workload, Workload, "workload", "a workload, such as Prefixes(cells=n)")
    check_noise(noise, change)


def _hierarchies(cells: int) -> list[Tree]:
    """Wider trees are flatter: fewer measurements of each cell, more of them in each answer."""
    return [Tree(cells=cells, branching=width) for width in (2, 4, 8, 16) if width == 2 or width < cells]


def _measured(tree: Tree) -> Floats:
    """The tree's matrix: what it measures of each cell by itself."""
    columns = [tree.measure(column) for column in np.eye(tree.cells, dtype=np.int64)]
    return np.array(columns, dtype=np.float64).T


def _queries_themselves(workload: Workload) -> list[Dense]:
    """The workload as a strategy, with queries that others determine left out; where there are few."""
    if workload.answers > 4 * LARGEST:
        return []
    matrix = np.unique(workload.matrix, axis=0)
    largest = float(np.abs(matrix).max())
    precision = min(24, max(0, _PRECISION - math.ceil(math.log2(largest))))
    if largest > 2.0**20 or not np.rint(np.ldexp(matrix, precision)).any():
        return []
    return [Dense.of(matrix, precision=0 if np.array_equal(matrix, np.rint(matrix)) else precision)]


def _wanted(workload: Workload) -> Floats:
    """W^T W, scaled to trace n, with a little of every cell."""
    matrix = workload.matrix
    wanted = matrix.T @ matrix
    wanted = wanted * (workload.cells / np.trace(wanted))
    return np.asarray(wanted + _RIDGE * np.eye(workload.cells))


# ------------------------------------------------------------------------------------------------ Gaussian noise


def _gaussian(workload: Workload) -> Dense:
    """Any A with A^T A = X will do, for the X of least tr(V X^-1) under diag(X) <= 1."""
    gram, _, _ = least_trace(_wanted(workload))
    return Dense.of(np.linalg.cholesky(gram).T, precision=_PRECISION)


def least_trace(wanted: Floats) -> tuple[Floats, float, float]:
    """X of nearly least tr(V X^-1) under diag(X) = 1, for positive definite V; that trace, and a bound below it.

    The Lagrangian tr(V X^-1) + tr(D X) - sum d, D = diag(d) > 0, is least at X = D^-1/2 S D^-1/2 for
    S = (D^1/2 V D^1/2)^1/2, where it is 2 tr S - sum d: a bound below the optimum, for every d. At the optimum
    diag(X) = 1, which is d = diag(S): iterated as a fixed point (Denisov, McMahan, Rush, Smith, Thakurta 2022). Every X
    is scaled to unit diagonal, which gives a bound from above.
    """
    d = np.sqrt(np.diag(wanted)) * np.sqrt(np.trace(wanted) / len(wanted))
    best, least, below = np.eye(len(wanted)), float(np.trace(wanted)), 0.0
    for _ in range(_ROUNDS):
        half = np.sqrt(d)
        values, vectors = np.linalg.eigh(half[:, None] * wanted * half)
        roots = np.sqrt(np.maximum(values, values[-1] * 1e-18))
        root = (vectors * roots) @ vectors.T
        below = max(below, 2 * float(roots.sum()) - float(d.sum()))
        scale = 1 / np.sqrt(np.diag(root))
        # X = D' root D' with D' = scale; X^-1 = D'^-1 root^-1 D'^-1, and tr(V X^-1) = sum V_ij root^-1_ij / (s_i s_j)
        inverse = (vectors / roots) @ vectors.T
        trace = float(np.sum(wanted * inverse / np.outer(scale, scale)))
        if trace < least:
            least, best = trace, scale[:, None] * root * scale
        if least - below <= _CLOSE * least:
            break
        d = np.diag(root).copy()
    return best, least, below


# ------------------------------------------------------------------------------------------------ Laplace noise


def _laplace(workload: Workload) -> Dense:
    """OPT_0 of McKenna, Miklau, Hay, Machanavajjhala 2018: the cells and p further rows of weights >= 0, with columns
    scaled to L1 norm 1, by L-BFGS-B from several starts."""
    wanted, cells = _wanted(workload), workload.cells
    descents = [_descend(wanted, start) for start in _starts(cells)]
    _, rows = min(descents, key=lambda pair: pair[0])
    matrix = np.concatenate([np.eye(cells), rows])
    return Dense.of(matrix / matrix.sum(axis=0), precision=_PRECISION)


def _starts(cells: int) -> list[Floats]:
    """The groups of hierarchies, the total alone, and rows without any pattern (multiples of the golden ratio)."""
    starts = [np.ones((1, cells))]
    for tree in _hierarchies(cells)[:2]:
        groups = _measured(tree)[cells:]
        starts += [groups + 0.01] if len(groups) else []
    rows = max(1, cells // 16)
    golden = (math.sqrt(5) - 1) / 2
    starts.append(np.modf(np.arange(1, rows * cells + 1) * golden)[0].reshape(rows, cells))
    return starts


def _descend(wanted: Floats, start: Floats) -> tuple[float, Floats]:
    from scipy import optimize  # here, as it takes long to import and few plans need it

    shape = start.shape
    eye = np.eye(shape[1])

    def cost(flat: Floats) -> tuple[float, Floats]:
        """sum_ij s_i s_j V_ij M_ij with M = (I + T^T T)^-1 and s = 1 + column sums of T, and its gradient."""
        rows = flat.reshape(shape)
        sums = 1 + rows.sum(axis=0)
        inner = rows @ rows.T + np.eye(shape[0])
        inverse = eye - rows.T @ np.linalg.solve(inner, rows)
        scaled = wanted * np.outer(sums, sums)
        value = float(np.sum(scaled * inverse))
        by_sums = 2 * ((wanted * inverse) @ sums)
        gradient = by_sums - 2 * rows @ inverse @ scaled @ inverse
        return value, gradient.ravel()

    best: Any = optimize.minimize(
        cost, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, options={"maxiter": 200}
    )
    return float(best.fun), np.asarray(best.x).reshape(shape)
