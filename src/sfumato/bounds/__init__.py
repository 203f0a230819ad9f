"""Bounded queries: what mechanisms add noise to, one kind per file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..rows import Rows
from ..schema import Column
from ..units import Unit
from .base import Bounded, Sensitivity
from .counts import Count
from .declarations import Declared
from .gather import recode
from .histograms import Histogram
from .means import Mean
from .sums import Sum

__all__ = [
    "Bounded",
    "Count",
    "Declared",
    "Histogram",
    "Mean",
    "Sensitivity",
    "Sum",
    "clipped_sum",
    "count",
    "declared",
    "histogram",
    "mean",
    "recode",
    "votes",
]


def count(unit: Unit, *, per_unit: int = 1) -> Count:
    return Count(unit=unit, per_unit=per_unit)


def clipped_sum(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Sum:
    return Sum(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def mean(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Mean:
    return Mean(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def histogram(column: str, categories: Any, unit: Unit, *, per_unit: int = 1) -> Histogram:
    return Histogram(column=column, categories=categories, unit=unit, per_unit=per_unit)


def votes(column: str, categories: Any, unit: Unit) -> Histogram:
    """One vote per unit, shared out over its rows: what selection mechanisms score candidates by."""
    return Histogram(column=column, categories=categories, unit=unit)


def declared(
    fn: Callable[[Rows], Any], unit: Unit, *, reads: Mapping[str, Column], labels: Any, l1: Any, l2: Any, linf: Any
) -> Declared:
    """A function of your own; you vouch for its sensitivity."""
    return Declared(fn=fn, unit=unit, reads=reads, labels=labels, declared_l1=l1, declared_l2=l2, declared_linf=linf)
