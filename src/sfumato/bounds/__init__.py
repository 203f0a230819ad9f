"""Bounded queries: what mechanisms add noise to, one kind per file.

>>> from sfumato import Unit, bounds
>>> bounds.count(Unit("user:patient"), per_unit=3).l1  # one patient moves it by so much
3.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import checks, strategies
from ..rows import Rows
from ..schema import Column
from ..units import Unit
from .base import Bounded, Sensitivity
from .bins import Bins, EqualBins
from .cell_counts import CellCounts
from .counts import Count
from .counts_where import Among, Between, CountWhere
from .covariances import Covariance
from .cross import Cross
from .declarations import Declared
from .gather import recode
from .histograms import Histogram
from .increments import Increments, Tally
from .means import Mean
from .measured import Measured, workload
from .powers import Powers
from .ratios import Ratio
from .running_totals import Running
from .shares import Share
from .sums import Sum
from .variances import Variance
from .vector_means import VectorMean

__all__ = [
    "Among",
    "Between",
    "Bins",
    "Bounded",
    "CellCounts",
    "Count",
    "CountWhere",
    "Covariance",
    "Cross",
    "Declared",
    "EqualBins",
    "Histogram",
    "Increments",
    "Mean",
    "Measured",
    "Powers",
    "Ratio",
    "Running",
    "Sensitivity",
    "Share",
    "Sum",
    "Tally",
    "Variance",
    "VectorMean",
    "bins",
    "bins_between",
    "clipped_sum",
    "count",
    "count_where",
    "covariance",
    "cross",
    "cumulative",
    "declared",
    "hierarchical",
    "histogram",
    "increments",
    "mean",
    "ratio",
    "recode",
    "share",
    "standard_deviation",
    "variance",
    "vector_mean",
    "votes",
    "workload",
]


def count(unit: Unit, *, per_unit: int = 1) -> Count:
    return Count(unit=unit, per_unit=per_unit)


def count_where(unit: Unit, where: Mapping[str, Any], *, per_unit: int = 1) -> CountWhere:
    """Rows that satisfy every condition: a list of categories, or a pair (lower, upper), both included, None open."""
    return CountWhere(unit=unit, where=where, per_unit=per_unit)


def clipped_sum(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Sum:
    return Sum(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def mean(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Mean:
    return Mean(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def variance(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Variance:
    return Variance(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def standard_deviation(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Variance:
    return Variance(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit, root=True)


def covariance(
    columns: Mapping[str, Any], unit: Unit, *, per_unit: int = 1, correlation: bool = False, project: bool = False
) -> Covariance:
    """The covariance (or correlation) matrix of {column: (lower, upper)}."""
    return Covariance(unit=unit, intervals=columns, per_unit=per_unit, correlation=correlation, project=project)


def vector_mean(columns: Any, radius: Any, unit: Unit, *, per_unit: int = 1, centre: Any = None) -> VectorMean:
    """The mean of the columns as one vector, each row clipped to a ball; the centre is 0 unless given."""
    return VectorMean(
        axes=columns, radius=radius, unit=unit, per_unit=per_unit, centre=() if centre is None else centre
    )


def ratio(numerator: Any, denominator: Any, unit: Unit, *, per_unit: int = 1) -> Ratio:
    """One sum over another; each is (column, lower, upper)."""
    return Ratio(numerator=numerator, denominator=denominator, unit=unit, per_unit=per_unit)


def histogram(column: str, categories: Any, unit: Unit, *, per_unit: int = 1) -> Histogram:
    return Histogram(column=column, categories=categories, unit=unit, per_unit=per_unit)


def bins(column: str, edges: Any, unit: Unit, *, per_unit: int = 1, outside: str = "clamp") -> Bins:
    """Rows per interval of a numeric column; what lies outside counts in the outer bins ("clamp") or not ("drop")."""
    return Bins(column=column, edges=edges, unit=unit, per_unit=per_unit, outside=outside)


def bins_between(
    column: str, lower: Any, upper: Any, count: int, unit: Unit, *, per_unit: int = 1, outside: str = "clamp"
) -> EqualBins:
    """So many bins of equal width from lower to upper."""
    return EqualBins(
        column=column, lower=lower, upper=upper, count=count, unit=unit, per_unit=per_unit, outside=outside
    )


def cross(columns: Mapping[str, Any], unit: Unit, *, per_unit: int = 1) -> Cross:
    """Rows per combination of categories, from {column: categories}."""
    return Cross(over=columns, unit=unit, per_unit=per_unit)


def cumulative(query: Bounded, *, noise: str = "gaussian", strategy: Any = None) -> Measured:
    """Running totals of a histogram's cells, in their order. Without a strategy, the one of the cells and the trees
    over them whose expected error is least, for this noise."""
    cells = _cells_of(query)
    chosen = strategies.ordered_strategy(cells, noise, change=query.unit.change) if strategy is None else strategy
    return Measured(unit=query.unit, query=query, strategy=chosen, workload=strategies.Prefixes(cells=cells))


def hierarchical(
    query: Bounded, *, branching: int | None = None, levels: int | None = None, noise: str = "gaussian"
) -> Measured:
    """A histogram whose cells, groups of cells, groups of groups and so on are all measured, so that sums over long
    ranges of cells have small errors. Without `branching`, the tree that is best for running totals, for this noise."""
    cells = _cells_of(query)
    tree = strategies.best_tree(cells, noise, change=query.unit.change)
    if branching is not None or levels is not None:
        tree = strategies.Tree(cells=cells, branching=tree.branching if branching is None else branching, levels=levels)
    return Measured(unit=query.unit, query=query, strategy=tree, workload=strategies.Cells(cells=cells))


def _cells_of(query: Any) -> int:
    if not isinstance(query, CellCounts):
        raise checks.refuse("query", query, "a histogram: bounds.histogram(...), bins, bins_between or cross")
    return query.size


def votes(column: str, categories: Any, unit: Unit) -> Histogram:
    """One vote per unit, shared out over its rows: what selection mechanisms score candidates by."""
    return Histogram(column=column, categories=categories, unit=unit)


def increments(
    column: str, horizon: int, unit: Unit, *, per_unit: int = 1, separation: int | None = None
) -> Increments:
    """Rows per step: what a continual count adds up."""
    return Increments(column=column, horizon=horizon, unit=unit, per_unit=per_unit, separation=separation)


def declared(
    fn: Callable[[Rows], Any], unit: Unit, *, reads: Mapping[str, Column], labels: Any, l1: Any, l2: Any, linf: Any
) -> Declared:
    """A function of your own; you vouch for its sensitivity."""
    return Declared(fn=fn, unit=unit, reads=reads, labels=labels, declared_l1=l1, declared_l2=l2, declared_linf=linf)


def share(query: Bounded, rows: int) -> Share:
    """A count or sum divided by a public number of rows: a share, or a mean."""
    return Share(query=query, unit=query.unit, rows=rows)
