"""Neighbours by brute force: every unit made of a few extreme rows, against every other that the relation allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from sfumato import Schema, Unit
from sfumato import mechanisms as m
from sfumato.bounds import Bounded, Sensitivity
from sfumato.rows import Rows
from sfumato.schema import category, flag, key, real, whole
from sfumato.units import RELATIONS
from tests.helpers import read

WARDS = ("a", "b", "c")
WIDE = (-1e100, 1e100)
TABLE = Schema.of(
    user=key(),
    x=real(*WIDE),
    y=real(*WIDE),
    z=real(*WIDE),
    n=whole(-(2**63), 2**63 - 1),
    ward=category(WARDS),
    on=flag(),
)
COLUMNS = ("x", "y", "z", "n", "ward", "on")
UNITS = [Unit(of, change) for of in ("row", "user:user") for change in RELATIONS]
GROUPS = [Unit(of, change, 3) for of in ("row", "user:user") for change in RELATIONS]

Row = dict[str, Any]
Own = tuple[Row, ...]
"""The rows of one unit."""
_READ: dict[tuple[str, Unit], Rows] = {}


def rows_of(people: Iterable[Sequence[Row]], unit: Unit) -> Rows:
    """Each of `people` is one unit (or one row after another, where rows are units)."""
    people = tuple(map(tuple, people))
    named = (repr(people), unit)
    if named not in _READ:
        flat = [(who, row) for who, own in enumerate(people) for row in own]
        columns = {name: [row.get(name) for _, row in flat] for name in COLUMNS}
        _READ[named] = read(TABLE, unit, user=[who for who, _ in flat], **columns)
    return _READ[named]


def steps(query: Bounded, people: Iterable[Sequence[Row]], exponent: int) -> list[int]:
    return [int(v) for v in query.steps(rows_of(people, query.unit), exponent)]


def exponents(query: Bounded) -> set[int]:
    """Grids that real plans choose, from coarse to fine."""
    plans: list[Any] = [m.Laplace(query=query, epsilon=epsilon) for epsilon in (1e-7, 1, 9)]
    return {plan.exponent for plan in (*plans, m.Gaussian(query=query, epsilon=1, delta=1e-6))}


def owns(contents: Sequence[Row], unit: Unit, most: int = 3) -> list[Own]:
    """What one unit may hold: one row, or up to `most` rows, and one unit with far too many."""
    if unit.column is None:
        return [(row,) for row in contents]
    few = [own for size in range(1, most + 1) for own in combinations_with_replacement(contents, size)]
    return [(), *few, *((row,) * 40 for row in contents)]


def gap(a: Sequence[int], b: Sequence[int]) -> Sensitivity:
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return Sensitivity(Fraction(sum(gaps)), Fraction(sum(g * g for g in gaps)), Fraction(max(gaps)))


def within(found: Sensitivity, allowed: Sensitivity) -> bool:
    return found.l1 <= allowed.l1 and found.l2_squared <= allowed.l2_squared and found.linf <= allowed.linf


def farthest(query: Bounded, contents: Sequence[Row], exponent: int, others: Sequence[Own] = (), most: int = 3) -> Any:
    """The largest movement in each norm, exactly, over all neighbours made of these rows."""
    unit, group = query.unit, query.unit.group
    made = owns(contents, unit, most)

    def at(own: Own) -> list[int]:
        return steps(query, [*others, *([own] * group)], exponent)

    here = [at(own) for own in made]
    if unit.change == "replace":
        return _widest(here)
    nothing = steps(query, others, exponent)
    if unit.change == "zero-out":
        assert all(
            at(({},) * size) == nothing for size in {len(own) for own in made}
        )  # a blank unit counts for nothing
    return _largest(gap(each, nothing) for each in here)


def _largest(found: Iterable[Sensitivity]) -> Sensitivity:
    every = list(found)
    return Sensitivity(max(s.l1 for s in every), max(s.l2_squared for s in every), max(s.linf for s in every))


def _widest(here: list[list[int]]) -> Sensitivity:
    """Over all pairs: floats find the candidates, integers measure them."""
    points = np.array(here, dtype=np.float64)
    candidates: set[tuple[int, int]] = set()
    for norm in (1, 2, np.inf):
        lengths = np.array([np.linalg.norm(points - point, ord=norm, axis=1) for point in points])
        near = np.argwhere(lengths >= lengths.max() * (1 - 1e-9))
        candidates |= {(int(i), int(j)) for i, j in near[:200]}
    return _largest(gap(here[i], here[j]) for i, j in candidates)


def holds(query: Bounded, contents: Sequence[Row], *, reach: float = 0.9, others: Sequence[Own] = ()) -> None:
    """No neighbour moves the query further than it says, on any grid; some neighbour moves it nearly that far."""
    best = [0.0, 0.0, 0.0]
    for exponent in exponents(query):
        allowed, found = query.in_steps(exponent), farthest(query, contents, exponent, others)
        assert within(found, allowed), (query, exponent)
        shares = (found.l1 / allowed.l1, found.l2_squared / allowed.l2_squared, found.linf / allowed.linf)
        best = [max(b, float(share)) for b, share in zip(best, shares, strict=True)]
    assert best[0] >= reach and best[1] >= reach**2 and best[2] >= reach, best
