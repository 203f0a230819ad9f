"""A made-up table of stays, and workloads over it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato import events
from sfumato.audit.silent import Silent
from sfumato.noise import SeededBits
from sfumato.plan import Run
from sfumato.query import SqlWorkload, workload
from sfumato.schema import Schema, Table, category, key, real, whole
from sfumato.sources import connect, source
from sfumato.units import Unit

WARDS = ("east", "north", "west")
STAYS = Table(
    {"person": key(), "ward": category(WARDS), "age": whole(0, 11), "old": whole(0, 4), "cost": real(-2, 9)},
    unit="person",
)
SCHEMA = Schema({"stays": STAYS})
PERSON = Unit("user:person")
QUERY = (
    "SELECT ward, age, old, COUNT(*) AS n, SUM(cost) AS paid FROM stays WHERE cost IS NOT NULL GROUP BY ward, age, old"
)
TABLES = {
    "total": [],
    "ward": ["ward"],
    "by age": {"age": "cumulative"},
    "old by ward": {"old": "values", "ward": "values"},
    "bands": {"ward": "values", "age": [(0, 3), (4, 11), (2, 2)]},
    "ranges": {"old": "ranges"},
}
KINDS = ("cells", "columns", "tables")
Rows = dict[str, list[Any]]


def workload_of(query: str = QUERY, *, schema: Schema = SCHEMA, **changed: Any) -> SqlWorkload:
    options = {"tables": TABLES, "unit": PERSON, "epsilon": 1, "delta": 1e-6, "limits": {"rows": 3}}
    return workload(query, schema, **{**options, **changed})


def random_rows(rng: np.random.Generator, many: int, *, people: int = 8, heavy: int = 0) -> Rows:
    """Some people have a few rows, one has `heavy` more, some of them in one cell."""
    who = [f"p{n}" for n in rng.integers(people, size=many)] + ["p0"] * heavy
    size, half = many + heavy, heavy // 2
    ward, age, old = rng.integers(3, size=size), rng.integers(12, size=size), rng.integers(5, size=size)
    for cells in (ward, age, old):
        cells[size - half :] = 1
    return {
        "person": who,
        "ward": [WARDS[place] for place in ward],
        "age": age.tolist(),
        "old": old.tolist(),
        "cost": rng.uniform(-4, 12, size=size).tolist(),
    }


def with_one_more(rows: Rows, spread: bool, many: int = 60) -> Rows:
    """Somebody who has as many rows as there may be of the largest numbers: in one cell, or one in each."""
    more = {
        "person": ["p0"] * many,
        "ward": [WARDS[place % 3] if spread else "west" for place in range(many)],
        "age": [place % 12 if spread else 0 for place in range(many)],
        "old": [place // 12 if spread else 4 for place in range(many)],
        "cost": [99.0] * many,
    }
    return {name: cells + more[name] for name, cells in rows.items()}


def without(rows: Rows, person: str) -> Rows:
    kept = [place for place, who in enumerate(rows["person"]) if who != person]
    return {name: [cells[place] for place in kept] for name, cells in rows.items()}


def exactly(plan: SqlWorkload, rows: Rows, table: Table = STAYS) -> dict[str, Any]:
    """What would be released without noise."""
    connection = connect({next(iter(plan.cells.schema.tables)): (table, source(dict(rows)))}, threads=1)
    try:
        return plan._run(connection, Run(Silent(SeededBits(0))))
    finally:
        connection.close()


def lost(plan: SqlWorkload, one: dict[str, Any], other: dict[str, Any]) -> float:
    """How much of the price a pair of tables uses: the length of the difference, in units of the noise that is really
    drawn in each place, beside what the event is sold at."""
    square = isinstance(plan.event, events.Gaussian)
    total = 0.0
    for number in plan.numbers:
        name = number.inner.measure.name
        for table, here, there in zip(number.tables, one["numbers"][name], other["numbers"][name], strict=True):
            gap = np.abs(np.asarray(here) - np.asarray(there))
            for law, places in number.laws(table):
                size = gap[places] / (law.spread * 2.0**number.exponent)
                total += float((size**2).sum() if square else size.sum())
    if square:
        return float(np.sqrt(total) * float(plan.event.multiplier))  # type: ignore[attr-defined]
    return total / float(plan.event.epsilon)  # type: ignore[attr-defined]


def oracle(rows: Rows, table: dict[str, Any], numbers: Any) -> Any:
    """A table straight from the rows, where every row counts in full."""
    axes: list[list[Any]] = []
    values = {"ward": list(WARDS), "age": list(range(12)), "old": list(range(5))}
    for name, form in table.items():
        column, cells = values[name], np.array([values[name].index(cell) for cell in rows[name]], dtype=int)
        n = len(column)
        ends = {
            "values": [(k, k) for k in range(n)],
            "cumulative": [(0, k) for k in range(n)],
            "ranges": [(a, b) for a in range(n) for b in range(a, n)],
        }.get(form) if isinstance(form, str) else form  # fmt: skip
        axes.append([(cells >= low) & (cells <= high) for low, high in ends])
    told = [np.ones(len(rows["person"]), dtype=bool)]
    for masks in axes:
        told = [one & mask for one in told for mask in masks]
    return np.array([np.sum(np.asarray(numbers)[mask]) for mask in told])
